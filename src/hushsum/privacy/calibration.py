"""Sensitivities, and from a promise and a sensitivity to the noise that keeps it.

A release is a table and, where the number of records is private, a separate noisy count, which takes
``count_share`` of the budget. Pure ε: discrete Laplace on both, and the two ε add to the promise exactly,
as rationals. ρ: discrete Gaussian on both, and the two ρ add. (ε, δ): discrete Gaussian, with all moved
cells and the count composed in the accountant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import ClaimError, Parameter
from hushsum.files.encoding import stored_rational
from hushsum.privacy.accounting.binomial import binomial_trials
from hushsum.privacy.accounting.discrete_gaussian import GaussianVariances, gaussian_variances
from hushsum.privacy.accounting.discrete_gaussian_vectors import vector_variances
from hushsum.privacy.claim import Promise, Relation
from hushsum.privacy.noise import (
    NoiseSource,
    centred_binomial,
    check_trials,
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_share,
    gaussian_variance,
    laplace_variance,
    skellam,
)
from hushsum.privacy.noise.skellam_sampler import LARGEST_SKELLAM, SMALLEST_SKELLAM

LAPLACE = "discrete laplace"
GAUSSIAN = "discrete gaussian"
GAMMA = "gamma radius"
FACTORISED = "factorised discrete gaussian"
INTERVALS = "interval sums discrete laplace"
BINOMIAL = "binomial"
SKELLAM = "skellam"
SUM = "sum"
NONE = "none"
COUNT_SHARE = Fraction(1, 50)
_LARGEST_GAMMA = Fraction(1 << 40)
"""The largest standard deviation of a cell for which a double has bits to spare below whole numbers."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Bounds on the change of an integer vector between neighbours; exact integers.

    ``l1`` bounds the sum of the absolute changes, ``l2_squared`` the sum of their squares, ``largest`` any
    single one.

    >>> Sensitivity(l1=1000, l2_squared=1000, largest=1).times(3)
    Sensitivity(l1=3000, l2_squared=9000, largest=3)
    """

    l1: int
    l2_squared: int
    largest: int

    def times(self, records: int) -> Sensitivity:
        """The bounds when one unit holds up to ``records`` records: each moves the vector, and norms add."""
        return Sensitivity(self.l1 * records, self.l2_squared * records**2, self.largest * records)

    def at_least(self, other: Sensitivity) -> Sensitivity:
        """The bounds of a change that is one of two kinds."""
        return Sensitivity(
            max(self.l1, other.l1),
            max(self.l2_squared, other.l2_squared),
            max(self.largest, other.largest),
        )


@dataclass(frozen=True, slots=True)
class UnitChange:
    """How far one unit moves what a tally holds.

    ``table`` bounds the change of the table, and ``count`` that of the number of records: 0 where the number
    is public. ``records`` is how many records' vectors may come or go.

    >>> UnitChange.of_records(Sensitivity(2000, 2000, 1), None, Relation.REPLACE).count
    0
    """

    table: Sensitivity
    count: int
    records: int

    @classmethod
    def of_records(cls, record: Sensitivity, per_unit: int | None, relation: Relation) -> UnitChange:
        """A unit of up to ``per_unit`` records; None for a unit that is exactly one record.

        A record replaced leaves the number of records as it was. A person replaced may have had fewer
        records, so the number stays private.
        """
        many = per_unit or 1
        replaced = relation is Relation.REPLACE
        count = 0 if replaced and per_unit is None else many
        return cls(record.times(many), count, many * (2 if replaced else 1))

    def times(self, many: int) -> UnitChange:
        """The change by a unit that is in up to ``many`` of the merged tallies."""
        return UnitChange(self.table.times(many), self.count * many, self.records * many)


@dataclass(frozen=True, slots=True)
class IntegerNoise:
    """Noise on integers: a mechanism and its rational parameter (the Laplace scale, the variance of Gaussian
    or Skellam noise, or the trials of the binomial law); exact but for the Gamma-radius law, whose parameter
    is the scale of the length that ``cells`` cells share. Of a step of a stream the parameter is the
    variance, rounded upwards.

    Of Laplace noise ``parts`` may be above 1: the law is then that of one of so many independent shares that
    add up to it. A sum of independent noises has the mechanism ``"sum"`` and ``terms``, each with how often
    it was added.

    >>> IntegerNoise(LAPLACE, Fraction(1000)).variance > 1.99e6
    True
    >>> share = IntegerNoise(LAPLACE, Fraction(1000), parts=14)
    >>> IntegerNoise.sum_of([(14, share)]) == IntegerNoise(LAPLACE, Fraction(1000))
    True
    """

    mechanism: str
    parameter: Fraction
    cells: int = 1
    parts: int = 1
    terms: tuple[tuple[int, IntegerNoise], ...] = ()

    @classmethod
    def sum_of(cls, terms: Sequence[tuple[int, IntegerNoise]]) -> IntegerNoise:
        """The sum of independent noises, each added so many times; sums among them are resolved."""
        flat: list[tuple[int, IntegerNoise]] = []
        for times, noise in terms:
            flat.extend((times * inner, each) for inner, each in noise.terms or ((1, noise),))
        if all(noise.mechanism == NONE for _, noise in flat):
            return NO_NOISE
        if len(flat) == 1:
            times, noise = flat[0]
            if noise.mechanism == LAPLACE and times == noise.parts:
                return replace(noise, parts=1)
            if times == 1:
                return noise
        return cls(SUM, Fraction(0), terms=tuple(flat))

    @property
    def variance(self) -> float:
        """The variance of one draw; exact for the discrete law, not its continuous cousin."""
        if self.mechanism == LAPLACE:
            return laplace_variance(self.parameter) / self.parts
        if self.mechanism == SUM:
            return sum(times * noise.variance for times, noise in self.terms)
        if self.mechanism == BINOMIAL:
            return check_trials(self.parameter) / 4.0
        if self.mechanism == GAMMA:
            # The squared length of n cells has the mean n(n + 1)·scale²; rounding adds a twelfth.
            return float(self.parameter) ** 2 * (self.cells + 1) + 1.0 / 12.0
        if self.mechanism in (SKELLAM, *SUMS):
            return float(self.parameter)
        return gaussian_variance(self.parameter) if self.mechanism == GAUSSIAN else 0.0

    @property
    def in_words(self) -> str:
        """The mechanism as people read it; of a sum those of its terms."""
        if self.mechanism != SUM:
            return self.mechanism if self.parts == 1 else f"1/{self.parts} of {self.mechanism}"
        return " + ".join(f"{times} × {noise.in_words}" for times, noise in self.terms[:4]) + (
            " + …" if len(self.terms) > 4 else ""
        )

    def draw(self, size: int, source: NoiseSource, *, threads: int = 1) -> NDArray[np.int64]:
        """Independent draws; of the Gamma-radius law one vector, whose cells are uncorrelated."""
        if self.mechanism == GAMMA:
            # Real noise is made of integer noise, and stands above this module.
            from hushsum.privacy.real_noise import RealNoise

            if size != self.cells:
                raise ValueError("one length is shared by all cells")
            return np.rint(RealNoise(source).gamma_vector(size, float(self.parameter))).astype(np.int64)
        if self.mechanism in SUMS:
            raise ValueError("the noise of a step is a sum of draws of all steps before")
        if self.mechanism == LAPLACE and self.parts > 1:
            return discrete_laplace_share(size, self.parameter, self.parts, source)
        if self.mechanism == LAPLACE:
            return discrete_laplace(size, self.parameter, source, threads=threads)
        if self.mechanism == BINOMIAL:
            return centred_binomial(size, int(self.parameter), source)
        if self.mechanism == SKELLAM:
            return skellam(size, self.parameter, source)
        if self.mechanism == SUM:
            total = np.zeros(size, np.int64)
            for times, noise in self.terms:
                for _ in range(times):
                    total += noise.draw(size, source, threads=threads)
            return total
        if self.mechanism == GAUSSIAN:
            return discrete_gaussian(size, self.parameter, source, threads=threads)
        return np.zeros(size, np.int64)

    def as_json(self) -> dict[str, Any]:
        """The noise for a file's header."""
        if self.mechanism == SUM:
            terms = [{"times": times, **noise.as_json()} for times, noise in self.terms]
            return {"mechanism": self.mechanism, "terms": terms}
        shared = {"cells": self.cells} if self.mechanism == GAMMA else {}
        shared |= {"parts": self.parts} if self.parts > 1 else {}
        return {"mechanism": self.mechanism, "parameter": str(self.parameter), **shared}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> IntegerNoise:
        """The noise of a file's header; ValueError if it is none that could have been drawn."""
        if data["mechanism"] == SUM:
            return cls._sum_from_json(data["terms"])
        if data["mechanism"] not in _MECHANISMS:
            raise ValueError("unknown noise")
        cells = data["cells"] if data["mechanism"] == GAMMA else 1
        parts = data.get("parts", 1) if data["mechanism"] == LAPLACE else 1
        if type(cells) is not int or cells < 1 or type(parts) is not int or not 1 <= parts <= MOST_TERMS:
            raise ValueError("cells")
        noise = cls(data["mechanism"], stored_rational(data["parameter"]), cells, parts)
        if not math.isfinite(noise.variance):
            raise ValueError("parameter")
        if noise.mechanism == SKELLAM and not SMALLEST_SKELLAM <= noise.parameter <= LARGEST_SKELLAM:
            raise ValueError("parameter")
        return noise

    @classmethod
    def _sum_from_json(cls, data: Any) -> IntegerNoise:
        if not isinstance(data, list) or not 1 <= len(data) <= MOST_TERMS:
            raise ValueError("terms")
        terms = []
        for each in data:
            times = each["times"]
            if type(times) is not int or not 1 <= times <= MOST_TERMS or each["mechanism"] == SUM:
                raise ValueError("terms")
            terms.append((times, cls.from_json(each)))
        noise = cls.sum_of(terms)
        if noise.mechanism != SUM:
            raise ValueError("terms")
        return noise


