"""A generator of single-point queries that costs little: plain sockets, kept alive, requests made beforehand.

Open: request i is due at i/rate, whatever became of the others, and is timed from then; one that finds its
connection busy waits, and its wait counts. Closed: every connection asks again as soon as it is answered.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from dataclasses import dataclass, field
from importlib import import_module
from typing import cast

import numpy as np

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
    """``rate`` requests a second for so many seconds, on a schedule that waits for nobody."""

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
