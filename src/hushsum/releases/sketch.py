"""A released table: the noisy sum of a basis's vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import RowAverages, RowReading
from hushsum.bases.hash_rows import groups_for, median_of_means_bound
from hushsum.errors import UsageError, shown
from hushsum.kernels.base import Batch
from hushsum.kernels.parameters import one_of
from hushsum.releases.answers import Answers, Points, Quotient, check_question, normal_quantile
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.simultaneous_intervals import (
    MOST_NUMBERS,
    MOST_QUERIES,
    Simulation,
    multiplier_maxima,
    simultaneous_reach,
)

ESTIMATORS = ("mean", "median-of-means")
_RARE = 0.001
"""The probability with which ``Answers.bound`` may be too small."""

_CELLS_AT_A_TIME = 1 << 22
_FEWEST_BLOCKS = 8
"""Below this many independent blocks of rows their spread is too uncertain, and the bound is reported
instead.
"""


@dataclass(frozen=True, eq=False)
class TableFunction(NoisyTable):
    """A released sketch: public, frozen, answering mean kernel values for any number of queries.

    Made by ``Tally.release`` or ``hushsum.load``; not by hand.

    Privacy
    -------
    Everything here is computed from noisy integers and public parameters, so using it spends nothing.
    """

    reading: RowReading

    def __repr__(self) -> str:
        rows, width = self.basis.shape
        return f"ReleasedFunction({self.kernel!r}, rows={rows}, width={width}, claim={self.claim!r})"

    @cached_property
    def _table_count(self) -> tuple[float, float]:
        """Algorithm 2's own estimate: every row sums to the number of records."""
        rows, width = self.basis.shape
        cells = self.cells
        total = cells.sum(dtype=np.int64) if isinstance(cells, np.ndarray) else cells.total
        return float(total) / rows, width * self.cell_variance / rows

    def _own_count(self) -> tuple[float, float]:
        return self._table_count

    @property
    def _number_slope(self) -> float:
        rate = self.reading.fold_rate
        return rate / (1.0 - rate)

    @property
    def table_count(self) -> float:
        """Algorithm 2's own estimate of the number of records, from the table alone; 10 to 20 times
        noisier.
        """
        return max(self._table_count[0], 1.0)

    def __call__(
        self,
        Q: object,
        *,
        estimator: str = "mean",
        count: str = "combined",
        nonnegative: bool = False,
        failure: float = 0.05,
        threads: int = 1,
    ) -> Floats:
        """Mean kernel values f(q)/N̂ (Algorithm 2), shape (n_queries,).

        Parameters
        ----------
        Q : records as the kernel takes them
            Queries; a single dense query may be one-dimensional.
        estimator : {"mean", "median-of-means"}
            Over the rows. The median of means has the guarantee of Theorem 3.4, the mean usually the
            smaller error.
        count : {"combined", "table"}
            ``"table"`` is Algorithm 2 as published, which takes N from the table alone.
        nonnegative : bool
            Raise negative answers to 0: closer to the truth for each query, biased upwards on average.
        failure : float
            Of the median of means: the probability with which :meth:`error_bound` may be exceeded. It decides
            how many groups the rows are cut into.
        """
        if estimator == "mean" and count == "combined" and threads == 1 and not nonnegative:
            values = self._quick(Q)
            if values is not None:
                return values
        number = self._number(count)
        return self._sums(Q, estimator, number, 1.0 / max(number, 1.0), nonnegative, failure, threads)

    def sum(
        self,
        Q: object,
        *,
        estimator: str = "mean",
        count: str = "combined",
        nonnegative: bool = False,
        failure: float = 0.05,
        threads: int = 1,
    ) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,); parameters as for calling the function."""
        if estimator == "mean" and count == "combined" and threads == 1 and not nonnegative:
            values = self._quick_sum(Q)
            if values is not None:
                return values
        return self._sums(Q, estimator, self._number(count), 1.0, nonnegative, failure, threads)

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals, from the spread over the rows.

        ``of`` is ``"mean"`` for f(q)/N̂ or ``"sum"`` for f(q). The error of N̂ is part of both. With
        ``simultaneous`` all intervals together hold at ``level``: as wide as rows with random weights show
        (multiplier bootstrap), or as Bonferroni's.
        """
        check_question(of, level)
        points = self._points(Q)
        readings = self._read(points, threads)
        count, number_variance = self._counts
        sums, number = self.reading.unfold(readings.mean, count), max(count, 1.0)
        rate = self.reading.fold_rate
        keep = 1.0 / (1.0 - rate)
        most = self._largest_variance(readings.mean, _RARE)
        enough = readings.blocks >= _FEWEST_BLOCKS
        spread = np.maximum(readings.variance, self._noise_variance) if enough else most
        # f̂ = keep·(mean − rate·N̂): the two errors are independent up to the table's small part in N̂.
        folded = keep * rate
        blocks = max(readings.blocks, 2) if enough else None
        reach = normal_quantile(level, blocks)
        if simultaneous:
            slope = np.full(len(sums), folded) if of == "sum" else folded + sums / number
            common = math.sqrt(number_variance) * slope
            simulate = self._simulation(points, keep, keep**2 * spread, common) if enough else None
            quantile = partial(normal_quantile, blocks=blocks)
            reach = simultaneous_reach(level, len(sums), quantile, simulate)
        variance = keep**2 * spread + folded**2 * number_variance
        largest = np.maximum(keep**2 * most + folded**2 * number_variance, variance)
        if of == "sum":
            stderr = np.sqrt(variance)
            lower, upper = sums - reach * stderr, sums + reach * stderr
            return Answers(sums, stderr, lower, upper, np.sqrt(largest), level, points, simultaneous)
        mean = Quotient(sums, number, variance, number_variance, -folded * number_variance)
        lower, upper = mean.interval(reach)
        bound = replace(mean, sum_variance=largest).stderr
        return Answers(mean.value, mean.stderr, lower, upper, bound, level, points, simultaneous)

    def _simulation(self, points: Points, keep: float, variance: Floats, common: Floats) -> Simulation | None:
        if len(points) > MOST_QUERIES or len(points) * self.rows > MOST_NUMBERS:
            return None
        cells = self.reading.cells(self.basis.prepare_queries(points))
        rows = keep * self._values(cells).astype(np.float64)
        block = self.reading.independent_rows
        return partial(multiplier_maxima, rows=rows, block=block, variance=variance, common=common)

    def error_bound(self, Q: object, *, failure: float = 0.05) -> Floats:
        """Theorem 3.4 for ``f.sum(Q, estimator="median-of-means", failure=failure)``, at each query.

        Exceeded with probability at most ``failure``, whatever the data, for queries chosen without regard to
        the hash functions. Half of that pays for the theorem. The theorem's (Σ√k)² is private, so N·f stands
        for it, and the other half pays for bounding N·f from above by what was released.
        """
        mean = self._read(Q, 1).mean
        largest = self._largest_variance(mean, failure / 2.0)
        factor = median_of_means_bound(1.0, self._blocks, failure / 2.0)
        return factor * np.sqrt(self._blocks * largest) / (1.0 - self.reading.fold_rate)

    @cached_property
    def _quick(self) -> Callable[[object], Floats | None]:
        """Mean kernel values of plain arrays, in a third of the time that a single query takes otherwise."""
        return self.reading.reader(self.cells, count=self.count, scale=1.0 / max(self.count, 1.0))

    @cached_property
    def _quick_sum(self) -> Callable[[object], Floats | None]:
        """Kernel sums in the same way."""
        return self.reading.reader(self.cells, count=self.count, scale=1.0)

    def _number(self, count: str) -> float:
        if count == "combined":
            return self.count
        if count == "table":
            return self.table_count
        raise UsageError(
            parameter="count", rule="must be 'combined' or 'table'", got=shown(count), remedy="choose one"
        )

    def _read(self, Q: object, threads: int) -> RowAverages:
        return self.reading.read(self.cells, self.basis.prepare_queries(Q), threads=threads)

    def _sums(
        self,
        Q: object,
        estimator: str,
        number: float,
        scale: float,
        nonnegative: bool,
        failure: float,
        threads: int,
    ) -> Floats:
        """``scale`` times the kernel sums, with ``number`` records."""
        one_of("estimator", estimator, ESTIMATORS)
        batch = self.basis.prepare_queries(Q)
        if estimator == "mean":
            sums = self.reading.sums(self.cells, batch, count=number, scale=scale, threads=threads)
        else:
            sums = scale * self.reading.unfold(self._median_of_means(batch, failure), number)
        return np.maximum(sums, 0.0) if nonnegative else sums

    @cached_property
    def _noise_variance(self) -> float:
        """What noise adds to the variance of a mean over the rows."""
        return self.cell_variance / self.rows

    @cached_property
    def _blocks(self) -> int:
        """How many independent blocks of rows there are; rows of a block share random numbers."""
        return -(-self.rows // self.reading.independent_rows)

    def _median_of_means(self, batch: Batch, failure: float) -> Floats:
        """Groups of whole blocks, ⌈8 ln(2/failure)⌉ of them or as many as there are blocks."""
        groups = min(groups_for(failure / 2.0), self._blocks)
        edges = np.linspace(0, self._blocks, groups + 1).astype(np.int64) * self.reading.independent_rows
        edges[-1] = self.rows
        medians = np.empty(len(batch))
        step = max(1, _CELLS_AT_A_TIME // self.rows)
        cells = self.reading.cells(batch)
        for start in range(0, len(batch), step):
            values = self._values(cells[start : start + step]).astype(np.float64)
            means = np.add.reduceat(values, edges[:-1], axis=1) / np.diff(edges)
            medians[start : start + step] = np.median(means, axis=1)
        return medians

    def _values(self, cells: NDArray[np.int32]) -> NDArray[np.integer[Any]]:
        """The noisy values in ``cells[j, row]`` of every row."""
        if isinstance(self.cells, np.ndarray):
            return self.cells[np.arange(self.rows), cells]
        return self.cells.take(cells)

    def _largest_variance(self, mean: Floats, failure: float) -> Floats:
        """The largest variance of the mean over rows that data with this released mean can have.

        An exact cell X of a row lies in [0, N] and has mean m = Σ(k + (1 − k)/W) and variance at most N·m
        (Theorem 2.5, Cauchy–Schwarz). By the multiplicative Chernoff bound over b independent blocks the
        exact average is below m − t with probability at most exp(−t²·b/(2·m·N)), so m ≤ (a + √(a² +
        average))² with a² = N·ln(1/p)/(2b), even where no row has met a heavy cluster. The average and N are
        known up to noise, whose sums are bounded by Chebyshev's inequality; each of the three takes a third
        of ``failure``.
        """
        part = failure / 3.0
        noise = self._noise_variance
        number = self._counts[0] + math.sqrt(self._counts[1] / part)
        average = np.clip(mean + math.sqrt(noise / part), 0.0, number)
        half = number * math.log(1.0 / part) / (2.0 * self._blocks)
        most = np.minimum((math.sqrt(half) + np.sqrt(half + average)) ** 2, number)
        return number * most / self._blocks + noise
