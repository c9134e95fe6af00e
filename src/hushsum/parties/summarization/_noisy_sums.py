"""Noisy running sums of integer vectors: a fresh release each round, or one factorised mechanism for all.

`FreshSums` is for rules whose *state* differs by a bounded amount between neighbours: every release pays.
`FactoredSums` is for rules in which one record changes one increment (or two): all releases together pay
once. Both are exact on integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError, FileRefused
from hushsum.parties._messages import (
    COUNT,
    FLAG,
    RATIONAL,
    TEXT,
    TEXTS,
    VECTOR,
    Field,
    Message,
    message_field,
)
from hushsum.parties.summarization._features import PUBLIC_SEED, SummaryFeatures
from hushsum.parties.summarization._messages import AUCTION, FEATURES, FRESH, THRESHOLD, RunTerms
from hushsum.privacy import release_noise
from hushsum.tables import AMPLITUDE

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


_LARGEST_STEP = 1 << 53


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTarget(Message):
    """The validation set as every owner may see it; public.

    ``cells`` holds the noisy feature sums and, last, the noisy count times its weight.

    Privacy
    -------
    ``rho``-zCDP for one record of the validation set present or absent: it adds a vector of length at most
    √(m·1024² + step²), and the noise is discrete Gaussian of that length squared over 2ρ.
    """

    kind: ClassVar[str] = "target"
    damaged: ClassVar[str] = "this validation release is damaged"

    cells: Annotated[Integers, VECTOR]
    step: Annotated[int, COUNT]
    variance: Annotated[Fraction, RATIONAL]
    rho: Annotated[Fraction, RATIONAL]
    secure: Annotated[bool, FLAG] = True

    @property
    def count(self) -> float:
        """The noisy number of records, at least 1."""
        return max(float(self.cells[-1]) / self.step, 1.0)

    def mean(self) -> Floats:
        """The noisy mean of the integer features."""
        result: Floats = self.cells[:-1].astype(np.float64) / self.count
        return result

    @property
    def mean_variance(self) -> float:
        """The variance of the noise in one coordinate of the mean."""
        return float(self.variance) / self.count**2

    def check(self) -> None:
        """ValueError unless a mean can be computed from it."""
        if self.cells.size < 2:
            raise ValueError("cells")
        if not 1 <= self.step <= _LARGEST_STEP or self.rho <= 0 or not 0 < float(self.variance) < 1e100:
            raise ValueError("numbers")


def release_target(
    features: SummaryFeatures,
    validation: ArrayLike,
    rho: float | Fraction,
    *,
    insecure_noise_seed: int | None = None,
) -> NoisyTarget:
    """Release a validation set; the consumer does this once and hands the result to the curator.

    Raises
    ------
    ClaimError
        rho is not above 0.
    """
    spent = Fraction(rho)
    if spent <= 0:
        raise ClaimError("rho", "must be above 0", got=f"{float(spent):g}")
    hashes = features.hashes(validation)
    step = count_step(features)
    cells = np.append(hashes.sum(axis=0, dtype=np.int64), len(hashes) * step)
    variance = target_variance(features, spent)
    with release_noise(insecure_noise_seed) as noise:
        noisy = noise.integer_gaussian(cells, variance)
    return NoisyTarget(noisy, step, variance, spent, secure=insecure_noise_seed is None)


_PUBLIC_FEATURES: Final = Field(FEATURES.read, lambda features: replace(features, seed=PUBLIC_SEED).as_json())


@dataclass(frozen=True, slots=True, eq=False)
class HashedTarget(Message):
    """A `NoisyTarget` under a secret seed, with what the curator needs to agree on terms.

    ``features`` have `PUBLIC_SEED`; ``columns`` are the names that were hashed, in order;
    ``secret_check`` is the secret's, by which owners see that they hold the same one.
    """

    kind: ClassVar[str] = "hashed target"
    damaged: ClassVar[str] = NoisyTarget.damaged

    features: Annotated[SummaryFeatures, _PUBLIC_FEATURES]
    columns: Annotated[tuple[str, ...], TEXTS]
    secret_check: Annotated[str, TEXT]
    target: Annotated[NoisyTarget, message_field(NoisyTarget)]

    def check(self) -> None:
        """FileRefused unless its noise is that of its promise."""
        if not self.columns:
            raise ValueError("names")
        features, target = self.features, self.target
        if (target.step, target.cells.size) != (count_step(features), features.width + 1):
            raise FileRefused("this validation release is of other features than it says")
        if target.variance != target_variance(features, target.rho):
            raise FileRefused("this validation release has other noise than its promise needs")
