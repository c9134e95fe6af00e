"""Between ρ-zCDP and (ε, δ), by the optimal Rényi order, rounded to the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from hushsum.privacy.accounting.parameters import (
    Real,
    float_above,
    float_below,
    positive_epsilon,
    positive_rho,
    proper_delta,
)

SMALLEST = math.nextafter(0.0, 1.0)


def zcdp_delta(rho: Real, epsilon: Real) -> float:
    """Return a δ for which every ρ-zCDP mechanism is (ε, δ)-private.

    ``δ = min over α > 1 of exp((α−1)(αρ−ε)) / (α−1) · (1 − 1/α)^α``. Its logarithm is convex in α, with the
    derivative ``(2α−1)ρ − ε + log(1 − 1/α)``, whose root is bracketed and bisected. Every α > 1 gives a valid
    δ, so an inaccurate root costs tightness, never truth; the rounding of the exponent is added to it.

    Raises:
        ClaimError: ρ or ε is not finite and above 0.

    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy", Proposition 12.

    >>> f"{zcdp_delta(0.02, 1.0):.2e}"
    '8.83e-08'
    """
    return _delta(float_above(positive_rho(rho)), float_below(positive_epsilon(epsilon)))


def zcdp_epsilon(rho: Real, delta: Real) -> float:
    """Return the least ε for which ``zcdp_delta(rho, ε) ≤ delta``, rounded up.

    Raises:
        ClaimError: ρ is not finite and above 0, or δ not in (0, 1).

    >>> round(zcdp_epsilon(0.02, 1e-6), 4)
    0.8999
    """
    spent, bound = float_above(positive_rho(rho)), float_below(proper_delta(delta))
    # Bun & Steinke's simpler conversion, from which the optimal one can only descend.
    meets = (spent + 2 * math.sqrt(-spent * math.log(bound))) * (1 + 1e-9)
    return _bisect(0.0, meets, lambda epsilon: _delta(spent, epsilon) <= bound)


def zcdp_rho(epsilon: Real, delta: Real) -> float:
    """Return the largest ρ for which ``zcdp_delta(ρ, epsilon) ≤ delta``, rounded down.

    A table whose one unit moves it by Δ₂ then takes discrete Gaussian noise of variance ``Δ₂²/(2ρ)``.

    Raises:
        ClaimError: ε is not finite and above 0, or δ not in (0, 1).

    >>> round(zcdp_rho(1.0, 1e-6), 5)
    0.02436
    """
    return _rho(float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta)))


@lru_cache(maxsize=512)
def _rho(target: float, bound: float) -> float:
    """Cached, because a plan needs it for the tables of many options at the same ε and δ."""
    logarithm = -math.log(bound)
    meets = (target / (math.sqrt(logarithm + target) + math.sqrt(logarithm))) ** 2 * (1 - 1e-9)
    fails = 2 * meets
    while _delta(fails, target) <= bound:
        meets, fails = fails, 2 * fails
    return _bisect(fails, meets, lambda rho: _delta(rho, target) <= bound)


def _delta(rho: float, epsilon: float) -> float:
    """The optimised bound for floats, by bisection over the logarithm of x = α − 1."""
    low, high = math.log(1e-12), math.log(epsilon / (2 * rho) + 1 / math.sqrt(2 * rho))
    while high - low > 1e-9:
        middle = (low + high) / 2
        x = math.exp(middle)
        if (1 + 2 * x) * rho - epsilon > math.log1p(1 / x):
            high = middle
        else:
            low = middle
    x = math.exp(high)
    terms = (x * (1 + x) * rho, -x * epsilon, -x * math.log1p(1 / x), -math.log1p(x))
    rounding = 8 * 2.0**-52 * (1 + sum(map(abs, terms)))
    exponent = math.fsum(terms) + rounding
    return 1.0 if exponent >= 0 else max(math.exp(exponent), SMALLEST)


def _bisect(fails: float, meets: float, holds: Callable[[float], bool]) -> float:
    """Narrow [fails, meets] to a relative 1e−12 and return the end at which ``holds`` is true."""
    for _ in range(200):
        if abs(meets - fails) <= 1e-12 * abs(meets):
            break
        middle = (fails + meets) / 2
        if holds(middle):
            meets = middle
        else:
            fails = middle
    return meets
