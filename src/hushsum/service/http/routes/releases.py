"""From a tally to a public function: the claim first, then the release, then its progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hushsum.errors import HushsumError
from hushsum.kernels import is_signed, kernel_names, parameter_names
from hushsum.operations import PublicFile
from hushsum.privacy import Claim
from hushsum.service.http.authentication import Caller, nothing_here
from hushsum.service.http.context import (
    ActorDependency,
    Context,
    ContextDependency,
    IdempotencyKey,
    Releaser,
    RepeatedKey,
    ThreadedRoute,
    UploaderOrReleaser,
)
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import ConcurrencyLimit
from hushsum.service.jobs.requests import confirmation, public_file, release_assumptions
from hushsum.service.schemas import (
    ConfirmedModelRequest,
    ConfirmedReleaseRequest,
    ConfirmedStreamRequest,
    JobResponse,
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
from hushsum.service.store import Job, Quota, StoredTally
from hushsum.service.store.datasets import WAITING, check_quota
from hushsum.service.store.job_queue import CANCELLED, DONE, ENDED

router = APIRouter(tags=["releases"], route_class=ThreadedRoute)

_LOOK_EVERY = 0.25
_LONGEST_STREAM = 600.0
_LOOKS_PER_SECOND = 80.0


@router.post("/datasets/{dataset}/claims")
async def show_claim(
    dataset: str,
    body: ReleaseClaimRequest,
    request: Request,
    caller: Releaser,
    context: ContextDependency,
    key: RepeatedKey = None,
) -> ReleaseClaimResponse:
    """What a release would claim and cost and, for an upload, what is planned. Nothing is drawn or spent."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    prepared = await _prepared(context, request, caller, found.id, body, key)
    claim = Claim.from_json(prepared["claim"])
    charge, after = await context.in_thread(caller, context.price, "release", found, claim, key)
    return ReleaseClaimResponse(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=confirmation(found.id, body, claim, of=ReleaseClaimRequest),
        option=prepared.get("option"),
        advice=prepared.get("advice"),
    )


@router.post("/datasets/{dataset}/releases", status_code=202)
async def release(
    dataset: str,
    body: ConfirmedReleaseRequest,
    request: Request,
    caller: Releaser,
    context: ContextDependency,
    actor: ActorDependency,
    key: IdempotencyKey,
) -> JobResponse:
    """Count an upload, if it is one, debit the ledger, draw noise once, and publish the function.

    The same key never spends twice.
    """
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    claim = Claim.from_json((await _prepared(context, request, caller, found.id, body, key))["claim"])
    return await context.in_thread(
        caller, context.submit_confirmed, "release", found, key, body, actor, claim, of=ReleaseClaimRequest
    )


@router.get("/datasets/{dataset}/jobs")
def list_jobs(dataset: str, caller: UploaderOrReleaser, context: ContextDependency) -> list[JobResponse]:
    """All long work on a dataset, oldest first."""
    return [JobResponse.model_validate(each) for each in context.jobs.of(context.dataset(dataset, caller).id)]


@router.get("/jobs/{job}")
def show_job(job: str, caller: UploaderOrReleaser, context: ContextDependency) -> JobResponse:
    """How far long work has come, and what became of it."""
    return JobResponse.model_validate(_job(context, job, caller))


@router.delete("/jobs/{job}")
def cancel_job(
    job: str,
    caller: UploaderOrReleaser,
    context: ContextDependency,
    actor: ActorDependency,
) -> JobResponse:
    """Cancel long work before it has spent anything: at once if it waits, else at its next step.

    What is paid for is finished; then, and for work that has ended, the answer is 409.
    """
    found = _job(context, job, caller)
    stopped = context.jobs.cancel(found.id, actor)
    assert stopped is not None
    if stopped.state in ENDED and stopped.state != CANCELLED:
        raise Refusal(409, "ended", "the job has finished; there is nothing to cancel")
    if stopped.paying:
        raise Refusal(409, "paid", "the job is being paid for, and will be finished; wait for it")
    return JobResponse.model_validate(stopped)


@router.get(
    "/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def follow_job(
    job: str, request: Request, caller: UploaderOrReleaser, context: ContextDependency
) -> StreamingResponse:
    """The same as server-sent events named ``job``, until it has ended."""
    await context.in_thread(caller, _job, context, job, caller)
    return EventStream(_events(request, context, job, caller), context.streams, caller.account)


class EventStream(StreamingResponse):
    """Server-sent events, counted for an account while the stream is open.

    Raises
    ------
    Refusal
        429, if the account has too many open streams.
    """

    def __init__(self, events: AsyncIterator[bytes], streams: ConcurrencyLimit, account: str) -> None:
        super().__init__(events, media_type="text/event-stream")
        streams.enter(account)
        self._leave = partial(streams.leave, account)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


async def _events(request: Request, context: Context, id: str, caller: Caller) -> AsyncIterator[bytes]:
    end = time.monotonic() + _LONGEST_STREAM
    sent = ""
    token = request.headers["authorization"].partition(" ")[2]
    try:
        while time.monotonic() < end and not context.stops and not await request.is_disconnected():
            job = await context.in_thread(caller, _job, context, id, caller)
            text = JobResponse.model_validate(job).model_dump_json()
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


