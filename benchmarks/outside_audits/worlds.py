"""What an outside auditor sees: one score for each release of either of two neighbouring datasets.

Scores are log-likelihood ratios of everything that was released wherever that can be computed: for a table of
counts that of all its cells and of the noisy count, by the noise that the release states. No statistic tells
the two worlds apart better (Neyman and Pearson).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.privacy import BINOMIAL, GAMMA, LAPLACE, SKELLAM, IntegerNoise, Promise
from hushsum.privacy.accounting import analytic_gaussian_sigma
from hushsum.privacy.noise import NoiseSource
from hushsum.releases import NoisyTable

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DELTA = 1e-5
LESS_NOISE = 0.8
_NOISELESS = 1e8

TABLES: Mapping[float, int] = {0.5: 100_000, 1.0: 60_000, 3.0: 40_000}
"""Releases of one side for what releases tables, whose noise is drawn at once."""

MANY: Mapping[float, int] = {0.5: 1_500_000, 1.0: 1_000_000, 3.0: 500_000}
"""Where more than four cells share the loss of pure ε, all of which is seen only if all fall on one side."""

Score = Callable[[int], float]
"""``score(side)``: one release of the first (0) or second (1) world, as one number."""

Sampler = Callable[[int, int], Floats]
"""``sampler(side, number)``: as many scores."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Pure ε, or (ε, δ)."""

    epsilon: float
    delta: float | None = None

    def with_less_noise(self, factor: float = LESS_NOISE) -> Budget:
        """The claim at which the mechanism draws ``factor`` times the noise; the copy states this one's.

        Noise of pure ε is proportional to 1/ε, the rate of a private choice to ε. Gaussian noise has the
        least σ that keeps (ε, δ), so the larger ε is the one whose σ is ``factor`` times as large.
        """
        if self.delta is None:
            return Budget(self.epsilon / factor)
        target = factor * analytic_gaussian_sigma(Fraction(self.epsilon), Fraction(self.delta), 1.0)
        low, high = self.epsilon, 3.0 * self.epsilon
        for _ in range(60):
            middle = (low + high) / 2.0
            sigma = analytic_gaussian_sigma(Fraction(middle), Fraction(self.delta), 1.0)
            low, high = (middle, high) if sigma > target else (low, middle)
        return Budget(high, self.delta)

    @property
    def promise(self) -> Promise:
        """The same as the library's own value."""
        return Promise.of(epsilon=self.epsilon, delta=self.delta)

    @property
    def arguments(self) -> dict[str, Any]:
        """For a call that releases."""
        return {"epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True, slots=True)
class World:
    """A mechanism with its two neighbours.

    ``covers`` are names in the library's registries (bases, methods, models, mechanisms) that this is an
    audit of. ``releases`` sets the releases of one side for an ε; by default as many as fit in a given time.
    ``attainable`` gives, for an ε that noise is drawn for, the largest log ratio of any pair, where that is
    known to be less: if that of the copy is below the claim, the copy keeps the claim, and no audit may
    accuse it. ``gaussian`` says whether losses with δ are those of Gaussian noise, whose distance an auditor
    may estimate; if not, it counts.
    """

    name: str
    pair: str
    pure: bool
    covers: frozenset[str]
    open: Callable[[Budget], Sampler]
    releases: Mapping[float, int] = field(default_factory=dict)
    attainable: Callable[[float], float] | None = None
    largest_epsilon: float = 10.0
    gaussian: bool = True


def one_by_one(score: Score) -> Sampler:
    """Scores of as many releases, each made by itself."""
    return lambda side, number: np.array([score(side) for _ in range(number)])


def table_loss(function: NoisyTable, first: NoisyTable, second: NoisyTable) -> float:
    """The log-likelihood ratio of one released table and its count, second world against first."""
    table = _loss(function.table[None], first.table, second.table, function.noise)
    count = _loss(_count(function)[None], _count(first), _count(second), function.count_noise)
    return float(table[0] + count[0])


def _count(function: NoisyTable) -> Integers:
    return np.array([function.noisy_count], np.int64)


def _loss(seen: NDArray[Any], first: NDArray[Any], second: NDArray[Any], noise: IntegerNoise) -> Floats:
    """One ratio for each of several tables in ``seen``."""
    if noise.parameter == 0:
        return np.zeros(len(seen))
    to_first, to_second = (
        (seen - each).reshape(len(seen), -1).astype(np.float64) for each in (first, second)
    )
    scale = float(noise.parameter)
    if noise.mechanism == LAPLACE:
        loss: Floats = (np.abs(to_first) - np.abs(to_second)).sum(axis=1) / scale
    elif noise.mechanism == GAMMA:
        loss = (np.linalg.norm(to_first, axis=1) - np.linalg.norm(to_second, axis=1)) / scale
    else:
        loss = (to_first**2 - to_second**2).sum(axis=1) / (2.0 * scale)
    return loss


def log_ratio(noise: Integers, distribution: IntegerNoise, shares: int, side: int) -> Floats:
    """One ratio for each row of drawn noise, which hides zeros in the first world and ones in the second.

    ``distribution`` is that of each of ``shares`` draws that were added up.
    """
    shown = noise + side
    logs = _log_distribution(distribution, shares, int(np.abs(shown).max(initial=0)) + 1)
    middle = len(logs) // 2
    ratio: Floats = (logs[middle + shown - 1] - logs[middle + shown]).sum(axis=1)
    return ratio


def _log_distribution(distribution: IntegerNoise, shares: int, reach: int) -> Floats:
    """The logarithm of a distribution at −reach, …, reach, up to a constant."""
    from scipy.special import gammaln, ive

    places = np.arange(-reach, reach + 1, dtype=np.float64)
    scale = float(distribution.parameter)
    if distribution.mechanism == LAPLACE:
        found: Floats = -np.abs(places) / scale
    elif distribution.mechanism == BINOMIAL:
        found = -gammaln(scale / 2 + places + 1) - gammaln(scale / 2 - places + 1)
    elif distribution.mechanism == SKELLAM:
        found = np.log(np.maximum(ive(np.abs(places), scale * shares), 1e-300))
    else:
        found = -(places**2) / (2.0 * scale * shares)
    return found


Release = Callable[[int, Budget], Iterable[NoisyTable]]
"""``release(side, budget)``: the released tables of one world."""


def from_tables(release: Release) -> Callable[[Budget], Sampler]:
    """Scores of anything that releases tables; a release at ε = 10⁸ shows what they are without noise.

    One release states its noise, and the sampler then draws that of all others at once, a thousand times as
    fast: that a release draws exactly what it states is checked by tests of its own.
    """

    def open_world(budget: Budget) -> Sampler:
        exact = [list(release(side, Budget(_NOISELESS))) for side in (0, 1)]

        def sampler(side: int, number: int) -> Floats:
            total = np.zeros(number)
            for stated, *both in zip(release(side, budget), *exact, strict=True):
                for noise, first, second in (
                    (stated.noise, *(each.table for each in both)),
                    (stated.count_noise, *(_count(each) for each in both)),
                ):
                    if noise.mechanism != GAMMA:
                        # Noise of cells that are the same in both worlds says nothing.
                        moved = first != second
                        first, second = first[moved], second[moved]
                    shown = (first, second)[side] + _drawn(noise, number, first.shape)
                    total += _loss(shown, first, second, noise)
            return total

        return sampler

    return open_world


def _drawn(noise: IntegerNoise, number: int, shape: tuple[int, ...]) -> Integers:
    with NoiseSource.fresh() as source:
        cells = int(np.prod(shape))
        if noise.mechanism == GAMMA:
            return np.stack([noise.draw(cells, source).reshape(shape) for _ in range(number)])
        return noise.draw(number * cells, source).reshape(number, *shape)


def of_model(make: Callable[..., Any], data: Sequence[tuple[Any, ...]]) -> Callable[[Budget], Sampler]:
    """Scores of a model whose parts are released tables. It counts once, and is released again and again."""
    drawn: dict[tuple[int, Budget], Callable[[], Any]] = {}

    def release(side: int, budget: Budget) -> Iterable[NoisyTable]:
        if (side, budget) not in drawn:
            drawn[side, budget] = draws_of(make(**budget.arguments), data[side], budget)
        return list(drawn[side, budget]().parts.values())

    return from_tables(release)


def draws_of(model: Any, data: tuple[Any, ...], budget: Budget) -> Callable[[], Any]:
    """A call that makes one bundle of a model, as its release does."""
    model.partial_fit(*data)
    ready = model._ready(model._state.secret)
    return lambda: model._draw(ready, budget.promise)
