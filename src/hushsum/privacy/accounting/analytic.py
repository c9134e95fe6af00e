"""The Gaussian mechanism over the reals, calibrated exactly (Balle & Wang 2018)."""

from __future__ import annotations

import math

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
    return scale / math.exp(low) * (1 + 1e-13)
