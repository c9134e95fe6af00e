"""Sensitivities, integer noise, its calibration (from a promise to the noise that keeps it), and its draws.

A release is a table and, where the number of records is private, a separate noisy count, which takes
``count_share`` of the budget. `calibrate` is the only function that divides a promise between the two and
chooses their noise: plans, releases, streams, shares of sites and models call it. Pure ε: discrete Laplace
noise on both, or Gamma-radius noise on the table, and the two ε add to the promise exactly, as rationals.
ρ: discrete Gaussian noise on both, and the two ρ add. (ε, δ): discrete Gaussian noise, with all moved cells
and the count composed in the accountant; or where that adds less to answers the noise of pure ε, or
Gamma-radius noise that takes all of δ beside a count of pure ε.

Noise in shares: each of several parties adds a part, and the parts of the honest ones suffice.

Privacy
-------
Let h parties certainly contribute noise that no adversary knows. Pure ε: each adds the difference of two
negative binomials NB(1/h, 1 − e^(−ε/Δ1)), and h of them add up to discrete Laplace noise of scale Δ1/ε.
ρ and (ε, δ): each adds a discrete Gaussian of 1/h of the variance, at least 4, which is calibrated for the
distribution of the sum (`hushsum.privacy.accounting`). Where that variance would be below 4
and one unit moves each cell by at most 1, each adds Skellam noise of 1/h of a variance, and h of them add up
to Skellam noise of that variance, exactly (`hushsum.privacy.accounting`). What further parties add
is independent of that, and so post-processing. A unit belongs to one party's data; that it is added,
removed, or replaced there moves the sum as it moves that party's table.

Draws
=====
The noise of a release of several steps (choices, counts, perturbations) is drawn under one fresh key. Each
step is calibrated here from its sensitivity and its share of the budget; a method only states which share a
step gets. Integer steps are exact.

Noise on real numbers is for methods whose proof is about reals: normal, and the Gamma-radius (L2)
distribution, both made of `standard_normal`. That is an exact draw from a lattice 2³⁰ times finer than its
standard deviation, spread evenly between the points of the lattice; a lattice alone would show, since what it
is added to lies anywhere between. Floating-point sums round, so the noisy numbers are rounded to a public
step far coarser than that, and such a release claims ``"real arithmetic"``.

Noise for functions
===================
A function f of the data in the reproducing kernel Hilbert space of a kernel k is released as f + s·G, with G
one path of the Gaussian process of covariance k: the Gaussian mechanism in that space, for the sensitivity
Δ = sup‖f_D − f_D'‖ (Hall, Rinaldo and Wasserman 2013). In a finite feature space it is Gaussian noise on the
coefficients, here drawn as integers on a fine lattice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import Argument, ClaimError, Parameter, UsageError, shown
from hushsum.files import stored_rational

from . import accounting
from . import noise as samplers
from ._claim import (
    SECURE_AGGREGATION,
    SITE_NOISE,
    Claim,
    Mechanism,
    Promise,
    PromiseKind,
    Relation,
    register_mechanism,
)
from .accounting import analytic_gaussian_sigma, rounding_gap, zcdp_rho
from .noise import EXPONENTIAL, PERMUTE_AND_FLIP, NoiseSource, Stopping

__all__ = [
    "ANALYTIC",
    "AS_PUBLISHED",
    "BINOMIAL",
    "CALIBRATIONS",
    "COUNT_SHARE",
    "EXACT_INTEGERS",
    "EXPONENTIAL",
    "FACTORISED",
    "GAMMA",
    "GAUSSIAN",
    "HADAMARD",
    "LAPLACE",
    "LATTICE_GAUSSIAN",
    "NONE",
    "NO_NOISE",
    "PATH",
    "PERMUTE_AND_FLIP",
    "PURE_MECHANISMS",
    "RANDOM_STOPPING",
    "REAL_ARITHMETIC",
    "REAL_GAUSSIAN",
    "SHUFFLED_HADAMARD",
    "SKELLAM",
    "SUM",
    "Calibration",
    "IntegerNoise",
    "LatticePart",
    "Question",
    "ReleaseNoise",
    "Sensitivity",
    "Stopping",
    "UnitChange",
    "calibrate",
    "choice_claim",
    "choose_positions",
    "draw_candidates",
    "flip_coins",
    "gamma_noise",
    "gaussian_sigma",
    "hadamard_response",
    "laplace_noise",
    "lattice_variance",
    "lattice_variances",
    "local_source",
    "noise_shares",
    "path_scale",
    "perturb_lattice",
    "protecting_distance",
    "protecting_noises",
    "pure_mechanism",
    "random_places",
    "release_noise",
    "root_above",
    "rounded",
    "rounded_reach",
    "sign_gain",
    "standard_normal",
]  # fmt: skip

LAPLACE = "discrete laplace"
GAUSSIAN = "discrete gaussian"
GAMMA = "gamma radius"
PURE_MECHANISMS = (LAPLACE, GAMMA)
FACTORISED = "factorised discrete gaussian"
INTERVALS = "interval sums discrete laplace"
BINOMIAL = "binomial"
SKELLAM = "skellam"
SUM = "sum"
NONE = "none"


@dataclass(frozen=True, slots=True)
class IntegerNoise:
    """Noise on integers: a mechanism and its rational parameter (the Laplace scale, the variance of Gaussian
    or Skellam noise, or the trials of the binomial distribution). That of the Gamma-radius distribution is
    the scale of the length that ``cells`` cells share. Of a step of a stream the parameter is the variance,
    rounded upwards.

    Of Laplace noise ``parts`` may be above 1: the distribution is then that of one of that many independent
    shares that add up to it. A sum of independent noises has the mechanism ``"sum"`` and ``terms``, each with
    how often it was added.

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
        """The sum of independent noises, each with how often it is added; sums among them are resolved."""
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
        """The variance of one draw, exact for the discrete distribution; for the Gamma-radius distribution
        but for rounding."""
        if self.mechanism == SUM:
            return sum(times * noise.variance for times, noise in self.terms)
        if self.mechanism == GAMMA:
            return samplers.gamma_radius_variance(self.parameter, self.cells)
        return _VARIANCES[self.mechanism](self.parameter) / self.parts

    @property
    def in_words(self) -> str:
        """The mechanism as people read it; of a sum those of its terms."""
        if self.mechanism != SUM:
            return self.mechanism if self.parts == 1 else f"1/{self.parts} of {self.mechanism}"
        return " + ".join(f"{times} × {noise.in_words}" for times, noise in self.terms[:4]) + (
            " + …" if len(self.terms) > 4 else ""
        )

    def draw(self, size: int, source: NoiseSource, *, threads: int = 1) -> Integers:
        """Independent draws; of the Gamma-radius distribution one vector, whose cells are uncorrelated."""
        if self.mechanism == GAMMA:
            if size != self.cells:
                raise ValueError("one length is shared by all cells")
            return samplers.gamma_radius(size, self.parameter, source)
        if self.mechanism in SUMS:
            raise ValueError("the noise of a step is a sum of draws of all steps before")
        if self.mechanism == SUM:
            total = np.zeros(size, np.int64)
            for times, noise in self.terms:
                for _ in range(times):
                    total += noise.draw(size, source, threads=threads)
            return total
        if self.mechanism == NONE:
            return np.zeros(size, np.int64)
        if self.parts > 1:
            return samplers.discrete_laplace_share(size, self.parameter, self.parts, source)
        return _SAMPLERS[self.mechanism](size, self.parameter, source, threads=threads)

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
        if data["mechanism"] not in (*_VARIANCES, GAMMA):
            raise ValueError("unknown noise")
        cells = data["cells"] if data["mechanism"] == GAMMA else 1
        parts = data.get("parts", 1) if data["mechanism"] == LAPLACE else 1
        if type(cells) is not int or cells < 1 or type(parts) is not int or not 1 <= parts <= MOST_TERMS:
            raise ValueError("cells")
        noise = cls(data["mechanism"], stored_rational(data["parameter"]), cells, parts)
        drawable = (
            noise.mechanism != SKELLAM
            or samplers.SMALLEST_SKELLAM <= noise.parameter <= samplers.LARGEST_SKELLAM
        )
        if not math.isfinite(noise.variance) or not drawable:
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

