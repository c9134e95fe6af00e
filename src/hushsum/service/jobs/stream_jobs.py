"""Jobs of streams: the start, which is paid for, and the steps. Every one may be repeated after a crash."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from hushsum.errors import AlreadyPublished, StreamInUse, UsageError
from hushsum.files import atomic_file
from hushsum.operations import LedgerOptions, describe_file, open_file
from hushsum.service.jobs.job_runner import JobMustWait, RunningJob
from hushsum.service.schemas import UPLOAD_NAME, ConfirmedStreamRequest, StreamStepRequest
from hushsum.service.settings import Settings
from hushsum.service.store import Actor, Datasets, Functions, JobQueue, Quota
from hushsum.service.store.datasets import STATE_BYTES, USED, check_quota
from hushsum.streams import Stream, open_stream
from hushsum.tally import TallyPattern


class StreamSteps:
    """Starts and continues the streams of one service; their states are in the folder ``streams``."""

    def __init__(self, settings: Settings, datasets: Datasets, functions: Functions, jobs: JobQueue) -> None:
        self._settings = settings
        self._datasets = datasets
        self._functions = functions
        self._jobs = jobs

    def start(self, running: RunningJob, ledger: LedgerOptions) -> dict[str, Any]:
        """Pay the claim of all steps and write the first state."""
        job = running.job
        request = ConfirmedStreamRequest.model_validate(job.request)
        prepared = request.prepare()
        size = prepared.plan.state_bytes
        if not job.paying:
            kept = self._datasets.kept_by(job.account)
            check_quota(self._settings.quota, Quota(kept.bytes + size, 0))
        running.pay()
        booked = replace(
            prepared.request.release, budget=ledger.budget(), idempotency_key=ledger.idempotency_key
        )
        prepared = replace(prepared, request=replace(prepared.request, release=booked))
        path = self._path("st_" + job.id.removeprefix("job_"))
        try:
            stream = prepared.start(path, encryption_key=self._settings.tally_key(), notes={"jobs": {}})
        except AlreadyPublished:
            # A worker that died after the payment had written the state before.
            stream = open_stream(path, encryption_key=self._settings.tally_key())
        except StreamInUse:
            # A worker that was paused still has it open: it finishes, or finds that its lease is lost.
            raise JobMustWait from None
        stream.close()
        shows = prepared.terms.noise.view.in_words()
        return {
            "stream": path.stem,
            "shows": shows,
            "claim": prepared.claim.in_numbers(),
            STATE_BYTES: size,
        }

    def step(self, running: RunningJob) -> dict[str, Any]:
        """Count uploads and release the next step. The state says whether this job has done so."""
        job = running.job
        request = StreamStepRequest.model_validate(job.request)
        id = request.stream
        started = self._jobs.find("job_" + id.removeprefix("st_"))
        assert started is not None
        assert started.result is not None
        if not self._jobs.is_first_step(job):
            raise JobMustWait
        terms = ConfirmedStreamRequest.model_validate(started.request)
        try:
            opened = open_stream(self._path(id), encryption_key=self._settings.tally_key())
        except StreamInUse:
            raise JobMustWait from None
        with opened as stream:
            if job.id not in stream.notes["jobs"]:
                self._publish_last(stream, job.dataset, terms.name)
                # Saved with the step: an upload whose job died before it was marked as used stays counted.
                counted = stream.notes.setdefault("uploads", [])
                if not set(counted).isdisjoint(request.uploads):
                    raise UsageError(
                        "uploads",
                        "must be files of records that were not counted",
                        remedy="upload further records in another file",
                    )
                counted.extend(request.uploads)
                for upload in request.uploads:
                    self._count(stream, terms, self._source(upload, job.dataset), running)
                running.report_progress(None)
                stream.notes["jobs"][job.id] = stream.released + 1
                stream.step()
            number = stream.notes["jobs"][job.id]
            function = "fn_" + job.id.removeprefix("job_")
            self._publish(stream, number, function, job.dataset, terms.name, Actor(job.account))
        size = self._path(id).stat().st_size
        if size > started.result.get(STATE_BYTES, 0):
            # The counters of persons grow.
            self._jobs.change_result(started.id, **{STATE_BYTES: size})
        for upload in request.uploads:
            self._datasets.end_upload(upload, USED, Actor(job.account))
            self._source(upload, job.dataset).unlink(missing_ok=True)
        return {"stream": id, "step": number, "function": function}

    def _count(
        self, stream: Stream, terms: ConfirmedStreamRequest, source: Path, running: RunningJob
    ) -> None:
        """A whole upload, or nothing of it: it is counted apart first, which checks every record.

        One without records is counted like any other: its only record must not decide whether a step is
        taken.
        """
        records = terms.files(str(source), UPLOAD_NAME)
        apart = TallyPattern.of(terms.pattern()).empty()
        capped = apart.max_per_unit is not None
        for counting in (False, True) if capped else (False,):
            with open_file(records, str(source), records.columns, may_be_empty=True) as opened:
                for batch, units in opened:
                    running.report_progress(opened.progress)
                    (stream if counting else apart).add(batch, units=units)
        if not capped:
            stream.merge(apart)

    def _publish_last(self, stream: Stream, dataset: str, name: str) -> None:
        """Publish the last step if its job failed before it could: the next one replaces its function."""
        last = next(reversed(stream.notes["jobs"].items()), None)
        if last is not None and last[1] == stream.released:
            # A restored database may not know the job.
            job = self._jobs.find(last[0])
            actor = Actor("service" if job is None else job.account)
            function = "fn_" + last[0].removeprefix("job_")
            self._publish(stream, stream.released, function, dataset, name, actor)

    def _publish(
        self, stream: Stream, number: int, function: str, dataset: str, name: str, actor: Actor
    ) -> None:
        if self._functions.known(function):
            return
        latest = stream.latest
        if latest is None or stream.released != number:
            raise UsageError("a later step of this stream has been released", remedy="take another step")
        buffer = io.BytesIO()
        latest.save(buffer)
        output = self._settings.path("functions", f"{function}.hush")
        with atomic_file(output) as file:
            file.write(buffer.getbuffer())
        facts = describe_file(str(output)).as_json()
        del facts["source"]
        digest = hashlib.sha256(buffer.getbuffer()).hexdigest()
        title = f"{name} step {number}"
        self._functions.add(function, dataset, title, sha256=digest, facts=facts, actor=actor)

    def _path(self, id: str) -> Path:
        return self._settings.path("streams", f"{id}.stream")

    def _source(self, id: str, dataset: str) -> Path:
        upload = self._datasets.upload(id, dataset=dataset)
        assert upload is not None
        return self._settings.path("uploads", f"{upload.id}.{upload.format}")
