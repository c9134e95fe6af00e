"""The Laplacian kernel: exponential in the sum of absolute differences; for methods that release it without
hashing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels.base import Batch, ColumnProfile, ProfileKernel, SpectralKernel
from hushsum.kernels.parameters import check_parameters
from hushsum.kernels.product_profiles import Profile
from hushsum.kernels.public_randomness import cauchy_directions, in_turns
from hushsum.kernels.registry import register
from hushsum.records.native_batch import distances


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

    @property
    def smooth(self) -> bool:
        """No: it has a corner at its peak."""
        return False

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
