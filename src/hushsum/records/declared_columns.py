"""What a column may hold, declared by a person and never learned from the records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, DataRefused, UsageError, shown
from hushsum.records import arrow
from hushsum.records.mixed_columns import numbers_with_missing

Codes = NDArray[np.int32]

OTHER: Final = "other"
MISSING: Final = "missing"
MAX_CATEGORIES: Final = 1 << 20
_EXACT: Final = 1 << 53
"""Up to here integers are exact in float64, through which every number is compared."""


@runtime_checkable
class DeclaredColumn(Protocol):
    """One column of a record: a finite list of public labels, and which of them a value has."""

    kind: ClassVar[str]
    """What a declaration in JSON calls it."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What a value may be, in the order of the codes."""

    @property
    def size(self) -> int:
        """The number of labels, without making them: a file may declare more than it could list."""

    def codes(self, chunks: Any, where: str) -> Codes:
        """The position of each value's label; raises ``DataRefused`` without showing a value."""

    @property
    def type_name(self) -> str:
        """The Arrow type of drawn values. It follows from the declaration: the type of the records' column
        may depend on one record, as where one missing value turns whole numbers into fractions.
        """

    def drawn(self, codes: Codes, random: np.random.Generator) -> list[Any] | Floats:
        """A value for each position, None (NaN among numbers) for a missing one."""

    def as_json(self) -> dict[str, Any]:
        """The declaration as JSON values."""


