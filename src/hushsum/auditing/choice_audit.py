"""Audits of mechanisms with a handful of outcomes: private choices, binary answers.

For pure ε the largest log-ratio is reached by a single outcome, so it suffices to test each outcome in both
directions, at an equal share of the false-alarm rate. Each side is drawn a Poisson number of times; then the
counts of an outcome are independent Poisson variables, and given their sum the first is exactly binomial
with the odds p/p': one Clopper–Pearson bound for the ratio instead of one for each side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.auditing.binomial_bounds import at_most, binomial_bounds, most_hits_below
from hushsum.auditing.privacy_loss_lower_bound import LESS_NOISE, NoiseAudit
from hushsum.auditing.tail_test import FALSE_ALARM, draws_for, too_strong
from hushsum.errors import UsageError

Choose = Callable[[int], NDArray[np.int64]]
"""Gives as many independent outcomes, numbered from 0, as requested."""

Laws = Callable[[float], tuple[Sequence[float], Sequence[float]]]
"""The probabilities of all outcomes under the two neighbours when the mechanism is run at the given ε."""

_QUANTILES = 129


def audit_choice(
    left: Choose,
    right: Choose,
    epsilon: float,
    laws: Laws,
    *,
    mechanism: str,
    draws: int | None = None,
    less: float = LESS_NOISE,
    seed: int | None = None,
) -> NoiseAudit:
    """Audit a choice among finitely many outcomes on a pair of neighbours, against the loss of that pair.

    The claim tested is the largest log-ratio that ``laws(epsilon)`` has on this pair, at most ε: a pair of
    the exponential mechanism falls short of ε by what its normaliser takes, and a bound that lies between
    would let a fifth less noise pass.

    Parameters
    ----------
    left, right : callable
        The mechanism on each of the two neighbours.
    epsilon : float
        What it is claimed to keep.
    laws : callable
        ``laws(ε)`` gives the two lists of probabilities; also used, at ε/``less``, for the power.
    mechanism : str
        Its name in the report.
    draws : int, optional
        Mean number of draws on each side; default: for a power of 0.995.
    seed : int, optional
        Of the Poisson numbers; they give no protection.

    Raises
    ------
    UsageError
        if the two lists do not have the same outcomes, none of probability 0, or an outcome is out of range.
    """
    first, second = _checked(laws(epsilon))
    claimed = float(np.max(np.abs(np.log(first / second))))
    weaker = _checked(laws(epsilon / less))
    power = _power_against(claimed, *weaker)
    number = draws_for(power) if draws is None else draws
    if number is None:
        raise too_strong("epsilon", claimed)
    rng = np.random.default_rng(seed)
    sizes = rng.poisson(number, 2)
    counts = [
        _outcomes(choose(int(size)), len(first)) for choose, size in zip((left, right), sizes, strict=True)
    ]
    lowest = _bound(counts[0], counts[1])
    return NoiseAudit(mechanism, "epsilon", claimed, lowest, int(sizes.sum()), power(number))


def _bound(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """The largest of the lower bounds on all log-ratios, at least 0."""
    tail = FALSE_ALARM / (2 * len(left))
    best = 0.0
    for one, other in zip(left.tolist(), right.tolist(), strict=True):
        for hits in (one, other):
            share = binomial_bounds(hits, one + other, tail)[0] if one + other else 0.0
            if 0.0 < share < 1.0:
                best = max(best, math.log(share / (1.0 - share)))
    return best


def _power_against(claimed: float, left: Floats, right: Floats) -> Callable[[int], float]:
    """The chance that the single most telling outcome breaks the claim; all together do at least as well."""
    from scipy.special import ndtri

    tail = FALSE_ALARM / (2 * len(left))
    least = 1.0 / (1.0 + math.exp(claimed))
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES

    def one(number: int, likely: float, unlikely: float) -> float:
        mean = number * (likely + unlikely)
        sums = np.maximum(np.rint(mean + ndtri(levels) * math.sqrt(mean)), 0.0)
        critical = most_hits_below(sums, np.full(sums.shape, least), tail)
        return float(at_most(critical, sums, unlikely / (likely + unlikely)).mean())

    def power(number: int) -> float:
        pairs = [*zip(left.tolist(), right.tolist(), strict=True)]
        return max(one(number, max(pair), min(pair)) for pair in pairs)

    return power


def _outcomes(drawn: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    if drawn.size and not (drawn.min() >= 0 and drawn.max() < number):
        raise UsageError(
            rule=f"outcomes must be numbered from 0 to {number - 1}",
            got="another",
            remedy="number them so",
        )
    return np.bincount(drawn, minlength=number).astype(np.int64)


def _checked(laws: tuple[Sequence[float], Sequence[float]]) -> tuple[Floats, Floats]:
    left, right = (np.asarray(law, dtype=np.float64) for law in laws)
    if left.shape != right.shape or left.ndim != 1 or min(left.min(), right.min()) <= 0:
        raise UsageError(
            parameter="laws",
            rule="must give two lists of positive probabilities of the same outcomes",
            remedy="an outcome that only one neighbour can have gives it away",
        )
    return left, right
