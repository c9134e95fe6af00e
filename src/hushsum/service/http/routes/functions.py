"""Released functions: what they claim, who may ask them, and their answers."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from hushsum.jobs.exact_answers import ExactModel
from hushsum.service.http.access import actor_of, checked_by, needs, nothing_here
from hushsum.service.http.authentication import ANALYST, Caller
from hushsum.service.http.context import Context, context_of
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import read_body, too_large
from hushsum.service.queries.answer import ARROW, JSON, PREDICT, answer, largest_body
from hushsum.service.schemas import (
    FunctionResponse,
    GrantRequest,
    GrantResponse,
    Problem,
    QueryRequest,
    QueryResponse,
)
from hushsum.service.store import Actor, Function
from hushsum.service.work.file_cleanup import delete_exact_model_files

router = APIRouter(prefix="/functions", tags=["functions"])
Asker = Annotated[Caller, Depends(needs("query"))]
Releaser = Annotated[Caller, Depends(needs("release"))]
Here = Annotated[Context, Depends(context_of)]
Doer = Annotated[Actor, Depends(actor_of)]

_SMALL = 1 << 12
"""A body up to this size is answered at once; larger ones in a thread, so that others need not wait."""

_LARGE = 1 << 16
"""Larger bodies wait for their turn: they take memory and time, and no account has all of either."""

_NEEDED = needs("query")

_QUESTIONS: Final = (None, "mean", "sum", PREDICT)
_SHAPES: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {JSON: {"schema": QueryRequest.model_json_schema()}, ARROW: {}},
    },
    "parameters": [
        {"name": "of", "in": "query", "schema": {"enum": ["mean", "sum", "predict"]}},
        {
            "name": "level",
            "in": "query",
            "schema": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.95},
        },
        {"name": "only", "in": "query", "schema": {"const": "value"}},
    ],
}


@router.post(
    "/{function}/query",
    response_class=Response,
    openapi_extra=_SHAPES,
    responses={
        200: {"model": QueryResponse, "content": {ARROW: {}}},
        415: {"model": Problem, "description": "Neither JSON nor an Arrow stream"},
    },
)
@checked_by(_NEEDED)
async def query(
    function: str,
    request: Request,
) -> Response:
    """Values and predictions with standard errors at up to 100,000 points, in JSON or as an Arrow stream."""
    # Nothing is declared that FastAPI would have to solve: half of the time of a single point went there.
    caller = await _NEEDED(request)
    context = await context_of(request)
    of, level, only_values = _question(request)
    key = f"{caller.account} {function}"
    if context.visible.get(key) is None:
        await run_in_threadpool(_find, context, function, caller)
        context.visible.put(key, True)
    opened = context.function_cache.get(function)
    if opened is None:
        opened = await run_in_threadpool(context.function_cache.load, function, context.settings)
    sent = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if sent not in (JSON, ARROW):
        raise Refusal(415, "unsupported-media-type", f"points come as {JSON} or {ARROW}; send one of them")
    wanted = ARROW if ARROW in request.headers.get("accept", "") else JSON
    limit = largest_body(opened, sent, context.settings)

    def work(body: bytearray) -> tuple[bytes, int]:
        return answer(
            opened,
            body,
            sent=sent,
            wanted=wanted,
            of=of,
            level=level,
            only_values=only_values,
            most=context.settings.max_points,
        )

    declared = int(request.headers.get("content-length", limit))
    if declared > limit:
        raise too_large(limit)
    if declared > _LARGE:
        async with context.large_queries.place(caller.account):
            body = await read_body(request, limit)
            async with context.large_queries.turn():
                encoded, points = await run_in_threadpool(work, body)
    else:
        body = await read_body(request, limit)
        # A model in exact mode writes what it answers, and may have to wait for its turn.
        quick = len(body) <= _SMALL and not isinstance(opened, ExactModel)
        encoded, points = work(body) if quick else await run_in_threadpool(work, body)
    context.metrics.points.inc(points)
    return Response(encoded, media_type=wanted)


@router.get("")
def list_functions(caller: Asker, context: Here) -> list[FunctionResponse]:
    """The functions that the caller owns or was granted."""
    found = context.functions.visible_to(caller.account)
    return [FunctionResponse.model_validate(each) for each in found]


@router.get("/{function}")
def show_function(function: str, caller: Asker, context: Here) -> FunctionResponse:
    """What a function is and what it claims."""
    return FunctionResponse.model_validate(_find(context, function, caller))


@router.delete("/{function}", status_code=204, response_class=Response)
def end_function(function: str, caller: Releaser, context: Here, actor: Doer) -> Response:
    """End a model in exact mode and delete its records and answers. What it claims stays spent."""
    found = _owned(context, function, caller)
    if not found.is_served:
        raise Refusal(
            409,
            "public-for-ever",
            "a released function is a public file, and may have been downloaded; withdraw its grants instead",
        )
    # The files last: without a function they are deleted by whoever tidies up, if this process dies here.
    context.functions.end(found.id, actor)
    context.function_cache.remove(found.id)
    context.visible.clear()
    delete_exact_model_files(context.settings, found.id)
    return Response(status_code=204)


@router.get(
    "/{function}/file",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def download(function: str, caller: Asker, context: Here, actor: Doer) -> FileResponse:
    """The .hush file, for the owner and for whom it was granted."""
    found = _find(context, function, caller)
    if found.is_served:
        raise Refusal(
            409,
            "never-a-file",
            "a model in exact mode answers where its records are and is no file; ask it, or fit it as a file",
        )
    if not found.download:
        raise Refusal(403, "forbidden", "the owner of this function did not grant its file; ask for it")
    path = context.settings.path("functions", f"{found.id}.hush")
    if not path.is_file():
        raise Refusal(503, "file-missing", "the function's file is gone from the service; tell its keeper")
    context.store.log(actor, "function downloaded", found.id)
    return FileResponse(path, media_type="application/octet-stream", filename=f"{found.name}.hush")


@router.get("/{function}/grants")
def list_grants(function: str, caller: Releaser, context: Here) -> list[GrantResponse]:
    """Who may ask a function, besides its owner."""
    found = _owned(context, function, caller)
    return [
        GrantResponse(account=name, download=download)
        for name, download in context.functions.grants_of(found.id)
    ]


@router.put("/{function}/grants/{account}", status_code=200)
def grant(
    function: str, account: str, asked: GrantRequest, caller: Releaser, context: Here, actor: Doer
) -> GrantResponse:
    """Let an analyst, by name, ask a function."""
    found = _owned(context, function, caller)
    analyst = context.accounts.find(name=account)
    if analyst is None or analyst.role != ANALYST or analyst.disabled:
        raise nothing_here()
    context.functions.grant(found.id, analyst.id, download=asked.download, actor=actor)
    return GrantResponse(account=account, download=asked.download)


@router.delete("/{function}/grants/{account}", status_code=204, response_class=Response)
def withdraw(function: str, account: str, caller: Releaser, context: Here, actor: Doer) -> Response:
    """Take a grant back. What somebody has downloaded or learned stays public."""
    found = _owned(context, function, caller)
    analyst = context.accounts.find(name=account)
    if analyst is None or not context.functions.withdraw(found.id, analyst.id, actor):
        raise nothing_here()
    context.visible.clear()
    return Response(status_code=204)


def _question(request: Request) -> tuple[str | None, float, bool]:
    """What is asked of the points: of what, at which level, and whether values alone."""
    if not request.scope["query_string"]:
        return None, 0.95, False
    asked = dict(request.query_params)
    of, only = asked.pop("of", None), asked.pop("only", None)
    try:
        level = float(asked.pop("level", "0.95"))
    except ValueError:
        level = 0.0
    if asked or of not in _QUESTIONS or only not in (None, "value") or not 0.0 < level < 1.0:
        raise Refusal(
            422,
            "parameter-refused",
            "a query takes of=mean, sum or predict, a level between 0 and 1, and only=value; give no others",
        )
    return of, level, only is not None


def _find(context: Context, id: str, caller: Caller) -> Function:
    found = context.functions.find(id, account=caller.account)
    if found is None:
        raise nothing_here()
    return found


def _owned(context: Context, id: str, caller: Caller) -> Function:
    found = _find(context, id, caller)
    if not found.owned:
        raise nothing_here()
    return found
