"""Public maps from raw columns to the space in which a kernel measures distances.

Both are made from the public records alone, so applying them to private records costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from papers.private_race.data import Floats

Points = NDArray[np.float32]
Map = Callable[[Floats], Points]

_RIDGE = 0.01
"""Added to the eigenvalues of the public correlation matrix: directions with less spread than that are noise
of the public sample.
"""


def unit_box(public: Floats, tail: float) -> Map:
    """Columns moved to [0, 1] between two public quantiles, and clipped there."""
    low, high = np.quantile(public, [tail, 1.0 - tail], axis=0)
    # A column that is constant among the public records keeps its unit.
    width = np.where(high > low, high - low, 1.0)
    return lambda X: np.clip((X - low) / width, 0.0, 1.0).astype(np.float32)


def whitened(public: Floats, tail: float) -> Map:
    """The box, turned and stretched so that the public records have no correlations and unit variances."""
    box = unit_box(public, tail)
    inside = box(public).astype(np.float64)
    centre = inside.mean(axis=0)
    spread = inside.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    standard = (inside - centre) / spread
    variances, directions = np.linalg.eigh(standard.T @ standard / len(standard))
    turn = directions / np.sqrt(np.maximum(variances, 0.0) + _RIDGE)
    return lambda X: (((box(X) - centre) / spread) @ turn).astype(np.float32)


SCALINGS: Final[dict[str, Callable[[Floats, float], Map]]] = {"box": unit_box, "whitened": whitened}

RANGES: Final[dict[str, tuple[float, float]]] = {"box": (0.0, 1.0), "whitened": (-100.0, 100.0)}
"""What the maps cannot leave, as bounds to declare; whitening stretches a bounded box by at most 1/√0.01."""
