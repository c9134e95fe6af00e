"""The asymmetric angular kernel: records and queries are hashed differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.angular import AngularKernel
from hushsum.kernels.base import BallSignsKernel, Batch, dense_batch
from hushsum.kernels.parameters import check_parameters
from hushsum.kernels.projections import Projections
from hushsum.kernels.registry import register
from hushsum.records.bounds import Bounds
from hushsum.records.norm_clipping import clipped_to_ball


@register
@dataclass(frozen=True, slots=True)
class AsymmetricAngularKernel(BallSignsKernel):
    """``(1 − arccos(x·q/(radius·‖q‖))/π)**bits``: increasing in the inner product of a record and a query.

    For losses of linear models. With a record z = (x, y) and the query (θ, −1) the inner product is a
    residual, and f(q) + f(−q) is a loss that is even in it; with a record and its class's sketch it is a
    margin. It is not a similarity: a record inside of the ball does not reach 1 with itself. Records longer
    than ``radius`` are shortened to it; lengths of queries do not matter. Declared bounds are not taken.

    Parameters
    ----------
    dim : int
        Number of columns.
    bits : int, default 1
        Sign bits of one hash.
    power : int, default 1
        Multiplies the bits.
    radius : float, default 1.0
        The length that no record exceeds: declared, never computed from the records.

    Privacy
    -------
    A record is clipped, and gets one coordinate that makes it a unit vector, by operations on that record
    alone, in a fixed order; then it adds 1 to one cell of each row, as for any kernel. What is done to
    queries, which are public, makes no difference to Δ.

    Notes
    -----
    A record becomes (x, √(radius² − ‖x‖²))/radius and a query (q, 0); the hash of both is the signs of normal
    projections. Two of them collide with the probability of their angle, whose cosine is x·q/(radius·‖q‖)
    (Shrivastava and Li 2014; Neyshabur and Srebro 2015).

    Examples
    --------
    >>> kernel = AsymmetricAngularKernel(dim=2)
    >>> kernel.similarity([[0.5, 0.0]], [[1.0, 0.0], [0.0, 3.0], [-1.0, 0.0]]).round(3)
    array([[0.667, 0.5  , 0.333]])
    """

    name: ClassVar[str] = "asymmetric-angular"

    dim: int
    bits: int = 1
    power: int = 1
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "bits", self._on_sphere().bits)

    def _on_sphere(self) -> AngularKernel:
        """The kernel of the vectors that are hashed."""
        return AngularKernel(dim=self.dim + 1, bits=self.bits, power=self.power)

    def prepare(
        self,
        data: object,
        bounds: Bounds | None = None,
        *,
        clip: bool = True,
        columns: Sequence[str] | None = None,
    ) -> Batch:
        """Unit vectors for records; queries (``clip=False``) with a last coordinate of 0."""
        if bounds is not None:
            raise UsageError(
                parameter="bounds",
                rule=f"must be left out: the {self.name} kernel takes none, since its origin is fixed",
                remedy="declare a radius instead",
            )
        rows = dense_batch(data, self.dim, None, clip=clip, columns=columns).arrays[0].astype(np.float64)
        if clip:
            vectors = on_sphere(clipped_to_ball(rows, self.radius) / self.radius)
        else:
            vectors = np.column_stack((rows, np.zeros(len(rows))))
        return Batch((np.ascontiguousarray(vectors, np.float32),), len(rows))

    def distinct_hashes(self) -> int | None:
        """2^bits, while that is a number of cells one could have."""
        return self._on_sphere().distinct_hashes()

    def signs(self) -> int:
        """bits·power."""
        return self.bits * self.power

    def directions(self, *, rows: int, seed: int) -> NDArray[np.float32]:
        """The normals of the hash functions' planes, shape (rows, bits·power, dim + 1); public."""
        return self._on_sphere().directions(rows=rows, seed=seed)

    def projections(self) -> Projections:
        """Those of the angular kernel with one column more."""
        return self._on_sphere().projections()

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        return self._on_sphere().prepared_similarity(records, queries)


def on_sphere(records: Floats) -> Floats:
    """Records of the unit ball with the coordinate that makes them unit vectors.

    Squares are summed column by column: a record's bits depend on that record alone.

    >>> on_sphere(np.array([[0.6, 0.0]]))
    array([[0.6, 0. , 0.8]])
    """
    square = np.zeros(len(records))
    for column in range(records.shape[1]):
        square += records[:, column] * records[:, column]
    return np.column_stack((records, np.sqrt(np.maximum(1.0 - square, 0.0))))
