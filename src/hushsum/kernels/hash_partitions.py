"""The partition of space that each hash row makes: slabs between parallel hyperplanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.base import Kernel, ProjectionKernel


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
                parameter="kernel",
                rule="must have hash rows that are slabs of dense projections",
                got=f"the {kernel.name} kernel",
                remedy="use the euclidean or manhattan kernel",
            )
        weights, offsets = projections.numbers(seed=seed, rows=rows)
        return cls(weights.astype(np.float64), offsets.astype(np.float64))

    def positions(self, points: Floats) -> Floats:
        """Where points lie between the faces: shape (n, rows, power); the floor is the slab."""
        return np.tensordot(points, self.weights, axes=(1, 2)) + self.offsets
