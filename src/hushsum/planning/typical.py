"""Which mean kernel value to plan for where none is declared."""

from __future__ import annotations

import math

from hushsum.bases.features_theory import TYPICAL_PAIR_VARIANCE
from hushsum.bases.grid_weights import MAX_DIM
from hushsum.kernels.base import Kernel
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
    Kernels that hash have longer tails than the Gaussian of their bandwidth, and more; without bounds, or in
    many columns, 0.01 is taken for them.

    >>> import hushsum as hs
    >>> box = Bounds.of((0, 320_000), 1)
    >>> round(typical_density(hs.GaussianKernel(dim=1, bandwidth=5000.0), box), 3)
    0.088
    """
    dim: int | None = getattr(kernel, "dim", None)
    bandwidth: float | None = getattr(kernel, "bandwidth", None)
    if dim is None or bandwidth is None:
        return DEFAULT_DENSITY
    if dim > MAX_DIM:
        return DEFAULT_DENSITY if kernel.hashable else _MANY_COLUMNS
    if bounds is None:
        return DEFAULT_DENSITY
    narrowed = bandwidth / math.sqrt(getattr(kernel, "power", 1))
    sides = (high - low for low, high in zip(bounds.low, bounds.high, strict=True))
    spread = (side / _BOX_IN_DEVIATIONS for side in sides)
    normal = math.prod(narrowed / math.hypot(math.sqrt(2.0) * each, narrowed) for each in spread)
    return max(DEFAULT_DENSITY, normal)
