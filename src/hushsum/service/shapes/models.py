"""Models: what can be asked for, and what is told before."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from hushsum.service.shapes.basic import Asked, Bounds, Column, Id, Name, Positive, Told
from hushsum.service.shapes.releases import ClaimResponse

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
    ] = Field(default={})


class NewModel(ModelAsked):
    """The terms once more, and the ``confirm`` of the claim that was shown."""

    confirm: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class ErrorPredicted(Told):
    """How far an answer is expected to be off at one point: ``of`` says which answer, ``note`` from what."""

    of: str
    error: float
    records: int
    note: str


class ModelClaimTold(ClaimResponse):
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
