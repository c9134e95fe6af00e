"""Streams: datasets that receive uploads over time, and release a function at every step."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints

from hushsum.jobs.kernel_and_method import TableSize, empty_tally
from hushsum.jobs.record_files import RecordFiles
from hushsum.privacy.over_time.stream_noise import MOST_STEPS
from hushsum.privacy.release_request import ReleaseRequest
from hushsum.service.schemas.datasets import CountRequest
from hushsum.service.schemas.fields import (
    Column,
    Id,
    Name,
    PrivacyRequest,
    Relation,
    RequestBody,
    ResponseBody,
)
from hushsum.service.schemas.releases import ClaimResponse
from hushsum.streams.start import FILES_IN_TIME, PreparedStream, StreamRequest, prepare_stream
from hushsum.tally.tally import Tally

Steps = Annotated[int, Field(ge=1, le=MOST_STEPS)]


class StreamClaimRequest(CountRequest, PrivacyRequest):
    """What a stream counts and shows, and its claim; see hushsum.stream. The columns must be named."""

    name: Name
    columns: Annotated[list[Column], Field(min_length=1, max_length=4096)]
    steps: Steps
    window: Steps | None = None
    decay: Annotated[float, Field(gt=0, lt=1)] | None = None
    relation: Relation = "add/remove"
    count_share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    rounded: bool | None = None
    population: Annotated[int, Field(ge=1, le=10**12)] | None = None
    allow_large_delta: bool = False

    def pattern(self) -> Tally:
        """An empty tally of what is counted."""
        choice = self.choice()
        kernel = choice.build(None if choice.takes_sets else len(self.columns), self.columns)
        size = TableSize(
            self.method,
            self.rows,
            self.width,
            self.seed,
            self.declared_bounds(),
            self.spacing,
            self.features,
            self.degree,
            None,
            self.groups,
            self.structured,
        )
        named = None if choice.takes_sets else self.columns
        return empty_tally(kernel, size, columns=named, max_per_unit=self.max_per_unit, cells=self.cells())

    def files(self, path: str, name: str) -> RecordFiles:
        """The records of an upload."""
        return RecordFiles(
            (path,), tuple(self.columns), self.unit_column, self.set_column, name, cells=self.cells()
        )

    def prepare(self) -> PreparedStream:
        """The stream, checked and not paid; the service adds the budget."""
        self.cells()
        request = ReleaseRequest(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            relation=self.relation,
            count_share=self.count_share,
            rounded=self.rounded,
            population=self.population,
            allow_large_delta=self.allow_large_delta,
        )
        stream = StreamRequest(request, self.steps, self.window, self.decay, assumptions=(FILES_IN_TIME,))
        return prepare_stream(self.pattern(), stream)


class ConfirmedStreamRequest(StreamClaimRequest):
    """The same request with the ``confirm`` of the claim that was shown."""

    confirm: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class StreamClaimResponse(ClaimResponse):
    """What all steps would claim and cost, and the noise of the last one in units of one release."""

    ratio: float
    state_bytes: int


def _each_once(uploads: list[str]) -> list[str]:
    if len(set(uploads)) != len(uploads):
        raise ValueError("must name each upload once: its records would count twice")
    return uploads


class StepRequest(RequestBody):
    """The uploads that the step counts; none is allowed, because a step must not depend on the records."""

    uploads: Annotated[list[Id], Field(max_length=64, default_factory=list), AfterValidator(_each_once)]


class StreamStepRequest(StepRequest):
    """The same with the stream, as a job stores it."""

    stream: Id


class StreamResponse(ResponseBody):
    """A stream, and the functions of its steps in their order."""

    id: str
    name: str
    created: str
    steps: int
    released: int
    shows: str
    claim: dict[str, Any]
    functions: list[str]
