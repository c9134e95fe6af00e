"""A column of numbers: a declared range, and how it is cut into parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, is_number
from hushsum.errors import UsageError, shown
from hushsum.records.declared_columns import MAX_CATEGORIES, MISSING, Codes, refuse_missing
from hushsum.records.mixed_columns import numbers_with_missing


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A column of numbers, clipped to a declared range.

    Parameters
    ----------
    low, high : float
        The range that a record may have; known beforehand.
    fill : float, optional
        What stands for a missing number, inside the range; an indicator then says that it was missing, and
        among categories missing is one of its own. Without it missing numbers are refused.
    bins : int or sequence of float
        How the range is cut where categories are needed: codes, sets and marginals. Into so many even parts,
        or at these edges, from ``low`` to ``high``; as for `numpy.histogram`.
    whole : bool
        Whether synthetic values are whole numbers, such as ages.

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
            raise UsageError(
                parameter="whole", rule="must be true or false", got=shown(self.whole), remedy="try true"
            )
        numbers = (self.low, self.high) if self.fill is None else (self.low, self.high, self.fill)
        if not all(is_number(each) and math.isfinite(each) for each in numbers) or not (
            self.low < self.high and math.isfinite(self.high - self.low)
        ):
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
        if isinstance(self.bins, Sequence | np.ndarray):
            edges = tuple(float(each) for each in self.bins if is_number(each))
            rising = len(edges) == len(self.bins) >= 2 and all(a < b for a, b in pairwise(edges))
            if not rising or edges[0] != self.low or edges[-1] != self.high:
                raise UsageError(
                    parameter="bins",
                    rule="must be edges that rise from the low to the high end of the range",
                    got="others",
                    remedy="list them, or give a number of even parts",
                )
            object.__setattr__(self, "bins", edges)
        elif isinstance(self.bins, bool) or not isinstance(self.bins, int | np.integer) or self.bins < 1:
            raise UsageError(
                parameter="bins", rule="must be a positive integer", got=shown(self.bins), remedy="try 10"
            )
        if self.parts > MAX_CATEGORIES:
            raise UsageError(
                parameter="bins",
                rule=f"must cut the range into at most {MAX_CATEGORIES} parts",
                got=self.parts,
                remedy="use fewer",
            )

    @property
    def parts(self) -> int:
        """How many parts the range is cut into."""
        return len(self.bins) - 1 if isinstance(self.bins, Sequence) else int(self.bins)

    @property
    def edges(self) -> Floats:
        """Where the range is cut, its ends included."""
        if isinstance(self.bins, Sequence):
            return np.array(self.bins, np.float64)
        return np.linspace(self.low, self.high, self.bins + 1)

    @property
    def labels(self) -> tuple[str, ...]:
        """The parts of the range, then "missing" if a fill value is declared."""
        parts = [f"[{a:g}, {b:g})" for a, b in pairwise(self.edges)]
        parts[-1] = parts[-1][:-1] + "]"
        return tuple(parts) + (() if self.fill is None else (MISSING,))

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
        """Whole numbers where they are declared so."""
        return "int64" if self.whole else "double"

    def drawn(self, codes: Codes, random: np.random.Generator) -> Floats:
        """Numbers even within their part of the range, whole ones among the whole numbers in it; NaN where
        missing. A part without a whole number gives the nearest one in the range.
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

    def as_json(self) -> dict[str, Any]:
        """The range, the fill value, the parts, and whether numbers are whole."""
        fill = None if self.fill is None else float(self.fill)
        bins = list(self.bins) if isinstance(self.bins, Sequence) else int(self.bins)
        return {
            "kind": self.kind,
            "low": float(self.low),
            "high": float(self.high),
            "fill": fill,
            "bins": bins,
            "whole": self.whole,
        }