_VARIANCES: dict[str, Callable[[Fraction], float]] = {
    LAPLACE: samplers.laplace_variance,
    GAUSSIAN: samplers.gaussian_variance,
    BINOMIAL: lambda trials: samplers.check_trials(trials) / 4.0,
    SKELLAM: float,
    **dict.fromkeys(SUMS, float),
    NONE: lambda _: 0.0,
}
_SAMPLERS: dict[str, Callable[..., Integers]] = {
    LAPLACE: samplers.discrete_laplace,
    GAUSSIAN: samplers.discrete_gaussian,
    BINOMIAL: samplers.centred_binomial,
    SKELLAM: samplers.skellam,
}
NO_NOISE = IntegerNoise(NONE, Fraction(0))


COUNT_SHARE = Fraction(1, 50)
# The largest standard deviation of a cell: that of the other distributions, far from where 64 bits would wrap
# around.
_LARGEST_GAMMA = Fraction(1 << 40)


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
            max(self.l1, other.l1), max(self.l2_squared, other.l2_squared), max(self.largest, other.largest)
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
class Calibration:
    """The noise of each cell of a table and of the number of records, which together keep a promise.

    ``pure`` is whether they keep its ε without its δ.
    """

    table: IntegerNoise
    count: IntegerNoise
    pure: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, mechanism: str, table: Fraction | int, count: Fraction | int | None) -> Calibration:
        """Noise of one mechanism with these parameters; none on a count that is not released."""
        of_count = NO_NOISE if count is None else IntegerNoise(mechanism, Fraction(count))
        return cls(IntegerNoise(mechanism, Fraction(table)), of_count)

    def __iter__(self) -> Iterator[IntegerNoise]:
        return iter((self.table, self.count))

    def map(self, change: Callable[[IntegerNoise], IntegerNoise]) -> Calibration:
        """Both noises changed alike; no noise stays none."""
        table, count = (each if each.mechanism == NONE else change(each) for each in self)
        return replace(self, table=table, count=count)

    def keeps(self, promise: Promise) -> Promise:
        """The promise that noise calibrated for ``promise`` keeps: ``promise`` itself, or pure ε if the noise
        needs no δ.

        Pure ε is stronger, and never costs more: a ledger adds its ε without a δ, takes it also where a
        dataset takes pure ε alone, and counts it as ε²/2 of ρ; for a group of m units it is m·ε, without δ.
        """
        return replace(promise, delta=Fraction(0)) if self.pure else promise

    def check(self) -> None:
        """Refuse noise that the samplers would refuse.

        Raises
        ------
        ClaimError
        """
        for noise in self:
            _ = noise.variance


