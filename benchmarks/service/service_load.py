"""The service under load, with the load generator on the same cores.

1. 1,000 single-point queries a second for 60 seconds over 16 connections: 99 of 100 within 50 ms of the
   moment they were due, and no error. The schedule is fixed, so that a slow answer is seen in all that wait
   for it. Then, for five seconds, as many as can be answered.
2. 100,000 points in one batch, JSON and Arrow, within 2 seconds.
3. 50 concurrent releases against a budget for 20: exactly 20 are released, and nothing is overspent.

``python -m benchmarks service_load [--seconds 60] [--rate 1000]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

import hushsum as hs

CONNECTIONS = 16
_DIFFERENT = 997


@dataclass(slots=True)
class Load:
    """What became of the requests: seconds from the moment each was due, and how many went wrong."""

    late: list[float] = field(default_factory=list)
    errors: int = 0

    def quantiles(self) -> tuple[float, float, float]:
        """The median, p99 and the slowest, in milliseconds."""
        middle, slow, slowest = (1000.0 * np.quantile(self.late, [0.5, 0.99, 1.0])).tolist()
        return middle, slow, slowest


def requests_for(function: str, token: str) -> list[bytes]:
    """Some hundred requests that ask at different points."""
    head = (
        f"POST /functions/{function}/query HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n"
        "content-type: application/json\r\ncontent-length: {}\r\n\r\n{}"
    )
    points = np.random.default_rng(1).normal(0, 1, (_DIFFERENT, 3)).round(3).tolist()
    bodies = [json.dumps({"points": [point]}) for point in points]
    return [head.format(len(body), body).encode() for body in bodies]


class _Connection(asyncio.Protocol):
    """One request at a time; those that are due meanwhile wait in line."""

    def __init__(self, load: Load, ended: asyncio.Event) -> None:
        self._load = load
        self._ended = ended
        self._line: deque[tuple[float, bytes]] = deque()
        self._due: float | None = None
        self._heard = b""
        self._again: tuple[list[bytes], float] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def send(self, due: float, request: bytes) -> None:
        if self._due is not None:
            self._line.append((due, request))
            return
        self._due = due
        self._transport.write(request)

    def send_until(self, end: float, requests: list[bytes]) -> None:
        self._again = (requests, end)
        self.send(time.perf_counter(), requests[0])

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.partition(b"content-length: ")[2].partition(b"\r")[0]):
            return
        now = time.perf_counter()
        assert self._due is not None
        self._load.late.append(now - self._due)
        self._load.errors += not head.startswith(b"HTTP/1.1 200 ")
        self._heard, self._due = b"", None
        if self._line:
            self.send(*self._line.popleft())
        elif self._again is not None and now < self._again[1]:
            self.send(now, self._again[0][len(self._load.late) % _DIFFERENT])
        else:
            self._ended.set()

    def connection_lost(self, error: Exception | None) -> None:
        # Whoever waits on a connection that the server has closed got no answer.
        self._load.errors += len(self._line) + (self._due is not None)
        self._line.clear()
        self._due = None
        self._ended.set()

    @property
    def idle(self) -> bool:
        return self._due is None

    def close(self) -> None:
        self._transport.close()


def open_load(port: int, function: str, token: str, *, seconds: float, rate: float) -> Load:
    """``rate`` requests a second for this many seconds, on a schedule that waits for nobody."""

    async def send(connections: list[_Connection], load: Load) -> None:
        requests = requests_for(function, token)
        start = time.perf_counter() + 0.2
        for i in range(int(seconds * rate)):
            due = start + i / rate
            pause = due - time.perf_counter()
            if pause > 0.0:
                await asyncio.sleep(pause)
            connections[i % CONNECTIONS].send(due, requests[i % _DIFFERENT])

    return _run(port, send)


def closed_load(port: int, function: str, token: str, *, seconds: float) -> Load:
    """As many requests as sixteen connections can get answered."""

    async def send(connections: list[_Connection], load: Load) -> None:
        requests = requests_for(function, token)
        for each in connections:
            each.send_until(time.perf_counter() + seconds, requests)
        await asyncio.sleep(seconds)

    return _run(port, send)


def _run(port: int, send: object) -> Load:
    assert callable(send)

    async def run() -> Load:
        load, ended = Load(), asyncio.Event()
        loop = asyncio.get_running_loop()
        connections = [
            (await loop.create_connection(lambda: _Connection(load, ended), "127.0.0.1", port))[1]
            for _ in range(CONNECTIONS)
        ]
        await send(connections, load)
        while not all(each.idle for each in connections):
            ended.clear()
            await ended.wait()
        for each in connections:
            each.close()
        return load

    loaded: Load = import_module("uvloop").run(run())
    return loaded


SATURATED = 5.0
POINTS = 100_000
RELEASES = 50
AFFORDABLE = 20


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=1000.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        token = secrets.token_hex(16)
        port = 18000 + os.getpid() % 2000
        server = start(Path(folder), port, token)
        try:
            return measure(server.pid, port, token, options.seconds, options.rate)
        finally:
            server.terminate()
            server.wait()


def start(folder: Path, port: int, token: str) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "HUSHSUM_ADMIN_TOKEN": token,
        "HUSHSUM_FOLDER": str(folder / "service"),
        "HUSHSUM_STATE": str(folder / "state"),
        "HUSHSUM_WORKERS": "2",
        "HUSHSUM_REQUESTS_PER_SECOND": "1000",
        "PYTHONPATH": str(Path(str(hs.__file__)).parents[1]),
    }
    log = (folder / "log").open("wb")
    command = [sys.executable, "-m", "hushsum", "serve", "--port", str(port)]
    return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def server_seconds(process: int) -> float:
    """The processor time of the server alone; how late it is depends on who else uses the machine."""
    times = import_module("psutil").Process(process).cpu_times()
    return float(times.user + times.system)


def connected(url: str, token: str) -> Any:
    for _ in range(100):
        try:
            return hs.connect(url, token)
        except hs.errors.ServiceRefused:
            time.sleep(0.2)
    raise SystemExit("the service did not start")


def measure(server: int, port: int, token: str, seconds: float, rate: float) -> int:
    url = f"http://127.0.0.1:{port}"
    admin = connected(url, token)
    owner_token = admin.create_account("owner", "owner")
    owner = hs.connect(url, owner_token)
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        points = np.random.default_rng(0).normal(0, 1, (20_000, 3))
        np.savetxt(file.name, points, delimiter=",", header="x,y,z", comments="", fmt="%.4f")
        data = owner.create_dataset("load", epsilon=float(AFFORDABLE + 5))
        tally = data.tally(data.upload(file.name), bandwidth=1.0, rows=1000, width=1000, bounds=[[-6, 6]])
    function = data.release(tally, "load", epsilon=5.0)
    before = server_seconds(server)
    load = open_load(port, function.id, owner_token, seconds=seconds, rate=rate)
    each = (server_seconds(server) - before) / len(load.late)
    print(f"the server took {1e6 * each:.0f} µs of processor time for each query")
    good = report_load(load, seconds, rate)
    most = closed_load(port, function.id, owner_token, seconds=SATURATED)
    print(f"at most {len(most.late) / SATURATED:.0f} queries a second, {most.errors} errors")
    good &= report_batch(function, url, owner_token)
    return 0 if good & report_releases(data, tally) else 1


def report_load(load: Load, seconds: float, rate: float) -> bool:
    middle, slow, slowest = load.quantiles()
    print(
        f"{len(load.late)} single-point queries at {rate:g} a second for {seconds:g} s: "
        f"{load.errors} errors, p50 {middle:.1f} ms, p99 {slow:.1f} ms, slowest {slowest:.1f} ms "
        f"(load average {os.getloadavg()[0]:.1f})"
    )
    return load.errors == 0 and len(load.late) == int(seconds * rate) and slow < 50.0


def report_batch(function: Any, url: str, token: str) -> bool:
    import httpx

    points = np.random.default_rng(2).normal(0, 1, (POINTS, 3))
    body = json.dumps({"points": points.round(4).tolist()}).encode()
    started = time.perf_counter()
    function.query(points)
    arrow = time.perf_counter() - started
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    started = time.perf_counter()
    answer = httpx.post(f"{url}/functions/{function.id}/query", content=body, headers=headers, timeout=60)
    plain = time.perf_counter() - started
    good = answer.status_code == 200 and len(answer.json()["value"]) == POINTS
    print(f"{POINTS} points in one batch: Arrow {arrow:.2f} s, JSON {plain:.2f} s")
    return good and max(arrow, plain) < 2.0


def report_releases(data: Any, tally: str) -> bool:
    def one(i: int) -> bool:
        try:
            data.release(tally, f"f{i}", epsilon=1.0, rows=50, idempotency_key=f"k{i}")
        except hs.errors.BudgetExhausted:
            return False
        return True

    started = time.perf_counter()
    with ThreadPoolExecutor(RELEASES) as pool:
        released = sum(pool.map(one, range(RELEASES)))
    budget = data.budget()
    spent = budget["spent"]["epsilon"]
    seconds = time.perf_counter() - started
    print(
        f"{RELEASES} concurrent releases of ε 1, ε {AFFORDABLE} left: {released} released in {seconds:.1f} s"
    )
    print(f"the ledger has spent ε {spent} of ε {budget['terms']['budget']['epsilon']}")
    return released == AFFORDABLE and float(spent) <= AFFORDABLE + 5


if __name__ == "__main__":
    sys.exit(main())
