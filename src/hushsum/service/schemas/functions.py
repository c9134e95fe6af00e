"""Released functions, who may ask them, and answers."""

from __future__ import annotations

from typing import Any

from hushsum.service.schemas.fields import RequestBody, ResponseBody


class FunctionResponse(ResponseBody):
    """A released function: its claim and everything else that is public."""

    id: str
    dataset: str
    name: str
    sha256: str
    created: str
    owned: bool
    download: bool
    facts: dict[str, Any]


class GrantRequest(RequestBody):
    """What somebody may do with a function, besides asking it."""

    download: bool = False


class GrantResponse(ResponseBody):
    """Somebody who may ask a function."""

    account: str
    download: bool


class QueryRequest(RequestBody):
    """Queries: rows of numbers, or sets of integers for a kernel on sets."""

    points: list[list[float]]


class QueryResponse(ResponseBody):
    """One answer a point; null where it is not known. ``probability`` and ``decision`` have a row a point
    with one number for each class.
    """

    of: str
    level: float
    prediction: list[float | int | bool | str] | None = None
    value: list[float | None] | None = None
    stderr: list[float | None] | None = None
    lower: list[float | None] | None = None
    upper: list[float | None] | None = None
    bound: list[float | None] | None = None
    probability: list[list[float | None]] | None = None
    decision: list[list[float | None]] | list[float | None] | None = None
    score: list[float | None] | None = None
