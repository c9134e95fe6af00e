"""The bodies of requests and responses. Strict: no conversion of types, no unknown fields."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, replace
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    StringConstraints,
    Tag,
    create_model,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from hushsum.declaration import BOUNDS_TYPE, FLAG, INTEGER, NUMBER, Parameter, build, parameters_of
from hushsum.errors import UsageError
from hushsum.kernels import LONGEST
from hushsum.operations import RecordFiles, TrainingFiles
from hushsum.planning import KernelSpec, MethodSpec, TableSpec, empty_tally
from hushsum.planning import PlanRequest as DeclaredPlan
from hushsum.privacy import AUTO, PROMISE, RULE_ON_DELTA, ReleaseRequest
from hushsum.records import ENCODINGS, CellFormat, declared_bounds
from hushsum.streams import FILES_IN_TIME, PreparedStream, StreamRequest, prepare_stream
from hushsum.tally import Tally

from .store import ListedUpload

_SIGNS = " ._-'’(),&+"


def _checked_text(text: str) -> str:
    """Letters and digits of any script and some signs, in the composed form.

    Control characters, and those that are not seen or reverse the direction of what follows, are refused: two
    names that look the same should be the same.
    """
    composed = unicodedata.normalize("NFC", text)
    if not all(each.isalnum() or each in _SIGNS or unicodedata.category(each)[0] == "M" for each in composed):
        raise PydanticCustomError("must have letters, digits, spaces and simple signs only", "not a name")
    return composed


def _checked_name(text: str) -> str:
    composed = _checked_text(text)
    if not composed[0].isalnum() or composed[-1] == " " or len(composed) > LONGEST_NAME:
        raise PydanticCustomError("must begin with a letter or digit and not end with a space", "not a name")
    return composed


LONGEST_NAME = 80
Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME), AfterValidator(_checked_name)]
Label = Annotated[str, StringConstraints(max_length=LONGEST_NAME), AfterValidator(_checked_text)]
Column = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=200)]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z]+_[0-9a-f]{16}$")]
Positive = Annotated[float, Field(gt=0, lt=1e9)]
Bound = Annotated[float, Field(gt=-1e30, lt=1e30)]
Reason = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$", max_length=500)]
# The name of an uploaded file in error messages, which do not show its path in the service.
UPLOAD_NAME: Final = "the upload"
Scope = Literal["admin", "upload", "release", "query"]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Columns = Annotated[list[Column], Field(min_length=1, max_length=4096)]
Delta = Annotated[float, Field(ge=0, lt=1)]
Days = Annotated[int, Field(ge=1, le=3650)]
Number = Annotated[int, Field(ge=1, le=10**12)]


def _one_of(names: Callable[[], Sequence[str]]) -> Any:
    """A name that is registered when a request arrives; the description of the service lists them."""

    def check(name: str) -> str:
        if name not in names():
            # The type is what a problem document shows as the rule.
            raise PydanticCustomError(f"must be one of {', '.join(names())}", "unknown name")
        return name

    def listed(schema: dict[str, Any]) -> None:
        schema["enum"] = list(names())

    return AfterValidator(check), Field(json_schema_extra=listed)


R = TypeVar("R")


class RequestBody(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    def states(self, request: type[R]) -> R:
        """The request of the library that the body states."""

        def read(parameter: Parameter, value: Any, inner: Mapping[str, Any]) -> Any:
            if parameter.type == BOUNDS_TYPE:
                if isinstance(value, dict) and "columns" not in type(self).model_fields:
                    return {name: (low, high) for name, (low, high) in value.items()}
                return bounds_of(value, getattr(self, "columns", None))
            return tuple(value) if isinstance(value, list) else value

        return build(request, {name: getattr(self, name) for name in type(self).model_fields}, read)


class ResponseBody(BaseModel):
    """The body of a response."""

    model_config = ConfigDict(from_attributes=True)


def _form_of_bounds(value: Any) -> str:
    """Which form bounds have, so that a fault names the place in that form."""
    if isinstance(value, dict):
        return "by_name"
    numbers = isinstance(value, list) and value and all(isinstance(each, int | float) for each in value)
    return "for_all" if numbers else "each"


Pair = Annotated[list[Bound], Field(min_length=2, max_length=2)]
# As the library takes them: a pair for each column, one for all, or an object by the names of columns.
Bounds = Annotated[
    Annotated[list[Pair], Field(max_length=4096), Tag("each")]
    | Annotated[Pair, Tag("for_all")]
    | Annotated[dict[Column, Pair], Field(min_length=1, max_length=4096), Tag("by_name")],
    Discriminator(_form_of_bounds),
]


T = TypeVar("T", bound=RequestBody)


def with_fields_of(
    *requests: type, only: Sequence[str] = (), without: Sequence[str] = (), most_listed: int = 4096
) -> Callable[[type[T]], type[T]]:
    """A class decorator: the body has a field for each parameter that the requests declare, or ``only`` for
    some of them.
    """

    def decorated(body: type[T]) -> type[T]:
        declared = [each for request in requests for each in parameters_of(request)]
        made: dict[str, Any] = {
            each.name: _field(each, most_listed)
            for each in declared
            if each.group is not None
            and each.name not in without
            and each.name not in body.model_fields
            and (not only or each.name in only)
        }
        return create_model(
            body.__name__, __base__=body, __doc__=body.__doc__, __module__=body.__module__, **made
        )

    return decorated


def _field(parameter: Parameter, most_listed: int) -> tuple[Any, Any]:
    """The type of a declared parameter and its default, as Pydantic takes them."""
    of_one: Any = {NUMBER: float, INTEGER: int, FLAG: bool, BOUNDS_TYPE: Bounds}.get(parameter.type, Column)
    if parameter.type in (NUMBER, INTEGER):
        ends = {
            "ge": parameter.at_least,
            "gt": parameter.above,
            "le": parameter.at_most,
            "lt": parameter.below,
        }
        known: dict[str, Any] = {name: end for name, end in ends.items() if end is not None}
        of_one = Annotated[of_one, Field(**known)]
        if parameter.choices:
            of_one |= Literal[parameter.words()]
    elif parameter.choices:
        of_one = Annotated[str, *_one_of(parameter.words)]
    if parameter.several:
        of_one = Annotated[
            list[of_one], Field(min_length=int(parameter.default != ()), max_length=most_listed)
        ]
    default = parameter.default
    if isinstance(default, tuple):
        return of_one, Field(default_factory=lambda: list(default), description=parameter.help)
    kept = ... if default is MISSING else str(default) if isinstance(default, str) else default
    return of_one | None if parameter.optional else of_one, Field(default=kept, description=parameter.help)


@with_fields_of(KernelSpec)
class KernelRequest(RequestBody):
    """A kernel and its parameters."""

    kernel: Annotated[str, StringConstraints(max_length=LONGEST)] | None = None
    bounds: Bounds | None = None

    def kernel_spec(self) -> KernelSpec:
        """The kernel of the request, before the number of columns is known."""
        return self.states(KernelSpec)

    def declared_bounds(self) -> Box | None:
        """The declared bounds, in the order of the columns where these are named."""
        return bounds_of(self.bounds, getattr(self, "columns", None))


class ColumnsRequest(KernelRequest):
    """A kernel of named columns, or of a column of sets."""

    columns: Columns | None = None
    set_column: Column | None = None

    @model_validator(mode="after")
    def _columns_of_bounds(self) -> Self:
        """Bounds by name name the columns too, where these are not given."""
        if self.columns is None and self.set_column is None and isinstance(self.bounds, dict):
            self.columns = list(self.bounds)
        return self


Box = tuple[tuple[float, float], ...] | tuple[float, float]


def bounds_of(bounds: Bounds | None, columns: Sequence[str] | None = None) -> Box | None:
    """Bounds as methods take them: one pair for all columns, or one per column.

    ``columns`` are the names of the columns, in whose order bounds by name are returned; by default in their
    own.

    Raises
    ------
    UsageError
        Bounds by name are not those of the columns.
    """
    if not bounds:
        return None
    if isinstance(bounds, dict):
        names = list(bounds) if columns is None else list(columns)
        box, _ = declared_bounds(bounds, dim=len(names), columns=names)
        assert box is not None
        bounds = box.as_json()
    pairs = tuple((float(each[0]), float(each[1])) for each in bounds if isinstance(each, list))
    if not pairs:
        low, high = (float(each) for each in bounds if not isinstance(each, list))
        return low, high
    return pairs[0] if len(pairs) == 1 else pairs


@with_fields_of(CellFormat)
class FileRequest(RequestBody):
    """How the cells of uploaded files are written, with the names of the options of ``hushsum tally``. It is
    declared: nothing is guessed from the records.
    """

    encoding: Annotated[str, *_one_of(lambda: ENCODINGS)] = "utf-8"


class PublicRequest(FileRequest):
    """A request that may name an upload of rows which the owner declares public."""

    public: Id | None = None


class AccountRequest(RequestBody):
    """An account to create."""

    name: Name
    role: Literal["administrator", "owner", "analyst"]


class QuotaUsage(ResponseBody):
    """How much of a quota is used, and its limit."""

    used: int
    most: int


class UsageResponse(ResponseBody):
    """The use of each quota of an account: bytes of uploads, tallies and states of streams, cells of tallies,
    jobs, tokens.
    """

    bytes: QuotaUsage
    cells: QuotaUsage
    jobs: QuotaUsage
    tokens: QuotaUsage


class TokenRequest(RequestBody):
    """A token to issue; by default with all scopes of the role and the longest lifetime allowed."""

    label: Label = ""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)] | None = None
    days: Days | None = None


class ProviderResponse(ResponseBody):
    """A provider to sign in with."""

    name: str


class SignInResponse(ResponseBody):
    """The sign-in provider, or null if a token is the only way to sign in."""

    oidc: ProviderResponse | None


class IdentityRequest(RequestBody):
    """The person who may sign in to an account: the value that the provider's claim must have."""

    subject: Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=255)]


