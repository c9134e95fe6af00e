r"""A running sum by noisy sums of intervals, for pure ε: a tree.

Step t publishes the noisy sum of one interval that ends at t: of b^l steps, b being the ``base``, where l is
how often b divides t, and at most ``levels`` − 1. (With base 2 this is a Fenwick tree, the binary tree of
Dwork, Naor, Pitassi & Rothblum 2010 and Chan, Shi & Song 2011.) The running sum at t is the sum of as many
intervals as t has digit sum in base b, all digits from the last level on counting as one number. With one
level every step publishes itself.

Discrete Laplace noise has the scale levels·Δ1/ε, so fewer levels are worth more than with Gaussian noise: at
365 steps base 16 with two levels has 0.63 of the deviation of fresh sums, base 2 with nine levels 1.3 times
as much. The base and the number of levels are chosen by the largest deviation over all steps.

Privacy
-------
A step j is in one interval of each level at most: those of one level do not overlap. One unit moves all
outputs together by at most ``levels`` times the sum of the absolute values of what its records add, wherever
they stand: it *appears*, *disappears* or appears *twice* (the sums add up); it is *replaced* inside a step,
or *moved* to another one, or both (it leaves and comes: twice the length, even where replacing inside a step
would move less); it is *removed* again by a record of opposite sign (a second record). Discrete Laplace
noise of scale Δ1/ε then gives ε, exactly; adaptively, since given equal earlier outputs the output of a step
differs by what the unit adds to it, and these differences add up to Δ1 at most on every path.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.privacy.over_time.stream_views import View

_LARGEST_BASE = 64


@dataclass(frozen=True, slots=True)
class TreeSums:
    """Sums of intervals over ``steps`` steps, of lengths 1, b, b², … in so many levels.

    >>> TreeSums(365, 2, 9).row(7, View()).tolist()
    [0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    >>> TreeSums.best(365, View())
    TreeSums(steps=365, base=16, levels=2)
    """

    name: ClassVar[str] = "interval sums"

    steps: int
    base: int
    levels: int

    def __post_init__(self) -> None:
        if any(type(each) is not int or each < 1 for each in (self.steps, self.base, self.levels)):
            raise ValueError("numbers")
        if self.base < 2 or self.levels > self.steps.bit_length() or self._whole > self.steps:
            raise ValueError("levels")

    @classmethod
    def best(cls, steps: int, view: View) -> TreeSums:
        """The base and levels whose largest deviation is the smallest."""
        return _best(steps, view)

    @property
    def _whole(self) -> int:
        """The length of the longest intervals."""
        return int(self.base ** (self.levels - 1))

    @property
    def unit(self) -> int:
        """What an increment is multiplied by in an output."""
        return 1

    @property
    def gain(self) -> int:
        """How often an increment is in the outputs and the state at most, for bounds on their size."""
        return 1

    @property
    def secret_tables(self) -> int:
        """How many tables of exact sums the mechanism keeps: the unfinished interval of each level but the
        first.
        """
        return self.levels - 1

    @property
    def public_tables(self) -> int:
        """How many tables reading keeps: the same with noise."""
        return self.levels - 1

    def level(self, step: int) -> int:
        """The level of the interval that ends at a step."""
        level = 0
        while level < self.levels - 1 and step % self.base ** (level + 1) == 0:
            level += 1
        return level

    def _intervals(self, step: int) -> list[int]:
        """The steps whose outputs make up the running sum."""
        ends: list[int] = []
        while step % self._whole:
            ends.append(step)
            step -= self.base ** self.level(step)
        return [*range(self._whole, step + 1, self._whole), *reversed(ends)]

    def row(self, step: int, view: View) -> Floats:
        """What the noise of each output so far weighs in the view at a step, shape (step,)."""
        if view.decay is not None:
            if self.levels > 1:
                raise ValueError("levels")
            weights: Floats = np.power(float(view.decay), np.arange(step - 1, -1, -1.0))
            return weights
        row = np.zeros(step)
        row[np.array(self._intervals(step), np.intp) - 1] = 1.0
        if view.window is not None and view.window < step:
            row[np.array(self._intervals(step - view.window), np.intp) - 1] -= 1.0
        return row

    def gains(self, view: View) -> Floats:
        """The variance of the view after each step, where the noise of an output has variance 1."""
        ends = np.arange(1, self.steps + 1)
        if view.decay is not None:
            rate = float(view.decay) ** 2
            return np.asarray((1.0 - rate**ends) / (1.0 - rate), np.float64)
        window = self.steps if view.window is None else view.window
        return self._lengths(ends, np.maximum(ends - window, 0)).astype(np.float64)

    def _lengths(self, ends: Integers, starts: Integers) -> Integers:
        """How many intervals are in one of two running sums and not in the other.

        Of the first digit that differs, the smaller number of intervals is in both; of higher digits all, of
        lower ones none.
        """
        total = np.zeros_like(ends)
        equal = np.ones(len(ends), bool)
        for level in range(self.levels - 1, -1, -1):
            size = self.base**level
            one, other = ends // size, starts // size
            if level < self.levels - 1:
                one, other = one % self.base, other % self.base
            total += np.where(equal, np.abs(one - other), one + other)
            equal &= one == other
        return total

    def advance(self, secret: Integers, increment: Integers, step: int) -> Integers:
        """The exact sum of the interval that ends at this step; finished sums are forgotten."""
        level = self.level(step)
        secret += increment
        output: Integers = secret[level - 1].copy() if level else increment.copy()
        secret[:level] = 0
        return output

    def read(self, public: Floats, output: Integers, step: int) -> Floats:
        """By how much the running sum grows with an output."""
        level = self.level(step)
        growth: Floats = output.astype(np.float64)
        if level:
            growth -= public[level - 1]
        public += growth
        public[:level] = 0.0
        return growth

    def as_json(self) -> dict[str, Any]:
        """The intervals for a file's header."""
        return {"name": self.name, "steps": self.steps, "base": self.base, "levels": self.levels}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TreeSums:
        """The intervals of a file's header; ValueError if there are none like them."""
        if set(data) != {"name", "steps", "base", "levels"}:
            raise ValueError("intervals")
        return cls(data["steps"], data["base"], data["levels"])


@lru_cache(maxsize=64)
def _best(steps: int, view: View) -> TreeSums:
    if view.decay is not None:
        # Each output's weight decays, so sums of intervals are of no use.
        return TreeSums(steps, 2, 1)
    found = [TreeSums(steps, 2, 1)]
    for base in range(2, min(_LARGEST_BASE, steps) + 1):
        levels = 2
        while base ** (levels - 1) <= steps:
            found.append(TreeSums(steps, base, levels))
            levels += 1
    return min(found, key=lambda each: each.levels**2 * float(each.gains(view).max()))
