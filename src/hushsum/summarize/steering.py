"""What the next round asks for, computed from public numbers alone: direction, threshold and chance."""

from __future__ import annotations

import numpy as np

from hushsum.summarize.features import Floats, Integers
from hushsum.summarize.messages import CERTAIN

_LARGEST = 1 << 28
_FIRST_CHANCE = 1.0 / 256.0
_MEMORY = 0.6
_FASTEST = 4.0
_LEVEL_STEP = 0.5


def direction_of(target: Floats, summary: Floats, count: float) -> Floats:
    """Target mean minus summary mean: up to a factor and a constant, the marginal gain of every point.

    ``J(S + x) − J(S)`` is ``2/(n + 1)·(μ·φ(x) − s·φ(x)/(n + 1))`` plus terms that are equal for all points of
    one norm.
    """
    return target if count < 1.0 else target - summary / (count + 1.0)


def kept_share(direction: Floats, variance: float) -> Floats:
    """How much of each pair of coordinates is worth keeping, from 0 to 1, given the noise in each.

    The share of a pair's squared length that noise does not explain (positive-part James and Stein), which
    is post-processing.
    """
    size = 2 if direction.size % 2 == 0 else 1
    squared = (direction.reshape(-1, size) ** 2).sum(axis=1)
    kept = np.maximum(1.0 - size * variance / np.maximum(squared, 1e-300), 0.0)
    return np.repeat(kept, size)


def as_integers(direction: Floats) -> tuple[Integers, float]:
    """A direction as integers within ±2²⁸, and how many of them make one."""
    largest = float(np.abs(direction).max()) if direction.size else 0.0
    scale = _LARGEST / largest if largest > 0.0 else 1.0
    return np.rint(direction * scale).astype(np.int64), scale


class ThresholdSteering:
    """Which gain is enough, and how many of those who have it are taken, from noisy counts.

    A point qualifies when its gain is at least the mean gain of the validation set, as far as that was
    released. The chance follows the noisy counts, so that every round adds about a batch; when everything
    that qualifies is taken and it is not enough, the bar is lowered.
    """

    def __init__(self, batch: int, rounds: int) -> None:
        self._batch, self._rounds = batch, rounds
        self._counts: list[float] = [0.0]
        self._chances: list[float] = []
        self._level = 1.0

    def next(self, count: float) -> float:
        """The chance of the coming round, after a noisy count of what has been sent so far.

        Call once a round, in order, with 0 before the first.
        """
        if self._chances:
            self._counts.append(count)
        past = len(self._chances)
        wanted = self._batch * (past + 1) - self._counts[-1]
        wanted = min(max(wanted, 0.0), 3.0 * self._batch)
        if not past:
            chance = _FIRST_CHANCE
        else:
            weights = _MEMORY ** np.arange(past - 1, -1, -1)
            sent = float(weights @ np.diff(self._counts))
            tried = float(weights @ np.array(self._chances))
            qualified = max(sent, 0.25 * self._batch) / tried
            chance = min(wanted / qualified, _FASTEST * max(self._chances[-1], _FIRST_CHANCE))
            if chance > 1.0:
                self._level -= _LEVEL_STEP * min(chance - 1.0, 1.0)
        chance = min(max(chance, 0.0), 1.0)
        self._chances.append(max(chance, 1e-4))
        return chance

    @property
    def level(self) -> float:
        """Which multiple of the validation set's mean gain is enough."""
        return self._level


def mean_gain(direction: Floats, kept: Floats, target: Floats, variance: float) -> float:
    """The validation set's mean gain along a direction that was made of its own noisy mean.

    The noise in both adds variance·Σ kept to their product on average, which is taken off.
    """
    return float(direction @ target) - variance * float(kept.sum())


def as_chance(chance: float) -> int:
    """A probability in steps of 1/65536, rounded."""
    return round(min(max(chance, 0.0), 1.0) * CERTAIN)
