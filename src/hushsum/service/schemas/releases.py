"""Releases, their claims, and jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from hushsum.service.schemas.fields import (
    Count,
    FileRequest,
    Id,
    Name,
    PrivacyRequest,
    Relation,
    ResponseBody,
    Unit,
)


class ReleaseClaimRequest(PrivacyRequest, FileRequest):
    """The parameters of a release; see Tally.release. ``public`` is an upload of rows that the owner declares
    public: the function is combined with them, see hushsum.combine. The cells of this file are meant by
    ``decimal`` and the like.
    """

    tally: Id
    name: Name
    public: Id | None = None
    relation: Relation = "add/remove"
    unit: Unit | None = None
    mechanism: Literal["discrete laplace", "gamma radius", "binomial"] | None = None
    rows: Count | Literal["auto"] = "auto"
    count_share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    rounded: bool | None = None
    population: Annotated[int, Field(ge=1, le=10**12)] | None = None
    allow_large_delta: bool = False


class ClaimResponse(ResponseBody):
    """What the release would claim and cost; a release request must repeat ``confirm``."""

    claim: dict[str, Any]
    cost: dict[str, Any]
    remaining: dict[str, Any]
    confirm: str


class ConfirmedReleaseRequest(ReleaseClaimRequest):
    """The same request with the ``confirm`` of the claim that was shown."""

    confirm: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class JobResponse(ResponseBody):
    """A job: queued, running, done, failed or cancelled. While ``paying`` it cannot be cancelled."""

    id: str
    kind: str
    dataset: str
    state: str
    paying: bool
    progress: float | None
    result: dict[str, Any] | None
    problem: dict[str, Any] | None
    created: str
    updated: str
