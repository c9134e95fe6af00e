"""Kernels as sums of products over columns, which is how a grid reads them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushsum.kernels.base import Batch, Floats, Kernel

_RATIO = 1.6
_TAIL = 1e-3
_FINEST = 0.25
_GAUSSIAN_REACH = 6.5
"""Bandwidths beyond which a Gaussian is taken as 0: it is below 1e-9 there."""

_NARROWEST = 0.09
"""The least variance of a narrowed Gaussian, in squared spacings."""


@dataclass(frozen=True, slots=True)
class Profile:
    """``height`` times a product over columns: of ``exp(−x²/2·scale²)``, or of ``exp(−|x|/scale)``."""

    height: float
    scale: float
    gaussian: bool

    def factor(self, away: Floats, spacing: float) -> Floats:
        """What a node ``away`` from the query counts along one column, so that a record, spread over its
        nodes as a quadratic B-spline, counts as the profile says.

        A spread record has a variance of a quarter of the squared spacing. A Gaussian is narrowed by that, as
        far as the spacing allows, and keeps its integral. Other profiles are sharpened by second differences.
        """
        if self.gaussian:
            variance = max(self.scale**2 - spacing**2 / 4.0, _NARROWEST * spacing**2)
            result: Floats = np.exp(-0.5 * away**2 / variance) * (self.scale / math.sqrt(variance))
            return result
        distance = np.abs(away)
        beside = np.exp(-np.abs(away - spacing) / self.scale) + np.exp(-np.abs(away + spacing) / self.scale)
        sharp: Floats = 1.25 * np.exp(-distance / self.scale) - beside / 8.0
        return sharp

    def reach(self, spacing: float) -> float:
        """How far from a query nodes count, in spacings; infinite for a profile with a long tail."""
        if not self.gaussian:
            return math.inf
        variance = max(self.scale**2 - spacing**2 / 4.0, _NARROWEST * spacing**2)
        return _GAUSSIAN_REACH * math.sqrt(variance) / spacing


def profiles_of(kernel: Kernel, *, spacing: float, diameter: float) -> tuple[Profile, ...]:
    """The kernel as a sum of profiles, fitted at distances from 0 to the diameter of the box.

    A Gaussian kernel is one profile. The Euclidean kernel is a mixture of Gaussians, since it is the mean of
    a triangle over normal projections: ``k(r) = ∫ sinc²(ω/2)/π·exp(−ω²r²/2w²) dω``, ω > 0; the Manhattan
    kernel is one of exponentials, over Cauchy projections. Their powers are such mixtures too. So positive
    heights on a geometric ladder of scales fit them to a thousandth, but for what is finer than the grid.

    Notes
    -----
    Schoenberg 1938, *Metric spaces and completely monotone functions*.
    """
    bandwidth: float = getattr(kernel, "bandwidth")  # noqa: B009  (kernels that a grid reads have one)
    power: int = getattr(kernel, "power", 1)
    if kernel.name == "gaussian":
        return (Profile(1.0, bandwidth / math.sqrt(power), True),)
    from scipy.optimize import lsq_linear

    gaussian = kernel.name == "euclidean"
    low = min(_FINEST * spacing, bandwidth / 4.0)
    high = max(4.0 * diameter, 8.0 * low)
    scales = low * _RATIO ** np.arange(math.ceil(math.log(high / low, _RATIO)) + 1)
    distances = np.concatenate([[0.0], np.geomspace(low / 4.0, max(diameter, low), 400)])
    values = _along(kernel, distances)
    ratio = distances[:, None] / scales
    shapes = np.exp(-0.5 * ratio**2) if gaussian else np.exp(-ratio)
    weights = 1.0 / np.maximum(values, _TAIL)
    fit = lsq_linear(shapes * weights[:, None], values * weights, bounds=(0.0, np.inf), method="bvls")
    heights = np.asarray(fit.x)
    kept = heights > 1e-12
    return tuple(
        Profile(float(height), float(scale), gaussian)
        for height, scale in zip(heights[kept], scales[kept], strict=True)
    )


def _along(kernel: Kernel, distances: Floats) -> Floats:
    """The kernel at distances along the first column."""
    dim: int = getattr(kernel, "dim")  # noqa: B009
    rows = np.zeros((len(distances), dim), np.float32)
    rows[:, 0] = distances
    origin = Batch((np.zeros((1, dim), np.float32),), 1)
    values: Floats = kernel.prepared_similarity(Batch((rows,), len(rows)), origin)[:, 0]
    return values
