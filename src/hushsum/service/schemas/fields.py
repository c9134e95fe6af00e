"""Field types and base classes of all bodies. Strict: no conversion of types, no unknown fields."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from hushsum.jobs.kernel_and_method import KernelChoice
from hushsum.kernels.expressions import LONGEST
from hushsum.methods.registry import default_kernel, planned_methods, tally_methods
from hushsum.records.bounds import declared_bounds
from hushsum.records.cell_format import ENCODINGS, CellFormat
from hushsum.records.dates import EPOCH, NO_DATES, DateFormat

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


def _form_of_bounds(value: Any) -> str:
    """Which form bounds have, so that a fault names the place in that form."""
    if isinstance(value, dict):
        return "by_name"
    numbers = isinstance(value, list) and value and all(isinstance(each, int | float) for each in value)
    return "for_all" if numbers else "each"


Pair = Annotated[list[Bound], Field(min_length=2, max_length=2)]
Bounds = Annotated[
    Annotated[list[Pair], Field(max_length=4096), Tag("each")]
    | Annotated[Pair, Tag("for_all")]
    | Annotated[dict[Column, Pair], Field(min_length=1, max_length=4096), Tag("by_name")],
    Discriminator(_form_of_bounds),
]
"""As the library takes them: a pair for each column, one for all, or an object by the names of columns."""
Count = Annotated[int, Field(ge=1, le=10**8)]


class KernelRequest(RequestBody):
    """A kernel and its parameters."""

    kernel: Annotated[str, StringConstraints(max_length=LONGEST)] | None = None
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
            self.kernel or self._default_kernel(),
            self.bandwidth,
            self.power,
            self.bits,
            self.projection,
            self.smoothness,
            self.radius,
            self.scale,
            self.declared_bounds(),
        )

    def _default_kernel(self) -> str:
        return default_kernel()

    def declared_bounds(self) -> Box | None:
        """The declared bounds."""
        return bounds_of(self.bounds)


class ColumnsRequest(KernelRequest):
    """A kernel of named columns, or of a column of sets."""

    columns: Annotated[list[Column], Field(min_length=1, max_length=4096)] | None = None
    set_column: Column | None = None

    @model_validator(mode="after")
    def _columns_of_bounds(self) -> Self:
        """Bounds by name name the columns too, where these are not given."""
        if self.columns is None and self.set_column is None and isinstance(self.bounds, dict):
            self.columns = list(self.bounds)
        return self

    def declared_bounds(self) -> Box | None:
        """The declared bounds, in the order of the columns."""
        return bounds_of(self.bounds, self.columns)


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


_ENCODING = _one_of(lambda: ENCODINGS)
LONGEST_DATE_FORMAT = 64


class FileRequest(RequestBody):
    """How the cells of uploaded files are written, with the names of the options of ``hushsum tally``. It is
    declared: nothing is guessed from the records. ``decimal`` and ``encoding`` are for CSV files, ``sheet``
    is for workbooks. With ``drop_missing`` records with a missing value are left out; they are refused
    otherwise. ``missing`` lists further cells that stand for a missing value, such as ``k.A.`` and ``999``.
    """

    decimal: Literal[".", ","] = "."
    drop_missing: bool = False
    missing: Annotated[list[Column], Field(max_length=64)] = []
    sheet: Annotated[str, StringConstraints(min_length=1, max_length=31)] | None = None
    encoding: Annotated[str, _ENCODING[0], _ENCODING[1]] = "utf-8"
    dates: Annotated[list[Column], Field(min_length=1, max_length=4096)] | None = None
    date_format: Annotated[str, StringConstraints(max_length=LONGEST_DATE_FORMAT)] | None = None
    date_unit: Literal["seconds", "minutes", "hours", "days", "weeks", "years"] = "days"
    date_origin: Annotated[str, StringConstraints(max_length=40)] = EPOCH

    def cells(self) -> CellFormat:
        """What is declared about the cells.

        Raises
        ------
        UsageError
            The format or the origin of dates is none.
        """
        dates = NO_DATES
        if self.dates is not None:
            dates = DateFormat(tuple(self.dates), self.date_format, self.date_unit, self.date_origin)
        missing = tuple(self.missing)
        return CellFormat(self.decimal, self.drop_missing, dates, self.sheet, self.encoding, missing)
