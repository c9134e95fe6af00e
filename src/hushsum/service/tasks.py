"""What a worker does: count an upload, release a tally. Every step may be repeated after a crash."""

from __future__ import annotations

import hashlib
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hushsum.bases.base import basis_as_json, basis_from_json
from hushsum.errors import FileRefused, HushsumError, LedgerUnavailable
from hushsum.jobs.describe_function import describe_file
from hushsum.jobs.kernel_choice import KernelChoice
from hushsum.jobs.ledger_release import LedgerOptions
from hushsum.jobs.method_choice import TableSize
from hushsum.jobs.release_tally import release_tally
from hushsum.jobs.tally_records import RecordFiles, tally_records
from hushsum.ledger import Ledger
from hushsum.service.leftovers import delete_leftovers
from hushsum.service.logs import described, say
from hushsum.service.model_work import ModelWork
from hushsum.service.problems import problem, problem_of
from hushsum.service.routes.datasets import bounds_of
from hushsum.service.routes.releases import request_of
from hushsum.service.settings import Settings
from hushsum.service.shapes import NewRelease, NewTally
from hushsum.service.store import Accounts, Actor, Datasets, Functions, Job, JobQueue, Store
from hushsum.service.store.datasets import DELETED, USED
from hushsum.service.store.job_queue import FAILED, MOST_ATTEMPTS, QUEUED, RUNNING
from hushsum.service.suspicions import suspicions_noted
from hushsum.tally.file import load_tally, public_header

Tell = Callable[[float | None], None]


