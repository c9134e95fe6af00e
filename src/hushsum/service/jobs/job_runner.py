"""Runs jobs: counts uploads, releases tallies, fits models. Every step may be repeated after a crash."""

from __future__ import annotations

import hashlib
import io
import math
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from hushsum.errors import (
    AlreadyPublished,
    FileRefused,
    HushsumError,
    LedgerUnavailable,
    StreamInUse,
    UsageError,
)
from hushsum.files import atomic_file
from hushsum.kernels import Kernel, bandwidth_warnings
from hushsum.ledger import Ledger
from hushsum.operations import (
    Destination,
    LedgerOptions,
    PublicFile,
    RecordFiles,
    TrainingFiles,
    count_whole_file,
    declared_or_public,
    describe_exact,
    describe_file,
    describe_model,
    dimension,
    first_batch,
    refuse_private_file,
    release_records,
    release_tally,
    tally_records,
)
from hushsum.planning import KernelSpec, MethodSpec, TableSpec
from hushsum.privacy import Claim, ReleaseRequest
from hushsum.records import CellFormat, clipping_allowed
from hushsum.streams import Stream, open_stream
from hushsum.tables import reading_as_json, reading_from_json
from hushsum.tally import load_tally, public_header

from ..logs import described, log_event
from ..problem_types import problem, problem_of_error
from ..schemas import (
    UPLOAD_NAME,
    ConfirmedModelRequest,
    ConfirmedReleaseRequest,
    ConfirmedStreamRequest,
    FileRequest,
    PublicRequest,
    StreamStepRequest,
    TallyRequest,
)
from ..settings import FOLDERS, Settings
from ..store import MOST_ATTEMPTS, Actor, Datasets, Job, Quota, Store, StoredFunction, StoredTally, now
from ..store.datasets import DELETED, STATE_BYTES, USED
from ..store.job_queue import CANCELLED, CLOSED, FAILED, QUEUED, RUNNING, stop_problem
from .requests import (
    DERIVED,
    choice_of,
    collect_parameter_warnings,
    confirmation,
    public_file,
    release_assumptions,
)

# How long a job may take to reach its next step after it was stopped.
PATIENCE_SECONDS = 5.0


class JobStopped(Exception):
    """The job was stopped before its debit."""


class JobMustWait(Exception):
    """Another job or worker must finish first; nothing was done."""


class RecordWarnings(Exception):
    """Counting has given warnings, and their owner is to read them before anything is spent."""


class LeaseLost(Exception):
    """The job is another worker's, or has ended: this one had been silent for longer than its lease.

    Nothing of the job may be touched any more, neither its files nor its budget.
    """


def ledger_of(settings: Settings) -> Ledger:
    """The ledger of the service with these settings."""
    return Ledger(settings.place, guard=settings.ledger_guard)


