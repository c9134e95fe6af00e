"""A worker of the service in a process of its own, which may die anywhere or meet a full disk."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

from hushsum.service.jobs import JobRunner, worker
from hushsum.service.settings import Settings
from hushsum.service.store import Store
from tests.ledger_workers import die_at


def work_once(
    settings: str, kill_at: int | None = None, largest: int | None = None, peak: str | None = None
) -> None:
    """Do the job that waits; die by SIGKILL when a file is touched for that time, or let no file grow
    beyond ``largest`` bytes. The most memory that was used is written to the file ``peak``.
    """
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    reported = Settings(**json.loads(settings))
    worker.limit_memory(reported.worker_memory_bytes)
    work = JobRunner(reported, Store.open(reported.place))
    if largest is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if kill_at is not None:
        die_at(kill_at)
    work.next()
    if peak is not None:
        Path(peak).write_text(str(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
