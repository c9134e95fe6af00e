"""What a column may hold, declared by a person and never learned from the records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, is_number
from hushsum.errors import Argument, DataRefused, UsageError, shown
from hushsum.files import Stored

from ._arrow import in_words, numbers_with_missing, pyarrow
from ._cell_format import DateFormat

__all__ = [
    "MISSING", "CategoryColumn", "DateColumn", "DeclaredColumn", "FlagColumn", "NumberColumn",
    "column_from_json",
]  # fmt: skip

Codes = NDArray[np.int32]

OTHER: Final = "other"
MISSING: Final = "missing"
MAX_CATEGORIES: Final = 1 << 20
# Up to here integers are exact in float64, through which every number is compared.
_EXACT: Final = 1 << 53


class _Declared(Stored):
    """What the declarations of all kinds of columns share."""

    __slots__ = ()
    kind: ClassVar[str]

    def as_json(self) -> dict[str, Any]:
        """The declaration as JSON values, which `column_from_json` reads."""
        return {"kind": self.kind, **Stored.as_json(self)}


@dataclass(frozen=True, slots=True)
class CategoryColumn(_Declared):
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
            raise UsageError("values", "must be a list of values", got=type(self.values).__name__)
        values = tuple(each.item() if isinstance(each, np.generic) else each for each in self.values)
        object.__setattr__(self, "values", values)
        if not 1 <= len(values) <= MAX_CATEGORIES:
            raise UsageError("values", f"must be 1 to {MAX_CATEGORIES} categories", got=len(values))
        text = all(isinstance(each, str) for each in values)
        if not text and not all(_is_category_number(each) for each in values):
            rule = "must be all text, or all finite numbers below 2⁵³"
            raise UsageError("values", rule, got="something else", remedy="write them alike")
        if len(set(values)) != len(values):
            raise UsageError("values", "must be listed once each")
        _one_of("unknown", self.unknown, "refuse", OTHER)
        _one_of("missing", self.missing, "category", "refuse")
        if len(set(self.labels)) != len(self.labels):
            rule = "must not contain 'other' or 'missing' beside those of the encoder"
            raise UsageError("values", rule, remedy="rename it")

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories as text, then "other" and "missing" where they are declared."""
        extra = (OTHER,) * (self.unknown == OTHER) + (MISSING,) * (self.missing == "category")
        return tuple(_as_text(each) for each in self.values) + extra

    @property
    def size(self) -> int:
        """The number of labels, without making them: a file may declare more than it could list."""
        return len(self.values) + (self.unknown == OTHER) + (self.missing == "category")

    def codes(self, chunks: Any, where: str) -> Codes:
        """Positions in :attr:`labels`."""
        position, missing = self._positions(chunks, where)
        if self.missing == "refuse" and missing.any():
            refuse_missing(where, "declare missing='category', or drop those records")
        unknown = (position < 0) & ~missing
        if self.unknown == "refuse" and unknown.any():
            raise DataRefused(
                f"{where} must have declared categories only",
                got="another value",
                remedy=("add it to the public list, or declare ", Argument("unknown", "other")),
            )
        position[unknown] = len(self.values)
        position[missing] = self.size - 1
        return position

    @property
    def type_name(self) -> str:
        """The Arrow type of drawn values: text, integers or fractions, as the categories are.

        It follows from the declaration: the type of the records' column may depend on one record, as where
        one missing value turns integers into fractions.
        """
        if isinstance(self.values[0], str):
            return "string"
        return "int64" if all(float(each).is_integer() for each in self.values) else "double"

    def drawn(self, codes: Codes, random: np.random.Generator) -> list[Any]:
        """The categories; "other" as a text beside texts, and as missing beside numbers."""
        other = OTHER if isinstance(self.values[0], str) else None
        listed = [*self.values, *([other] if self.unknown == OTHER else []), None]
        return [listed[code] for code in codes.tolist()]

    def _positions(self, chunks: Any, where: str) -> tuple[Codes, NDArray[np.bool_]]:
        """Positions in the declared list, −1 where a value is not in it, and which are missing."""
        pa = pyarrow()
        if pa.types.is_null(chunks.type):
            return np.full(len(chunks), -1, np.int32), np.ones(len(chunks), bool)
        text = isinstance(self.values[0], str)
        if text != pa.types.is_large_string(chunks.type):
            declared, got = "text" if text else "numbers", in_words(chunks.type)
            raise DataRefused(
                f"{where} is declared with categories that are {declared}", got=got, remedy="write them alike"
            )
        if not text:
            values, missing = numbers_with_missing(chunks, where)
            # Plus zero: −0 and 0 are one category.
            chunks = pa.chunked_array([pa.array(values + 0.0)])
        else:
            missing = np.asarray(chunks.is_null(), bool)
        listed = pa.array(self.values if text else [float(each) + 0.0 for each in self.values], chunks.type)
        found = pyarrow("compute").index_in(chunks, value_set=listed)
        position: Codes = np.asarray(found.fill_null(-1)).astype(np.int32)
        return position, missing


