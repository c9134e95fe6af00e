"""From a tally to a public function: the claim first, then the release, then its progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hushsum.errors import HushsumError
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
    UploaderOrReleaser,
)
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import ConcurrencyLimit
from hushsum.service.schemas import (
    ClaimResponse,
    ConfirmedReleaseRequest,
    JobResponse,
    ReleaseClaimRequest,
)
from hushsum.service.store import Job, StoredTally
from hushsum.service.store.job_queue import CANCELLED, ENDED
from hushsum.service.work.release_requests import confirmation, public_file, release_assumptions

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
) -> ClaimResponse:
    """What a release would claim and cost. Nothing is drawn or spent."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    claim = await _claim(context, request, caller, found.id, body)
    charge, after = await context.in_thread(caller, context.price, "release", found, claim, key)
    return ClaimResponse(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=confirmation(found.id, body, claim, of=ReleaseClaimRequest),
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
    """Debit the ledger, draw noise once, and publish the function. The same key never spends twice."""
    found = await context.in_thread(caller, context.dataset, dataset, caller)
    claim = await _claim(context, request, caller, found.id, body)
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


async def _claim(
    context: Context, request: Request, caller: Caller, dataset: str, body: ReleaseClaimRequest
) -> Claim:
    """The claim, from the tally's public definition: its counts are not read here."""

    def stored_tally() -> StoredTally:
        public_file(context.datasets, context.settings, dataset, body.public, cells=body.cells())
        return context.tally(dataset, body.tally)

    stored = await context.in_thread(caller, stored_tally)
    found = await context.calculate(
        request,
        caller,
        "release_claim",
        size=stored.cells,
        request=body.model_dump(mode="json", include=set(ReleaseClaimRequest.model_fields)),
        tally=stored.facts,
        assumptions=release_assumptions(body, stored),
    )
    return Claim.from_json(found["claim"])
