"""The Gaussian kernel, for methods that release it without hashing: grids and Fourier features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels.base import Batch, ColumnProfile, GaussianProfileKernel, SpectralKernel
from hushsum.kernels.parameters import check_parameters
from hushsum.kernels.product_profiles import Profile
from hushsum.kernels.public_randomness import ONE_TURN, in_turns, normal_directions
from hushsum.kernels.registry import register
from hushsum.kernels.structured_randomness import normal_lengths
from hushsum.records.native_batch import distances


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