class SharedFunctionResponse(ResponseBody):
    """A released function: its claim and everything else that is public. Sums of a function that is not
    ``signed`` are counts of records, each weighted by its similarity.
    """

    name: str
    sha256: str
    download: bool
    signed: bool
    facts: dict[str, Any]


class FunctionResponse(SharedFunctionResponse):
    """A released function, for an account that may query it."""

    id: str
    dataset: str
    created: str
    owned: bool


class GrantRequest(RequestBody):
    """The rights of an analyst to a function, besides querying it."""

    download: bool = False


class GrantResponse(ResponseBody):
    """An account that may query a function."""

    account: str
    download: bool


class QueryParameters(RequestBody):
    """The parameters in the address of a query: what is answered, and the level of intervals."""

    # They come as text.
    model_config = ConfigDict(strict=False)

    of: Literal["mean", "sum", "predict"] | SkipJsonSchema[None] = None
    level: Annotated[float, Field(gt=0, lt=1)] = 0.95
    only: Literal["value"] | SkipJsonSchema[None] = None
    simultaneous: Literal["true", "false"] = "false"
    nonnegative: Literal["true", "false"] = "false"


class QueryRequest(RequestBody):
    """Query points: rows of numbers, or sets of integers for a kernel on sets."""

    points: Annotated[list[Annotated[list[float], FailFast()]], FailFast()]