@dataclass(frozen=True, slots=True)
class FlagColumn(_Declared):
    """A column that is true or false: booleans, or the numbers 0 and 1.

    Parameters
    ----------
    missing : {"category", "refuse"}
        Whether a missing value is a category of its own, or refused.
    """

    kind: ClassVar[str] = "flag"

    missing: str = "category"

    def __post_init__(self) -> None:
        _one_of("missing", self.missing, "category", "refuse")

    @property
    def labels(self) -> tuple[str, ...]:
        """False and true, and "missing" where it is declared."""
        return ("false", "true") + (MISSING,) * (self.missing == "category")

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


def _is_category_number(value: object) -> bool:
    return isinstance(value, bool | int | float) and math.isfinite(value) and abs(value) < _EXACT


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _one_of(name: str, value: object, *choices: str) -> None:
    if value not in choices:
        raise UsageError(name, f"must be {' or '.join(map(repr, choices))}", got=shown(value))


def _parts(ends: Iterable[str]) -> tuple[str, ...]:
    """Ranges between neighbouring ends, of which the last includes its upper end."""
    *parts, last = (f"[{low}, {high})" for low, high in pairwise(ends))
    return *parts, last[:-1] + "]"


def refuse_missing(where: str, remedy: str) -> None:
    """Refuse missing values where none are declared."""
    raise DataRefused(f"{where} must not have missing values", got="some", remedy=f"{remedy}")


