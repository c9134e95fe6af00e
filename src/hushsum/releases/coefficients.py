"""Released coefficients: a noisy table whose answers are linear in all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hushsum._types import Floats
from hushsum.bases.base import LinearReading, SampledReading
from hushsum.kernels.base import Batch, Kernel
from hushsum.releases.answers import Answers, Points, check_question
from hushsum.releases.noisy_table import NoisyTable

if TYPE_CHECKING:
    from hushsum.releases.sharpened_features import SharpenedFunction

_FEWEST_BLOCKS = 8
"""Below this many independent blocks of rows their spread is too uncertain; the bound is used instead."""


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
        return (
            f"ReleasedFunction({self.kernel!r}, {self.basis.name} of {rows} × {width}, claim={self.claim!r})"
        )

    def _own_count(self) -> tuple[float, float] | None:
        total = self.reading.total(self.table)
        return None if total is None else (total[0], total[1] * self.cell_variance)

    def __call__(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,).

        ``nonnegative`` raises negative answers to 0: closer to the truth for each query, biased upwards on
        average.
        """
        return self.sum(Q, nonnegative=nonnegative, threads=threads) / max(self.count, 1.0)

    def sum(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        sums = self.reading.evaluate(self.table, self.basis.prepare_queries(Q), threads=threads)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def query(self, Q: object, *, of: str = "mean", level: float = 0.95, threads: int = 1) -> Answers:
        """Values with standard errors and intervals: the noise exactly, the method's own error as its basis
        states or bounds it or its rows show it by their spread, and the error of N̂.

        A bounded error counts as one that is anywhere within its bound with the same probability: its
        variance is a third of the squared bound. Where it is far above the noise, an interval of 95 %
        contains all of it.
        """
        return self.query_plus(self._points(Q), 0.0, of=of, level=level, threads=threads)

    def query_plus(
        self, points: Points, known: Floats | float, *, of: str, level: float, threads: int
    ) -> Answers:
        """The same with ``known`` added to the sums, which is exact."""
        check_question(of, level)
        batch = self.basis.prepare_queries(points)
        sums = self.reading.evaluate(self.table, batch, threads=threads)
        number, number_variance = self._counts
        variance, largest, blocks = self._variances(batch, sums, number, threads)
        sums = sums + known
        scale, of_number = 1.0, np.zeros(len(sums))
        if of == "mean":
            scale = 1.0 / max(number, 1.0)
            of_number = (scale * sums) ** 2 * number_variance
        bias = self.reading.bias_bound(self.table, batch, number, self.cell_variance)
        random = variance + of_number
        stderr = scale * np.sqrt(random + bias**2 / 3.0)
        reach = _quantile(level, blocks) * stderr
        bound = np.maximum(scale * np.sqrt(largest + of_number + bias**2), stderr)
        value = scale * sums
        return Answers(value, stderr, value - reach, value + reach, bound, level, points)

    def _variances(
        self, batch: Batch, sums: Floats, number: float, threads: int
    ) -> tuple[Floats, Floats, int | None]:
        """The variance of each sum, a larger one that bounds it, and how many blocks the first comes from."""
        noise = self.cell_variance * self.reading.noise_gain(batch)
        method = self.reading.method_variance(self.table, batch, sums, number)
        if not isinstance(self.reading, SampledReading):
            return noise + method, noise + method, None
        rows = self.reading.spread(self.table, batch, threads=threads)
        if rows.blocks < _FEWEST_BLOCKS:
            return noise + method, noise + method, None
        return np.maximum(rows.variance, noise), noise + method, rows.blocks

    def sharpened(self, points: object) -> SharpenedFunction:
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
        from hushsum.releases.sharpened_features import sharpen

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


def _quantile(level: float, blocks: int | None) -> float:
    """How many standard errors an interval reaches: Student's t where they come from blocks, else normal."""
    from scipy.special import ndtri, stdtrit

    rank = 0.5 + level / 2.0
    return float(ndtri(rank) if blocks is None else stdtrit(blocks - 1, rank))
