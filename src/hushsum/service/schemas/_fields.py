"""Field types and base classes of all bodies. Strict: no conversion of types, no unknown fields."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from hushsum.declaration import BOUNDS_TYPE, FLAG, INTEGER, NUMBER, Parameter, build, parameters_of
from hushsum.kernels import LONGEST
from hushsum.planning import KernelSpec
from hushsum.records import ENCODINGS, CellFormat, declared_bounds

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
UPLOAD_NAME: Final = "the upload"
"""What error messages call an uploaded file, whose path in the service nobody needs."""
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


T = TypeVar("T", bound=RequestBody)
R = TypeVar("R")


def with_fields_of(
    *requests: type, without: Sequence[str] = (), most_listed: int = 4096
) -> Callable[[type[T]], type[T]]:
    """A class decorator: the body has a field for each parameter that the requests declare."""

    def decorated(body: type[T]) -> type[T]:
        declared = [each for request in requests for each in parameters_of(request)]
        made: dict[str, Any] = {
            each.name: _field(each, most_listed)
            for each in declared
            if each.group is not None and each.name not in without and each.name not in body.model_fields
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


def built_from(body: RequestBody, request: type[R]) -> R:
    """The request that a body states."""

    def read(parameter: Parameter, value: Any, inner: Mapping[str, Any]) -> Any:
        if parameter.type == BOUNDS_TYPE:
            if isinstance(value, dict) and "columns" not in type(body).model_fields:
                return {name: (low, high) for name, (low, high) in value.items()}
            return bounds_of(value, getattr(body, "columns", None))
        return tuple(value) if isinstance(value, list) else value

    return build(request, {name: getattr(body, name) for name in type(body).model_fields}, read)


@with_fields_of(KernelSpec)
class KernelRequest(RequestBody):
    """A kernel and its parameters."""

    kernel: Annotated[str, StringConstraints(max_length=LONGEST)] | None = None
    bounds: Bounds | None = None

    def kernel_spec(self) -> KernelSpec:
        """The kernel of the request, before the number of columns is known."""
        return built_from(self, KernelSpec)

    def declared_bounds(self) -> Box | None:
        """The declared bounds, in the order of the columns where these are named."""
        return bounds_of(self.bounds, getattr(self, "columns", None))


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

    def cells(self) -> CellFormat:
        """What is declared about the cells.

        Raises
        ------
        UsageError
            The format or the origin of dates is none.
        """
        return built_from(self, CellFormat)
