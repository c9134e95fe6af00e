"""The declared box that records are clipped to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import is_number
from hushsum.errors import UsageError, shown

_BLOCK: Final = 1 << 14
"""Elements converted at a time: the float64 copy stays in the cache, and small beside the data."""

DeclaredBounds = Sequence[tuple[float, float]] | tuple[float, float] | Mapping[str, tuple[float, float]]
"""One (low, high) for all columns, a list with one for each, or a dictionary by the names of columns."""

_FLOAT32_MAX: Final = float(np.finfo(np.float32).max)
_MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class Bounds:
    """A box, declared and never learned from the data, that every record is clipped to.

    Records inside the library are relative to the centre of the box, because float32 has 24 bits: a column of
    timestamps near 1.7e9 in a box one hour wide would otherwise keep only multiples of 128 seconds.

    Parameters
    ----------
    low, high : tuple of float, one per column
        Finite, ``low < high`` in every column.

    Privacy
    -------
    Clipping is elementwise, so a record's bits depend on that record alone. How many records were clipped is
    private, and nothing here counts them.

    Raises
    ------
    UsageError
        A bound is not finite, ``low < high`` fails, or the box is too wide for float32.

    >>> box = Bounds.of([(0, 10), (-1, 1)], dim=2)
    >>> box.clip_and_centre(np.array([[12.0, 0.5]]))
    array([[5. , 0.5]], dtype=float32)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    _low: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _high: NDArray[np.float64] = field(init=False, repr=False, compare=False)
    _centre: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not self.low:
            raise UsageError(parameter="bounds", rule="must have one low and one high for every column")
        _check_sides(list(zip(self.low, self.high, strict=True)), None)
        low_array, high_array = np.array(self.low), np.array(self.high)
        for name, array in (
            ("_low", low_array),
            ("_high", high_array),
            ("_centre", low_array / 2 + high_array / 2),
        ):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def of(cls, value: object, dim: int, columns: Sequence[str] | None = None) -> Bounds | None:
        """Read a ``bounds=`` argument.

        Parameters
        ----------
        value : None, (low, high), a sequence of dim (low, high), a dictionary by column name, or Bounds
            One pair stands for every column. With ``dim=2``, ``((0, 1), (0, 1))`` is two pairs.
        dim : int
            The number of columns.
        columns : sequence of str, optional
            What the columns are called, in their order; needed for a dictionary.

        Raises
        ------
        UsageError
            The value has another shape, or breaks a rule of `Bounds`.
        """
        if value is None:
            return None
        if isinstance(value, Mapping):
            value = _in_order(value, columns)
        if isinstance(value, Bounds):
            bounds = value
        else:
            pairs = _pairs(value, dim)
            _check_sides(pairs, columns)
            bounds = cls(tuple(low for low, _ in pairs), tuple(high for _, high in pairs))
        if bounds.dim != dim:
            raise _another_number(dim)
        return bounds

    @classmethod
    def declared(
        cls, value: object, dim: int, method: str, *, columns: Sequence[str] | None = None
    ) -> Bounds:
        """Read the ``bounds=`` argument of a method that cannot do without."""
        bounds = cls.of(value, dim, columns=columns)
        if bounds is None:
            raise UsageError(
                parameter="bounds",
                rule=f"must be declared for {method}",
                got="none",
                remedy="declare the range that a record may have",
            )
        return bounds

    @property
    def dim(self) -> int:
        """The number of columns."""
        return len(self.low)

    @property
    def centre(self) -> NDArray[np.float64]:
        """The middle of the box, shape (dim,); read-only."""
        return self._centre

    @property
    def half_width(self) -> NDArray[np.float32]:
        """The least float32 that no clipped and centred record exceeds in magnitude, shape (dim,)."""
        # The rounding to float32 is monotone, so the largest magnitude is that of a corner.
        corners = np.stack([self._low - self._centre, self._high - self._centre]).astype(np.float32)
        half: NDArray[np.float32] = np.abs(corners).max(axis=0)
        return half

    def clip_and_centre(self, array: NDArray[Any]) -> NDArray[np.float32]:
        """Clip real numbers of shape (n, dim) to the box and make them relative to its centre.

        The arithmetic is float64 and elementwise; only the result is rounded to float32.
        """
        return self._relative(array, clip=True)

    def centre_only(self, array: NDArray[Any]) -> NDArray[np.float32]:
        """Make real numbers of shape (n, dim) relative to the centre, unclipped: for queries."""
        return self._relative(array, clip=False)

    def _relative(self, array: NDArray[Any], *, clip: bool) -> NDArray[np.float32]:
        if len(array) == 1 and not clip:
            with np.errstate(all="ignore"):
                return (array.astype(np.float64) - self._centre).astype(np.float32)
        out = np.empty(array.shape, dtype=np.float32)
        rows = max(1, min(len(array), _BLOCK // self.dim))
        # The box repeated to the shape of a block: broadcasting over few columns is three times slower.
        low, high, centre = (np.tile(side, (rows, 1)) for side in (self._low, self._high, self._centre))
        with np.errstate(all="ignore"):
            for start in range(0, len(array), rows):
                block = array[start : start + rows].astype(np.float64, order="C")
                if clip:
                    np.maximum(block, low[: len(block)], out=block)
                    np.minimum(block, high[: len(block)], out=block)
                block -= centre[: len(block)]
                out[start : start + rows] = block
        return out

    def as_json(self) -> list[list[float]]:
        """``[[low, high], ...]``, one pair per column."""
        return [[low, high] for low, high in zip(self.low, self.high, strict=True)]

    @classmethod
    def from_json(cls, value: object) -> Bounds:
        """The inverse of `as_json`; raises UsageError for anything else."""
        if not isinstance(value, list) or not value:
            raise UsageError(parameter="bounds", rule="must be a list of [low, high], one per column")
        bounds = cls.of(value, len(value))
        assert bounds is not None
        return bounds


def declared_bounds(
    value: object, *, dim: int, columns: Sequence[str] | None = None
) -> tuple[Bounds | None, tuple[str, ...] | None]:
    """A ``bounds=`` argument and the names of the columns, which a dictionary of bounds gives by itself.

    >>> box, names = declared_bounds({"age": (0, 120), "height": (1.0, 2.5)}, dim=2)
    >>> box.as_json(), names
    ([[0.0, 120.0], [1.0, 2.5]], ('age', 'height'))

    Raises
    ------
    UsageError
        The value has another shape, a dictionary does not name the columns, or a rule of `Bounds` is broken.
    """
    names = None if columns is None else tuple(columns)
    if names is None and isinstance(value, Mapping):
        names = tuple(value)
    return Bounds.of(value, dim, names), names


def _in_order(value: Mapping[Any, Any], columns: Sequence[str] | None) -> object:
    """The pairs of a dictionary in the order of the columns; the one pair of a column of lists."""
    if columns is None:
        raise UsageError(
            parameter="bounds",
            rule="by name need the names of the columns",
            got="columns without names",
            remedy="give a list of pairs",
        )
    names = list(columns)
    if set(value) != set(names) or not all(isinstance(name, str) for name in value):
        raise UsageError(
            parameter="bounds",
            rule="must have the name of every column once and no other",
            got=_names_of(value),
            # The first record of a file without a header would be shown otherwise.
            remedy="give one (low, high) for each column"
            + (f": {_names_of(names)}" if all(map(str.isidentifier, names)) else ""),
        )
    return value[names[0]] if len(names) == 1 else [value[name] for name in names]


def _names_of(names: Iterable[object]) -> str:
    """Some names, for a message."""
    found = [shown(name) for name in names]
    return ", ".join(found[:_MOST_NAMES]) + (", …" if len(found) > _MOST_NAMES else "") or "none"


def _check_sides(pairs: Sequence[tuple[float, float]], columns: Sequence[str] | None) -> None:
    """Refuse a side that is no range of numbers; says which, by its name where columns have names."""
    for number, (low, high) in enumerate(pairs):
        column = number if columns is None or number >= len(columns) else repr(str(columns[number]))
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise UsageError(
                parameter="bounds",
                rule=f"of column {column} must be finite with low < high",
                got=f"({low:g}, {high:g})",
                remedy="declare the range that a record may have",
            )
        if high / 2 - low / 2 > _FLOAT32_MAX:
            raise UsageError(
                parameter="bounds",
                rule=f"of column {column} must be narrower than float32's range",
                got=f"({low:g}, {high:g})",
                remedy="declare a narrower range, or rescale the column",
            )


def _pairs(value: object, dim: int) -> list[tuple[float, float]]:
    rule = f"must be (low, high), or a list of {dim} such pairs, of numbers"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise UsageError(
            parameter="bounds",
            rule=rule,
            got=type(value).__name__,
            remedy="declare the range that a record may have",
        )
    if len(value) == 2 and all(is_number(end) for end in value):
        return [(float(value[0]), float(value[1]))] * dim
    pairs = []
    for pair in value:
        if isinstance(pair, np.ndarray):
            pair = pair.tolist()
        if not isinstance(pair, Sequence) or len(pair) != 2 or not all(is_number(end) for end in pair):
            raise UsageError(
                parameter="bounds",
                rule=rule,
                got="something else among them",
                remedy="declare a pair of numbers for each",
            )
        pairs.append((float(pair[0]), float(pair[1])))
    if len(pairs) != dim:
        raise _another_number(dim)
    return pairs


def _another_number(dim: int) -> UsageError:
    # Not how many: who passes the records as bounds would see their number.
    return UsageError(
        parameter="bounds",
        rule=f"must have one (low, high) for each of {dim} columns",
        got="another number",
        remedy="declare as many, or one for all",
    )


def names_in_words(names: Sequence[str]) -> str:
    """Names on one line, the middle of a long list left out.

    >>> names_in_words([f"x{i}" for i in range(100)])
    'x0, x1, x2, x3, x4, x5, …, x99 (100 columns)'
    """
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _MOST_NAMES - 2])}, …, {names[-1]} ({len(names)} columns)"


def bounds_in_words(bounds: Bounds | None) -> str:
    """Declared bounds on one line, the middle of a long list left out, and once if all are the same."""
    if bounds is None:
        return "none declared"
    ranges = [f"{low:g}:{high:g}" for low, high in zip(bounds.low, bounds.high, strict=True)]
    if len(ranges) > 2 and len(set(ranges)) == 1:
        return f"{ranges[0]} for each of {len(ranges)} columns"
    return names_in_words(ranges)
