"""Second moments of records in whole numbers: the sums that determine every linear regression on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import Basis, LinearReading, Table
from hushsum.bases.registry import register
from hushsum.errors import UsageError, shown
from hushsum.kernels.base import Batch, Kernel
from hushsum.kernels.parameters import check_parameters
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.norm_clipping import UnitBall

MOST_FEATURES = 4096
MOST_BITS = 20
_TARGET_SHIFT = 2
"""The target's square is counted in units 2² times coarser: it is one cell, and needs little precision."""

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
    """Sums of products of a record's features and target, each product a whole number.

    A record (x, y) is mapped into the unit ball (`UnitBall`) and rounded to whole numbers z = (φ, v) of at
    most ``2**bits``. It adds the upper triangle of φ φᵀ, the products v·φ, and ⌊v²/4⌋. Products and sums of
    whole numbers are exact, so the table does not depend on the order of records. The released function is
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
        if type(self.bits) is not int or not 4 <= self.bits <= MOST_BITS:
            raise UsageError(
                parameter="bits",
                rule=f"must be an integer from 4 to {MOST_BITS}",
                got=shown(self.bits),
                remedy="try 12",
            )
        if self.ball.features > MOST_FEATURES:
            raise UsageError(
                parameter="moments",
                rule=f"take at most {MOST_FEATURES - 1} columns and a target",
                got=self.ball.columns - 1,
                remedy="select columns, or use the sketch",
            )
        if self.columns is not None and len(self.columns) != self.ball.columns:
            raise UsageError(
                parameter="columns",
                rule=f"must be {self.ball.columns} names, the target's last",
                got=len(self.columns),
                remedy="name them all",
            )

    @property
    def bounds(self) -> None:
        """None: queries are models, and those of the records are in the ball."""
        return

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
        """S: the whole number that stands for 1."""
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
            return Sensitivity(
                l1=_half_up(reach**2 + square) + self.unit * reach + target,
                l2_squared=_half_up(square**2 + entry**2 * square) + square**2 + target**2,
                largest=largest,
            )
        reach = min(number * entry, math.isqrt(2 * number * square) + 1)
        diagonal = min((number - 1) * entry**2, 2 * square)
        return Sensitivity(
            l1=_half_up((reach + self.unit) ** 2) + _half_up(diagonal) + target,
            l2_squared=4 * square**2 + entry**2 * square + target**2,
            largest=2 * largest,
        )

    def prepare(self, data: object) -> Batch:
        """Records with the target in the last column, as whole numbers (φ, v)."""
        features, target = self.ball.of_records(data, columns=self.columns)
        rows = np.empty((len(features), self.ball.features + 1), np.int64)
        rows[:, 0] = self.level
        rows[:, 1:-1] = self._bounded(features[:, 1:] * self.unit)
        rows[:, -1] = np.rint(np.clip(target, -1.0, 1.0) * self.unit)
        return Batch((rows,), len(rows))

    def _bounded(self, features: Floats) -> NDArray[np.int64]:
        """Rounded to whole numbers whose squares sum to at most S² less the constant feature's; checked."""
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

        Matrix products of whole numbers in double precision are exact in any order while every sum stays
        below 2⁵³, which blocks of 2¹² records of 20 bits and 2¹⁶ of 12 keep.
        """
        rows: NDArray[np.int64] = batch.arrays[0]
        features = self.ball.features
        upper = np.triu_indices(features)
        at_a_time = min(_ROWS_AT_A_TIME, 1 << (52 - 2 * self.bits))
        for start in range(0, len(rows), at_a_time):
            part = rows[start : start + at_a_time]
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
        values: Floats = ((queries @ self.basis.matrix(table)) * queries).sum(axis=1)
        return values

    def noise_gain(self, batch: Batch) -> Floats:
        """The sum of the squared weights of the cells in qᵀ (Σ z zᵀ) q."""
        squares = batch.arrays[0].astype(np.float64) ** 2
        inner, last = squares[:, :-1], squares[:, -1]
        total = inner.sum(axis=1)
        triangle = 2.0 * total**2 - (inner**2).sum(axis=1)
        gain: Floats = (
            triangle + 4.0 * total * last + (1 << 2 * _TARGET_SHIFT) * last**2
        ) / self.basis.unit**4
        return gain

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """Of the rounding of records to integers: independent between records, uniform within half a step of
        each column; and of the target's square, which is rounded down to a multiple of 4.
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
