"""A worker process: runs jobs from the queue until its parent process exits.

The parent writes the settings as the first line of standard input, and an empty line whenever there is
a new job. When standard input ends, the parent has exited and so does the worker: another worker resumes
its job.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import threading
import time
from functools import partial

from hushsum.errors import HushsumError

from ..logs import described, log_event, start_logs
from ..settings import Settings
from ..store import Store
from .job_runner import JobRunner

_IDLE_SECONDS = 1.0
_CLEANUP_SECONDS = 600.0
_LONGEST_PAUSE_SECONDS = 10.0


def main() -> None:
    """Run until standard input ends."""
    settings = Settings(**json.loads(sys.stdin.readline()))
    start_logs(settings.log_level)
    settings.import_extensions()
    limit_memory(settings.worker_memory_bytes)
    wake = threading.Event()
    threading.Thread(target=_listen, args=(wake,), daemon=True).start()
    sys.excepthook = lambda _, error, __: log_event("worker failed", level=logging.ERROR, **described(error))
    # One that exits in the middle of a stopped job is replaced by the parent.
    work = JobRunner(settings, _opened(settings.place), abandon=partial(os._exit, 0))
    cleaned = 0.0
    while True:
        try:
            if time.monotonic() - cleaned > _CLEANUP_SECONDS:
                work.clean_up()
                cleaned = time.monotonic()
            busy = work.next()
        except (HushsumError, OSError) as error:
            # The database is unreachable, or its disk is full. Nothing is lost; try again later.
            log_event("worker waits", **described(error))
            busy = False
        if not busy:
            wake.wait(_IDLE_SECONDS)
            wake.clear()


def _opened(place: str) -> Store:
    """The store, once its database can be reached."""
    pause = _IDLE_SECONDS
    while True:
        try:
            return Store.open(place)
        except Exception as error:
            log_event("worker waits", level=logging.ERROR, pause_seconds=pause, **described(error))
        time.sleep(pause)
        pause = min(2.0 * pause, _LONGEST_PAUSE_SECONDS)


def limit_memory(most: int) -> None:
    """Limit the memory of this process: a small compressed file can expand to any size."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )


def _listen(wake: threading.Event) -> None:
    while sys.stdin.readline():
        wake.set()
    # At once, also in the middle of a job: every step can be repeated.
    os._exit(0)


if __name__ == "__main__":
    main()
