"""A running job: its lease is renewed, and it is stopped when it was cancelled or takes too long;
warnings for its owner are collected.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from hushsum.errors import HushsumError, LedgerUnavailable, SuspiciousParameter
from hushsum.ledger import Ledger
from hushsum.ledger.dataset_budget import Fence
from hushsum.service.logs import described, log_event
from hushsum.service.problem_types import problem
from hushsum.service.settings import Settings
from hushsum.service.store import Job, JobQueue
from hushsum.service.store.job_queue import CANCELLED, FAILED, stop_problem

PATIENCE_SECONDS = 5.0
"""How long a job may take to reach its next step after it was stopped."""
UPLOAD_NAME: Final = "the upload"
"""What error messages call an uploaded file, whose path in the service nobody needs."""


class JobStopped(Exception):
    """The job was stopped before its debit."""


class JobMustWait(Exception):
    """Another job or worker must finish first; nothing was done."""


class LeaseLost(Exception):
    """The job is another worker's, or has ended: this one had been silent for longer than its lease.

    Nothing of the job may be touched any more, neither its files nor its budget.
    """


class RunningJob:
    """A running job calls ``report_progress`` at every step, and ``pay`` right before its debit."""

    def __init__(self, job: Job, jobs: JobQueue, settings: Settings) -> None:
        self.job = job
        self._jobs = jobs
        self._settings = settings
        self._progress: float | None = None
        self._reason: str | None = None
        self._since = 0.0
        self._paying = job.paying
        self._lost = False

    @property
    def stopped(self) -> bool:
        """Whether the job was stopped."""
        return self._reason is not None and not self._paying

    def report_progress(self, fraction: float | None) -> None:
        """Record progress.

        Raises
        ------
        JobStopped
            if the job was stopped; nothing was spent.
        LeaseLost
            if the job is no longer this worker's.
        """
        self._progress = fraction
        if self._lost:
            raise LeaseLost
        if self.stopped:
            raise JobStopped

    def pay(self) -> bool:
        """Start the debit: from here on the job runs to its end, even if its account is closed.

        Raises
        ------
        JobStopped
            if the job was cancelled, its account closed or its time is up; nothing was spent.
        LeaseLost
            if the job is no longer this worker's.
        LedgerUnavailable
            while a restored ledger is not accepted.
        """
        if Ledger(self._settings.place, guard=self._settings.ledger_guard).rollback_problem() is not None:
            raise LedgerUnavailable(
                rule=(
                    "the ledger may be a restored backup, and accepts no debits until an "
                    "administrator accepts it"
                )
            )
        if self.stopped or not self._jobs.begin_paying(self.job):
            self.check_lease()
            raise JobStopped
        self._paying = True
        return True

    def check_lease(self) -> None:
        """Raise LeaseLost if the job is no longer this worker's."""
        self.renew()
        if self._lost:
            raise LeaseLost

    @property
    def fence(self) -> Fence:
        """Raises LeaseLost in the transaction of a debit, if another worker has the job or it has ended."""
        return self._jobs.fence(self.job, LeaseLost)

    def ended(self) -> tuple[str, dict[str, Any]]:
        """The state and the problem of a job that was stopped."""
        if self._reason == "time":
            most = self._settings.job_seconds
            text = f"the job took more than {most:g} seconds; use fewer rows or records"
            return FAILED, problem(422, "time-limit", text)
        current = self._jobs.find(self.job.id)
        reason = self._reason or (current.stop if current is not None else None)
        return CANCELLED, stop_problem(reason or "account-closed")

    def renew(self) -> None:
        """Renew the lease, and read whether the job was stopped."""
        current = self._jobs.renew(self.job, self._settings.lease_seconds, self._progress)
        if current is None:
            self._lost = True
        elif current.stop is not None:
            self._stop(current.stop)
        elif current.seconds > self._settings.job_seconds:
            self._stop("time")

    @property
    def overdue(self) -> bool:
        """Whether the job was stopped and has reached no step since."""
        return self.stopped and time.monotonic() - self._since > PATIENCE_SECONDS

    def _stop(self, reason: str) -> None:
        if self._reason is None:
            self._reason, self._since = reason, time.monotonic()


@contextmanager
def renewed_lease(
    job: Job, jobs: JobQueue, settings: Settings, abandon: Callable[[], None] | None
) -> Iterator[RunningJob]:
    """Renew a job's lease while it runs.

    A job that was stopped and does not reach its next step is ended in the database, if it is not paying,
    and ``abandon`` then ends the process: native code that runs for minutes cannot be interrupted otherwise.
    """
    running = RunningJob(job, jobs, settings)
    ended = threading.Event()

    def renew() -> None:
        every = min(1.0, settings.lease_seconds / 4, settings.job_seconds / 4)
        while not ended.wait(every):
            try:
                running.renew()
                if abandon is not None and running.overdue and jobs.end_unpaid(job, *running.ended()):
                    log_event("job abandoned", job=job.id, kind=job.kind)
                    abandon()
            except HushsumError as error:
                log_event("lease not renewed", job=job.id, **described(error))

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        ended.set()
        thread.join()


@contextmanager
def collect_parameter_warnings(notes: list[str]) -> Iterator[None]:
    """Collect warnings about suspicious parameters, once each. They depend on the records, so they go into
    the result of the owner's job, which nobody else can see.
    """
    with warnings.catch_warnings(record=True) as caught:
        # Warnings of other libraries are for developers, and nobody would read them here.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("always", SuspiciousParameter)
        yield
    notes += sorted({str(each.message) for each in caught if each.category is SuspiciousParameter})
