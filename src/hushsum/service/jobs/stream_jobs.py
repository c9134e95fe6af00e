"""Jobs of streams: the start, which is paid for, and the steps. Every one may be repeated after a crash."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from hushsum.errors import AlreadyPublished, StreamInUse, UsageError
from hushsum.files import atomic_file
from hushsum.operations import RecordFiles, open_file
from hushsum.service.jobs.job_runner import JobMustWait, RunningJob, publish
from hushsum.service.schemas import UPLOAD_NAME, ConfirmedStreamRequest, StreamStepRequest
from hushsum.service.settings import Settings
from hushsum.service.store import Actor, Quota
from hushsum.service.store.datasets import STATE_BYTES, check_quota
from hushsum.streams import Stream, open_stream
from hushsum.tally import TallyPattern


def start_stream(running: RunningJob) -> dict[str, Any]:
    """Pay the claim of all steps and write the first state."""
    job, settings, ledger = running.job, running.settings, running.ledger
    prepared = ConfirmedStreamRequest.model_validate(job.request).prepare()
    size = prepared.plan.state_bytes
    if not job.paying:
        kept = running.store.datasets.kept_by(job.account)
        check_quota(settings.quota, Quota(kept.bytes + size, 0))
    running.pay()
    booked = replace(prepared.request.release, budget=ledger.budget(), idempotency_key=ledger.idempotency_key)
    prepared = replace(prepared, request=replace(prepared.request, release=booked))
    path, key = _path(settings, job.stream), settings.tally_key()
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
    path = _path(settings, request.stream)
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
                raise UsageError(
                    "uploads",
                    "must be files of records that were not counted",
                    remedy="upload further records in another file",
                )
            counted.extend(request.uploads)
            for upload in request.uploads:
                _count(running, stream, terms, running.source(upload))
            running.report_progress(None)
            stream.notes["jobs"][job.id] = stream.released + 1
            stream.step()
        number = stream.notes["jobs"][job.id]
        _publish(running, stream, number, job.function, terms.name, running.actor)
    size = path.stat().st_size
    if size > started.result.get(STATE_BYTES, 0):
        # The counters of persons grow.
        jobs.change_result(started.id, **{STATE_BYTES: size})
    for upload in request.uploads:
        running.use_up(upload)
    return {"stream": request.stream, "step": number, "function": job.function}


def _count(running: RunningJob, stream: Stream, terms: ConfirmedStreamRequest, source: Path) -> None:
    """A whole upload, or nothing of it: it is counted apart first, which checks every record.

    One without records is counted like any other: its only record must not decide whether a step is
    taken.
    """
    records = replace(terms.states(RecordFiles), paths=(str(source),), name=UPLOAD_NAME)
    apart = TallyPattern.of(terms.pattern()).empty()
    capped = apart.max_per_unit is not None
    for counting in (False, True) if capped else (False,):
        with open_file(records, str(source), records.columns, may_be_empty=True) as opened:
            for batch, units in opened:
                running.report_progress(opened.progress)
                (stream if counting else apart).add(batch, units=units)
    if not capped:
        stream.merge(apart)


def _publish_last(running: RunningJob, stream: Stream, name: str) -> None:
    """Publish the last step if its job failed before it could: the next one replaces its function."""
    last = next(reversed(stream.notes["jobs"].items()), None)
    if last is not None and last[1] == stream.released:
        # A restored database may not know the job.
        job = running.store.jobs.find(last[0])
        actor = Actor("service" if job is None else job.account)
        _publish(running, stream, stream.released, "fn_" + last[0].removeprefix("job_"), name, actor)


def _publish(
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
    publish(running.store, function, running.job.dataset, f"{name} step {number}", actor, output)


def _path(settings: Settings, stream: str) -> Path:
    return settings.path("streams", f"{stream}.stream")
