"""ACE: arrays of locality-sensitive count estimators, without and with privacy.

Luo and Shrivastava, *Arrays of (locality-sensitive) count estimators: anomaly detection on the edge*, WWW
2018: L arrays of 2^K counters indexed by K sign bits; the score of a point is the mean of its L counters. It
is the sketch with the angular kernel, so the private variant is a release of such a tally.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from papers.private_race.data import Floats
from papers.private_race.scaling import Points

import hushsum as hs

BITS: Final = 15
ARRAYS: Final = 50
"""K and L as published."""


def ace_scores(X: Points, Q: Points, *, seed: int, bits: int = BITS, arrays: int = ARRAYS) -> Floats:
    """Mean counts at the queries, shape (n_queries,); a low one tells an anomaly. Not private."""
    rng = np.random.default_rng(seed)
    places = 1 << np.arange(bits)
    total = np.zeros(len(Q))
    for _ in range(arrays):
        directions = rng.normal(size=(X.shape[1], bits))
        counts = np.bincount((X @ directions > 0.0) @ places, minlength=1 << bits)
        total += counts[(Q @ directions > 0.0) @ places]
    return total / arrays


def ace_tally(X: Points, *, seed: int, bits: int = BITS, arrays: int = ARRAYS) -> hs.Tally:
    """The same counters as a tally, to be released with exact integer noise."""
    kernel = hs.AngularKernel(dim=X.shape[1], bits=bits)
    return hs.race(kernel, rows=arrays, width=1 << bits, seed=seed).add(X)
