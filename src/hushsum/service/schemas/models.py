"""Models: the kinds there are, requests to fit one, and their claims."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from hushsum.service.schemas.fields import Bounds, Column, FileRequest, Id, Name, Positive, ResponseBody
from hushsum.service.schemas.releases import ClaimResponse

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