def calibrate(
    promise: Promise,
    change: UnitChange,
    *,
    cells: int,
    count_share: Fraction = COUNT_SHARE,
    mechanism: str | None = None,
) -> Calibration:
    """The noise that keeps a promise for every unit that changes a table of ``cells`` cells by ``change``.

    Parameters
    ----------
    promise : Promise
    change : UnitChange
        How far one unit moves the table and the number of records, which gets no noise where it is public.
    cells : int
    count_share : Fraction
        The part of the budget that pays for the number of records.
    mechanism : str, optional
        The distribution of the table's noise; by default the one with the least variance that keeps the
        promise. Under (ε, δ) that may be one of pure ε (`Calibration.keeps`). Gamma-radius noise under
        (ε, δ) is for 2 to 1024 cells.

    Privacy
    -------
    Table and count are two queries of the same records: their ε, or their ρ, add to the promise, and under
    (ε, δ) both are composed in the accountant. Which distribution is drawn depends on public numbers alone.

    Examples
    --------
    >>> record = UnitChange.of_records(Sensitivity(200, 200, 1), None, Relation.ADD_REMOVE)
    >>> noise = calibrate(Promise.of(epsilon=1.0), record, cells=200_000)
    >>> noise.table.mechanism, noise.table.parameter, noise.count.parameter
    ('discrete laplace', Fraction(10000, 49), Fraction(50, 1))
    >>> grid = UnitChange.of_records(Sensitivity(1 << 20, 1 << 39, 1 << 19), None, Relation.ADD_REMOVE)
    >>> both = Promise.of(epsilon=1.0, delta=1e-6)
    >>> noise = calibrate(both, grid, cells=100)
    >>> noise.table.mechanism, noise.keeps(both).delta
    ('discrete laplace', Fraction(0, 1))
    """
    if promise.delta and mechanism is None:
        gaussian, pure = (
            calibrate(each, change, cells=cells, count_share=count_share, mechanism=law)
            for each, law in ((promise, GAUSSIAN), (replace(promise, delta=Fraction(0)), None))
        )
        added = partial(_added, gaussian=gaussian, share=float(count_share) if change.count else 0.0)
        least = min(gaussian, pure, key=added)
        # For shorter moves in L1 Laplace noise has less: 4·(Δ2/ε)² at most, as much as in three cells.
        if change.table.l1**2 > 2 * change.table.l2_squared:
            with suppress(ClaimError):
                return min(least, _gamma_beside(gaussian, promise, change, cells), key=added)
        return least
    if promise.pure:
        assert promise.epsilon is not None
        of_count = promise.epsilon * accounting.proper_share(count_share) if change.count else Fraction(0)
        of_table = promise.epsilon - of_count
        if (mechanism or pure_mechanism(change.table, cells, of_table)) == GAMMA:
            table = gamma_noise(change.table.l2_squared, cells, of_table)
        else:
            table = laplace_noise(change.table.l1, of_table)
        counted = laplace_noise(change.count, of_count) if change.count else NO_NOISE
        return Calibration(table, counted, pure=True)
    if mechanism == GAMMA:
        return _gamma_beside(_gaussian(promise, change, cells, count_share), promise, change, cells)
    if mechanism in (BINOMIAL, SKELLAM):
        return _unit_moves(promise, change, count_share, mechanism)
    return _gaussian(promise, change, cells, count_share)


def _added(noise: Calibration, gaussian: Calibration, share: float) -> float:
    """What noise adds to the variance of answers, in units of what Gaussian noise adds.

    The share s of the count says how much either matters. Under Gaussian noise the table adds a/(1 − s) to
    the variance of an answer and the count b/s, where a and b depend on the query. The share is best where
    these are in the ratio 1 − s to s, so these are the weights.
    """
    try:
        variances = [(own.variance, other.variance) for own, other in zip(noise, gaussian, strict=True)]
    except UsageError:
        return 1.0 if noise is gaussian else math.inf  # A scale that cannot be drawn.
    weighted = [(1.0 - share, *variances[0]), (share, *variances[1])]
    # For a very large ε both variances may be too small for floats.
    return sum(weight * own / max(other, 1e-300) for weight, own, other in weighted)


def laplace_noise(l1: int, epsilon: Fraction) -> IntegerNoise:
    """Discrete Laplace of scale Δ1/ε: P(z) ∝ exp(−|z|·ε/Δ1), so a move of Δ1 in L1 changes no probability
    beyond e^ε.
    """
    return IntegerNoise(LAPLACE, Fraction(l1) / epsilon)


def _unit_moves(promise: Promise, change: UnitChange, count_share: Fraction, mechanism: str) -> Calibration:
    """Centred binomial or Skellam noise, proven where a unit moves each cell by at most 1."""
    if change.table.largest > 1 or change.count > 1:
        rule = f"{mechanism} is proven where one unit moves each cell by at most 1"
        raise ClaimError("mechanism", rule, got="a larger move")
    share = accounting.proper_share(count_share) if change.count else None
    cells, epsilon, delta = change.table.l2_squared, promise.epsilon, promise.delta
    if mechanism == SKELLAM:
        return Calibration.of(
            SKELLAM,
            *accounting.skellam_variances(
                cells=cells, epsilon=epsilon, delta=delta, rho=promise.rho, count_share=share
            ),
        )
    assert epsilon is not None
    return Calibration.of(
        BINOMIAL, *accounting.binomial_trials(epsilon=epsilon, delta=delta, cells=cells, count_share=share)
    )


def root_above(square: Fraction | int) -> Fraction:
    """A rational above the root of a number, by 2⁻⁴⁰ at most.

    >>> float(root_above(2)) - 2**0.5 < 1e-11
    True
    """
    return Fraction(math.isqrt(math.ceil(square * (1 << 80))) + 1, 1 << 40)


