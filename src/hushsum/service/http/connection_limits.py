"""Limits of connections: size and time of request heads, number of connections, malformed HTTP."""

from __future__ import annotations

import asyncio
import json
import resource
import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from hushsum.service.http.request_limits import address_group
from hushsum.service.problem_types import MEDIA_TYPE, problem
from hushsum.service.trusted_proxies import TrustedProxies

LONGEST_HEAD: Final = 1 << 16
HEAD_SECONDS: Final = 20.0
_CLOSE_SECONDS: Final = 5.0
_OTHER_FILES: Final = 150
"""Files that a process needs besides its connections: the database, uploads, workers."""
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there may be: in all, and from one address that is not a trusted proxy."""

    most: int = 900
    per_address: int = 200
    proxies: TrustedProxies = field(default_factory=TrustedProxies)


def available_connections() -> int:
    """Raise this process's limit of open files as far as it may be, and return how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _MOST + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return _MOST if soft == resource.RLIM_INFINITY else max(10, min(_MOST, soft - _OTHER_FILES))


class Connection(HttpToolsProtocol):
    """uvicorn's connection with what it leaves to a proxy.

    A request's line and headers must end within `LONGEST_HEAD` bytes and `HEAD_SECONDS`, and so must a body
    that was refused already: neither memory nor a place can be held by whoever never finishes a request.
    Bodies that are read have their own limits.

    Where there are too many connections, an idle one is closed for the new one: of the address that has
    most, the one that has been idle longest, and before all others one that never finished a request. A
    connection that waits for its answer is never closed; how many an account may have is limited elsewhere.
    """

    def __init__(self, *arguments: Any, limits: ConnectionLimits | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits or ConnectionLimits()
        self._in_head = False
        self._in_body = False
        self._head = 0
        self._reported = 0
        self._too_long = False
        self._answered = False
        self._active_at = 0.0
        self._patience: asyncio.TimerHandle | None = None
        self._group = ""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, if need be in the place of an idle one."""
        super().connection_made(transport)
        self._active_at = self.loop.time()
        peer = self.client[0] if self.client else ""
        self._group = address_group(peer)
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        if not self._limits.proxies.trusts(peer):
            same = [each for each in others if each._group == self._group]
            if len(same) >= self._limits.per_address and not _close_idle(same):
                self._refuse(503, "busy", "this address has too many connections; close some")
                return
        if len(others) >= self._limits.most and not _close_idle(others):
            self._refuse(503, "busy", "the service has too many connections; try again in a moment")
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """The other side has left, or was made to."""
        self._heard()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; while a head is not complete, no longer than it may take."""
        if self.transport.is_closing():
            return
        self._active_at = self.loop.time()
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        # What the parser has not reported yet, such as the beginning of a header, counts as well.
        self._head += len(data)
        if self._head > LONGEST_HEAD:
            self._refuse_head()
        elif self._patience is None:
            self._wait()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._head, self._reported = True, 0, 0

    def on_url(self, url: bytes) -> None:
        """A part of the address."""
        self._measure(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._measure(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head is complete."""
        self._in_head, self._in_body = False, True
        self._heard()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A body is complete."""
        self._in_body = False
        self._heard()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is complete; if it was given before the end of the request, that must come soon."""
        self._answered = True
        self._active_at = self.loop.time()
        super().on_response_complete()
        if self._in_body and not self.transport.is_closing():
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is answered like any other bad request."""
        if self._too_long:
            self._refuse_head()
        else:
            self._refuse(400, "bad-request", "the request cannot be read as HTTP/1.1; check what sends it")

    def give_way(self) -> None:
        """Close at once, also if nobody reads what was written."""
        self._heard()
        self.transport.abort()

    def _measure(self, size: int) -> None:
        """Count a head that arrives together with its end; an exception here stops the parser."""
        self._reported += size
        if self._reported > LONGEST_HEAD:
            self._too_long = True
            raise ValueError("the head of the request is too long")

    def _wait(self) -> None:
        self._patience = self.loop.call_later(HEAD_SECONDS, self._lose_patience)

    def _heard(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        if self._in_body:
            self._close()
        elif not self.transport.is_closing():
            self._refuse(408, "too-slow", f"a request must begin within {HEAD_SECONDS:g} s; connect again")

    def _refuse_head(self) -> None:
        self._refuse(431, "too-large", f"the headers must have at most {LONGEST_HEAD} bytes; send fewer")

    def _refuse(self, status: int, kind: str, detail: str) -> None:
        """Answer and hang up. A request that is being answered on this connection is left without an end."""
        if self.cycle is None or self.cycle.response_complete:
            body = json.dumps({**problem(status, kind, detail), "request": secrets.token_hex(8)}).encode()
            head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
            self.transport.write(b"".join([STATUS_LINE[status], head.encode(), b"\r\n", body]))
        self._close()

    def _close(self) -> None:
        """Close once everything is written, or a few seconds later if nobody reads it."""
        self.transport.close()
        self.loop.call_later(_CLOSE_SECONDS, self.transport.abort)


def _close_idle(connections: Iterable[Connection]) -> bool:
    """Close one idle connection, of the address that has most of them; False if all are at work."""
    idle = [each for each in connections if each.is_idle and not each.transport.is_closing()]
    if not idle:
        return False
    number = Counter(each._group for each in idle)
    victim = min(idle, key=lambda each: (-number[each._group], each._answered, each._active_at))
    victim.give_way()
    return True