MOST_TERMS = 1 << 16
"""The most noises in a sum, and shares of one."""
SUMS = (FACTORISED, INTERVALS)
"""Mechanisms over time: the noise of what a step shows is a sum of draws, and its parameter is its variance.
"""

_MECHANISMS = (LAPLACE, GAUSSIAN, GAMMA, BINOMIAL, SKELLAM, *SUMS, NONE)
NO_NOISE = IntegerNoise(NONE, Fraction(0))


def split_epsilon(
    promise: Promise, *, private_count: bool, count_share: Fraction
) -> tuple[Fraction, Fraction]:
    """Pure ε for the table and for the count; they add to the promise exactly."""
    assert promise.epsilon is not None
    count = promise.epsilon * _checked_share(count_share) if private_count else Fraction(0)
    return promise.epsilon - count, count


def laplace_noise(l1: int, epsilon: Fraction) -> IntegerNoise:
    """Discrete Laplace of scale Δ1/ε: P(z) ∝ exp(−|z|·ε/Δ1), so a move of Δ1 in L1 changes no probability
    beyond e^ε.
    """
    return IntegerNoise(LAPLACE, Fraction(l1) / epsilon)


def binomial_noises(
    promise: Promise, table: Sensitivity, *, count: int, count_share: Fraction
) -> tuple[IntegerNoise, IntegerNoise]:
    """Centred binomial noise for the table and the count, for (ε, δ) and moves of cells by 1.

    Raises
    ------
    ClaimError
        if one unit moves a cell by more than 1.
    """
    if table.largest > 1 or count > 1:
        raise ClaimError(
            parameter="mechanism",
            rule=f"{BINOMIAL} is proven where one unit moves each cell by at most 1",
            got="a larger move",
            remedy="leave it out",
        )
    assert promise.epsilon is not None
    trials, counted = binomial_trials(
        epsilon=promise.epsilon,
        delta=promise.delta,
        cells=table.l2_squared,
        count_share=_checked_share(count_share) if count else None,
    )
    noise = IntegerNoise(BINOMIAL, Fraction(trials))
    return noise, NO_NOISE if counted is None else IntegerNoise(BINOMIAL, Fraction(counted))


