"""The Euclidean kernel: collision probability of the p-stable hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hushsum.kernels.base import Batch, Floats, Hasher, Kernel, register
from hushsum.kernels.columns import MAX_DIM, MAX_POWER, dense_batch
from hushsum.kernels.parameters import bandwidth_number, positive_integer
from hushsum.kernels.projections import Projections, check_projection, structured_block
from hushsum.records.bounds import Bounds


@register
@dataclass(frozen=True, slots=True)
class EuclideanKernel(Kernel):
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

    dim: int
    bandwidth: float
    power: int = 1
    projection: str = "dense"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dim", positive_integer("dim", self.dim, at_most=MAX_DIM))
        object.__setattr__(self, "bandwidth", bandwidth_number(self.bandwidth))
        object.__setattr__(self, "power", positive_integer("power", self.power, at_most=MAX_POWER))
        check_projection(self.projection, self.dim, self.power)

    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "dim": self.dim,
            "bandwidth": self.bandwidth,
            "power": self.power,
            "projection": self.projection,
        }

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

    def independent_rows(self) -> int:
        """1, or the rows of a structured block."""
        return structured_block(self.dim, self.power) if self.projection == "structured" else 1

    def hasher(self, *, rows: int, width: int, seed: int, scattered: bool = True) -> Hasher:
        """The p-stable hash functions, scaled by the bandwidth."""
        projections = Projections(
            family=self.name,
            dim=self.dim,
            count=self.power,
            scale=1.0 / self.bandwidth,
            signs=False,
            structured=self.projection == "structured",
        )
        return projections.hasher(rows=rows, width=width, seed=seed, fold=True, scattered=scattered)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        from scipy.spatial.distance import cdist

        distance = cdist(records.arrays[0].astype(np.float64), queries.arrays[0].astype(np.float64))
        return euclidean_collision(distance / self.bandwidth) ** self.power


def euclidean_collision(ratio: Floats) -> Floats:
    """Collision probability at distance / bandwidth = ``ratio``."""
    from scipy.special import erf

    with np.errstate(divide="ignore", invalid="ignore"):
        t = 1.0 / ratio
        far = erf(t / np.sqrt(2.0)) + np.sqrt(2.0 / np.pi) * np.expm1(-0.5 * t * t) / t
    result: Floats = np.where(ratio > 1e-8, far, 1.0)
    return result
