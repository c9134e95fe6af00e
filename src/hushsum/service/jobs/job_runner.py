"""Runs jobs: counts uploads, releases tallies, fits models. Every step may be repeated after a crash."""

from __future__ import annotations

import hashlib
import math
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from hushsum.errors import FileRefused, HushsumError, LedgerUnavailable, UsageError
from hushsum.kernels import Kernel, bandwidth_warnings
from hushsum.ledger import Fence, Ledger
from hushsum.operations import (
    LedgerOptions,
    Progress,
    declared_or_public,
    describe_file,
    dimension,
    first_batch,
    refuse_private_file,
    release_records,
    release_tally,
    tally_records,
)
from hushsum.planning import KernelSpec
from hushsum.privacy import Claim
from hushsum.records import clipping_allowed
from hushsum.service.jobs.requests import (
    DERIVED,
    check_confirmed,
    collect_parameter_warnings,
    public_file,
    release_assumptions,
)
from hushsum.service.logs import described, log_event
from hushsum.service.problem_types import problem, problem_of_error
from hushsum.service.schemas import UPLOAD_NAME, ConfirmedReleaseRequest, TallyRequest
from hushsum.service.settings import Settings
from hushsum.service.store import (
    Accounts,
    Actor,
    Datasets,
    Functions,
    Job,
    JobQueue,
    Quota,
    Store,
    StoredTally,
)
from hushsum.service.store.database import now
from hushsum.service.store.datasets import DELETED, USED
from hushsum.service.store.job_queue import (
    CANCELLED,
    CLOSED,
    FAILED,
    MOST_ATTEMPTS,
    QUEUED,
    RUNNING,
    stop_problem,
)
from hushsum.tables import reading_as_json, reading_from_json
from hushsum.tally import load_tally, public_header

PATIENCE_SECONDS = 5.0
"""How long a job may take to reach its next step after it was stopped."""


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
                "the ledger may be a restored backup, and accepts no debits until an administrator accepts it"
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


GRACE_SECONDS: Final = 3600.0
"""Younger files may still be written. A slower upload than a mebibyte in this time is refused."""


def delete_orphaned_files(
    settings: Settings,
    datasets: Datasets,
    is_served: Callable[[str], bool],
    is_continued: Callable[[str], bool],
) -> int:
    """Delete unfinished files, and uploads, tallies, records and states without a row; returns how many.

    A function's file is always kept: it is public and paid for, and its job may still need it. The
    records of a model in exact mode are kept if ``is_served`` says so of its id, and the state of a stream if
    ``is_continued`` does.
    """
    waiting = {f"{each.id}.{each.format}" for each in datasets.uploads_before(now())}
    tallies = {f"{id}.tally" for id in datasets.tally_ids()}
    left = [path for path in _old(settings.path("uploads")) if path.name not in waiting]
    left += [path for path in _old(settings.path("tallies")) if path.name not in tallies]
    left += [path for path in _old(settings.path("functions")) if path.name.startswith(".")]
    for path in _old(settings.path("served")):
        if path.name.startswith(".") or not is_served(path.name.partition(".")[0]):
            left.append(path)
    for path in _old(settings.path("streams")):
        if path.name.startswith(".") or not is_continued(path.name.partition(".")[0]):
            left.append(path)
    for path in left:
        path.unlink(missing_ok=True)
    if left:
        log_event("orphaned files deleted", number=len(left))
    return len(left)


def delete_exact_model_files(settings: Settings, id: str) -> None:
    """Delete the records of a model in exact mode, and its answers."""
    for pattern in (f"{id}.*", f".{id}.*"):
        for path in settings.path("served").glob(pattern):
            path.unlink(missing_ok=True)


def _old(folder: Path) -> list[Path]:
    before = time.time() - GRACE_SECONDS
    found = []
    for path in folder.iterdir():
        try:
            if path.stat().st_mtime < before:
                found.append(path)
        except FileNotFoundError:
            continue
    return found


#: Before a job that met an unavailable database is tried again; doubled after each further attempt.
FIRST_PAUSE_SECONDS = 2.0
#: Before a job is looked at again that waits for an earlier one.
WAIT_SECONDS = 0.5


