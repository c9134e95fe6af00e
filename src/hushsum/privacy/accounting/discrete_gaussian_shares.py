r"""The sum of h discrete Gaussians of variance v, each drawn by a site, in place of one of variance hv.

Write N for N_Z(0, hv), Q for the law of the sum, and ``|ln Q(s)/N(s)| ≤ τ`` for all integers s.

**τ.** As in ``log_sum_excess``: adding N_Z(0, b) to N_Z(0, a) gives N_Z(0, a + b) times
``ϑ(a+b)/(ϑ(a)ϑ(b))·Σ_k e^(−2π²gk²) cos(2πkc)`` with ``g = ab/(a+b)`` and some real c. The last factor lies
between 2 − ϑ(g) and ϑ(g). With a = kv and b = v, g ≥ v/2; so each of the h − 1 steps moves the logarithm by
at most ``−ln(2 − ϑ(v/2)) + 2·ln ϑ(v) ≤ 2.1·e^(−π²v)`` where v ≥ 4.

**(ε, δ).** Of d cells (and a count) P and P' are the laws under neighbours, G and G' those with N in place of
Q, and T = dτ. Cell by cell P ≤ e^T·G and P' ≥ e^(−T)·G', so

    Σ max(0, P − e^ε·P') ≤ e^T·Σ max(0, G − e^(ε−2T)·G'):

noise that is (ε − 2T, e^(−T)·δ)-private with N is (ε, δ)-private with Q.

**ρ.** Let ``K(α) = ln Σ P^α·P'^(1−α)``; ρ-zCDP is K(α) ≤ ρ·α(α − 1) for α > 1. For α > 2 the quotients give
``K(α) ≤ α(α − 1)·ρ_G + (2α − 1)·T``, at most ``α(α − 1)·(ρ_G + 3T/2)``. For α ≤ 2: K(0) = K(1) = 0, and K''
is the variance of the loss ln P/P' under the law ∝ P^α·P'^(1−α). In each cell that loss is a line of slope
``r/hv`` plus at most 2τ, and that law is a discrete Gaussian of variance hv with a real centre, times factors
between e^(−3τ) and e^(3τ). Such a Gaussian has a variance of at most hv·(1 + 10⁻¹²) for hv ≥ 4 (Poisson
summation; the terms left out are below 4π²hv·e^(−2π²hv)). So the deviation is at most ``e^(3τ)·(1 +
10⁻¹²)·r/√(hv) + 2τ``, and over all cells, by the triangle inequality,

    K'' ≤ (e^(3τ)·(1 + 10⁻¹²)·√(2ρ_G) + 2τ√d)²,       K(α) ≤ α(α − 1)·K''/2.

Compare Kairouz, Liu & Steinke (2021), Theorem 1, which has ``Δ/σ + τ√d`` for the same reason.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from hushsum.errors import ClaimError
from hushsum.privacy.claim import Promise

SMALLEST_SHARE = Fraction(4)
"""The smallest variance of a share: the sum of smaller ones is further from a discrete Gaussian."""
_FIRST_MARGIN = Fraction(1, 1 << 20)
_UP = 1.0 + 1e-9


def sum_distance(shares: int, variance: Fraction = SMALLEST_SHARE) -> float:
    """τ of the top of this module: how far the sum is from one discrete Gaussian, in logarithms.

    >>> sum_distance(20) < 1e-15
    True
    """
    if variance < SMALLEST_SHARE:
        raise ValueError("variance")
    return (shares - 1) * 2.1 * math.exp(-(math.pi**2) * float(variance)) * _UP


def rho_of_sum(rho: Fraction, tau: float, cells: int) -> float:
    """ρ of sums of shares whose distance is ``tau``, where one discrete Gaussian per cell has ``rho``."""
    slope = math.exp(3 * tau) * (1 + 1e-12) * math.sqrt(2 * float(rho)) + 2 * tau * math.sqrt(cells)
    return max(slope**2 / 2, float(rho) + 1.5 * cells * tau * _UP) * (1 + 1e-12)


def promise_for_sum(promise: Promise, *, shares: int, cells: int) -> Promise:
    """A promise that one discrete Gaussian per cell must keep, so that the sum of shares keeps ``promise``.

    It is smaller by a millionth, and by more only for promises so small that the distance counts. ``cells``
    are all that are released, the count among them.

    >>> from hushsum.privacy.claim import Promise
    >>> kept = promise_for_sum(Promise.of(rho=0.5), shares=20, cells=10**6)
    >>> 0 < 1 - kept.rho / Fraction(1, 2) < 1e-5
    True
    """
    tau = sum_distance(shares)
    margin = _FIRST_MARGIN
    while margin <= Fraction(1, 2):
        smaller = _reduced(promise, margin)
        if _kept(promise, smaller, tau, cells):
            return smaller
        margin *= 2
    raise ClaimError(
        rule="the promise is too small for noise in shares of so many cells",
        got="too small",
        remedy="use a larger one, or fewer rows",
    )


def _reduced(promise: Promise, margin: Fraction) -> Promise:
    if promise.rho is not None:
        return replace(promise, rho=promise.rho * (1 - margin))
    assert promise.epsilon is not None
    return replace(promise, epsilon=promise.epsilon * (1 - margin), delta=promise.delta * (1 - margin))


def _kept(promise: Promise, smaller: Promise, tau: float, cells: int) -> bool:
    total = cells * tau * _UP
    if promise.rho is not None:
        assert smaller.rho is not None
        return rho_of_sum(smaller.rho, tau, cells) <= float(promise.rho)
    assert promise.epsilon is not None
    assert smaller.epsilon is not None
    less = float(promise.epsilon - smaller.epsilon)
    return 2 * total <= less and math.exp(total) * _UP * float(smaller.delta) <= float(promise.delta)
