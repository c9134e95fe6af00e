"""Requests of releases, their claims, and the work that follows."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from hushsum.service.shapes.basic import Count, Id, Name, Promise, Relation, Told


class ReleaseRequestBody(Promise):
    """What is requested of a release; see Tally.release."""

    tally: Id
    name: Name
    relation: Relation = "add/remove"
    mechanism: Literal["gamma radius"] | None = None
    rows: Count | Literal["auto"] = "auto"
    count_share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    rounded: bool | None = None
    population: Annotated[int, Field(ge=1, le=10**12)] | None = None
    allow_large_delta: bool = False


class ClaimResponse(Told):
    """What such a release would claim and cost; ``confirm`` is what agrees to it."""

    claim: dict[str, Any]
    cost: dict[str, Any]
    remaining: dict[str, Any]
    confirm: str


class NewRelease(ReleaseRequestBody):
    """The request once more, and the ``confirm`` of the claim that was shown."""

    confirm: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class JobTold(Told):
    """Long work: queued, running, done or failed."""

    id: str
    kind: str
    dataset: str
    state: str
    progress: float | None
    result: dict[str, Any] | None
    problem: dict[str, Any] | None
    created: str
    updated: str
