"""The Euclidean kernel: collision probability of the p-stable hash."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushsum._types import Floats
from hushsum.kernels.base import Batch, ProfileKernel, ProjectionKernel
from hushsum.kernels.parameters import check_parameters
from hushsum.kernels.product_profiles import Profile, fitted_profiles
from hushsum.kernels.projections import Projections, check_projection
from hushsum.kernels.registry import register
from hushsum.records.native_batch import distances


@register
@dataclass(frozen=True, slots=True)
class EuclideanKernel(ProjectionKernel, ProfileKernel):
    """Similarity of points by Euclidean distance; falls to 0.37 at one bandwidth, to 0.04 at ten.

    It falls off as 1/r, so it has no finite integral: it gives kernel sums, not a probability density.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The scale of the hash, w, in the units of the data.
    power : int, default 1
        Hashes concatenated in a row; the similarity is taken to that power, and falls off faster.
    projection : {"dense", "structured"}
        Structured projections are faster from about 512 columns on.

    Notes
    -----
    The hash is ``floor((a·x + b)/w)``, a standard normal, b uniform in [0, w). Two points at distance r
    collide with probability ``erf(t/√2) − √(2/π)·(1 − exp(−t²/2))/t``, t = w/r (Datar, Immorlica, Indyk,
    Mirrokni 2004).

    Examples
    --------
    >>> EuclideanKernel(dim=1, bandwidth=5.0).similarity([[0.0]], [[0.0], [5.0], [50.0]]).round(3)
    array([[1.   , 0.369, 0.04 ]])
    """

    name: ClassVar[str] = "euclidean"
    positive_definite: ClassVar[bool] = True

    dim: int
    bandwidth: float
    power: int = 1
    projection: str = "dense"

    def __post_init__(self) -> None:
        check_parameters(self)
        check_projection(self.projection, self.dim, self.power)

    def projections(self) -> Projections:
        """Normal projections, scaled by the bandwidth."""
        return Projections(
            family=self.name,
            dim=self.dim,
            count=self.power,
            scale=1.0 / self.bandwidth,
            signs=False,
            structured=self.projection == "structured",
        )

    @property
    def width(self) -> float:
        """bandwidth/power: the slope at the peak is as many times steeper."""
        return self.bandwidth / self.power

    @property
    def smooth(self) -> bool:
        """No: it has a corner at its peak."""
        return False

    def integral(self) -> float:
        """Infinity for a power of at most ``dim``, and not known in closed form beyond."""
        return math.inf

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Gaussians: the kernel is a mixture of them."""
        return fitted_profiles(self, spacings=spacings, diameter=math.hypot(*sides), gaussian=True)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries)
        return euclidean_collision(distance / self.bandwidth) ** self.power


def euclidean_collision(ratio: Floats) -> Floats:
    """Collision probability at distance / bandwidth = ``ratio``."""
    from scipy.special import erf

    with np.errstate(divide="ignore", invalid="ignore"):
        t = 1.0 / ratio
        far = erf(t / np.sqrt(2.0)) + np.sqrt(2.0 / np.pi) * np.expm1(-0.5 * t * t) / t
    result: Floats = np.where(ratio > 1e-8, far, 1.0)
    return result
