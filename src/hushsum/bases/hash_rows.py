"""The hash rows of the RACE sketch: every record adds 1 to one cell of every row.

At the end is what the paper proves about their error. Letters as in Coleman and Shrivastava (CCS 2021): R
rows, privacy ε, failure probability δ (not the δ of a claim), f̃ = Σ √k(x, q). The sum f̃ is private; from a
release use ``f̃² ≤ N̂·f̂``, with k + (1 − k)/W for k when hash values are folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._native import CounterTable
from hushsum._types import Floats
from hushsum.bases.base import Basis, Cells, RowAverages, RowReading
from hushsum.bases.registry import register
from hushsum.errors import Parameter, UsageError
from hushsum.kernels.base import Batch, ColumnKernel, HashableKernel, Hasher, Kernel
from hushsum.kernels.parameters import check_columns, integer_seed, positive_integer
from hushsum.kernels.registry import HASHABLE
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds

MAX_ROWS = 1 << 24
MAX_WIDTH = 1 << 30
MAX_CELLS = 1 << 34
LARGE_TABLE = 1 << 24
"""Cells. From here on counts start at one byte, and noisy cells are packed and memory-mapped."""

MAX_NUMBERS = 1 << 32
"""Random numbers behind the hash functions: a file that requires more is refused before any is made."""


def checked_size(rows: int, width: int) -> tuple[int, int]:
    """Rows and width of a table of hash rows, each in its range."""
    rows = positive_integer("rows", rows, at_most=MAX_ROWS)
    width = positive_integer("width", width, at_most=MAX_WIDTH)
    if width < 2:
        raise UsageError(
            parameter="width",
            rule="must be at least 2",
            got="1",
            remedy="with one cell every record looks alike, try 1000",
        )
    return rows, width


def check_table(
    basis: Basis, kernel: Kernel, rows: int, width: int, *, numbers: int, most_cells: int
) -> None:
    """Check the size of a table, of which a row needs so many random numbers, and its columns and bounds."""
    if rows * numbers > MAX_NUMBERS:
        raise UsageError(
            parameter="rows",
            rule=f"× columns × power must be at most {MAX_NUMBERS}",
            got="more",
            remedy="use fewer rows",
        )
    if rows * width > most_cells:
        raise UsageError(
            parameter="rows",
            rule=("× ", Parameter("width"), f" must be at most {most_cells}"),
            got=rows * width,
            remedy="use fewer rows",
        )
    check_columns(basis.columns, kernel.dim or 1)
    if basis.bounds is not None and not isinstance(kernel, ColumnKernel):
        raise UsageError(parameter="bounds", rule=f"must be left out: the {kernel.name} kernel takes none")


@register
@dataclass(frozen=True)
class HashRows(Basis):
    """R independent hash functions, each with a row of W cells; a record adds 1 to its cell of every row.

    Parameters
    ----------
    kernel : HashableKernel
        Its hash functions collide for x and q with probability k(x, q).
    rows : int
        R. More rows answer more precisely, and take more noise under pure ε.
    width : int
        W. Hash values beyond W are folded into W cells by a pairwise independent hash. A kernel with fewer
        values than that gets only the cells it can use.
    seed : int
        Public. Equal seeds give equal hash functions on every machine.
    bounds : Bounds, optional
        Records are clipped to this box, which is declared and never learned from the data.
    columns : tuple of str, optional
        What the columns are called, in their order. Frames and tables are then read by name, arrays by
        position.

    Privacy
    -------
    One record present or absent moves exactly one cell of each row by 1: Δ1 = R, Δ2 = √R. One record
    replaced moves at most two cells of each row by 1: Δ1 = 2R, Δ2 = √(2R). A record's cells depend on
    that record alone, bit for bit.

    Notes
    -----
    Coleman and Shrivastava, *A one-pass distributed and private sketch for kernel sums*, CCS 2021,
    Algorithm 1.
    """

    name: ClassVar[str] = "hash-rows"

    kernel: Kernel
    rows: int
    width: int
    seed: int
    bounds: Bounds | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        HASHABLE.check(self.kernel, "race")
        rows, width = checked_size(self.rows, self.width)
        distinct = self._hashable.distinct_hashes()
        width = width if distinct is None else min(width, distinct)
        numbers = self._hashable.numbers_per_row()
        check_table(self, self.kernel, rows, width, numbers=numbers, most_cells=MAX_CELLS)
        for field, value in (("rows", rows), ("width", width), ("seed", integer_seed(self.seed))):
            object.__setattr__(self, field, value)

    @property
    def _hashable(self) -> HashableKernel:
        assert isinstance(self.kernel, HashableKernel)
        return self.kernel

    def counted_kernel(self) -> Kernel:
        """The kernel of the hash functions."""
        return self.kernel

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, width)."""
        return self.rows, self.width

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """In each row one cell moves by 1 (add/remove), or two (replace)."""
        moved = self.rows if relation is Relation.ADD_REMOVE else 2 * self.rows
        return Sensitivity(l1=moved, l2_squared=moved, largest=1)

    def new_table(self) -> NDArray[np.int64] | CounterTable:
        """Zeros; in counters that start at one byte where the table is large."""
        if self.rows * self.width >= LARGE_TABLE:
            return CounterTable(self.rows, self.width)
        return np.zeros(self.shape, np.int64)

    def accumulate(
        self, table: NDArray[np.int64] | CounterTable, batch: Batch, *, step: int, threads: int
    ) -> None:
        """Add ``step`` to each record's cell in every row."""
        self.hasher.count(*batch.arrays, table, step, threads)

    def prefix(self, rows: int) -> Self:
        """The first rows; row r is the same whatever the number of rows."""
        return self if rows == self.rows else replace(self, rows=rows)

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """Rows that balance Laplace noise, which grows with them, against hashing, which falls."""
        variance = self._hashable.typical_row_variance()
        return rows_for_laplace(max(count, 1), epsilon / moves, variance, self.rows)

    def cells(self, batch: Batch) -> NDArray[np.int32]:
        """The cell of each record in each row, shape (len(batch), rows)."""
        return self.hasher.cells(*batch.arrays, self.rows)

    @cached_property
    def fold_rate(self) -> float:
        """1/W, or 0 where every hash value has its own cell."""
        distinct = self._hashable.distinct_hashes()
        return 1.0 / self.width if distinct is None or distinct > self.width else 0.0

    @cached_property
    def independent_rows(self) -> int:
        """How many consecutive rows share random numbers."""
        return self._hashable.independent_rows()

    @cached_property
    def hasher(self) -> Hasher:
        """The native hash functions."""
        return self._hashable.hasher(rows=self.rows, width=self.width, seed=self.seed)

    def _reading(self, kernel: Kernel) -> HashReading:
        return HashReading(self, kernel)