@dataclass(frozen=True, slots=True)
class NumberColumn(_Declared):
    """A column of numbers, clipped to a declared range.

    Parameters
    ----------
    low, high : float
        The range that a record may have; known beforehand.
    fill : float, optional
        What stands for a missing number, inside the range; an indicator then says that it was missing, and
        among categories missing is one of its own. Without it missing numbers are refused.
    bins : int or sequence of float
        How the range is cut where categories are needed: codes, sets and marginals: into that many even
        parts, or at these edges, from ``low`` to ``high``; as for `numpy.histogram`.
    whole : bool
        Whether synthetic values are integers, such as ages.

    Examples
    --------
    >>> NumberColumn(0, 120, fill=40, bins=3).labels
    ('[0, 40)', '[40, 80)', '[80, 120]', 'missing')
    >>> NumberColumn(0, 100_000, bins=[0, 1, 1000, 100_000]).labels
    ('[0, 1)', '[1, 1000)', '[1000, 100000]')
    """

    kind: ClassVar[str] = "numbers"

    low: float
    high: float
    fill: float | None = None
    bins: int | Sequence[float] = 10
    whole: bool = False

    def __post_init__(self) -> None:
        if type(self.whole) is not bool:
            raise UsageError("whole", "must be true or false", got=shown(self.whole), remedy="try true")
        numbers = (self.low, self.high) if self.fill is None else (self.low, self.high, self.fill)
        if not all(is_number(each) and math.isfinite(each) for each in numbers) or not (
            self.low < self.high and math.isfinite(self.high - self.low)
        ):
            rule = "a column of numbers must have a finite low < high"
            remedy = "declare the range that a record may have"
            raise UsageError(rule, got="something else", remedy=remedy)
        for name, number in zip(("low", "high", "fill"), numbers, strict=False):
            object.__setattr__(self, name, float(number))
        if self.fill is not None and not self.low <= self.fill <= self.high:
            rule = "must be within the declared range"
            raise UsageError("fill", rule, got=f"{self.fill:g}", remedy="choose one inside")
        if isinstance(self.bins, Sequence | np.ndarray):
            edges = tuple(float(each) for each in self.bins if is_number(each))
            rising = len(edges) == len(self.bins) >= 2 and all(a < b for a, b in pairwise(edges))
            if not rising or edges[0] != self.low or edges[-1] != self.high:
                rule = "must be edges that rise from the low to the high end of the range"
                remedy = "list them, or give a number of even parts"
                raise UsageError("bins", rule, got="others", remedy=remedy)
            object.__setattr__(self, "bins", edges)
        elif isinstance(self.bins, bool) or not isinstance(self.bins, int | np.integer) or self.bins < 1:
            raise UsageError("bins", "must be a positive integer", got=shown(self.bins), remedy="try 10")
        else:
            object.__setattr__(self, "bins", int(self.bins))
        if self.parts > MAX_CATEGORIES:
            rule = f"must cut the range into at most {MAX_CATEGORIES} parts"
            raise UsageError("bins", rule, got=self.parts)

    @property
    def parts(self) -> int:
        """How many parts the range is cut into."""
        return len(self.bins) - 1 if isinstance(self.bins, Sequence) else self.bins

    @property
    def edges(self) -> Floats:
        """Where the range is cut, its ends included."""
        if isinstance(self.bins, Sequence):
            return np.array(self.bins, np.float64)
        return np.linspace(self.low, self.high, self.bins + 1)

    @property
    def labels(self) -> tuple[str, ...]:
        """The parts of the range, then "missing" if a fill value is declared."""
        return _parts(f"{edge:g}" for edge in self.edges) + (MISSING,) * (self.fill is not None)

    @property
    def size(self) -> int:
        """The number of labels."""
        return self.parts + (self.fill is not None)

    def numbers(self, chunks: Any, where: str) -> tuple[Floats, NDArray[np.bool_]]:
        """Numbers clipped to the range, missing ones filled, and which of them were missing."""
        values, missing = numbers_with_missing(chunks, where)
        if self.fill is not None:
            values = np.where(missing, self.fill, values)
        elif missing.any():
            refuse_missing(where, "declare a fill value, or drop those records")
        return np.clip(values, self.low, self.high), missing

    def codes(self, chunks: Any, where: str) -> Codes:
        """Positions in :attr:`labels`: a part of the range, or that the number is missing."""
        values, missing = self.numbers(chunks, where)
        if isinstance(self.bins, Sequence):
            # The position of the last edge that is not above the value: comparisons of that value alone.
            part = np.searchsorted(self.edges[1:-1], values, side="right").astype(np.int32)
        else:
            share = (values - self.low) / (self.high - self.low)
            part = np.minimum((share * self.bins).astype(np.int32), self.parts - 1)
        part[missing] = self.parts
        return part

    @property
    def type_name(self) -> str:
        """Integers where they are declared so."""
        return "int64" if self.whole else "double"

    def drawn(self, codes: Codes, random: np.random.Generator) -> Floats:
        """Numbers even within their part of the range, whole ones among the integers in it; NaN where
        missing. A part without an integer gives the nearest one in the range.
        """
        edges = self.edges
        known = np.minimum(codes, self.parts - 1)
        low, high = edges[known], edges[known + 1]
        even = random.random(len(codes))
        if self.whole:
            first = np.ceil(low)
            # The last part includes its upper end, the others do not.
            last = np.where(known == self.parts - 1, np.floor(high), np.ceil(high) - 1.0)
            number = np.maximum(last - first + 1.0, 1.0)
            values = np.clip(first + np.floor(even * number), np.ceil(self.low), np.floor(self.high))
        else:
            values = low + even * (high - low)
        return np.where(codes == self.parts, np.nan, values)


