"""What an outside auditor sees: one score for each release of either of two neighbouring datasets.

Scores are log-likelihood ratios of everything that was released wherever that can be computed: for a table of
counts that of all its cells and of the noisy count, by the noise that the release states. No statistic tells
the two worlds apart better (Neyman and Pearson).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.privacy.accounting.analytic import analytic_gaussian_sigma
from hushsum.privacy.calibration import GAMMA, LAPLACE, IntegerNoise
from hushsum.privacy.claim import Promise
from hushsum.releases.noisy_table import NoisyTable

Floats = NDArray[np.float64]

DELTA = 1e-5
LESS_NOISE = 0.8
_NOISELESS = 1e8

Score = Callable[[int], float]
"""``score(side)``: one release of the first (0) or second (1) world, as one number."""


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
        wanted = factor * analytic_gaussian_sigma(Fraction(self.epsilon), Fraction(self.delta), 1.0)
        low, high = self.epsilon, 3.0 * self.epsilon
        for _ in range(60):
            middle = (low + high) / 2.0
            sigma = analytic_gaussian_sigma(Fraction(middle), Fraction(self.delta), 1.0)
            low, high = (middle, high) if sigma > wanted else (low, middle)
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
    accuse it.
    """

    name: str
    pair: str
    pure: bool
    covers: frozenset[str]
    open: Callable[[Budget], Score]
    releases: dict[float, int] = field(default_factory=dict)
    attainable: Callable[[float], float] | None = None
    largest_epsilon: float = 10.0


def table_loss(function: NoisyTable, first: NoisyTable, second: NoisyTable) -> float:
    """The log-likelihood ratio of a released table and its count, second world against first."""
    table = _loss(function.table, first.table, second.table, function.noise)
    return table + _loss(
        np.array([function.noisy_count]),
        np.array([first.noisy_count]),
        np.array([second.noisy_count]),
        function.count_noise,
    )


def _loss(seen: Any, first: Any, second: Any, noise: IntegerNoise) -> float:
    if noise.parameter == 0:
        return 0.0
    to_first, to_second = (
        np.asarray(seen, np.float64) - np.asarray(each, np.float64) for each in (first, second)
    )
    scale = float(noise.parameter)
    if noise.mechanism == LAPLACE:
        return float((np.abs(to_first) - np.abs(to_second)).sum()) / scale
    if noise.mechanism == GAMMA:
        return float(np.linalg.norm(to_first) - np.linalg.norm(to_second)) / scale
    return float((to_first**2 - to_second**2).sum()) / (2.0 * scale)


Release = Callable[[int, Budget], Iterable[NoisyTable]]
"""``release(side, budget)``: the released tables of one world."""


def from_tables(release: Release) -> Callable[[Budget], Score]:
    """Scores of anything that releases tables; a release at ε = 10⁸ shows what they are without noise."""

    def open_world(budget: Budget) -> Score:
        exact = [list(release(side, Budget(_NOISELESS))) for side in (0, 1)]

        def score(side: int) -> float:
            parts = release(side, budget)
            return sum(table_loss(*each) for each in zip(parts, exact[0], exact[1], strict=True))

        return score

    return open_world


def of_model(make: Callable[..., Any], data: Sequence[tuple[Any, ...]]) -> Callable[[Budget], Score]:
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
