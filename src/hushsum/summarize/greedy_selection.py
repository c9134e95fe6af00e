"""Which of the points at hand match a target best: the non-private greedy choice, updated incrementally."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers
from hushsum.summarize.features import Hashes

_AHEAD = 32
_SHORTLIST = 2048

_Singles = NDArray[np.float32]


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
    attraction: _Singles = features @ (target * unit).astype(np.float32)
    # What a point loses by lying near those already taken, and half of its own norm.
    crowding: _Singles = 0.5 * np.einsum("ij,ij->i", features, features)
    free = np.ones(len(features), np.bool_)
    chosen: list[int] = []
    size = min(size, len(features))
    plain = 0
    while len(chosen) < size:
        taken = len(chosen)
        gains = np.where(free, attraction - crowding / np.float32(taken + 1), -np.inf)
        if plain:
            plain -= 1
            best = int(np.argmax(gains))
            chosen.append(best)
            free[best] = False
            crowding += features @ features[best]
            continue
        listed = _best(gains, _SHORTLIST)
        ahead = min(_AHEAD, size - taken, len(listed), int(free.sum()))
        tried = _from_shortlist(
            features[listed], attraction[listed], crowding[listed], free[listed], taken, ahead
        )
        picks = listed[tried]
        near = features @ features[picks].T
        right = _undisputed(near, attraction, crowding, free, picks, taken)
        chosen.extend(picks[:right].tolist())
        free[picks[:right]] = False
        crowding += near[:, :right].sum(axis=1)
        # Where most were taken back, it is quicker to go one by one for a while.
        plain = _AHEAD * 4 if right < ahead // 4 else 0
    return np.array(chosen, np.int64)


def _best(gains: _Singles, most: int) -> Integers:
    """The places of the best gains, in their own order, so that ties go to the first place."""
    if len(gains) <= most:
        return np.arange(len(gains))
    return np.sort(np.argpartition(-gains, most)[:most]).astype(np.int64)


def _from_shortlist(
    features: _Singles,
    attraction: _Singles,
    crowding: _Singles,
    free: NDArray[np.bool_],
    taken: int,
    ahead: int,
) -> list[int]:
    """Greedy's next choices, were there no other points than these."""
    picks: list[int] = []
    crowding, free = crowding.copy(), free.copy()
    for after in range(taken + 1, taken + 1 + ahead):
        best = int(np.argmax(np.where(free, attraction - crowding / np.float32(after), -np.inf)))
        picks.append(best)
        free[best] = False
        crowding += features @ features[best]
    return picks


def _undisputed(
    near: _Singles,
    attraction: _Singles,
    crowding: _Singles,
    free: NDArray[np.bool_],
    picks: Integers,
    taken: int,
) -> int:
    """How many of the picks, from the first, no other point would have won; at least one."""
    crowded, left = crowding.copy(), free.copy()
    for number, pick in enumerate(picks):
        gains = attraction - crowded / np.float32(taken + number + 1)
        # The same product in two shapes may differ in its last bits.
        if number and np.where(left, gains, -np.inf).max() > gains[pick] + 1e-7:
            return number
        left[pick] = False
        crowded += near[:, number]
    return len(picks)
