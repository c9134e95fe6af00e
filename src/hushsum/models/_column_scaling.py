"""Columns in units of their own middle and spread, by one private release of all their histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hushsum._types import Floats
from hushsum.kernels import HammingKernel
from hushsum.privacy import RECORD, Promise, Relation, calibrate
from hushsum.records import NumberColumn, clipping_allowed
from hushsum.releases import nearest_probabilities
from hushsum.tables import MOST_COLUMNS, Marginals
from hushsum.tally import Tally

from ._accuracy import terms_of
from ._base import require

Pair = tuple[float, float]

TAIL: Final = 0.3
"""The map is straight between the quantiles of 30 % and 70 %."""
# How much further away a value is at twice the distance, beyond the quantiles; about ln 2.
_DOUBLING: Final = 0.7
_FURTHEST: Final = 3.0
# Columns that vary less, in the units of the map, are not enlarged to a variance of 1.
_NARROWEST: Final = 0.15
_EVEN, _HALVINGS = 16, 18
COARSE, _FEW_HALVINGS = 4, 2
_FINER: Final = ((256, 0.001), (64, 0.01))
"""Each range is cut into 16 even parts, and next to its ends and to 0 into halves of halves of these; or
coarsely into 4, whose outer ones are halved twice.

All of these were chosen on the tuning sets of `benchmarks.accuracy.classifier_peers`. Quantiles from 25 to
35 %, doublings from 0.5 to 1 and 8 to 32 parts are nearly as good there.
"""
EVEN_PARTS: Final = (COARSE, _EVEN, *(parts for parts, _ in _FINER))
"""Into how many even parts ranges may be cut."""
_FENCE, _TAILS, _ALIKE = 1.5, 1.9, 0.1
"""Tukey's fences: this many distances of the quartiles beyond them. Where half of the values are nearly
alike, the distance of the quantiles of 10 and 90 % divided by 1.9, which is the same for normal columns.
"""
FENCE_SHARE: Final = Fraction(1, 10)
"""The part of the budget of a regression for its fences."""
_FENCE_PARTS: Final = 64
_TWO_VALUES, _ROOM = 0.95, 1.3
# Histograms are used if the predicted noise of a bin is below this part of the records.
_MOST_NOISE: Final = 0.1
_COUNT_SHARE: Final = Fraction(1, 100)
# Numbers of records that are kept until the release: 0.8 gigabytes.
_MOST_KEPT: Final = 10**8


def can_be_kept(columns: int, records: int) -> bool:
    """Whether this number of records may be kept until the release, and all columns be cut into bins."""
    return columns <= MOST_COLUMNS and columns * records <= _MOST_KEPT


def bin_edges(low: float, high: float, even: int = _EVEN) -> Floats:
    """Where a declared range is cut: ``even`` parts, and towards its ends and towards 0 ever narrower ones,
    since the values of a long tail are many where they are small.

    >>> len(bin_edges(0.0, 1.0)), bool(bin_edges(0.0, 1.0)[1] < 1e-6)
    (53, True)
    """
    parts = np.linspace(low, high, even + 1)
    halvings = _FEW_HALVINGS if even == COARSE else _HALVINGS
    steps = (high - low) / even * 0.5 ** np.arange(1, halvings + 1)
    towards = [low, high, *([0.0] if low < 0.0 < high else [])]
    finer = np.concatenate([[each - steps, each + steps] for each in towards]).ravel()
    inside = finer[(finer > low) & (finer < high)]
    return np.unique(np.concatenate((parts, inside, towards)))


def even_parts(columns: int, records: int, promise: Promise) -> int:
    """Into how many even parts ranges are cut for a declared number of records: 256 or 64 where the noise of
    a bin is predicted to be below a thousandth or a hundredth of them, else 16.

    >>> [even_parts(8, records, Promise.of(epsilon=0.1)) for records in (1000, 20_000, 10**6)]
    [16, 64, 256]
    """
    noise = bin_noise(columns, promise) / records
    return next((parts for parts, most in _FINER if noise <= most), _EVEN)


def marginals_of(box: Sequence[Pair], even: int = _EVEN) -> Marginals:
    """What is counted of each column: a histogram."""
    columns = [NumberColumn(*ends, bins=tuple(bin_edges(*ends, even).tolist())) for ends in box]
    return Marginals.of(columns, [(i,) for i in range(len(columns))])


@dataclass(frozen=True, slots=True)
class Histograms:
    """Estimated shares of the records in the bins of each column; public."""

    edges: list[Floats]
    shares: list[Floats]
    noise: float
    """The standard deviation of the noise of a bin, as a share of the records."""

    @classmethod
    def released(cls, X: Floats, box: Sequence[Pair], promise: Promise, even: int = _EVEN) -> Histograms:
        """Count the records into all histograms, and release these for the whole promise.

        Noisy shares are replaced by the nearest probabilities.

        Privacy
        -------
        One record present or absent, alone or with others of its person: it has one value in each of d
        columns, which its clipped value and the declared range decide, so it moves one cell of each histogram
        by 1, Δ1 = d and Δ2² = d (`Marginals`), and no other record moves. A record that is replaced is one
        that disappears and one that appears, as is one that moves between classes: labels are not used. A
        record that appears twice is two records. The order of records changes nothing. Noise is drawn once,
        in exact integers; the rest is computed from it and from public parameters.
        """
        tally = Tally(marginals_of(box, even), HammingKernel(len(box)))
        with clipping_allowed(quiet=True):
            tally.add(X)
        released: Any = tally.release(**terms_of(promise), count_share=_COUNT_SHARE)
        records = max(float(released.count), 1.0)
        cells = [released.basis.marginal(released.table, i).astype(np.float64) for i in range(len(box))]
        shares = [nearest_probabilities(each / records) for each in cells]
        return cls(
            [bin_edges(*each, even) for each in box], shares, math.sqrt(released.cell_variance) / records
        )

    def quantiles(self, column: int, q: Sequence[float]) -> Floats:
        """Quantiles of a column, as if records were spread evenly inside each bin."""
        ends = np.concatenate(([0.0], np.cumsum(self.shares[column])))
        seen = np.concatenate(([True], np.diff(ends) > 0.0))
        return np.asarray(np.interp(np.array(q) * ends[-1], ends[seen], self.edges[column][seen]))


def bin_noise(columns: int, promise: Promise) -> float:
    """The standard deviation of the noise of one bin, from public parameters alone."""
    basis = marginals_of([(0.0, 1.0)] * columns)
    change = basis.unit_change(RECORD, 1, Relation.ADD_REMOVE)
    calibration = calibrate(promise, change, cells=basis.shape[1], count_share=_COUNT_SHARE)
    return math.sqrt(calibration.table.variance)


def histograms_are_useful(columns: int, records: int, promise: Promise) -> bool:
    """Whether the noise of a bin is predicted to be below a tenth of the records.

    >>> promise = Promise.of(epsilon=0.1)
    >>> [histograms_are_useful(5, records, promise) for records in (500, 5000)]
    [False, True]
    """
    return can_be_kept(columns, records) and bin_noise(columns, promise) <= _MOST_NOISE * records


def fences(X: Floats, box: Sequence[Pair], promise: Promise) -> tuple[Floats, float]:
    """Ends of narrower ranges within the declared ones, shape (2, columns): the quartiles of each column, and
    1.5 times their distance beyond them; and the length that records have in half-widths of these, but for
    the last column, with 1 for a constant and some room.

    The declared ones, where the noise of a bin is more than a tenth of the records. A column of two values at
    the ends of its range keeps it. Spends ``promise``; see `Histograms.released`.
    """
    found, ends, squares = Histograms.released(X, box, promise, _FENCE_PARTS), [], []
    for column, (low, high) in enumerate(box):
        edges, shares = found.edges[column], found.shares[column]
        least, first, last, most = found.quantiles(column, (0.1, 0.25, 0.75, 0.9))
        alike = last - first < _ALIKE * (most - least)
        widest = float(np.diff(edges)[shares.argmax()])
        reach = _FENCE * max((most - least) / _TAILS if alike else last - first, widest)
        two = shares[-1] > 0.0 and shares[0] + shares[-1] > _TWO_VALUES * shares.sum()
        if not two and found.noise <= _MOST_NOISE:
            low, high = max(low, first - reach), min(high, last + reach)
        places = np.clip((edges[:-1] + edges[1:]) / 2.0, low, high)
        squares.append(shares @ np.square((2.0 * places - low - high) / (high - low)))
        ends.append((low, high))
    return np.array(ends).T, math.sqrt(1.0 + min(_ROOM * sum(squares[:-1]), len(box) - 1.0))


@dataclass(frozen=True, slots=True)
class ColumnScaling:
    """A rising map of each column to units of about mean 0 and variance 1: straight between two quantiles,
    and beyond them by about the logarithm of the distance, up to three standard deviations.

    So a long tail takes a small part of the range that noise is calibrated to, and the records lie about the
    origin, wherever in the declared range they are. The map is made of pieces of straight lines, between
    distances of 1, 2, 4, … half distances of the quantiles from their middle.

    Privacy
    -------
    A value is computed from that value, the bounds and what was released, by operations that are rounded as
    IEEE 754 requires, so its bits depend on no other record.

    >>> scaling = ColumnScaling.of([(-60.0, 1440.0)], [[10.0, 20.0, 0.0, 1.0]])
    >>> scaling.units(np.array([[-60.0], [-10.0], [10.0], [30.0], [1440.0]])).round(2).ravel().tolist()
    [-2.22, -1.0, 0.0, 1.0, 3.0]
    """

    low: Floats
    high: Floats
    middle: Floats
    half: Floats
    mean: Floats
    spread: Floats
    furthest: float = _FURTHEST
    """Units are clipped at this many standard deviations."""

    @classmethod
    def of(cls, box: Sequence[Pair], values: object, furthest: float = _FURTHEST) -> ColumnScaling:
        """By middle and half distance of the quantiles, mean and spread of each column, shape (columns, 4);
        ValueError if they are not that.
        """
        pairs, found = np.array(box, np.float64), np.asarray(values, np.float64)
        require(found.shape == (len(pairs), 4) and np.isfinite(found).all(), "scaling")
        (low, high), (middle, half, mean, spread) = pairs.T, found.T
        inside = (low <= middle) & (middle <= high)
        require((inside & (half > 0.0) & (spread > 0.0)).all(), "scaling")
        return cls(low, high, middle, half, mean, spread, furthest)

    @classmethod
    def of_bounds(cls, box: Sequence[Pair], furthest: float = _FURTHEST) -> ColumnScaling:
        """From the middle of the bounds, with their ends at the furthest values."""
        low, high = np.array(box, np.float64).T
        mean, spread = np.zeros_like(low), np.full_like(low, 1.0 / furthest)
        return cls(low, high, (low + high) / 2.0, (high - low) / 2.0, mean, spread, furthest)

    @classmethod
    def of_histograms(
        cls, box: Sequence[Pair], found: Histograms, tail: float = TAIL, furthest: float = _FURTHEST
    ) -> ColumnScaling:
        """By estimated shares of the bins, in which records are taken to be spread evenly; or at the ends of
        their range where a column has these two values alone, as indicators have. The map is straight between
        the quantiles of ``tail`` and 1 − ``tail``.
        """
        low, high = np.array(box, np.float64).T
        spans = np.array([found.quantiles(column, (tail, 1.0 - tail)) for column in range(len(low))])
        # Where both are in one bin, that bin takes the place of their distance.
        columns = list(zip(found.edges, found.shares, strict=True))
        widest = [np.diff(edges)[shares.argmax()] for edges, shares in columns]
        half = np.maximum(spans[:, 1] - spans[:, 0], widest) / 2.0
        plain = cls(low, high, spans.mean(axis=1), half, np.zeros_like(low), np.ones_like(low))
        mean, spread = np.empty_like(low), np.empty_like(low)
        for column, (edges, shares) in enumerate(columns):
            places = edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(5) + 0.5) / 5.0
            places[0], places[-1] = edges[0], edges[-1]
            units = plain._one(column)._compressed(places.reshape(-1, 1)).reshape(places.shape).mean(axis=1)
            mean[column] = shares @ units / shares.sum()
            spread[column] = np.sqrt(shares @ np.square(units - mean[column]) / shares.sum())
        return cls(low, high, plain.middle, half, mean, np.maximum(spread, _NARROWEST), furthest)

    def array(self) -> Floats:
        """What :meth:`of` reads."""
        return np.column_stack((self.middle, self.half, self.mean, self.spread))

    def units(self, X: Floats) -> Floats:
        """Rows in these units."""
        inside = self._compressed(np.clip(X, self.low, self.high))
        return np.asarray(np.clip((inside - self.mean) / self.spread, -self.furthest, self.furthest))

    def _one(self, column: int) -> ColumnScaling:
        one = slice(column, column + 1)
        parts = self.low, self.high, self.middle, self.half, self.mean, self.spread
        low, high, middle, half, mean, spread = (each[one] for each in parts)
        return ColumnScaling(low, high, middle, half, mean, spread, self.furthest)

    def _compressed(self, values: Floats) -> Floats:
        distances = (values - self.middle) / self.half
        size = np.abs(distances)
        # size = mantissa·2^exponent, exactly: a logarithm's last bit may depend on where a number stands.
        mantissa, exponent = np.frexp(np.maximum(size, 1.0))
        doublings = (exponent - 1) + (2.0 * mantissa - 1.0)
        return np.asarray(np.sign(distances) * np.where(size < 1.0, size, 1.0 + _DOUBLING * doublings))


def released_scaling(X: Floats, box: Sequence[Pair], promise: Promise, records: int) -> ColumnScaling:
    """The scaling of private histograms, for a declared number of records. Spends ``promise``; see
    `Histograms.released`.
    """
    even = even_parts(len(box), records, promise)
    return ColumnScaling.of_histograms(box, Histograms.released(X, box, promise, even))
