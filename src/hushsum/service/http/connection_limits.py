"""Limits of connections: size and time of request heads, number of connections, malformed HTTP."""

from __future__ import annotations

import asyncio
import contextvars
import http
import json
import resource
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hushsum.service.problem_types import MEDIA_TYPE, problem
from hushsum.service.trusted_proxies import TrustedProxies

from .request_limits import address_group

LONGEST_HEAD: Final = 1 << 16
HEAD_SECONDS: Final = 20.0
_CLOSE_SECONDS: Final = 5.0
# Files that a process needs besides its connections: the database, uploads, workers.
_OTHER_FILES: Final = 150
_MOST: Final = 10_000


def available_connections() -> int:
    """Raise this process's limit of open files as far as it may be, and return how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _MOST + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return _MOST if soft == resource.RLIM_INFINITY else max(10, min(_MOST, soft - _OTHER_FILES))


Application = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(eq=False)
class GuardedConnections:
    """uvicorn's connections, with what it leaves to a proxy; given to ``uvicorn.Config`` as ``http``.

    A request's line and headers must end within `LONGEST_HEAD` bytes and `HEAD_SECONDS`, and so must a body
    that was refused already: neither memory nor a place can be held by whoever never finishes a request.
    Bodies that are read have their own limits.

    Where there are too many connections, an idle one is closed for the new one: of the address that has
    most, the one that has been idle longest, and before all others one that never finished a request. A
    connection that waits for its answer is never closed; how many an account may have is limited elsewhere.

    There may be ``most`` connections in all, and ``per_address`` from one address but a trusted proxy's.
    """

    most: int = 900
    per_address: int = 200
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    open: set[_Connection] = field(default_factory=set)

    def __call__(self, **options: Any) -> asyncio.Protocol:
        """The protocol of one connection, as uvicorn makes it."""
        return _Connection(self, HttpToolsProtocol(**options))

    def counting(self, app: Application) -> Application:
        """The application, so that it is known which connections wait for an answer."""

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            connection = _ANSWERED.get(None)
            try:
                await app(scope, receive, send)
            finally:
                if connection is not None and scope["type"] == "http":
                    connection.answered()

        return counted


# The connection whose bytes are read; the task that answers a request inherits it.
_ANSWERED: contextvars.ContextVar[_Connection] = contextvars.ContextVar("connection")


class _Connection(asyncio.Protocol):
    """Follows the requests on a connection with a parser of its own, and passes on what is within limits."""

    def __init__(self, guard: GuardedConnections, inner: asyncio.Protocol) -> None:
        self._guard = guard
        self._inner = inner
        self._context = contextvars.copy_context()
        self._context.run(_ANSWERED.set, self)
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        # As in uvicorn: else what follows a request that closes the connection would be an error.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._transport: asyncio.Transport
        self._url = b""
        self._in_head = False
        self._in_body = False
        self._head = 0
        self._reported = 0
        self._too_long = False
        self._waiting = 0
        self.was_answered = False
        self.active_at = 0.0
        self._patience: asyncio.TimerHandle | None = None
        self.group = ""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._waiting and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a connection, if need be in the place of an idle one."""
        self._transport = cast("asyncio.Transport", transport)
        self._inner.connection_made(transport)
        self.active_at = self._loop.time()
        name = transport.get_extra_info("peername")
        peer = str(name[0]) if isinstance(name, tuple) else ""
        self.group = address_group(peer)
        others, limits = list(self._guard.open), self._guard
        self._guard.open.add(self)
        if not limits.proxies.trusts(peer):
            same = [each for each in others if each.group == self.group]
            if len(same) >= limits.per_address and not _close_idle(same):
                self._refuse(503, "busy", "this address has too many connections; close some")
                return
        if len(others) >= limits.most and not _close_idle(others):
            self._refuse(503, "busy", "the service has too many connections; try again in a moment")
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has left, or was made to."""
        self._heard()
        self._guard.open.discard(self)
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """The other side sends nothing more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """The other side reads slowly."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The other side reads again."""
        self._inner.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Read on; while a head is not complete, no longer than it may take."""
        if self._transport.is_closing():
            return
        self.active_at = self._loop.time()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Refused by the application, like any other request.
            pass
        except httptools.HttpParserError:
            if self._too_long:
                self._refuse_head()
            else:
                self._refuse(
                    400, "bad-request", "the request cannot be read as HTTP/1.1; check what sends it"
                )
            return
        if self._in_head:
            # What the parser has not reported yet, such as the beginning of a header, counts as well.
            self._head += len(data)
            if self._head > LONGEST_HEAD:
                self._refuse_head()
                return
            if self._patience is None:
                self._wait()
        self._context.run(self._inner.data_received, data)

    def on_message_begin(self) -> None:
        """A head begins."""
        self._in_head, self._head, self._reported, self._url = True, 0, 0, b""

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        self._measure(len(url))
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._measure(len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        """A head is complete; an exception here, for an address that is none, stops the parser."""
        httptools.parse_url(self._url).path.decode("ascii")
        self._in_head, self._in_body = False, True
        self._waiting += 1
        self._heard()

    def on_message_complete(self) -> None:
        """A body is complete."""
        self._in_body = False
        self._heard()

    def answered(self) -> None:
        """An answer is complete; if it was given before the end of the request, that must come soon."""
        self._waiting -= 1
        self.was_answered = True
        self.active_at = self._loop.time()
        if self._in_body and not self._waiting and not self._transport.is_closing():
            self._wait()

    def give_way(self) -> None:
        """Close at once, also if nobody reads what was written."""
        self._heard()
        self._transport.abort()

    def _measure(self, size: int) -> None:
        """Count a head that arrives together with its end; an exception here stops the parser."""
        self._reported += size
        if self._reported > LONGEST_HEAD:
            self._too_long = True
            raise ValueError("the head of the request is too long")

    def _wait(self) -> None:
        self._heard()
        self._patience = self._loop.call_later(HEAD_SECONDS, self._lose_patience)

    def _heard(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        if self._in_body:
            self._close()
        elif not self._transport.is_closing():
            self._refuse(408, "too-slow", f"a request must begin within {HEAD_SECONDS:g} s; connect again")

    def _refuse_head(self) -> None:
        self._refuse(431, "too-large", f"the headers must have at most {LONGEST_HEAD} bytes; send fewer")

    def _refuse(self, status: int, kind: str, detail: str) -> None:
        """Answer and hang up. A request that is being answered on this connection is left without an end."""
        if not self._waiting:
            body = json.dumps({**problem(status, kind, detail), "request": secrets.token_hex(8)}).encode()
            head = (
                f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self._transport.write(head.encode() + body)
        self._close()

    def _close(self) -> None:
        """Close once everything is written, or a few seconds later if nobody reads it."""
        self._transport.close()
        self._loop.call_later(_CLOSE_SECONDS, self._transport.abort)


def _close_idle(connections: Iterable[_Connection]) -> bool:
    """Close one idle connection of the address that has the most idle connections.

    Returns False if no connection is idle.
    """
    idle = [each for each in connections if each.is_idle]
    if not idle:
        return False
    number = Counter(each.group for each in idle)
    victim = min(idle, key=lambda each: (-number[each.group], each.was_answered, each.active_at))
    victim.give_way()
    return True
