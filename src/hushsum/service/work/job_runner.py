"""Runs jobs: counts uploads, releases tallies, fits models. Every step may be repeated after a crash."""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hushsum.bases.registry import reading_as_json, reading_from_json
from hushsum.errors import FileRefused, HushsumError, LedgerUnavailable, UsageError
from hushsum.jobs.deliver_release import LedgerOptions
from hushsum.jobs.describe_file import describe_file
from hushsum.jobs.kernel_and_method import TableSize
from hushsum.jobs.plan_release import refuse_private_file
from hushsum.jobs.progress import Progress
from hushsum.jobs.record_files import RecordFiles
from hushsum.jobs.release_records import declared_or_public
from hushsum.jobs.release_tally import release_tally
from hushsum.jobs.tally_records import tally_records
from hushsum.kernels.bandwidth_scale import bandwidth_warnings
from hushsum.ledger import Ledger
from hushsum.records.bounds import DeclaredBounds
from hushsum.records.data_derived_parameters import clipping_allowed
from hushsum.service.logs import described, log_event
from hushsum.service.problem_types import problem, problem_of_error
from hushsum.service.schemas import ConfirmedReleaseRequest, TallyRequest
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
from hushsum.service.work.file_cleanup import delete_orphaned_files
from hushsum.service.work.release_requests import DERIVED, public_file, release_assumptions, release_request
from hushsum.service.work.running_job import (
    UPLOAD_NAME,
    JobMustWait,
    JobStopped,
    LeaseLost,
    RunningJob,
    collect_parameter_warnings,
    renewed_lease,
)
from hushsum.tally.file import load_tally, public_header

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
            from hushsum.service.work.model_fitter import ModelFitter  # imports scikit-learn

            fitter = ModelFitter(self._settings, self._datasets, self._functions)
            return fitter.fit(running, self._ledger_options(running))
        if job.kind in ("stream", "step"):
            from hushsum.service.work.stream_jobs import StreamSteps

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
                rule=f"a tally must have at most {most} cells",
                got="more",
                remedy="use fewer rows or features",
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
        columns = None if request.columns is None else tuple(request.columns)
        kernel = request.choice()
        bounds: DeclaredBounds | None = request.declared_bounds()
        public = public_file(
            self._datasets,
            self._settings,
            dataset,
            request.public,
            cells=request.cells(),
            columns=columns,
            private=request.upload,
        )
        if public is not None:
            refuse_private_file(public, [str(source)])
            kernel, bounds = declared_or_public(kernel, bounds, public)
        with collect_parameter_warnings(notes), clipping_allowed(request.allow_clipping):
            written = tally_records(
                RecordFiles(
                    (str(source),),
                    columns,
                    request.unit_column,
                    request.set_column,
                    UPLOAD_NAME,
                    cells=request.cells(),
                ),
                str(output),
                kernel=kernel,
                size=TableSize(
                    request.method,
                    request.rows,
                    request.width,
                    request.seed,
                    bounds,
                    request.spacing,
                    request.features,
                    request.degree,
                    None if request.steps is None else tuple(request.steps),
                    request.groups,
                    request.structured,
                ),
                max_per_unit=request.max_per_unit,
                encryption_key=self._settings.tally_key(),
                progress=report_progress,
            )
        # Public, and in time: nothing is spent before the release.
        notes += bandwidth_warnings(written.kernel, written.bounds)
        return {**_facts(output), **({} if public is None else {DERIVED: True})}

    def _store_uploaded_tally(self, source: Path, output: Path) -> dict[str, Any]:
        """Store an uploaded tally, which is read once to check that it is intact."""
        if public_header(source)["encryption"] is not None:
            raise FileRefused(rule="a tally must be uploaded unencrypted", remedy="save it without a key")
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
        id = "fn_" + job.id.removeprefix("job_")
        output = self._settings.path("functions", f"{id}.hush")
        stored = self._datasets.tally(request.tally, dataset=job.dataset)
        assert stored is not None
        # The owner saw warnings of parameters when the tally was counted.
        with collect_parameter_warnings([]):
            released = release_tally(
                str(self._settings.path("tallies", f"{request.tally}.tally")),
                str(output),
                release_request(request),
                public=public_file(
                    self._datasets, self._settings, job.dataset, request.public, cells=request.cells()
                ),
                assumptions=release_assumptions(request, stored),
                encryption_key=self._settings.tally_key(),
                approve=lambda claim, account: running.pay(),
                ledger=self._ledger_options(running),
            )
        assert released is not None
        facts = describe_file(str(output)).as_json()
        del facts["source"]
        digest = hashlib.sha256(output.read_bytes()).hexdigest()
        self._functions.add(
            id, job.dataset, request.name, sha256=digest, facts=facts, actor=Actor(job.account)
        )
        return {"function": id}

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
