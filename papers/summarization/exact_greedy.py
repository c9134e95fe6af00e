"""Greedy selection with the exact kernel in place of random features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from papers.summarization.data import Floats, Labels

_AHEAD = 32
_SHORTLIST = 2048
_ROUNDING = 1e-7

_Singles = NDArray[np.float32]


class _Kernel:
    """exp(−‖x − y‖²/(2h²)) between all points and some."""

    def __init__(self, points: Floats, bandwidth: float) -> None:
        self.points = points.astype(np.float32)
        self.squares = (self.points**2).sum(axis=1)
        self.scale = np.float32(-0.5 / bandwidth**2)

    def with_others(self, others: _Singles, among: slice | Labels = slice(None)) -> _Singles:
        """Shape (points, others)."""
        products = self.points[among] @ others.T
        distances = self.squares[among][:, None] + (others**2).sum(axis=1)[None] - 2.0 * products
        values: _Singles = np.exp(np.maximum(distances, 0.0) * self.scale)
        return values


def exact_greedy(points: Floats, validation: Floats, size: int, bandwidth: float) -> Labels:
    """The places of ``size`` points in the order in which greedy maximisation of J takes them (Kim et al.).

    A few choices at a time are made among the points of the largest gains, and then checked against all
    points: the first one that another point would have won, and what follows it, is taken back.
    """
    kernel = _Kernel(points, bandwidth)
    attraction = np.zeros(len(points), np.float64)
    for part in np.array_split(validation.astype(np.float32), -(-len(validation) // 64)):
        attraction += kernel.with_others(part).sum(axis=1, dtype=np.float64) / len(validation)
    crowding = np.full(len(points), 0.5)
    free = np.ones(len(points), np.bool_)
    chosen: list[int] = []
    size = min(size, len(points))
    while len(chosen) < size:
        taken = len(chosen)
        gains = np.where(free, attraction - crowding / (taken + 1), -np.inf)
        listed = np.argsort(-gains)[:_SHORTLIST]
        ahead = min(_AHEAD, size - taken)
        local, left = crowding[listed], free[listed]
        picks: list[int] = []
        for after in range(taken + 1, taken + 1 + ahead):
            best = int(np.argmax(np.where(left, attraction[listed] - local / after, -np.inf)))
            left[best] = False
            picks.append(int(listed[best]))
            local = local + kernel.with_others(kernel.points[picks[-1:]], listed)[:, 0]
        near = kernel.with_others(kernel.points[picks])
        for number, pick in enumerate(picks):
            gains = attraction - crowding / (taken + number + 1)
            if number and np.where(free, gains, -np.inf).max() > gains[pick] + _ROUNDING:
                break
            free[pick] = False
            chosen.append(pick)
            crowding += near[:, number]
    return np.array(chosen, np.int64)