class RunningJob:
    """A job and what it works with. It calls ``report_progress`` at every step, and ``pay`` right before its
    debit.
    """

    def __init__(self, job: Job, store: Store, settings: Settings) -> None:
        self.job = job
        self.store = store
        self.settings = settings
        self.actor = Actor(job.account)
        # Warnings for the owner.
        self.notes: list[str] = []
        self._progress: float | None = None
        self._reason: str | None = None
        self._since = 0.0
        self._paying = job.paying
        self._lost = False

    def source(self, upload: str) -> Path:
        """The file of an upload."""
        found = self.store.datasets.upload(upload, dataset=self.job.dataset)
        assert found is not None
        return self.settings.path("uploads", found.file)

    def records(self, request: FileRequest, upload: str) -> RecordFiles:
        """The file of an upload, with the columns that the request declares."""
        return replace(request.states(RecordFiles), paths=(str(self.source(upload)),), name=UPLOAD_NAME)

    def use_up(self, upload: str) -> None:
        """Delete an upload that was counted."""
        self.store.datasets.end_upload(upload, USED, self.actor)
        self.source(upload).unlink(missing_ok=True)

    def public(self, request: PublicRequest) -> PublicFile | None:
        """The upload that the request declares public; None if it declares none."""
        return public_file(self.store.datasets, self.settings, self.job.dataset, request)

    def publish(
        self,
        function: str,
        name: str,
        file: Path,
        facts: dict[str, Any] | None = None,
        by: Actor | None = None,
    ) -> None:
        """Make a function known whose file is complete; ``facts`` are what is public of it, by default the
        description of the file.
        """
        if facts is None:
            facts = describe_file(str(file)).as_json()
            del facts["source"]
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        made = StoredFunction(function, self.job.dataset, name, digest, facts, now())
        self.store.functions.add(made, by or self.actor)

    @property
    def ledger(self) -> LedgerOptions:
        """Where and for whom the job is booked. In the transaction of the debit LeaseLost is raised, if
        another worker has the job or it has ended.
        """
        owner = self.store.accounts.find(id=self.job.account)
        return LedgerOptions(
            self.settings.place,
            self.job.dataset,
            idempotency_key=self.job.ledger_key,
            who=self.job.account if owner is None else owner.name,
            guard=self.settings.ledger_guard,
            fence=self.store.jobs.fence(self.job, LeaseLost),
        )

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

    def pay(self) -> None:
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
        if ledger_of(self.settings).rollback_problem() is not None:
            raise LedgerUnavailable(
                "the ledger may be a restored backup, and accepts no debits until an administrator accepts it"
            )
        if self.stopped or not self.store.jobs.begin_paying(self.job):
            self.check_lease()
            raise JobStopped
        self._paying = True

    def pay_confirmed(self, request: ConfirmedReleaseRequest | ConfirmedModelRequest, claim: Claim) -> None:
        """Start the debit of a claim, if it is the one that the owner has confirmed.

        Raises
        ------
        RecordWarnings
            if there are warnings that the owner wants to read before; nothing was spent.
        """
        if confirmation(self.job.kind, self.job.dataset, request, claim) != request.confirm:
            raise UsageError("the claim is not the one that was confirmed", remedy="request the claim again")
        if request.stop_at_warnings and self.notes and not self._paying:
            raise RecordWarnings
        self.pay()

    def check_lease(self) -> None:
        """Raise LeaseLost if the job is no longer this worker's."""
        self.renew()
        if self._lost:
            raise LeaseLost

    def ended(self) -> tuple[str, dict[str, Any]]:
        """The state and the problem of a job that was stopped."""
        if self._reason == "time":
            most = self.settings.job_seconds
            text = f"the job took more than {most:g} seconds; use fewer rows or records"
            return FAILED, problem(422, "time-limit", text)
        current = self.store.jobs.find(self.job.id)
        reason = self._reason or (current.stop if current is not None else None)
        return CANCELLED, stop_problem(reason or "account-closed")

    def renew(self) -> None:
        """Renew the lease, and read whether the job was stopped."""
        current = self.store.jobs.renew(self.job, self.settings.lease_seconds, self._progress)
        if current is None:
            self._lost = True
        elif current.stop is not None:
            self._stop(current.stop)
        elif current.seconds - current.before > self.settings.job_seconds:
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
    job: Job, store: Store, settings: Settings, abandon: Callable[[], None] | None
) -> Iterator[RunningJob]:
    """Renew a job's lease while it runs.

    A job that was stopped and does not reach its next step is ended in the database, if it is not paying,
    and ``abandon`` then ends the process: native code that runs for minutes cannot be interrupted otherwise.
    """
    running = RunningJob(job, store, settings)
    ended = threading.Event()

    def renew() -> None:
        every = min(1.0, settings.lease_seconds / 4, settings.job_seconds / 4)
        while not ended.wait(every):
            try:
                running.renew()
                if abandon is not None and running.overdue and store.jobs.end_unpaid(job, *running.ended()):
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


