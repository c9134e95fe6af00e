"""The response to a query, whoever sends it: by a token or by a shared link."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from hushsum.jobs.exact_mode_predictions import ExactModel
from hushsum.service.http.context import Context
from hushsum.service.http.problem_responses import Refusal
from hushsum.service.http.request_limits import read_body, too_large
from hushsum.service.queries.answer import ARROW, JSON, PREDICT, answer, largest_body
from hushsum.service.schemas import QueryRequest

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
