"""Exact bounds on a probability from a count of hits."""

from __future__ import annotations

import numpy as np

from hushsum._types import Floats


def binomial_bounds(hits: int, number: int, tail: float) -> tuple[float, float]:
    """Clopper and Pearson's bounds: each is on the wrong side of the probability in at most ``tail`` of all
    samples.

    >>> low, high = binomial_bounds(90, 100, 1e-3)
    >>> round(low, 3), round(high, 3)
    (0.775, 0.969)
    """
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, number - hits + 1, tail))
    high = 1.0 if hits == number else float(betaincinv(hits + 1, number - hits, 1.0 - tail))
    return low, high


def lower_bounds(hits: Floats, number: int, tail: float) -> Floats:
    """The lower bounds of many counts, all above 0, at once."""
    from scipy.special import betaincinv

    return np.asarray(betaincinv(hits, number - hits + 1.0, tail), dtype=np.float64)


def at_most(hits: Floats, number: Floats, probability: Floats | float) -> Floats:
    """P(X ≤ hits) for binomial X; 0 below 0 and 1 from ``number`` on."""
    from scipy.special import betainc

    inside = np.clip(hits, 0.0, np.maximum(number - 1.0, 0.0))
    shares = betainc(np.maximum(number - inside, 1e-300), inside + 1.0, 1.0 - probability)
    result: Floats = np.where(hits < 0, 0.0, np.where(hits >= number, 1.0, shares))
    return result


def most_hits_below(number: Floats, probability: Floats, tail: float) -> Floats:
    """The most hits whose upper bound stays below ``probability``: −1 where none does.

    The bound is below p exactly when P(X ≤ hits) < tail under p, so this is the critical value of the test
    that rejects p from above.
    """
    low, high = np.full(number.shape, -1.0), number.copy()
    while np.any(high - low > 1.0):
        middle = np.floor((low + high) / 2.0)
        below = at_most(middle, number, probability) < tail
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low
