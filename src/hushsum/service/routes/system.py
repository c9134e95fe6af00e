"""Health, metrics and the page."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Response

from hushsum.errors import HushsumError
from hushsum.service import metrics
from hushsum.service.access import nothing_here
from hushsum.service.context import Context, context_of
from hushsum.service.shapes import Health

router = APIRouter(tags=["system"])
Here = Annotated[Context, Depends(context_of)]
_ASSETS: Final = {"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}


@router.get("/healthz", summary="Whether the process lives")
async def healthz() -> Health:
    """Always the same answer, as long as there is one."""
    return Health(status="ok")


@router.get("/readyz", responses={503: {"model": Health, "description": "Not ready"}})
def readyz(context: Here, response: Response) -> Health:
    """Whether the database can be reached, the ledger is not behind, and a worker lives."""
    reasons = []
    try:
        context.store.check()
        if context.ledger.behind() is not None:
            reasons.append("the ledger is behind what this machine has seen of it")
    except HushsumError:
        reasons.append("the database cannot be reached or has another schema")
    trouble = context.worker_trouble()
    if trouble is not None:
        reasons.append(trouble)
    response.status_code = 503 if reasons else 200
    return Health(status="not ready" if reasons else "ok", reasons=reasons)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def show_metrics(context: Here) -> Response:
    """Numbers for Prometheus; none depends on records."""
    return Response(context.metrics.text(context.jobs), media_type=metrics.MEDIA_TYPE)


@router.get("/", response_class=Response, responses={200: {"content": {"text/html": {}}}})
def page() -> Response:
    """The page for people."""
    return Response(_asset("index.html"), media_type="text/html; charset=utf-8")


@router.get("/assets/{name}", response_class=Response, include_in_schema=False)
def asset(name: str) -> Response:
    """A style sheet or script of the page."""
    if name not in _ASSETS:
        raise nothing_here()
    return Response(_asset(name), media_type=_ASSETS[name], headers={"cache-control": "max-age=300"})


def _asset(name: str) -> bytes:
    return (files("hushsum.service") / "web" / name).read_bytes()
