"""Ranges of columns from private quantiles, for models that clip their records to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hushsum._types import Floats
from hushsum.methods.quantiles import private_quantiles
from hushsum.privacy.claim import Promise

Pair = tuple[float, float]

SHARE: Final = Fraction(1, 5)
"""Of ε, for the quantiles of all columns."""
_TAIL: Final = 0.15
_MARGIN: Final = 1.0
"""A range reaches so many times the distance of its two quantiles beyond each of them."""
_STEPS: Final = 1000
"""Share, tail, margin and steps were chosen on flights, adult, shuttle and cod_rna, where tails from 0.1 to
0.25 and shares from 0.1 to 0.3 are nearly as good.
"""
_MOST_COLUMNS: Final = 32
_LARGEST_ERROR: Final = 0.5


def split_promise(promise: Promise) -> tuple[Fraction, Promise]:
    """The ε of the quantiles, and what is left for everything else; together they are the promise."""
    assert promise.epsilon is not None
    paid = SHARE * promise.epsilon
    return paid, Promise.of(epsilon=promise.epsilon - paid, delta=promise.delta or None)


def quantiles_are_useful(columns: int, records: int, promise: Promise) -> bool:
    """Whether private quantiles of so many columns are predicted to be off by no more than half of the
    records, from declared quantities alone.

    Beyond that they would be points of the declared range at random. Below it even inaccurate ranges were no
    worse than the declared ones on the tables that the constants were chosen on.

    >>> [quantiles_are_useful(5, records, Promise.of(epsilon=0.1)) for records in (5000, 10_000)]
    [False, True]
    """
    if columns > _MOST_COLUMNS:
        return False
    paid, _ = split_promise(promise)
    ranks = 2 * columns * math.log(_STEPS) / float(paid)
    return ranks <= _LARGEST_ERROR * records


def private_ranges(X: Floats, bounds: Sequence[Pair], epsilon: Fraction) -> list[Pair]:
    """For each column a range that contains most of its records, within the declared bounds. Spends
    ``epsilon``.

    The quantiles of 15 % and 85 %, and as much again as lies between them beyond each. If both are equal, one
    step of the grid, a thousandth of the bounds, takes the place of their distance.

    Privacy
    -------
    Pure ε for one record present or absent. A record has one value in each column, and its label is not used;
    so it takes part in the two choices of every column, each of which has the ε of ``epsilon`` over their
    number: see `private_quantiles`. The ranges are computed from the chosen points and the declared bounds.

    >>> from fractions import Fraction
    >>> delays = np.concatenate((np.linspace(-10.0, 30.0, 9000), np.linspace(30.0, 1440.0, 1000)))[:, None]
    >>> [(low, high)] = private_ranges(delays, [(-60.0, 1440.0)], Fraction(1))
    >>> -60.0 <= low < -10.0 and 40.0 < high < 100.0
    True
    """
    given: Any = {"epsilon": epsilon}
    found = private_quantiles(X, [_TAIL, 1.0 - _TAIL], bounds=list(bounds), grid=_STEPS, **given)
    ranges = []
    for (low, high), (first, second) in zip(bounds, found.values, strict=True):
        reach = _MARGIN * max(second - first, (high - low) / _STEPS)
        start, end = max(low, first - reach), min(high, second + reach)
        # In bounds of a few hundred floating-point numbers a step may be none.
        ranges.append((start, end) if start < end else (low, high))
    return ranges


def checked_ranges(array: Any, columns: int) -> Floats:
    """Ranges as a file has them, shape (columns, 2); ValueError if they are none."""
    ranges = np.asarray(array)
    if ranges.shape != (columns, 2) or ranges.dtype != np.float64 or not np.isfinite(ranges).all():
        raise ValueError("ranges")
    if not (ranges[:, 0] < ranges[:, 1]).all():
        raise ValueError("ranges")
    return ranges


def in_ranges(X: Floats, ranges: Floats) -> Floats:
    """Rows clipped to the ranges, from their middle and in units of their half-width; each row alone."""
    low, high = np.asarray(ranges, np.float64).T
    units: Floats = (np.clip(X, low, high) - (low + high) / 2.0) / ((high - low) / 2.0)
    return units
