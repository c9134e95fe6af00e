"""Columns in units of their private quantiles, for models whose noise follows from the range of a column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
_STEPS: Final = 1000
_DOUBLING: Final = 0.7
"""How much further away a value is at twice the distance, beyond the quantiles; about ln 2.

These four were chosen on flights, adult, shuttle and cod_rna (`benchmarks.skewed_columns`), where tails from
0.1 to 0.25, doublings from 0.5 to 1 and shares from 0.1 to 0.3 are nearly as good.
"""
_MOST_COLUMNS: Final = 32
_MOST_KEPT: Final = 10**8
"""Numbers of records that are kept until the release: 0.8 gigabytes."""
_LARGEST_ERROR: Final = 0.5


def split_promise(promise: Promise) -> tuple[Fraction, Promise]:
    """The ε of the quantiles, and what is left for everything else; together they are the promise."""
    assert promise.epsilon is not None
    paid = SHARE * promise.epsilon
    return paid, Promise.of(epsilon=promise.epsilon - paid, delta=promise.delta or None)


def quantiles_are_useful(columns: int, records: int, promise: Promise) -> bool:
    """Whether private quantiles of so many columns are predicted to be off by no more than half of the
    records, from declared quantities alone.

    Beyond that they would be points of the declared range at random. Below it even inaccurate quantiles were
    no worse than the declared range on the tables that the constants were chosen on. Records are kept until
    the release for them, so not where these are very many.

    >>> [quantiles_are_useful(5, records, Promise.of(epsilon=0.1)) for records in (5000, 10_000, 10**8)]
    [False, True, False]
    """
    if columns > _MOST_COLUMNS or columns * records > _MOST_KEPT:
        return False
    paid, _ = split_promise(promise)
    ranks = 2 * columns * math.log(_STEPS) / float(paid)
    return ranks <= _LARGEST_ERROR * records


def columns_quantiles(X: Floats, bounds: Sequence[Pair], epsilon: Fraction) -> Floats:
    """The quantiles of 15 % and 85 % of every column, shape (columns, 2). Spends ``epsilon``.

    Privacy
    -------
    Pure ε for one record present or absent. A record has one value in each column, and its label is not used:
    it takes part in the two choices of every column, each of which has an equal part of ``epsilon``; see
    `private_quantiles`.
    """
    given: Any = {"epsilon": epsilon}
    found = private_quantiles(X, [_TAIL, 1.0 - _TAIL], bounds=list(bounds), grid=_STEPS, **given)
    return np.array(found.values)


@dataclass(frozen=True, slots=True)
class ColumnScaling:
    """A rising map of the declared range of each column onto −1 to 1: straight between two quantiles, and
    beyond them by about the logarithm of the distance.

    So a long tail takes a small part of the range that noise is calibrated to, and no value within the bounds
    is clipped. The map is made of pieces of straight lines, between distances of 1, 2, 4, … half distances of
    the quantiles from their middle.

    Privacy
    -------
    A value is computed from that value, the bounds and the quantiles, by operations that are rounded as IEEE
    754 requires, so its bits depend on no other record.

    >>> scaling = ColumnScaling.of([(-60.0, 1440.0)], [[-10.0, 30.0]])
    >>> scaling.units(np.array([[-60.0], [-10.0], [10.0], [30.0], [1440.0]])).round(2).ravel().tolist()
    [-1.0, -0.67, -0.41, -0.14, 1.0]
    """

    low: Floats
    high: Floats
    middle: Floats
    half: Floats

    @classmethod
    def of(cls, bounds: Sequence[Pair], quantiles: object) -> ColumnScaling:
        """By the bounds and two quantiles of each column; ValueError if they are not that.

        Where both quantiles are equal, a step of their grid takes the place of their distance.
        """
        pairs, found = np.array(bounds, np.float64), np.asarray(quantiles, np.float64)
        if found.shape != pairs.shape or not np.isfinite(found).all():
            raise ValueError("quantiles")
        (low, high), (first, second) = pairs.T, found.T
        if not ((low <= first) & (first <= second) & (second <= high)).all():
            raise ValueError("quantiles")
        step = (high - low) / _STEPS
        return cls(low, high, first / 2.0 + second / 2.0, np.maximum(second - first, step) / 2.0)

    def units(self, X: Floats) -> Floats:
        """Rows in these units, each from −1 to 1."""
        inside = self._compressed(np.clip(X, self.low, self.high))
        least, most = self._compressed(self.low), self._compressed(self.high)
        units: Floats = (inside - (least + most) / 2.0) / ((most - least) / 2.0)
        return units

    def _compressed(self, values: Floats) -> Floats:
        distances = (values - self.middle) / self.half
        size = np.abs(distances)
        # size = mantissa·2^exponent, exactly: a logarithm's last bit may depend on where a number stands.
        mantissa, exponent = np.frexp(np.maximum(size, 1.0))
        doublings = (exponent - 1) + (2.0 * mantissa - 1.0)
        return np.asarray(np.sign(distances) * np.where(size < 1.0, size, 1.0 + _DOUBLING * doublings))
