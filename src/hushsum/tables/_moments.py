"""Sums of records' coordinates and of products of two of them: of all records, and by class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, UsageError
from hushsum.kernels import (
    INNER_PRODUCT,
    Batch,
    InnerProductKernel,
    Kernel,
    check_columns,
    check_parameters,
    dense_batch,
)
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import (
    FEWEST_BITS,
    MOST_BITS,
    Bounds,
    UnitBall,
    clipped_to_ball,
    whole_length,
    whole_vectors,
)

from ._base import Basis, LinearReading, Table, check_integer, register, slices

__all__ = ["MOST_SQUARED", "PUBLIC_ROWS", "SQUARE_WEIGHT", "ClassMoments", "Moments", "Monomials"]

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
        Of an integer. More resolve finer; in d columns a coordinate has about 2^bits/√d steps.
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
        check_integer("bits", self.bits, FEWEST_BITS, MOST_BITS, "try 12")
        most = MOST_SQUARED if self._product.inner_degree() == 2 else 1 << 2 * self.bits
        if self._product.dim > most:
            rule = f"must be at most {most} for the {self.kernel.name} kernel"
            remedy = "select columns, or learn fewer directions on public data"
            raise UsageError("dim", rule, got=self._product.dim, remedy=remedy)
        check_columns(self.columns, self._product.dim)

    @property
    def _product(self) -> InnerProductKernel:
        assert isinstance(self.kernel, InnerProductKernel)
        return self.kernel

    bounds = None
    """None: the ball of the kernel's radius bounds the records."""

    @property
    def box(self) -> Bounds:
        """The box around the ball."""
        radius, dim = float(self._product.radius), self._product.dim
        return Bounds((-radius,) * dim, (radius,) * dim)

    @property
    def assumptions(self) -> dict[str, str]:
        """The assumption of a transformation, if there is one, for every unit."""
        return {} if self.transform is None else dict.fromkeys(self.units, PUBLIC_ROWS)

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
        entry = SQUARE_WEIGHT * square
        if not replaced:
            return Sensitivity(entry + PRODUCT_WEIGHT * (dim - 1) * square // 2, entry**2, entry)
        if dim == 1:
            return Sensitivity(entry, entry**2, entry)
        return Sensitivity(math.isqrt(self.shape[1] * 2 * entry**2), 2 * entry**2, PRODUCT_WEIGHT * square)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's monomials.

        Matrix products of integers in double precision are exact in any order while every sum stays
        below 2⁵³, which blocks of 2¹² records of 20 bits keep.
        """
        rows, dim = batch.arrays[0], self._product.dim
        at_a_time = max(1, min(_NUMBERS_AT_A_TIME // dim, 1 << (52 - 2 * self.bits)))
        upper = np.triu_indices(dim) if self._product.inner_degree() == 2 else None
        for at in slices(len(rows), at_a_time):
            whole = whole_vectors(rows[at].astype(np.float64), self._product.radius, self.bits)
            if upper is None:
                table[0] += step * whole.sum(axis=0)
                continue
            real = whole.astype(np.float64)
            table[0] += step * square_weights(dim) * (real.T @ real)[upper].astype(np.int64)

    def moments(self, table: Table) -> Floats:
        """The moments of degree 2: Σ x xᵀ/radius², symmetric, shape (dim, dim)."""
        dim = self._product.dim
        return symmetric(table[0] / (square_weights(dim) * self.unit), dim)

    def _reading(self, kernel: Kernel) -> MonomialReading:
        return MonomialReading(self, kernel)


def symmetric(triangle: Floats, dim: int) -> Floats:
    """The symmetric matrix with these numbers in its upper triangle, row by row."""
    upper = np.zeros((dim, dim))
    upper[np.triu_indices(dim)] = triangle
    whole: Floats = upper + np.triu(upper, 1).T
    return whole


def square_weights(dim: int) -> NDArray[np.int64]:
    """The weights of the cells of degree 2, in the order of the upper triangle."""
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
        """The queries in units of the radius."""
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
        """The squared error by the rounding of records to integers, which is independent between records and
        uniform within half a step of each column. The square of a rounded product has a mean error too.
        """
        squares = np.square(self._queries(batch)).sum(axis=1)
        step, number = 1.0 / whole_length(self.kernel.dim or 1, self.basis.bits), max(count, 0.0)
        mean = number * squares * step**2 / 12.0
        if self.basis._product.inner_degree() == 1:
            return np.asarray(mean)
        return np.asarray(number * np.square(squares) * step**2 / 3.0 + mean**2)

    def bias_bound(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """Half a step in every column, of the same sign for all records, as if they were equal."""
        queries = np.abs(self._queries(batch))
        step, lengths = 1.0 / whole_length(self.kernel.dim or 1, self.basis.bits), queries.sum(axis=1)
        if self.basis._product.inner_degree() == 1:
            return np.asarray(max(count, 0.0) * lengths * step / 2.0)
        products = np.sqrt(np.square(queries).sum(axis=1)) * lengths * step
        return np.asarray(max(count, 0.0) * (products + np.square(lengths * step) / 4.0))


MOST_FEATURES = 4096
# The target's square is counted in units 2² times coarser: it is one cell, and needs little precision.
_TARGET_SHIFT = 2

_ROWS_AT_A_TIME = 1 << 16


@dataclass(frozen=True, slots=True)
class QuadraticKernel(Kernel):
    """k(z, q) = (z·q)². Its sum at q = (θ, −1) over records z = (φ, v) is the squared error of v ≈ θ·φ.

    It is not a collision probability, so hash rows cannot count it; the moments Σ z zᵀ hold all of its sums.
    No similarity in the usual sense: it is 1 where unit vectors coincide, and also where they are opposite.

    Examples
    --------
    >>> QuadraticKernel(dim=2).exact_sum([[1.0, 2.0], [0.5, 0.5]], [[1.0, -1.0]])
    array([1.])
    """

    name: ClassVar[str] = "quadratic"

    dim: int

    def __post_init__(self) -> None:
        check_parameters(self)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        products: Floats = records.arrays[0].astype(float) @ queries.arrays[0].astype(float).T
        return products * products


@register
@dataclass(frozen=True)
class Moments(Basis):
    """Sums of products of a record's features and target, each product an integer.

    A record (x, y) is mapped into the unit ball (`UnitBall`) and rounded to integers z = (φ, v) of at
    most ``2**bits``. It adds the upper triangle of φ φᵀ, the products v·φ, and ⌊v²/4⌋. Products and sums of
    integers are exact, so the table does not depend on the order of records. The released function is
    the squared error of a linear model: its kernel sum at q = (θ, −1) is Σ (v − θ·φ)².

    Parameters
    ----------
    ball : UnitBall
        Declared bounds of every column, the target's last, and the radius.
    bits : int, default 12
        Of a number. More resolve finer; noise below ε = 10⁻⁴ needs fewer.
    columns : tuple of str, optional
        What the columns are called, the target's name last.

    Privacy
    -------
    With S = 2^bits, φ has length at most S and entries of at most A = ⌈S/radius⌉, both checked in whole
    numbers after rounding, and |v| ≤ S. For one record present or absent,

        Σ_{i≤j} (φᵢφⱼ)² = (‖φ‖⁴ + Σ φᵢ⁴)/2 ≤ (S⁴ + A²S²)/2,     Σ (vφᵢ)² ≤ S⁴,     ⌊v²/4⌋² ≤ S⁴/16,

    and Δ2² is their sum. For L1, ‖φ‖₁ ≤ M = min(mA, √m·S) gives Δ1 ≤ (M² + S²)/2 + S·M + S²/4.

    For one record replaced, (φ, v) by (ψ, w): with c = φ·ψ/S² the squares of the triangles' difference sum to
    at most S⁴ + A²S² − c²S⁴, since ⟨φφᵀ, ψψᵀ⟩ over i ≤ j is ((φ·ψ)² + Σ φᵢ²ψᵢ²)/2; those of vφ − wψ to at
    most (2 + 2|c|)S⁴. As 1 + 2 + 2|c| − c² ≤ 4, Δ2² ≤ 4S⁴ + A²S² + S⁴/16. With φ = p + q and ψ = p − q,
    φφᵀ − ψψᵀ = 2(pqᵀ + qpᵀ), and ‖vφ − wψ‖₁ is at most 2‖p‖₁S or 2‖q‖₁S; ‖p‖₁ + ‖q‖₁ ≤ M' =
    min(mA, √(2m)·S) gives Δ1 ≤ (M' + S)²/2 + min((m − 1)A², 2S²)/2 + S²/4, where the second term is the
    diagonal, on which the constant feature does not differ. The bounds are met in corners of the declared
    box, but for Δ1 of a replaced record with a radius far below √m, which is up to half as large again.

    Notes
    -----
    Wang, *Revisiting differentially private linear regression*, UAI 2018, perturbs the same sums; there the
    noise is real and calibrated to ‖φφᵀ‖ ≤ 1, which is up to √2 times the norm of the triangle.
    """

    name: ClassVar[str] = "moments"

    ball: UnitBall
    bits: int = 12
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_integer("bits", self.bits, 4, MOST_BITS, "try 12")
        if self.ball.features > MOST_FEATURES:
            rule = f"take at most {MOST_FEATURES - 1} columns and a target"
            remedy = "select columns, or use the sketch"
            raise UsageError("moments", rule, got=self.ball.features - 1, remedy=remedy)
        if self.columns is not None and len(self.columns) != self.ball.features:
            rule = f"must be {self.ball.features} names, the target's last"
            raise UsageError("columns", rule, got=len(self.columns))

    bounds = None
    """None: queries are models, and those of the records are in the ball."""

    def counted_kernel(self) -> QuadraticKernel:
        """The squared error, as a kernel of features and target."""
        return QuadraticKernel(dim=self.ball.features + 1)

    @property
    def shape(self) -> tuple[int, int]:
        """One row: the triangle of φ φᵀ, the products v·φ, and v²."""
        features = self.ball.features
        return 1, features * (features + 1) // 2 + features + 1

    @property
    def unit(self) -> int:
        """S: the integer that stands for 1."""
        return 1 << self.bits

    @property
    def level(self) -> int:
        """The feature that is the same for all records."""
        return math.floor(self.unit / self.ball.length)

    @property
    def _largest_feature(self) -> int:
        return min(math.ceil(self.unit / self.ball.length), self.unit)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """See the class: proven there for both relations."""
        square, entry, number = self.unit**2, self._largest_feature, self.ball.features
        target = square >> _TARGET_SHIFT
        largest = max(entry * self.unit, target)
        if relation is Relation.ADD_REMOVE:
            reach = min(number * entry, math.isqrt(number * square) + 1)
            l1 = _half_up(reach**2 + square) + self.unit * reach + target
            l2_squared = _half_up(square**2 + entry**2 * square) + square**2 + target**2
            return Sensitivity(l1, l2_squared, largest)
        reach = min(number * entry, math.isqrt(2 * number * square) + 1)
        diagonal = min((number - 1) * entry**2, 2 * square)
        l1 = _half_up((reach + self.unit) ** 2) + _half_up(diagonal) + target
        return Sensitivity(l1, 4 * square**2 + entry**2 * square + target**2, 2 * largest)

    def prepare(self, data: object) -> Batch:
        """Records with the target in the last column, as integers (φ, v)."""
        features, target = self.ball.of_records(data, columns=self.columns)
        rows = np.empty((len(features), self.ball.features + 1), np.int64)
        rows[:, 0] = self.level
        rows[:, 1:-1] = self._bounded(features[:, 1:] * self.unit)
        rows[:, -1] = np.rint(np.clip(target, -1.0, 1.0) * self.unit)
        return Batch((rows,), len(rows))

    def _bounded(self, features: Floats) -> NDArray[np.int64]:
        """Rounded to integers whose squares sum to at most S² less the constant feature's; checked."""
        entry, room = self._largest_feature, self.unit**2 - self.level**2
        rows = np.clip(np.rint(features), -entry, entry).astype(np.int64)
        squares = (rows * rows).sum(axis=1)
        over = squares > room
        if over.any():
            # Towards zero, so no length can grow; the margin is far above the rounding of the quotient.
            shrink = np.sqrt(room / squares[over]) * (1.0 - 1e-9)
            rows[over] = np.trunc(rows[over] * shrink[:, None]).astype(np.int64)
        return rows

    def prepare_queries(self, data: object) -> Batch:
        """Rows (θ, −1) of a model in the unit ball's units, one number more than features."""
        return self.counted_kernel().prepare(data)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's products.

        Matrix products of integers in double precision are exact in any order while every sum stays
        below 2⁵³, which blocks of 2¹² records of 20 bits and 2¹⁶ of 12 keep.
        """
        rows: NDArray[np.int64] = batch.arrays[0]
        features = self.ball.features
        upper = np.triu_indices(features)
        for at in slices(len(rows), min(_ROWS_AT_A_TIME, 1 << (52 - 2 * self.bits))):
            part = rows[at]
            real = part.astype(np.float64)
            products = real.T @ real
            sums = np.concatenate((products[:-1, :-1][upper], products[:-1, -1])).astype(np.int64)
            table[0, : len(sums)] += step * sums
            table[0, -1] += step * int(((part[:, -1] ** 2) >> _TARGET_SHIFT).sum())

    def matrix(self, table: Table) -> Floats:
        """Σ z zᵀ of z = (φ, v) in the unit ball's units, symmetric, shape (features + 1, features + 1)."""
        features = self.ball.features
        sums = np.zeros((features + 1, features + 1))
        upper = np.triu_indices(features)
        cells = table[0].astype(np.float64) / self.unit**2
        sums[upper] = cells[: len(upper[0])]
        sums[:-1, -1] = cells[len(upper[0]) : -1]
        sums[-1, -1] = cells[-1] * (1 << _TARGET_SHIFT)
        whole: Floats = sums + np.triu(sums, 1).T
        return whole

    def _reading(self, kernel: Kernel) -> MomentsReading:
        return MomentsReading(self, kernel)


@dataclass(frozen=True)
class MomentsReading(LinearReading):
    """The squared error of linear models: exact up to noise, since rounding to 12 bits is far below it."""

    basis: Moments
    kernel: Kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """qᵀ (Σ z zᵀ) q."""
        queries = batch.arrays[0].astype(np.float64)
        return np.asarray(((queries @ self.basis.matrix(table)) * queries).sum(axis=1))

    def noise_gain(self, batch: Batch) -> Floats:
        """The sum of the squared weights of the cells in qᵀ (Σ z zᵀ) q."""
        squares = batch.arrays[0].astype(np.float64) ** 2
        inner, last = squares[:, :-1], squares[:, -1]
        total = inner.sum(axis=1)
        triangle = 2.0 * total**2 - (inner**2).sum(axis=1)
        gain = triangle + 4.0 * total * last + (1 << 2 * _TARGET_SHIFT) * last**2
        return np.asarray(gain / self.basis.unit**4)

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The squared error by the rounding of records to integers, which is independent between records and
        uniform within half a step of each column, and of the target's square, which is rounded down to a
        multiple of 4.
        """
        squares = batch.arrays[0].astype(np.float64) ** 2
        number, step = max(count, 0.0), 1.0 / self.basis.unit
        total = squares.sum(axis=1)
        mean = number * step**2 * (total / 12.0 + (1 << _TARGET_SHIFT) / 2.0 * squares[:, -1])
        return np.asarray(number * total**2 * step**2 / 3.0 + mean**2)

    def total(self, table: Table) -> tuple[float, float]:
        """The first cell: the square of the constant feature, for every record."""
        square = self.basis.level**2
        return float(table[0, 0]) / square, 1.0 / square**2


def _half_up(number: int) -> int:
    return -(-number // 2)


_MOST_BITS = 14
_MOST_WEIGHT = 1 << 40
MOST_CLASSES = 1 << 16
_FINE_WEIGHT = 256
"""The integer weight of class means where a part of it is taken from every class.

Its thirds and tenths are nearly integers.
"""


@dataclass(frozen=True, slots=True)
class ClassProductKernel(Kernel):
    """k((c, x), (c', q)) = x·q/radius² where the classes c and c' are the same, else 0.

    The first column is the number of the class. Its mean over the records of class c' at q is the inner
    product of q and the mean of that class.

    Examples
    --------
    >>> ClassProductKernel(dim=3).exact_sum([[0, 1.0, 0.0], [1, 0.0, 1.0]], [[1, 0.5, 0.5]])
    array([0.5])
    """

    name: ClassVar[str] = "class-product"
    signed: ClassVar[bool] = True

    dim: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_parameters(self)

    def _pairwise(self, records: Batch, queries: Batch) -> Floats:
        rows, points = records.arrays[0].astype(np.float64), queries.arrays[0].astype(np.float64)
        same = rows[:, None, 0] == points[None, :, 0]
        products = clipped_to_ball(rows[:, 1:], self.radius) @ points[:, 1:].T / self.radius**2
        return np.asarray(np.where(same, products, 0.0))


@register
@dataclass(frozen=True)
class ClassMoments(Basis):
    """Sums of vectors and numbers of records by class, and, if requested, second moments.

    A record is (c, x): its class, and a vector that is shortened to ``radius`` and rounded to integers z
    of length at most S = 2^bits. It adds m·z and n to the cells of its class, and 5·z_i² and 7·z_i·z_j to
    those of the second moments, which all classes share or each class has. m and n are integers,
    ``mean_weight`` and ``count_weight``: the larger one is, the less noise its cells have beside what they
    count. It also takes s·z, s = ``shared_weight``, from the sums of every class, its own included. A rule
    compares classes, so what matters are differences between their sums; with s the sum over all classes
    counts less (m − C·s in place of m, for C classes), and the same noise leaves more of the differences.

    Parameters
    ----------
    classes, dim : int
        How many classes, and columns of a vector.
    radius : float
        Declared; longer vectors are shortened to it.
    moments : int
        How many matrices of second moments: none, one of all records, or one for each class. Each has
        dim·(dim + 1)/2 cells; up to 4096 columns.
    mean_weight, count_weight, shared_weight : int
        See above; :meth:`of_shares` takes them from shares of the budget. C·s must be below m.
    bits : int
        Of an integer.
    transform : str, optional
        Digest of the public transformation that made the vectors, so that only tallies of one merge.

    Privacy
    -------
    A record's cells depend on that record alone, and ‖z‖ ≤ S. It adds (m − s)·z to the sums of its class and
    −s·z to those of K − 1 others, K classes: A = ((m − s)² + (K − 1)s²)·S² in square. With C = n² and
    B = 25·S⁴ (0 without moments; see `Monomials` for the weights 5 and 7), one record present or absent moves
    the table by Δ2² ≤ A + C + B, and by Δ1 ≤ (m + (K − 2)s)·√d·S + n + (5 + 7(d − 1)/2)·S².

    One record replaced. If its class changes, the sums move by m·z − s·w in one class, by −m·z' − s·w in
    another and by −s·w in the rest, w = z − z': in square m²(‖z‖² + ‖z'‖²) − (2m − K·s)·s·‖w‖². As K·s < m,
    this is at most 2m²S². Two counts move, and the moments by at most 2B in
    square: if the classes share them (`Monomials`), and if not, as each moves by B. So
    Δ2² ≤ 2(m²S² + C + B). If
    the class stays, the count does, too. With p = (z + z')/2,
    q = (z − z')/2, x = ‖q‖²/S² and y = ‖p‖²/S², the move is 4A·x + 8B·(xy + t²), t = p·q/S², where x + y ≤ 1
    and |t| ≤ (1 − x − y)/2, because both lengths are at most S, and t² ≤ xy. In s = 1 − x − y the bound
    x(1 − x − s) + s²/4 of xy + t² is convex, so it is largest at s = 0, where it is x(1 − x), or where
    s = 2√(xy), where it is 2x(1 − √x)² and larger only for x < 1/9: there the move is below 2A + 2B. So it is
    at most the maximum of 4Ax + 8Bx(1 − x): 4A where A ≥ 2B, else 2A + 2B + A²/(2B). Δ2² is the larger of
    the two cases. Δ1 is at most that of two records' class cells and of replaced moments; if each class has
    moments, at most that of two records.

    A record that moves to another class is a replacement; under add/remove it is two changes. A record that
    appears twice is two records.
    """

    name: ClassVar[str] = "class-moments"
    fractional: ClassVar[bool] = True

    classes: int
    dim: int
    radius: float = 1.0
    moments: int = 0
    mean_weight: int = 1
    count_weight: int = 512
    bits: int = 12
    transform: str | None = None
    shared_weight: int = 0

    @classmethod
    def of_shares(
        cls,
        classes: int,
        dim: int,
        radius: float,
        *,
        moment_share: Fraction,
        count_share: Fraction,
        by_class: bool = False,
        bits: int = 12,
        transform: str | None = None,
        total: float = 1.0,
    ) -> ClassMoments:
        """With weights for which the counts and the second moments have these parts of Δ2² of one record.
        ``total``, above 0 and at most 1, is the weight of the sum over all classes beside that of
        differences.

        >>> basis = ClassMoments.of_shares(
        ...     3, 16, 1.0, moment_share=Fraction(1, 5), count_share=Fraction(1, 50)
        ... )
        >>> moved = basis.sensitivity(Relation.ADD_REMOVE).l2_squared
        >>> round(25 * basis.length**4 / moved, 4), round(basis.count_weight**2 / moved, 4)
        (0.2, 0.02)
        """
        unit, means = 1 << bits, 1 - moment_share - count_share
        taken = (1.0 - total) / classes
        # What a record adds to the sums, as a multiple of the weight of means.
        added = math.sqrt((1.0 - taken) ** 2 + (classes - 1) * taken**2)
        if moment_share == 0:
            mean = 1 if total == 1.0 else _FINE_WEIGHT
            shared = math.floor(mean * taken)
            added = math.sqrt((mean - shared) ** 2 + (classes - 1) * shared**2)
            count = max(1, round(unit * added * math.sqrt(count_share / means)))
            return cls(classes, dim, radius, 0, mean, count, bits, transform, shared)
        length = SQUARE_WEIGHT * unit**2 / math.sqrt(moment_share)
        mean = max(1, round(length * math.sqrt(means) / unit / added))
        count = max(1, round(length * math.sqrt(count_share)))
        matrices = classes if by_class else 1
        return cls(classes, dim, radius, matrices, mean, count, bits, transform, math.floor(mean * taken))

    def __post_init__(self) -> None:
        rules = (
            ("classes", self.classes, 1, MOST_CLASSES),
            ("dim", self.dim, 1, MOST_SQUARED if self.moments else 1 << 2 * FEWEST_BITS),
            ("moments", self.moments, 0, MOST_CLASSES),
            ("mean_weight", self.mean_weight, 1, _MOST_WEIGHT),
            ("count_weight", self.count_weight, 1, _MOST_WEIGHT),
            ("bits", self.bits, FEWEST_BITS, _MOST_BITS),
            ("shared_weight", self.shared_weight, 0, max(0, self.mean_weight - 1) // max(1, self.classes)),
        )
        for name, value, least, most in rules:
            check_integer(name, value, least, most)
        if self.moments not in (0, 1, self.classes):
            rule = "must be none, one, or one for each class"
            raise UsageError("moments", rule, got=self.moments, remedy="give one of these")
        # Checks the radius.
        object.__setattr__(self, "radius", self.counted_kernel().radius)

    bounds = None
    """None: the ball bounds the vectors."""

    columns = None
    """None: vectors have none."""

    def counted_kernel(self) -> ClassProductKernel:
        """The inner product within a class, of rows (class, vector)."""
        return ClassProductKernel(self.dim + 1, self.radius)

    @property
    def length(self) -> int:
        """S: no whole vector is longer."""
        return 1 << self.bits

    @property
    def unit(self) -> int:
        """The integer that stands for the radius."""
        return whole_length(self.dim, self.bits)

    @property
    def shape(self) -> tuple[int, int]:
        """One row: for each class its sums and its number, then the second moments."""
        return 1, self.classes * (self.dim + 1) + self.moments * (self.dim * (self.dim + 1) // 2)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """See the class: proven there for both relations."""
        square = self.length**2
        own, shared = self.mean_weight - self.shared_weight, self.shared_weight
        mean = (own**2 + (self.classes - 1) * shared**2) * square
        count = self.count_weight**2
        second = (SQUARE_WEIGHT * square) ** 2 if self.moments else 0
        l1 = math.isqrt(self.dim * (own + (self.classes - 1) * shared) ** 2 * square) + self.count_weight
        steps = (self.mean_weight * self.length, self.count_weight)
        l1_second = SQUARE_WEIGHT * square + PRODUCT_WEIGHT * (self.dim - 1) * square // 2
        if relation is Relation.ADD_REMOVE:
            l1 += l1_second if self.moments else 0
            largest = max(*steps, SQUARE_WEIGHT * square if self.moments else 0)
            return Sensitivity(l1 + 1, mean + count + second, largest)
        if not self.moments or mean >= 2 * second:
            stays = 4 * mean
        else:
            stays = 2 * mean + 2 * second - (-(mean**2) // (2 * second))
        moved = max(2 * (self.mean_weight**2 * square + count + second), stays)
        l1 *= 2
        if self.moments > 1:
            l1 += 2 * l1_second
        elif self.moments:
            l1 += math.isqrt(self.dim * (self.dim + 1) * second)
        largest = max(2 * steps[0], steps[1], PRODUCT_WEIGHT * square if self.moments else 0)
        return Sensitivity(l1 + 2, moved, largest)

    def prepare(self, data: object) -> Batch:
        """Rows (class, vector) of finite numbers; DataRefused for a class that there is not."""
        batch = dense_batch(data, self.dim + 1, None, clip=True, columns=None)
        codes = batch.arrays[0][:, 0]
        if not (np.isin(codes, np.arange(self.classes))).all():
            rule = f"must have a class from 0 to {self.classes - 1} in its first column"
            remedy = "give the place of the label in the list of classes"
            raise DataRefused("X", rule, got="another number", remedy=remedy)
        return batch

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's cells. Products of integers of 14 bits are exact in double
        precision for blocks of 2²² numbers.
        """
        rows, width = batch.arrays[0], self.dim + 1
        upper = np.triu_indices(self.dim) if self.moments else None
        for at in slices(len(rows), _NUMBERS_AT_A_TIME // width):
            part = rows[at]
            codes = part[:, 0].astype(np.int64)
            whole = whole_vectors(part[:, 1:].astype(np.float64), self.radius, self.bits)
            for code in np.unique(codes).tolist():
                members = whole[codes == code]
                cells = table[0, code * width : (code + 1) * width]
                cells[:-1] += step * self.mean_weight * members.sum(axis=0)
                cells[-1] += step * self.count_weight * len(members)
            if self.shared_weight:
                sums = table[0, : self.classes * width].reshape(self.classes, width)[:, :-1]
                sums -= step * self.shared_weight * whole.sum(axis=0)
            if upper is None:
                continue
            weights, size = step * square_weights(self.dim), len(upper[0])
            for group in range(self.moments):
                real = (whole if self.moments == 1 else whole[codes == group]).astype(np.float64)
                start_of = self.classes * width + group * size
                products = (real.T @ real)[upper].astype(np.int64)
                table[0, start_of : start_of + size] += weights * products

    def class_sums(self, table: Table) -> Floats:
        """Σ x of each class in units of the radius, shape (classes, dim)."""
        cells = table[0, : self.classes * (self.dim + 1)].reshape(self.classes, -1)[:, :-1]
        if self.shared_weight:
            cells = cells + self.shared_weight * (cells.sum(axis=0) / self._total_weight)
        return np.asarray(cells / (self.mean_weight * self.unit))

    @property
    def _total_weight(self) -> int:
        return self.mean_weight - self.classes * self.shared_weight

    def sum_noise(self, weights: Floats, totals: Floats) -> Floats:
        """The variance of Σ_c w_c·S_c, S_c a column of :meth:`class_sums`, for noise of variance 1 in all
        cells, by Σ w_c² and Σ w_c: 1/m² in differences of classes, and 1/(m − C·s)² in their mean.
        """
        apart, together = 1.0 / self.mean_weight**2, 1.0 / self._total_weight**2
        return np.asarray((apart * weights + (together - apart) / self.classes * totals**2) / self.unit**2)

    @property
    def sum_gain(self) -> float:
        """The variance of a number in :meth:`class_sums` for noise of variance 1 in all cells."""
        return float(self.sum_noise(np.ones(1), np.ones(1))[0])

    def class_counts(self, table: Table) -> Floats:
        """The number of records of each class, shape (classes,)."""
        cells = table[0, : self.classes * (self.dim + 1)].reshape(self.classes, -1)
        return np.asarray(cells[:, -1] / self.count_weight)

    def second_moments(self, table: Table) -> Floats:
        """Σ x xᵀ in units of the squared radius, symmetric, shape (moments, dim, dim)."""
        cells = table[0, self.classes * (self.dim + 1) :].reshape(self.moments, -1)
        unit = square_weights(self.dim) * float(self.unit**2)
        sums = [symmetric(each / unit, self.dim) for each in cells]
        return np.reshape(sums, (self.moments, self.dim, self.dim))

    def _reading(self, kernel: Kernel) -> ClassMomentsReading:
        return ClassMomentsReading(self, kernel)


@dataclass(frozen=True)
class ClassMomentsReading(LinearReading):
    """The inner product of a query with the sum of a class: exact up to noise and rounding."""

    basis: ClassMoments
    kernel: Kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """q·Σx over the class of each query, in units of the radius; 0 for a class that there is not."""
        rows = batch.arrays[0].astype(np.float64)
        products = rows[:, 1:] @ self.basis.class_sums(table).T / self.basis.radius
        same = rows[:, :1] == np.arange(self.basis.classes)
        return np.asarray((products * same).sum(axis=1))

    def noise_gain(self, batch: Batch) -> Floats:
        """The squared length of a query, in units of the radius and of a cell."""
        rows = batch.arrays[0].astype(np.float64)
        known = np.isin(rows[:, 0], np.arange(self.basis.classes))
        lengths = (rows[:, 1:] ** 2).sum(axis=1) / self.basis.radius**2
        return np.asarray(known * lengths * self.basis.sum_gain)

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The squared error by the rounding of records to integers, which is independent between records and
        uniform within half a step of each column, as if all records were of the query's class.
        """
        rows = batch.arrays[0].astype(np.float64)
        lengths = (rows[:, 1:] ** 2).sum(axis=1) / self.basis.radius**2
        return np.asarray(max(count, 0.0) * lengths / (12.0 * self.basis.unit**2))

    def total(self, table: Table) -> tuple[float, float]:
        """The numbers of all classes together."""
        return float(self.basis.class_counts(table).sum()), self.basis.classes / self.basis.count_weight**2
