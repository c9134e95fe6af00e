"""A real service process, from its start to kill -9 and back."""

from __future__ import annotations

import io
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest
from tests.e2e.cli_process import COMMAND, environment
from tests.e2e.service_process import ServiceProcess
from tests.free_ports import free_port
from tests.in_process_service import SECRET, SMALL, records
from tests.ledger_fixtures import postgres, server

import hushsum as hs
from hushsum.errors import BudgetExhausted, DataRefused, ServiceRefused, UsageError

__all__ = ["postgres", "server"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ServiceProcess]:
    found = ServiceProcess(tmp_path)
    yield found
    if found.process is not None and found.process.poll() is None:
        found.process.kill()
        found.process.wait()


def test_a_whole_life(place: ServiceProcess) -> None:
    """Upload, plan, release, ask; revoke; kill -9 in the middle; restart; end."""
    admin = place.start()
    token = admin.create_account("olga", "owner")
    analyst = admin.create_account("anna", "analyst")
    olga = hs.connect(place.url, token)
    data = olga.create_dataset("pay", epsilon=2.0)
    upload = data.upload(io.BytesIO(records()), format="csv")
    tally = data.tally(upload, **SMALL)
    f = data.release(tally, "pay", epsilon=0.5, idempotency_key="one")
    data.grant(f, "anna")
    anna = hs.connect(place.url, analyst)
    remote = anna.function("pay")
    points = [[1.0, -2.0], [4.0, 4.0]]
    np.testing.assert_array_equal(remote(points), f.local()(points))
    with pytest.raises(ServiceRefused, match="grant"):
        remote.save(io.BytesIO())
    with pytest.raises(ServiceRefused):
        anna.datasets()
    with pytest.raises(DataRefused):
        data.tally(data.upload(io.BytesIO(b"a,b\n1,x\n"), format="csv"), **SMALL)
    with pytest.raises(BudgetExhausted):
        data.release(tally, "pay", epsilon=1.6)

    # Killed while a release is on its way, at three moments; the same key finds it.
    for i, pause in enumerate((0.0, 0.05, 0.2)):
        terms: dict[str, Any] = {"epsilon": 0.25, "rows": 20}
        confirm = data.claim(tally, f"k{i}", **terms)["confirm"]
        requested = {"tally": tally, "name": f"k{i}", **terms, "confirm": confirm}
        headers = {"authorization": f"Bearer {token}", "idempotency-key": f"k{i}"}
        httpx.post(f"{place.url}/datasets/{data.id}/releases", json=requested, headers=headers, timeout=60)
        time.sleep(pause)
        place.kill()
        place.start()
        again = data.release(tally, f"k{i}", idempotency_key=f"k{i}", **terms)
        assert again(points).shape == (2,)
    history = data.ledger()["history"]
    assert [each["step"] for each in history] == ["published"] * 4
    assert data.budget()["spent"]["epsilon"] == "5/4"
    assert {each.sha256 for each in olga.functions()} == {each["sha256"] for each in history}

    # Another worker comes where one has died.
    for worker in place.workers():
        worker.kill()
    assert data.release(tally, "after", epsilon=0.25, rows=20)(points).shape == (2,)

    place.stop()
    text = place.log
    assert "Traceback" not in text
    assert SECRET not in text
    assert token not in text
    assert {each["event"] for each in place.events()} >= {"serving", "answered", "job done", "worker died"}


@pytest.mark.parametrize(
    ("on", "number"),
    [
        ("sqlite", 12),
        pytest.param("sqlite", 50, marks=pytest.mark.slow),
        pytest.param("postgresql", 50, marks=pytest.mark.slow),
    ],
)
def test_concurrent_releases_never_overspend(
    place: ServiceProcess, on: str, number: int, request: pytest.FixtureRequest
) -> None:
    place.settings = {"HUSHSUM_WORKERS": "2"}
    if on == "postgresql":
        place.settings["HUSHSUM_DATABASE"] = request.getfixturevalue("postgres")
    olga = hs.connect(place.url, place.start().create_account("olga", "owner"))
    data = olga.create_dataset("pay", epsilon=0.5)
    tally = data.tally(data.upload(io.BytesIO(records()), format="csv"), **SMALL)

    def one(i: int) -> bool:
        try:
            data.release(tally, f"f{i}", epsilon=0.1, rows=10, idempotency_key=f"k{i}")
        except BudgetExhausted:
            return False
        return True

    with ThreadPoolExecutor(number) as pool:
        assert sum(pool.map(one, range(number))) == 5
    assert data.budget()["spent"]["epsilon"] == "1/2"
    assert len(olga.functions()) == 5