def _job(context: Context, id: str, caller: Caller) -> Job:
    found = context.jobs.find(id)
    if found is None or context.datasets.find(found.dataset, owner=caller.account) is None:
        raise nothing_here()
    return found


async def _prepared(
    context: Context,
    request: Request,
    caller: Caller,
    dataset: str,
    body: ReleaseClaimRequest,
    key: str | None,
) -> dict[str, Any]:
    """The claim, from what is declared or from the tally's public definition: no record is read here."""
    body.check_source()

    def source() -> tuple[StoredTally | None, str | None]:
        stored = None if body.tally is None else context.tally(dataset, body.tally)
        if body.upload is not None:
            known = key is not None and context.jobs.of_key(dataset, "release", key) is not None
            context.upload(dataset, body.upload, used=known)
            rows = body.release_request().rows
            context.check_cells((rows if isinstance(rows, int) else 1) * (body.method_spec().width or 1))
        public = public_file(
            context.datasets, context.settings, dataset, body.public, cells=body.cells(), private=body.upload
        )
        return stored, None if public is None else public.path

    stored, public = await context.in_thread(caller, source)
    found = await context.calculate(
        request,
        caller,
        "release_claim",
        size=len(body.columns or ()) if stored is None else stored.cells,
        request=body.model_dump(mode="json", include=set(ReleaseClaimRequest.model_fields)),
        tally=None if stored is None else stored.facts,
        public=public,
        assumptions=() if stored is None else release_assumptions(body, stored),
    )
    context.check_cells(found.get("cells", 1))
    return found


streams_router = APIRouter(prefix="/datasets/{dataset}/streams", tags=["streams"], route_class=ThreadedRoute)


@streams_router.get("")
def list_streams(dataset: str, caller: Releaser, context: ContextDependency) -> list[StreamResponse]:
    """The streams of a dataset, with the functions of their steps."""
    jobs = context.jobs.of(context.dataset(dataset, caller).id)
    return [_response(each, jobs) for each in jobs if _is_stream(each)]


@streams_router.post("/claims")
async def show_stream_claim(
    dataset: str,
    body: StreamClaimRequest,
    request: Request,
    caller: Releaser,
    context: ContextDependency,
    key: RepeatedKey = None,
) -> StreamClaimResponse:
    """What a stream would claim and cost, once for all of its steps. Nothing is drawn or spent."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    prepared = await _prepared_stream(context, request, caller, body)
    claim = Claim.from_json(prepared["claim"])
    charge, after = await context.in_thread(caller, context.price, "stream", found, claim, key)
    return StreamClaimResponse(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=confirmation(found.id, body, claim, of=StreamClaimRequest),
        ratio=prepared["ratio"],
        state_bytes=prepared["state_bytes"],
    )


@streams_router.post("", status_code=202)
async def start_stream(
    dataset: str,
    body: ConfirmedStreamRequest,
    request: Request,
    caller: Releaser,
    context: ContextDependency,
    actor: ActorDependency,
    key: IdempotencyKey,
) -> JobResponse:
    """Debit the ledger for all steps, once, and start the stream."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    prepared = await _prepared_stream(context, request, caller, body)

    def check() -> None:
        kept = context.datasets.kept_by(caller.account)
        check_quota(context.settings.quota, Quota(kept.bytes + prepared["state_bytes"], 0))

    return await context.in_thread(
        caller,
        context.submit_confirmed,
        "stream",
        found,
        key,
        body,
        actor,
        Claim.from_json(prepared["claim"]),
        of=StreamClaimRequest,
        check=check,
    )


@streams_router.post("/{stream}/steps", status_code=202)
def take_step(
    dataset: str,
    stream: str,
    body: StepRequest,
    caller: Releaser,
    context: ContextDependency,
    actor: ActorDependency,
    key: IdempotencyKey,
) -> JobResponse:
    """Count uploads and release the next step. Call it at fixed times, also without uploads."""
    found = context.dataset(dataset, caller)
    started = next((each for each in context.jobs.of(found.id) if stream_id(each) == stream), None)
    if started is None or not _is_stream(started):
        raise nothing_here()
    if context.jobs.of_key(found.id, "step", key) is None:
        for id in body.uploads:
            upload = context.datasets.upload(id, dataset=found.id)
            if upload is None or upload.state != WAITING or upload.format == "tally":
                raise Refusal(
                    422,
                    "parameter-refused",
                    "uploads must be files of records that were not counted; upload the file again",
                )
    step = StreamStepRequest(uploads=body.uploads, stream=stream)
    return JobResponse.model_validate(context.submit("step", found, key, step, actor))


def stream_id(job: Job) -> str | None:
    """The stream that a job has started, or starts."""
    return "st_" + job.id.removeprefix("job_") if job.kind == "stream" else None


def _is_stream(job: Job) -> bool:
    return job.kind == "stream" and job.state == DONE