# Younger files may still be written. A slower upload than a mebibyte in this time is refused.
GRACE_SECONDS: Final = 3600.0


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
    waiting = {each.file for each in datasets.uploads_before(now())}
    tallies = {f"{id}.tally" for id in datasets.tally_ids()}
    left = [path for path in _old(settings.path("uploads")) if path.name not in waiting]
    left += [path for path in _old(settings.path("tallies")) if path.name not in tallies]
    left += [path for path in _old(settings.path("functions")) if path.name.startswith(".")]
    for folder, is_needed in (("served", is_served), ("streams", is_continued)):
        found = _old(settings.path(folder))
        left += [
            path for path in found if path.name.startswith(".") or not is_needed(path.name.partition(".")[0])
        ]
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
    before, found = time.time() - GRACE_SECONDS, []
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            found += [path] if path.stat().st_mtime < before else []
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
        self._store = store
        self._jobs = store.jobs

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
        owner = self._store.accounts.find(id=job.account)
        if not job.paying and (owner is None or owner.disabled):
            self._jobs.end_unpaid(job, CANCELLED, stop_problem(CLOSED))
            return True
        with renewed_lease(job, self._store, self._settings, self._abandon) as running:
            try:
                result = _JOBS[job.kind](running)
            except JobStopped:
                log_event("job stopped", job=job.id, kind=job.kind)
                self._jobs.end_unpaid(job, *running.ended())
            except LeaseLost:
                log_event("job left to another worker", job=job.id, kind=job.kind)
            except JobMustWait:
                self._jobs.put_back(job, WAIT_SECONDS, attempted=False)
            except LedgerUnavailable as error:
                # The job itself is fine. Every step can be repeated, so it runs again when the database is
                # reachable.
                if job.attempts < MOST_ATTEMPTS:
                    log_event("job postponed", job=job.id, kind=job.kind, **described(error))
                    pause = FIRST_PAUSE_SECONDS * 2.0 ** (job.attempts - 1)
                    self._jobs.put_back(job, pause, attempted=True)
                else:
                    self._jobs.fail(job, self._problem(error), paid=self._is_paid(job))
            except RecordWarnings:
                log_event("job stopped at warnings", job=job.id, kind=job.kind)
                text = f"counting gave warnings, and nothing was spent: {' '.join(running.notes)}"
                self._jobs.fail(job, problem(409, "warnings", text, warnings=running.notes))
            except Exception as error:
                log_event("job failed", job=job.id, kind=job.kind, **described(error))
                self._jobs.fail(job, self._problem(error), paid=self._is_paid(job))
            else:
                self._jobs.finish(job, result)
                log_event("job done", job=job.id, kind=job.kind)
        return True

    def _is_paid(self, job: Job) -> bool:
        """Whether the ledger has the job's debit; True if that is unknown, so that it can be finished."""
        if job.kind in ("tally", "step"):
            return False
        try:
            return ledger_of(self._settings).find(job.ledger_key) is not None
        except HushsumError:
            return True

    def clean_up(self) -> None:
        """Delete uploads that were not counted in time and that no job needs, and files that a killed process
        left.
        """
        moment = datetime.now(UTC) - timedelta(hours=self._settings.upload_hours)
        datasets = self._store.datasets
        for each in datasets.uploads_before(moment.isoformat(timespec="microseconds")):
            if self._jobs.needs_upload(each.dataset, each.id):
                continue
            datasets.end_upload(each.id, DELETED, Actor("service"))
            self._settings.path("uploads", each.file).unlink(missing_ok=True)
        delete_orphaned_files(self._settings, datasets, self._is_served, self._is_continued)

    def _is_served(self, id: str) -> bool:
        """Whether a model in exact mode is in use, or a job may continue with its files.

        The job is looked at first: a function that is unknown after its job was done has been ended.
        """
        job = self._jobs.find("job_" + id.removeprefix("fn_"))
        if self._store.functions.known(id) or (job is not None and job.state in (QUEUED, RUNNING)):
            return True
        ledger = ledger_of(self._settings)
        # A restored database may not know yet what a newer one does.
        if ledger.rollback_problem() is not None:
            return True
        return job is not None and job.state == FAILED and ledger.find(job.ledger_key) is not None

    def _is_continued(self, id: str) -> bool:
        """Whether a stream may take further steps: its dataset was not deleted."""
        job = self._jobs.find("job_" + id.removeprefix("st_"))
        if job is not None and self._store.datasets.exists(job.dataset):
            return True
        # A restored database may not know yet what a newer one does.
        return ledger_of(self._settings).rollback_problem() is not None

    def _problem(self, error: Exception) -> dict[str, Any]:
        """The problem that is reported to the owner; it does not contain the service's paths."""
        places = [f"{self._settings.path(kind)}/" for kind in FOLDERS]
        folder = str(Path(self._settings.folder))
        # The current folder is a full stop, which every message may contain.
        places += [folder] if folder != "." else []
        if isinstance(error, HushsumError) and any(place in str(error) for place in places):
            text = "a file of the service is missing or cannot be written; report it to the administrator"
            return problem(500, "service-file", text)
        return problem_of_error(error)


