"""RFC 9457: every refusal is a JSON object that says what is wrong and what helps."""

from __future__ import annotations

import errno
import json
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hushsum.errors import (
    AlreadyPublished,
    BudgetExhausted,
    ClaimError,
    DataRefused,
    FileRefused,
    HushsumError,
    IncompatibleTallies,
    LedgerUnavailable,
    QuestionsSpent,
    UsageError,
)
from hushsum.service.store import QuotaExceeded

MEDIA_TYPE: Final = "application/problem+json"
FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MOST_FAULTS = 20

_KINDS: Final[tuple[tuple[type[HushsumError], int, str], ...]] = (
    (BudgetExhausted, 409, "budget-exhausted"),
    (AlreadyPublished, 409, "already-published"),
    (QuestionsSpent, 409, "questions-spent"),
    (LedgerUnavailable, 503, "ledger-unavailable"),
    (IncompatibleTallies, 409, "incompatible-tallies"),
    (ClaimError, 422, "claim-refused"),
    (FileRefused, 422, "file-refused"),
    (DataRefused, 422, "data-refused"),
    (QuotaExceeded, 409, "quota-exceeded"),
    (UsageError, 422, "parameter-refused"),
)


class Refusal(HTTPException):
    """A refusal with a kind of its own, where the status alone says too little."""

    def __init__(self, status: int, kind: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind


def problem(status: int, kind: str, detail: str, **extra: Any) -> dict[str, Any]:
    """The object. ``type`` is a name, for programs; ``detail`` is a sentence, for people."""
    return {
        "type": f"urn:hushsum:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **extra,
    }


def problem_of(error: Exception) -> dict[str, Any]:
    """What is told of an error; of an unexpected one only its class, since its words may quote data."""
    if isinstance(error, HTTPException):
        kind = getattr(error, "kind", HTTPStatus(error.status_code).phrase.lower().replace(" ", "-"))
        return problem(error.status_code, kind, _sentence(error))
    if isinstance(error, ClientDisconnect):
        return problem(400, "bad-request", "the request ended before its end; send it again")
    if isinstance(error, RequestValidationError):
        return problem(
            422, "request-refused", "the request does not have the form asked for", faults=_faults(error)
        )
    for known, status, kind in _KINDS:
        if isinstance(error, known):
            return problem(status, kind, str(error))
    if isinstance(error, OSError) and error.errno in FULL_DISK:
        return problem(507, "disk-full", "the disk of the service is full; nothing was kept, try again later")
    if isinstance(error, MemoryError):
        return problem(503, "out-of-memory", "the memory of the service does not suffice; ask for less")
    return problem(500, "unexpected", f"something unexpected happened ({type(error).__name__}); report it")


def problem_response(error: Exception, request: str) -> Response:
    """The answer to a request that cannot be fulfilled."""
    body = {**problem_of(error), "request": request}
    if isinstance(error, FileRefused):
        # Files of strangers are read by workers; one that a request meets is the service's own.
        body |= {"status": 503, "title": HTTPStatus(503).phrase}
    headers = dict(getattr(error, "headers", None) or {})
    if body["status"] == 503:
        headers.setdefault("retry-after", "5")
    return Response(json.dumps(body), body["status"], headers, MEDIA_TYPE)


async def answer_problem(request: Request, error: Exception) -> Response:
    """For FastAPI's table of handlers."""
    return problem_response(error, request.scope["state"]["request"])


_SENTENCES: Final = {
    404: "there is nothing here, or nothing that you may see; check the address",
    405: "this address does not take that method; see /openapi.json",
    400: "the request cannot be read; send what /openapi.json describes",
}


def _sentence(error: HTTPException) -> str:
    if isinstance(error, Refusal):
        return str(error.detail)
    return _SENTENCES.get(error.status_code, HTTPStatus(error.status_code).description or "refused")


def _faults(error: RequestValidationError) -> list[dict[str, str]]:
    """Where the faults are and which rules they break; never what was sent."""
    return [
        {"at": "/".join(str(part)[:40] for part in each["loc"])[:200], "rule": str(each["type"])}
        for each in error.errors()[:_MOST_FAULTS]
    ]
