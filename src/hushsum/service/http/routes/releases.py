"""Releases of tallies, streams and models: their claims, the requests, and the progress of their jobs.

The kernels and the kinds of models that can be requested are listed here too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter
from starlette.types import Receive, Scope, Send

from hushsum.errors import HushsumError, UsageError
from hushsum.kernels import is_signed, kernel_names, parameter_names
from hushsum.planning import MethodSpec
from hushsum.privacy import MOST_STEPS, ReleaseRequest

from ...jobs.requests import release_assumptions
from ...schemas import (
    ConfirmedModelRequest,
    ConfirmedReleaseRequest,
    ConfirmedStreamRequest,
    KernelResponse,
    ModelClaimRequest,
    ModelClaimResponse,
    ModelKindResponse,
    ModelSettingResponse,
    ReleaseClaimRequest,
    ReleaseClaimResponse,
    StepRequest,
    StreamClaimRequest,
    StreamClaimResponse,
    StreamResponse,
    StreamStepRequest,
)
from ...store import Job, JobState, StoredTally
from ...store.job_queue import CANCELLED, DONE, ENDED
from ..authentication import existing
from ..context import Call, IdempotencyKey, Releaser, RepeatedKey, ThreadedRoute, UploaderOrReleaser
from ..problem_responses import Refusal
from ..request_limits import ConcurrencyLimit

router = APIRouter(tags=["releases"], route_class=ThreadedRoute)

_STATE = TypeAdapter(JobState)
_LOOK_EVERY = 0.25
_LONGEST_STREAM = 600.0
_LOOKS_PER_SECOND = 80.0


@router.post("/datasets/{dataset}/claims")
async def show_claim(
    dataset: str, body: ReleaseClaimRequest, call: Releaser, key: RepeatedKey = None
) -> ReleaseClaimResponse:
    """The claim and the cost of a release and, for an upload, its plan. Nothing is drawn or spent."""
    found = await call.in_thread(call.dataset, dataset)
    prepared = await _prepared(call, found.id, body, key)
    priced = await call.in_thread(call.priced, "release", found, key, body, prepared["claim"])
    return ReleaseClaimResponse(**prepared | priced)


@router.post("/datasets/{dataset}/releases", status_code=202)
async def release(
    dataset: str, body: ConfirmedReleaseRequest, call: Releaser, key: IdempotencyKey
) -> JobState:
    """Count an upload, if it is one, debit the ledger, draw noise once, and publish the function.

    The same key never spends twice.
    """
    found = await call.in_thread(call.dataset, dataset)
    prepared = await _prepared(call, found.id, body, key)
    return await call.in_thread(call.submit_confirmed, "release", found, key, body, prepared["claim"])


@router.get("/datasets/{dataset}/jobs")
def list_jobs(dataset: str, call: UploaderOrReleaser) -> Sequence[JobState]:
    """All long work on a dataset, oldest first."""
    return call.store.jobs.of(call.dataset(dataset).id)


@router.get("/jobs/{job}")
def show_job(job: str, call: UploaderOrReleaser) -> JobState:
    """How far long work has come, and what became of it."""
    return _job(call, job)


@router.delete("/jobs/{job}")
def cancel_job(job: str, call: UploaderOrReleaser) -> JobState:
    """Cancel long work before it has spent anything: at once if it waits, else at its next step.

    What is paid for is finished; then, and for work that has ended, the answer is 409.
    """
    stopped = call.store.jobs.cancel(_job(call, job).id, call.actor)
    assert stopped is not None
    if stopped.state in ENDED and stopped.state != CANCELLED:
        raise Refusal(409, "ended", "the job has finished; there is nothing to cancel")
    if stopped.paying:
        raise Refusal(409, "paid", "the job is being paid for, and will be finished; wait for it")
    return stopped


@router.get(
    "/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def follow_job(job: str, call: UploaderOrReleaser) -> StreamingResponse:
    """The same as server-sent events named ``job``, until it has ended."""
    await call.in_thread(_job, call, job)
    return EventStream(_events(call, job), call.context.streams, call.account)


class EventStream(StreamingResponse):
    """Server-sent events, counted for an account while the stream is open.

    Raises
    ------
    Refusal
        429, if the account has too many open streams.
    """

    def __init__(self, events: AsyncIterator[bytes], streams: ConcurrencyLimit, account: str) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._open = ExitStack()
        self._open.enter_context(streams.entered(account))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        with self._open:
            await super().__call__(scope, receive, send)


async def _events(call: Call, id: str) -> AsyncIterator[bytes]:
    context, request = call.context, call.request
    end = time.monotonic() + _LONGEST_STREAM
    sent = ""
    token = request.headers["authorization"].partition(" ")[2]
    try:
        while time.monotonic() < end and not context.stops and not await request.is_disconnected():
            job = await call.in_thread(_job, call, id)
            text = _STATE.dump_json(job).decode()
            if text != sent:
                sent = text
                yield f"event: job\ndata: {text}\n\n".encode()
            if job.state in ENDED:
                return
            # A token that was revoked meanwhile, or has expired, sees nothing further.
            if await context.authenticator.find(token, "") is None:
                return
            # However many streams are open, there are about eighty database queries per second.
            await asyncio.sleep(max(_LOOK_EVERY, len(context.streams) / _LOOKS_PER_SECOND))
    except HushsumError:
        # The response has begun and cannot become a problem document; the client reconnects.
        return


def _job(call: Call, id: str) -> Job:
    found = existing(call.store.jobs.find(id))
    call.dataset(found.dataset)
    return found


async def _prepared(call: Call, dataset: str, body: ReleaseClaimRequest, key: str | None) -> dict[str, Any]:
    """The claim, from what is declared or from the tally's public definition: no record is read here."""
    body.check_source()

    def source() -> tuple[StoredTally | None, str | None]:
        stored = None if body.tally is None else call.tally(dataset, body.tally)
        if body.upload is not None:
            known = key is not None and call.store.jobs.of_key(dataset, "release", key) is not None
            call.upload(dataset, body.upload, used=known)
            rows = body.states(ReleaseRequest).rows
            call.settings.check_cells(
                (rows if isinstance(rows, int) else 1) * (body.states(MethodSpec).width or 1)
            )
        return stored, call.public_path(dataset, body)

    stored, public = await call.in_thread(source)
    found = await call.calculate(
        "release_claim",
        size=len(body.columns or ()) if stored is None else stored.cells,
        request=body.model_dump(mode="json", exclude={"confirm"}),
        tally=None if stored is None else stored.facts,
        public=public,
        assumptions=() if stored is None else release_assumptions(body, stored),
    )
    call.settings.check_cells(found.get("cells", 1))
    return found


