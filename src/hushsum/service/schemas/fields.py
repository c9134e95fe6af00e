"""Field types and base classes of all bodies. Strict: no conversion of types, no unknown fields."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

from hushsum.jobs.kernel_and_method import KernelChoice
from hushsum.kernels.expressions import LONGEST
from hushsum.methods.registry import planned_methods, tally_methods

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
Relation = Literal["add/remove", "replace"]
Unit = Literal["record", "person", "adjacency row", "edge", "directed edge"]
Scope = Literal["admin", "upload", "release", "query"]


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


_TALLY = _one_of(tally_methods)
_PLANNED = _one_of(lambda: ["auto", *planned_methods()])
TallyMethod = Annotated[str, _TALLY[0], _TALLY[1]]
PlannedMethod = Annotated[str, _PLANNED[0], _PLANNED[1]]


class RequestBody(BaseModel):
    """The body of a request."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class ResponseBody(BaseModel):
    """The body of a response."""

    model_config = ConfigDict(from_attributes=True)


class PrivacyRequest(RequestBody):
    """Either epsilon (with delta, or pure), or rho."""

    epsilon: Positive | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] | None = None
    rho: Positive | None = None


Bounds = Annotated[list[Annotated[list[Bound], Field(min_length=2, max_length=2)]], Field(max_length=4096)]
Count = Annotated[int, Field(ge=1, le=10**8)]


class KernelRequest(RequestBody):
    """A kernel and its parameters."""

    kernel: Annotated[str, StringConstraints(max_length=LONGEST)] = "euclidean"
    bandwidth: Positive | None = None
    power: Annotated[int, Field(ge=1, le=256)] | None = None
    bits: Annotated[int, Field(ge=1, le=64)] | None = None
    projection: Literal["dense", "structured"] | None = None
    smoothness: Annotated[float, Field(ge=0.5, le=2.5)] | None = None
    radius: Annotated[float, Field(ge=1e-15, le=1e15)] | None = None
    scale: Literal["units", "bounds"] | None = None
    bounds: Bounds | None = None

    def choice(self) -> KernelChoice:
        """The kernel of the request, before the number of columns is known."""
        return KernelChoice(
            self.kernel,
            self.bandwidth,
            self.power,
            self.bits,
            self.projection,
            self.smoothness,
            self.radius,
            self.scale,
            bounds_of(self.bounds),
        )


def bounds_of(bounds: Bounds | None) -> tuple[tuple[float, float], ...] | tuple[float, float] | None:
    """Bounds as methods take them: one pair for all columns, or one per column."""
    if not bounds:
        return None
    pairs = tuple((low, high) for low, high in bounds)
    return pairs[0] if len(pairs) == 1 else pairs
