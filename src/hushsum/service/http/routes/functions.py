"""Released functions: their claims, grants and queries."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from hushsum.service.http.authentication import ANALYST, Caller, checked_by, needs, nothing_here
from hushsum.service.http.context import Context, context_of
from hushsum.service.http.dependencies import ActorDependency, ContextDependency, Querier, Releaser
from hushsum.service.http.function_files import function_file
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.query_responses import QUERY_OPENAPI, answered
from hushsum.service.queries.answer import ARROW
from hushsum.service.schemas import (
    FunctionResponse,
    GrantRequest,
    GrantResponse,
    Problem,
    QueryResponse,
)
from hushsum.service.store import Function
from hushsum.service.work.file_cleanup import delete_exact_model_files

router = APIRouter(prefix="/functions", tags=["functions"])

_NEEDED = needs("query")


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
        raise nothing_here()
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
