"""HealthResponse and metrics."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from hushsum.errors import HushsumError
from hushsum.service.http import metrics
from hushsum.service.http.access import actor_of, needs
from hushsum.service.http.authentication import Caller
from hushsum.service.http.context import Context, context_of
from hushsum.service.schemas import HealthResponse, LedgerStateResponse, RestoreRequest, RestoreResponse
from hushsum.service.store import Actor
from hushsum.service.store.deployment import folder_trouble

router = APIRouter(tags=["system"])
Here = Annotated[Context, Depends(context_of)]
Admin = Annotated[Caller, Depends(needs("admin"))]


@router.get("/healthz", summary="Whether the process lives")
async def healthz() -> HealthResponse:
    """Always the same answer, as long as there is one."""
    return HealthResponse(status="ok")


@router.get("/readyz", responses={503: {"model": HealthResponse, "description": "Not ready"}})
def readyz(context: Here, response: Response) -> HealthResponse:
    """Whether the database can be reached and is this folder's, the ledger books, and a worker lives."""
    reasons = []
    try:
        context.store.check()
        trouble = folder_trouble(context.store.database, context.settings.path(""))
        if trouble is not None:
            reasons.append(trouble)
        if context.ledger.rollback_problem() is not None:
            reasons.append(
                "the ledger may be a restored backup: nothing is booked until an administrator accepts it; "
                "released functions answer"
            )
    except HushsumError:
        reasons.append("the database cannot be reached or has another schema")
    trouble = context.worker_trouble()
    if trouble is not None:
        reasons.append(trouble)
    response.status_code = 503 if reasons else 200
    return HealthResponse(status="not ready" if reasons else "ok", reasons=reasons)


@router.get("/ledger")
def show_ledger_state(caller: Admin, context: Here) -> LedgerStateResponse:
    """Whether the ledger books, and if not, why."""
    return LedgerStateResponse(id=context.ledger.id, problem=context.ledger.rollback_problem())


@router.post("/ledger/restores", status_code=201)
def accept_restore(
    asked: RestoreRequest, caller: Admin, context: Here, actor: Annotated[Actor, Depends(actor_of)]
) -> RestoreResponse:
    """Continue with a ledger that may be a restored backup. Every dataset is frozen until it is written off.

    What was spent after the backup is unknown: the owner of each dataset charges it with a write-off.
    """
    frozen = context.ledger.accept_restore(reason=asked.reason, who=caller.name)
    context.store.log(actor, "restore accepted", context.ledger.id)
    return RestoreResponse(frozen=len(frozen))


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def show_metrics(context: Here) -> Response:
    """Numbers for Prometheus; none depends on records."""
    now = metrics.Surroundings(
        jobs=context.jobs,
        folder=context.settings.path(""),
        workers_alive=context.workers_alive(),
        workers_wanted=context.settings.workers,
        streams=len(context.streams),
    )
    return Response(context.metrics.text(now), media_type=metrics.MEDIA_TYPE)
