"""Noise for functions: how large a Gaussian-process path must be, and the same in integers.

A function f of the data in the reproducing kernel Hilbert space of a kernel k is released as f + s·G, with G
one path of the Gaussian process of covariance k: the Gaussian mechanism in that space, for the sensitivity
Δ = sup‖f_D − f_D'‖ (Hall, Rinaldo and Wasserman 2013). In a finite feature space it is Gaussian noise on the
coefficients, here drawn as integers on a fine lattice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from hushsum._types import Integers
from hushsum.errors import Argument, ClaimError, Parameter, shown

from ._claim import Promise
from ._draws import release_noise
from .accounting import analytic_gaussian_sigma, rounding_gap, zcdp_rho

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
