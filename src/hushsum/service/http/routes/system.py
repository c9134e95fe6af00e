"""Health, metrics, the state of the ledger and its accepted restores, and the page with its assets."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath
from typing import Final

from fastapi import APIRouter, Request, Response

from hushsum.errors import SERVICE, FileRefused, HushsumError
from hushsum.plotting import reader_folder, reader_module

from ...queries import answer_once
from ...schemas import HealthResponse, LedgerStateResponse, RestoreRequest, RestoreResponse
from ...store.database import folder_trouble
from .. import metrics
from ..authentication import existing
from ..context import Admin, Context, ContextDependency, ThreadedRoute
from ..problem_responses import ANY_ORIGIN
from ..request_limits import address_group

router = APIRouter(tags=["system"], route_class=ThreadedRoute)

_UNREACHABLE: Final = "the database cannot be reached or has another schema"


@router.get("/healthz", summary="Whether the process is alive")
async def healthz() -> HealthResponse:
    """Always 200 while the process answers."""
    return HealthResponse(status="ok")


@router.get("/readyz", responses={503: {"model": HealthResponse, "description": "Not ready"}})
async def readyz(
    request: Request, response: Response, context: ContextDependency, only: str | None = None
) -> HealthResponse:
    """Whether an ordinary query is answered in time, the database is reachable and this folder's, the ledger
    accepts debits, and a worker runs. With `only=queries` the first of these alone.
    """
    most = context.settings.ready_seconds
    name = address_group(request.scope["client"][0])
    try:
        async with asyncio.timeout(most):
            # The work of a small query: look up a token, wait for a thread of queries, answer one point.
            await context.authenticator.check()
            await context.query_threads.run("", context.store.check)
            function = context.function_cache.newest()
            if function is not None:
                answer_once(function)
            reasons = [] if only == "queries" else await context.threads.run(name, _not_ready, context)
    except TimeoutError:
        reasons = [f"an ordinary query takes longer than {most:g} s: the service is overloaded"]
    except HushsumError:
        reasons = [_UNREACHABLE]
    response.status_code = 503 if reasons else 200
    return HealthResponse(status="not ready" if reasons else "ok", reasons=reasons)


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
    trouble = context.worker_pool.trouble()
    if trouble is not None:
        reasons.append(trouble)
    return reasons


@router.get("/ledger")
def show_ledger_state(call: Admin) -> LedgerStateResponse:
    """Whether the ledger accepts debits, and if not, why."""
    return LedgerStateResponse(id=call.ledger.id, problem=call.ledger.rollback_problem())


@router.post("/ledger/restores", status_code=201)
def accept_restore(body: RestoreRequest, call: Admin) -> RestoreResponse:
    """Continue with a ledger that may be a restored backup. Every dataset is frozen until its write-off.

    What was spent after the backup is unknown: the owner of each dataset charges it with a write-off.
    """
    frozen = call.ledger.accept_restore(reason=body.reason, who=call.caller.name)
    call.store.log(call.actor, "restore accepted", call.ledger.id)
    return RestoreResponse(frozen=len(frozen))


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def show_metrics(context: ContextDependency) -> Response:
    """Metrics for Prometheus; none depends on records."""
    return Response(context.metrics.text(context), media_type=metrics.MEDIA_TYPE)


page_router = APIRouter(tags=["system"], route_class=ThreadedRoute)

FRONT: Final = "index.html"
READER: Final = "reader.js"
# The reader of ``.hush`` files, the explorer and their styles stand apart: other pages use them.
_SHARED: Final = {"explorer": "app/explorer/", "styles": "styles/"}
_MODULES: Final = b"<!-- modules -->"
_MEDIA: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page."""

    body: bytes
    media_type: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """The files by their names below ``web``, and those of other pages too, read once. No other is served."""
    found = dict(_inside(files("hushsum.service") / "web", ""))
    for folder, prefix in _SHARED.items():
        found.update(_inside(reader_folder() / folder, prefix))
    del found["app/explorer/page.js"]
    return {**found, READER: _asset(READER, reader_module().encode())}


def _inside(folder: Traversable, prefix: str) -> Iterator[tuple[str, Asset]]:
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir():
            yield from _inside(each, f"{prefix}{each.name}/")
        elif PurePath(each.name).suffix in _MEDIA:
            yield f"{prefix}{each.name}", _asset(each.name, each.read_bytes())


def _asset(name: str, body: bytes) -> Asset:
    return Asset(body, _MEDIA[PurePath(name).suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


@cache
def front() -> bytes:
    """The page with links to all its modules, so that a browser fetches them at once and not one after the
    other.
    """
    alone = ("app/early.js", "app/shared.js")
    modules = [name for name in assets() if name.startswith("app/") and name not in alone]
    links = "\n".join(f'<link rel="modulepreload" href="assets/{name}">' for name in modules)
    return assets()[FRONT].body.replace(_MODULES, links.encode())


@page_router.get("/", response_class=Response, responses={200: {"content": {"text/html": {}}}})
async def page() -> Response:
    """The web page."""
    return Response(front(), media_type=_MEDIA[".html"])


@page_router.get("/assets/{name:path}", response_class=Response, include_in_schema=False)
async def asset(name: str, request: Request) -> Response:
    """A style sheet or script of the page.

    Modules of two versions must never meet in one tab, so a browser always revalidates its copy.
    """
    found = existing(None if name.endswith(".html") else assets().get(name))
    # Pages of shared functions run in an origin of their own, and fetch these files from this one.
    headers = {"cache-control": "no-cache", "etag": found.tag, **ANY_ORIGIN}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.body, media_type=found.media_type, headers=headers)