class SetQueryRequest(RequestBody):
    """Query points that are sets of integers."""

    points: Annotated[list[Annotated[list[int], FailFast()]], FailFast()]


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


_ORIGIN = re.compile(
    r"https?://(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?::[0-9]{1,5})?"
)


def _checked_origin(text: str) -> str:
    """One site: a scheme and a host, without wildcards or paths, as it stands in a response header."""
    host, _, port = text.partition("://")[2].partition(":")
    plain = text.startswith("http://") and host not in ("localhost", "127.0.0.1")
    if not _ORIGIN.fullmatch(text) or plain or int(port or "443") > 65_535:
        raise PydanticCustomError("must be a site such as https://www.example.org", "not an origin")
    return text


Origin = Annotated[str, StringConstraints(max_length=255), AfterValidator(_checked_origin)]


class ShareRequest(RequestBody):
    """A link to make. ``origins`` are the sites that may embed the function, none by default; with
    ``download`` the link also leads to the .hush file; without ``days`` it works until it is revoked.
    """

    label: Label = ""
    origins: Annotated[list[Origin], Field(max_length=20)] = Field(default=[])
    download: bool = False
    days: Days | None = None


class ShareResponse(ResponseBody):
    """The stored description of a link, without its key."""

    id: str
    function: str
    label: str
    origins: list[str]
    download: bool
    created: str
    expires: str | None
    revoked: str | None
    works: bool


