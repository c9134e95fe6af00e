"""Find the modes of a released function by querying it, and read their heights from rows held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.bases.base import RowReading
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.sketch import TableFunction

Function = Callable[[Floats], Floats]

_HALVINGS: Final = 8
_MOST_ROUNDS: Final = 200
_MOST_DIRECTIONS: Final = 16
_ON_A_SEGMENT: Final = 17


def spread_points(low: Floats, high: Floats, number: int, seed: int) -> Floats:
    """Public points that fill a box evenly, shape (number, dim)."""
    from scipy.stats import qmc

    power = max(1, int(np.ceil(np.log2(max(number, 2)))))
    unit = qmc.Sobol(len(low), scramble=True, rng=np.random.default_rng(seed)).random_base2(power)
    return np.asarray(low + (high - low) * unit[:number], np.float64)


def separated(points: Floats, values: Floats, distance: float, most: int) -> Integers:
    """Positions of the highest points of which no two are closer than ``distance``, highest first."""
    kept: list[int] = []
    for i in np.argsort(-values, kind="stable"):
        near = kept and (np.linalg.norm(points[kept] - points[i], axis=1) < distance).any()
        if not near:
            kept.append(int(i))
        if len(kept) == most:
            break
    return np.array(kept, np.int64)


def climb(
    f: Function, starts: Floats, low: Floats, high: Floats, *, step: float, seed: int
) -> tuple[Floats, Floats]:
    """Climb from every start by compass search; the points reached and the function there.

    Each round looks in both directions along a random orthogonal frame, goes to the highest point if it is
    higher, and halves its step otherwise, down to 2⁻⁸ of ``step``. All starts climb together, so a round is
    one batch of queries.

    Notes
    -----
    Kolda, Lewis, Torczon, *Optimization by direct search*, SIAM Review 2003. The released function is a sum
    of steps with noise: what is reached is a local maximum of that function, up to the last step.
    """
    random = np.random.default_rng(seed)
    points, values = starts.copy(), f(starts)
    sizes = np.full(len(points), step)
    dim = points.shape[1]
    for _ in range(_MOST_ROUNDS):
        active = np.flatnonzero(sizes > step * 2.0**-_HALVINGS)
        if not len(active):
            break
        frame = np.linalg.qr(random.standard_normal((dim, dim)))[0][:_MOST_DIRECTIONS]
        directions = np.concatenate([frame, -frame])
        trials = np.clip(points[active, None] + sizes[active, None, None] * directions, low, high)
        found = f(trials.reshape(-1, dim)).reshape(len(active), -1)
        best = found.argmax(axis=1)
        higher = found[np.arange(len(active)), best] > values[active]
        moved = active[higher]
        points[moved] = trials[higher, best[higher]]
        values[moved] = found[higher, best[higher]]
        sizes[active[~higher]] /= 2.0
    return points, values


def distinct_modes(
    f: Function, points: Floats, values: Floats, *, distance: float, prominence: Floats, most: int | None
) -> Integers:
    """Positions of the points that are modes of their own, highest first.

    A point is one if it is at least its ``prominence`` above 0, further than ``distance`` from every
    higher mode, and if on the straight way to each of them the function falls below it by at least its
    prominence. Two ends of a curved ridge count as two.
    """
    kept: list[int] = []
    fractions = np.linspace(0.0, 1.0, _ON_A_SEGMENT)[1:-1, None]
    for i in np.argsort(-values, kind="stable"):
        if most is not None and len(kept) == most:
            break
        if kept and values[i] < prominence[i]:
            continue
        own = True
        for j in kept:
            if np.linalg.norm(points[i] - points[j]) < distance:
                own = False
                break
            way = points[i] + fractions * (points[j] - points[i])
            if f(way).min() > values[i] - prominence[i]:
                own = False
                break
        if own:
            kept.append(int(i))
    return np.array(kept, np.int64)


_FEWEST_ROWS: Final = 8
"""Fewer rows than this on either side, and their spread says too little: none are held out then."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """A released table whose last ``rows`` rows are kept apart; ``searched`` answers from the others.

    The rows of a table are independent, hash functions and noise alike, so a query that was found with some
    of them was chosen without regard to the rest.
    """

    whole: NoisyTable
    searched: NoisyTable
    rows: int

    @classmethod
    def of(cls, function: NoisyTable, part: float) -> HeldOut:
        """Keep a part of the rows apart; whole blocks of them, where rows share random numbers. A grid or
        random features have no rows to hold out.
        """
        if not isinstance(function, TableFunction):
            return cls(function, function, 0)
        block = function.reading.independent_rows
        blocks = function.rows // block
        apart = max(_FEWEST_ROWS, round(part * blocks)) if part > 0.0 else 0
        if apart == 0 or blocks - apart < _FEWEST_ROWS:
            return cls(function, function, 0)
        first = (blocks - apart) * block
        searched = TableFunction(
            _first_rows(function.reading, first),
            function.table[:first],
            function.claim,
            function.noise,
            function.noisy_count,
            function.count_noise,
            function.producer,
        )
        return cls(function, searched, function.rows - first)

    def heights(self, points: Floats) -> tuple[Floats, Floats]:
        """Mean kernel values at points that were found by ``searched``, and their standard errors; from the
        rows that were held out.
        """
        f = self.whole
        assert isinstance(f, TableFunction)
        first = f.rows - self.rows
        cells = f.reading.cells(f.basis.prepare_queries(points))[:, first:]
        counts = f.table[np.arange(first, f.rows), cells].astype(np.float64)
        block = f.reading.independent_rows
        blocks = counts.shape[1] // block
        means = counts[:, : blocks * block].reshape(len(points), blocks, block).mean(axis=2)
        sums = f.reading.unfold(means.mean(axis=1), f.count)
        keep = 1.0 / (1.0 - f.reading.fold_rate)
        variance = np.maximum(means.var(axis=1, ddof=1) / blocks, f.noise.variance / self.rows)
        # f̂/N̂ with both estimated, as in TableFunction.query.
        slope = keep * f.reading.fold_rate + sums / f.count
        errors: Floats = np.sqrt(keep**2 * variance + slope**2 * f.count_stderr**2) / f.count
        return sums / f.count, errors


def _first_rows(reading: RowReading, rows: int) -> RowReading:
    fewer = reading.basis.prefix(rows).reading(reading.kernel)
    assert isinstance(fewer, RowReading)
    return fewer
