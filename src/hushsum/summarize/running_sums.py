"""Noisy running sums of integer vectors: a fresh release each round, or one factorised mechanism for all.

`FreshSums` is for rules whose *state* differs by a bounded amount between neighbours: every release pays.
`FactoredSums` is for rules in which one record changes one increment (or two): all releases together pay
once. Both are exact on integers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.privacy.release_noise import release_noise

FRACTION_BITS = 12


def root_coefficients(size: int) -> Floats:
    """The power series of (1 − x)^{−1/2}: binom(2k, k)/4^k, whose square is that of all ones.

    >>> root_coefficients(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, size)
    return np.concatenate([[1.0], np.cumprod((2 * k - 1) / (2 * k))])[:size]


class FreshSums:
    """The current sum with new discrete Gaussian noise at every release; releases compose.

    Privacy
    -------
    If the sums of neighbours differ by at most Δ at every release, given equal earlier releases, then r
    releases are r·Δ²/(2·variance)-zCDP.
    """

    def __init__(self, width: int, variance: Fraction) -> None:
        self.variance = variance
        self._sum: Integers = np.zeros(width, np.int64)

    def release(self, increment: Integers, *, insecure_noise_seed: int | None = None) -> Integers:
        """Add an increment and release the sum so far."""
        self._sum = self._sum + increment
        with release_noise(insecure_noise_seed) as noise:
            return noise.integer_gaussian(self._sum, self.variance)

    def deviation(self, releases: int) -> float:
        """The standard deviation of one coordinate of the estimate after that many releases."""
        return math.sqrt(self.variance)

    @staticmethod
    def estimate(outputs: Integers) -> Floats:
        """The sum so far, from all outputs, shape (releases, width): the last."""
        result: Floats = outputs[-1].astype(np.float64)
        return result

    def state(self) -> Integers:
        """What has been added, for a snapshot; secret."""
        return self._sum[None]

    def resume(self, state: Integers) -> None:
        """Go on from a snapshot."""
        self._sum = state[0]


class FactoredSums:
    """Prefix sums of a stream by the square-root factorisation A = B·C of the all-ones triangle.

    Release t outputs Σ_s c_{t−s}·z_s plus discrete Gaussian noise, with integers c_k next to
    2¹²·binom(2k, k)/4^k; the estimate of the prefix sum is a fixed linear combination of the outputs. Its
    standard deviation is about (1 + ln(n)/π)·Δ/√(2ρ) after n releases; fresh releases would cost √n.

    Privacy
    -------
    Let one record change the increment of one release only, by a vector of length at most Δ, where which
    release may depend on earlier outputs. Given equal earlier outputs, output t differs by c_{t−s}·Δ, and
    Σ_t c_{t−s}² ≤ Σ_k c_k² on every path. So all outputs together are Σc²·Δ²/(2·variance)-zCDP, adaptively
    (Rényi filters, Feldman and Zrnic 2021; for matrices, Denisov et al. 2022). Two changed increments have
    length at most 2Δ·√(Σc²): four times that.

    Notes
    -----
    Fichtenberger, Henzinger and Upadhyay, *Constant matters*, ICML 2023.
    """

    def __init__(self, width: int, releases: int, variance: Fraction) -> None:
        self.variance = variance
        self._releases = releases
        self._increments: Integers = np.zeros((0, width), np.int64)

    @staticmethod
    def coefficients(releases: int) -> Integers:
        """The integers c_k."""
        return np.rint(root_coefficients(releases) * (1 << FRACTION_BITS)).astype(np.int64)

    @classmethod
    def column_squared(cls, releases: int) -> int:
        """Σ c_k²: how much of a unit increment all outputs together show."""
        return int((cls.coefficients(releases) ** 2).sum())

    @cached_property
    def _weights(self) -> Floats:
        """The series of 1/((1 − x)·c(x)), by which outputs become prefix sums."""
        c = self.coefficients(self._releases).astype(np.float64)
        inverse = np.zeros(self._releases)
        inverse[0] = 1.0 / c[0]
        for k in range(1, self._releases):
            inverse[k] = -np.dot(c[1 : k + 1], inverse[k - 1 :: -1]) / c[0]
        return np.cumsum(inverse)

    def release(self, increment: Integers, *, insecure_noise_seed: int | None = None) -> Integers:
        """Add an increment and release the next output."""
        self._increments = np.concatenate([self._increments, increment[None]])
        c = self.coefficients(self._releases)[: len(self._increments)]
        with release_noise(insecure_noise_seed) as noise:
            return noise.integer_gaussian(c[::-1] @ self._increments, self.variance)

    def deviation(self, releases: int) -> float:
        """The standard deviation of one coordinate of the estimate after that many releases."""
        return float((float(self.variance) * (self._weights[:releases] ** 2).sum()) ** 0.5)

    def estimate(self, outputs: Integers) -> Floats:
        """The sum so far, from all outputs, shape (releases, width)."""
        weights = self._weights[: len(outputs)][::-1]
        result: Floats = weights @ outputs.astype(np.float64)
        return result

    def state(self) -> Integers:
        """What has been added, for a snapshot; secret."""
        return self._increments

    def resume(self, state: Integers) -> None:
        """Go on from a snapshot."""
        self._increments = state