def gamma_noise(l2_squared: int, cells: int, epsilon: Fraction) -> IntegerNoise:
    """A vector of density ∝ exp(−‖b‖₂·ε/Δ2), rounded: pure ε for every table that moves by Δ2 at most.

    By the triangle inequality no density changes beyond e^ε, and rounding b beside integers is
    post-processing (Hardt & Talwar 2010; Chaudhuri, Monteleoni & Sarwate 2011). What is drawn is exactly that
    rounded vector (`gamma_radius`). Per cell the variance is (cells + 1)·(Δ2/ε)², half of Laplace's where Δ1
    is √cells·Δ2.

    Raises
    ------
    ClaimError
        beyond a standard deviation of 2⁴⁰ in a cell.

    >>> gamma_noise(1000 << 20, 2000, Fraction(1, 10**9))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hushsum.errors.ClaimError: gamma radius noise must be below 2**40 in a cell, got 2**50.4; ...
    """
    scale = root_above(l2_squared) / epsilon
    if scale**2 * (cells + 1) > _LARGEST_GAMMA**2:
        power = math.log2(scale) + math.log2(cells + 1) / 2.0
        larger, fewer, left_out = map(Parameter, ("epsilon", "rows", "mechanism"))
        raise ClaimError(
            "gamma radius noise must be below 2**40 in a cell",
            got=f"2**{power:.1f}",
            remedy=("use a larger ", larger, ", fewer ", fewer, ", or leave ", left_out, " out"),
        )
    return IntegerNoise(GAMMA, scale, cells)


def _gamma_beside(gaussian: Calibration, promise: Promise, change: UnitChange, cells: int) -> Calibration:
    """Gamma-radius noise under (ε, δ), and a count with about the variance that it has beside Gaussian noise.

    The count takes a part of ε, at most half, and no δ. What is left of ε, and all of δ, are the table's
    (`hushsum.privacy.accounting`).

    Raises
    ------
    ClaimError
        for a single cell, or too many, or beyond a standard deviation of 2⁴⁰ in a cell.
    """
    assert promise.epsilon is not None
    of_table, count = promise.epsilon, NO_NOISE
    if change.count:
        # For a very large ε the variance may be too small for floats.
        alike = accounting.short_above(change.count * math.sqrt(2.0 / max(gaussian.count.variance, 1e-300)))
        of_count = min(alike, promise.epsilon / 2)
        of_table, count = of_table - of_count, laplace_noise(change.count, of_count)
    scale = accounting.gamma_radius_scale(of_table, promise.delta, cells=cells)
    return Calibration(gamma_noise(change.table.l2_squared, cells, 1 / accounting.short_above(scale)), count)


def pure_mechanism(table: Sensitivity, cells: int, epsilon: Fraction) -> str:
    """The distribution of less variance under pure ε, about 2·(Δ1/ε)² of Laplace noise or (cells +
    1)·(Δ2/ε)².

    >>> pure_mechanism(Sensitivity(l1=200, l2_squared=200, largest=1), 200_000, Fraction(1))
    'discrete laplace'
    >>> pure_mechanism(Sensitivity(l1=1415, l2_squared=1000, largest=1), 2000, Fraction(1))
    'gamma radius'
    """
    if (cells + 1) * table.l2_squared >= 2 * table.l1**2:
        return LAPLACE
    laplace = laplace_noise(table.l1, epsilon).variance
    shared = IntegerNoise(GAMMA, root_above(table.l2_squared) / epsilon, cells)
    return GAMMA if shared.variance < min(laplace, float(_LARGEST_GAMMA) ** 2) else LAPLACE


def _gaussian(promise: Promise, change: UnitChange, cells: int, count_share: Fraction) -> Calibration:
    """Discrete Gaussian noise for ρ or (ε, δ).

    With unit moves the composition is exact (every moved cell by 1). Other vectors are bounded by their
    length: on a fine lattice nearly as over the reals, else, as for persons with several records in hash
    rows, through ρ (`hushsum.privacy.accounting.vector_variances`).
    """
    table, count = change.table, change.count
    share = accounting.proper_share(count_share) if count else Fraction(0)
    if promise.rho is not None:
        variance = Fraction(table.l2_squared) / (2 * promise.rho * (1 - share))
        return Calibration.of(
            GAUSSIAN, variance, Fraction(count**2) / (2 * promise.rho * share) if count else None
        )
    assert promise.epsilon is not None
    of_claim = {"epsilon": promise.epsilon, "delta": promise.delta}
    if table.largest == 1 and count <= 1:
        found = accounting.gaussian_variances(
            **of_claim, cells=table.l2_squared, count_share=share if count else None
        )
    else:
        found = accounting.vector_variances(
            **of_claim, l2_squared=table.l2_squared, cells=cells, count=count, count_share=share
        )
    return Calibration.of(GAUSSIAN, *found)


_STEPS = 200


def noise_shares(
    promise: Promise, change: UnitChange, *, cells: int, count_share: Fraction, honest: int
) -> Calibration:
    """The noise that each party adds to its table and to its count, so that ``honest`` parties keep the
    promise.
    """
    if promise.pure:
        whole = calibrate(promise, change, cells=cells, count_share=count_share, mechanism=LAPLACE)
        return whole.map(lambda noise: _laplace_share(noise, honest))
    if honest == 1:
        return calibrate(promise, change, cells=cells, count_share=count_share, mechanism=GAUSSIAN)
    smaller = accounting.promise_for_sum(promise, shares=honest, cells=cells + 1)
    whole = calibrate(smaller, change, cells=cells, count_share=count_share, mechanism=GAUSSIAN)
    raised = _raised(smaller, change, cells, whole, honest)
    if raised != whole and change.table.largest == 1 and change.count <= 1:
        with suppress(ClaimError):
            small = calibrate(promise, change, cells=cells, count_share=count_share, mechanism=SKELLAM)
            if small.table.parameter < raised.table.parameter and _drawable(small, honest):
                raised = small
    return raised.map(lambda noise: replace(noise, parameter=noise.parameter / honest))


def _drawable(whole: Calibration, honest: int) -> bool:
    shares = [each.parameter / honest for each in whole if each.mechanism != NONE]
    return all(samplers.SMALLEST_SKELLAM <= each <= samplers.LARGEST_SKELLAM for each in shares)