@dataclass(frozen=True, slots=True)
class DateColumn(_Declared):
    """A column of days, clipped to a declared range; a time of day is left out.

    Parameters
    ----------
    low, high : str
        The first and the last day that a record may have, as ISO dates; known beforehand.
    bins : int or sequence of str
        How the range is cut: into that many parts of nearly as many days, or at these days, from ``low`` to
        ``high``. A part begins with its day and ends before the next one; the last includes ``high``.
    missing : {"category", "refuse"}
        Whether a missing date is a category of its own, or refused.
    pattern : str, optional
        How dates are written in columns of text, such as ``%d.%m.%Y``; by default ISO dates. Columns of dates
        and times, which tables of Arrow, pandas and Polars have, need none.

    Examples
    --------
    >>> DateColumn("2024-01-01", "2024-12-31", bins=["2024-01-01", "2024-07-01", "2024-12-31"]).labels
    ('[2024-01-01, 2024-07-01)', '[2024-07-01, 2024-12-31]', 'missing')
    """

    kind: ClassVar[str] = "dates"

    low: str
    high: str
    bins: int | Sequence[str] = 12
    missing: str = "category"
    pattern: str | None = None

    def __post_init__(self) -> None:
        _one_of("missing", self.missing, "category", "refuse")
        if not isinstance(self.bins, str) and isinstance(self.bins, Sequence):
            object.__setattr__(self, "bins", tuple(self.bins))
        # The rules of the range and of its parts are those of numbers.
        _ = self._days, self._format

    @property
    def _format(self) -> DateFormat:
        return DateFormat(pattern=self.pattern)

    @property
    def _days(self) -> NumberColumn:
        """The column as days since 1970."""
        iso = DateFormat()
        low = math.floor(iso.number(self.low, "low"))
        high = math.floor(iso.number(self.high, "high"))
        bins: Any = self.bins
        if isinstance(bins, tuple):
            bins = [math.floor(iso.number(each, "bins")) for each in bins]
        return NumberColumn(
            low, high, fill=low if self.missing == "category" else None, bins=bins, whole=True
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The parts of the range by their first days, then "missing" where it is declared."""
        days = self._days
        first = np.ceil(days.edges).astype("datetime64[D]").astype(str)
        return _parts(first) + (MISSING,) * (self.missing == "category")

    @property
    def size(self) -> int:
        """The number of labels."""
        return self._days.size

    def codes(self, chunks: Any, where: str) -> Codes:
        """Positions in :attr:`labels`."""
        pa = pyarrow()
        if pa.types.is_null(chunks.type):
            return self._days.codes(chunks, where)
        if pa.types.is_large_string(chunks.type):
            numbers = self._format.numbers(chunks)
        elif in_words(chunks.type) == "dates":
            # Of the day itself: a time zone is that of the column, and a time of day is left out.
            numbers = chunks.cast(pa.date32(), safe=False).cast(pa.int32())
        else:
            numbers = None
        if numbers is None:
            rule, remedy = f"{where} is declared as dates", "declare another kind, or how they are written"
            raise DataRefused(rule, got="another kind, or text that is not a date", remedy=remedy)
        days = pyarrow("compute").floor(numbers.cast(pa.float64()))
        return self._days.codes(days, where)

    @property
    def type_name(self) -> str:
        """Days."""
        return "date32"

    def drawn(self, codes: Codes, random: np.random.Generator) -> NDArray[np.datetime64]:
        """Days even within their part of the range; NaT where missing."""
        days = self._days.drawn(codes, random)
        known = np.where(np.isnan(days), 0.0, days).astype("datetime64[D]")
        return np.where(np.isnan(days), np.datetime64("NaT", "D"), known)


DeclaredColumn = CategoryColumn | DateColumn | FlagColumn | NumberColumn
"""One column of a record: a finite list of public labels, and which of them a value has."""

COLUMN_KINDS: Final[Mapping[str, type[Any]]] = {
    kind.kind: kind for kind in (CategoryColumn, DateColumn, FlagColumn, NumberColumn)
}


def column_from_json(data: object) -> DeclaredColumn:
    """The declaration that ``as_json`` of a column describes; what has a default may be left out.

    >>> column_from_json({"kind": "numbers", "low": 0, "high": 120, "bins": 12}).parts
    12

    Raises
    ------
    UsageError
        An unknown kind, an unknown field, or a value that breaks a rule.
    """
    kinds = " or ".join(map(repr, COLUMN_KINDS))
    if not isinstance(data, Mapping) or data.get("kind") not in COLUMN_KINDS:
        raise UsageError(
            f"the declaration of a column must have a 'kind' that is {kinds}",
            got=shown(data.get("kind")) if isinstance(data, Mapping) else type(data).__name__,
            remedy='write for example {"kind": "numbers", "low": 0, "high": 120}',
        )
    given = {str(name): value for name, value in data.items() if name != "kind"}
    kind = COLUMN_KINDS[data["kind"]]
    known = {each.name for each in fields(kind)}
    needed = {"values", "low", "high"} & known
    if not needed <= set(given) <= known:
        raise UsageError(
            f"a column of the kind {data['kind']!r} is declared by {', '.join(sorted(known))}, "
            f"of which {', '.join(sorted(needed)) or 'none'} must be given",
            got="others",
            remedy="correct the declaration",
        )
    column: DeclaredColumn = kind(**given)
    return column
