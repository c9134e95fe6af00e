"""The Gaussian kernel, for methods that release it without hashing: grids and Fourier features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum.kernels.base import Batch, Floats, Kernel, register
from hushsum.kernels.columns import MAX_DIM, MAX_POWER, dense_batch
from hushsum.kernels.parameters import bandwidth_number, positive_integer
from hushsum.kernels.spectra import in_turns, normal_directions
from hushsum.records.bounds import Bounds


@register
@dataclass(frozen=True, slots=True)
class GaussianKernel(Kernel):
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
    hashable: ClassVar[bool] = False
    rotation_invariant: ClassVar[bool] = True

    dim: int
    bandwidth: float
    power: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", positive_integer("dim", self.dim, at_most=MAX_DIM))
        object.__setattr__(self, "bandwidth", bandwidth_number(self.bandwidth))
        object.__setattr__(self, "power", positive_integer("power", self.power, at_most=MAX_POWER))

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"dim": self.dim, "bandwidth": self.bandwidth, "power": self.power}

    def prepare(
        self,
        data: object,
        bounds: Bounds | None = None,
        *,
        clip: bool = True,
        columns: Sequence[str] | None = None,
    ) -> Batch:
        """Rows of ``dim`` finite numbers."""
        return dense_batch(data, self.dim, bounds, clip=clip, columns=columns)

    def frequencies(self, *, rows: int, seed: int, orthogonal: bool) -> NDArray[np.float32]:
        """Normal numbers of standard deviation √power/bandwidth, in turns."""
        directions = normal_directions("gaussian/frequencies", seed, rows, self.dim, orthogonal=orthogonal)
        return in_turns(directions, math.sqrt(self.power) / self.bandwidth)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        from scipy.spatial.distance import cdist

        squared = cdist(
            records.arrays[0].astype(np.float64), queries.arrays[0].astype(np.float64), "sqeuclidean"
        )
        result: Floats = np.exp(-0.5 * self.power * squared / self.bandwidth**2)
        return result
