"""Refusals as HTTP responses: RFC 9457 problem details for every error."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hushsum.errors import FileRefused
from hushsum.service.problem_types import MEDIA_TYPE, problem, problem_of_error

_MOST_FAULTS = 20
# Headers of what pages of other origins may read.
ANY_ORIGIN: Final = {"access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin"}


class Refusal(HTTPException):
    """An HTTP error whose problem type is more specific than its status."""

    def __init__(self, status: int, kind: str, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind


def problem_of(error: Exception) -> dict[str, Any]:
    """The problem details of any error that a request can end with."""
    if isinstance(error, HTTPException):
        if isinstance(error, Refusal):
            return problem(error.status_code, error.kind, error.detail)
        status = HTTPStatus(error.status_code)
        sentence = _SENTENCES.get(status, status.description or "refused")
        return problem(status, status.phrase.lower().replace(" ", "-"), sentence)
    if isinstance(error, ClientDisconnect):
        return problem(400, "bad-request", "the request body is incomplete; send it again")
    if isinstance(error, RequestValidationError):
        # The location of each fault and the rule it breaks; never the value that was sent.
        faults = [
            {"at": "/".join(str(part)[:40] for part in each["loc"])[:200], "rule": str(each["type"])}
            for each in error.errors()[:_MOST_FAULTS]
        ]
        return problem(422, "request-refused", "the request does not match the schema", faults=faults)
    return problem_of_error(error)


def problem_response(error: Exception, request: str) -> Response:
    """The response to a request that failed."""
    body = {**problem_of(error), "request": request}
    if isinstance(error, FileRefused):
        # Uploaded files are read by workers only; a file that a request reads is the service's own.
        body |= {"status": 503, "title": HTTPStatus(503).phrase}
    headers = dict(getattr(error, "headers", None) or {})
    if body["status"] == 503:
        headers.setdefault("retry-after", "5")
    return Response(json.dumps(body), body["status"], headers, MEDIA_TYPE)


async def answer_problem(request: Request, error: Exception) -> Response:
    """The exception handler that FastAPI calls."""
    return problem_response(error, request.scope["state"]["request"])


_SENTENCES: Final = {
    404: "there is nothing here, or nothing that you may access; check the address",
    405: "this address does not support that method; see /openapi.json",
    400: "the request cannot be parsed; see /openapi.json",
}
