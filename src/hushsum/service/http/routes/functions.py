"""Released functions: their claims, grants and files, and queries, by a token or by a shared link."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from pydantic import ValidationError

from hushsum.errors import UsageError
from hushsum.operations import ExactModel

from ...queries import (
    ARROW,
    JSON,
    HeavyFunction,
    Queryable,
    answer,
    function_path,
    is_exact,
    largest_body,
    read_points,
)
from ...schemas import (
    FunctionResponse,
    GrantRequest,
    GrantResponse,
    Problem,
    QueryParameters,
    QueryRequest,
    QueryResponse,
)
from ..authentication import ANALYST, existing
from ..compute_pool import unless_client_leaves
from ..context import Context, Querier, Releaser, ThreadedRoute
from ..problem_responses import Refusal
from ..request_limits import read_body, too_large
from .datasets import end_exact_model

router = APIRouter(prefix="/functions", tags=["functions"], route_class=ThreadedRoute)

_SMALL: Final = 1 << 12
_LONGEST_AT_ONCE_SECONDS: Final = 0.005
_FEW_POINTS_BYTES: Final = 1 << 9
# A query with a body of at most this size, which is expected to take no longer, is answered at once: without
# a further condition if it has few points and is quick, else if its account has not sent many of them. Others
# wait for their turn in processes of their own, so that nobody occupies the event loop.
_QUICK_SECONDS: Final = 0.0003

# The size of each number of a point in a query.
_POINT_BYTES: Final = 16

# A function that takes longer to load is not loaded here, but in those processes.
_LIGHT_SECONDS: Final = 0.1

_WEIGH: Final = "weigh"
_PARSE: Final = "parse"
_PARAMETERS: Final[dict[str, Any]] = QueryParameters.model_json_schema()["properties"]
# The description of a route that answers queries, and reads their parameters and points itself.
QUERY: Final[dict[str, Any]] = {
    "response_class": Response,
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": QueryRequest.model_json_schema()}, ARROW: {}},
        },
        "parameters": [{"name": name, "in": "query", "schema": each} for name, each in _PARAMETERS.items()],
    },
    "responses": {
        200: {"model": QueryResponse, "content": {ARROW: {}}},
        415: {"model": Problem, "description": "Neither JSON nor an Arrow stream"},
    },
}


@router.post("/{function}/query", **QUERY)
async def query(function: str, call: Querier) -> Response:
    """Values and predictions with standard errors at up to 100,000 points, in JSON or as an Arrow stream."""
    context, account = call.context, call.account
    key = f"{account} {function}"
    if context.visible.get(key) is None:
        generation = context.visible.generation
        await context.query_threads.run(account, call.function, function)
        context.visible.put(key, True, generation=generation)
    return await answered(call.request, context, function, who=account, most=call.settings.max_points)


@router.get("")
def list_functions(call: Querier) -> list[FunctionResponse]:
    """The functions that the caller owns or was granted."""
    found = call.store.functions.visible_to(call.account)
    return [FunctionResponse.model_validate(each) for each in found]


@router.get("/{function}")
def show_function(function: str, call: Querier) -> FunctionResponse:
    """The public description and the claim of a function."""
    return FunctionResponse.model_validate(call.function(function))


@router.delete("/{function}", status_code=204)
def end_function(function: str, call: Releaser) -> None:
    """Delete a model in exact mode with its records and answers. Its budget stays spent."""
    found = call.function(function, owned=True)
    if not found.is_served:
        raise Refusal(
            409,
            "public-for-ever",
            "a released function is a public file, and may have been downloaded; withdraw its grants instead",
        )
    end_exact_model(call, found.id)


@router.get(
    "/{function}/file",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
def download(function: str, call: Querier) -> FileResponse:
    """The .hush file, for the owner and for analysts with a download grant."""
    found = call.function(function)
    if found.is_served:
        detail = "a model in exact mode has no file; query it in the service, or fit it in the mode file"
        raise Refusal(409, "never-a-file", detail)
    if not found.download:
        detail = "the owner of this function did not grant its download; ask the owner"
        raise Refusal(403, "forbidden", detail)
    response = function_file(call.context, found.id, found.name)
    call.store.log(call.actor, "function downloaded", found.id)
    return response


@router.get("/{function}/grants")
def list_grants(function: str, call: Releaser) -> list[GrantResponse]:
    """The analysts who may query a function, besides its owner."""
    found = call.store.functions.grants_of(call.function(function, owned=True).id)
    return [GrantResponse(account=name, download=download) for name, download in found]


@router.put("/{function}/grants/{account}")
def grant(function: str, account: str, body: GrantRequest, call: Releaser) -> GrantResponse:
    """Let an analyst, by name, query a function."""
    found = call.function(function, owned=True)
    analyst = call.store.accounts.find(name=account)
    if analyst is None or analyst.role != ANALYST or analyst.disabled:
        # The same for a name that nobody has, an owner's and a closed account's.
        raise Refusal(
            404,
            "unknown-analyst",
            "a function is granted to the account of an analyst, and none in use has this name; check the "
            "spelling, or ask an administrator to create the account",
        )
    call.store.functions.grant(found.id, analyst.id, download=body.download, actor=call.actor)
    return GrantResponse(account=account, download=body.download)


@router.delete("/{function}/grants/{account}", status_code=204)
def withdraw(function: str, account: str, call: Releaser) -> None:
    """Withdraw a grant. What was downloaded or learned stays public."""
    found = call.function(function, owned=True)
    analyst = existing(call.store.accounts.find(name=account))
    existing(call.store.functions.withdraw(found.id, analyst.id, call.actor))
    call.context.visible.clear()


async def answered(request: Request, context: Context, function: str, *, who: str, most: int) -> Response:
    """Answer a query of a function that its sender may query.

    Parameters
    ----------
    who : str
        The account or the link; large queries of each wait for one another.
    most : int
        Points that are accepted.
    """
    asked = _query_parameters(request)
    small = int(request.headers.get("content-length", _SMALL + 1)) <= _SMALL
    body = await read_body(request, _SMALL) if small else None
    opened = context.function_cache.get(function)
    if opened is None:
        opening = _opened(context, function, who)
        # While a body is still to be read, nobody can say whether the client has left.
        opened = await (opening if body is None else unless_client_leaves(request, opening))
    request_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if request_type not in (JSON, ARROW):
        detail = f"the content type must be {JSON} or {ARROW}; send one of them"
        raise Refusal(415, "unsupported-media-type", detail)
    response_type = ARROW if ARROW in request.headers.get("accept", "") else JSON
    limit = largest_body(opened, request_type, context.settings, most=most)
    form: dict[str, Any] = {"request_type": request_type, "most": most}
    declared = int(request.headers.get("content-length", limit))
    if declared > limit:
        raise too_large(limit)
    pool = context.large_queries
    # Simultaneous intervals draw the noise some hundred times, which takes as long as many points. So does
    # the first answer of a non-negative version in each process: it is never given at once.
    kind = f"{function} simultaneous" if asked.simultaneous == "true" else function
    fitted = asked.nonnegative == "true"
    if isinstance(opened, ExactModel):
        # It stores its answers, and may have to wait for a lock.
        async with pool.place(who, kind, declared):
            if body is None and request_type == JSON:
                body = await read_body(request, limit)
                work = pool.calculate(
                    "parse", {"dim": opened.dim, "most": most}, body, kind=_PARSE, size=len(body)
                )
                _, numbers = await unless_client_leaves(request, work)
                points = np.frombuffer(numbers).reshape(-1, opened.dim)
            else:
                body = await read_body(request, limit) if body is None else body
                points = read_points(body, dim=opened.dim, **form)
            encoded = await context.query_threads.run(who, answer, opened, points, asked, response_type)
        number = len(points)
    elif (
        body is not None
        and not fitted
        and not isinstance(opened, HeavyFunction)
        and _is_quick(context, who, len(body), pool.costs.seconds(kind, len(body)))
    ):
        start = time.thread_time()
        points = read_points(body, dim=opened.dim, **form)
        number, encoded = len(points), answer(opened, points, asked, response_type)
        pool.costs.learn(kind, time.thread_time() - start, len(body))
    else:
        async with pool.place(who, kind, declared):
            body = await read_body(request, limit) if body is None else body
            path = function_path(function, context.settings)
            asked_of = {"asked": asked.model_dump(), "response_type": response_type}
            about = {"path": path, "points": form, **asked_of}
            kind = f"{kind} nonnegative" if fitted else kind
            work = pool.calculate("query", about, body, kind=kind, size=len(body))
            found, encoded = await unless_client_leaves(request, work)
        number = found["points"]
    context.metrics.points.inc(number)
    return Response(encoded, media_type=response_type)


def _is_quick(context: Context, who: str, size: int, seconds: float | None) -> bool:
    """Whether a query that is expected to take so long is answered on the event loop."""
    if seconds is None or seconds > _LONGEST_AT_ONCE_SECONDS:
        return False
    if size <= _FEW_POINTS_BYTES and seconds <= _QUICK_SECONDS:
        return True
    milliseconds = 1000.0 * seconds
    own = context.answered_at_once
    return own.left(who) >= milliseconds and own.take(who, milliseconds)


async def _opened(context: Context, function: str, who: str) -> Queryable | HeavyFunction:
    """Load a function. What that costs is found out in a process that can be ended."""
    cache, settings = context.function_cache, context.settings
    if not is_exact(function, settings):
        about = {"path": function_path(function, settings)}
        async with context.large_queries.place(who, _WEIGH):
            opened = cache.get(function)
            if opened is not None:
                return opened
            found, _ = await context.large_queries.calculate("weigh", about, kind=_WEIGH)
            if found["load_seconds"] > _LIGHT_SECONDS:
                return cache.put(function, HeavyFunction(found["dim"]))
            if found["answer_seconds"] is not None:
                size = _POINT_BYTES * (found["dim"] or 1)
                context.large_queries.costs.learn(function, found["answer_seconds"], size)
    return await context.query_threads.run(who, cache.load, function, settings)


def _query_parameters(request: Request) -> QueryParameters:
    """The parameters in the address of a query."""
    try:
        return QueryParameters.model_validate(dict(request.query_params))
    except ValidationError:
        raise UsageError(
            "a query takes of=mean, sum or predict, a level between 0 and 1, only=value, and "
            "simultaneous and nonnegative=true or false",
            remedy="remove others",
        ) from None


def function_file(
    context: Context, id: str, name: str, headers: dict[str, str] | None = None
) -> FileResponse:
    """The file, to be saved under the function's name."""
    path = context.settings.path("functions", f"{id}.hush")
    if not path.is_file():
        raise Refusal(503, "file-missing", "the function's file is missing; report it to the administrator")
    return FileResponse(path, media_type="application/octet-stream", filename=f"{name}.hush", headers=headers)