streams_router = APIRouter(prefix="/datasets/{dataset}/streams", tags=["streams"], route_class=ThreadedRoute)


@streams_router.get("")
def list_streams(dataset: str, call: Releaser) -> list[StreamResponse]:
    """The streams of a dataset, with the functions of their steps."""
    jobs = call.store.jobs.of(call.dataset(dataset).id)
    done = [each.result for each in jobs if each.kind == "step" and each.state == DONE]
    steps = sorted((each["stream"], each["step"], each["function"]) for each in done if each is not None)
    found = []
    for each in filter(_is_stream, jobs):
        functions = [function for stream, _, function in steps if stream == each.stream]
        made = {
            "id": each.stream,
            "created": each.created,
            "released": len(functions),
            "functions": functions,
        }
        found.append(StreamResponse(**{**each.request, **(each.result or {}), **made}))
    return found


@streams_router.post("/claims")
async def show_stream_claim(
    dataset: str, body: StreamClaimRequest, call: Releaser, key: RepeatedKey = None
) -> StreamClaimResponse:
    """The claim and the cost of a stream, once for all of its steps. Nothing is drawn or spent."""
    found = await call.in_thread(call.dataset, dataset)
    prepared = await _prepared_stream(call, body)
    priced = await call.in_thread(call.priced, "stream", found, key, body, prepared["claim"])
    return StreamClaimResponse(**prepared | priced)


@streams_router.post("", status_code=202)
async def start_stream(
    dataset: str, body: ConfirmedStreamRequest, call: Releaser, key: IdempotencyKey
) -> JobState:
    """Debit the ledger for all steps, once, and start the stream."""
    found = await call.in_thread(call.dataset, dataset)
    prepared = await _prepared_stream(call, body)
    check = partial(
        call.store.datasets.check_room, call.account, call.settings.quota, bytes=prepared["state_bytes"]
    )
    return await call.in_thread(call.submit_confirmed, "stream", found, key, body, prepared["claim"], check)


