"""A disk that is really full: a service whose folder is a small file system of its own."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.service_process import ServiceProcess
from tests.in_process_service import SECRET, SMALL, records

import hushsum as hs

SIZE = 6 << 20


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ServiceProcess]:
    folder = tmp_path / "hushsum-service"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system can be mounted by root alone; the tests with RLIMIT_FSIZE remain")
    found = ServiceProcess(tmp_path)
    try:
        yield found
    finally:
        if found.process is not None and found.process.poll() is None:
            found.process.kill()
            found.process.wait()
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, left: int) -> Path:
    """A file that leaves so many bytes free."""
    filler = folder / "filler"
    free = os.statvfs(folder)
    with filler.open("wb") as stream:
        stream.write(bytes(max(0, free.f_bavail * free.f_bsize - left)))
    return filler


def ended(url: str, headers: dict[str, str], job: str) -> Any:
    """The job, when it has ended or been put off."""
    for _ in range(3000):
        answer = httpx.get(f"{url}/jobs/{job}", headers=headers, verify=False, timeout=60)
        assert answer.status_code == 200, answer.text
        if answer.json()["state"] in ("done", "failed"):
            break
        time.sleep(0.1)
    return answer.json()


def test_uploads_tallies_and_releases_on_a_full_disk(place: ServiceProcess) -> None:
    folder = place.folder / "hushsum-service"
    token = place.start().create_account("olga", "owner")
    data = hs.connect(place.url, token).create_dataset("pay", epsilon=10.0)
    headers = {"authorization": f"Bearer {token}"}

    # An upload that does not fit is refused, and takes no room afterwards.
    before = os.statvfs(folder).f_bavail
    big = io.BytesIO(b"a,b\n" + b"1.0,2.0\n" * 1_000_000)
    with pytest.raises(hs.errors.ServiceRefused, match="disk"):
        data.upload(big, format="csv")
    assert list((folder / "uploads").iterdir()) == []
    assert os.statvfs(folder).f_bavail == before

    # A tally that does not fit fails, and succeeds with the same key when there is room.
    upload = data.upload(io.BytesIO(records()), format="csv")
    requested = {"upload": upload, **SMALL, "rows": 1000, "width": 100}
    path, keyed = f"{place.url}/datasets/{data.id}/tallies", {**headers, "idempotency-key": "t"}
    filler = fill(folder, 120_000)
    job = httpx.post(path, json=requested, headers=keyed, timeout=60).json()["id"]
    reported = ended(place.url, headers, job)
    assert reported["state"] == "failed"
    assert reported["problem"]["status"] == 507
    assert list((folder / "tallies").iterdir()) == []
    assert len(list((folder / "uploads").iterdir())) == 1, "what was not counted waits"
    filler.unlink()
    assert httpx.post(path, json=requested, headers=keyed, timeout=60).json()["id"] == job
    tally = ended(place.url, headers, job)["result"]["tally"]

    # So does a release, at whatever step the room ends; it is paid for once.
    troubled = 0
    terms: dict[str, Any] = {"epsilon": 0.1, "rows": 1000}
    for released, left in enumerate((0, 8192, 40_000, 120_000, 260_000), start=1):
        confirm = data.claim(tally, "f", **terms)["confirm"]
        requested = {"tally": tally, "name": "f", **terms, "confirm": confirm}
        path, keyed = f"{place.url}/datasets/{data.id}/releases", {**headers, "idempotency-key": f"r{left}"}
        filler = fill(folder, left)
        answer = httpx.post(path, json=requested, headers=keyed, timeout=60)
        assert answer.status_code in (202, 503, 507), answer.text
        state = "refused"
        if answer.status_code == 202:
            time.sleep(1.0)
            now = httpx.get(f"{place.url}/jobs/{answer.json()['id']}", headers=headers, timeout=60)
            assert now.status_code == 200
            state = now.json()["state"]
            assert state != "failed" or now.json()["problem"]["status"] in (503, 507)
        troubled += state != "done"
        filler.unlink()
        assert data.release(tally, "f", idempotency_key=f"r{left}", **terms)([[0.0, 0.0]]).shape == (1,)
        history = data.ledger()["history"]
        assert [each["step"] for each in history] == ["published"] * released
    assert data.budget()["spent"]["epsilon"] == "1/2"
    assert troubled >= 2
    assert list(folder.rglob(".*")) == [], "unfinished files were left behind"
    text = place.log
    assert "Traceback" not in text
    assert SECRET not in text
