"""Gaussian noise over the reals, from (ε, δ) to its scale and back, and the δ of a table beside a count."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Protocol

import numpy as np

from hushsum._types import Floats
from hushsum.privacy.accounting.parameters import (
    Real,
    float_above,
    float_below,
    positive,
    positive_epsilon,
    proper_delta,
)


def gaussian_delta(epsilon: float, separation: float) -> float:
    """Return δ(ε) of two unit-variance normal laws whose means are ``separation`` = Δ/σ apart.

    Balle & Wang's ``Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)`` equals ``φ(u)·(M(u) − M(u + μ))`` with ``u = ε/μ −
    μ/2`` and M the Mills ratio, which neither overflows nor loses its digits for small δ. Accurate to a
    relative 1e−9 where Δ/σ ≥ 1e−5.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    from scipy.special import erfcx, ndtr

    u = epsilon / separation - separation / 2
    root, peak = math.sqrt(2), 0.5 * math.exp(-u * u / 2)
    if u < -5:  # where erfcx(u) would grow until it overflows
        return float(ndtr(-u) - peak * erfcx((u + separation) / root))
    return peak * float(erfcx(u / root) - erfcx((u + separation) / root))


def gaussian_delta_above(epsilon: float, separation: float) -> float:
    """`gaussian_delta` with its rounding errors added, so that it is never below δ(ε).

    Both terms are right to 1e−13 of the larger, Φ(−u), and to what a rounding of u = ε/μ − μ/2 does to
    e^(−u²/2): |u| times a few units in the last place of ε/μ + μ/2.
    """
    from scipy.special import ndtr

    u, size = epsilon / separation - separation / 2, epsilon / separation + separation / 2
    rounding = 4e-13 + 2.0**-51 * abs(u) * size
    return gaussian_delta(epsilon, separation) + rounding * float(ndtr(-u)) + 1e-300


def analytic_gaussian_sigma(epsilon: Real, delta: Real, sensitivity: Real = 1.0) -> float:
    """Return the smallest σ for which N(0, σ²I) noise on a query of this L2 sensitivity is (ε, δ)-private.

    Valid for every ε, unlike ``Δ√(2 ln(1.25/δ))/ε``, and optimal over the real numbers. Noise drawn in
    floating point does not keep this claim to the letter; for integer tables use ``gaussian_variances``.

    Args:
        epsilon: above 0; the result is accurate from 1e−3 to 50 and beyond.
        delta: strictly between 0 and 1.
        sensitivity: the largest L2 norm by which one unit moves the query.

    Returns:
        σ, rounded up: above the exact solution by a relative 1e−8 at most where ε ≥ 1e−3.

    Raises:
        ClaimError: a parameter is outside its range.

    Balle & Wang (2018), "Improving the Gaussian mechanism for differential privacy", Theorem 8.

    >>> [round(analytic_gaussian_sigma(epsilon, 1e-6), 2) for epsilon in (0.1, 1.0, 2.0)]
    [36.3, 4.22, 2.23]
    """
    target, bound = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
    scale = float_above(positive("sensitivity", sensitivity, "it is the norm of what one unit adds"))
    return scale / math.exp(_log_separation(target, bound)) * (1 + 1e-13)


@lru_cache(maxsize=512)
def _log_separation(target: float, bound: float) -> float:
    """Cached, because a plan needs it for the tables of many options at the same ε and δ."""

    def private(log_separation: float) -> bool:
        return gaussian_delta_above(target, math.exp(log_separation)) <= bound

    low = high = math.log(target) / 2 if target > 1 else math.log(target)
    while not private(low):
        low -= 1.0
    while private(high):
        high += 1.0
    while high - low > 1e-13:
        middle = (low + high) / 2
        if private(middle):
            low = middle
        else:
            high = middle
    return low


COUNT_NODES = 2**11


class Divergence(Protocol):
    """An upper bound on δ at every real ε, and about how many deviations apart the two laws are."""

    separation: float

    def delta(self, epsilon: Floats) -> Floats:
        """δ(ε) for each ε, of any sign."""


class ShiftedCount(Divergence, Protocol):
    """The same of one integer with discrete Gaussian noise of this variance, moved by ``shift``."""

    shift: int
    variance: float


def mixed_delta(epsilon: float, table: Divergence, count: ShiftedCount) -> float:
    """The table's δ averaged over the loss of the count, by the piecewise linear H that
    ``discrete_gaussian_delta`` describes.

    The nodes decide how tight the bound is, not whether it holds.
    """
    deviation = math.sqrt(count.variance)
    separation = math.hypot(table.separation, count.separation)
    # Beyond `highest` lies a share e^−20 of the δ to be expected, below `lowest` far less.
    expected = max(gaussian_delta(epsilon, separation), 1e-290)
    highest = math.ceil(deviation * math.sqrt(2 * math.log(1 / expected) + 40)) + 1
    lowest = -math.ceil(8 * deviation) - 1
    stride = -(-(highest - lowest) // COUNT_NODES)
    steps = np.arange(-(-(highest - lowest) // stride) + 1, dtype=np.float64)
    losses = (lowest + count.shift / 2 + steps * stride) * (count.shift / count.variance)
    # δ falls with ε, so a lower ε covers the rounding of its arguments
    margin = 8 * 2.0**-53 * np.abs(losses)
    heights = table.delta(epsilon - losses - margin - 8 * 2.0**-53 * epsilon)
    gap = stride * count.shift / count.variance
    slopes = np.diff(heights, append=1.0)
    slopes[:-1] /= -math.expm1(-gap)
    before = np.append(0.0, slopes[:-1]) * math.exp(-gap)
    rounding = 2.0**-50 * (np.abs(slopes) + (1 + gap) * np.abs(before))
    coefficients = np.maximum(slopes - before + rounding, 0.0)
    mixed = heights[0] + np.dot(coefficients, count.delta(losses - margin))
    return min(1.0, float(mixed) * (1 + 1e-12))
