"""Health and problems."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from hushsum.service.schemas.fields import Reason, RequestBody, ResponseBody


class HealthResponse(ResponseBody):
    """Whether the process is alive or ready; and if not, why."""

    status: str
    reasons: list[str] = Field(default=[])


class LedgerStateResponse(ResponseBody):
    """Whether the ledger accepts debits; ``problem`` is why not, until an administrator accepts a restore."""

    id: str
    problem: str | None


class RestoreRequest(RequestBody):
    """The decision to continue with a ledger that may be a restored backup."""

    reason: Reason


class RestoreResponse(ResponseBody):
    """How many datasets were frozen; the owner of each opens it again with a write-off."""

    frozen: int


class ErrorFields(BaseModel):
    """What an error is about; a text may be a list of strings and parts that clients spell themselves."""

    parameter: str | None
    rule: str | dict[str, Any] | list[str | dict[str, Any]]
    got: str | None
    remedy: str | dict[str, Any] | list[str | dict[str, Any]] | None
    sha256: str | None = None


class Problem(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request: str
    faults: list[dict[str, str]] = []
    error: ErrorFields | None = None