class IssuedShareResponse(ShareResponse):
    """A new link: the paths of the page and, with origins, of the widget. They are returned only here."""

    path: str
    embed: str | None


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
    """The parts of an error; a text may be a list of strings and parts that clients spell themselves."""

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


@with_fields_of(ReleaseRequest, RecordFiles, only=(*PROMISE, *RULE_ON_DELTA, "max_per_unit"))
class DatasetRequest(RequestBody):
    """A dataset and its total budget, either epsilon (with delta, or pure) or rho; see DatasetTerms."""

    name: Name
    accounting: Literal["pure", "basic", "zcdp"] | None = None
    unit: Literal["record", "person", "adjacency row", "edge", "directed edge"] = "record"


class DatasetResponse(ResponseBody):
    """A dataset; ``budget`` is its state in the ledger."""

    id: str
    name: str
    created: str
    budget: dict[str, Any]


SAMPLE_HEADER: Final = ("age_years", "commute_min", "drives")
SAMPLE_RECORDS: Final = 20_000


class SampleResponse(ResponseBody):
    """A dataset of made-up records with its upload, and what its owner would declare of them."""

    dataset: DatasetResponse
    upload: ListedUpload
    header: list[str] = list(SAMPLE_HEADER)
    columns: list[str] = list(SAMPLE_HEADER[:2])
    bounds: list[list[float]] = [[16.0, 75.0], [0.0, 120.0]]
    bandwidth: float = 4.0
    records: int = SAMPLE_RECORDS


@with_fields_of(RecordFiles, TableSpec)
class CountRequest(ColumnsRequest, FileRequest):
    """The parameters of a count of records. No parameter may be chosen by looking at the records."""

    def kernel_spec(self) -> KernelSpec:
        """The kernel, which depends on the table where none is named."""
        table, chosen = self.states(TableSpec), super().kernel_spec()
        return chosen.for_records(
            method=table.method, sets=self.set_column is not None, rows=table.rows, width=table.width
        )


class TallyRequest(CountRequest, PublicRequest):
    """The parameters of a count of an upload. None may be chosen by looking at the records.

    ``public`` is an upload of rows that the owner declares public: it decides ``bandwidth`` and ``bounds``
    where they are not given, and the claims of releases say so. Records that mostly lie outside ``bounds``
    are refused unless ``allow_clipping``.
    """

    upload: Id
    allow_clipping: bool = False


class WriteOffRequest(RequestBody):
    """A charge for what was spent outside the ledger, or lost from it; 0 is allowed."""

    epsilon: Annotated[float, Field(ge=0, lt=1e9)] | None = None
    delta: Delta | None = None
    rho: Annotated[float, Field(ge=0, lt=1e9)] | None = None
    reason: Reason


@with_fields_of(DeclaredPlan, most_listed=8)
class PlanRequest(KernelRequest, PublicRequest):
    """A request for predicted errors, from declared quantities only.

    With ``tally`` the plan is for releasing that tally: its kernel, bounds, shape and records per person
    replace those of the request. With ``error`` in place of ``epsilon``, for the smallest ε that reaches it.
    ``public`` is an upload of rows that the owner declares public, from which errors are estimated; the cells
    of this file are meant by ``decimal`` and the like.
    """

    tally: Id | None = None


class PlanResponse(ResponseBody):
    """The options with their predicted errors, the best one marked."""

    records: int
    density: float
    densities: list[float]
    basis: str
    of: str
    options: list[dict[str, Any]]


class LedgerResponse(ResponseBody):
    """The state of a dataset's budget, its releases, and a receipt to keep elsewhere."""

    status: dict[str, Any]
    history: list[dict[str, Any]]
    receipt: dict[str, Any]


@with_fields_of(ReleaseRequest, MethodSpec, RecordFiles)
class ReleaseClaimRequest(ColumnsRequest, PublicRequest):
    """The parameters of a release, of a ``tally`` or of an ``upload``.

    An upload is planned, counted and released as by hushsum.release: by the method with the smallest
    predicted error, unless ``method`` names one. Its columns must be named, by ``columns`` or by ``bounds``,
    and no parameter may be chosen by looking at the records. Records that mostly lie outside ``bounds`` are
    refused before anything is debited, unless ``allow_clipping``.

    ``public`` is an upload of rows that the owner declares public: the function is combined with them, see
    hushsum.releases.combine. With an ``upload`` they decide bandwidth and bounds where these are not given.

    With ``stop_at_warnings`` a release whose count gives warnings fails before anything is debited, and the
    problem lists them; without it they are in the result of its job.
    """

    tally: Id | None = None
    upload: Id | None = None
    name: Name
    allow_clipping: bool = False
    stop_at_warnings: bool = False

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