class JobRunner:
    """Runs the jobs of one service, one per call of :meth:`next`.

    ``abandon`` ends the process in the middle of a stopped job that does not reach its next step.
    """

    def __init__(self, settings: Settings, store: Store, abandon: Callable[[], None] | None = None) -> None:
        self._settings = settings
        self._abandon = abandon
        self._accounts = Accounts(store.database)
        self._datasets = Datasets(store.database)
        self._functions = Functions(store.database)
        self._jobs = JobQueue(store.database)

    def next(self) -> bool:
        """Run the job of the owner whose turn it is; False if there is none."""
        job = self._jobs.claim(self._settings.lease_seconds, most_running=self._settings.most_running)
        if job is None:
            return False
        log_event("job started", job=job.id, kind=job.kind, attempt=job.attempts)
        if job.attempts > MOST_ATTEMPTS:
            text = (
                "the worker died on this job several times; repeat the request with the same Idempotency-Key"
            )
            self._jobs.fail(job, problem(500, "worker-died", text), paid=self._is_paid(job))
            return True
        if self._is_closed(job):
            self._jobs.end_unpaid(job, CANCELLED, stop_problem(CLOSED))
            return True
        with renewed_lease(job, self._jobs, self._settings, self._abandon) as running:
            try:
                result = self._do(running)
            except JobStopped:
                log_event("job stopped", job=job.id, kind=job.kind)
                self._jobs.end_unpaid(job, *running.ended())
            except LeaseLost:
                log_event("job left to another worker", job=job.id, kind=job.kind)
            except JobMustWait:
                self._jobs.put_back(job, WAIT_SECONDS)
            except LedgerUnavailable as error:
                # The job itself is fine. Every step can be repeated, so it runs again when the database is
                # reachable.
                if job.attempts < MOST_ATTEMPTS:
                    log_event("job postponed", job=job.id, kind=job.kind, **described(error))
                    self._jobs.postpone(job, FIRST_PAUSE_SECONDS * 2.0 ** (job.attempts - 1))
                else:
                    self._jobs.fail(job, self._problem(error), paid=self._is_paid(job))
            except Exception as error:
                log_event("job failed", job=job.id, kind=job.kind, **described(error))
                self._jobs.fail(job, self._problem(error), paid=self._is_paid(job))
            else:
                self._jobs.finish(job, result)
                log_event("job done", job=job.id, kind=job.kind)
        return True

    def _do(self, running: RunningJob) -> dict[str, Any]:
        job = running.job
        if job.kind == "tally":
            return self._count(running)
        if job.kind == "model":
            from hushsum.service.jobs.model_fitter import ModelFitter  # imports scikit-learn

            fitter = ModelFitter(self._settings, self._datasets, self._functions)
            return fitter.fit(running, self._ledger_options(running))
        if job.kind in ("stream", "step"):
            from hushsum.service.jobs.stream_jobs import StreamSteps

            streams = StreamSteps(self._settings, self._datasets, self._functions, self._jobs)
            if job.kind == "stream":
                return streams.start(running, self._ledger_options(running))
            return streams.step(running)
        return self._release(running)

    def _is_closed(self, job: Job) -> bool:
        """Whether the account was closed before the job had spent anything."""
        owner = self._accounts.find(id=job.account)
        return not job.paying and (owner is None or owner.disabled)

    def _is_paid(self, job: Job) -> bool:
        """Whether the ledger has the job's debit; True if that is unknown, so that it can be finished."""
        if job.kind in ("tally", "step"):
            return False
        try:
            return self._ledger().find(_ledger_key(job)) is not None
        except HushsumError:
            return True

    def _ledger(self) -> Ledger:
        return Ledger(self._settings.place, guard=self._settings.ledger_guard)

    def clean_up(self) -> None:
        """Delete uploads that were not counted in time and that no job needs, and files that a killed process
        left.
        """
        moment = datetime.now(UTC) - timedelta(hours=self._settings.upload_hours)
        for each in self._datasets.uploads_before(moment.isoformat(timespec="microseconds")):
            if self._jobs.needs_upload(each.dataset, each.id):
                continue
            self._datasets.end_upload(each.id, DELETED, Actor("service"))
            self._settings.path("uploads", f"{each.id}.{each.format}").unlink(missing_ok=True)
        delete_orphaned_files(self._settings, self._datasets, self._is_served, self._is_continued)

    def _is_served(self, id: str) -> bool:
        """Whether a model in exact mode is in use, or a job may continue with its files.

        The job is looked at first: a function that is unknown after its job was done has been ended.
        """
        job = self._jobs.find("job_" + id.removeprefix("fn_"))
        if self._functions.known(id) or (job is not None and job.state in (QUEUED, RUNNING)):
            return True
        ledger = self._ledger()
        # A restored database may not know yet what a newer one does.
        if ledger.rollback_problem() is not None:
            return True
        return job is not None and job.state == FAILED and ledger.find(_ledger_key(job)) is not None

    def _is_continued(self, id: str) -> bool:
        """Whether a stream may take further steps: its dataset was not deleted."""
        job = self._jobs.find("job_" + id.removeprefix("st_"))
        if job is not None and self._datasets.exists(job.dataset):
            return True
        # A restored database may not know yet what a newer one does.
        return self._ledger().rollback_problem() is not None

    def _count(self, running: RunningJob) -> dict[str, Any]:
        job = running.job
        request = TallyRequest.model_validate(job.request)
        id = "ta_" + job.id.removeprefix("job_")
        actor = Actor(job.account)
        output = self._settings.path("tallies", f"{id}.tally")
        upload = self._datasets.upload(request.upload, dataset=job.dataset)
        assert upload is not None
        source = self._settings.path("uploads", f"{upload.id}.{upload.format}")
        notes: list[str] = []
        if self._datasets.tally(id, dataset=job.dataset) is None:
            try:
                if upload.format == "tally":
                    facts = self._store_uploaded_tally(source, output)
                else:
                    facts = self._tally(request, job.dataset, source, output, notes, running.report_progress)
                running.report_progress(1.0)
                made = StoredTally(id, job.dataset, _cells(facts), output.stat().st_size, facts, now())
                self._check_cells(made.cells)
                # The upload is deleted when its tally is there, so it does not count twice.
                quota = Quota(self._settings.owner_bytes + upload.size, self._settings.owner_cells)
                self._datasets.add_tally(made, actor, quota=quota)
            except (JobStopped, UsageError):
                # Another worker may be writing the same file.
                running.check_lease()
                output.unlink(missing_ok=True)
                raise
        self._datasets.end_upload(upload.id, USED, actor)
        source.unlink(missing_ok=True)
        return {"tally": id, "warnings": notes}

    def _check_cells(self, cells: int) -> None:
        most = self._settings.max_cells
        if cells > most:
            raise UsageError(
                f"a tally must have at most {most} cells", got="more", remedy="use fewer rows or features"
            )

    def _tally(
        self,
        request: TallyRequest,
        dataset: str,
        source: Path,
        output: Path,
        notes: list[str],
        report_progress: Progress,
    ) -> dict[str, Any]:
        records = replace(request.record_files(), paths=(str(source),), name=UPLOAD_NAME)
        kernel: KernelSpec | Kernel = request.kernel_spec()
        public = public_file(
            self._datasets,
            self._settings,
            dataset,
            request.public,
            cells=records.cells,
            columns=records.columns,
            private=request.upload,
        )
        if public is not None:
            refuse_private_file(public, records.paths)
            kernel, bounds = declared_or_public(request.kernel_spec(), records.bounds, public)
            records = replace(records, bounds=bounds)
        with collect_parameter_warnings(notes), clipping_allowed(request.allow_clipping):
            written = tally_records(
                records,
                str(output),
                kernel=kernel,
                size=request.table(),
                encryption_key=self._settings.tally_key(),
                progress=report_progress,
            )
        # Public, and in time: nothing is spent before the release.
        notes += bandwidth_warnings(written.kernel, written.bounds)
        return {**_facts(output), **({} if public is None else {DERIVED: True})}

    def _store_uploaded_tally(self, source: Path, output: Path) -> dict[str, Any]:
        """Store an uploaded tally, which is read once to check that it is intact."""
        if public_header(source)["encryption"] is not None:
            raise FileRefused("a tally must be uploaded unencrypted", remedy="save it without a key")
        tally = load_tally(source)
        key = self._settings.tally_key()
        if key is None:
            beside = output.with_suffix(".part")
            shutil.copyfile(source, beside)
            beside.chmod(0o600)
            beside.replace(output)
        else:
            tally.save(output, encryption_key=key)
        return _facts(output)

    def _release(self, running: RunningJob) -> dict[str, Any]:
        job = running.job
        request = ConfirmedReleaseRequest.model_validate(job.request)
        id, actor = "fn_" + job.id.removeprefix("job_"), Actor(job.account)
        output = self._settings.path("functions", f"{id}.hush")
        notes: list[str] = []
        if not self._functions.known(id):
            if request.upload is None:
                self._release_tally(running, request, output)
            else:
                self._release_upload(running, request, output, notes)
            facts = describe_file(str(output)).as_json()
            del facts["source"]
            digest = hashlib.sha256(output.read_bytes()).hexdigest()
            self._functions.add(id, job.dataset, request.name, sha256=digest, facts=facts, actor=actor)
        if request.upload is None:
            return {"function": id}
        self._datasets.end_upload(request.upload, USED, actor)
        self._source(request.upload, job.dataset).unlink(missing_ok=True)
        return {"function": id, "warnings": notes}

    def _release_tally(self, running: RunningJob, request: ConfirmedReleaseRequest, output: Path) -> None:
        dataset = running.job.dataset
        assert request.tally is not None
        stored = self._datasets.tally(request.tally, dataset=dataset)
        assert stored is not None
        # The owner saw warnings of parameters when the tally was counted.
        with collect_parameter_warnings([]):
            release_tally(
                str(self._settings.path("tallies", f"{request.tally}.tally")),
                str(output),
                request.release_request(),
                public=public_file(
                    self._datasets, self._settings, dataset, request.public, cells=request.cells()
                ),
                assumptions=release_assumptions(request, stored),
                encryption_key=self._settings.tally_key(),
                approve=lambda claim, account: running.pay(),
                ledger=self._ledger_options(running),
            )

    def _release_upload(
        self, running: RunningJob, request: ConfirmedReleaseRequest, output: Path, notes: list[str]
    ) -> None:
        """Plan, count, confirm, debit, draw and publish. The upload is kept until the function is known."""
        dataset = running.job.dataset
        assert request.upload is not None
        records = request.record_files(str(self._source(request.upload, dataset)))
        if request.set_column is None and dimension(first_batch(records)[0]) != len(request.columns or ()):
            # The claim was made for as many numbers as there are names.
            raise UsageError("columns", "must each have one number per record", got="lists of numbers")

        def approve(claim: Claim, _: object) -> bool:
            check_confirmed(dataset, request, claim)
            return running.pay()

        with collect_parameter_warnings(notes), clipping_allowed(request.allow_clipping):
            release_records(
                records,
                str(output),
                request.release_request(),
                kernel=request.kernel_spec(),
                method=request.method_spec(),
                public=public_file(
                    self._datasets,
                    self._settings,
                    dataset,
                    request.public,
                    cells=records.cells,
                    columns=records.columns,
                    private=request.upload,
                ),
                progress=running.report_progress,
                approve=approve,
                ledger=self._ledger_options(running),
            )

    def _source(self, upload: str, dataset: str) -> Path:
        """The file of an upload."""
        found = self._datasets.upload(upload, dataset=dataset)
        assert found is not None
        return self._settings.path("uploads", f"{found.id}.{found.format}")

    def _ledger_options(self, running: RunningJob) -> LedgerOptions:
        job = running.job
        owner = self._accounts.find(id=job.account)
        return LedgerOptions(
            self._settings.place,
            job.dataset,
            idempotency_key=_ledger_key(job),
            who=owner.name if owner is not None else job.account,
            guard=self._settings.ledger_guard,
            fence=running.fence,
        )

    def _problem(self, error: Exception) -> dict[str, Any]:
        """The problem that is reported to the owner; it does not contain the service's paths."""
        places = [
            f"{self._settings.path(kind)}/"
            for kind in ("uploads", "tallies", "functions", "served", "streams")
        ]
        folder = str(Path(self._settings.folder))
        # The current folder is a full stop, which every message may contain.
        places += [folder] if folder != "." else []
        if isinstance(error, HushsumError) and any(place in str(error) for place in places):
            text = "a file of the service is missing or cannot be written; report it to the administrator"
            return problem(500, "service-file", text)
        return problem_of_error(error)


def _ledger_key(job: Job) -> str:
    """The key of a release, a model or a stream in the ledger."""
    kind = f"{job.kind}:" if job.kind in ("model", "stream") else ""
    return f"{job.dataset}:{kind}{job.key}"


def _cells(facts: dict[str, Any]) -> int:
    """How many numbers a tally holds, from its public definition."""
    return math.prod(reading_from_json(facts["definition"]).basis.shape)


def _facts(path: Path) -> dict[str, Any]:
    """The public description of a tally, and its definition, from which claims are computed."""
    facts = describe_file(str(path)).as_json()
    header = public_header(path)
    facts["definition"] = {"basis": header["basis"], "kernel": header["kernel"]}
    del facts["source"]
    # Read back once, so that an unreadable definition is not discovered at the release.
    assert reading_as_json(reading_from_json(facts["definition"])) == facts["definition"]
    return facts
