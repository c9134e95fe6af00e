"""Kernels with a known spectral measure: Gaussian, Laplacian and Matérn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError, shown
from hushsum.kernels._base import (
    Batch,
    ColumnProfile,
    GaussianProfileKernel,
    Profile,
    ProfileKernel,
    SpectralKernel,
    fitted_profiles,
)
from hushsum.kernels._parameter_checks import check_parameters
from hushsum.kernels._public_randomness import (
    ONE_TURN,
    cauchy_directions,
    in_turns,
    normal_directions,
    normal_lengths,
)
from hushsum.kernels._registry import register
from hushsum.records import distances


@register
@dataclass(frozen=True, slots=True)
class GaussianKernel(SpectralKernel, GaussianProfileKernel):
    """``exp(−‖x − q‖²/(2·bandwidth²))``, which has a finite integral and so gives probability densities.

    It is not the collision probability of the hash families here: hash rows refuse it.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The standard deviation, in the units of the data.
    power : int, default 1
        The similarity to that power, which narrows the bandwidth by √power.

    Examples
    --------
    >>> GaussianKernel(dim=1, bandwidth=2.0).similarity([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    name: ClassVar[str] = "gaussian"
    positive_definite: ClassVar[bool] = True
    rotation_invariant: ClassVar[bool] = True

    dim: int
    bandwidth: float
    power: int = 1

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def width(self) -> float:
        """The standard deviation: bandwidth/√power."""
        return self.bandwidth / math.sqrt(self.power)

    def gaussian_width(self) -> float:
        """The standard deviation."""
        return self.width

    @property
    def smooth(self) -> bool:
        """Yes: it has all derivatives."""
        return True

    def integral(self) -> float:
        """(2π·width²)^(dim/2)."""
        return float((2.0 * math.pi * self.bandwidth**2 / self.power) ** (self.dim / 2.0))

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """One: it is a product over columns."""
        return (Profile.of_columns(self.dim, scale=self.width, gaussian=True),)

    def column_profile(self) -> ColumnProfile:
        """A Gaussian in each column."""
        rate = 0.5 * self.power / self.bandwidth**2
        return lambda difference: np.exp(-rate * difference * difference)

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Normal numbers of standard deviation √power/bandwidth, in turns."""
        directions = normal_directions("gaussian/frequencies", seed, rows, self.dim, orthogonal=orthogonal)
        return in_turns(directions, math.sqrt(self.power) / self.bandwidth)

    def frequency_lengths(self, *, rows: int, seed: int, size: int) -> NDArray[np.float64] | None:
        """Lengths of normal vectors of standard deviation √power/bandwidth, in turns."""
        lengths = normal_lengths("gaussian/lengths", seed, rows, size)
        return lengths * (math.sqrt(self.power) / self.bandwidth / ONE_TURN)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        squared = distances(records, queries, "sqeuclidean")
        result: Floats = np.exp(-0.5 * self.power * squared / self.bandwidth**2)
        return result


@register
@dataclass(frozen=True, slots=True)
class LaplacianKernel(SpectralKernel, ProfileKernel):
    """``exp(−‖x − q‖₁/bandwidth)``: sharper than the Gaussian at its peak, with heavier tails.

    It is not the collision probability of the hash families here: hash rows refuse it.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The distance, as a sum of absolute differences, at which the similarity has fallen to 1/e.
    power : int, default 1
        The similarity to that power, which divides the bandwidth.

    Examples
    --------
    >>> LaplacianKernel(dim=2, bandwidth=2.0).similarity([[0.0, 0.0]], [[0.0, 0.0], [1.0, -1.0]]).round(4)
    array([[1.    , 0.3679]])
    """

    name: ClassVar[str] = "laplacian"
    positive_definite: ClassVar[bool] = True
    rotation_invariant: ClassVar[bool] = False

    dim: int
    bandwidth: float
    power: int = 1

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def width(self) -> float:
        """bandwidth/power: the power divides the distance at which the kernel has fallen to 1/e."""
        return self.bandwidth / self.power

    def integral(self) -> float:
        """(2·width)^dim."""
        return float((2.0 * self.bandwidth / self.power) ** self.dim)

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """One: it is a product over columns."""
        return (Profile.of_columns(self.dim, scale=self.width, gaussian=False),)

    def column_profile(self) -> ColumnProfile:
        """An exponential in each column."""
        slope = self.power / self.bandwidth
        return lambda difference: np.exp(-slope * np.abs(difference))

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Independent Cauchy numbers: the kernel is a product over columns. They are never orthogonal."""
        directions = cauchy_directions("laplacian/frequencies", seed, rows, self.dim)
        return in_turns(directions, self.power / self.bandwidth)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries, "cityblock")
        result: Floats = np.exp(-self.power * distance / self.bandwidth)
        return result


SMOOTHNESS = (0.5, 1.5, 2.5)


@register
@dataclass(frozen=True, slots=True)
class MaternKernel(SpectralKernel, ProfileKernel):
    """The Matérn kernel of smoothness ν, in r = ‖x − q‖/bandwidth:

    ``exp(−r)`` for ν = 1/2, ``(1 + √3·r)·exp(−√3·r)`` for 3/2 and ``(1 + √5·r + 5r²/3)·exp(−√5·r)`` for 5/2.
    Paths of a Gaussian process with this covariance have ⌈ν⌉ − 1 derivatives. It is not the collision
    probability of the hash families here: hash rows refuse it.

    Parameters
    ----------
    dim : int
        Number of columns.
    bandwidth : float
        The length scale, in the units of the data.
    smoothness : {0.5, 1.5, 2.5}
        ν.

    Examples
    --------
    >>> MaternKernel(dim=1, bandwidth=2.0).similarity([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.4834]])

    Notes
    -----
    Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, equation 4.16. The spectral
    measure is a multivariate Student law with 2ν degrees of freedom: a normal vector over the root of an
    independent χ² number divided by 2ν.
    """

    name: ClassVar[str] = "matern"
    positive_definite: ClassVar[bool] = True
    rotation_invariant: ClassVar[bool] = True

    dim: int
    bandwidth: float
    smoothness: float = 1.5

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.smoothness not in SMOOTHNESS:
            raise UsageError("smoothness", "must be 0.5, 1.5 or 2.5", got=shown(self.smoothness))
        object.__setattr__(self, "smoothness", float(self.smoothness))

    @property
    def width(self) -> float:
        """The bandwidth: there is no power."""
        return self.bandwidth

    def profiles(self, *, spacings: Sequence[float], sides: Sequence[float]) -> tuple[Profile, ...]:
        """Gaussians: the kernel is one with a random variance."""
        return fitted_profiles(self, spacings=spacings, diameter=math.hypot(*sides), gaussian=True)

    def integral(self) -> float:
        """The integral over all space: (2π)^d times the spectral density at zero."""
        half, nu = self.dim / 2.0, self.smoothness
        log = half * math.log(2.0 * math.pi / nu) + math.lgamma(nu + half) - math.lgamma(nu)
        return math.exp(log + self.dim * math.log(self.bandwidth))

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Student vectors, in turns. Their directions may be orthogonal: lengths are drawn apart."""
        directions = normal_directions("matern/frequencies", seed, rows, self.dim, orthogonal=orthogonal)
        directions /= self._spreads(rows, seed)[:, np.newaxis]
        return in_turns(directions, 1.0 / self.bandwidth)

    def frequency_lengths(self, *, rows: int, seed: int, size: int) -> NDArray[np.float64] | None:
        """Lengths of Student vectors, in turns."""
        lengths = normal_lengths("matern/lengths", seed, rows, size) / self._spreads(rows, seed)
        return lengths * (1.0 / self.bandwidth / ONE_TURN)

    def _spreads(self, rows: int, seed: int) -> Floats:
        """Roots of chi-squared numbers over their degrees of freedom, which divide normal vectors."""
        degrees = round(2.0 * self.smoothness)
        spreads = normal_directions("matern/spreads", seed, rows, degrees, orthogonal=False)
        squares = np.zeros(rows)
        for column in range(degrees):
            squares += spreads[:, column] * spreads[:, column]
        return np.sqrt(squares / degrees)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        distance = distances(records, queries)
        r = math.sqrt(2.0 * self.smoothness) / self.bandwidth * distance
        factor = {0.5: 1.0, 1.5: 1.0 + r, 2.5: 1.0 + r + r * r / 3.0}[self.smoothness]
        result: Floats = factor * np.exp(-r)
        return result