@pytest.mark.slow
@pytest.mark.parametrize("on", ["sqlite", "postgresql"])
def test_killed_again_and_again(place: ServiceProcess, on: str, request: pytest.FixtureRequest) -> None:
    """Twelve releases; in the middle of each, the server or only its worker is killed."""
    if on == "postgresql":
        place.settings["HUSHSUM_DATABASE"] = request.getfixturevalue("postgres")
    token = place.start().create_account("olga", "owner")
    olga = hs.connect(place.url, token)
    data = olga.create_dataset("pay", epsilon=10.0)
    tally = data.tally(data.upload(io.BytesIO(records()), format="csv"), **SMALL)
    terms: dict[str, Any] = {"epsilon": 0.1, "rows": 20}
    confirm = data.claim(tally, "f", **terms)["confirm"]
    chance = random.Random(3)
    for i in range(12):
        headers = {"authorization": f"Bearer {token}", "idempotency-key": f"k{i}"}
        requested = {"tally": tally, "name": "f", **terms, "confirm": confirm}
        httpx.post(f"{place.url}/datasets/{data.id}/releases", json=requested, headers=headers, timeout=60)
        time.sleep(chance.uniform(0.0, 0.3))
        if i % 2:
            place.kill()
            place.start()
        else:
            for worker in place.workers():
                worker.kill()
        data.release(tally, "f", idempotency_key=f"k{i}", **terms)
    history = data.ledger()["history"]
    assert [each["step"] for each in history] == ["published"] * 12
    assert data.budget()["spent"]["epsilon"] == "6/5"
    assert {each.sha256 for each in olga.functions()} == {each["sha256"] for each in history}
    assert "Traceback" not in place.log


def test_a_stranger_starts_and_stops_it(tmp_path: Path) -> None:
    """In an empty folder, with an empty environment, nothing on standard input; then both ways to end it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # Only what it takes to find Python and this source: no setting, no token, no folder.
    bare = {name: value for name, value in environment().items() if name in ("PATH", "PYTHONPATH")}
    for ending in (signal.SIGTERM, signal.SIGINT):
        started = subprocess.Popen(
            [*COMMAND, "serve", "--port", str(port)],
            cwd=tmp_path,
            env={**bare, "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            for _ in range(600):
                with suppress(httpx.TransportError):
                    if httpx.get(f"{url}/healthz", verify=False, timeout=60).status_code == 200:
                        break
                time.sleep(0.1)
            assert len(httpx.get(f"{url}/openapi.json", timeout=60).json()["paths"]) >= 8
            assert "<html" in httpx.get(url, timeout=60).text
            assert httpx.post(f"{url}/functions/x/query", json={}, timeout=60).status_code == 401
            workers = psutil.Process(started.pid).children()
            # Somebody who never stops listening must not keep it from ending.
            with socket.create_connection(("127.0.0.1", port)):
                started.send_signal(ending)
                _, said = started.communicate(timeout=300)
        finally:
            started.kill()
        assert started.returncode == 0
        assert workers
        _, alive = psutil.wait_procs(workers, timeout=120)
        assert alive == []
        assert b"Traceback" not in said
        assert (b"administrator's token" in said) == (ending == signal.SIGTERM), (
            "reported once, at the first start"
        )


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, "serve", "--port", str(port)],
            cwd=tmp_path,
            env=environment(HUSHSUM_STATE=str(tmp_path / "state"), HUSHSUM_ADMIN_TOKEN="x" * 32),
            capture_output=True,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == (
        f"hushsum: the port {port} of '127.0.0.1' must be free, and the address must be this machine's; "
        "choose another with --port\n"
    )


def test_a_full_disk_refuses_uploads_and_keeps_the_rest(place: ServiceProcess) -> None:
    olga = hs.connect(place.url, place.start().create_account("olga", "owner"))
    data = olga.create_dataset("pay", epsilon=1.0)
    tally = data.tally(data.upload(io.BytesIO(records()), format="csv"), **SMALL)
    f = data.release(tally, "pay", epsilon=0.5)
    place.kill()
    place.start(largest=1 << 20)
    with pytest.raises(ServiceRefused, match="disk"):
        data.upload(io.BytesIO(b"a,b\n" + b"1.0,2.0\n" * 300_000), format="csv")
    assert list((place.folder / "hushsum-service" / "uploads").iterdir()) == []
    assert f([[0.0, 0.0]]).shape == (1,)
    assert httpx.get(f"{place.url}/readyz", timeout=60).status_code == 200


def test_wrong_addresses_and_tokens(place: ServiceProcess) -> None:
    place.start()
    with pytest.raises(ServiceRefused, match="token"):
        hs.connect(place.url, "hs_wrong")
    with pytest.raises(ServiceRefused, match="cannot be reached"):
        hs.connect("http://127.0.0.1:9", "hs_x")
    with pytest.raises(UsageError, match="unencrypted"):
        hs.connect("http://sums.example.org", "hs_x")
    with pytest.raises(UsageError, match="url"):
        hs.connect("file:///etc/passwd", "hs_x")
    assert place.stop() in (0, -15, 143)


def test_without_the_extra_one_sentence_says_which_to_install(tmp_path: Path) -> None:
    script = (
        "import importlib.util, sys; real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'fastapi' else real(name, *a)\n"
        "sys.argv = ['hushsum', 'serve']\n"
        "from hushsum.cli.main import run; run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == "hushsum: the service needs more packages; install hushsum[service]\n"
