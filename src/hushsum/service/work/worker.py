"""A worker process: takes jobs from the queue until its parent is gone.

The parent writes the settings as the first line of standard input, and an empty line whenever there is
something to do. The end of standard input is the end of the parent, and of the worker: a job that it leaves
is taken up again, by its next worker.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time

from hushsum.errors import HushsumError
from hushsum.service.logs import described, say, start_logs
from hushsum.service.settings import Settings
from hushsum.service.store import Store
from hushsum.service.work.job_runner import JobRunner

_IDLE_SECONDS = 1.0
_TIDY_SECONDS = 600.0


def main() -> None:
    """Run until standard input ends."""
    settings = Settings(**json.loads(sys.stdin.readline()))
    start_logs(settings.log_level)
    limit_memory(settings.worker_memory_bytes)
    wake = threading.Event()
    threading.Thread(target=_listen, args=(wake,), daemon=True).start()
    work = JobRunner(settings, Store.open(settings.place), abandon=_leave)
    tidied = 0.0
    while True:
        try:
            if time.monotonic() - tidied > _TIDY_SECONDS:
                work.tidy()
                tidied = time.monotonic()
            busy = work.next()
        except (HushsumError, OSError) as error:
            # The database is out of reach, or its disk is full. Nothing is lost; try again later.
            say("worker waits", **described(error))
            busy = False
        if not busy:
            wake.wait(_IDLE_SECONDS)
            wake.clear()


def limit_memory(most: int) -> None:
    """Let no allocation of this process go beyond: a small compressed file can unfold to any size."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )


def _leave() -> None:
    """End in the middle of a job that was stopped; the parent starts another worker."""
    os._exit(0)


def _listen(wake: threading.Event) -> None:
    while sys.stdin.readline():
        wake.set()
    # At once, also in the middle of a job: whoever repeats it finds every step where it was.
    os._exit(0)


if __name__ == "__main__":
    main()