async def _prepared_stream(
    context: Context, request: Request, caller: Caller, body: StreamClaimRequest
) -> dict[str, Any]:
    """The claim of a stream, and the bytes of its state."""
    prepared = await context.calculate(
        request,
        caller,
        "stream_claim",
        size=body.stream_request().horizon,
        request=body.model_dump(mode="json", include=set(StreamClaimRequest.model_fields)),
    )
    context.check_cells(prepared["cells"])
    # Before anything is paid: a state that no worker can hold would be lost with what was spent on it.
    if prepared["state_bytes"] > context.settings.largest_state:
        raise Refusal(
            422,
            "parameter-refused",
            f"the state of a stream must have at most {context.settings.largest_state} bytes, got "
            f"{prepared['state_bytes']}; use fewer cells, a shorter horizon or a shorter window",
        )
    return prepared


def _response(job: Job, jobs: list[Job]) -> StreamResponse:
    assert job.result is not None
    id = stream_id(job)
    taken = [each.result for each in jobs if each.kind == "step" and each.state == DONE]
    done = sorted(
        (each["step"], each["function"]) for each in taken if each is not None and each["stream"] == id
    )
    return StreamResponse(
        id=id or "",
        name=job.request["name"],
        created=job.created,
        horizon=job.request["horizon"],
        released=len(done),
        shows=job.result["shows"],
        claim=job.result["claim"],
        functions=[function for _, function in done],
    )


models_router = APIRouter(tags=["models"], route_class=ThreadedRoute)


@models_router.get("/kernels")
def list_kernels(caller: Releaser) -> list[KernelResponse]:
    """The kernels that compare columns, and the parameters of each."""
    from hushsum.models import SCALE
    from hushsum.operations import setting_as_json

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
async def list_models(
    request: Request, caller: Releaser, context: ContextDependency
) -> list[ModelKindResponse]:
    """The models that can be fitted, and the settings of each."""
    # There, scikit-learn is imported already.
    found = await context.calculate(request, caller, "list_models")
    return [ModelKindResponse.model_validate(each) for each in found["models"]]


@models_router.post("/datasets/{dataset}/models/claims")
async def show_model_claim(
    dataset: str,
    body: ModelClaimRequest,
    request: Request,
    caller: Releaser,
    context: ContextDependency,
    key: RepeatedKey = None,
) -> ModelClaimResponse:
    """What a model would claim and cost, and its predicted error. Nothing is read or spent."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    await context.in_thread(caller, _check_upload, context, found.id, body)
    calculated = await _calculated(context, request, caller, found.id, body, with_error=True)
    claim = Claim.from_json(calculated["claim"])
    charge, after = await context.in_thread(caller, context.price, "model", found, claim, key)
    return ModelClaimResponse(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=confirmation(found.id, body, claim, of=ModelClaimRequest),
        predicted=calculated["predicted"],
        advice=calculated["advice"],
    )


@models_router.post("/datasets/{dataset}/models", status_code=202)
async def fit_model(
    dataset: str,
    body: ConfirmedModelRequest,
    request: Request,
    caller: Releaser,
    context: ContextDependency,
    actor: ActorDependency,
    key: IdempotencyKey,
) -> JobResponse:
    """Fit a model on an upload, debit the ledger, and publish it; the upload is deleted then."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    calculated = await _calculated(context, request, caller, found.id, body, with_error=False)
    return await context.in_thread(
        caller,
        context.submit_confirmed,
        "model",
        found,
        key,
        body,
        actor,
        Claim.from_json(calculated["claim"]),
        of=ModelClaimRequest,
        check=lambda: _check_upload(context, found.id, body, waiting=True),
    )


async def _calculated(
    context: Context,
    request: Request,
    caller: Caller,
    dataset: str,
    body: ModelClaimRequest,
    *,
    with_error: bool,
) -> dict[str, Any]:
    """The claim of a model and, if requested, its predicted error and the advice."""
    public = await context.in_thread(caller, _public, context, dataset, body)
    return await context.calculate(
        request,
        caller,
        "model_claim",
        size=len(body.columns) ** 2 * len(body.classes or [""]),
        request=body.model_dump(mode="json", include=set(ModelClaimRequest.model_fields)),
        public=None if public is None else public.path,
        most_numbers=context.settings.most_model_numbers,
        with_error=with_error,
    )


def _public(context: Context, dataset: str, body: ModelClaimRequest) -> PublicFile | None:
    return public_file(
        context.datasets,
        context.settings,
        dataset,
        body.public,
        cells=body.cells(),
        columns=body.columns,
        private=body.upload,
    )


def _check_upload(context: Context, dataset: str, body: ModelClaimRequest, *, waiting: bool = False) -> None:
    """A claim may be shown again after its upload was used, since a client repeats both requests."""
    upload = context.datasets.upload(body.upload, dataset=dataset)
    if upload is None or upload.format == "tally" or (waiting and upload.state != WAITING):
        raise Refusal(
            422, "parameter-refused", "upload must be one of records that was not used; upload the file again"
        )
