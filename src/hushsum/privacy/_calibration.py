"""Sensitivities, integer noise, and the calibration: from a promise to the noise that keeps it.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import ClaimError, Parameter, UsageError
from hushsum.files import stored_rational

from ._claim import SECURE_AGGREGATION, SITE_NOISE, Claim, Promise, Relation
from .accounting import (
    SMALLEST_SHARE,
    binomial_trials,
    discrete_gaussian_delta,
    gamma_radius_scale,
    gaussian_variances,
    promise_for_sum,
    proper_share,
    short_above,
    skellam_variances,
    sum_distance,
    vector_delta,
    vector_variances,
    zcdp_delta,
)
from .noise import (
    LARGEST_SKELLAM,
    SMALLEST_SHARED_SCALE,
    SMALLEST_SKELLAM,
    NoiseSource,
    centred_binomial,
    check_trials,
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_share,
    gamma_radius,
    gamma_radius_variance,
    gaussian_variance,
    laplace_variance,
    skellam,
)

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
            return gamma_radius_variance(self.parameter, self.cells)
        return _VARIANCES[self.mechanism](self.parameter) / self.parts

    @property
    def in_words(self) -> str:
        """The mechanism as people read it; of a sum those of its terms."""
        if self.mechanism != SUM:
            return self.mechanism if self.parts == 1 else f"1/{self.parts} of {self.mechanism}"
        return " + ".join(f"{times} × {noise.in_words}" for times, noise in self.terms[:4]) + (
            " + …" if len(self.terms) > 4 else ""
        )

    def draw(self, size: int, source: NoiseSource, *, threads: int = 1) -> NDArray[np.int64]:
        """Independent draws; of the Gamma-radius distribution one vector, whose cells are uncorrelated."""
        if self.mechanism == GAMMA:
            if size != self.cells:
                raise ValueError("one length is shared by all cells")
            return gamma_radius(size, self.parameter, source)
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
            return discrete_laplace_share(size, self.parameter, self.parts, source)
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
        drawable = noise.mechanism != SKELLAM or SMALLEST_SKELLAM <= noise.parameter <= LARGEST_SKELLAM
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
    LAPLACE: laplace_variance,
    GAUSSIAN: gaussian_variance,
    BINOMIAL: lambda trials: check_trials(trials) / 4.0,
    SKELLAM: float,
    **dict.fromkeys(SUMS, float),
    NONE: lambda _: 0.0,
}
_SAMPLERS: dict[str, Callable[..., NDArray[np.int64]]] = {
    LAPLACE: discrete_laplace,
    GAUSSIAN: discrete_gaussian,
    BINOMIAL: centred_binomial,
    SKELLAM: skellam,
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
        of_count = promise.epsilon * proper_share(count_share) if change.count else Fraction(0)
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
    share = proper_share(count_share) if change.count else None
    cells, epsilon, delta = change.table.l2_squared, promise.epsilon, promise.delta
    if mechanism == SKELLAM:
        return Calibration.of(
            SKELLAM,
            *skellam_variances(cells=cells, epsilon=epsilon, delta=delta, rho=promise.rho, count_share=share),
        )
    assert epsilon is not None
    return Calibration.of(
        BINOMIAL, *binomial_trials(epsilon=epsilon, delta=delta, cells=cells, count_share=share)
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
        alike = short_above(change.count * math.sqrt(2.0 / gaussian.count.variance))
        of_count = min(alike, promise.epsilon / 2)
        of_table, count = of_table - of_count, laplace_noise(change.count, of_count)
    scale = gamma_radius_scale(of_table, promise.delta, cells=cells)
    return Calibration(gamma_noise(change.table.l2_squared, cells, 1 / short_above(scale)), count)


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
    share = proper_share(count_share) if count else Fraction(0)
    if promise.rho is not None:
        variance = Fraction(table.l2_squared) / (2 * promise.rho * (1 - share))
        return Calibration.of(
            GAUSSIAN, variance, Fraction(count**2) / (2 * promise.rho * share) if count else None
        )
    assert promise.epsilon is not None
    of_claim = {"epsilon": promise.epsilon, "delta": promise.delta}
    if table.largest == 1 and count <= 1:
        found = gaussian_variances(**of_claim, cells=table.l2_squared, count_share=share if count else None)
    else:
        found = vector_variances(
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
    smaller = promise_for_sum(promise, shares=honest, cells=cells + 1)
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
    return all(SMALLEST_SKELLAM <= each <= LARGEST_SKELLAM for each in shares)


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
    if share.mechanism != GAUSSIAN or (honest > 1 and share.parameter < SMALLEST_SHARE):
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
    return max((sum_distance(trust.honest, each) for each in shared), default=0.0)


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
    return replace(noise, parameter=max(noise.parameter, SMALLEST_SHARED_SCALE), parts=honest)


def _raised(promise: Promise, change: UnitChange, cells: int, whole: Calibration, honest: int) -> Calibration:
    """Noise whose shares have at least the smallest variance; checked again, because on a lattice more
    variance is not always more private.
    """
    smallest = SMALLEST_SHARE * honest
    if all(each.mechanism == NONE or each.parameter >= smallest for each in whole):
        return whole
    noises = whole.map(lambda each: replace(each, parameter=max(each.parameter, smallest)))
    if promise.rho is not None:
        return noises
    for _ in range(_STEPS):
        if _delta(promise, change, cells, noises) <= promise.delta:
            return noises
        noises = noises.map(lambda each: replace(each, parameter=short_above(float(each.parameter) * 1.01)))
    raise ArithmeticError("no variance found that keeps the promise")


def _delta(promise: Promise, change: UnitChange, cells: int, noises: Calibration) -> float:
    """The smaller of two proven bounds: of small variances that by ρ, which is exact on the lattice."""
    assert promise.epsilon is not None
    moved, count = change.table, change.count
    table, counted = noises.table.parameter, noises.count.parameter if count else None
    rho = moved.l2_squared / (2 * table) + (0 if counted is None else count**2 / (2 * counted))
    converted = zcdp_delta(rho, promise.epsilon)
    if converted <= promise.delta:
        return converted
    if moved.largest == 1 and count <= 1:
        return discrete_gaussian_delta(
            promise.epsilon, cells=moved.l2_squared, variance=table, count_variance=counted
        )
    return vector_delta(
        promise.epsilon,
        l2_squared=moved.l2_squared,
        cells=cells,
        variance=table,
        count=count,
        count_variance=counted,
    )
