"""Angular kernels: collision probabilities of the signs of random projections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, UsageError
from hushsum.kernels._base import BallSignsKernel, Batch, ProjectionKernel, dense_batch
from hushsum.kernels._hashers import Projections, check_projection
from hushsum.kernels._parameter_checks import check_parameters, positive_integer
from hushsum.kernels._registry import register
from hushsum.records import Bounds, clipped_to_ball

_LARGEST_UNFOLDED = 30


@register
@dataclass(frozen=True, slots=True)
class AngularKernel(ProjectionKernel):
    """Similarity of directions: (1 − angle/π) to the power of the number of bits; lengths do not matter.

    The zero vector has no direction: every bit agrees with it half of the time, and with itself always.
    Declared bounds are not taken, since moving the origin would change every angle.

    Parameters
    ----------
    dim : int
        Number of columns.
    bits : int, default 1
        Sign bits of one hash; the similarity is ``(1 − angle/π)**bits``.
    power : int, default 1
        Multiplies the bits.
    projection : {"dense", "structured"}
        Structured projections are faster from about 512 columns on.

    Notes
    -----
    The hash is the signs of ``bits·power`` normal projections (Charikar 2002). When 2^(bits·power) values
    fit the width of a row, each has its own cell and nothing is folded.

    Examples
    --------
    >>> AngularKernel(dim=2, bits=2).similarity([[1.0, 0.0]], [[3.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]).round(3)
    array([[1.  , 0.25, 0.  ]])
    """

    name: ClassVar[str] = "angular"
    positive_definite: ClassVar[bool] = True

    dim: int
    bits: int = 1
    power: int = 1
    projection: str = "dense"

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "bits", positive_integer("bits", self.bits, at_most=1024))
        check_projection(self.projection, self.dim, self.bits * self.power)

    def distinct_hashes(self) -> int | None:
        """2^bits, while that is a number of cells one could have."""
        total = self.bits * self.power
        return 1 << total if total <= _LARGEST_UNFOLDED else None

    def directions(self, *, rows: int, seed: int) -> NDArray[np.float32]:
        """The normals of the hash functions' planes, shape (rows, bits·power, dim); public.

        Bit k of a record's cell is set where its product with normal k is not negative, while every hash
        value has a cell of its own.

        Raises
        ------
        UsageError
            for structured projections, which have none that could be listed.
        """
        if self.projection != "dense":
            raise UsageError(
                "projection",
                "must be 'dense' to list its normals",
                got="'structured'",
                remedy=("give ", Argument("projection", "dense")),
            )
        return self.projections().numbers(seed=seed, rows=rows)[0]

    def projections(self) -> Projections:
        """Normal projections, of which the signs are kept."""
        return Projections(
            family=self.name,
            dim=self.dim,
            count=self.bits * self.power,
            scale=1.0,
            signs=True,
            structured=self.projection == "structured",
        )

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        x, x_zero = _directions(records)
        q, q_zero = _directions(queries)
        agree: Floats = 1.0 - np.arccos(np.clip(x @ q.T, -1.0, 1.0)) / np.pi
        one_zero = x_zero[:, None] != q_zero[None]
        both_zero = x_zero[:, None] & q_zero[None]
        agree = np.where(one_zero, 0.5, np.where(both_zero, 1.0, agree))
        result: Floats = agree ** (self.bits * self.power)
        return result


def _directions(batch: Batch) -> tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]:
    rows = batch.arrays[0].astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    zero = lengths == 0.0
    return rows / np.where(zero, 1.0, lengths)[:, None], zero


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
    takes_bounds: ClassVar[bool] = False

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

    def _prepared(self, data: object, box: Bounds | None, clip: bool, names: Sequence[str] | None) -> Batch:
        rows = dense_batch(data, self.dim, None, clip=clip, columns=names).arrays[0].astype(np.float64)
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