def root_above(square: int) -> Fraction:
    """A rational above the root of an integer, by 2⁻⁴⁰ at most.

    >>> float(root_above(2)) - 2**0.5 < 1e-11
    True
    """
    return Fraction(math.isqrt(square << 80) + 1, 1 << 40)


def gamma_noise(l2_squared: int, cells: int, epsilon: Fraction) -> IntegerNoise:
    """A vector of density ∝ exp(−‖b‖₂·ε/Δ2), rounded: pure ε for every table that moves by Δ2 at most.

    By the triangle inequality no density changes beyond e^ε, and rounding b beside integers is
    post-processing (Hardt & Talwar 2010; Chaudhuri, Monteleoni & Sarwate 2011). Per cell the variance is
    (cells + 1)·(Δ2/ε)², half of Laplace's where Δ1 is √cells·Δ2. The length is drawn in floating point, so
    the claim is about real arithmetic.

    Raises
    ------
    ClaimError
        beyond a standard deviation of 2⁴⁰ in a cell: doubles would leave gaps between whole numbers, and none
        beyond 2⁶³ is one.

    >>> gamma_noise(1000 << 20, 2000, Fraction(1, 10**9))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hushsum.errors.ClaimError: gamma radius noise must be below 2**40 in a cell, got 2**50.4; ...
    """
    scale = root_above(l2_squared) / epsilon
    if scale**2 * (cells + 1) > _LARGEST_GAMMA**2:
        power = math.log2(scale) + math.log2(cells + 1) / 2.0
        raise ClaimError(
            rule="gamma radius noise must be below 2**40 in a cell",
            got=f"2**{power:.1f}",
            remedy=(
                "use a larger ",
                Parameter("epsilon"),
                ", fewer ",
                Parameter("rows"),
                ", or leave ",
                Parameter("mechanism"),
                " out",
            ),
        )
    return IntegerNoise(GAMMA, scale, cells)


