"""What requests and answers look like. Strict: a number in quotes is text, and unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$", max_length=80)]
Column = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=200)]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z]+_[0-9a-f]{16}$")]
Positive = Annotated[float, Field(gt=0, lt=1e9)]
Bound = Annotated[float, Field(gt=-1e30, lt=1e30)]
Relation = Literal["add/remove", "replace"]
Scope = Literal["admin", "upload", "release", "query"]


class Asked(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Told(BaseModel):
    """The body of an answer."""

    model_config = ConfigDict(from_attributes=True)


class NewAccount(Asked):
    """Somebody to let in."""

    name: Name
    role: Literal["administrator", "owner", "analyst"]


class AccountTold(Told):
    """An account."""

    id: str
    name: str
    role: str
    created: str
    disabled: bool


class Me(Told):
    """Who the token belongs to, and what it is good for."""

    account: str
    name: str
    role: str
    scopes: list[str]
    token: str
    expires: str


class NewToken(Asked):
    """A token to issue; by default with all scopes of the role and the longest life."""

    label: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 ._-]*$", max_length=80)] = ""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)] | None = None
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class TokenTold(Told):
    """What is remembered of a token."""

    id: str
    account: str
    label: str
    scopes: list[str]
    created: str
    expires: str
    revoked: str | None
    signed_in: bool


class TokenIssued(TokenTold):
    """A new token, told once."""

    secret: str


class ProviderTold(Told):
    """A provider to sign in with."""

    name: str


class SignInTold(Told):
    """How people may sign in, besides with a token: null if with nothing else."""

    oidc: ProviderTold | None


class NewIdentity(Asked):
    """Who may sign in to an account: what the provider's claim must say of that person."""

    subject: Annotated[str, StringConstraints(pattern=r"^[!-~]([ -~]*[!-~])?$", max_length=255)]


class IdentityTold(Told):
    """Who may sign in to an account; ``sub`` is null until that person has come."""

    account: str
    issuer: str
    claim: str
    subject: str
    sub: str | None
    created: str


class LogTold(Told):
    """A line of the log."""

    sequence: int
    at: str
    request: str
    account: str
    action: str
    object: str


class Promise(Asked):
    """Either epsilon (with delta, or pure), or rho."""

    epsilon: Positive | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    rho: Positive | None = None


class NewDataset(Promise):
    """A dataset and its total budget; see DatasetTerms."""

    name: Name
    accounting: Literal["pure", "basic", "zcdp"] | None = None
    unit: Literal["record", "person"] = "record"
    records_per_unit: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    relation: Relation = "add/remove"
    units: Annotated[int, Field(ge=1, le=10**12)] | None = None
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


class KernelAsked(Asked):
    """A kernel and its parameters."""

    kernel: Annotated[str, StringConstraints(max_length=40)] = "euclidean"
    bandwidth: Positive | None = None
    power: Annotated[int, Field(ge=1, le=256)] | None = None
    bits: Annotated[int, Field(ge=1, le=64)] | None = None
    projection: Literal["dense", "structured"] | None = None


Bounds = Annotated[list[Annotated[list[Bound], Field(min_length=2, max_length=2)]], Field(max_length=4096)]
Count = Annotated[int, Field(ge=1, le=10**8)]


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
    """A question about errors, from declared quantities only."""

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


class TermsAsked(Promise):
    """What a release shall promise; see Tally.release."""

    tally: Id
    name: Name
    relation: Relation = "add/remove"
    rows: Count | Literal["auto"] = "auto"
    count_share: Annotated[float, Field(gt=0, lt=1)] = 0.02
    population: Annotated[int, Field(ge=1, le=10**12)] | None = None
    allow_large_delta: bool = False


class ClaimTold(Told):
    """What a release on these terms would claim and cost; ``confirm`` is what agrees to it."""

    claim: dict[str, Any]
    cost: dict[str, Any]
    remaining: dict[str, Any]
    confirm: str


class NewRelease(TermsAsked):
    """The terms once more, and the ``confirm`` of the claim that was shown."""

    confirm: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


Scalar = bool | int | float | Annotated[str, StringConstraints(max_length=80)] | None


class ModelAsked(Asked):
    """A model to fit on an upload, and its promise. Nothing of it may be chosen by looking at the records.

    ``classes`` are every label there is, as text. ``records`` is a declared or guessed number, from which the
    error is predicted; it changes nothing else. In the mode ``exact`` the service keeps the records and
    answers at most ``most_questions`` different points; ``file`` answers any number, and can be downloaded.
    """

    upload: Id
    name: Name
    model: Annotated[str, StringConstraints(max_length=40)]
    columns: Annotated[list[Column], Field(min_length=1, max_length=4096)]
    target: Column | None = None
    classes: Annotated[list[Column], Field(min_length=1, max_length=1000)] | None = None
    bounds: Annotated[Bounds, Field(min_length=1)]
    epsilon: Positive
    delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    records: Annotated[int, Field(ge=1, le=10**12)] | None = None
    mode: Literal["file", "exact"] = "file"
    most_questions: Annotated[int, Field(ge=1, le=5000)] = 1000
    settings: Annotated[
        dict[
            Annotated[str, StringConstraints(max_length=40)],
            Scalar | Annotated[list[Scalar], Field(max_length=64)],
        ],
        Field(max_length=40),
    ] = {}


class NewModel(ModelAsked):
    """The terms once more, and the ``confirm`` of the claim that was shown."""

    confirm: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ErrorPredicted(Told):
    """How far an answer is expected to be off at one point: ``of`` says which answer, ``note`` from what."""

    of: str
    error: float
    records: int
    note: str


class ModelClaimTold(ClaimTold):
    """The claim of a model; ``predicted`` is null where its error cannot be told from declared numbers."""

    predicted: ErrorPredicted | None


class SettingTold(Told):
    """A setting of a model, of the type ``number``, ``integer``, ``text`` or ``pair``."""

    name: str
    type: str
    default: Any
    optional: bool
    listed: bool
    choices: list[str] | None
    help: str


class ModelKindTold(Told):
    """A model that can be fitted; ``learns`` is ``label``, ``number``, or null where it has no target."""

    name: str
    estimator: str
    summary: str
    learns: str | None
    needs_delta: bool
    relation: str
    modes: list[str]
    settings: list[SettingTold]


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


class FunctionTold(Told):
    """A released function: its claim and everything else that is public."""

    id: str
    dataset: str
    name: str
    sha256: str
    created: str
    owned: bool
    download: bool
    facts: dict[str, Any]


class GrantAsked(Asked):
    """What somebody may do with a function, besides asking it."""

    download: bool = False


class GrantTold(Told):
    """Somebody who may ask a function."""

    account: str
    download: bool


class Points(Asked):
    """Queries: rows of numbers, or sets of integers for a kernel on sets."""

    points: list[list[float]]


class Answers(Told):
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


class LedgerTold(Told):
    """How a dataset stands, its releases, and the head of the chain to keep elsewhere."""

    status: dict[str, Any]
    history: list[dict[str, Any]]
    receipt: dict[str, Any]


class Health(Told):
    """Whether the process lives, or can work; and if not, why."""

    status: str
    reasons: list[str] = []


class Problem(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    request: str
    faults: list[dict[str, str]] = []
