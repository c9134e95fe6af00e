"""From mean kernel values to probability densities."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.models.mode_search import spread_points
from hushsum.releases.base import ReleasedFunction

Floats = NDArray[np.float64]
Box = list[tuple[float, float]]

POINTS = 4096


def normalising_constant(kernel: Kernel) -> float | None:
    """The integral of the kernel over all space; None where it has none, as hash kernels do.

    >>> from hushsum.kernels.gaussian import GaussianKernel
    >>> round(normalising_constant(GaussianKernel(dim=1, bandwidth=1.0)), 4)
    2.5066
    """
    integral = kernel.integral() if isinstance(kernel, ColumnKernel) else math.inf
    return integral if math.isfinite(integral) else None


def integral_over_box(function: ReleasedFunction, box: Box) -> float:
    """The integral of the mean kernel value over the box, negative answers taken as 0.

    By the mean over a fixed, public set of Sobol points: post-processing of what was released.
    """
    volume = math.prod(high - low for low, high in box)
    low, high = np.array(box).T
    values = np.maximum(function(spread_points(low, high, POINTS, seed=0)), 0.0)
    return max(volume * float(values.mean()), float(np.finfo(np.float64).tiny))
