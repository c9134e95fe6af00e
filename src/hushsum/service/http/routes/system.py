"""Health and metrics."""

from __future__ import annotations

import asyncio
from typing import Final

from fastapi import APIRouter, Request, Response

from hushsum.errors import SERVICE, FileRefused, HushsumError
from hushsum.service.http import metrics
from hushsum.service.http.context import Context
from hushsum.service.http.dependencies import ActorDependency, Admin, ContextDependency, ThreadedRoute
from hushsum.service.http.request_limits import address_group
from hushsum.service.queries.function_cache import answer_once
from hushsum.service.schemas import HealthResponse, LedgerStateResponse, RestoreRequest, RestoreResponse
from hushsum.service.store.database import folder_trouble

router = APIRouter(tags=["system"], route_class=ThreadedRoute)

_UNREACHABLE: Final = "the database cannot be reached or has another schema"


@router.get("/healthz", summary="Whether the process is alive")
async def healthz() -> HealthResponse:
    """Always 200 while the process answers."""
    return HealthResponse(status="ok")


@router.get("/readyz", responses={503: {"model": HealthResponse, "description": "Not ready"}})
async def readyz(
    request: Request,
    response: Response,
    context: ContextDependency,
    only: str | None = None,
) -> HealthResponse:
    """Whether an ordinary query is answered in time, the database is reachable and this folder's, the ledger
    accepts debits, and a worker runs. With `only=queries` the first of these alone.
    """
    most = context.settings.ready_seconds
    name = address_group(request.scope["client"][0])
    try:
        async with asyncio.timeout(most):
            await _answer_query(context)
            reasons = [] if only == "queries" else await context.threads.run(name, _not_ready, context)
    except TimeoutError:
        reasons = [f"an ordinary query takes longer than {most:g} s: the service is overloaded"]
    except HushsumError:
        reasons = [_UNREACHABLE]
    response.status_code = 503 if reasons else 200
    return HealthResponse(status="not ready" if reasons else "ok", reasons=reasons)


async def _answer_query(context: Context) -> None:
    """What a small query takes: a token is looked up, a thread of queries is free, one point is answered."""
    await context.authenticator.check()
    await context.query_threads.run("", context.store.check)
    function = context.function_cache.newest()
    if function is not None:
        answer_once(function)


def _not_ready(context: Context) -> list[str]:
    """Why owners cannot work now."""
    reasons = []
    try:
        context.store.check()
        trouble = folder_trouble(context.store.database, context.settings.path(""))
        if trouble is not None:
            reasons.append(trouble)
        if context.ledger.rollback_problem() is not None:
            reasons.append(
                "the ledger may be a restored backup: no release is possible until an administrator "
                "accepts it; queries of released functions work"
            )
    except FileRefused as damaged:
        reasons.append(damaged.words(SERVICE))
    except HushsumError:
        reasons.append(_UNREACHABLE)
    trouble = context.worker_trouble()
    if trouble is not None:
        reasons.append(trouble)
    return reasons


@router.get("/ledger")
def show_ledger_state(caller: Admin, context: ContextDependency) -> LedgerStateResponse:
    """Whether the ledger accepts debits, and if not, why."""
    return LedgerStateResponse(id=context.ledger.id, problem=context.ledger.rollback_problem())


@router.post("/ledger/restores", status_code=201)
def accept_restore(
    body: RestoreRequest,
    caller: Admin,
    context: ContextDependency,
    actor: ActorDependency,
) -> RestoreResponse:
    """Continue with a ledger that may be a restored backup. Every dataset is frozen until its write-off.

    What was spent after the backup is unknown: the owner of each dataset charges it with a write-off.
    """
    frozen = context.ledger.accept_restore(reason=body.reason, who=caller.name)
    context.store.log(actor, "restore accepted", context.ledger.id)
    return RestoreResponse(frozen=len(frozen))


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def show_metrics(context: ContextDependency) -> Response:
    """Metrics for Prometheus; none depends on records."""
    now = metrics.CurrentState(
        jobs=context.jobs,
        folder=context.settings.path(""),
        workers_alive=context.workers_alive(),
        workers_configured=context.settings.workers,
        streams=len(context.streams),
    )
    return Response(context.metrics.text(now), media_type=metrics.MEDIA_TYPE)
