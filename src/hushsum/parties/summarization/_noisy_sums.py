"""Noise on the sums of a run: fresh in each round, or factored over all rounds."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError
from hushsum.privacy import release_noise, root_coefficients
from hushsum.tables import AMPLITUDE

from ._features import SummaryFeatures
from ._messages import AUCTION, FRESH, THRESHOLD, RunTerms

FRACTION_BITS = 12


def factored_coefficients(releases: int) -> Integers:
    """The coefficients of the square-root factorisation: integers next to 2¹²·binom(2k, k)/4^k.

    The standard deviation of the estimate is about (1 + ln(n)/π)·Δ/√(2ρ) after n releases; fresh releases
    would cost √n.

    Notes
    -----
    Fichtenberger, Henzinger and Upadhyay, *Constant matters*, ICML 2023.
    """
    return np.rint(root_coefficients(releases) * (1 << FRACTION_BITS)).astype(np.int64)


class NoisySums:
    """Prefix sums of a stream by a factorisation A = B·C of the all-ones triangle.

    Release t outputs Σ_s c_{t−s}·z_s plus discrete Gaussian noise; ``coefficients`` are the integers c_k, one
    for each release. The estimate of the prefix sum is a fixed linear combination of the outputs. With
    `factored_coefficients` the noise of all outputs is shared. With ones every output is the sum so far with
    fresh noise, and the last one is the estimate.

    Privacy
    -------
    *Fresh releases.* If the sums of neighbours differ by at most Δ at every release, given equal earlier
    releases, then r releases are r·Δ²/(2·variance)-zCDP.

    *Factored releases.* Let one record change the increment of one release only, by a vector of length at
    most Δ, where which release may depend on earlier outputs. Given equal earlier outputs, output t differs
    by c_{t−s}·Δ, and Σ_t c_{t−s}² ≤ Σ_k c_k² on every path. So all outputs together are
    Σc²·Δ²/(2·variance)-zCDP, adaptively (Rényi filters, Feldman and Zrnic 2021; for matrices, Denisov et al.
    2022). Two changed increments have length at most 2Δ·√(Σc²): four times that.
    """

    def __init__(self, width: int, coefficients: Integers, variance: Fraction) -> None:
        self.coefficients, self.variance = coefficients, variance
        self.increments: Integers = np.zeros((0, width), np.int64)
        """What has been added; secret."""

    @cached_property
    def _weights(self) -> Floats:
        """The series of 1/((1 − x)·c(x)), by which outputs become prefix sums."""
        c = self.coefficients.astype(np.float64)
        inverse = np.zeros(len(c))
        inverse[0] = 1.0 / c[0]
        for k in range(1, len(c)):
            inverse[k] = -np.dot(c[1 : k + 1], inverse[k - 1 :: -1]) / c[0]
        return np.cumsum(inverse)

    def release(self, increment: Integers, *, insecure_noise_seed: int | None = None) -> Integers:
        """Add an increment and release the next output."""
        self.increments = np.concatenate([self.increments, increment[None]])
        c = self.coefficients[: len(self.increments)]
        with release_noise(insecure_noise_seed) as noise:
            return noise.integer_gaussian(c[::-1] @ self.increments, self.variance)

    def deviation(self, releases: int) -> float:
        """The standard deviation of one coordinate of the estimate after that many releases."""
        return float((float(self.variance) * (self._weights[:releases] ** 2).sum()) ** 0.5)

    def estimate(self, outputs: Integers) -> Floats:
        """The sum so far, from all outputs, shape (releases, width)."""
        weights = self._weights[: len(outputs)][::-1]
        result: Floats = weights @ outputs.astype(np.float64)
        return result


COUNT_WEIGHT = 0.5
"""A record adds its features, of norm 1, and this much to a cell that counts."""


def count_step(features: SummaryFeatures) -> int:
    """What one record adds to the counting cell, in integer steps."""
    return max(1, round(COUNT_WEIGHT * AMPLITUDE * math.sqrt(features.features)))


def record_squared(features: SummaryFeatures) -> int:
    """The squared length of what one record adds: features and count."""
    return features.length_squared + count_step(features) ** 2


def coefficients_of(terms: RunTerms) -> Integers:
    """The coefficients of the running sum, which is released before every round but the first, when it is
    empty.
    """
    releases = max(terms.rounds - 1, 1)
    return factored_coefficients(releases) if terms.rule == THRESHOLD else np.ones(releases, np.int64)


def sum_squared(terms: RunTerms) -> int:
    """Δ² of all releases of the running sum together.

    Threshold: one record changes one increment, and with a cap a second one: four times. Fresh, and the
    auction: the sums differ by one point for another, in every release.
    """
    changed = 4 * terms.features.length_squared
    if terms.rule == THRESHOLD:
        changed = (1 if terms.cap is None else 4) * record_squared(terms.features)
    return changed * int((coefficients_of(terms) ** 2).sum())


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
    return Fraction(sum_squared(terms)) / (2 * left)


def target_variance(features: SummaryFeatures, rho: Fraction) -> Fraction:
    """The variance of the noise on the validation set's sum and count."""
    return Fraction(record_squared(features)) / (2 * rho)
