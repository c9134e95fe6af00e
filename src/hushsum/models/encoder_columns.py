"""What a column may hold, declared by a person and never learned from the records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Protocol, runtime_checkable

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

    @property
    def labels(self) -> tuple[str, ...]:
        """What a value may be, in the order of the codes."""

    def codes(self, chunks: Any, where: str) -> Codes:
        """The position of each value's label; raises ``DataRefused`` without showing a value."""


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

    def codes(self, chunks: Any, where: str) -> Codes:
        """Positions in :attr:`labels`."""
        position, missing = self._positions(chunks, where)
        if self.missing == "refuse" and missing.any():
            _refuse_missing(where, "declare missing='category', or drop those records")
        unknown = (position < 0) & ~missing
        if self.unknown == "refuse" and unknown.any():
            raise DataRefused(
                rule=f"{where} must have declared categories only",
                got="another value",
                remedy=("add it to the public list, or declare ", Argument("unknown", "other")),
            )
        position[unknown] = len(self.values)
        position[missing] = len(self.labels) - 1
        return position

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

    missing: str = "category"

    def __post_init__(self) -> None:
        _one_of("missing", self.missing, ("category", "refuse"))

    @property
    def labels(self) -> tuple[str, ...]:
        """False and true, and "missing" where it is declared."""
        return ("false", "true", MISSING) if self.missing == "category" else ("false", "true")

    def codes(self, chunks: Any, where: str) -> Codes:
        """Positions in :attr:`labels`."""
        return CategoryColumn((0, 1), missing=self.missing).codes(chunks, where)


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column of numbers, clipped to a declared range.

    Parameters
    ----------
    low, high : float
        The range that a record may have; known beforehand.
    fill : float, optional
        What stands for a missing number, inside the range; an indicator then says that it was missing.
        Without it missing numbers are refused.
    bins : int
        Into how many even parts the range is cut where categories are needed: codes and sets.

    Examples
    --------
    >>> NumberColumn(0, 120, fill=40, bins=3).labels
    ('[0, 40)', '[40, 80)', '[80, 120]', 'missing')
    """

    low: float
    high: float
    fill: float | None = None
    bins: int = 10

    def __post_init__(self) -> None:
        numbers = (self.low, self.high) if self.fill is None else (self.low, self.high, self.fill)
        if not all(_is_number(each) and math.isfinite(each) for each in numbers) or self.low >= self.high:
            raise UsageError(
                rule="a column of numbers must have a finite low < high",
                got="something else",
                remedy="declare the range that a record may have",
            )
        if self.fill is not None and not self.low <= self.fill <= self.high:
            raise UsageError(
                parameter="fill",
                rule="must be within the declared range",
                got=f"{self.fill:g}",
                remedy="choose one inside",
            )
        if isinstance(self.bins, bool) or not isinstance(self.bins, int | np.integer) or self.bins < 1:
            raise UsageError(
                parameter="bins", rule="must be a positive integer", got=shown(self.bins), remedy="try 10"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The parts of the range, then "missing" if a fill value is declared."""
        edges = np.linspace(self.low, self.high, self.bins + 1)
        parts = [f"[{a:g}, {b:g})" for a, b in pairwise(edges)]
        parts[-1] = parts[-1][:-1] + "]"
        return tuple(parts) + (() if self.fill is None else (MISSING,))

    def numbers(self, chunks: Any, where: str) -> tuple[Floats, NDArray[np.bool_]]:
        """Numbers clipped to the range, missing ones filled, and which of them were missing."""
        values, missing = numbers_with_missing(chunks, where)
        if self.fill is not None:
            values = np.where(missing, self.fill, values)
        elif missing.any():
            _refuse_missing(where, "declare a fill value, or drop those records")
        return np.clip(values, self.low, self.high), missing

    def codes(self, chunks: Any, where: str) -> Codes:
        """Positions in :attr:`labels`: a part of the range, or that the number is missing."""
        values, missing = self.numbers(chunks, where)
        share = (values - self.low) / (self.high - self.low)
        part = np.minimum((share * self.bins).astype(np.int32), self.bins - 1)
        part[missing] = self.bins
        return part


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


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


def _refuse_missing(where: str, remedy: str) -> None:
    raise DataRefused(rule=f"{where} must not have missing values", got="some", remedy=f"{remedy}")
