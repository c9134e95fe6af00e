"""Streams: the claim first, then the start, then one step after the other."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from hushsum.privacy.claim import Claim
from hushsum.service.http.authentication import Caller, nothing_here
from hushsum.service.http.context import Context
from hushsum.service.http.dependencies import (
    ActorDependency,
    ContextDependency,
    IdempotencyKey,
    Releaser,
    RepeatedKey,
    ThreadedRoute,
)
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.schemas import (
    ConfirmedStreamRequest,
    JobResponse,
    StepRequest,
    StreamClaimRequest,
    StreamClaimResponse,
    StreamResponse,
    StreamStepRequest,
)
from hushsum.service.store import Job, Quota
from hushsum.service.store.datasets import WAITING, check_quota
from hushsum.service.store.job_queue import DONE
from hushsum.service.work.release_requests import confirmation

router = APIRouter(prefix="/datasets/{dataset}/streams", tags=["streams"], route_class=ThreadedRoute)


@router.get("")
def list_streams(dataset: str, caller: Releaser, context: ContextDependency) -> list[StreamResponse]:
    """The streams of a dataset, with the functions of their steps."""
    jobs = context.jobs.of(context.dataset(dataset, caller).id)
    return [_response(each, jobs) for each in jobs if _is_stream(each)]


@router.post("/claims")
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
    prepared = await _prepared(context, request, caller, body)
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


@router.post("", status_code=202)
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
    prepared = await _prepared(context, request, caller, body)

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


@router.post("/{stream}/steps", status_code=202)
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


async def _prepared(
    context: Context, request: Request, caller: Caller, body: StreamClaimRequest
) -> dict[str, Any]:
    """The claim of a stream, and the bytes of its state."""
    prepared = await context.calculate(
        request,
        caller,
        "stream_claim",
        size=body.steps,
        request=body.model_dump(mode="json", include=set(StreamClaimRequest.model_fields)),
    )
    if prepared["cells"] > context.settings.max_cells:
        raise Refusal(
            422,
            "parameter-refused",
            f"a table must have at most {context.settings.max_cells} cells; use fewer",
        )
    # Before anything is paid: a state that no worker can hold would be lost with what was spent on it.
    if prepared["state_bytes"] > context.settings.largest_state:
        raise Refusal(
            422,
            "parameter-refused",
            f"the state of a stream must have at most {context.settings.largest_state} bytes, got "
            f"{prepared['state_bytes']}; use fewer cells, fewer steps or a shorter window",
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
        steps=job.request["steps"],
        released=len(done),
        shows=job.result["shows"],
        claim=job.result["claim"],
        functions=[function for _, function in done],
    )
