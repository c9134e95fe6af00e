"""Private choices from a finite list, drawn exactly: permute-and-flip and the exponential mechanism.

Both prefer high scores by the weights ``v_i = exp(rate·score_i)``. Scores are integers and the rate is
rational, so every coin below has the probability ``e^(−x)`` of a rational x, and is decided by comparing
integers with proven bounds of it; no floating-point number takes part.

*What the rate pays.* Let one unit move the scores so that the largest rise minus the smallest (falls are
negative) is at most B. Then both mechanisms are pure ``rate·B``. For scores of sensitivity Δ, B is 2Δ; where
a unit moves all scores one way, as counts under add/remove, B is Δ.

*Proof for permute-and-flip.* Give every candidate an independent arrival time, uniform in [0, 1]. The r-th is
taken if its own coin falls, and no coin fell before it arrived: with V = max v,

    P(r) = (v_r/V) ∫₀¹ Π_{s≠r} (1 − t·v_s/V) dt = v_r ∫₀^{1/V} Π_{s≠r} (1 − z·v_s) dz.

Three facts can be read off: scaling all v changes nothing; P(r) falls as another v_s rises, since integrand
and range shrink; P(r)/v_r falls as v_r rises, since the range shrinks. A neighbour's scores have ``v'_r ≤
v_r·e^(rate·h)`` and ``v'_s ≥ v_s·e^(rate·l)`` with h − l ≤ B. So P'(r) is at most the value at
(v_r·e^(rate·h), v_s·e^(rate·l)), which by scaling is the value at (v_r·e^(rate·(h−l)), v_s), which is at most
``e^(rate·B)·P(r)``. ∎ The exponential mechanism, ``P(r) = v_r/Σv``, has the same three properties.

The number of coins depends on the scores, and so does the time a draw takes: for the owner's eyes only.

References
----------
McSherry & Talwar 2007 (the exponential mechanism); McKenna & Sheldon 2020 (permute-and-flip: never a larger
expected loss than the exponential mechanism at the same ε); Dong, Durfee & Rogers 2020 (the range B).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hushsum.errors import UsageError
from hushsum.privacy.noise.coin_sampler import flip
from hushsum.privacy.noise.source import NoiseSource, below, words_of

PERMUTE_AND_FLIP = "permute and flip"
EXPONENTIAL = "exponential"
MOST_CANDIDATES = 1 << 20


def permute_and_flip(scores: Sequence[int], rate: Fraction, source: NoiseSource) -> int:
    """The position of one score: candidates in random order, each taken with probability e^(−rate·shortfall).

    The best candidate's coin always falls, so it ends after at most ``len(scores)`` coins.

    Parameters
    ----------
    scores : sequence of int
        Higher is better; secret.
    rate : Fraction
        ε/B, with B the largest rise minus the smallest that one unit can cause.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.

    Raises
    ------
    UsageError
        no scores, too many, scores that are not integers, or a rate that is not above 0.

    Examples
    --------
    >>> permute_and_flip([0, 1000, 3], Fraction(1), NoiseSource.insecure(1))
    1
    """
    best = _check(scores, rate)
    stream = source.stream()
    words = words_of(stream.more_bits(0, acceptance=True))
    order = list(range(len(scores)))
    for position in range(len(order)):
        other = position + below(len(order) - position, words)
        order[position], order[other] = order[other], order[position]
        candidate = order[position]
        if flip(rate * (best - scores[candidate]), stream.more_bits(position)):
            return candidate
    raise AssertionError("the best candidate's coin always falls")


def exponential_choice(scores: Sequence[int], rate: Fraction, source: NoiseSource) -> int:
    """The position of one score, with probability proportional to e^(rate·score), by rejection.

    Takes ``len(scores)`` coins a draw at worst, on average. Parameters and refusals as for
    `permute_and_flip`.

    Examples
    --------
    >>> exponential_choice([0, 1000, 3], Fraction(1), NoiseSource.insecure(1))
    1
    """
    best = _check(scores, rate)
    stream = source.stream()
    words = words_of(stream.more_bits(0, acceptance=True))
    coins = 0
    while True:
        candidate = below(len(scores), words)
        if flip(rate * (best - scores[candidate]), stream.more_bits(coins)):
            return candidate
        coins += 1


def _check(scores: Sequence[int], rate: Fraction) -> int:
    if not 1 <= len(scores) <= MOST_CANDIDATES:
        raise UsageError(
            parameter="candidates",
            rule=f"must number from 1 to {MOST_CANDIDATES}",
            got=len(scores),
            remedy="list some",
        )
    if not all(type(score) is int for score in scores):
        raise UsageError(
            parameter="scores",
            rule="must be Python integers",
            got="something else",
            remedy="count or round before choosing",
        )
    if not isinstance(rate, int | Fraction) or rate <= 0:
        raise UsageError(
            parameter="rate",
            rule="must be a Fraction above 0",
            got="something else",
            remedy="give ε divided by the range",
        )
    return max(scores)


def permute_and_flip_law(scores: Sequence[int], rate: float) -> list[float]:
    """The probability of each candidate under `permute_and_flip`, in floating point, for audits and tests.

    The integral of the proof above, by Gauss–Legendre quadrature, which is exact for its polynomial.

    The scores (−2Δ, 0) and (−Δ, −Δ) are a worst pair: the first candidate has probability e^(−ε)/2 and 1/2.

    >>> permute_and_flip_law([-1, -1], 0.5)
    [0.5, 0.5]
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    times, weights = (nodes + 1.0) / 2.0, weights / 2.0
    best = max(scores)
    chances = [math.exp(-rate * (best - score)) for score in scores]
    missed = [1.0 - times * chance for chance in chances]
    law = []
    for candidate, chance in enumerate(chances):
        earlier = np.prod([each for other, each in enumerate(missed) if other != candidate], axis=0)
        law.append(chance * float((weights * earlier).sum()))
    return law


def exponential_law(scores: Sequence[int], rate: float) -> list[float]:
    """The probability of each candidate under `exponential_choice`, in floating point, for audits and tests.

    >>> exponential_law([-1, -1], 0.5)
    [0.5, 0.5]
    """
    best = max(scores)
    weights = [math.exp(-rate * (best - score)) for score in scores]
    return [weight / sum(weights) for weight in weights]
