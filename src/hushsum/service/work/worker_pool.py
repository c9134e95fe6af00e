"""Starts the worker processes of a service, and restarts those that die."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import hushsum
from hushsum.service.logs import log_event
from hushsum.service.settings import Settings

_CHECK_SECONDS = 0.3
_STOP_SECONDS = 5.0
_NOT_FOR_WORKERS = ("HUSHSUM_ADMIN_TOKEN", "HUSHSUM_OIDC_CLIENT_SECRET")
_SOURCE = str(Path(str(hushsum.__file__)).parents[1])


class WorkerPool:
    """Keeps the configured number of workers running."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._workers: list[subprocess.Popen[bytes]] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the workers, and a thread that restarts them."""
        if not self._settings.workers:
            return
        self._workers = [self._start_worker() for _ in range(self._settings.workers)]
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Wake the workers, because there is a new job."""
        with self._lock:
            for each in self._workers:
                if each.stdin is not None:
                    with suppress(OSError, ValueError):
                        each.stdin.write(b"\n")
                        each.stdin.flush()

    def alive(self) -> int:
        """How many workers are running."""
        return sum(each.poll() is None for each in self._workers)

    def trouble(self) -> str | None:
        """Why no job can run now, or None."""
        if self._settings.workers and all(each.poll() is not None for each in self._workers):
            return "no worker is running; one is about to be started"
        return None

    def stop(self) -> None:
        """Stop the workers; an unfinished job is resumed at the next start."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        for each in self._workers:
            if each.stdin is not None:
                with suppress(OSError):
                    each.stdin.close()
        for each in self._workers:
            try:
                each.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()

    def _start_worker(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH")]))
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_WORKERS}
        worker = subprocess.Popen(
            [sys.executable, "-m", "hushsum.service.work.worker"],
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
        return worker

    def _watch(self) -> None:
        pause = _CHECK_SECONDS
        while not self._ended.wait(pause):
            pause = _CHECK_SECONDS
            for i, each in enumerate(self._workers):
                if each.poll() is not None and not self._ended.is_set():
                    log_event("worker died", level=logging.ERROR, code=each.returncode)
                    started = time.monotonic()
                    with self._lock:
                        self._workers[i] = self._start_worker()
                    pause = max(1.0, time.monotonic() - started)
