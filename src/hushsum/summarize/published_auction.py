"""The paper's protocol as published: h2 broadcasts and the rank auction. It is not private; for its figures.

The auction requests the point of rank i with probability ``e^{−ε(i−1)}``: an owner without a request learns
that it was not first, with a ratio that no ε bounds. And one record shifts every later round, which the
published proof does not count. So this is not a rule of `RunTerms`: it runs in one process, to reproduce the
figures, and warns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from hushsum._types import Floats, Integers
from hushsum.errors import UnsoundRule, UsageError
from hushsum.summarize.features import SummaryFeatures
from hushsum.summarize.published_broadcasts import AS_PUBLISHED, Iteration, MarginalSums


@dataclass(frozen=True, slots=True)
class PublishedParameters:
    """Table 1 of the paper: h2's iterations and ε of the first and of later rounds, and its grid."""

    first_iterations: int = 1656
    later_iterations: int = 5
    validation_epsilon: float = 0.01
    first_epsilon: float = 0.05
    later_epsilon: float = 0.01
    grid_steps: int = 64
    auction_epsilon: float = 1.0
    delta: float = 1e-4

    def composed(self, size: int) -> tuple[float, float]:
        """(summary ε, validation ε) as the paper composes them (Theorem 7), at δ and at 0.01."""
        each = self.later_epsilon / math.sqrt(size * self.later_iterations)
        summary = _composed(each, size * self.later_iterations, self.delta)
        return summary, _composed(self.validation_epsilon, self.first_iterations, 0.01)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublishedSummary:
    """The chosen points as (owner, place) pairs, how many the curator saw, and the paper's own figures."""

    owners: Integers
    places: Integers
    seen: int
    paper_epsilon: float
    paper_validation_epsilon: float


def published_auction(
    owners: Sequence[ArrayLike],
    validation: ArrayLike,
    features: SummaryFeatures,
    size: int,
    *,
    seed_points: ArrayLike,
    parameters: PublishedParameters | None = None,
    rounds_at_once: int = 1,
    seed: int = 0,
) -> PublishedSummary:
    """Run Algorithm 3 with its auction and its "chosen τ times" rule.

    ``rounds_at_once`` takes that many bids of each owner in a round, which the paper does not, to run sooner.
    ``seed_points`` are the paper's D_init, which it does not protect.

    Warns
    -----
    UnsoundRule
        always.
    """
    warnings.warn(
        "the published auction does not keep its claim; use it to reproduce figures only",
        UnsoundRule,
        stacklevel=2,
    )
    if features.paired:
        raise UsageError(
            parameter="features", rule="must be the published ones", got="pairs", remedy="give paired=False"
        )
    table = parameters or PublishedParameters()
    rng = np.random.default_rng(seed)
    bounded = 1.0 / (features.unit * math.sqrt(features.features / 2.0))
    vectors = [features.hashes(each).astype(np.float64) / bounded for each in owners]
    start = features.hashes(seed_points).astype(np.float64) / bounded
    target = _broadcast(
        MarginalSums(features.width, table.grid_steps),
        features.hashes(validation).astype(np.float64) / bounded,
        table.first_iterations,
        table.validation_epsilon,
        rng,
    )
    marginals = MarginalSums(features.width, table.grid_steps)
    places = marginals.round(start, rng).sum(axis=0)
    count = len(start)
    repeats = max(1, round(len(owners) ** (2.0 / 3.0)))
    tracker = _Auction(vectors, repeats, table.auction_epsilon, rng)
    chosen: list[tuple[int, int]] = []
    while len(chosen) < size:
        first = not chosen
        each = (
            table.first_epsilon if first else table.later_epsilon / math.sqrt(size * table.later_iterations)
        )
        iterations = table.first_iterations if first else table.later_iterations
        current = _improve(marginals, places, count, iterations, each, rng)
        winners = tracker.round(
            target - current * count / (count + 1.0), min(rounds_at_once, size - len(chosen))
        )
        if not winners:
            break
        for owner, place in winners:
            places = places + marginals.round(vectors[owner][place], rng)
        count += len(winners)
        chosen.extend(winners)
    summary_epsilon, validation_epsilon = table.composed(size)
    pairs = np.array(chosen, np.int64).reshape(-1, 2)
    return PublishedSummary(pairs[:, 0], pairs[:, 1], tracker.seen, summary_epsilon, validation_epsilon)


class _Auction:
    """Bids, questions, the pool, and how often a point stood without being requested."""

    def __init__(self, vectors: list[Floats], repeats: int, rate: float, rng: np.random.Generator) -> None:
        self._vectors, self._repeats, self._rate, self._rng = vectors, repeats, rate, rng
        self._sent = [np.zeros(len(each), np.bool_) for each in vectors]
        self._stood = [np.zeros(len(each), np.int64) for each in vectors]
        self._pool: list[tuple[int, int]] = []
        self.seen = 0

    def round(self, direction: Floats, winners: int) -> list[tuple[int, int]]:
        gains = [
            np.where(sent, -np.inf, v @ direction) for v, sent in zip(self._vectors, self._sent, strict=True)
        ]
        for turn in range(winners):
            bids = [(float(g.max()), k, int(g.argmax())) for k, g in enumerate(gains) if np.isfinite(g.max())]
            for rank, (_, owner, place) in enumerate(sorted(bids, reverse=True)):
                self._stood[owner][place] += 1
                requested = self._rng.random() < math.exp(-self._rate * rank)
                if requested or self._stood[owner][place] >= self._repeats:
                    self._pool.append((owner, place))
                    self._sent[owner][place] = True
                    gains[owner][place] = -np.inf
                    self.seen += 1
                elif turn + 1 < winners:
                    gains[owner][place] = -np.inf
        worth = [float(self._vectors[k][i] @ direction) for k, i in self._pool]
        best = [self._pool[i] for i in np.argsort(-np.array(worth), kind="stable")[:winners]]
        taken = set(best)
        self._pool = [each for each in self._pool if each not in taken]
        return best


def _broadcast(
    marginals: MarginalSums, vectors: Floats, iterations: int, epsilon: float, rng: np.random.Generator
) -> Floats:
    places = marginals.round(vectors, rng).sum(axis=0)
    return _improve(marginals, places, len(vectors), iterations, epsilon, rng)


def _improve(
    marginals: MarginalSums,
    places: Integers,
    count: int,
    iterations: int,
    epsilon: float,
    rng: np.random.Generator,
) -> Floats:
    spending = Iteration(Fraction(epsilon) / 2, Fraction(epsilon) / 2)
    # Nothing is claimed, so noise that can be drawn again does no harm.
    seed = int(rng.integers(1 << 40))
    return marginals.improve(
        places, count, iterations, spending, calibration=AS_PUBLISHED, insecure_noise_seed=seed
    )


def _composed(each: float, times: int, delta: float) -> float:
    """Theorem 7 (Kairouz et al.): kε tanh-term plus ε·√(2k·ln(1/δ))."""
    drift = times * each * math.expm1(each) / (math.exp(each) + 1.0)
    return min(times * each, drift + each * math.sqrt(2.0 * times * math.log(1.0 / delta)))