@dataclass(frozen=True, slots=True)
class CategoryColumn:
    """A column that takes one of a declared list of values.

    Parameters
    ----------
    values : sequence of str, or of numbers
        Every category, in the order of the codes. Known beforehand: a list read off the records is a leak.
    unknown : {"refuse", "other"}
        What to do with a value that is not in the list: refuse the batch, or count it as "other".
    missing : {"category", "refuse"}
        Whether a missing value is a category of its own, or refused.

    Examples
    --------
    >>> CategoryColumn(["low", "high"], unknown="other").labels
    ('low', 'high', 'other', 'missing')
    """

    kind: ClassVar[str] = "categories"

    values: Sequence[Any]
    unknown: str = "refuse"
    missing: str = "category"

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise UsageError(
                parameter="values",
                rule="must be a list of values",
                got=type(self.values).__name__,
                remedy="list them all",
            )
        values = tuple(each.item() if isinstance(each, np.generic) else each for each in self.values)
        object.__setattr__(self, "values", values)
        if not 1 <= len(values) <= MAX_CATEGORIES:
            raise UsageError(
                parameter="values",
                rule=f"must be 1 to {MAX_CATEGORIES} categories",
                got=len(values),
                remedy="list them all",
            )
        text = all(isinstance(each, str) for each in values)
        if not text and not all(_is_category_number(each) for each in values):
            raise UsageError(
                parameter="values",
                rule="must be all text, or all finite numbers below 2⁵³",
                got="something else",
                remedy="write them alike",
            )
        if len(set(values)) != len(values):
            raise UsageError(
                parameter="values", rule="must be listed once each", remedy="leave the repetitions out"
            )
        _one_of("unknown", self.unknown, ("refuse", OTHER))
        _one_of("missing", self.missing, ("category", "refuse"))
        if len(set(self.labels)) != len(self.labels):
            raise UsageError(
                parameter="values",
                rule="must not contain 'other' or 'missing' beside those of the encoder",
                remedy="rename it",
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories as text, then "other" and "missing" where they are declared."""
        extra = ((OTHER,) if self.unknown == OTHER else ()) + (
            (MISSING,) if self.missing == "category" else ()
        )
        return tuple(_as_text(each) for each in self.values) + extra

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.values) + (self.unknown == OTHER) + (self.missing == "category")

    def codes(self, chunks: Any, where: str) -> Codes:
        """Positions in :attr:`labels`."""
        position, missing = self._positions(chunks, where)
        if self.missing == "refuse" and missing.any():
            refuse_missing(where, "declare missing='category', or drop those records")
        unknown = (position < 0) & ~missing
        if self.unknown == "refuse" and unknown.any():
            raise DataRefused(
                rule=f"{where} must have declared categories only",
                got="another value",
                remedy=("add it to the public list, or declare ", Argument("unknown", "other")),
            )
        position[unknown] = len(self.values)
        position[missing] = self.size - 1
        return position

    @property
    def type_name(self) -> str:
        """Text, whole numbers or fractions, as the categories are."""
        if isinstance(self.values[0], str):
            return "string"
        return "int64" if all(float(each).is_integer() for each in self.values) else "double"

    def drawn(self, codes: Codes, random: np.random.Generator) -> list[Any]:
        """The categories; "other" as a text beside texts, and as missing beside numbers."""
        other = OTHER if isinstance(self.values[0], str) else None
        listed = [*self.values, *([other] if self.unknown == OTHER else []), None]
        return [listed[code] for code in codes.tolist()]

    def as_json(self) -> dict[str, Any]:
        """The list and the two rules."""
        return {
            "kind": self.kind, "values": list(self.values), "unknown": self.unknown, "missing": self.missing,
        }  # fmt: skip

    def _positions(self, chunks: Any, where: str) -> tuple[Codes, NDArray[np.bool_]]:
        """Positions in the declared list, −1 where a value is not in it, and which are missing."""
        pa = arrow.pyarrow()
        if pa.types.is_null(chunks.type):
            return np.full(len(chunks), -1, np.int32), np.ones(len(chunks), bool)
        text = isinstance(self.values[0], str)
        if text != pa.types.is_large_string(chunks.type):
            declared, got = ("text", "numbers") if text else ("numbers", "text")
            raise DataRefused(
                rule=f"{where} is declared with categories that are {declared}",
                got=got,
                remedy="write them alike",
            )
        if not text:
            values, missing = numbers_with_missing(chunks, where)
            # Plus zero: −0 and 0 are one category.
            chunks = pa.chunked_array([pa.array(values + 0.0)])
        else:
            missing = np.asarray(chunks.is_null(), bool)
        listed = pa.array(self.values if text else [float(each) + 0.0 for each in self.values], chunks.type)
        found = arrow.pyarrow("compute").index_in(chunks, value_set=listed)
        position: Codes = np.asarray(found.fill_null(-1)).astype(np.int32)
        return position, missing


@dataclass(frozen=True, slots=True)
class FlagColumn:
    """A column that is true or false: booleans, or the numbers 0 and 1.

    Parameters
    ----------
    missing : {"category", "refuse"}
        Whether a missing value is a category of its own, or refused.
    """

    kind: ClassVar[str] = "flag"

    missing: str = "category"

    def __post_init__(self) -> None:
        _one_of("missing", self.missing, ("category", "refuse"))

    @property
    def labels(self) -> tuple[str, ...]:
        """False and true, and "missing" where it is declared."""
        return ("false", "true", MISSING) if self.missing == "category" else ("false", "true")

    @property
    def size(self) -> int:
        """The number of labels."""
        return len(self.labels)

    def codes(self, chunks: Any, where: str) -> Codes:
        """Positions in :attr:`labels`."""
        return CategoryColumn((0, 1), missing=self.missing).codes(chunks, where)

    @property
    def type_name(self) -> str:
        """Booleans."""
        return "bool"

    def drawn(self, codes: Codes, random: np.random.Generator) -> list[Any]:
        """False, true, or None."""
        return [(False, True, None)[code] for code in codes.tolist()]

    def as_json(self) -> dict[str, Any]:
        """The rule for missing values."""
        return {"kind": self.kind, "missing": self.missing}


def _is_category_number(value: object) -> bool:
    return isinstance(value, bool | int | float) and math.isfinite(value) and abs(value) < _EXACT


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(
            parameter=name,
            rule=f"must be {' or '.join(map(repr, choices))}",
            got=shown(value),
            remedy="choose one",
        )


def refuse_missing(where: str, remedy: str) -> None:
    """Refuse missing values where none are declared."""
    raise DataRefused(rule=f"{where} must not have missing values", got="some", remedy=f"{remedy}")
