"""Private selection, drawn exactly: coins with given log-odds, choices by scores, and random stopping.

Coins
-----
`log_odds_coins` flips independent coins. A coin of log-odds −x falls with probability 1/(1 + e^x). For
rational x that probability is enclosed by integer bounds of e^(−|x|) and compared with as many random bits as
the decision needs, so that both outcomes keep their probabilities however small they are. A coin of b bits
would draw a probability below 2⁻ᵇ as 0: an outcome that one of two neighbours can never have, which no ε and
no ρ bounds.

Choices by scores
-----------------
`permute_and_flip` and `exponential_choice` choose one candidate of a finite list. Both prefer high scores by
the weights ``v_i = exp(rate·score_i)``. Scores are integers and the rate is rational, so every coin below has
the probability ``e^(−x)`` of a rational x, and is decided by comparing integers with proven bounds of it; no
floating-point number takes part.

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

Random stopping
---------------
`draw_runs` draws the number of runs for a procedure that releases only the best of many private releases.

A run Q picks a candidate at random and makes its release, which is pure ε. The number of runs K is drawn
first, from a distribution that is public and independent of the data; Q runs K times, and only the best
result is returned. K, the losers and how long it took stay secret.

*What it costs.* K follows the truncated negative binomial distribution: ``P(K = k) ∝ (1−γ)^k Π_{l=1}^{k−1}
(l+η)/(l+1)``, k ≥ 1, whose generating function G has ``G'(t) = C·(1 − (1−γ)t)^(−1−η)``. Let b and a be the
probabilities of a run that is worse than y's score, and of one not better. The best is y with probability

    P(y) = q(y)/(a−b) · (G(a) − G(b)) = q(y) ∫₀¹ G'(b + u·(a−b)) du,

whichever of equally good runs is returned, if the rule between them does not look at them (here: the first).
With a neighbour's data q(y), 1−a and 1−b each grow or shrink by at most e^ε, so ``1 − (1−γ)(b + u(a−b)) = γ +
(1−γ)(u(1−a) + (1−u)(1−b))`` does too, and P(y) changes by at most ``e^ε·(e^ε)^(1+η)``: the whole is pure
(2+η)ε, for every γ. ∎ No term for the stop, no truncation, no δ.

Geometric (η = 1) costs 3ε, and logarithmic (η = 0, ``P(K = k) ∝ (1−γ)^k/k``) 2ε, with more weight on few
runs.

References
----------
McSherry & Talwar 2007 (the exponential mechanism); McKenna & Sheldon 2020 (permute-and-flip: never a larger
expected loss than the exponential mechanism at the same ε); Dong, Durfee & Rogers 2020 (the range B);
Liu & Talwar 2019 (random stopping, 3ε); Papernot & Steinke 2022 (the family of distributions, (2+η)ε).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from hushsum.errors import UsageError, shown

from ._samplers import exponential_bounds
from ._source import LazyUniform, NoiseSource, below, words_of


def log_odds_coins(against: Sequence[Fraction], source: NoiseSource) -> list[bool]:
    """Independent coins, the i-th true with probability ``1/(1 + e^against[i])``, exactly.

    Parameters
    ----------
    against : sequence of Fraction
        The log-odds against each outcome; secret.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.

    Raises
    ------
    UsageError
        if one is neither a Fraction nor an integer.

    Examples
    --------
    >>> log_odds_coins([Fraction(-1000), Fraction(1000)], NoiseSource.insecure(1))
    [True, False]
    """
    if not all(isinstance(each, int | Fraction) for each in against):
        raise UsageError("log-odds must be Fractions", got="something else", remedy="use Fraction(...)")
    stream = source.stream()
    return [flip_log_odds(Fraction(each), stream.more_bits(i)) for i, each in enumerate(against)]


def flip_log_odds(against: Fraction, more: Callable[[int], int]) -> bool:
    """A coin that falls with probability 1/(1 + e^against), exactly; ``more(i)`` gives the i-th 64 random
    bits.
    """

    def bounds(bits: int) -> tuple[int, int]:
        # 1/(1 + e^x) is e^(−x)/(1 + e^(−x)) for x ≥ 0, and 1 minus that of −x below: it grows with e^(−|x|).
        low, high = exponential_bounds(abs(against), bits)
        one = 1 << bits
        low, high = (low << bits) // (one + low), -((-high << bits) // (one + high))
        return (low, high) if against >= 0 else (one - high, one - low)

    return LazyUniform(more(0), 64, lambda i: more(i + 1)).below(bounds)


def flip(x: Fraction, more: Callable[[int], int]) -> bool:
    """A coin that falls with probability e^(−x), exactly; ``more(i)`` gives the i-th 64 random bits."""
    return x == 0 or LazyUniform(more(0), 64, lambda i: more(i + 1)).below(partial(exponential_bounds, x))


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
        rule = f"must number from 1 to {MOST_CANDIDATES}"
        raise UsageError("candidates", rule, got=len(scores), remedy="list some")
    if not all(type(score) is int for score in scores):
        remedy = "count or round before choosing"
        raise UsageError("scores", "must be Python integers", got="something else", remedy=remedy)
    if not isinstance(rate, int | Fraction) or rate <= 0:
        remedy = "give ε divided by the range"
        raise UsageError("rate", "must be a Fraction above 0", got="something else", remedy=remedy)
    return max(scores)


def permute_and_flip_distribution(scores: Sequence[int], rate: float) -> list[float]:
    """The probability of each candidate under `permute_and_flip`, in floating point, for audits and tests.

    The integral of the proof above, by Gauss–Legendre quadrature, which is exact for its polynomial.

    The scores (−2Δ, 0) and (−Δ, −Δ) are a worst pair: the first candidate has probability e^(−ε)/2 and 1/2.

    >>> permute_and_flip_distribution([-1, -1], 0.5)
    [0.5, 0.5]
    """
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    times, weights = (nodes + 1.0) / 2.0, weights / 2.0
    best = max(scores)
    kept = [math.exp(-rate * (best - score)) for score in scores]
    missed = [1.0 - times * each for each in kept]
    found = []
    for candidate, probability in enumerate(kept):
        earlier = np.prod([each for other, each in enumerate(missed) if other != candidate], axis=0)
        found.append(probability * float((weights * earlier).sum()))
    return found


def exponential_distribution(scores: Sequence[int], rate: float) -> list[float]:
    """The probability of each candidate under `exponential_choice`, in floating point, for audits and tests.

    >>> exponential_distribution([-1, -1], 0.5)
    [0.5, 0.5]
    """
    best = max(scores)
    weights = [math.exp(-rate * (best - score)) for score in scores]
    return [weight / sum(weights) for weight in weights]


_ETA = {"geometric": 1, "logarithmic": 0}
_DENOMINATOR = 1 << 40
MOST_RUNS = 10_000
"""The largest mean; a draw takes about that many steps."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """A distribution of the number of runs: its name and γ; public.

    >>> rule = Stopping.with_mean("geometric", 20)
    >>> rule.gamma, rule.cost, rule.mean
    (Fraction(1, 20), 3, 20.0)
    """

    name: str
    gamma: Fraction

    def __post_init__(self) -> None:
        if self.name not in _ETA:
            raise UsageError("stopping", "must be 'geometric' or 'logarithmic'", got=shown(self.name))
        if not (isinstance(self.gamma, Fraction) and 0 < self.gamma <= 1):
            rule = "must be a Fraction above 0 and at most 1"
            raise UsageError("gamma", rule, remedy="give 1 over the mean of runs")
        if self.gamma.denominator > 1 << 62:
            raise UsageError("gamma", "must have a denominator of at most 2^62", remedy="round it")

    @classmethod
    def with_mean(cls, name: str, runs: float) -> Stopping:
        """The distribution with that mean number of runs, from 1 to 10,000.

        γ is found in floating point and then taken as the rational it is: any γ costs the same.
        """
        if not 1 <= runs <= MOST_RUNS:
            rule = f"must be from 1 to {MOST_RUNS} on average"
            raise UsageError("runs", rule, got=f"{runs:g}", remedy="try 20")
        low, high = -2.0 * math.log(MOST_RUNS) - 8.0, 0.0
        if name == "geometric":
            return cls(name, 1 / Fraction(runs).limit_denominator(_DENOMINATOR))
        for _ in range(80):
            middle = (low + high) / 2
            low, high = (middle, high) if _logarithmic_mean(math.exp(middle)) > runs else (low, middle)
        gamma = Fraction(math.exp(high)).limit_denominator(_DENOMINATOR)
        return cls(name, min(gamma, Fraction(1)))

    @property
    def cost(self) -> int:
        """How many times the ε of one run the whole costs: 2 + η."""
        return 2 + _ETA[self.name]

    @property
    def mean(self) -> float:
        """The mean number of runs."""
        gamma = float(self.gamma)
        return 1.0 / gamma if self.name == "geometric" else _logarithmic_mean(gamma)

    def probability(self, runs: int) -> float:
        """``P(K = runs)``, in floating point, for plans and tests."""
        gamma = float(self.gamma)
        if self.name == "geometric" or gamma == 1.0:
            return gamma * (1.0 - gamma) ** (runs - 1)
        return (1.0 - gamma) ** runs / (runs * -math.log(gamma))


def draw_runs(rule: Stopping, candidates: int, source: NoiseSource) -> list[int]:
    """A candidate's position for each of K runs, exactly: K by the rule, every candidate uniform.

    K steps up from 1; before each step it stops with probability γ. The logarithmic distribution is the
    geometric one with k kept with probability 1/k, that is, with every step from l to l+1 survived with
    probability l/(l+1), and a new start where it is not.
    """
    word = words_of(source.stream().more_bits(0))
    return [below(candidates, word) for _ in range(_runs(rule, word))]


def _runs(rule: Stopping, word: Callable[[], int]) -> int:
    eta = _ETA[rule.name]
    runs = 1
    while below(rule.gamma.denominator, word) >= rule.gamma.numerator:
        runs = runs + 1 if below(runs + 1, word) < runs + eta else 1
    return runs


def _logarithmic_mean(gamma: float) -> float:
    return 1.0 if gamma > 1.0 - 1e-9 else (1.0 - gamma) / (gamma * -math.log(gamma))
