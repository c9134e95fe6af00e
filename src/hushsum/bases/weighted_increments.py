"""Several weighted increments of one record: what it costs to count a record and its opposite in one row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import Basis, RowAverages, SampledReading, Table
from hushsum.bases.hash_rows import MAX_ROWS, MAX_WIDTH
from hushsum.bases.registry import register
from hushsum.errors import UsageError, shown
from hushsum.kernels.base import Batch, Hasher, Kernel, ProjectionKernel
from hushsum.kernels.parameters import check_columns, integer_seed, positive_integer
from hushsum.kernels.registry import Role
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds
from hushsum.records.native_batch import as_dense

MOST_WEIGHT = 1 << 10
MAX_CELLS = 1 << 28

PROJECTED = Role("is hashed by random projections", lambda kernel: isinstance(kernel, ProjectionKernel))


@register
@dataclass(frozen=True)
class IncrementRows(Basis):
    """R hash rows in which a record x adds ``weights[0]`` to the cell of x and ``weights[1]`` to that of −x.

    Answers are sums of ``weights[0]·k(x, q) + weights[1]·k(−x, q)``. With the asymmetric angular kernel and
    weights (1, 1) that is the surrogate loss of linear regression at one query; with (1, −1) an odd function
    of the inner product. The same functions are read from `HashRows` as f(q) ± f(−q), with noise that is
    smaller by √2 under δ or ρ, and by 2/√2 under pure ε: this basis is for comparison with the papers, and
    for queries that can be made only once.

    Parameters
    ----------
    kernel : ProjectionKernel
        Whose records are vectors.
    rows, width, seed, columns
        As for `HashRows`.
    weights : (int, int)
        Not both zero, of size at most 1024.

    Privacy
    -------
    Let P be the sum of the positive weights, M that of the sizes of the negative ones, S = P + M. In each row
    a record adds a vector u with entries between −M and P and ‖u‖₁ ≤ S; positive increments may meet in one
    cell, and negative ones in another, so ‖u‖₂² ≤ P² + M².

    - It appears or disappears: the row moves by u. Δ1 = R·S, Δ2² = R·(P² + M²), no cell by more than max(P,
    M).
    - It is replaced, or moves: by u − v. ‖u − v‖₁ ≤ 2S, no entry exceeds S, so ‖u − v‖₂² ≤ S·2S: Δ1 = 2R·S,
      Δ2² = 2R·S².
    - It appears m times: m times as far; persons with up to m records have m·Δ.

    Both cells depend on that record alone, bit for bit.
    """

    name: ClassVar[str] = "increment-rows"

    kernel: Kernel
    rows: int
    width: int
    seed: int
    weights: tuple[int, ...] = (1, 1)
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        PROJECTED.check(self.kernel, "increments")
        rows = positive_integer("rows", self.rows, at_most=MAX_ROWS)
        width = positive_integer("width", self.width, at_most=MAX_WIDTH)
        whole = all(type(weight) is int and abs(weight) <= MOST_WEIGHT for weight in self.weights)
        if len(self.weights) != 2 or not whole or not any(self.weights):
            raise UsageError(
                parameter="weights",
                rule=f"must be two integers from −{MOST_WEIGHT} to {MOST_WEIGHT}, not both 0",
                got=shown(self.weights),
                remedy="give those of a record and of its opposite",
            )
        if width < 2 or rows * width > MAX_CELLS:
            raise UsageError(
                parameter="width", rule=f"must be at least 2, and rows × width at most {MAX_CELLS}", got=width
            )
        check_columns(self.columns, self.kernel.dim or 1)
        distinct = self._projected.distinct_hashes()
        width = width if distinct is None else min(width, distinct)
        for field, value in (("rows", rows), ("width", width), ("seed", integer_seed(self.seed))):
            object.__setattr__(self, field, value)

    @property
    def _projected(self) -> ProjectionKernel:
        assert isinstance(self.kernel, ProjectionKernel)
        return self.kernel

    @property
    def bounds(self) -> Bounds | None:
        """None: a box would move the origin."""
        return None

    def counted_kernel(self) -> Kernel:
        """The kernel of one increment."""
        return self.kernel

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, width)."""
        return self.rows, self.width

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """As proven above."""
        positive = sum(weight for weight in self.weights if weight > 0)
        negative = -sum(weight for weight in self.weights if weight < 0)
        total = positive + negative
        if relation is Relation.ADD_REMOVE:
            squares = positive**2 + negative**2
            return Sensitivity(self.rows * total, self.rows * squares, max(positive, negative))
        return Sensitivity(2 * self.rows * total, 2 * self.rows * total**2, total)

    def _prepare(self, data: object, *, clip: bool) -> Batch:
        if not clip:
            return self.kernel.prepare(data, clip=False, columns=self.columns)
        assert self.kernel.dim is not None
        rows = as_dense(data, dim=self.kernel.dim, columns=self.columns)
        return Batch.joined([self.kernel.prepare(rows), self.kernel.prepare(-rows)])

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times the weights to the cells of each record and its opposite, in every row."""
        for weight, part in zip(self.weights, batch.parts(), strict=True):
            if weight:
                counted = np.zeros(self.shape, np.int64)
                self.hasher.count(*part.arrays, counted, step, threads)
                table += weight * counted

    def prefix(self, rows: int) -> Self:
        """The first rows; row r is the same whatever the number of rows."""
        return self if rows == self.rows else replace(self, rows=rows)

    @cached_property
    def fold_rate(self) -> float:
        """1/W, or 0 where every hash value has its own cell."""
        distinct = self._projected.distinct_hashes()
        return 1.0 / self.width if distinct is None or distinct > self.width else 0.0

    @cached_property
    def hasher(self) -> Hasher:
        """The native hash functions."""
        return self._projected.hasher(rows=self.rows, width=self.width, seed=self.seed)

    def _reading(self, kernel: Kernel) -> IncrementReading:
        return IncrementReading(self, kernel)


@dataclass(frozen=True)
class IncrementReading(SampledReading):
    """The mean over rows of the cell in which a query falls, with the fold removed by the mean of the rows'
    sums, which is what would be in a cell if all were alike, times the width.
    """

    basis: IncrementRows
    kernel: Kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Sums of weights[0]·k(x, q) + weights[1]·k(−x, q)."""
        return self.spread(table, batch, threads=threads).mean

    def spread(self, table: Table, batch: Batch, *, threads: int) -> RowAverages:
        """The same with the spread over independent blocks of rows."""
        rate, block = self.basis.fold_rate, self._block
        keep = 1.0 / (1.0 - rate)
        mean, variance = self.basis.hasher.read(*batch.arrays, np.ascontiguousarray(table), block, threads)
        folded = rate * float(table.sum(dtype=np.int64)) / self.basis.rows
        return RowAverages(keep * (mean - folded), keep**2 * variance, -(-self.basis.rows // block))

    def noise_gain(self, batch: Batch) -> Floats:
        """Of a coefficient a − b in one cell of each row, and −b in the others."""
        rows, width = self.basis.shape
        rate = self.basis.fold_rate
        a, b = 1.0 / ((1.0 - rate) * rows), rate / ((1.0 - rate) * rows)
        return np.full(len(batch), rows * ((a - b) ** 2 + (width - 1) * b * b))

    def total(self, table: Table) -> tuple[float, float] | None:
        """The mean of the rows' sums over the sum of the weights; None where that is 0."""
        rows, width = self.basis.shape
        weight = sum(self.basis.weights)
        if weight == 0:
            return None
        return float(table.sum(dtype=np.int64)) / (rows * weight), width / (rows * weight**2)

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """A bound: an answer of one row is at most S·N in size."""
        most = sum(map(abs, self.basis.weights)) * max(count, 1.0)
        blocks = -(-self.basis.rows // self._block)
        return np.full(len(batch), most**2 / blocks)

    def rows(self, table: Table, batch: Batch) -> tuple[Floats, int]:
        """What each row says."""
        rate = self.basis.fold_rate
        cells = self.basis.hasher.cells(*batch.arrays, self.basis.rows)
        values = np.asarray(table[np.arange(self.basis.rows), cells], np.float64)
        folded = rate * float(table.sum(dtype=np.int64)) / self.basis.rows
        return (values - folded) / (1.0 - rate), self._block

    @property
    def _block(self) -> int:
        return self.basis._projected.independent_rows()
