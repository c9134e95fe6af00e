"""Released functions: their claims, grants and files, and queries, by a token or by a shared link."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from hushsum.jobs.exact_mode_predictions import ExactModel
from hushsum.service.http.authentication import ANALYST, Caller, checked_by, needs, nothing_here
from hushsum.service.http.context import Context, context_of
from hushsum.service.http.dependencies import ActorDependency, ContextDependency, Querier, Releaser
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
from hushsum.service.store import Function
from hushsum.service.work.file_cleanup import delete_exact_model_files

router = APIRouter(prefix="/functions", tags=["functions"])

_NEEDED = needs("query")
_SMALL = 1 << 12
"""A body up to this size is answered at once; larger ones in a thread, so that others need not wait."""

_LARGE = 1 << 16
"""Larger bodies wait for their turn, so that no account occupies all memory and threads."""

_OF: Final = (None, "mean", "sum", PREDICT)
QUERY_OPENAPI: Final[dict[str, Any]] = {
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
        {"name": "simultaneous", "in": "query", "schema": {"enum": ["true", "false"], "default": "false"}},
    ],
}


@router.post(
    "/{function}/query",
    response_class=Response,
    openapi_extra=QUERY_OPENAPI,
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
    # No dependency is declared that FastAPI would resolve: that took half of the time of a single point.
    caller = await _NEEDED(request)
    context = await context_of(request)
    key = f"{caller.account} {function}"
    if context.visible.get(key) is None:
        generation = context.visible.generation
        await run_in_threadpool(_find, context, function, caller)
        context.visible.put(key, True, generation=generation)
    return await answered(request, context, function, who=caller.account, most=context.settings.max_points)


@router.get("")
def list_functions(caller: Querier, context: ContextDependency) -> list[FunctionResponse]:
    """The functions that the caller owns or was granted."""
    found = context.functions.visible_to(caller.account)
    return [FunctionResponse.model_validate(each) for each in found]


@router.get("/{function}")
def show_function(function: str, caller: Querier, context: ContextDependency) -> FunctionResponse:
    """The public description and the claim of a function."""
    return FunctionResponse.model_validate(_find(context, function, caller))


@router.delete("/{function}", status_code=204, response_class=Response)
def end_function(
    function: str, caller: Releaser, context: ContextDependency, actor: ActorDependency
) -> Response:
    """Delete a model in exact mode with its records and answers. Its budget stays spent."""
    found = _owned(context, function, caller)
    if not found.is_served:
        raise Refusal(
            409,
            "public-for-ever",
            "a released function is a public file, and may have been downloaded; withdraw its grants instead",
        )
    # The files last: if this process dies here, the cleanup deletes files without a function.
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
def download(
    function: str, caller: Querier, context: ContextDependency, actor: ActorDependency
) -> FileResponse:
    """The .hush file, for the owner and for analysts with a download grant."""
    found = _find(context, function, caller)
    if found.is_served:
        raise Refusal(
            409,
            "never-a-file",
            "a model in exact mode has no file; query it in the service, or fit it in the mode file",
        )
    if not found.download:
        raise Refusal(
            403, "forbidden", "the owner of this function did not grant its download; ask the owner"
        )
    response = function_file(context, found.id, found.name)
    context.store.log(actor, "function downloaded", found.id)
    return response


@router.get("/{function}/grants")
def list_grants(function: str, caller: Releaser, context: ContextDependency) -> list[GrantResponse]:
    """The analysts who may query a function, besides its owner."""
    found = _owned(context, function, caller)
    return [
        GrantResponse(account=name, download=download)
        for name, download in context.functions.grants_of(found.id)
    ]


@router.put("/{function}/grants/{account}", status_code=200)
def grant(
    function: str,
    account: str,
    body: GrantRequest,
    caller: Releaser,
    context: ContextDependency,
    actor: ActorDependency,
) -> GrantResponse:
    """Let an analyst, by name, query a function."""
    found = _owned(context, function, caller)
    analyst = context.accounts.find(name=account)
    if analyst is None or analyst.role != ANALYST or analyst.disabled:
        # The same for a name that nobody has, an owner's and a closed account's.
        raise Refusal(
            404,
            "unknown-analyst",
            "a function is granted to the account of an analyst, and none in use has this name; check the "
            "spelling, or ask an administrator to create the account",
        )
    context.functions.grant(found.id, analyst.id, download=body.download, actor=actor)
    return GrantResponse(account=account, download=body.download)


@router.delete("/{function}/grants/{account}", status_code=204, response_class=Response)
def withdraw(
    function: str, account: str, caller: Releaser, context: ContextDependency, actor: ActorDependency
) -> Response:
    """Withdraw a grant. What was downloaded or learned stays public."""
    found = _owned(context, function, caller)
    analyst = context.accounts.find(name=account)
    if analyst is None or not context.functions.withdraw(found.id, analyst.id, actor):
        raise nothing_here()
    context.visible.clear()
    return Response(status_code=204)


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


async def answered(request: Request, context: Context, function: str, *, who: str, most: int) -> Response:
    """Answer a query of a function that its sender may query.

    Parameters
    ----------
    who : str
        The account or the link; large queries of each wait for one another.
    most : int
        Points that are accepted.
    """
    of, level, only_values, simultaneous = _query_parameters(request)
    opened = context.function_cache.get(function)
    if opened is None:
        opened = await run_in_threadpool(context.function_cache.load, function, context.settings)
    request_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if request_type not in (JSON, ARROW):
        raise Refusal(
            415, "unsupported-media-type", f"the content type must be {JSON} or {ARROW}; send one of them"
        )
    response_type = ARROW if ARROW in request.headers.get("accept", "") else JSON
    limit = largest_body(opened, request_type, context.settings, most=most)

    def work(body: bytearray) -> tuple[bytes, int]:
        return answer(
            opened,
            body,
            request_type=request_type,
            response_type=response_type,
            of=of,
            level=level,
            only_values=only_values,
            simultaneous=simultaneous,
            most=most,
        )

    declared = int(request.headers.get("content-length", limit))
    if declared > limit:
        raise too_large(limit)
    # Simultaneous intervals draw the noise some hundred times, which takes as long as many points.
    if declared > _LARGE or simultaneous:
        async with context.large_queries.place(who):
            body = await read_body(request, limit)
            async with context.large_queries.turn():
                encoded, points = await run_in_threadpool(work, body)
    else:
        body = await read_body(request, limit)
        # A model in exact mode stores its answers, and may have to wait for a lock.
        quick = len(body) <= _SMALL and not isinstance(opened, ExactModel)
        encoded, points = work(body) if quick else await run_in_threadpool(work, body)
    context.metrics.points.inc(points)
    return Response(encoded, media_type=response_type)


def _query_parameters(request: Request) -> tuple[str | None, float, bool, bool]:
    """The query parameters: of what, at which confidence level, whether values only, and whether intervals
    hold together.
    """
    if not request.scope["query_string"]:
        return None, 0.95, False, False
    given = dict(request.query_params)
    of, only = given.pop("of", None), given.pop("only", None)
    try:
        level = float(given.pop("level", "0.95"))
    except ValueError:
        level = 0.0
    together = given.pop("simultaneous", "false")
    allowed = of in _OF and only in (None, "value") and together in ("true", "false") and 0.0 < level < 1.0
    if given or not allowed:
        raise Refusal(
            422,
            "parameter-refused",
            "a query takes of=mean, sum or predict, a level between 0 and 1, only=value, and "
            "simultaneous=true or false; remove others",
        )
    return of, level, only is not None, together == "true"


def function_file(
    context: Context, id: str, name: str, headers: dict[str, str] | None = None
) -> FileResponse:
    """The file, to be saved under the function's name."""
    path = context.settings.path("functions", f"{id}.hush")
    if not path.is_file():
        raise Refusal(503, "file-missing", "the function's file is missing; report it to the administrator")
    return FileResponse(path, media_type="application/octet-stream", filename=f"{name}.hush", headers=headers)
