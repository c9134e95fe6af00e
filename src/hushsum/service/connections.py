"""Connections that do not trust those who connect: limits on heads and silence, problems for broken HTTP."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from hushsum.service.problems import MEDIA_TYPE, problem

MOST_CONNECTIONS: Final = 900
"""A process may usually open 1,024 files, and some of them must be left for the database."""

LONGEST_HEAD: Final = 1 << 16
HEAD_SECONDS: Final = 20.0


class Connection(HttpToolsProtocol):
    """uvicorn's connection with what it leaves to a proxy.

    A request's line and headers must end within `LONGEST_HEAD` bytes and `HEAD_SECONDS`, and so must a body
    that was refused already: neither memory nor a place can be held by whoever never finishes a request.
    Bodies that are wanted have limits of their own.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._in_head = False
        self._in_body = False
        self._head = 0
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let somebody in, unless there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse(503, "busy", "the service has too many connections; try again in a moment")
            return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody is gone."""
        self._heard()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; while a head is not complete, no longer than it may take."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head += len(data)
        if self._head > LONGEST_HEAD:
            self._refuse(431, "too-large", f"the headers must have at most {LONGEST_HEAD} bytes; send fewer")
        elif self._patience is None:
            self._wait()

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head, self._head = True, 0

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
        super().on_response_complete()
        if self._in_body and not self.transport.is_closing():
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered like any other bad request."""
        self._refuse(400, "bad-request", "the request cannot be read as HTTP/1.1; check what sends it")

    def _wait(self) -> None:
        self._patience = self.loop.call_later(HEAD_SECONDS, self._lose_patience)

    def _heard(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        if self._in_body:
            self.transport.close()
        elif not self.transport.is_closing():
            self._refuse(408, "too-slow", f"a request must begin within {HEAD_SECONDS:g} s; connect again")

    def _refuse(self, status: int, kind: str, detail: str) -> None:
        """Answer and hang up. A request that is being answered on this connection is left without an end."""
        if self.cycle is None or self.cycle.response_complete:
            body = json.dumps({**problem(status, kind, detail), "request": secrets.token_hex(8)}).encode()
            head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
            self.transport.write(b"".join([STATUS_LINE[status], head.encode(), b"\r\n", body]))
        self.transport.close()
