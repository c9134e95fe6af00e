"""Bodies about datasets: budgets, uploads, tallies, plans, releases, streams and ledger entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from hushsum.declaration import parameters_of
from hushsum.errors import UsageError
from hushsum.operations import RecordFiles
from hushsum.planning import KernelSpec, MethodSpec, TableSpec, empty_tally
from hushsum.planning import PlanRequest as DeclaredPlan
from hushsum.privacy import AUTO, ReleaseRequest
from hushsum.records import CellFormat
from hushsum.service.schemas._fields import (
    UPLOAD_NAME,
    Bounds,
    Column,
    ColumnsRequest,
    FileRequest,
    Id,
    KernelRequest,
    Name,
    Positive,
    PrivacyRequest,
    Reason,
    Relation,
    RequestBody,
    ResponseBody,
    Unit,
    built_from,
    with_fields_of,
)
from hushsum.streams import FILES_IN_TIME, PreparedStream, StreamRequest, prepare_stream
from hushsum.tally import Tally


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


@with_fields_of(RecordFiles, TableSpec)
class CountRequest(ColumnsRequest, FileRequest):
    """What is counted of records, and how. No parameter may be chosen by looking at the records."""

    def record_files(self) -> RecordFiles:
        """Which columns are counted, of files that are not named yet."""
        return built_from(self, RecordFiles)

    def table(self) -> TableSpec:
        """The shape of the tally."""
        return built_from(self, TableSpec)

    def kernel_spec(self) -> KernelSpec:
        """The kernel, which depends on the table where none is named."""
        table, sets = self.table(), self.set_column is not None
        chosen = super().kernel_spec()
        return chosen.for_records(method=table.method, sets=sets, rows=table.rows, width=table.width)


@with_fields_of(TableSpec)
class TallyRequest(CountRequest):
    """What to count of an upload, and how. No parameter may be chosen by looking at the records.

    ``public`` is an upload of rows that the owner declares public: it decides ``bandwidth`` and ``bounds``
    where they are not given, and the claims of releases say so. Records that mostly lie outside ``bounds``
    are refused unless ``allow_clipping``.
    """

    upload: Id
    public: Id | None = None
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


@with_fields_of(DeclaredPlan, most_listed=8)
class PlanRequest(KernelRequest, FileRequest):
    """A request for predicted errors, from declared quantities only.

    With ``tally`` the plan is for releasing that tally: its kernel, bounds, shape and records per person
    replace those of the request. With ``error`` in place of ``epsilon``, for the smallest ε that reaches it.
    ``public`` is an upload of rows that the owner declares public, from which errors are estimated; the cells
    of this file are meant by ``decimal`` and the like.
    """

    tally: Id | None = None
    public: Id | None = None

    def plan_request(self) -> DeclaredPlan:
        """The request as :func:`hushsum.plan` makes it."""
        return built_from(self, DeclaredPlan)


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


@with_fields_of(ReleaseRequest, MethodSpec, RecordFiles)
class ReleaseClaimRequest(ColumnsRequest, FileRequest):
    """The parameters of a release, of a ``tally`` or of an ``upload``.

    An upload is planned, counted and released as by hushsum.release: by the method with the smallest
    predicted error, unless ``method`` names one. Its columns must be named, by ``columns`` or by ``bounds``,
    and no parameter may be chosen by looking at the records. Records that mostly lie outside ``bounds`` are
    refused before anything is debited, unless ``allow_clipping``.

    ``public`` is an upload of rows that the owner declares public: the function is combined with them, see
    hushsum.releases.combine. With an ``upload`` they decide bandwidth and bounds where these are not given.
    """

    tally: Id | None = None
    upload: Id | None = None
    name: Name
    public: Id | None = None
    allow_clipping: bool = False

    def check_source(self) -> None:
        """Refuse a request that is for neither a tally nor an upload, or mixes both."""
        if (self.tally is None) == (self.upload is None):
            raise UsageError("upload", "must be given, or a tally", got="both or neither")
        if self.upload is None:
            of_records = _names(MethodSpec, RecordFiles, KernelSpec) - _names(ReleaseRequest, CellFormat)
            for name in sorted(self.model_dump(exclude_defaults=True).keys() & of_records):
                raise UsageError(name, "is for an upload", got="it for a tally")
        elif self.columns is None and self.set_column is None:
            raise UsageError("columns", "must be named", got="none")

    def record_files(self, path: str = UPLOAD_NAME) -> RecordFiles:
        """The records of the upload, which is at a path."""
        return replace(built_from(self, RecordFiles), paths=(path,), name=UPLOAD_NAME)

    def method_spec(self) -> MethodSpec:
        """How they are released."""
        return built_from(self, MethodSpec)

    def release_request(self) -> ReleaseRequest:
        """The request that a tally takes. The service adds the budget and the idempotency key."""
        return built_from(self, ReleaseRequest)


class ClaimResponse(ResponseBody):
    """What the release would claim and cost; a release request must repeat ``confirm``."""

    claim: dict[str, Any]
    cost: dict[str, Any]
    remaining: dict[str, Any]
    confirm: str


def _names(*requests: Any) -> set[str]:
    return {each.name for request in requests for each in parameters_of(request)}


class ReleaseClaimResponse(ClaimResponse):
    """The claim of a release and, for an upload, what its plan chose: the method with its sizes and predicted
    error. ``advice`` are sentences about parameters to consider before spending.
    """

    option: dict[str, Any] | None = None
    advice: list[str] | None = None


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


@with_fields_of(StreamRequest, without=("unit", "mechanism", "rows"))
class StreamClaimRequest(CountRequest):
    """What a stream counts and shows, and its claim; see hushsum.stream. The columns must be named."""

    name: Name
    columns: Annotated[list[Column], Field(min_length=1, max_length=4096)]

    def pattern(self) -> Tally:
        """An empty tally of what is counted."""
        choice, bounds = self.kernel_spec(), self.declared_bounds()
        named = None if choice.takes_sets else self.columns
        kernel = choice.build(None if named is None else len(named), self.columns, bounds)
        return empty_tally(
            kernel,
            self.table(),
            bounds=bounds,
            columns=named,
            max_per_unit=self.record_files().max_per_unit,
            cells=self.cells(),
        )

    def files(self, path: str, name: str) -> RecordFiles:
        """The records of an upload."""
        return replace(self.record_files(), paths=(path,), name=name)

    def prepare(self) -> PreparedStream:
        """The stream, checked and not paid; the service adds the budget."""
        self.cells()
        return prepare_stream(self.pattern(), self.stream_request())

    def stream_request(self) -> StreamRequest:
        """The horizon, what the steps show, and their claim."""
        stream = built_from(self, StreamRequest)
        # The rows of the body are those of the table, all of which are released.
        release = replace(stream.release, rows=AUTO)
        return replace(stream, release=release, assumptions=(FILES_IN_TIME,))


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
    horizon: int
    released: int
    shows: str
    claim: dict[str, Any]
    functions: list[str]


Scalar = bool | int | float | Annotated[str, StringConstraints(max_length=80)] | None


class ModelClaimRequest(FileRequest):
    """A model to fit on an upload, and its privacy parameters. None may be chosen by looking at the data.

    ``classes`` lists every label, as text. ``records`` is a declared or estimated number, from which the
    error is predicted; it changes nothing else. ``public`` is an upload of rows that the owner declares
    public: it decides ``bounds``, and the settings that may be ``public``, where they are not given. In the
    mode ``exact`` the service keeps the records and answers at most ``most_questions`` different points;
    ``file`` answers any number, and can be downloaded. Records that mostly lie outside ``bounds`` are refused
    before anything is debited, unless ``allow_clipping``.
    """

    upload: Id
    name: Name
    model: Annotated[str, StringConstraints(max_length=40)]
    columns: Annotated[list[Column], Field(min_length=1, max_length=4096)]
    target: Column | None = None
    classes: Annotated[list[Column], Field(min_length=1, max_length=1000)] | None = None
    bounds: Bounds | None = None
    public: Id | None = None
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    records: Annotated[int, Field(ge=1, le=10**12)] | None = None
    mode: Literal["file", "exact"] = "file"
    allow_clipping: bool = False
    most_questions: Annotated[int, Field(ge=1, le=5000)] = 1000
    settings: Annotated[
        dict[
            Annotated[str, StringConstraints(max_length=40)],
            Scalar | Annotated[list[Scalar], Field(max_length=64)],
        ],
        Field(max_length=40),
    ] = Field(default={})


class ConfirmedModelRequest(ModelClaimRequest):
    """The same request with the ``confirm`` of the claim that was shown."""

    confirm: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class PredictedErrorResponse(ResponseBody):
    """The expected error at one point: ``of`` names the answer, ``note`` the basis of the prediction."""

    of: str
    error: float
    records: int
    note: str


class ModelClaimResponse(ClaimResponse):
    """The claim of a model; ``predicted`` is null where declared numbers predict no error. ``advice`` are
    sentences about what to consider before spending, such as a model that is usually better.
    """

    predicted: PredictedErrorResponse | None
    advice: list[str]


class ModelSettingResponse(ResponseBody):
    """A setting of a model, of the type ``number``, ``integer``, ``text`` or ``pair``; ``rule`` is a
    sentence about the allowed values.
    """

    name: str
    type: str
    default: Any
    optional: bool
    listed: bool
    choices: list[str] | None
    rule: str
    help: str


class KernelResponse(ResponseBody):
    """A kernel of columns, and the names of its parameters. Sums of one that is not ``signed`` are counts.
    ``settings`` are what a form offers beside its bandwidth.
    """

    name: str
    parameters: list[str]
    signed: bool
    settings: list[ModelSettingResponse]


class ModelKindResponse(ResponseBody):
    """A model that can be fitted; ``learns`` is ``label``, ``number``, or null where it has no target."""

    name: str
    estimator: str
    summary: str
    learns: str | None
    needs_delta: bool
    takes_public: bool
    relation: str
    modes: list[str]
    settings: list[ModelSettingResponse]
