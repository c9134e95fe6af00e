"""The middleware of every request: request id, authentication, limits, security headers, a log line; and the
direct route of queries to their handler.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hushsum.errors import HushsumError
from hushsum.service.logs import described, log_event

from .authentication import SHARED_PREFIX, Caller
from .context import Call, Context, Needed
from .problem_responses import ANY_ORIGIN, Refusal, problem_response
from .request_limits import BodyLimit, ConcurrencyLimit, RateLimit, address_group, bounded, too_large

PUBLIC: Final = frozenset({"/", "/healthz", "/readyz", "/metrics", "/openapi.json", "/sign-in"})
# The sign-in routes, which need no token and authenticate the caller themselves.
SIGN_IN: Final = frozenset({"/oidc/start", "/oidc/callback", "/oidc/finish"})
PUBLIC_PREFIX: Final = "/assets/"
_QUERY = re.compile(r"/functions/[^/]+/query|/shared/[^/]+/query")
_UPLOAD = re.compile(r"/datasets/[^/]+/uploads")
_LONGEST_TOKEN = 512
# Largest body of a query by a shared link, which anybody may send.
_SHARED_QUERY_BYTES = 4 << 20
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})

_HEADERS: Final = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"cache-control", b"no-store"),
]
_ONCE: Final = (b"authorization", b"host")
_SECURE: Final = (b"strict-transport-security", b"max-age=63072000")
# Headers of refusals by a shared link: its page has an origin of its own, and could not show the reason.
_ANY_ORIGIN: Final = [(name.encode(), value.encode()) for name, value in ANY_ORIGIN.items()]


def is_public(path: str) -> bool:
    """Whether a path needs no token: it is public, authenticates the caller itself, or has a link's key."""
    return path in PUBLIC | SIGN_IN or path.startswith((PUBLIC_PREFIX, SHARED_PREFIX))