class Work:
    """The jobs of one service, done by whoever calls :meth:`next`."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._accounts = Accounts(store.database)
        self._datasets = Datasets(store.database)
        self._functions = Functions(store.database)
        self._jobs = JobQueue(store.database)
        self._models = ModelWork(settings, self._datasets, self._functions)

    def next(self) -> bool:
        """Do the oldest job that waits; False if there is none."""
        job = self._jobs.claim(self._settings.lease_seconds)
        if job is None:
            return False
        say("job started", job=job.id, kind=job.kind, attempt=job.attempts)
        if job.attempts > MOST_ATTEMPTS:
            text = "the worker died on this job again and again; ask again with the same Idempotency-Key"
            self._jobs.fail(job.id, problem(500, "worker-died", text))
            return True
        try:
            with self._kept(job) as tell:
                result = self._do(job, tell)
        except LedgerUnavailable as error:
            # Nothing is wrong with the job. Every step can be repeated, so it is, when the database is back.
            if job.attempts < MOST_ATTEMPTS:
                say("job postponed", job=job.id, kind=job.kind, **described(error))
                self._jobs.postpone(job.id, 2.0**job.attempts)
            else:
                self._jobs.fail(job.id, self._told(job, error))
        except Exception as error:
            say("job failed", job=job.id, kind=job.kind, **described(error))
            self._jobs.fail(job.id, self._told(job, error))
        else:
            self._jobs.finish(job.id, result)
            say("job done", job=job.id, kind=job.kind)
        return True

    def _do(self, job: Job, tell: Tell) -> dict[str, Any]:
        if job.kind == "tally":
            return self._count(job, tell)
        if job.kind == "model":
            return self._models.fit(job, self._ledger(job, _model_key(job)), tell)
        return self._release(job)

    def tidy(self) -> None:
        """Delete uploads that nobody counted in time, and what was left by whoever was killed."""
        moment = datetime.now(UTC) - timedelta(hours=self._settings.upload_hours)
        for each in self._datasets.uploads_before(moment.isoformat(timespec="microseconds")):
            self._datasets.end_upload(each.id, DELETED, Actor("service"))
            self._settings.path("uploads", f"{each.id}.{each.format}").unlink(missing_ok=True)
        delete_leftovers(self._settings, self._datasets, self._is_served)

    def _is_served(self, id: str) -> bool:
        """Whether a model in exact mode is asked questions, or a job may go on where it stopped.

        The job is looked at first: a function that is unknown after its job was done has been ended.
        """
        job = self._jobs.find("job_" + id.removeprefix("fn_"))
        if self._functions.known(id) or (job is not None and job.state in (QUEUED, RUNNING)):
            return True
        ledger = Ledger(self._settings.place)
        # A restored database may not know yet what a newer one does.
        if ledger.behind() is not None:
            return True
        return job is not None and job.state == FAILED and ledger.find(_model_key(job)) is not None

    def _count(self, job: Job, tell: Tell) -> dict[str, Any]:
        asked = NewTally.model_validate(job.request)
        id = "ta_" + job.id.removeprefix("job_")
        actor = Actor(job.account)
        output = self._settings.path("tallies", f"{id}.tally")
        upload = self._datasets.upload(asked.upload, dataset=job.dataset)
        assert upload is not None
        source = self._settings.path("uploads", f"{upload.id}.{upload.format}")
        notes: list[str] = []
        if self._datasets.tally(id, dataset=job.dataset) is None:
            if upload.format == "tally":
                facts = self._take_over(source, output)
            else:
                facts = self._tally(asked, source, output, notes, tell)
            self._datasets.add_tally(id, job.dataset, facts, actor)
        self._datasets.end_upload(upload.id, USED, actor)
        source.unlink(missing_ok=True)
        return {"tally": id, "warnings": notes}

    def _tally(
        self, asked: NewTally, source: Path, output: Path, notes: list[str], tell: Tell
    ) -> dict[str, Any]:
        columns = None if asked.columns is None else tuple(asked.columns)
        with suspicions_noted(notes):
            tally_records(
                RecordFiles((str(source),), columns, asked.unit_column, asked.set_column),
                str(output),
                kernel=KernelChoice(asked.kernel, asked.bandwidth, asked.power, asked.bits, asked.projection),
                size=TableSize(
                    asked.method,
                    asked.rows,
                    asked.width,
                    asked.seed,
                    bounds_of(asked.bounds),
                    asked.spacing,
                    asked.features,
                ),
                max_per_unit=asked.max_per_unit,
                encryption_key=self._settings.tally_key(),
                progress=tell,
            )
        return _facts(output)

    def _take_over(self, source: Path, output: Path) -> dict[str, Any]:
        """An uploaded tally, read once to see that it is whole."""
        if public_header(source)["encryption"] is not None:
            raise FileRefused("a tally must be uploaded without its encryption; save it without a key")
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

    def _release(self, job: Job) -> dict[str, Any]:
        asked = NewRelease.model_validate(job.request)
        id = "fn_" + job.id.removeprefix("job_")
        output = self._settings.path("functions", f"{id}.hush")
        released = release_tally(
            str(self._settings.path("tallies", f"{asked.tally}.tally")),
            str(output),
            request_of(asked),
            encryption_key=self._settings.tally_key(),
            ledger=self._ledger(job, f"{job.dataset}:{job.key}"),
        )
        assert released is not None
        facts = describe_file(str(output)).as_json()
        del facts["source"]
        digest = hashlib.sha256(output.read_bytes()).hexdigest()
        self._functions.add(id, job.dataset, asked.name, sha256=digest, facts=facts, actor=Actor(job.account))
        return {"function": id}

    def _ledger(self, job: Job, key: str) -> LedgerOptions:
        owner = self._accounts.find(id=job.account)
        who = owner.name if owner is not None else job.account
        return LedgerOptions(self._settings.place, job.dataset, idempotency_key=key, who=who)

    def _told(self, job: Job, error: Exception) -> dict[str, Any]:
        """What the owner is told; the service's own paths are not part of it."""
        found = problem_of(error)
        if isinstance(error, HushsumError):
            detail = str(found["detail"])
            for folder in ("uploads", "tallies", "functions", "served"):
                for path in self._settings.path(folder).glob("*"):
                    detail = detail.replace(str(path), "the file")
            found["detail"] = detail.replace(str(Path(self._settings.folder)), "the service's folder")
        return found

    @contextmanager
    def _kept(self, job: Job) -> Iterator[Tell]:
        """Renew the job's lease while it is worked on, and pass its progress on."""
        ended = threading.Event()
        latest: list[float | None] = [None]

        def renew() -> None:
            told: float | None = None
            every = min(1.0, self._settings.lease_seconds / 4)
            while not ended.wait(every):
                try:
                    self._jobs.renew(job.id, self._settings.lease_seconds, latest[0])
                    told = latest[0]
                except HushsumError as error:
                    say("lease not renewed", job=job.id, progress=told, **described(error))

        def tell(fraction: float | None) -> None:
            latest[0] = fraction

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield tell
        finally:
            ended.set()
            thread.join()


def _model_key(job: Job) -> str:
    """The key of a model in the ledger."""
    return f"{job.dataset}:model:{job.key}"


def _facts(path: Path) -> dict[str, Any]:
    """What may be told of a tally, and its definition, from which claims are computed."""
    facts = describe_file(str(path)).as_json()
    facts["definition"] = public_header(path)["basis"]
    del facts["source"]
    # Read back once: a definition that is not understood must not be found out at the release.
    assert basis_as_json(basis_from_json(facts["definition"])) == facts["definition"]
    return facts
