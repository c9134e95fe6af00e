"""Noise on the sums of a run: fresh in each round, or factored over all rounds."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError
from hushsum.parties.summarization._features import SummaryFeatures
from hushsum.parties.summarization._messages import AUCTION, FRESH, THRESHOLD, RunTerms
from hushsum.privacy import release_noise, root_coefficients
from hushsum.tables import AMPLITUDE

FRACTION_BITS = 12


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


COUNT_WEIGHT = 0.5
"""A record adds its features, of norm 1, and this much to a cell that counts."""


def count_step(features: SummaryFeatures) -> int:
    """What one record adds to the counting cell, in integer steps."""
    return max(1, round(COUNT_WEIGHT * AMPLITUDE * math.sqrt(features.features)))


def record_squared(features: SummaryFeatures) -> int:
    """The squared length of what one record adds: features and count."""
    return features.length_squared + count_step(features) ** 2


def releases_of(terms: RunTerms) -> int:
    """How often the running sum is released: before every round but the first, when it is empty."""
    return terms.rounds - 1


def sum_squared(terms: RunTerms) -> int:
    """Δ² of all releases of the running sum together.

    Threshold: one record changes one increment, and with a cap a second one: four times. Fresh, and the
    auction: the sums differ by one point for another, in every release.
    """
    if terms.rule == THRESHOLD:
        changed = 1 if terms.cap is None else 4
        return (
            changed * record_squared(terms.features) * FactoredSums.column_squared(max(releases_of(terms), 1))
        )
    return 4 * terms.features.length_squared * releases_of(terms)


def answers_rho(terms: RunTerms) -> Fraction:
    """What the auction's answers tell all other owners together: (K − 1)·rate²/8 a round.

    One record moves one owner's rank, and each other owner by one rank at most; a coin whose log-odds move
    by ``rate`` is rate²/8-zCDP, since the second derivative of log(1 + eˣ) is at most 1/4.
    """
    if terms.rule != AUCTION or terms.rate is None:
        return Fraction(0)
    return terms.rounds * (len(terms.owners) - 1) * terms.rate**2 / 8


def sum_variance(terms: RunTerms) -> Fraction:
    """The variance of the discrete Gaussian noise on the running sum.

    Raises
    ------
    ClaimError
        if the answers alone spend what was promised.
    """
    if terms.rho is None:
        raise ClaimError(f"the rule {terms.rule} keeps no promise", remedy=f"take {THRESHOLD} or {FRESH}")
    left = terms.rho - answers_rho(terms)
    if left <= 0:
        raise ClaimError(
            "rate",
            f"must leave something of rho = {float(terms.rho):g} for the sums",
            remedy="take a smaller rate",
        )
    return Fraction(max(sum_squared(terms), 1)) / (2 * left)


def target_variance(features: SummaryFeatures, rho: Fraction) -> Fraction:
    """The variance of the noise on the validation set's sum and count."""
    return Fraction(record_squared(features)) / (2 * rho)
