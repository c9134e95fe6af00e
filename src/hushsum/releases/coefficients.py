"""Released coefficients: a noisy table whose answers are linear in all of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hushsum._types import Floats
from hushsum.bases.base import LinearReading, SampledReading
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch, Kernel
from hushsum.releases.answers import Answers, Points, Quotient, check_question, normal_quantile
from hushsum.releases.noisy_table import NoisyTable
from hushsum.releases.simultaneous_intervals import (
    DRAWS,
    MOST_NUMBERS,
    MOST_QUERIES,
    Simulation,
    multiplier_maxima,
    noise_table,
    simultaneous_reach,
)

if TYPE_CHECKING:
    from hushsum.releases.features_with_public_points import SharpenedFunction

_FEWEST_BLOCKS = 8
"""Below this many independent blocks of rows their spread is too uncertain; the bound is used instead."""

_SMALL_PART = 0.02
"""Of the table's own number in N̂: below it, its noise goes with that of the answers too little to matter."""


@dataclass(frozen=True, eq=False)
class CoefficientFunction(NoisyTable):
    """A released grid, series or feature vector: public, frozen, answering kernel sums for any query.

    Made by ``Tally.release`` or ``hushsum.load``; not by hand. The noise of an answer is known exactly: each
    is a public linear form of the noisy integers.

    Privacy
    -------
    Everything here is computed from noisy integers and public parameters, so using it spends nothing.
    """

    reading: LinearReading

    def __repr__(self) -> str:
        rows, width = self.basis.shape
        table = f"{self.basis.name} of {rows} × {width}"
        stated = "" if self.unchecked is None else ", noise not yet compared with the claim"
        return f"ReleasedFunction({self.kernel!r}, {table}, claim={self.claim!r}{stated})"

    def _own_count(self) -> tuple[float, float] | None:
        # Whoever asks what kind of object this is looks at its count; that is not yet a use of the table.
        total = self.reading.total(self._unpacked)
        return None if total is None else (total[0], total[1] * self.cell_variance)

    def __call__(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,).

        ``nonnegative`` raises negative answers to 0: closer to the truth for each query, biased upwards on
        average.
        """
        return self.sum(Q, nonnegative=nonnegative, threads=threads) / max(self.count, 1.0)

    def sum(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        if nonnegative and self.kernel.signed:
            raise UsageError(
                parameter="nonnegative",
                rule=f"must be left out: sums of the {self.kernel.name} kernel may be negative",
            )
        sums = self.reading.evaluate(self.table, self.basis.prepare_queries(Q), threads=threads)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def query(
        self,
        Q: object,
        *,
        of: str = "mean",
        level: float = 0.95,
        simultaneous: bool = False,
        threads: int = 1,
    ) -> Answers:
        """Values with standard errors and intervals: the noise exactly, the method's own error as its basis
        estimates it from the table or its rows show it by their spread, and the error of N̂.

        ``simultaneous`` intervals are as wide as the noise of this release, drawn again and again and read at
        these queries, requires; as Bonferroni's where that is too much work.
        """
        points = self._points(Q)
        return self.query_plus(points, 0.0, of=of, level=level, simultaneous=simultaneous, threads=threads)

    def query_plus(
        self,
        points: Points,
        known: Floats | float,
        *,
        of: str,
        level: float,
        simultaneous: bool,
        threads: int,
    ) -> Answers:
        """The same with ``known`` added to the sums, which is exact."""
        check_question(of, level)
        batch = self.basis.prepare_queries(points)
        sums = self.reading.evaluate(self.table, batch, threads=threads)
        count, number_variance = self._counts
        variance, largest, blocks = self._variances(batch, count, threads)
        largest = largest + self.reading.bias_bound(self.table, batch, count, self.cell_variance) ** 2
        reach = normal_quantile(level, blocks)
        sums, number = sums + known, max(count, 1.0)
        if simultaneous:
            common = math.sqrt(number_variance) / number * sums if of == "mean" else np.zeros(len(sums))
            simulate = self._simulation(batch, variance, common, blocks)
            quantile = partial(normal_quantile, blocks=blocks)
            reach = simultaneous_reach(level, len(sums), quantile, simulate)
        if of == "sum":
            stderr, bound = np.sqrt(variance), np.sqrt(np.maximum(largest, variance))
            lower, upper = sums - reach * stderr, sums + reach * stderr
            return Answers(sums, stderr, lower, upper, bound, level, points, simultaneous)
        covariance = self._count_covariance(batch)
        mean = Quotient(sums, number, variance, number_variance, covariance)
        most = replace(mean, sum_variance=np.maximum(largest, variance)).stderr
        lower, upper = mean.interval(reach)
        return Answers(mean.value, mean.stderr, lower, upper, most, level, points, simultaneous)

    def _simulation(
        self, batch: Batch, variance: Floats, common: Floats, blocks: int | None
    ) -> Simulation | None:
        """The errors of these queries, drawn together; None where that is too much work.

        ``common`` is the part of each that the error of N̂ decides. What a basis states of its own error is
        drawn for every query by itself, since nothing is known of its dependence.
        """
        if len(batch) > MOST_QUERIES:
            return None
        if blocks is not None:
            assert isinstance(self.reading, SampledReading)
            if len(batch) * self.rows > MOST_NUMBERS:
                return None
            rows, block = self.reading.rows(self.table, batch)
            return partial(multiplier_maxima, rows=rows, block=block, variance=variance, common=common)
        if self.table.size * DRAWS > MOST_NUMBERS:
            return None
        own = np.sqrt(np.maximum(variance - self.cell_variance * self.reading.noise_gain(batch), 0.0))
        scale = np.sqrt(variance + common**2)
        deviation = math.sqrt(self.cell_variance)

        def simulate(rng: np.random.Generator, draws: int) -> Floats:
            maxima = np.empty(draws)
            for draw in range(draws):
                table, unit = noise_table(rng, self.table.shape, self.noise.mechanism)
                path = deviation / unit * self.reading.evaluate(table, batch, threads=1)
                path += own * rng.standard_normal(len(own)) + common * rng.standard_normal()
                maxima[draw] = (np.abs(path) / np.where(scale > 0.0, scale, np.inf)).max()
            return maxima

        return simulate

    def _count_covariance(self, batch: Batch) -> Floats | float:
        """Of the noise of the sums with that of N̂, as far as N̂ is the table's own number."""
        own = self._own_count()
        if own is None or self.count_noise.variance <= _SMALL_PART * own[1]:
            return 0.0
        part = self.count_noise.variance / (own[1] + self.count_noise.variance)
        return part * self.cell_variance * self.reading.total_covariance(batch)

    def _variances(self, batch: Batch, number: float, threads: int) -> tuple[Floats, Floats, int | None]:
        """The variance of each sum, a larger one that bounds it, and how many blocks the first comes from."""
        noise = self.cell_variance * self.reading.noise_gain(batch)
        method = self.reading.method_variance(self.table, batch, number, self.cell_variance)
        if not isinstance(self.reading, SampledReading):
            return noise + method, noise + method, None
        rows = self.reading.spread(self.table, batch, threads=threads)
        if rows.blocks < _FEWEST_BLOCKS:
            return noise + method, noise + method, None
        return np.maximum(rows.variance, noise), noise + method, rows.blocks

    def with_public_points(self, points: object) -> SharpenedFunction:
        """The same release of Fourier features, read with the help of public points: nothing is spent.

        Parameters
        ----------
        points : as queries
            A few hundred to some thousand *public* points that resemble the records: a public sample,
            synthetic data, or the queries themselves. Never private records. Unsuitable points do no harm.

        Raises
        ------
        UsageError
            if the release is none of Fourier features.
        """
        from hushsum.releases.features_with_public_points import sharpen

        return sharpen(self, points)

    def with_kernel(self, kernel: Kernel) -> CoefficientFunction:
        """The same release, read for another kernel or bandwidth: post-processing, nothing is spent.

        Raises
        ------
        UsageError
            where the table is counted for one kernel, or the kernel does not have the role that it needs.
        """
        reading = self.basis.reading(kernel)
        assert isinstance(reading, LinearReading)
        return replace(self, reading=reading)
