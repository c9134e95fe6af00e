"""Starts the worker processes of a service, and restarts those that die."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Final

from ..logs import described, log_event
from ..settings import SOURCE, Settings

_CHECK_SECONDS = 0.3
# How long the pool waits for all workers together to stop. A worker that is killed leaves nothing undone: its
# job is resumed.
_STOP_SECONDS = 0.5
_NOT_FOR_WORKERS = ("HUSHSUM_ADMIN_TOKEN", "HUSHSUM_OIDC_CLIENT_SECRET")

FIRST_PAUSE_SECONDS: Final = 1.0
# Not longer, since jobs that kill their worker must not stop those of other owners.
LONGEST_PAUSE_SECONDS: Final = 10.0
# A worker that ran for this time is restarted at once. For a worker that died earlier, the pause doubles each
# time.
HEALTHY_SECONDS: Final = 10.0


class WorkerSlot:
    """One worker of the pool: its process, and when it is started again after it has died."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._failures = 0
        self._due = 0.0

    @property
    def alive(self) -> bool:
        """Whether its process is running."""
        return self.process is not None and self.process.poll() is None

    def started(self, process: subprocess.Popen[bytes]) -> None:
        """Its process was started."""
        self.process, self._started = process, time.monotonic()

    def ended(self) -> float:
        """Its process has ended, or could not be started; returns the pause before the next attempt."""
        moment = time.monotonic()
        # One that leaves a cancelled job ends itself, with the code 0.
        healthy = self.process is not None and (
            self.process.returncode == 0 or moment - self._started >= HEALTHY_SECONDS
        )
        self._failures = 0 if healthy else self._failures + 1
        pause = 0.0
        if self._failures:
            pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures - 1, 16), LONGEST_PAUSE_SECONDS)
        self.process, self._due = None, moment + pause
        return pause

    def is_due(self) -> bool:
        """Whether the pause is over."""
        return time.monotonic() >= self._due


class WorkerPool:
    """Keeps the configured number of workers running.

    A worker that dies is replaced; one that dies again and again, because its database is gone or its memory
    is full, is replaced after longer and longer pauses, of `LONGEST_PAUSE_SECONDS` at most.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._slots: list[WorkerSlot] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the workers, and a thread that restarts them."""
        if not self._settings.workers:
            return
        self._slots = [WorkerSlot() for _ in range(self._settings.workers)]
        for each in self._slots:
            self._fill(each)
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Wake the workers, because there is a new job.

        Never waits: the pipe of a worker that does not read is full of such calls already, and every worker
        looks at the queue once per second.
        """
        with self._lock:
            for each in self._slots:
                if each.process is not None and each.process.stdin is not None:
                    with suppress(OSError, ValueError):
                        os.write(each.process.stdin.fileno(), b"\n")

    def alive(self) -> int:
        """How many workers are running."""
        return sum(each.alive for each in self._slots)

    def trouble(self) -> str | None:
        """Why no job can run now, or None."""
        if self._settings.workers and not self.alive():
            return "no worker is running; one is about to be started"
        return None

    def stop(self) -> None:
        """Stop the workers; an unfinished job is resumed at the next start."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        running = [each.process for each in self._slots if each.process is not None]
        for process in running:
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
        end = time.monotonic() + _STOP_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _fill(self, slot: WorkerSlot) -> None:
        """Start a worker. Where that fails, for want of memory or processes, it is tried again later."""
        try:
            with self._lock:
                slot.started(self._start_worker())
        except (OSError, MemoryError) as error:
            pause = slot.ended()
            log_event("worker not started", level=logging.ERROR, pause_seconds=pause, **described(error))

    def _start_worker(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [SOURCE, os.environ.get("PYTHONPATH")]))
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_WORKERS}
        worker = subprocess.Popen(
            [sys.executable, "-m", "hushsum.service.jobs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**environment, "PYTHONPATH": path},
            # A Ctrl-C at the terminal goes to the server, which then stops its workers itself.
            start_new_session=True,
        )
        log_event("worker started", pid=worker.pid)
        assert worker.stdin is not None
        with suppress(OSError):
            worker.stdin.write(self._settings.for_worker().encode() + b"\n")
            worker.stdin.flush()
        os.set_blocking(worker.stdin.fileno(), False)
        return worker

    def _watch(self) -> None:
        while not self._ended.wait(_CHECK_SECONDS):
            for each in self._slots:
                if each.process is not None and not each.alive:
                    code = each.process.returncode
                    if each.process.stdin is not None:
                        with suppress(OSError):
                            each.process.stdin.close()
                    with self._lock:
                        pause = each.ended()
                    log_event("worker died", level=logging.ERROR, code=code, pause_seconds=pause)
                if each.process is None and each.is_due() and not self._ended.is_set():
                    self._fill(each)
