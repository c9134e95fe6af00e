"""The worker processes of a service: started, watched, started again."""

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
from hushsum.service.logs import say
from hushsum.service.settings import Settings

_LOOK_EVERY = 0.3
_PATIENCE = 5.0
_NOT_FOR_WORKERS = ("HUSHSUM_ADMIN_TOKEN", "HUSHSUM_OIDC_CLIENT_SECRET")
_SOURCE = str(Path(str(hushsum.__file__)).parents[1])


class WorkerPool:
    """Keeps so many workers alive as the settings say."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._workers: list[subprocess.Popen[bytes]] = []
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the workers, and somebody who looks after them."""
        if not self._settings.workers:
            return
        self._workers = [self._hire() for _ in range(self._settings.workers)]
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Say that there is something to do."""
        with self._lock:
            for each in self._workers:
                if each.stdin is not None:
                    with suppress(OSError, ValueError):
                        each.stdin.write(b"\n")
                        each.stdin.flush()

    def alive(self) -> int:
        """How many workers live now."""
        return sum(each.poll() is None for each in self._workers)

    def trouble(self) -> str | None:
        """Why nothing can be counted or released now, if that is so."""
        if self._settings.workers and all(each.poll() is not None for each in self._workers):
            return "no worker lives; one is about to be started"
        return None

    def stop(self) -> None:
        """End the workers; a job that one leaves is taken up at the next start."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        for each in self._workers:
            if each.stdin is not None:
                with suppress(OSError):
                    each.stdin.close()
        for each in self._workers:
            try:
                each.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()

    def _hire(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join(filter(None, [_SOURCE, os.environ.get("PYTHONPATH")]))
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_WORKERS}
        worker = subprocess.Popen(
            [sys.executable, "-m", "hushsum.service.work.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**environment, "PYTHONPATH": path},
            # A Ctrl-C at the terminal is for the server, which then ends its workers itself.
            start_new_session=True,
        )
        assert worker.stdin is not None
        with suppress(OSError):
            worker.stdin.write(self._settings.for_worker().encode() + b"\n")
            worker.stdin.flush()
        return worker

    def _watch(self) -> None:
        pause = _LOOK_EVERY
        while not self._ended.wait(pause):
            pause = _LOOK_EVERY
            for i, each in enumerate(self._workers):
                if each.poll() is not None and not self._ended.is_set():
                    say("worker died", level=logging.ERROR, code=each.returncode)
                    started = time.monotonic()
                    with self._lock:
                        self._workers[i] = self._hire()
                    pause = max(1.0, time.monotonic() - started)
