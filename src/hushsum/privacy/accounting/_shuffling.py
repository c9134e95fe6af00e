"""Privacy amplification by shuffling: what reports of the local model claim once nobody knows who sent which.

For every ε₀-differentially private randomiser and n reports, the shuffled reports of two neighbouring groups
of persons (one person's value replaced) are at least as hard to tell apart as

    P = (A + Δ, C − A + 1 − Δ)  and  Q = (A + 1 − Δ, C − A + Δ),

where C is binomial with n − 1 trials of probability e^(−ε₀), A binomial with C trials of probability 1/2, and
Δ is 1 with probability e^ε₀/(1 + e^ε₀): Theorem 3.1 of Feldman, McMillan and Talwar, *Hiding among the
clones*, FOCS 2021. Given C = c the first number has the likelihood ratio

    (q·a + (1 − q)·(c + 1 − a)) / ((1 − q)·a + q·(c + 1 − a)),    q = e^ε₀/(1 + e^ε₀),

which grows with a, so δ(ε) is a sum of binomial tails, evaluated here in place of the closed form of the
theorem, which is about three times as large.

With r = 1 − q, b the distribution of A given C = c, and a₀ the least a whose ratio is at least e^ε, the part
of c is the sum over a ≥ a₀ of ``(q·b(a − 1) + r·b(a)) − e^ε·(r·b(a − 1) + q·b(a))``, which is

    (q − e^ε·r)·b(a₀ − 1) − (e^ε − 1)·P[A ≥ a₀].

Rounding is on the safe side: tails of C are added to δ whole; in that difference the first term is raised and
the second lowered by a relative 1e-9, far above the errors of the special functions (1e-11 for 10¹⁰ reports,
against 50 digits), and so are the weights of c; and the ε of a bisection is its upper end.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from hushsum._types import Floats
from hushsum.errors import ClaimError, UsageError

from ._parameters import narrowed

_ROUNDING = 1e-9
# The part of δ, on each side, for the numbers of clones that are not evaluated.
_TAIL = 1e-3

_WIDTH = 1e-6
_MOST_REPORTS = 1 << 40
_MOST_LOCAL = 60.0


def shuffled_delta(local_epsilon: float, reports: int, epsilon: float, *, tail: float = 1e-12) -> float:
    """An upper bound of δ at ``epsilon``, for this many shuffled reports of ``local_epsilon`` each.

    ``tail`` is a probability that may be added in place of numbers of clones that are rarer than it.

    >>> shuffled_delta(4.0, 100_000, 0.2) < 1e-6 < shuffled_delta(4.0, 100_000, 0.1)
    True
    """
    from scipy.stats import binom

    _check(local_epsilon, reports)
    clone = math.exp(-local_epsilon)
    low = int(binom.ppf(tail / 2.0, reports - 1, clone))
    high = int(binom.isf(tail / 2.0, reports - 1, clone))
    first, last = max(0, low - 1), min(reports - 1, high + 1)
    clones = np.arange(first, last + 1, dtype=np.float64)
    likely = binom.pmf(clones, reports - 1, clone)
    outside = float(binom.cdf(first - 1, reports - 1, clone) + binom.sf(last, reports - 1, clone))
    # Not by subtraction from 1, which would lose the small one.
    q, r = 1.0 / (1.0 + math.exp(-local_epsilon)), 1.0 / (1.0 + math.exp(local_epsilon))
    ratio = math.exp(epsilon)
    # The likelihood ratio is at least e^ε from this share of the c + 1 reports on; where it never is, δ is 0.
    slope = math.tanh(local_epsilon / 2.0) * (1.0 + ratio)
    share = (ratio * q - r) / slope
    from_here = share * (clones + 1.0)
    # q − e^ε·r, without subtracting.
    excess = ratio * r * math.expm1(local_epsilon - epsilon)

    def part(least: Floats, of: Floats) -> Floats:
        before = np.where(least > of + 1.0, 0.0, binom.pmf(least - 1.0, of, 0.5))
        gained, lost = before * excess, _tails(least, of) * math.expm1(epsilon)
        return gained * (1.0 + _ROUNDING) - lost * (1.0 - _ROUNDING)

    least = np.ceil(from_here - 1e-9)
    parts = part(least, clones)
    # Where rounding may have moved the first a by one, the larger value is the right one.
    doubtful = np.ceil(from_here + 1e-9) > least
    parts[doubtful] = np.maximum(parts[doubtful], part(least[doubtful] + 1.0, clones[doubtful]))
    delta = float(likely @ np.clip(parts, 0.0, 1.0))
    return min(1.0, delta * (1.0 + _ROUNDING) + outside * (1.0 + _ROUNDING))


@lru_cache(maxsize=256)
def shuffled_epsilon(local_epsilon: float, reports: int, delta: float) -> float:
    """The smallest ε that is proven at ``delta`` for shuffled reports, from above; at most ``local_epsilon``.

    Parameters
    ----------
    local_epsilon : float
        What every report satisfies by itself.
    reports : int
        How many reports of persons who follow the protocol are shuffled together, this person's among them.
    delta : float

    Examples
    --------
    >>> round(shuffled_epsilon(4.0, 100_000, 1e-6), 2)
    0.17
    """
    _check(local_epsilon, reports)
    if not 0.0 < delta < 1.0:
        raise ClaimError("delta", "must be above 0 and below 1", got=f"{delta:g}", remedy="try 1e-6")

    def kept(epsilon: float) -> bool:
        return shuffled_delta(local_epsilon, reports, epsilon, tail=_TAIL * delta) <= delta

    return narrowed(0.0, local_epsilon, kept, relative=_WIDTH)


def local_epsilon_for(epsilon: float, reports: int, delta: float) -> float:
    """The largest ε of single reports whose shuffled reports satisfy (``epsilon``, ``delta``), from below.

    >>> 4.0 < local_epsilon_for(0.2, 100_000, 1e-6) < 5.0
    True
    """

    def kept(local_epsilon: float) -> bool:
        return shuffled_delta(local_epsilon, reports, epsilon, tail=_TAIL * delta) <= delta

    highest = max(epsilon, min(_MOST_LOCAL, math.log(max(reports, 2)) + epsilon))
    return narrowed(highest, epsilon, kept, relative=_WIDTH)


def _tails(least: Floats, clones: Floats) -> Floats:
    """P[A ≥ least] of a binomial A with ``clones`` trials of probability 1/2."""
    from scipy.special import betainc

    inside = betainc(np.clip(least, 1.0, None), np.maximum(clones - least, 0.0) + 1.0, 0.5)
    return np.where(least < 1.0, 1.0, np.where(least > clones, 0.0, inside))


def _check(local_epsilon: float, reports: int) -> None:
    if not 0.0 < local_epsilon <= _MOST_LOCAL:
        rule, got = f"must be above 0 and at most {_MOST_LOCAL:g}", f"{local_epsilon:g}"
        raise ClaimError("local_epsilon", rule, got=got, remedy="1.0 is a common choice")
    if not 1 <= reports <= _MOST_REPORTS:
        raise UsageError("reports", "must be at least 1", got=f"{reports}", remedy="collect more reports")