def count_upload(running: RunningJob) -> dict[str, Any]:
    """Count an upload into a tally, or store one that is a tally."""
    job, store, settings = running.job, running.store, running.settings
    request = TallyRequest.model_validate(job.request)
    id = "ta_" + job.id.removeprefix("job_")
    output = settings.path("tallies", f"{id}.tally")
    upload = store.datasets.upload(request.upload, dataset=job.dataset)
    assert upload is not None
    if store.datasets.tally(id, dataset=job.dataset) is None:
        try:
            if upload.format == "tally":
                _store_uploaded_tally(running.source(upload.id), output, settings.tally_key())
                derived = False
            else:
                derived = _count_records(running, request, output)
            running.report_progress(1.0)
            facts = _facts(output) | ({DERIVED: True} if derived else {})
            # How many numbers the tally holds, from its public definition.
            cells = math.prod(reading_from_json(facts["definition"]).basis.shape)
            settings.check_cells(cells)
            made = StoredTally(id, job.dataset, cells, output.stat().st_size, facts, now())
            # The upload is deleted when its tally is there, so it does not count twice.
            quota = Quota(settings.owner_bytes + upload.size, settings.owner_cells)
            store.datasets.add_tally(made, running.actor, quota=quota)
        except (JobStopped, UsageError):
            # Another worker may be writing the same file.
            running.check_lease()
            output.unlink(missing_ok=True)
            raise
    running.use_up(upload.id)
    return {"tally": id, "warnings": running.notes}


def _count_records(running: RunningJob, request: TallyRequest, output: Path) -> bool:
    """Count a file of records; whether public rows have decided some of its parameters."""
    records = running.records(request, request.upload)
    kernel: KernelSpec | Kernel = request.kernel_spec()
    public = running.public(request)
    if public is not None:
        refuse_private_file(public, records.paths)
        kernel, bounds = declared_or_public(request.kernel_spec(), records.bounds, public)
        records = replace(records, bounds=bounds)
    with collect_parameter_warnings(running.notes), clipping_allowed(request.allow_clipping):
        written = tally_records(
            records,
            str(output),
            kernel=kernel,
            size=request.states(TableSpec),
            encryption_key=running.settings.tally_key(),
            progress=running.report_progress,
        )
    # Public, and in time: nothing is spent before the release.
    running.notes += bandwidth_warnings(written.reading.kernel, written.reading.basis.bounds)
    return public is not None


def _store_uploaded_tally(source: Path, output: Path, key: bytes | None) -> None:
    """Store an uploaded tally, which is read once to check that it is intact."""
    if public_header(source)["encryption"] is not None:
        raise FileRefused("a tally must be uploaded unencrypted", remedy="save it without a key")
    tally = load_tally(source)
    if key is not None:
        tally.save(output, encryption_key=key)
        return
    beside = output.with_suffix(".part")
    shutil.copyfile(source, beside)
    beside.chmod(0o600)
    beside.replace(output)


def _facts(path: Path) -> dict[str, Any]:
    """The public description of a tally, and its definition, from which claims are computed."""
    facts = describe_file(str(path)).as_json()
    header = public_header(path)
    facts["definition"] = {"basis": header["basis"], "kernel": header["kernel"]}
    del facts["source"]
    # Read back once, so that an unreadable definition is not discovered at the release.
    assert reading_as_json(reading_from_json(facts["definition"])) == facts["definition"]
    return facts


def release(running: RunningJob) -> dict[str, Any]:
    """Release a tally, or the records of an upload, which is kept until the function is known."""
    job = running.job
    request = ConfirmedReleaseRequest.model_validate(job.request)
    output = running.settings.path("functions", f"{job.function}.hush")
    if not running.store.functions.known(job.function):
        if request.upload is None:
            _release_tally(running, request, output)
        else:
            _release_upload(running, request, output)
        running.publish(job.function, request.name, output)
    if request.upload is None:
        return {"function": job.function}
    running.use_up(request.upload)
    return {"function": job.function, "warnings": running.notes}


def _release_tally(running: RunningJob, request: ConfirmedReleaseRequest, output: Path) -> None:
    assert request.tally is not None
    stored = running.store.datasets.tally(request.tally, dataset=running.job.dataset)
    assert stored is not None
    # The owner saw warnings of parameters when the tally was counted.
    with collect_parameter_warnings([]):
        release_tally(
            str(running.settings.path("tallies", f"{request.tally}.tally")),
            Destination(str(output), running.ledger, lambda claim, account: running.pay()),
            request.states(ReleaseRequest),
            public=running.public(request),
            assumptions=release_assumptions(request, stored),
            encryption_key=running.settings.tally_key(),
        )


