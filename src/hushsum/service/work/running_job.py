"""A job in a worker's hands: its lease is renewed, and it is stopped when it must stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hushsum.errors import HushsumError, LedgerUnavailable
from hushsum.ledger import Ledger
from hushsum.service.logs import described, say
from hushsum.service.problems import problem
from hushsum.service.settings import Settings
from hushsum.service.store import Job, JobQueue
from hushsum.service.store.job_queue import CANCELLED, FAILED, stop_problem

PATIENCE_SECONDS = 5.0
"""So long a job may take to reach its next step after it was told to stop."""


class JobStopped(Exception):
    """The job was told to stop, before its debit."""


class RunningJob:
    """What a job's work uses: ``tell`` at every step of its progress, ``pay`` right before its debit."""

    def __init__(self, job: Job, jobs: JobQueue, settings: Settings) -> None:
        self.job = job
        self._jobs = jobs
        self._settings = settings
        self._progress: float | None = None
        self._reason: str | None = None
        self._since = 0.0
        self._paying = job.paying

    @property
    def stopped(self) -> bool:
        """Whether the job was told to stop."""
        return self._reason is not None and not self._paying

    def tell(self, fraction: float | None) -> None:
        """Record progress.

        Raises
        ------
        JobStopped
            if the job is to stop; nothing was spent.
        """
        self._progress = fraction
        if self.stopped:
            raise JobStopped

    def pay(self) -> bool:
        """Decide to debit the ledger: from here on the job is finished, whatever happens to its account.

        Raises
        ------
        JobStopped
            if the job was cancelled, its account closed or its time is up; nothing was spent.
        LedgerUnavailable
            while a restored ledger waits to be accepted.
        """
        if Ledger(self._settings.place, guard=self._settings.guard).rollback_problem() is not None:
            raise LedgerUnavailable(
                "the ledger may be a restored backup, and books nothing until an administrator accepts it"
            )
        if self.stopped or not self._jobs.begin_paying(self.job):
            raise JobStopped
        self._paying = True
        return True

    def ended(self) -> tuple[str, dict[str, Any]]:
        """The state and the problem of a job that was stopped."""
        if self._reason == "time":
            most = self._settings.job_seconds
            text = f"the job took more than {most:g} seconds of a worker; take fewer rows or records"
            return FAILED, problem(422, "time-limit", text)
        current = self._jobs.find(self.job.id)
        reason = self._reason or (current.stop if current is not None else None)
        return CANCELLED, stop_problem(reason or "account-closed")

    def renew(self) -> None:
        """Renew the lease, and learn whether the job is to stop."""
        current = self._jobs.renew(self.job, self._settings.lease_seconds, self._progress)
        if current is None:
            self._stop("cancelled")
        elif current.stop is not None:
            self._stop(current.stop)
        elif current.seconds > self._settings.job_seconds:
            self._stop("time")

    @property
    def overdue(self) -> bool:
        """Whether the job was told to stop and has reached no step since."""
        return self.stopped and time.monotonic() - self._since > PATIENCE_SECONDS

    def _stop(self, reason: str) -> None:
        if self._reason is None:
            self._reason, self._since = reason, time.monotonic()


@contextmanager
def kept(
    job: Job, jobs: JobQueue, settings: Settings, abandon: Callable[[], None] | None
) -> Iterator[RunningJob]:
    """Renew a job's lease while it is worked on.

    A job that is to stop and does not come to its next step is ended in the database, if it is not paying,
    and ``abandon`` then ends the process: native code that runs for minutes is not interrupted otherwise.
    """
    running = RunningJob(job, jobs, settings)
    ended = threading.Event()

    def renew() -> None:
        every = min(1.0, settings.lease_seconds / 4, settings.job_seconds / 4)
        while not ended.wait(every):
            try:
                running.renew()
                if abandon is not None and running.overdue and jobs.end_unpaid(job, *running.ended()):
                    say("job abandoned", job=job.id, kind=job.kind)
                    abandon()
            except HushsumError as error:
                say("lease not renewed", job=job.id, **described(error))

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        ended.set()
        thread.join()
