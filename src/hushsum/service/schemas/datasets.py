"""Datasets, uploads, tallies, plans and ledger entries."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hushsum.methods.registry import default_kernel
from hushsum.service.schemas.fields import (
    Column,
    ColumnsRequest,
    Count,
    FileRequest,
    Id,
    KernelRequest,
    Name,
    PlannedMethod,
    Positive,
    PrivacyRequest,
    Reason,
    Relation,
    RequestBody,
    ResponseBody,
    TallyMethod,
    Unit,
)


class DatasetRequest(PrivacyRequest):
    """A dataset and its total budget; see DatasetTerms."""

    name: Name
    accounting: Literal["pure", "basic", "zcdp"] | None = None
    unit: Unit = "record"
    max_per_unit: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    relation: Relation = "add/remove"
    population: Annotated[int, Field(ge=1, le=10**12)] | None = None
    allow_large_delta: bool = False


class DatasetResponse(ResponseBody):
    """A dataset; ``budget`` is its state in the ledger."""

    id: str
    name: str
    created: str
    budget: dict[str, Any]


class UploadResponse(ResponseBody):
    """An upload. Its content cannot be downloaded. One that waits is deleted when it was counted, and at
    ``expires`` otherwise, unless a job needs it then.
    """

    id: str
    name: str | None
    format: str
    size: int
    state: str
    created: str
    expires: str | None


class SampleResponse(ResponseBody):
    """A dataset of made-up records with its upload, and what its owner would declare of them."""

    dataset: DatasetResponse
    upload: UploadResponse
    header: list[str]
    columns: list[str]
    bounds: list[list[float]]
    bandwidth: float
    records: int


GridStep = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""The distance of neighbouring values of a column; 0 for a column without."""


class CountRequest(ColumnsRequest, FileRequest):
    """What is counted of records, and how. No parameter may be chosen by looking at the records."""

    unit_column: Column | None = None
    method: TallyMethod | None = None
    rows: Count | None = None
    width: Annotated[int, Field(ge=2, le=10**8)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    spacing: Positive | None = None
    features: Count | None = None
    degree: Annotated[int, Field(ge=2, le=5)] | None = None
    groups: Annotated[int, Field(ge=1, le=1 << 10)] | None = None
    structured: bool | None = None
    max_per_unit: Annotated[int, Field(ge=1, le=1 << 20)] | None = None

    def _default_kernel(self) -> str:
        sets = self.set_column is not None
        return default_kernel(self.method, sets=sets, rows=self.rows, width=self.width)


class TallyRequest(CountRequest):
    """What to count of an upload, and how. No parameter may be chosen by looking at the records.

    ``public`` is an upload of rows that the owner declares public: it decides ``bandwidth`` and ``bounds``
    where they are not given, and the claims of releases say so. Records that mostly lie outside ``bounds``
    are refused unless ``allow_clipping``.
    """

    upload: Id
    public: Id | None = None
    steps: Annotated[list[GridStep], Field(min_length=1, max_length=4)] | None = None
    allow_clipping: bool = False


class TallyResponse(ResponseBody):
    """The public description of a confidential tally, without its counts."""

    id: str
    created: str
    cells: int
    size: int
    facts: dict[str, Any]


class WriteOffRequest(RequestBody):
    """A charge for what was spent outside the ledger, or lost from it; 0 is allowed."""

    epsilon: Annotated[float, Field(ge=0, lt=1e9)] | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    rho: Annotated[float, Field(ge=0, lt=1e9)] | None = None
    reason: Reason


class PlanRequest(KernelRequest, FileRequest):
    """A request for predicted errors, from declared quantities only.

    With ``tally`` the plan is for releasing that tally: its kernel, bounds, shape and records per person
    replace those of the request. With ``error`` in place of ``epsilon``, for the smallest ε that reaches it.
    ``public`` is an upload of rows that the owner declares public, from which errors are estimated; the cells
    of this file are meant by ``decimal`` and the like.
    """

    tally: Id | None = None
    public: Id | None = None
    records: Annotated[int, Field(ge=1, le=10**12)]
    dim: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    epsilon: Annotated[list[Positive], Field(min_length=1, max_length=8)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    rho: Positive | None = None
    rows: Annotated[list[Count], Field(min_length=1, max_length=8)] | None = None
    width: Annotated[int, Field(ge=2, le=10**8)] | None = None
    method: PlannedMethod = "auto"
    density: Annotated[float, Field(gt=0, le=1)] | None = None
    relation: Relation = "add/remove"
    max_per_unit: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    error: Positive | None = None

    def _default_kernel(self) -> str:
        return default_kernel(self.method, rows=self.rows, width=self.width)

    @model_validator(mode="after")
    def _columns_of_bounds(self) -> Self:
        """Bounds by name give the number of columns too, where it is not given."""
        if self.dim is None and self.tally is None and isinstance(self.bounds, dict):
            self.dim = len(self.bounds)
        return self


class PlanResponse(ResponseBody):
    """The options with their predicted errors, the best one marked."""

    records: int
    density: float
    basis: str
    options: list[dict[str, Any]]


class LedgerResponse(ResponseBody):
    """The state of a dataset's budget, its releases, and a receipt to keep elsewhere."""

    status: dict[str, Any]
    history: list[dict[str, Any]]
    receipt: dict[str, Any]
