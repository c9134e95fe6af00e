"""The greedy choice of a summary among the points that the curator received."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers

from ._features import Hashes

_AHEAD = 32
_SHORTLIST = 2048

_Singles = NDArray[np.float32]


@dataclass(slots=True, eq=False)
class _Candidates:
    """Points that may be taken, one entry each.

    ``attraction`` is the product with the target's mean; ``crowding`` is what a point loses by lying near
    those already taken, and half of its own norm.
    """

    features: _Singles
    attraction: _Singles
    crowding: _Singles
    free: NDArray[np.bool_]

    def gains(self, number: int) -> _Singles:
        """What each would add as the choice of this number."""
        return np.where(self.free, self.attraction - self.crowding / np.float32(number), -np.inf)

    def take_best(self, number: int) -> int:
        """Take the best one as the choice of this number."""
        best = int(np.argmax(self.gains(number)))
        self.free[best] = False
        self.crowding += self.features @ self.features[best]
        return best

    def part(self, places: Integers) -> _Candidates:
        """Some of them, to try choices on."""
        return _Candidates(
            self.features[places], self.attraction[places], self.crowding[places], self.free[places]
        )


def greedy_choice(hashes: Hashes, target: Floats, size: int, *, unit: float) -> Integers:
    """The places of ``size`` points, in the order in which greedy maximisation of J takes them.

    ``target`` is the validation set's mean in integer features. Gains follow each choice by the products with
    the new point's features, O(n·width), never from the whole summary. For speed a few choices are made from
    a shortlist and then checked against all points by one matrix product: the first that another point would
    have won, and what follows it, is taken back. So the result is greedy's own, up to rounding in ties.

    Notes
    -----
    Kim, Khanna and Koyejo, *Examples are not enough, learn to criticize!*, NIPS 2016.
    """
    features: _Singles = hashes.astype(np.float32) * np.float32(unit)
    points = _Candidates(
        features,
        features @ (target * unit).astype(np.float32),
        0.5 * np.einsum("ij,ij->i", features, features),
        np.ones(len(features), np.bool_),
    )
    chosen: list[int] = []
    size = min(size, len(features))
    plain = 0
    while len(chosen) < size:
        number = len(chosen) + 1
        if plain:
            plain -= 1
            chosen.append(points.take_best(number))
            continue
        listed = _best(points.gains(number), _SHORTLIST)
        ahead = min(_AHEAD, size - len(chosen), len(listed), int(points.free.sum()))
        shortlist = points.part(listed)
        picks = listed[[shortlist.take_best(number + after) for after in range(ahead)]]
        near = features @ features[picks].T
        right = _undisputed(near, points, picks, number)
        chosen.extend(picks[:right].tolist())
        points.free[picks[:right]] = False
        points.crowding += near[:, :right].sum(axis=1)
        # Where most were taken back, it is quicker to go one by one for a while.
        plain = _AHEAD * 4 if right < ahead // 4 else 0
    return np.array(chosen, np.int64)


def _best(gains: _Singles, most: int) -> Integers:
    """The places of the best gains, in their own order, so that ties go to the first place."""
    if len(gains) <= most:
        return np.arange(len(gains))
    return np.sort(np.argpartition(-gains, most)[:most]).astype(np.int64)


def _undisputed(near: _Singles, points: _Candidates, picks: Integers, number: int) -> int:
    """How many of the picks, from the first, no other point would have won; at least one."""
    left = replace(points, crowding=points.crowding.copy(), free=points.free.copy())
    for after, pick in enumerate(picks):
        gains = left.gains(number + after)
        # The same product in two shapes may differ in its last bits.
        if after and gains.max() > gains[pick] + 1e-7:
            return after
        left.free[pick] = False
        left.crowding += near[:, after]
    return len(picks)
