"""The pool of workers: restarts, pauses of those that die at once, and calls that never wait."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hushsum.service.jobs import HEALTHY_SECONDS, LONGEST_PAUSE_SECONDS, WorkerPool, WorkerSlot, worker_pool
from hushsum.service.settings import Settings

Start = Callable[..., "subprocess.Popen[bytes]"]


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Ended:
    """A process that has ended."""

    def __init__(self, code: int) -> None:
        self.returncode = code

    def poll(self) -> int:
        return self.returncode


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(worker_pool, "time", made)
    return made


def ended(slot: WorkerSlot, clock: Clock, *, code: int, after: float) -> float:
    process: Any = Ended(code)
    slot.started(process)
    clock.now += after
    return slot.ended()


def test_the_pauses_of_a_worker_that_dies_at_once_grow(clock: Clock) -> None:
    slot = WorkerSlot()
    assert [ended(slot, clock, code=1, after=0.1) for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert not slot.is_due()
    clock.now += LONGEST_PAUSE_SECONDS
    assert slot.is_due()
    assert ended(slot, clock, code=-9, after=HEALTHY_SECONDS) == 0.0, "it has worked before"
    assert slot.is_due()
    assert ended(slot, clock, code=1, after=0.1) == 1.0, "the count starts again"


def test_a_worker_that_leaves_a_cancelled_job_is_replaced_at_once(clock: Clock) -> None:
    """Else an owner who cancels one job after the other would stop the jobs of others."""
    slot = WorkerSlot()
    assert [ended(slot, clock, code=0, after=0.1) for _ in range(6)] == [0.0] * 6


class Workers:
    """Stands for ``subprocess`` in the pool: programs of the test instead of workers."""

    PIPE, DEVNULL, TimeoutExpired = subprocess.PIPE, subprocess.DEVNULL, subprocess.TimeoutExpired

    def __init__(self, start: Start) -> None:
        self._start = start

    def Popen(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        assert command[1:] == ["-m", "hushsum.service.jobs.worker"]
        return self._start(**options)


@pytest.fixture
def pool_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Start], WorkerPool]]:
    pools: list[WorkerPool] = []

    def make(start: Start) -> WorkerPool:
        monkeypatch.setattr(worker_pool, "subprocess", Workers(start))
        monkeypatch.setattr(worker_pool, "_CHECK_SECONDS", 0.01)
        monkeypatch.setattr(worker_pool, "FIRST_PAUSE_SECONDS", 0.01)
        pools.append(WorkerPool(Settings(folder=str(tmp_path), workers=1)))
        return pools[-1]

    yield make
    for each in pools:
        each.stop()


def running(program: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], **options)


def test_a_worker_that_cannot_be_started_is_tried_again(pool_of: Callable[[Start], WorkerPool]) -> None:
    """Without memory or processes for a moment, and also at the start; the watching thread survives."""
    calls: list[str] = []
    alive = threading.Event()

    def start(**options: Any) -> subprocess.Popen[bytes]:
        calls.append("start")
        if len(calls) in (1, 3):
            raise OSError(errno.EAGAIN, "no processes")
        if len(calls) == 2:
            return running("raise SystemExit(1)", **options)
        process = running("import sys\nfor line in sys.stdin: pass", **options)
        alive.set()
        return process

    pool = pool_of(start)
    pool.start()
    assert alive.wait(60.0), "nobody started a worker any more"
    pool.wake()  # which waits until the pool has noted the process
    assert len(calls) == 4
    assert pool.trouble() is None


def test_a_worker_that_does_not_read_blocks_nobody(pool_of: Callable[[Start], WorkerPool]) -> None:
    """A call per job goes through a pipe, which holds 64 KiB of them."""
    pool = pool_of(lambda **options: running("import time\ntime.sleep(600)", **options))
    pool.start()

    def wake_often() -> None:
        for _ in range(70_000):
            pool.wake()

    many = threading.Thread(target=wake_often, daemon=True)
    many.start()
    many.join(60.0)
    assert not many.is_alive()
    assert pool.alive() == 1
    [slot] = pool._slots
    assert slot.process is not None
    os.kill(slot.process.pid, 9)


def test_a_worker_without_its_database_waits_and_logs_no_words_of_the_driver(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    place = f"postgresql://someone:canary-password@127.0.0.1:{port}/canary"
    settings = Settings(folder=str(tmp_path), database=place)
    worker = subprocess.Popen(
        [sys.executable, "-m", "hushsum.service.jobs.worker"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert worker.stdin is not None
    assert worker.stderr is not None
    with worker, worker.stderr as log:
        worker.stdin.write(settings.for_worker().encode() + b"\n")
        worker.stdin.flush()
        lines = [log.readline() for _ in range(2)]
        worker.stdin.close()
        lines += log.readlines()
        assert worker.wait() == 0
    found = [json.loads(line) for line in lines]
    assert [each["event"] for each in found] == ["worker waits"] * len(found)
    assert [each["pause_seconds"] for each in found[:2]] == [1.0, 2.0]
    assert b"canary" not in b"".join(lines)
    assert str(port).encode() not in b"".join(lines)
