"""The partition of space that each hash row makes: slabs between parallel hyperplanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel
from hushsum.kernels.projections import Projections

Floats = NDArray[np.float64]

_FAMILIES = ("euclidean", "manhattan")


@dataclass(frozen=True, slots=True, eq=False)
class Slabs:
    """Row r puts x into the cell ``floor(weights[r]·x + offsets[r])``, one number for each of ``power``
    hashes.

    ``weights`` has shape (rows, power, dim), ``offsets`` (rows, power). The hash itself works in single
    precision, so a point within rounding of a face may be counted on its other side.
    """

    weights: Floats
    offsets: Floats

    @classmethod
    def of(cls, kernel: Kernel, *, rows: int, seed: int) -> Slabs:
        """The slabs of a kernel's first hash rows.

        Raises
        ------
        UsageError
            if the kernel's hashes are not floors of dense projections.
        """
        if kernel.name not in _FAMILIES or getattr(kernel, "projection", "dense") != "dense":
            raise UsageError(
                f"the hash rows of the {kernel.name} kernel are no slabs of dense projections; "
                "use the euclidean or manhattan kernel"
            )
        dim, power, bandwidth = (getattr(kernel, name) for name in ("dim", "power", "bandwidth"))
        projections = Projections(
            family=kernel.name, dim=dim, count=power, scale=1.0 / bandwidth, signs=False, structured=False
        )
        weights, offsets = projections.numbers(seed=seed, rows=rows)
        return cls(weights.astype(np.float64), offsets.astype(np.float64))

    def positions(self, points: Floats) -> Floats:
        """Where points lie between the faces: shape (n, rows, power); the floor is the slab."""
        return np.tensordot(points, self.weights, axes=(1, 2)) + self.offsets