def _release_upload(running: RunningJob, request: ConfirmedReleaseRequest, output: Path) -> None:
    """Plan, count, confirm, debit, draw and publish."""
    assert request.upload is not None
    records = running.records(request, request.upload)
    if request.set_column is None and dimension(first_batch(records)[0]) != len(request.columns or ()):
        # The claim was made for as many numbers as there are names.
        raise UsageError("columns", "must each have one number per record", got="lists of numbers")
    with collect_parameter_warnings(running.notes), clipping_allowed(request.allow_clipping):
        release_records(
            records,
            Destination(str(output), running.ledger, lambda claim, _: running.pay_confirmed(request, claim)),
            request.states(ReleaseRequest),
            kernel=request.kernel_spec(),
            method=request.states(MethodSpec),
            public=running.public(request),
            progress=running.report_progress,
        )


def start_stream(running: RunningJob) -> dict[str, Any]:
    """Pay the claim of all steps and write the first state."""
    job, settings, ledger = running.job, running.settings, running.ledger
    prepared = ConfirmedStreamRequest.model_validate(job.request).prepare()
    size = prepared.plan.state_bytes
    if not job.paying:
        running.store.datasets.check_room(job.account, settings.quota, bytes=size)
    running.pay()
    booked = replace(prepared.request.release, budget=ledger.budget(), idempotency_key=ledger.idempotency_key)
    prepared = replace(prepared, request=replace(prepared.request, release=booked))
    path, key = _stream_path(settings, job.stream), settings.tally_key()
    try:
        stream = prepared.start(path, encryption_key=key, notes={"jobs": {}})
    except AlreadyPublished:
        # A worker that died after the payment had written the state before.
        stream = open_stream(path, encryption_key=key)
    except StreamInUse:
        # A worker that was paused still has it open: it finishes, or finds that its lease is lost.
        raise JobMustWait from None
    stream.close()
    return {
        "stream": job.stream,
        "shows": prepared.terms.noise.view.in_words(),
        "claim": prepared.claim.in_numbers(),
        STATE_BYTES: size,
    }


def take_step(running: RunningJob) -> dict[str, Any]:
    """Count uploads and release the next step. The state says whether this job has done so."""
    job, settings, jobs = running.job, running.settings, running.store.jobs
    request = StreamStepRequest.model_validate(job.request)
    started = jobs.find("job_" + request.stream.removeprefix("st_"))
    assert started is not None
    assert started.result is not None
    if not jobs.is_first_step(job):
        raise JobMustWait
    terms = ConfirmedStreamRequest.model_validate(started.request)
    path = _stream_path(settings, request.stream)
    try:
        opened = open_stream(path, encryption_key=settings.tally_key())
    except StreamInUse:
        raise JobMustWait from None
    with opened as stream:
        if job.id not in stream.notes["jobs"]:
            _publish_last(running, stream, terms.name)
            # Saved with the step: an upload whose job died before it was marked as used stays counted.
            counted = stream.notes.setdefault("uploads", [])
            if not set(counted).isdisjoint(request.uploads):
                rule = "must be files of records that were not counted"
                raise UsageError("uploads", rule, remedy="upload further records in another file")
            counted.extend(request.uploads)
            for upload in request.uploads:
                records = running.records(terms, upload)
                count_whole_file(stream, terms.pattern(), records, progress=running.report_progress)
            running.report_progress(None)
            stream.notes["jobs"][job.id] = stream.released + 1
            stream.step()
        number = stream.notes["jobs"][job.id]
        _publish_step(running, stream, number, job.function, terms.name, running.actor)
    size = path.stat().st_size
    if size > started.result.get(STATE_BYTES, 0):
        # The counters of persons grow.
        jobs.change_result(started.id, **{STATE_BYTES: size})
    for upload in request.uploads:
        running.use_up(upload)
    return {"stream": request.stream, "step": number, "function": job.function}


