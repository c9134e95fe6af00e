"""A table and a count in one release: the table's δ averaged over the loss of the count."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from hushsum._types import Floats
from hushsum.privacy.accounting.analytic import gaussian_delta

COUNT_NODES = 2**11


class Divergence(Protocol):
    """An upper bound on δ at every real ε, and about how many deviations apart the two laws are."""

    separation: float

    def delta(self, epsilon: Floats) -> Floats:
        """δ(ε) for each ε, of any sign."""


class ShiftedCount(Divergence, Protocol):
    """The same of one integer with discrete Gaussian noise of this variance, moved by ``shift``."""

    shift: int
    variance: float


def mixed_delta(epsilon: float, table: Divergence, count: ShiftedCount) -> float:
    """The table's δ averaged over the loss of the count, by the piecewise linear H that
    ``gaussian.discrete_gaussian_delta`` describes.

    The nodes decide how tight the bound is, not whether it holds.
    """
    deviation = math.sqrt(count.variance)
    separation = math.hypot(table.separation, count.separation)
    # Beyond `highest` lies a share e^−20 of the δ to be expected, below `lowest` far less.
    expected = max(gaussian_delta(epsilon, separation), 1e-290)
    highest = math.ceil(deviation * math.sqrt(2 * math.log(1 / expected) + 40)) + 1
    lowest = -math.ceil(8 * deviation) - 1
    stride = -(-(highest - lowest) // COUNT_NODES)
    steps = np.arange(-(-(highest - lowest) // stride) + 1, dtype=np.float64)
    losses = (lowest + count.shift / 2 + steps * stride) * (count.shift / count.variance)
    # δ falls with ε, so a lower ε covers the rounding of its arguments
    margin = 8 * 2.0**-53 * np.abs(losses)
    heights = table.delta(epsilon - losses - margin - 8 * 2.0**-53 * epsilon)
    gap = stride * count.shift / count.variance
    slopes = np.diff(heights, append=1.0)
    slopes[:-1] /= -math.expm1(-gap)
    before = np.append(0.0, slopes[:-1]) * math.exp(-gap)
    rounding = 2.0**-50 * (np.abs(slopes) + (1 + gap) * np.abs(before))
    coefficients = np.maximum(slopes - before + rounding, 0.0)
    mixed = heights[0] + np.dot(coefficients, count.delta(losses - margin))
    return min(1.0, float(mixed) * (1 + 1e-12))
