"""Kernels as sums of products over columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.kernels.base import Batch, ColumnKernel

_RATIO = 1.6
_TAIL = 1e-3
_FINEST = 0.25


@dataclass(frozen=True, slots=True)
class Profile:
    """``height`` times a product over columns, of ``exp(−x²/2·scale²)`` in those that are ``gaussian``, and
    of ``exp(−|x|/scale)`` in the others.
    """

    height: float
    scales: tuple[float, ...]
    gaussian: tuple[bool, ...]

    @classmethod
    def of_columns(cls, dim: int, *, height: float = 1.0, scale: float, gaussian: bool) -> Profile:
        """The same scale and shape in every column."""
        return cls(height, (scale,) * dim, (gaussian,) * dim)


def fitted_profiles(
    kernel: ColumnKernel, *, spacings: Sequence[float], diameter: float, gaussian: bool
) -> tuple[Profile, ...]:
    """A kernel as a sum of profiles, fitted at distances from 0 to the diameter of a box.

    ``gaussian`` states of which profiles it is a mixture: of Gaussians where it is a function of the
    Euclidean distance, of exponentials where it is one of the sum of absolute differences.

    The Euclidean kernel is the mean of a triangle over normal projections, ``k(r) = ∫ sinc²(ω/2)/π·exp(−ω²r²/
    2w²) dω``, ω > 0; the Manhattan kernel the same over Cauchy projections; a Matérn kernel is a Gaussian
    whose variance is random. Their powers are such mixtures too. So positive heights on a geometric ladder of
    scales fit them to a thousandth, but for what is finer than the grid.

    Notes
    -----
    Schoenberg 1938, *Metric spaces and completely monotone functions*.
    """
    from scipy.optimize import lsq_linear

    low = min(_FINEST * max(spacings), kernel.width / 4.0)
    high = max(4.0 * diameter, 8.0 * low)
    scales = low * _RATIO ** np.arange(math.ceil(math.log(high / low, _RATIO)) + 1)
    distances = np.concatenate([[0.0], np.geomspace(low / 4.0, max(diameter, low), 400)])
    values = along_first_column(kernel, distances)
    ratio = distances[:, None] / scales
    shapes = np.exp(-0.5 * ratio**2) if gaussian else np.exp(-ratio)
    weights = 1.0 / np.maximum(values, _TAIL)
    fit = lsq_linear(shapes * weights[:, None], values * weights, bounds=(0.0, np.inf), method="bvls")
    heights = np.asarray(fit.x)
    kept = heights > 1e-12
    return tuple(
        Profile.of_columns(kernel.dim, height=float(height), scale=float(scale), gaussian=gaussian)
        for height, scale in zip(heights[kept], scales[kept], strict=True)
    )


def along_first_column(kernel: ColumnKernel, distances: Floats) -> Floats:
    """The kernel of two points that differ by these distances in the first column alone."""
    rows = np.zeros((len(distances), kernel.dim), np.float32)
    rows[:, 0] = distances
    origin = Batch((np.zeros((1, kernel.dim), np.float32),), 1)
    values: Floats = kernel.prepared_similarity(Batch((rows,), len(rows)), origin)[:, 0]
    return values
