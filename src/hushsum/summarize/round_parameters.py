"""The parameters of the next round, computed from public numbers alone: direction, threshold and chance."""

from __future__ import annotations

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.summarize.messages import CERTAIN

_LARGEST = 1 << 28
_FIRST_CHANCE = 1.0 / 128.0
_FASTEST = 2.0
_MOST_BATCHES = 12.0


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
    """How many of those who qualify are taken, from noisy counts, so that the rounds end near ``reach``.

    In the first round everyone qualifies: its points show what the owners hold on the whole. From the second
    on the number that qualify is estimated as what was sent over the chances it had. The chance spreads what
    is missing over the rounds that are left, and grows slowly, so that one noisy count never empties a pool.
    When everything that qualifies is taken and it is not enough, the bar is lowered.
    """

    def __init__(self, reach: int, rounds: int) -> None:
        self._reach, self._rounds = reach, rounds
        self._chances: list[float] = []
        self._first = 0.0
        self.lowered = 0.0

    def next(self, count: float, deviation: float) -> float:
        """The chance of the coming round, after a noisy count of what has been sent so far.

        Call once per round, in order, with 0 before the first.
        """
        past = len(self._chances)
        chance = _FIRST_CHANCE
        if past == 1:
            self._first = max(count, 0.0)
            chance *= _FASTEST
        elif past:
            sent = max(count - self._first, 2.0 * deviation, 1.0)
            qualified = sent / max(sum(self._chances[1:]), _FIRST_CHANCE)
            needed = max(self._reach - count, 0.0) / (self._rounds - past)
            chance = min(needed / qualified, _FASTEST * max(self._chances[-1], _FIRST_CHANCE))
            if chance > 1.0:
                self.lowered += min(chance - 1.0, 1.0)
            # Were everyone to qualify at once, no more than this many batches would come.
            everyone = max(self._first, 2.0 * deviation, 1.0) / _FIRST_CHANCE
            chance = min(chance, _MOST_BATCHES * needed / everyone) if self.lowered == 0.0 else chance
        chance = min(max(chance, 0.0), 1.0)
        self._chances.append(chance)
        return chance


def mean_gain(direction: Floats, kept: Floats, target: Floats, variance: float) -> float:
    """The validation set's mean gain along a shrunken direction that was made of its own noisy mean.

    The noise in both adds to their product. By Stein's identity that is the variance times the divergence of
    the shrinking, which for pairs is 1 for every coordinate that is kept at all; it is taken off.
    """
    return float(direction @ target) - variance * int((kept > 0.0).sum())


def as_chance(chance: float) -> int:
    """A probability in steps of 1/65536, rounded."""
    return round(min(max(chance, 0.0), 1.0) * CERTAIN)