class ClaimResponse(ResponseBody):
    """The claim of a release and its cost; a release request must repeat ``confirm``."""

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

    confirm: Digest


@with_fields_of(StreamRequest, without=("unit", "mechanism", "rows"))
class StreamClaimRequest(CountRequest):
    """The parameters of a stream: its counts, its steps and its claim; see hushsum.stream. The columns must
    be named.
    """

    name: Name
    columns: Columns

    def pattern(self) -> Tally:
        """An empty tally of the same shape."""
        choice, bounds = self.kernel_spec(), self.declared_bounds()
        named = None if choice.takes_sets else self.columns
        kernel = choice.build(None if named is None else len(named), self.columns, bounds)
        return empty_tally(
            kernel,
            self.states(TableSpec),
            bounds=bounds,
            columns=named,
            max_per_unit=self.states(RecordFiles).max_per_unit,
            cells=self.states(CellFormat),
        )

    def prepare(self) -> PreparedStream:
        """The stream, checked and not paid; the service adds the budget."""
        self.states(CellFormat)
        return prepare_stream(self.pattern(), self.stream_request())

    def stream_request(self) -> StreamRequest:
        """The horizon, what the steps show, and their claim."""
        stream = self.states(StreamRequest)
        # The rows of the body are those of the table, all of which are released.
        release = replace(stream.release, rows=AUTO)
        return replace(stream, release=release, assumptions=(FILES_IN_TIME,))


class ConfirmedStreamRequest(StreamClaimRequest):
    """The same request with the ``confirm`` of the claim that was shown."""

    confirm: Digest


class StreamClaimResponse(ClaimResponse):
    """The claim and the cost of all steps, and the noise of the last one in units of one release."""

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
    horizon: int | None = None
    released: int
    shows: str
    claim: dict[str, Any]
    functions: list[str]


Scalar = bool | int | float | Annotated[str, StringConstraints(max_length=80)] | None


class ModelClaimRequest(PublicRequest):
    """A model to fit on an upload, and its privacy parameters. None may be chosen by looking at the data.

    ``classes`` lists every label, as text. ``records`` is a declared or estimated number, from which the
    error is predicted; it changes nothing else. ``public`` is an upload of rows that the owner declares
    public: it decides ``bounds``, and the settings that may be ``public``, where they are not given. In the
    mode ``exact`` the service keeps the records and answers at most ``most_questions`` different points;
    ``file`` answers any number, and can be downloaded. Records that mostly lie outside ``bounds`` are refused
    before anything is debited, unless ``allow_clipping``; with ``stop_at_warnings`` so are records whose
    count gives warnings.
    """

    upload: Id
    name: Name
    model: Annotated[str, StringConstraints(max_length=40)]
    columns: Columns
    target: Column | None = None
    classes: Annotated[list[Column], Field(min_length=1, max_length=1000)] | None = None
    bounds: Bounds | None = None
    epsilon: Positive
    delta: Delta | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    records: Number | None = None
    mode: Literal["file", "exact"] = "file"
    allow_clipping: bool = False
    stop_at_warnings: bool = False
    most_questions: Annotated[int, Field(ge=1, le=5000)] = 1000
    settings: Annotated[
        dict[
            Annotated[str, StringConstraints(max_length=40)],
            Scalar | Annotated[list[Scalar], Field(max_length=64)],
        ],
        Field(max_length=40),
    ] = Field(default={})

    def declared(self) -> TrainingFiles:
        """The columns that the model is fitted on, and what is known of the target."""
        classes = None if self.classes is None else tuple(self.classes)
        return TrainingFiles(columns=tuple(self.columns), target=self.target, classes=classes)


class ConfirmedModelRequest(ModelClaimRequest):
    """The same request with the ``confirm`` of the claim that was shown."""

    confirm: Digest


Confirmed = ConfirmedReleaseRequest | ConfirmedStreamRequest | ConfirmedModelRequest


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