def gaussian_noises(
    promise: Promise, table: Sensitivity, *, cells: int, count: int, count_share: Fraction
) -> tuple[IntegerNoise, IntegerNoise]:
    """Discrete Gaussian noise for the table and the count, for ρ or (ε, δ).

    ``cells`` is how many the table has, and ``count`` how far the count can move: 0 where the number of
    records is public. With unit moves the composition is exact (every moved cell by 1). Other vectors are
    bounded by their length: on a fine lattice nearly as over the reals, else, as for persons with several
    records in hash rows, through ρ (``accounting.discrete_gaussian_vectors``).
    """
    share = _checked_share(count_share) if count else Fraction(0)
    if promise.rho is not None:
        variance = Fraction(table.l2_squared) / (2 * promise.rho * (1 - share))
        count_variance = Fraction(count**2) / (2 * promise.rho * share) if count else None
    elif table.largest == 1 and count <= 1:
        assert promise.epsilon is not None
        variance, count_variance = gaussian_variances(
            epsilon=promise.epsilon,
            delta=promise.delta,
            cells=table.l2_squared,
            count_share=share if count else None,
        )
    else:
        assert promise.epsilon is not None
        variance, count_variance = _vector_variances(
            promise.epsilon, promise.delta, table.l2_squared, cells, count, share
        )
    noise = IntegerNoise(GAUSSIAN, variance)
    return noise, NO_NOISE if count_variance is None else IntegerNoise(GAUSSIAN, count_variance)


@lru_cache(maxsize=512)
def _vector_variances(
    epsilon: Fraction, delta: Fraction, l2_squared: int, cells: int, count: int, share: Fraction
) -> GaussianVariances:
    """Cached, because a plan and the release that follows need the same values."""
    return vector_variances(
        epsilon=epsilon, delta=delta, l2_squared=l2_squared, cells=cells, count=count, count_share=share
    )


def _checked_share(share: Fraction) -> Fraction:
    if not 0 < share < 1:
        raise ClaimError(
            parameter="count_share",
            rule="must be above 0 and below 1",
            got=f"{float(share):g}",
            remedy="try 0.02",
        )
    return share
