"""Released coefficients: a noisy table whose answers are linear in all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hushsum.bases.base import LinearBasis
from hushsum.kernels.base import Kernel
from hushsum.releases.answers import Answers
from hushsum.releases.noisy_table import Floats, NoisyTable, check_question


@dataclass(frozen=True, eq=False)
class CoefficientFunction(NoisyTable):
    """A released grid, series or feature vector: public, frozen, answering kernel sums for any query.

    Made by ``Tally.release`` or ``hushsum.load``; not by hand. The noise of an answer is known exactly: each
    is a public linear form of the noisy integers.

    Privacy
    -------
    Everything here is computed from noisy integers and public parameters, so using it spends nothing.
    """

    basis: LinearBasis

    def __repr__(self) -> str:
        rows, width = self.basis.shape
        return (
            f"ReleasedFunction({self.kernel!r}, {self.basis.name} of {rows} × {width}, claim={self.claim!r})"
        )

    def _own_count(self) -> tuple[float, float] | None:
        total = self.basis.total(self.table)
        return None if total is None else (total[0], total[1] * self.noise.variance)

    def __call__(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Mean kernel values f(q)/N̂, shape (n_queries,).

        ``nonnegative`` raises negative answers to 0: closer to the truth for each query, biased upwards on
        average.
        """
        return self.sum(Q, nonnegative=nonnegative, threads=threads) / max(self.count, 1.0)

    def sum(self, Q: object, *, nonnegative: bool = False, threads: int = 1) -> Floats:
        """Kernel sums f(q) = Σ k(x, q), shape (n_queries,)."""
        sums = self.basis.evaluate(self.table, self.basis.prepare_queries(Q), threads=threads)
        return np.maximum(sums, 0.0) if nonnegative else sums

    def query(self, Q: object, *, of: str = "mean", level: float = 0.95, threads: int = 1) -> Answers:
        """Values with standard errors and intervals: the noise exactly, the method's own error as its basis
        states it, and the error of N̂.
        """
        from scipy.special import ndtri

        check_question(of, level)
        batch = self.basis.prepare_queries(Q)
        sums = self.basis.evaluate(self.table, batch, threads=threads)
        number, number_variance = self._counts
        variance = self.noise.variance * self.basis.noise_gain(batch)
        variance = variance + self.basis.method_variance(self.table, batch, sums, number)
        scale = 1.0
        if of == "mean":
            scale = 1.0 / max(number, 1.0)
            variance = variance + (scale * sums) ** 2 * number_variance
        stderr = scale * np.sqrt(variance)
        value = scale * sums
        reach = float(ndtri(0.5 + level / 2.0)) * stderr
        return Answers(value, stderr, value - reach, value + reach, stderr, level)

    def with_kernel(self, kernel: Kernel) -> CoefficientFunction:
        """The same release, read for another kernel or bandwidth: post-processing, nothing is spent.

        Raises
        ------
        UsageError
            where the table was made for one kernel.
        """
        return replace(self, basis=self.basis.with_kernel(kernel))
