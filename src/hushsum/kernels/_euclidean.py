"""Kernels of floored random projections, Euclidean and Manhattan, and the slabs that their hashes make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels._base import Batch, Kernel, Profile, ProfileKernel, ProjectionKernel, fitted_profiles
from hushsum.kernels._hashers import Projections, check_projection
from hushsum.kernels._parameter_checks import check_parameters
from hushsum.kernels._registry import register
from hushsum.records import distances


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


@dataclass(frozen=True, slots=True, eq=False)
class HashPartitions:
    """Row r puts x into the cell ``floor(weights[r]·x + offsets[r])``, one number for each of ``power``
    hashes.

    ``weights`` has shape (rows, power, dim), ``offsets`` (rows, power). The hash itself works in single
    precision, so a point within rounding of a face may be counted on its other side.
    """

    weights: Floats
    offsets: Floats

    @classmethod
    def of(cls, kernel: Kernel, *, rows: int, seed: int) -> HashPartitions:
        """The slabs of a kernel's first hash rows.

        Raises
        ------
        UsageError
            if the kernel's hashes are not floors of dense projections.
        """
        projections = kernel.projections() if isinstance(kernel, ProjectionKernel) else None
        if projections is None or projections.signs or projections.structured:
            raise UsageError(
                "kernel",
                "must have hash rows that are slabs of dense projections",
                got=f"the {kernel.name} kernel",
                remedy="use the euclidean or manhattan kernel",
            )
        weights, offsets = projections.numbers(seed=seed, rows=rows)
        return cls(weights.astype(np.float64), offsets.astype(np.float64))

    def positions(self, points: Floats) -> Floats:
        """Where points lie between the faces: shape (n, rows, power); the floor is the slab."""
        return np.tensordot(points, self.weights, axes=(1, 2)) + self.offsets