@dataclass(frozen=True)
class HashReading(RowReading):
    """The mean over rows of the cell in which a query falls (Algorithm 2), with the fold removed."""

    basis: HashRows
    kernel: Kernel

    @property
    def fold_rate(self) -> float:
        """1/W, or 0 where every hash value has its own cell."""
        return self.basis.fold_rate

    @property
    def independent_rows(self) -> int:
        """How many consecutive rows share random numbers."""
        return self.basis.independent_rows

    def cells(self, batch: Batch) -> NDArray[np.int32]:
        """The cell of each record in each row."""
        return self.basis.cells(batch)

    def read(self, table: Cells, batch: Batch, *, threads: int) -> RowAverages:
        """Mean and variance over rows of each query's cell, before normalisation."""
        block = self.basis.independent_rows
        mean, variance = self.basis.hasher.read(*batch.arrays, _native_table(table), block, threads)
        return RowAverages(mean, variance, -(-self.basis.rows // block))

    def sums(self, table: Cells, batch: Batch, *, count: float, scale: float, threads: int) -> Floats:
        """``scale`` times the kernel sums."""
        slope, shift = self._line(count, scale)
        return self.basis.hasher.means(*batch.arrays, _native_table(table), slope, shift, threads)

    def reader(self, table: Cells, *, count: float, scale: float) -> Callable[[object], Floats | None]:
        """A native reader of plain arrays, where the hash functions have one and bounds do not move the
        origin.
        """
        make = getattr(self.basis.hasher, "reader", None)
        # Queries that get a coordinate more, as of an asymmetric kernel, are prepared first.
        plain = getattr(self.basis.hasher, "dim", None) == self.kernel.dim
        if make is None or not plain or self.basis.bounds is not None:
            return lambda queries: None
        reader: Callable[[object], Floats | None] = make(_native_table(table), *self._line(count, scale))
        return reader

    def unfold(self, mean: Floats, count: float) -> Floats:
        """Remove the fold: E[cell] = Σ k + (1 − k)/W, so f̂ = (mean − N̂/W)/(1 − 1/W)."""
        slope, shift = self._line(count, 1.0)
        return mean * slope + shift

    def _line(self, count: float, scale: float) -> tuple[float, float]:
        """Slope and shift that take a mean cell to ``scale`` times the kernel sum."""
        slope = scale / (1.0 - self.fold_rate)
        return slope, -count * self.fold_rate * slope


def _native_table(table: Cells) -> Any:
    """What the native loops read: the array, or the native side of a packed table."""
    return table if isinstance(table, np.ndarray) else table.native


def groups_for(failure: float) -> int:
    """Groups k = ⌈8 ln(1/δ)⌉ of the median of means (Lemma 3.3).

    >>> groups_for(0.05)
    24
    """
    if not 0.0 < failure < 1.0:
        raise UsageError(
            parameter="failure", rule="must be between 0 and 1", got=f"{failure}", remedy="try 0.05"
        )
    return max(1, math.ceil(8.0 * math.log(1.0 / failure)))


def median_of_means_bound(row_variance: float, rows: int, failure: float) -> float:
    """Lemma 3.3: with probability 1 − δ the median of means is within √(32·σ²·ln(1/δ)/R) of the mean; R ≥ 8
    ln(1/δ).

    >>> round(median_of_means_bound(row_variance=100.0, rows=1000, failure=0.05), 3)
    3.096
    """
    if rows < groups_for(failure):
        raise UsageError(
            parameter="rows",
            rule=f"must be at least 8·ln(1/failure) = {groups_for(failure)} for this bound",
            got=f"{rows}",
            remedy="use more rows or a larger failure probability",
        )
    return math.sqrt(32.0 * row_variance * math.log(1.0 / failure) / rows)


def theorem_3_4(root_sum: float, rows: int, epsilon: float, failure: float) -> float:
    """Theorem 3.4: |f̂ − f| ≤ √(f̃²/R + 2R/ε²)·√(32 ln(1/δ)) for the median of means under Laplace noise of
    scale R/ε.

    >>> round(theorem_3_4(root_sum=1000.0, rows=500, epsilon=1.0, failure=0.05), 1)
    536.3
    """
    return median_of_means_bound(root_sum**2 + 2.0 * (rows / epsilon) ** 2, rows, failure)


def corollary_3_5_rows(root_sum: float, epsilon: float) -> int:
    """Corollary 3.5: the number of rows R = ⌈f̃·ε/√2⌉ that minimises Theorem 3.4.

    >>> corollary_3_5_rows(root_sum=1000.0, epsilon=1.0)
    708
    """
    return max(1, math.ceil(root_sum * epsilon / math.sqrt(2.0)))


def corollary_3_5(root_sum: float, epsilon: float, failure: float) -> float:
    """Corollary 3.5: with that many rows, |f̂ − f| ≤ 16·√(f̃·ln(1/δ)/ε).

    >>> round(corollary_3_5(root_sum=1000.0, epsilon=1.0, failure=0.05), 1)
    875.7
    """
    groups_for(failure)
    return 16.0 * math.sqrt(root_sum / epsilon * math.log(1.0 / failure))


def rows_for_laplace(records: float, epsilon: float, variance: float, capacity: int) -> int:
    """The rows a pure-ε release should publish, without looking at anything private but a paid count.

    The error √(v·N²/R + 2R/ε²) is smallest at R = N·ε·√(v/2), with v the typical ``variance`` of a row over
    N².

    >>> rows_for_laplace(records=245_000, epsilon=0.1, variance=3e-3, capacity=2000)
    949
    """
    best = records * epsilon * math.sqrt(variance / 2.0)
    return max(1, min(capacity, math.ceil(best)))
