"""The Manhattan kernel: the p-stable hash with Cauchy projections."""

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
from hushsum.kernels.projections import Projections
from hushsum.kernels.registry import register
from hushsum.records.native_batch import distances


@register
@dataclass(frozen=True, slots=True)
class ManhattanKernel(ProjectionKernel, ProfileKernel):
    """Similarity of points by the sum of absolute differences; for columns that differ independently.

    Like the Euclidean kernel it falls off as 1/r and is not a probability density.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The scale of the hash, w, in the units of the data.
    power : int, default 1
        Hashes concatenated in a row; the similarity is taken to that power.

    Notes
    -----
    The hash is ``floor((a·x + b)/w)``, a standard Cauchy (a ratio of normals), b uniform in [0, w). Two
    points at distance r collide with probability ``2·atan(t)/π − ln(1 + t²)/(π·t)``, t = w/r (Datar et
    al. 2004).

    Examples
    --------
    >>> ManhattanKernel(dim=2, bandwidth=2.0).similarity([[0.0, 0.0]], [[0.0, 0.0], [1.0, -1.0]]).round(3)
    array([[1.   , 0.279]])
    """

    name: ClassVar[str] = "manhattan"
    positive_definite: ClassVar[bool] = True

    dim: int
    bandwidth: float
    power: int = 1

    def __post_init__(self) -> None:
        check_parameters(self)

    def projections(self) -> Projections:
        """Cauchy projections, scaled by the bandwidth."""
        return Projections(
            family=self.name,
            dim=self.dim,
            count=self.power,
            scale=1.0 / self.bandwidth,
            signs=False,
            structured=False,
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
        """Exponentials: the kernel is a mixture of them."""
        return fitted_profiles(self, spacings=spacings, diameter=sum(sides), gaussian=False)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries, "cityblock")
        return manhattan_collision(distance / self.bandwidth) ** self.power


def manhattan_collision(ratio: Floats) -> Floats:
    """Collision probability at distance / bandwidth = ``ratio``."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = 1.0 / ratio
        far = (2.0 * np.arctan(t) - np.log1p(t * t) / t) / np.pi
    result: Floats = np.where(ratio > 1e-12, far, 1.0)
    return result
