"""A service that is stopped or killed while an owner has it calculate: it ends, and so do its processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil
from tests.attacks.test_requests_that_calculate import Pipe, many
from tests.attacks.test_streams_and_connections import eventually
from tests.e2e.service_process import ADMIN, ServiceProcess

import hushsum as hs

ATTACK = 20


@contextmanager
def under_attack(folder: Path) -> Iterator[tuple[ServiceProcess, Pipe, list[psutil.Process]]]:
    """A service of whose owner twenty plans wait for public rows that never end; and all its processes."""
    service = ServiceProcess(folder)
    service.start()
    token = hs.connect(service.url, ADMIN).create_account("olga", "owner")
    data = hs.connect(service.url, token).create_dataset("payroll", epsilon=1.0)
    np.savetxt(folder / "rows.csv", np.zeros((9, 2)), delimiter=",", header="a,b", comments="")
    upload = data.upload(str(folder / "rows.csv"))
    pipe = Pipe(folder / "hushsum-service" / "uploads" / f"{upload}.csv")
    body = {"records": 9, "kernel": "gaussian", "bandwidth": 1.0, "epsilon": [1.0], "public": upload}
    headers = {"authorization": f"Bearer {token}"}
    with (
        httpx.Client(base_url=service.url, headers=headers) as link,
        many(link, ATTACK, f"/datasets/{data.id}/plans", body) as sent,
    ):
        eventually(pipe.is_read)
        assert service.process is not None
        processes = psutil.Process(service.process.pid).children(recursive=True)
        # A worker, the server that forks, and one that calculates.
        assert len(processes) >= 3
        yield service, pipe, processes
        assert [each.exception() or each.result().status_code for each in sent] != [200] * ATTACK
    _, alive = psutil.wait_procs(processes, timeout=120)
    assert alive == []
    eventually(lambda: not pipe.is_read())


def test_it_stops(tmp_path: Path) -> None:
    with under_attack(tmp_path) as (service, _, _):
        assert service.stop() == 0
    problems = [each for each in service.events() if each.get("level") == "ERROR"]
    assert problems == [], json.dumps(problems)


def test_its_processes_end_when_it_is_killed(tmp_path: Path) -> None:
    with under_attack(tmp_path) as (service, _, _):
        service.kill()
