"""Noise in shares: each of several parties adds a part, and the parts of the honest ones suffice.

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

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

from hushsum.errors import ClaimError
from hushsum.privacy._calibration import (
    GAUSSIAN,
    LAPLACE,
    NO_NOISE,
    NONE,
    SKELLAM,
    SUM,
    Calibration,
    IntegerNoise,
    UnitChange,
    calibrate,
)
from hushsum.privacy._claim import SECURE_AGGREGATION, SITE_NOISE, Claim, Promise
from hushsum.privacy.accounting import (
    SMALLEST_SHARE,
    discrete_gaussian_delta,
    promise_for_sum,
    short_above,
    sum_distance,
    vector_delta,
    zcdp_delta,
)
from hushsum.privacy.noise import LARGEST_SKELLAM, SMALLEST_SHARED_SCALE, SMALLEST_SKELLAM

_STEPS = 200


def noise_shares(
    promise: Promise, change: UnitChange, *, cells: int, count_share: Fraction, honest: int
) -> Calibration:
    """What each party adds to its table and to its count, so that ``honest`` of them keep the promise."""
    if promise.pure:
        whole = calibrate(promise, change, cells=cells, count_share=count_share, mechanism=LAPLACE)
        return whole.map(lambda noise: _laplace_share(noise, honest))
    if honest == 1:
        return calibrate(promise, change, cells=cells, count_share=count_share)
    smaller = promise_for_sum(promise, shares=honest, cells=cells + 1)
    whole = calibrate(smaller, change, cells=cells, count_share=count_share)
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