class RequestMiddleware:
    """ASGI middleware around the application: every route that is not public needs a token."""

    def __init__(self, app: ASGIApp, *, context: Context) -> None:
        self._app = app
        self._context = context
        self._settings = settings = context.settings
        self._queries = RateLimit(settings.queries_per_second, settings.queries_per_second)
        self._requests = RateLimit(settings.requests_per_second, 10 * settings.requests_per_second)
        self._failures = RateLimit(settings.failures_per_minute / 60.0, settings.failures_per_minute)
        self._under_way = ConcurrencyLimit(settings.requests_at_once)
        self._proxies = settings.proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        headers = dict(scope["headers"])
        # Never taken from the client, which could reuse an id or choose another request's.
        id = secrets.token_hex(8)
        scope.setdefault("state", {})["request"] = id
        self._set_client_address(scope)
        status = 0

        async def reply(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                shared = status >= 400 and scope["path"].startswith(SHARED_PREFIX)
                headers_sent = [*message["headers"], *(_ANY_ORIGIN if shared else [])]
                secure = scope["scheme"] == "https"
                message["headers"] = _with_security_headers(headers_sent, id, secure=secure)
            await send(message)

        try:
            if not self._below_root(scope):
                address = f"{self._settings.root_path}/"
                await RedirectResponse(address, 308)(scope, receive, reply)
                return
            _check_form(scope)
            limit = await self._admit(scope, headers)
            name = self._limited_name(scope)
            with nullcontext() if name is None else self._under_way.entered(name):
                await self._app(scope, bounded(receive, limit), reply)
        except Exception as error:
            if not isinstance(error, Refusal | HushsumError | ClientDisconnect):
                log_event("failed", level=logging.ERROR, request=id, **described(error))
            if not status:
                await problem_response(error, id)(scope, receive, reply)
        finally:
            self._record(scope, id, status, time.perf_counter() - start)

    def _set_client_address(self, scope: Scope) -> None:
        """Replace the address of a trusted proxy by that of the client it forwards for."""
        peer = scope.get("client")
        address = peer[0] if peer else ""
        if self._proxies.networks:
            scope["scheme"] = self._proxies.scheme(address, scope["headers"], scope["scheme"])
            address = self._proxies.client(address, scope["headers"])
        scope["client"] = (address, 0)

    def _below_root(self, scope: Scope) -> bool:
        """Remove the root path, if the proxy has kept it; False for the root path without its slash."""
        root = self._settings.root_path
        path = scope["path"]
        if not root:
            return True
        if path == root:
            return False
        if path.startswith(f"{root}/"):
            scope["path"] = path[len(root) :]
            scope["raw_path"] = scope["raw_path"][len(root) :]
        return True

    async def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> BodyLimit:
        """Authenticate the caller and apply the rate limits; returns the limit of the body."""
        path = scope["path"]
        query = _QUERY.fullmatch(path) is not None
        limit = self._limit(path, query=query)
        if not is_public(path):
            caller = await self._caller(scope, headers)
            scope["state"]["caller"] = caller
            (self._queries if query else self._requests).spend(caller.account)
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared[:20]) > limit.bytes:
            raise too_large(limit.bytes)
        return limit

    def _limited_name(self, scope: Scope) -> str | None:
        """The name whose concurrent requests are limited: the account, or the address of a shared link's
        caller.
        """
        caller = scope["state"].get("caller")
        if caller is not None:
            return str(caller.account)
        shared = scope["path"].startswith(SHARED_PREFIX)
        return address_group(scope["client"][0]) if shared else None

    def _limit(self, path: str, *, query: bool) -> BodyLimit:
        if query and path.startswith(SHARED_PREFIX):
            return BodyLimit(min(_SHARED_QUERY_BYTES, self._settings.max_query_bytes))
        if query:
            return BodyLimit(self._settings.max_query_bytes)
        if _UPLOAD.fullmatch(path):
            return BodyLimit(self._settings.max_upload_bytes)
        return BodyLimit(self._settings.max_body_bytes, counted=True)

    async def _caller(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        group = address_group(scope["client"][0])
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() == "bearer" and 0 < len(token) <= _LONGEST_TOKEN:
            caller = await self._context.authenticator.find(token, group)
            if caller is not None:
                return caller
            self._failures.spend(group)
        detail = "this needs a valid token, neither expired nor revoked; send it as Authorization: Bearer"
        raise Refusal(401, "unauthenticated", detail, {"www-authenticate": 'Bearer realm="hushsum"'})

    def _record(self, scope: Scope, id: str, status: int, seconds: float) -> None:
        """Count and log a request by the pattern of its route, since its path may contain anything."""
        route = getattr(scope.get("route"), "path", "unmatched")
        # The method too: the client can send any word.
        method = scope["method"] if route != "unmatched" and scope["method"] in _METHODS else "ANY"
        self._context.metrics.answered(method, route, status, seconds)
        caller = scope["state"].get("caller")
        facts: dict[str, Any] = {"account": caller.account} if caller is not None else {}
        log_event(
            "answered",
            request=id,
            client=scope["client"][0],
            method=method,
            route=route,
            status=status,
            ms=round(seconds * 1000, 2),
            **facts,
        )


def _check_form(scope: Scope) -> None:
    """Refuse requests of which two readers may understand different things: a proxy might take the first of
    two headers where this service takes the last, and HTTP/0.9 has no headers at all.
    """
    names = [name for name, _ in scope["headers"]]
    if scope["http_version"] == "0.9" or any(names.count(each) > 1 for each in _ONCE):
        detail = "send one Host header and at most one Authorization header, over HTTP/1.1"
        raise Refusal(400, "bad-request", detail)


def _with_security_headers(headers: Any, id: str, *, secure: bool) -> list[tuple[bytes, bytes]]:
    """The response's headers, and the default headers that the response does not set.

    A header that the response sets to nothing is left out.
    """
    named = {name for name, _ in headers}
    own = [(name, value) for name, value in headers if value]
    added = [pair for pair in (*_HEADERS, *([_SECURE] if secure else [])) if pair[0] not in named]
    return [*own, *added, (b"x-request-id", id.encode())]


QUERY: Final = "/functions/{function}/query"
_FUNCTION = re.compile(r"/functions/([^/]+)/query")


def queried_function(path: str) -> str | None:
    """The id of the function, if the path is that of a query."""
    found = _FUNCTION.fullmatch(path)
    return None if found is None else found[1]


class QueryFastPath:
    """ASGI middleware inside `RequestMiddleware`: queries go directly to their route's function.

    The router would find the same handler and resolve its one dependency, which takes half of the time of a
    single point. `RequestMiddleware` turns what it raises into a response.
    """

    def __init__(
        self, app: ASGIApp, *, state: Any, query: Callable[[str, Call], Awaitable[Response]]
    ) -> None:
        self._app = app
        self._state = SimpleNamespace(state=state)
        self._route = SimpleNamespace(path=QUERY)
        self._needed = Needed("query")
        self._query = query

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a query; pass other requests on."""
        function = queried_function(scope["path"]) if scope["type"] == "http" else None
        if function is None or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        scope["route"], scope["app"] = self._route, self._state
        response = await self._query(function, await self._needed(Request(scope, receive)))
        await response(scope, receive, send)
