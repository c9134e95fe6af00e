"""The random number of runs behind the best of many private releases.

Q is one run: a candidate at random, and its release, pure ε. K is drawn first, from a law that is public and
independent of the data; Q runs K times, and only the best result is returned. K, the losers and how long it
took stay secret.

*What it costs.* K follows the truncated negative binomial law: ``P(K = k) ∝ (1−γ)^k Π_{l=1}^{k−1}
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
Liu & Talwar 2019 (random stopping, 3ε); Papernot & Steinke 2022 (the family of laws, (2+η)ε).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from hushsum.errors import UsageError, shown
from hushsum.privacy.noise.source import NoiseSource, below, words_of

_ETA = {"geometric": 1, "logarithmic": 0}
_DENOMINATOR = 1 << 40
MOST_RUNS = 10_000
"""The largest mean; a draw takes about that many steps."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """A law of the number of runs: its name and γ; public.

    >>> rule = Stopping.with_mean("geometric", 20)
    >>> rule.gamma, rule.cost, rule.mean
    (Fraction(1, 20), 3, 20.0)
    """

    name: str
    gamma: Fraction

    def __post_init__(self) -> None:
        if self.name not in _ETA:
            raise UsageError(
                parameter="stopping",
                rule="must be 'geometric' or 'logarithmic'",
                got=shown(self.name),
                remedy="choose one",
            )
        if not (isinstance(self.gamma, Fraction) and 0 < self.gamma <= 1):
            raise UsageError(
                parameter="gamma",
                rule="must be a Fraction above 0 and at most 1",
                remedy="give 1 over the mean of runs",
            )
        if self.gamma.denominator > 1 << 62:
            raise UsageError(
                parameter="gamma", rule="must have a denominator of at most 2^62", remedy="round it"
            )

    @classmethod
    def with_mean(cls, name: str, runs: float) -> Stopping:
        """The law with that mean number of runs, from 1 to 10,000.

        γ is found in floating point and then taken as the rational it is: any γ costs the same.
        """
        if not 1 <= runs <= MOST_RUNS:
            raise UsageError(
                parameter="runs",
                rule=f"must be from 1 to {MOST_RUNS} on average",
                got=f"{runs:g}",
                remedy="try 20",
            )
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

    K steps up from 1; before each step it stops with probability γ. The logarithmic law is the geometric one
    with k kept with probability 1/k, that is, with every step from l to l+1 survived with probability
    l/(l+1), and a new start where it is not.
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