@streams_router.post("/{stream}/steps", status_code=202)
def take_step(dataset: str, stream: str, body: StepRequest, call: Releaser, key: IdempotencyKey) -> JobState:
    """Count uploads and release the next step. Call it at fixed times, also without uploads."""
    found = call.dataset(dataset)
    existing(any(_is_stream(each) and each.stream == stream for each in call.store.jobs.of(found.id)))
    if call.store.jobs.of_key(found.id, "step", key) is None:
        for id in body.uploads:
            call.upload(found.id, id, name="uploads")
    return call.submit("step", found, key, StreamStepRequest(uploads=body.uploads, stream=stream))


def _is_stream(job: Job) -> bool:
    return job.kind == "stream" and job.state == DONE


async def _prepared_stream(call: Call, body: StreamClaimRequest) -> dict[str, Any]:
    """The claim of a stream, and the bytes of its state."""
    prepared = await call.calculate(
        "stream_claim",
        size=body.stream_request().horizon or MOST_STEPS,
        request=body.model_dump(mode="json", exclude={"confirm"}),
    )
    call.settings.check_cells(prepared["cells"])
    # Before anything is paid: a state that no worker can hold would be lost with what was spent on it.
    if prepared["state_bytes"] > call.settings.largest_state:
        rule = f"the state of a stream must have at most {call.settings.largest_state} bytes"
        remedy = "use fewer cells, a shorter horizon or a shorter window"
        raise UsageError(rule, got=prepared["state_bytes"], remedy=remedy)
    return prepared


models_router = APIRouter(tags=["models"], route_class=ThreadedRoute)


@models_router.get("/kernels")
def list_kernels(call: Releaser) -> list[KernelResponse]:
    """The kernels that compare columns, and the parameters of each."""
    from hushsum.models import SCALE
    from hushsum.operations.models import setting_as_json

    beside = [ModelSettingResponse.model_validate(setting_as_json(SCALE))]
    parameters = {name: list(parameter_names(name)) for name in kernel_names()}
    return [
        KernelResponse(
            name=name,
            parameters=names,
            signed=is_signed(name),
            settings=beside if "bandwidth" in names else [],
        )
        for name, names in parameters.items()
        if "dim" in names
    ]


@models_router.get("/models")
async def list_models(call: Releaser) -> list[ModelKindResponse]:
    """The models that can be fitted, and the settings of each."""
    # There, scikit-learn is imported already.
    found = await call.calculate("list_models")
    return [ModelKindResponse.model_validate(each) for each in found["models"]]


@models_router.post("/datasets/{dataset}/models/claims")
async def show_model_claim(
    dataset: str, body: ModelClaimRequest, call: Releaser, key: RepeatedKey = None
) -> ModelClaimResponse:
    """The claim and the cost of a model, and its predicted error. Nothing is read or spent."""
    found = await call.in_thread(call.dataset, dataset)
    # A claim may be shown again after its upload was used, since a client repeats both requests.
    await call.in_thread(call.upload, found.id, body.upload, used=True)
    calculated = await _calculated(call, found.id, body, with_error=True)
    priced = await call.in_thread(call.priced, "model", found, key, body, calculated["claim"])
    return ModelClaimResponse(**calculated | priced)


@models_router.post("/datasets/{dataset}/models", status_code=202)
async def fit_model(
    dataset: str, body: ConfirmedModelRequest, call: Releaser, key: IdempotencyKey
) -> JobState:
    """Fit a model on an upload, debit the ledger, and publish it; the upload is deleted then."""
    found = await call.in_thread(call.dataset, dataset)
    calculated = await _calculated(call, found.id, body, with_error=False)
    check = partial(call.upload, found.id, body.upload)
    return await call.in_thread(call.submit_confirmed, "model", found, key, body, calculated["claim"], check)


async def _calculated(
    call: Call, dataset: str, body: ModelClaimRequest, *, with_error: bool
) -> dict[str, Any]:
    """The claim of a model and, if requested, its predicted error and the advice."""
    return await call.calculate(
        "model_claim",
        size=len(body.columns) ** 2 * len(body.classes or [""]),
        request=body.model_dump(mode="json", exclude={"confirm"}),
        public=await call.in_thread(call.public_path, dataset, body),
        most_numbers=call.settings.most_model_numbers,
        with_error=with_error,
    )