def protecting_noises(claim: Claim, table: IntegerNoise, count: IntegerNoise) -> list[Calibration]:
    """The noises that a claim rests on, each of which must keep it alone; none if they are not of its kind.

    Of one holder of the data that is the noise itself; of a secure aggregation what the honest sites add; of
    sites with noise of their own that of every site.
    """
    trust = claim.trust
    if trust is None:
        return [] if SUM in (table.mechanism, count.mechanism) else [Calibration(table, count)]
    if trust.model == SECURE_AGGREGATION:
        least, honest = trust.parties - trust.dropouts, trust.honest
        parts = [_honest_part(each, least=least, honest=honest) for each in (table, count)]
        return [] if None in parts else [Calibration(parts[0] or NO_NOISE, parts[1] or NO_NOISE)]
    if trust.model == SITE_NOISE:
        tables, counts = _each(table, trust.parties), _each(count, trust.parties)
        return list(map(Calibration, tables, counts)) if len(tables) == len(counts) else []
    return []


def _honest_part(noise: IntegerNoise, *, least: int, honest: int) -> IntegerNoise | None:
    """The sum of ``honest`` shares, as one noise that is no larger; None if there are too few shares.

    None also for several Gaussian shares below the smallest variance: their sum is no discrete Gaussian.
    """
    if noise.mechanism == NONE:
        return noise
    if noise.mechanism == LAPLACE and noise.parts == 1:
        # As many shares as are needed, and no more, add up to this distribution: none of them may be known.
        return noise if honest == least else None
    terms = noise.terms or ((1, noise),)
    if len(terms) != 1 or terms[0][0] < least:
        return None
    share = terms[0][1]
    if share.mechanism == LAPLACE:
        return replace(share, parts=1) if share.parts <= honest else None
    if share.mechanism == SKELLAM:
        return replace(share, parameter=share.parameter * honest)
    if share.mechanism != GAUSSIAN or (honest > 1 and share.parameter < accounting.SMALLEST_SHARE):
        return None
    return replace(share, parameter=share.parameter * honest)


def protecting_distance(claim: Claim, noises: Calibration) -> float:
    """How far, in logarithms and per cell, what the honest sites add is from these `protecting_noises`.

    0 but for several Gaussian shares, whose sum is not exactly a discrete Gaussian.
    """
    trust = claim.trust
    if trust is None or trust.model != SECURE_AGGREGATION or trust.honest == 1:
        return 0.0
    shared = [each.parameter / trust.honest for each in noises if each.mechanism == GAUSSIAN]
    return max((accounting.sum_distance(trust.honest, each) for each in shared), default=0.0)


def _each(noise: IntegerNoise, parties: int) -> list[IntegerNoise]:
    if noise.mechanism == NONE:
        return [noise] * min(parties, 1 << 16)
    each = [inner for times, inner in noise.terms or ((1, noise),) for _ in range(min(times, 1 << 16))]
    return each if len(each) == parties else []


def _laplace_share(noise: IntegerNoise, honest: int) -> IntegerNoise:
    """One of ``honest`` shares, of the smallest scale that can be drawn in shares, or more.

    Scales below it are of promises above ε = 64 per unit of sensitivity, which more noise keeps as well.
    """
    if honest == 1:
        return noise
    return replace(noise, parameter=max(noise.parameter, samplers.SMALLEST_SHARED_SCALE), parts=honest)


def _raised(promise: Promise, change: UnitChange, cells: int, whole: Calibration, honest: int) -> Calibration:
    """Noise whose shares have at least the smallest variance; checked again, because on a lattice more
    variance is not always more private.
    """
    smallest = accounting.SMALLEST_SHARE * honest
    if all(each.mechanism == NONE or each.parameter >= smallest for each in whole):
        return whole
    noises = whole.map(lambda each: replace(each, parameter=max(each.parameter, smallest)))
    if promise.rho is not None:
        return noises
    for _ in range(_STEPS):
        if _delta(promise, change, cells, noises) <= promise.delta:
            return noises
        noises = noises.map(
            lambda each: replace(each, parameter=accounting.short_above(float(each.parameter) * 1.01))
        )
    raise ArithmeticError("no variance found that keeps the promise")


def _delta(promise: Promise, change: UnitChange, cells: int, noises: Calibration) -> float:
    """The smaller of two proven bounds: of small variances that by ρ, which is exact on the lattice."""
    assert promise.epsilon is not None
    moved, count = change.table, change.count
    table, counted = noises.table.parameter, noises.count.parameter if count else None
    rho = moved.l2_squared / (2 * table) + (0 if counted is None else count**2 / (2 * counted))
    converted = accounting.zcdp_delta(rho, promise.epsilon)
    if converted <= promise.delta:
        return converted
    if moved.largest == 1 and count <= 1:
        return accounting.discrete_gaussian_delta(
            promise.epsilon, cells=moved.l2_squared, variance=table, count_variance=counted
        )
    return accounting.vector_delta(
        promise.epsilon,
        l2_squared=moved.l2_squared,
        cells=cells,
        variance=table,
        count=count,
        count_variance=counted,
    )


RANDOM_STOPPING = "random stopping"
_MECHANISMS: dict[str, Callable[[Sequence[int], Fraction, NoiseSource], int]] = {
    PERMUTE_AND_FLIP: samplers.permute_and_flip,
    EXPONENTIAL: samplers.exponential_choice,
}