def _publish_last(running: RunningJob, stream: Stream, name: str) -> None:
    """Publish the last step if its job failed before it could: the next one replaces its function."""
    last = next(reversed(stream.notes["jobs"].items()), None)
    if last is not None and last[1] == stream.released:
        # A restored database may not know the job.
        job = running.store.jobs.find(last[0])
        actor = Actor("service" if job is None else job.account)
        _publish_step(running, stream, stream.released, "fn_" + last[0].removeprefix("job_"), name, actor)


def _publish_step(
    running: RunningJob, stream: Stream, number: int, function: str, name: str, actor: Actor
) -> None:
    if running.store.functions.known(function):
        return
    latest = stream.latest
    if latest is None or stream.released != number:
        raise UsageError("a later step of this stream has been released", remedy="take another step")
    buffer = io.BytesIO()
    latest.save(buffer)
    output = running.settings.path("functions", f"{function}.hush")
    with atomic_file(output) as file:
        file.write(buffer.getbuffer())
    running.publish(function, f"{name} step {number}", output, by=actor)


def _stream_path(settings: Settings, stream: str) -> Path:
    return settings.path("streams", f"{stream}.stream")


def fit_model(running: RunningJob) -> dict[str, Any]:
    """Fit a model on an upload, and release it or open it.

    Raises
    ------
    HushsumError
        if the records, settings or budget do not suffice; the upload is kept for another attempt.
    """
    job = running.job
    request = ConfirmedModelRequest.model_validate(job.request)
    if not running.store.functions.known(job.function):
        (_open_model if request.mode == "exact" else _release_model)(running, request)
    running.use_up(request.upload)
    return {"function": job.function, "warnings": running.notes}


_JOBS: Final[dict[str, Callable[[RunningJob], dict[str, Any]]]] = {
    "tally": count_upload,
    "release": release,
    "model": fit_model,
    "stream": start_stream,
    "step": take_step,
}


def _release_model(running: RunningJob, request: ConfirmedModelRequest) -> None:
    """Release a model as a public file."""
    from hushsum.operations import models  # imports scikit-learn

    job, most = running.job, running.settings.most_model_numbers
    output = running.settings.path("functions", f"{job.function}.hush")
    with collect_parameter_warnings(running.notes), clipping_allowed(request.allow_clipping):
        public = running.public(request)
        counted = models.count_model(
            choice_of(request, most, public),
            _files(running, request, public),
            Destination(str(output), running.ledger, lambda claim, _: running.pay_confirmed(request, claim)),
            progress=running.report_progress,
            most_numbers=most,
        )
    released = models.release_model(counted)
    facts = describe_model(released.function, target=request.target, size=released.size)
    running.publish(job.function, request.name, output, facts)


def _open_model(running: RunningJob, request: ConfirmedModelRequest) -> None:
    """Open a model in exact mode, which has no public file and no digest."""
    from hushsum.operations import models  # imports scikit-learn

    job, ledger = running.job, running.ledger
    place, key = running.settings.path("served", job.function), running.settings.tally_key()
    try:
        if place.with_suffix(".secret").exists():
            # From an earlier attempt. A new fit might differ in a last bit, and its store would refuse it.
            kept = models.SecretModel.load(place, encryption_key=key)
        else:
            with collect_parameter_warnings(running.notes), clipping_allowed(request.allow_clipping):
                kept = models.secret_model(
                    choice_of(request, running.settings.most_model_numbers, running.public(request)),
                    _files(running, request),
                    most_questions=request.most_questions,
                    progress=running.report_progress,
                )
            kept.save(place, encryption_key=key)
        running.pay_confirmed(request, kept.claim)
        kept.open(place, ledger)
        facts = describe_exact(kept)
    except LeaseLost:
        raise
    except Exception:
        # Another worker may be using the same files.
        running.check_lease()
        with suppress(HushsumError):
            # The files of a model whose debit does not exist.
            if ledger.budget().find(job.ledger_key) is None:
                delete_exact_model_files(running.settings, job.function)
        raise
    made = StoredFunction(job.function, job.dataset, request.name, "", facts, now())
    running.store.functions.add(made, running.actor)


def _files(
    running: RunningJob, request: ConfirmedModelRequest, public: PublicFile | None = None
) -> TrainingFiles:
    """The columns of the upload that the model is fitted on."""
    return replace(
        request.declared(),
        paths=(str(running.source(request.upload)),),
        name=UPLOAD_NAME,
        cells=request.states(CellFormat),
        public=public,
    )
