"""The angular kernel: signed random projections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, UsageError
from hushsum.kernels.base import Batch, ProjectionKernel
from hushsum.kernels.parameters import check_parameters, positive_integer
from hushsum.kernels.projections import Projections, check_projection
from hushsum.kernels.registry import register

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
                parameter="projection",
                rule="must be 'dense' to list its normals",
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
