"""Which mean kernel value to plan for where none is declared."""

from __future__ import annotations

import math

import numpy as np

from hushsum.bases.features_theory import TYPICAL_PAIR_VARIANCE
from hushsum.bases.grid_weights import MAX_DIM
from hushsum.kernels.base import ColumnKernel, HashableKernel, Kernel
from hushsum.records.bounds import Bounds

DEFAULT_DENSITY = 0.01
_BOX_IN_DEVIATIONS = 8.0
_MANY_COLUMNS = 2.0 * TYPICAL_PAIR_VARIANCE


def typical_density(kernel: Kernel, bounds: Bounds | None) -> float:
    """A guess at the mean kernel value of queries that are like the records, from public quantities alone.

    In a few columns with bounds, that of normal records whose standard deviation is an eighth of the box, and
    at least 0.01, since records keep together in clusters. It gives 0.09 for salaries in a box of 64
    bandwidths, which have 0.09 to 0.13, and 0.01 for skin tones, which have 0.012. In many columns 0.04, as
    random features assume: a bandwidth that sees any record there sees many; RNA has 0.06, forests 0.035.
    For the Euclidean kernel, a mixture of Gaussians, it gives 0.13, 0.053 and 0.035 for one, two and three
    columns of skin tones, which have 0.09, 0.054 and 0.037; the Manhattan kernel is taken to be like it.
    Without bounds, or in many columns, 0.01 is taken for kernels that hash.

    >>> import hushsum as hs
    >>> box = Bounds.of((0, 320_000), 1)
    >>> round(typical_density(hs.GaussianKernel(dim=1, bandwidth=5000.0), box), 3)
    0.088
    """
    hashable = isinstance(kernel, HashableKernel)
    if not isinstance(kernel, ColumnKernel):
        return DEFAULT_DENSITY
    if kernel.dim > MAX_DIM:
        return DEFAULT_DENSITY if hashable else _MANY_COLUMNS
    if bounds is None:
        return DEFAULT_DENSITY
    sides = (high - low for low, high in zip(bounds.low, bounds.high, strict=True))
    spread = [side / _BOX_IN_DEVIATIONS for side in sides]
    if hashable:
        return max(DEFAULT_DENSITY, _collisions(kernel.width, spread))
    width = kernel.width
    normal = math.prod(width / math.hypot(math.sqrt(2.0) * each, width) for each in spread)
    return max(DEFAULT_DENSITY, normal)


def _collisions(width: float, spread: list[float]) -> float:
    """The mean of the Euclidean kernel between two normal records: of the Gaussians it is a mixture of."""
    frequency = np.geomspace(1e-4, 1e4, 2000)
    density = np.sinc(frequency / (2.0 * math.pi)) ** 2 / math.pi
    for each in spread:
        density = density / np.sqrt(1.0 + 2.0 * (frequency * each / width) ** 2)
    return float(((density[1:] + density[:-1]) / 2.0 * np.diff(frequency)).sum())
