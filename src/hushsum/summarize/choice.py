"""Which of the points at hand match a target best: the non-private greedy choice, updated incrementally."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum.summarize.features import Floats, Hashes, Integers


def greedy_choice(hashes: Hashes, target: Floats, size: int, *, unit: float) -> Integers:
    """The places of ``size`` points, in the order in which greedy maximisation of J takes them.

    ``target`` is the validation set's mean in integer features. Gains follow each choice by one product with
    the new point's features, O(n·width), never from the whole summary.

    Notes
    -----
    Kim, Khanna and Koyejo, *Examples are not enough, learn to criticize!*, NIPS 2016.
    """
    features: NDArray[np.float32] = hashes.astype(np.float32) * np.float32(unit)
    attraction = features @ (target * unit).astype(np.float32)
    crowding = np.zeros(len(features), np.float32)
    norms = np.einsum("ij,ij->i", features, features)
    free = np.ones(len(features), np.bool_)
    chosen: list[int] = []
    for taken in range(min(size, len(features))):
        # Half of (n + 1)·ΔJ without what is equal for all points.
        gains = attraction - (crowding + 0.5 * norms) / np.float32(taken + 1)
        gains[~free] = -np.inf
        best = int(np.argmax(gains))
        chosen.append(best)
        free[best] = False
        crowding += features @ features[best]
    return np.array(chosen, np.int64)
