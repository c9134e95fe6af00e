"""Sums of the records' monomials of one degree: the exact kernel sums of inner products."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError, shown
from hushsum.kernels import INNER_PRODUCT, Batch, InnerProductKernel, Kernel, check_columns
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import FEWEST_BITS, MOST_BITS, Bounds, whole_length, whole_vectors
from hushsum.tables._base import Basis, LinearReading, Table
from hushsum.tables._registry import register

MOST_SQUARED = 4096
"""Columns of which all products of two are counted: 8.4 million cells."""

SQUARE_WEIGHT, PRODUCT_WEIGHT = 5, 7
"""Weights of z_i² and of z_i·z_j. Their quotient is nearly √2, and not above it: then a record's vector is no
longer than the squared length of the record, in whatever direction it points.
"""

PUBLIC_ROWS = "the rows that the transformation was learned from are public"
"""What a claim about transformed records assumes."""

_NUMBERS_AT_A_TIME = 1 << 22


@register
@dataclass(frozen=True)
class Monomials(Basis):
    """Sums of the records' coordinates, or of all products of two of them, as integers.

    A record x is shortened to the radius of the kernel where it is longer, and rounded to integers z of
    length at most S = 2^bits (`whole_vectors`). For degree 1 it adds z; for degree 2 it adds 5·z_i² in every
    column and 7·z_i·z_j for every pair i < j. Sums of integers do not depend on the order of records.
    An answer is linear in these sums, and has no error but noise: rounding is unbiased up to 2^−bits.

    Parameters
    ----------
    kernel : InnerProductKernel
        Its degree decides what is counted.
    bits : int
        Of a whole number. More resolve finer; in d columns a coordinate has about 2^bits/√d steps.
    columns : tuple of str, optional
        What the columns are called, in their order.
    transform : str, optional
        Digest of the public transformation that made the vectors, so that only tallies of one merge.

    Privacy
    -------
    z depends on its record alone, bit for bit, and ‖z‖ ≤ S. One record present or absent, degree 1: Δ2² = S²
    and Δ1 ≤ √d·‖z‖ ≤ ⌊√(d·S²)⌋. One record replaced: ‖z − z'‖ ≤ 2S (opposite records), so Δ2² = 4S² and
    Δ1 ≤ ⌊√(4d·S²)⌋.

    Degree 2, with weights a = 5 and b = 7, b² ≤ 2a²: one record's vector has the squared length
    a²·Σ z_i⁴ + b²·Σ_{i<j} z_i²z_j² ≤ a²·‖z‖⁴, so Δ2² = a²S⁴; and Σ|·| = a‖z‖² + b(‖z‖₁² − ‖z‖²)/2 ≤
    (a + b(d − 1)/2)·S², since ‖z‖₁² ≤ d‖z‖². Replaced: the same weights give at most a²·‖zzᵀ − z'z'ᵀ‖²_F
    = a²(‖z‖⁴ + ‖z'‖⁴ − 2(z·z')²) ≤ 2a²S⁴, and Δ1 is at most √cells times the root of that, by
    Cauchy and Schwarz. One cell moves by at most a·S² (b·S²/2 off the diagonal); replaced, by b·S².

    Notes
    -----
    The weight √2 of products makes the noise of an answer (x·q)² the same in every direction of q. Without it
    a cell off the diagonal has √2 times the noise for the same claim.
    """

    name: ClassVar[str] = "monomials"
    in_pages: ClassVar[bool] = True
    fractional: ClassVar[bool] = True

    kernel: Kernel
    bits: int = 12
    columns: tuple[str, ...] | None = None
    transform: str | None = None

    def __post_init__(self) -> None:
        INNER_PRODUCT.check(self.kernel, "monomials")
        if type(self.bits) is not int or not FEWEST_BITS <= self.bits <= MOST_BITS:
            raise UsageError(
                "bits",
                f"must be an integer from {FEWEST_BITS} to {MOST_BITS}",
                got=shown(self.bits),
                remedy="try 12",
            )
        most = MOST_SQUARED if self._product.inner_degree() == 2 else 1 << 2 * self.bits
        if self._product.dim > most:
            raise UsageError(
                "dim",
                f"must be at most {most} for the {self.kernel.name} kernel",
                got=self._product.dim,
                remedy="select columns, or learn fewer directions on public data",
            )
        check_columns(self.columns, self._product.dim)

    @property
    def _product(self) -> InnerProductKernel:
        assert isinstance(self.kernel, InnerProductKernel)
        return self.kernel

    @property
    def bounds(self) -> None:
        """None: the ball of the kernel's radius bounds the records."""
        return

    @property
    def box(self) -> Bounds:
        """The box around the ball."""
        radius, dim = float(self._product.radius), self._product.dim
        return Bounds((-radius,) * dim, (radius,) * dim)

    @property
    def assumptions(self) -> dict[str, str]:
        """That of a transformation, for every unit."""
        return {} if self.transform is None else dict.fromkeys(self.units, PUBLIC_ROWS)

    def counted_kernel(self) -> Kernel:
        """The inner product whose monomials are counted."""
        return self.kernel

    @property
    def shape(self) -> tuple[int, int]:
        """One row of d cells, or of d·(d + 1)/2."""
        dim = self._product.dim
        return 1, dim if self._product.inner_degree() == 1 else dim * (dim + 1) // 2

    @property
    def unit(self) -> float:
        """What a cell holds for a record of the declared length along one column, but for its weight."""
        return float(whole_length(self._product.dim, self.bits)) ** self._product.inner_degree()

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """See the class: proven there for both relations."""
        dim, square, replaced = self._product.dim, 1 << 2 * self.bits, relation is Relation.REPLACE
        if self._product.inner_degree() == 1:
            length = square << 2 if replaced else square
            return Sensitivity(math.isqrt(dim * length), length, math.isqrt(length))
        if not replaced:
            return Sensitivity(
                SQUARE_WEIGHT * square + PRODUCT_WEIGHT * (dim - 1) * square // 2,
                (SQUARE_WEIGHT * square) ** 2,
                SQUARE_WEIGHT * square,
            )
        length = 2 * (SQUARE_WEIGHT * square) ** 2
        if dim == 1:
            return Sensitivity(SQUARE_WEIGHT * square, length // 2, SQUARE_WEIGHT * square)
        return Sensitivity(math.isqrt(self.shape[1] * length), length, PRODUCT_WEIGHT * square)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's monomials.

        Matrix products of integers in double precision are exact in any order while every sum stays
        below 2⁵³, which blocks of 2¹² records of 20 bits keep.
        """
        rows, dim = batch.arrays[0], self._product.dim
        at_a_time = max(1, min(_NUMBERS_AT_A_TIME // dim, 1 << (52 - 2 * self.bits)))
        upper = np.triu_indices(dim) if self._product.inner_degree() == 2 else None
        for start in range(0, len(rows), at_a_time):
            part = rows[start : start + at_a_time].astype(np.float64)
            whole = whole_vectors(part, self._product.radius, self.bits)
            if upper is None:
                table[0] += step * whole.sum(axis=0)
                continue
            real = whole.astype(np.float64)
            table[0] += step * square_weights(dim) * (real.T @ real)[upper].astype(np.int64)

    def moments(self, table: Table) -> Floats:
        """Of degree 2: Σ x xᵀ/radius², symmetric, shape (dim, dim)."""
        dim = self._product.dim
        sums = np.zeros((dim, dim))
        sums[np.triu_indices(dim)] = table[0] / (square_weights(dim) * self.unit)
        whole: Floats = sums + np.triu(sums, 1).T
        return whole

    def _reading(self, kernel: Kernel) -> MonomialReading:
        return MonomialReading(self, kernel)


def square_weights(dim: int) -> NDArray[np.int64]:
    """Of the cells of degree 2, in the order of the upper triangle."""
    first, second = np.triu_indices(dim)
    return np.where(first == second, SQUARE_WEIGHT, PRODUCT_WEIGHT)


@dataclass(frozen=True)
class MonomialReading(LinearReading):
    """Inner products of queries with sums of vectors, or with the matrix of second moments: exact up to noise
    and rounding.
    """

    basis: Monomials
    kernel: Kernel

    def _queries(self, batch: Batch) -> Floats:
        """In units of the radius."""
        assert isinstance(self.kernel, InnerProductKernel)
        return np.asarray(batch.arrays[0].astype(np.float64) / self.kernel.radius)

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """q·Σx, or qᵀ(Σ x xᵀ)q, in units of the radius."""
        queries = self._queries(batch)
        if self.basis.shape[1] == queries.shape[1] and self.basis._product.inner_degree() == 1:
            return np.asarray(queries @ (table[0] / self.basis.unit))
        return np.asarray(((queries @ self.basis.moments(table)) * queries).sum(axis=1))

    def noise_gain(self, batch: Batch) -> Floats:
        """The sum of the squared weights of the cells in an answer."""
        squares = self._queries(batch) ** 2
        total = squares.sum(axis=1)
        if self.basis._product.inner_degree() == 1:
            return np.asarray(total / self.basis.unit**2)
        fourth = (squares**2).sum(axis=1)
        gain = fourth / SQUARE_WEIGHT**2 + 2.0 * (total**2 - fourth) / PRODUCT_WEIGHT**2
        return np.asarray(gain / self.basis.unit**2)

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """Of the rounding of records to integers: independent between records, uniform within half a step of
        each column. The square of a rounded product has a mean error too.
        """
        squares = np.square(self._queries(batch)).sum(axis=1)
        step, number = 1.0 / whole_length(self.kernel.dim or 1, self.basis.bits), max(count, 0.0)
        if self.basis._product.inner_degree() == 1:
            return np.asarray(number * squares * step**2 / 12.0)
        mean = number * squares * step**2 / 12.0
        return np.asarray(number * np.square(squares) * step**2 / 3.0 + mean**2)

    def bias_bound(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """Half a step in every column, of the same sign for all records, as if they were equal."""
        queries = np.abs(self._queries(batch))
        step, lengths = 1.0 / whole_length(self.kernel.dim or 1, self.basis.bits), queries.sum(axis=1)
        if self.basis._product.inner_degree() == 1:
            return np.asarray(max(count, 0.0) * lengths * step / 2.0)
        products = np.sqrt(np.square(queries).sum(axis=1)) * lengths * step
        return np.asarray(max(count, 0.0) * (products + np.square(lengths * step) / 4.0))

    def total(self, table: Table) -> None:
        """None: the sums do not hold the number of records."""
        return
