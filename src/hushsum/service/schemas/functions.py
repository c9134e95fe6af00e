"""Released functions, their grants, and queries."""

from __future__ import annotations

from typing import Any

from hushsum.service.schemas.fields import RequestBody, ResponseBody


class FunctionResponse(ResponseBody):
    """A released function: its claim and everything else that is public. Sums of a function that is not
    ``signed`` are counts of records, each weighted by its similarity.
    """

    id: str
    dataset: str
    name: str
    sha256: str
    created: str
    owned: bool
    download: bool
    signed: bool
    facts: dict[str, Any]


class GrantRequest(RequestBody):
    """What an analyst may do with a function besides querying it."""

    download: bool = False


class GrantResponse(ResponseBody):
    """An account that may query a function."""

    account: str
    download: bool


class QueryRequest(RequestBody):
    """Query points: rows of numbers, or sets of integers for a kernel on sets."""

    points: list[list[float]]


class QueryResponse(ResponseBody):
    """One answer per point; null where it is not known. ``probability`` and ``decision`` have one row per
    point with one number per class.
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
