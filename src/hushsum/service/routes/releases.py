"""From a tally to a public function: the claim first, then the release, then its progress."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from hushsum.bases.base import basis_from_json
from hushsum.errors import HushsumError
from hushsum.files.container import canonical_json
from hushsum.privacy.claim import Claim
from hushsum.privacy.request import ReleaseRequest
from hushsum.service.access import Caller, actor_of, needs, nothing_here
from hushsum.service.context import Context, context_of
from hushsum.service.limits import too_often
from hushsum.service.problems import Refusal
from hushsum.service.routes.datasets import Key
from hushsum.service.shapes import ClaimResponse, JobTold, NewRelease, ReleaseRequestBody
from hushsum.service.store import Actor, Job
from hushsum.service.store.job_queue import DONE, FAILED
from hushsum.tally.tally import Tally

router = APIRouter(tags=["releases"])
Releaser = Annotated[Caller, Depends(needs("release"))]
Here = Annotated[Context, Depends(context_of)]
Follower = Annotated[Caller, Depends(needs("upload", "release"))]

_LOOK_EVERY = 0.25
_LONGEST_STREAM = 600.0
_MOST_STREAMS = 100


@router.post("/datasets/{dataset}/claims")
def show_claim(dataset: str, asked: ReleaseRequestBody, caller: Releaser, context: Here) -> ClaimResponse:
    """What a release on these terms would claim and cost. Nothing is drawn or spent."""
    found = context.dataset(dataset, caller)
    claim = _claim(context, found.id, asked)
    charge, after = context.price(found, claim)
    return ClaimResponse(
        claim=claim.in_numbers(),
        cost=charge.as_json(),
        remaining=after.remaining.as_json(),
        confirm=_confirmation(found.id, asked, claim),
    )


@router.post("/datasets/{dataset}/releases", status_code=202)
def release(
    dataset: str,
    asked: NewRelease,
    caller: Releaser,
    context: Here,
    actor: Annotated[Actor, Depends(actor_of)],
    key: Key,
) -> JobTold:
    """Debit the ledger, draw noise once, and publish the function. The same key never spends twice."""
    found = context.dataset(dataset, caller)
    claim = _claim(context, found.id, asked)
    if asked.confirm != _confirmation(found.id, asked, claim):
        raise Refusal(
            409, "not-confirmed", "confirm must be that of the claim of these very terms; ask for the claim"
        )
    if context.jobs.of_key(found.id, "release", key) is None:
        # A hint only: what counts is the debit. It spares a job that is bound to fail.
        context.price(found, claim)
    job, _ = context.jobs.submit(
        "release", dataset=found.id, key=key, request=asked.model_dump(mode="json"), actor=actor
    )
    context.wake()
    return JobTold.model_validate(job)


@router.get("/datasets/{dataset}/jobs")
def list_jobs(dataset: str, caller: Follower, context: Here) -> list[JobTold]:
    """All long work on a dataset, oldest first."""
    return [JobTold.model_validate(each) for each in context.jobs.of(context.dataset(dataset, caller).id)]


@router.get("/jobs/{job}")
def show_job(job: str, caller: Follower, context: Here) -> JobTold:
    """How far long work has come, and what became of it."""
    return JobTold.model_validate(_job(context, job, caller))


@router.get(
    "/jobs/{job}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def follow_job(job: str, request: Request, caller: Follower, context: Here) -> StreamingResponse:
    """The same as server-sent events named ``job``, until it is done or failed."""
    await run_in_threadpool(_job, context, job, caller)
    if len(request.app.state.streams) >= _MOST_STREAMS:
        raise too_often()
    return StreamingResponse(_events(request, context, job, caller), media_type="text/event-stream")


async def _events(request: Request, context: Context, id: str, caller: Caller) -> AsyncIterator[bytes]:
    streams = request.app.state.streams
    mark = object()
    streams.add(mark)
    end = time.monotonic() + _LONGEST_STREAM
    told = ""
    try:
        while time.monotonic() < end and not await request.is_disconnected():
            job = await run_in_threadpool(_job, context, id, caller)
            text = JobTold.model_validate(job).model_dump_json()
            if text != told:
                told = text
                yield f"event: job\ndata: {text}\n\n".encode()
            if job.state in (DONE, FAILED):
                return
            await asyncio.sleep(_LOOK_EVERY)
    except HushsumError:
        # The answer has begun, and can no longer become a problem; whoever follows it asks again.
        return
    finally:
        streams.discard(mark)


def _job(context: Context, id: str, caller: Caller) -> Job:
    found = context.jobs.find(id)
    if found is None or context.datasets.find(found.dataset, owner=caller.account) is None:
        raise nothing_here()
    return found


def request_of(body: ReleaseRequestBody) -> ReleaseRequest:
    """The request as a tally takes it. The service keeps the budget and the idempotency key itself."""
    return ReleaseRequest(**{name: getattr(body, name) for name in ReleaseRequest().as_json()})


def _claim(context: Context, dataset: str, asked: ReleaseRequestBody) -> Claim:
    """The claim, from the tally's public definition: its counts are not read here."""
    stored = context.datasets.tally(asked.tally, dataset=dataset)
    if stored is None:
        raise Refusal(422, "parameter-refused", "tally must be one of this dataset; make it first")
    basis = basis_from_json(stored.facts["definition"])
    return Tally(basis, max_per_unit=stored.facts["max_per_unit"]).prepare(request_of(asked)).claim


def _confirmation(dataset: str, asked: ReleaseRequestBody, claim: Claim) -> str:
    terms = {name: getattr(asked, name) for name in ReleaseRequestBody.model_fields}
    text = canonical_json([dataset, json.loads(json.dumps(terms)), claim.as_json()])
    return hashlib.sha256(text).hexdigest()
