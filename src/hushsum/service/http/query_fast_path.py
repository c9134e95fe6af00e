"""Queries bypass FastAPI's router, which would take as long as the answer itself."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

QUERY: Final = "/functions/{function}/query"
_QUERY = re.compile(r"/functions/([^/]+)/query")


def queried_function(path: str) -> str | None:
    """The id of the function, if the path is that of a query."""
    found = _QUERY.fullmatch(path)
    return None if found is None else found[1]


class QueryFastPath:
    """ASGI middleware inside `RequestMiddleware`: queries go directly to their route's function.

    The router would find the same handler; only the search and the resolution of dependencies, of which it
    has none, are skipped. `RequestMiddleware` turns what it raises into a response.
    """

    def __init__(
        self, app: ASGIApp, *, state: Any, query: Callable[[str, Request], Awaitable[Response]]
    ) -> None:
        self._app = app
        self._state = SimpleNamespace(state=state)
        self._route = SimpleNamespace(path=QUERY)
        self._query = query

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a query; pass other requests on."""
        function = queried_function(scope["path"]) if scope["type"] == "http" else None
        if function is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["route"], scope["app"] = self._route, self._state
        response = await self._query(function, Request(scope, receive))
        await response(scope, receive, send)
