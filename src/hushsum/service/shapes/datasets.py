"""Datasets, uploads, tallies, plans and what the ledger says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hushsum.service.shapes.basic import (
    Bounds,
    Column,
    Count,
    Id,
    KernelAsked,
    Name,
    Positive,
    Promise,
    Relation,
    Told,
)


class NewDataset(Promise):
    """A dataset and its total budget; see DatasetTerms."""

    name: Name
    accounting: Literal["pure", "basic", "zcdp"] | None = None
    unit: Literal["record", "person"] = "record"
    max_per_unit: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    relation: Relation = "add/remove"
    population: Annotated[int, Field(ge=1, le=10**12)] | None = None
    allow_large_delta: bool = False


class DatasetTold(Told):
    """A dataset; ``budget`` is how it stands in the ledger."""

    id: str
    name: str
    created: str
    budget: dict[str, Any]


class UploadTold(Told):
    """An upload. It is never given back."""

    id: str
    format: str
    size: int
    state: str
    created: str


class NewTally(KernelAsked):
    """What to count of an upload, and how. Nothing of it may be chosen by looking at the records."""

    upload: Id
    columns: Annotated[list[Column], Field(min_length=1, max_length=4096)] | None = None
    unit_column: Column | None = None
    set_column: Column | None = None
    method: Literal["race", "grid", "fourier_features"] = "race"
    rows: Count | None = None
    width: Annotated[int, Field(ge=2, le=10**8)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    bounds: Bounds | None = None
    spacing: Positive | None = None
    features: Count | None = None
    max_per_unit: Annotated[int, Field(ge=1, le=1 << 20)] | None = None


class TallyTold(Told):
    """A confidential tally: what it is, and nothing that was counted."""

    id: str
    created: str
    facts: dict[str, Any]


class PlanAsked(KernelAsked):
    """A question about errors, from declared quantities only.

    With ``tally`` it is about releasing that one: its kernel, bounds, shape and records a person stand for
    those of the question.
    """

    tally: Id | None = None
    records: Annotated[int, Field(ge=1, le=10**12)]
    dim: Annotated[int, Field(ge=1, le=1 << 16)] | None = None
    epsilon: Annotated[list[Positive], Field(min_length=1, max_length=8)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    rho: Positive | None = None
    rows: Annotated[list[Count], Field(min_length=1, max_length=8)] | None = None
    width: Annotated[int, Field(ge=2, le=10**8)] | None = None
    method: Literal["auto", "race", "grid", "fourier_features"] = "auto"
    bounds: Bounds | None = None
    density: Annotated[float, Field(gt=0, le=1)] | None = None
    relation: Relation = "add/remove"
    max_per_unit: Annotated[int, Field(ge=1, le=1 << 20)] | None = None


class PlanTold(Told):
    """The options with their predicted errors, the best one marked."""

    records: int
    density: float
    basis: str
    options: list[dict[str, Any]]


class LedgerTold(Told):
    """How a dataset stands, its releases, and the head of the chain to keep elsewhere."""

    status: dict[str, Any]
    history: list[dict[str, Any]]
    receipt: dict[str, Any]