@dataclass(frozen=True, slots=True, repr=False)
class Question:
    """Integer scores of the candidates, how far one unit moves them, and the ε of this choice; secret.

    ``sensitivity`` bounds the move of any one score. ``monotone`` states that a unit moves no two scores in
    opposite directions, which halves the noise: proven by the caller, as for counts under add/remove.
    """

    scores: Sequence[int]
    epsilon: Fraction
    sensitivity: int
    monotone: bool = False

    @property
    def rate(self) -> Fraction:
        """ε over the largest rise minus the smallest: Δ where scores move one way, 2Δ otherwise."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def __repr__(self) -> str:
        return f"<Question CONFIDENTIAL candidates={len(self.scores)}>"


def choose_positions(questions: Sequence[Question], *, insecure_noise_seed: int | None = None) -> list[int]:
    """The position chosen for each question, all from one fresh key; their ε add up."""
    with release_noise(insecure_noise_seed) as noise:
        return [noise.choice(question, mechanism=PERMUTE_AND_FLIP) for question in questions]


def draw_candidates(rule: Stopping, candidates: int, *, insecure_noise_seed: int | None) -> list[int]:
    """Which candidate each run takes, for a secret random number of runs."""
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return samplers.draw_runs(rule, candidates, source)


def random_places(size: int, places: int, *, insecure_noise_seed: int | None) -> Integers:
    """A secret random place for each of ``size`` units, independent of the data and of each other."""
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return samplers.independent_places(size, places, source)


def flip_coins(against: Sequence[Fraction], *, insecure_noise_seed: int | None) -> list[bool]:
    """Independent coins, each true with probability 1/(1 + e^against), exactly: log-odds that move by r cost
    r²/8 of ρ, or r of pure ε.
    """
    with NoiseSource.for_release(insecure_noise_seed) as source:
        return samplers.log_odds_coins(against, source)


def choice_claim(
    promise: Promise,
    mechanism: str,
    *,
    relation: str | Relation,
    max_per_unit: int | None,
    insecure_noise_seed: int | None,
    arithmetic: str = "exact integers",
    assumptions: Sequence[str] = (),
) -> Claim:
    """What a choice claims; known before anything is drawn."""
    cap = 1 if max_per_unit is None else accounting.at_least_one("max_per_unit", max_per_unit, "give a cap")
    return Claim(
        promise=promise,
        unit="record" if max_per_unit is None else "person",
        records_per_unit=cap,
        relation=Relation.of(relation),
        mechanism=Mechanism.of(mechanism),
        arithmetic=arithmetic,
        secure=insecure_noise_seed is None,
        assumptions=tuple(assumptions),
    )


REAL_ARITHMETIC = "real arithmetic"
EXACT_INTEGERS = "exact integers"
REAL_GAUSSIAN = "gaussian"
_LATTICE_BITS = 30
_ROUNDING_BITS = 10


class ReleaseNoise:
    """What one release may draw; made by `release_noise` and over when its block ends."""

    __slots__ = ("_source",)

    def __init__(self, source: NoiseSource) -> None:
        self._source = source

    def choice(self, question: Question, *, mechanism: str = PERMUTE_AND_FLIP) -> int:
        """The position chosen by the scores; spends ``question.epsilon``, exactly."""
        return _MECHANISMS[mechanism](question.scores, question.rate, self._source)

    def laplace(self, counts: Integers, l1: int, epsilon: Fraction) -> tuple[Integers, IntegerNoise]:
        """Integer counts that one unit moves by at most ``l1`` together, made ε-private, and their noise."""
        noise = laplace_noise(l1, epsilon)
        return counts + noise.draw(counts.size, self._source).reshape(counts.shape), noise

    def gamma(self, values: Integers, l2_squared: int, epsilon: Fraction) -> tuple[Integers, IntegerNoise]:
        """Integers that one unit moves by at most √``l2_squared`` in L2, made ε-private by noise of the
        Gamma-radius distribution, and that noise.
        """
        noise = gamma_noise(l2_squared, values.size, epsilon)
        return values + noise.draw(values.size, self._source).reshape(values.shape), noise

    def integer_gaussian(self, values: Integers, variance: Fraction) -> Integers:
        """Integers with discrete Gaussian noise of that variance: Δ2²/(2·variance)-zCDP, exactly."""
        noise = samplers.discrete_gaussian(values.size, variance, self._source)
        return values + noise.reshape(values.shape)

    def gaussian(self, values: Floats, l2: float, epsilon: Fraction, delta: Fraction) -> tuple[Floats, float]:
        """Real numbers that one unit moves by at most ``l2`` in L2, made (ε, δ)-private, and their σ.

        They are rounded to a public step (`rounded`).
        """
        sigma = gaussian_sigma(l2, epsilon, delta)
        noise = standard_normal(values.size, self._source).reshape(values.shape)
        return rounded(values + sigma * noise, sigma), sigma

    def normal(self, size: int) -> Floats:
        """Independent standard normal numbers."""
        return standard_normal(size, self._source)

    def symmetric(self, size: int) -> Floats:
        """A symmetric matrix, its upper triangle independent standard normal numbers."""
        upper = np.triu(self.normal(size * size).reshape(size, size))
        return upper + np.triu(upper, 1).T

    def coin(self, exponent: float) -> bool:
        """True with probability e^(−exponent), exactly, for a float that is not negative."""
        return samplers.flip(Fraction(exponent), self._source.stream().more_bits(0))

    def gamma_vector(self, size: int, scale: float) -> Floats:
        """A vector b of density ∝ exp(−‖b‖/scale): a uniform direction, and a Gamma(size, scale) length.

        Half the sum of 2·size squared normal numbers has the Gamma(size, 1) distribution.
        """
        length = 0.5 * float(np.sum(self.normal(2 * size) ** 2))
        direction = self.normal(size)
        return direction * (scale * length / float(np.linalg.norm(direction)))


@contextmanager
def release_noise(insecure_noise_seed: int | None = None) -> Iterator[ReleaseNoise]:
    """A fresh key of the operating system for one release, wiped at the end; a seed makes it repeatable, for
    tests.

    >>> with release_noise(insecure_noise_seed=1) as noise:
    ...     noise.gamma_vector(3, 1.0).shape
    (3,)
    """
    with NoiseSource.for_release(insecure_noise_seed) as source:
        yield ReleaseNoise(source)


def gaussian_sigma(l2: float, epsilon: Fraction, delta: Fraction) -> float:
    """The least σ for an L2 sensitivity: the analytic Gaussian mechanism, for every ε.

    >>> round(gaussian_sigma(2.0, Fraction(1), Fraction(1, 10**6)), 2)
    8.45
    """
    return analytic_gaussian_sigma(epsilon, delta, l2)


def standard_normal(size: int, source: NoiseSource) -> Floats:
    """Independent normal numbers 2⁻³⁰·(k + U): k discrete Gaussian of variance 2⁶⁰, exactly, and U uniform
    between −½ and ½, of 52 bits.

    k alone would leave a lattice of step σ·2⁻³⁰ around the exact value, which distinguishes values that are
    off each other's lattice. k is within 2⁻⁶⁰/24 in total variation of a normal number of deviation 2³⁰,
    rounded (the lemma of `hushsum.privacy.accounting`). Between integers the
    density of that one is flat but for a part of |k|·2⁻⁶¹: a total variation below 2⁻³². Sums with exact
    values go through `rounded` before they are released, 2¹⁹ points of the lattice to a step: only those cut
    by the end of a step count then, and less than 2⁻⁵⁰ is left beside the rounding of floating point.

    >>> standard_normal(3, NoiseSource.insecure(1)).shape
    (3,)
    """
    whole = samplers.discrete_gaussian(size, Fraction(1 << (2 * _LATTICE_BITS)), source).astype(np.float64)
    between = ((source.stream().words(size) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52 - 0.5
    return 2.0**-_LATTICE_BITS * (whole + between)


def rounded(values: Floats, sigma: float) -> Floats:
    """Noisy numbers to the nearest multiples of a power of two, at most σ/2¹⁰: post-processing, σ is public.

    The lowest bits of a floating-point sum depend on how large the exact value was; none of them is left. It
    adds less than 10⁻⁷ to the variance.

    >>> rounded(np.array([0.30004]), 1.0) * 1024
    array([307.])
    """
    step = 2.0 ** (math.floor(math.log2(sigma)) - _ROUNDING_BITS)
    return step * np.rint(values / step)


def rounded_reach(tail: float) -> float:
    """The number of σ by which a number with noise σ·`standard_normal`, then `rounded`, exceeds the exact one
    with probability at most ``tail``.

    That is a quantile of the normal distribution, plus what drawing and rounding can add. Rounding moves a
    number by half a step, 2⁻¹¹·σ, at most. The noise is above r only if its lattice point k ≥ r·2³⁰ − ½, and
    the sum of a falling function from k on is below its integral from k − 1 on, so its tail beyond r is at
    most that of the normal distribution beyond r − 2·2⁻³⁰. A part of 1e−12 covers the rounding of the
    quantile.

    >>> rounded_reach(1e-6)  # doctest: +ELLIPSIS
    4.7539...
    """
    from scipy.special import ndtri

    quantile = float(-ndtri(tail))
    return quantile + abs(quantile) * 1e-12 + 2.0 ** -(_ROUNDING_BITS + 1) + 2.0 ** (1 - _LATTICE_BITS)


ANALYTIC = "analytic"
AS_PUBLISHED = "as-published"
CALIBRATIONS = (ANALYTIC, AS_PUBLISHED)
PATH = "gaussian process path"
LATTICE_GAUSSIAN = "discrete gaussian on coefficients"

# Parts of δ that may cover the difference between discrete and rounded Gaussian noise.
_ROUNDING_SHARES = (Fraction(1, 1000), Fraction(1, 50), Fraction(1, 5))


def path_scale(sensitivity: float, promise: Promise, *, calibration: str = ANALYTIC) -> float:
    """s of f + s·G for a function that one unit moves by at most ``sensitivity`` in the norm of the space.

    ``"analytic"`` is the least s, for every ε (Balle and Wang 2018). ``"as-published"`` is the paper's
    Δ·√(2 ln(2/δ))/ε, which is proven for ε ≤ 1 and larger.

    Raises
    ------
    ClaimError
        without δ, which no Gaussian noise can do without; or for a published scale beyond its proof.

    >>> promise = Promise.of(epsilon=0.4, delta=0.001)
    >>> round(path_scale(1.0, promise), 2), round(path_scale(1.0, promise, calibration="as-published"), 2)
    (5.56, 9.75)
    """
    if calibration not in CALIBRATIONS:
        raise ClaimError("calibration", f"must be one of {', '.join(CALIBRATIONS)}", got=shown(calibration))
    if promise.pure:
        remedy = ("give ", Argument("delta", 1e-6))
        raise ClaimError("delta", "must be above 0 for functional perturbation", got="none", remedy=remedy)
    if promise.epsilon is None:
        assert promise.rho is not None
        return sensitivity / math.sqrt(2.0 * float(promise.rho)) * (1.0 + 1e-12)
    if calibration == ANALYTIC:
        return analytic_gaussian_sigma(promise.epsilon, promise.delta, sensitivity)
    if promise.epsilon > 1:
        rule, got = "must be up to 1 for the published calibration", f"{float(promise.epsilon):g}"
        raise ClaimError("epsilon", rule, got=got, remedy=("leave out ", Parameter("calibration")))
    published = math.sqrt(2.0 * math.log(2.0 / float(promise.delta))) / float(promise.epsilon)
    return sensitivity * published * (1.0 + 1e-12)


def lattice_variance(l2: int, cells: int, promise: Promise, *, calibration: str = ANALYTIC) -> Fraction:
    """The least proven variance of discrete Gaussian noise on ``cells`` integers, which one unit moves by a
    vector no longer than ``l2``.

    >>> promise = Promise.of(epsilon=1.0, delta=1e-6)
    >>> round(float(lattice_variance(1 << 20, 1000, promise)) ** 0.5 / (1 << 20), 3)
    4.225
    """
    return lattice_variances([LatticePart(l2**2, cells)], promise, calibration=calibration)[0]


class LatticePart(NamedTuple):
    """Some integers of a release, which all get noise of the same variance, and a bound on how far one unit
    moves them.
    """

    l2_squared: int
    cells: int


def lattice_variances(
    parts: Sequence[LatticePart], promise: Promise, *, calibration: str = ANALYTIC
) -> list[Fraction]:
    """The variance of discrete Gaussian noise for each of several parts that are released together under one
    promise. Of n parts, each is calibrated as if a unit moved it √n times as far.

    Rounding a Gaussian release of integers is post-processing, so the analytic calibration holds for rounded
    noise. Discrete noise differs from it by `rounding_gap` in total variation, which costs (1 + e^ε) times
    that in δ: as small a part of δ as will do is set aside for it. Where the lattice is too coarse for that,
    and under ρ, the variance is n·l2²/(2ρ), which needs no lattice finer than integers. All parts take the
    same of these ways: one that is calibrated over the reals beside one that is calibrated through ρ would
    leave no single δ for both.

    >>> promise = Promise.of(epsilon=1.0, delta=1e-6)
    >>> two = lattice_variances([LatticePart(1 << 40, 500)] * 2, promise)
    >>> [round(float(each) ** 0.5 / (1 << 20) / 2**0.5, 3) for each in two]
    [4.225, 4.225]
    """
    moved = [len(parts) * each.l2_squared for each in parts]
    rho = promise.rho
    if promise.epsilon is not None:
        for share in _ROUNDING_SHARES:
            kept = Promise(promise.epsilon, promise.delta * (1 - share), None)
            sigmas = [path_scale(_length(square), kept, calibration=calibration) for square in moved]
            variances = [Fraction(math.ceil(sigma * sigma * (1.0 + 1e-12))) for sigma in sigmas]
            gaps = [rounding_gap(each.cells, own) for each, own in zip(parts, variances, strict=True)]
            spent = (1.0 + math.exp(min(float(promise.epsilon), 700.0))) * math.fsum(gaps)
            if spent * (1.0 + 1e-12) <= float(promise.delta * share):
                return variances
        rho = Fraction(zcdp_rho(promise.epsilon, promise.delta))
    assert rho is not None
    return [Fraction(square) / (2 * rho) for square in moved]


def _length(square: int) -> float:
    """Not below the root of an integer."""
    return float(math.isqrt(square - 1) + 1) * (1.0 + 1e-12) if square else 0.0


def perturb_lattice(
    values: Integers, variance: Fraction, *, insecure_noise_seed: int | None = None
) -> Integers:
    """The integers plus exact discrete Gaussian noise from a fresh key, wiped at the end.

    >>> import numpy as np
    >>> perturb_lattice(np.zeros(2, np.int64), Fraction(1 << 40), insecure_noise_seed=1).shape
    (2,)
    """
    with release_noise(insecure_noise_seed) as noise:
        return noise.integer_gaussian(values, variance)


HADAMARD = register_mechanism("hadamard response", PromiseKind.PURE)
# Amplification by shuffling, evaluated in `hushsum.privacy.accounting`.
SHUFFLED_HADAMARD = register_mechanism("hadamard response, shuffled", PromiseKind.APPROXIMATE)


class Response(NamedTuple):
    """A row and a column, both uniform and independent of the person, and one noisy sign."""

    row: int
    column: int
    negative: bool


def hadamard_response(
    cell_of: Callable[[int], int], *, rows: int, order: int, epsilon: Fraction, source: NoiseSource
) -> Response:
    """The response of a person whose cell in row r is ``cell_of(r)``.

    Parameters
    ----------
    cell_of : callable
        Secret. It is called once, for the row that was drawn.
    rows, order : int
        How many rows there are, and the order of the Hadamard matrix: a power of two, at least the number of
        cells of a row.
    epsilon : Fraction
    source : NoiseSource
        Open, of this report alone.

    Privacy
    -------
    ε-differential privacy in the local model: for every two persons, that is for every two functions
    ``cell_of``, and every response. Row and column do not depend on the person. Given them, the true sign is
    H[cell, column] = ±1, and the sign that is sent is the other one with probability 1/(1 + e^ε), exactly
    (`log_odds_coins`). So every sign has probability e^ε/(1 + e^ε) or 1/(1 + e^ε), and the ratio for two
    persons is 1, e^ε or e^−ε. That the drawn row decides which hash function is evaluated reveals nothing:
    the row is part of the response.

    Notes
    -----
    Acharya, Sun and Zhang, *Hadamard response*, AISTATS 2019, with one bit per person.

    Examples
    --------
    >>> with NoiseSource.insecure(3) as source:
    ...     hadamard_response(lambda row: 5, rows=4, order=8, epsilon=Fraction(1), source=source).row < 4
    True
    """
    row = int(samplers.independent_places(1, rows, source)[0])
    column = int(samplers.independent_places(1, order, source)[0])
    [other] = samplers.log_odds_coins([epsilon], source)
    return Response(row, column, ((cell_of(row) & column).bit_count() % 2 == 1) != other)


def local_source(insecure_noise_seed: int | None) -> NoiseSource:
    """The randomness of one report. With a seed it can be repeated, for tests."""
    return NoiseSource.for_release(insecure_noise_seed)


def sign_gain(epsilon: Fraction) -> float:
    """The mean of a noisy sign over the true one, tanh(ε/2).

    >>> round(sign_gain(Fraction(1)), 4)
    0.4621
    """
    return math.tanh(float(epsilon) / 2.0)
