"""The test behind the noise half: how often does a draw that is far enough go one move further?

For additive noise Z and neighbours that move its statistic by s, an attacker who decides for the second
dataset when the output reaches t is right with probability P(Z ≥ t − s) (*near*) and wrong with probability
P(Z ≥ t) (*far*). Far implies near, so among the near draws the far ones are binomial, exactly, with the
probability r = P(far)/P(near). A claim bounds r from below: pure ε by e^(−ε), a trade-off curve by g(y)/y at
y = P(near), where g(y) is the least false alarm an attacker of power y must accept; g is convex with
g(0) = 0, so g(y)/y grows with y. Hence

    claim broken  ⇐  upper bound on r  <  g(y)/y at the lower bound on y,

each bound by Clopper and Pearson at a share of the false-alarm rate. One sample serves both events, which
needs the square root of the draws that two independent samples need when ε is small. The test runs in both
directions, since a sampler need not be symmetric, each at half the rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers
from hushsum.auditing.binomial_bounds import at_most, lower_bounds, most_hits_below
from hushsum.errors import UsageError

FALSE_ALARM = 1e-8
"""The chance that an audit accuses a mechanism that keeps its claim; for each row of a report."""

REQUIRED_POWER = 0.995
MOST_DRAWS = 1 << 27
_QUANTILES = 129


@dataclass(frozen=True, slots=True)
class Hits:
    """How many of ``number`` draws were near and how many far, in one direction."""

    number: int
    near: int
    far: int


@dataclass(frozen=True, slots=True)
class Events:
    """Near and far as integer thresholds of the statistic, and the same mirrored.

    ``near`` ≤ ``far``; upwards a draw is near from ``near`` on, downwards up to ``−near``.
    """

    near: int
    far: int

    def count(self, statistics: Integers) -> tuple[Hits, Hits]:
        """Hits upwards and downwards."""
        number = len(statistics)
        return (
            Hits(number, _count(statistics >= self.near), _count(statistics >= self.far)),
            Hits(number, _count(statistics <= -self.near), _count(statistics <= -self.far)),
        )


def one_direction_power(
    number: int,
    near: float,
    far_given_near: float,
    least_ratio: Callable[[Floats], Floats],
    *,
    near_tail: float,
    far_tail: float,
) -> float:
    """The chance that ``number`` draws of a mechanism with these probabilities break the claim.

    Exact but for averaging over 129 quantiles of the number of near draws: for each, the critical number of
    far draws is found exactly and its binomial probability summed. ``least_ratio`` is g(y)/y of the claim.
    With ``near_tail`` = 0 the claim is taken not to depend on y.
    """
    from scipy.special import ndtri

    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    spread = np.sqrt(number * near * (1.0 - near))
    hits = np.clip(np.rint(number * near + ndtri(levels) * spread), 1.0, number)
    lowest = lower_bounds(hits, number, near_tail) if near_tail else np.full(hits.shape, near)
    critical = most_hits_below(hits, least_ratio(lowest), far_tail)
    return float(at_most(critical, hits, far_given_near).mean())


def draws_for(power: Callable[[int], float]) -> int | None:
    """The least number of draws, to a few per cent, with the required power; None beyond `MOST_DRAWS`."""
    number = 256
    while power(number) < REQUIRED_POWER:
        number *= 2
        if number > MOST_DRAWS:
            return None
    low, high = number // 2, number
    while high - low > high // 32:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle) >= REQUIRED_POWER else (middle, high)
    return high


def too_strong(quantity: str, value: float) -> UsageError:
    """The error for a claim that no affordable number of draws can test."""
    return UsageError(
        rule=(
            f"the claim {quantity} = {value:.3g} is too strong to be audited by "
            f"{MOST_DRAWS:.0e} draws, or its telling events are too rare"
        ),
        remedy="audit a larger or a smaller move of the same noise",
    )


def _count(event: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(event))
