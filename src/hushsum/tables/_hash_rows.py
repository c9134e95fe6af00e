"""The hash rows of the RACE sketch: every record adds 1 to one cell of every row; also those of a
graph, whose records are adjacency rows, the sets of neighbours of its nodes.

Letters as in Coleman and Shrivastava (CCS 2021): R rows of W cells, f̂ the answer, N̂ the number of records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum._native import CounterTable
from hushsum._types import Floats, Integers
from hushsum.errors import ClaimError, Parameter, UsageError, shown
from hushsum.kernels import (
    HASHABLE,
    Batch,
    ColumnKernel,
    CombinationKernel,
    HashableCombination,
    HashableKernel,
    Hasher,
    Kernel,
    ProjectionKernel,
    Role,
    check_columns,
    derived_seed,
    integer_seed,
    positive_integer,
)
from hushsum.privacy import ADJACENCY_ROW, DIRECTED_EDGE, EDGE, Relation, Sensitivity, UnitChange
from hushsum.records import Bounds, Graph, as_dense

from ._base import Basis, Cells, Reading, RowAverages, SampledReading, Table, register

__all__ = [
    "LARGE_TABLE", "AdjacencyRows", "DividedRows", "HashRows", "IncrementRows", "RowReading", "groups_for",
    "median_of_means_bound", "rows_for_laplace",
]  # fmt: skip

MAX_ROWS = 1 << 24
MAX_WIDTH = 1 << 30
MAX_CELLS = 1 << 34
LARGE_TABLE = 1 << 24
"""Cells. From here on counts start at one byte, and noisy cells are packed and memory-mapped."""

MAX_NUMBERS = 1 << 32
"""Random numbers behind the hash functions: a file that requires more is refused before any is made."""


def fold_rate(kernel: HashableKernel, width: int) -> float:
    """The probability that different hash values share a cell: 1/W, or 0 where each value has a cell."""
    distinct = kernel.distinct_hashes()
    return 1.0 / width if distinct is None or distinct > width else 0.0


@runtime_checkable
@dataclass(frozen=True)
class RowsBasis(Basis, Protocol):
    """R hash functions with a row of W cells each; a record adds 1 to one cell of every row."""

    kernel: Kernel
    rows: int
    width: int
    seed: int

    def _settle(self, *, numbers: int, most_cells: int, distinct: int | None = None) -> None:
        """Check the size of the table, its columns and bounds; a row needs ``numbers`` random numbers.

        A kernel of ``distinct`` hash values gets only as many cells.
        """
        rows = positive_integer("rows", self.rows, at_most=MAX_ROWS)
        width = positive_integer("width", self.width, at_most=MAX_WIDTH)
        if width < 2:
            remedy = "with one cell every record looks alike, try 1000"
            raise UsageError("width", "must be at least 2", got="1", remedy=remedy)
        width = width if distinct is None else min(width, distinct)
        if rows * numbers > MAX_NUMBERS:
            rule = f"× columns × power must be at most {MAX_NUMBERS}"
            raise UsageError("rows", rule, got="more", remedy="use fewer rows")
        if rows * width > most_cells:
            size = ("× ", Parameter("width"), f" must be at most {most_cells}")
            raise UsageError("rows", size, got=rows * width, remedy="use fewer rows")
        check_columns(self.columns, self.kernel.dim or 1)
        if self.bounds is not None and not isinstance(self.kernel, ColumnKernel):
            raise UsageError("bounds", f"must be left out: the {self.kernel.name} kernel takes none")
        for name, value in (("rows", rows), ("width", width), ("seed", integer_seed(self.seed))):
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, width)."""
        return self.rows, self.width

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """In each row one cell moves by 1 (add/remove), or two (replace)."""
        moved = self.rows if relation is Relation.ADD_REMOVE else 2 * self.rows
        return Sensitivity(l1=moved, l2_squared=moved, largest=1)

    def prefix(self, rows: int) -> Self:
        """The first rows; row r is the same whatever the number of rows."""
        return self if rows == self.rows else replace(cast("Any", self), rows=rows)


@runtime_checkable
@dataclass(frozen=True)
class RowsOfOneKernel(RowsBasis, Protocol):
    """Hash functions that are all of the kernel itself."""

    def _settle_one(self, most_cells: int) -> None:
        numbers, distinct = self._hashable.numbers_per_row(), self._hashable.distinct_hashes()
        self._settle(numbers=numbers, most_cells=most_cells, distinct=distinct)

    @property
    def _hashable(self) -> HashableKernel:
        assert isinstance(self.kernel, HashableKernel)
        return self.kernel

    @cached_property
    def fold_rate(self) -> float:
        """1/W, or 0 where every hash value has its own cell."""
        return fold_rate(self._hashable, self.width)

    @cached_property
    def independent_rows(self) -> int:
        """How many consecutive rows share random numbers."""
        return self._hashable.independent_rows()

    @property
    def blocks(self) -> int:
        """How many independent blocks of rows there are."""
        return -(-self.rows // self.independent_rows)

    @cached_property
    def hasher(self) -> Hasher:
        """The native hash functions."""
        return self._hashable.hasher(rows=self.rows, width=self.width, seed=self.seed)


@register
@dataclass(frozen=True)
class HashRows(RowsOfOneKernel):
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
    in_pages: ClassVar[bool] = True

    bounds: Bounds | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        HASHABLE.check(self.kernel, "race")
        self._settle_one(MAX_CELLS)

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

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """Rows that balance Laplace noise, which grows with them, against hashing, which falls."""
        variance = self._hashable.typical_row_variance()
        return rows_for_laplace(max(count, 1), epsilon / moves, variance, self.rows)

    def cells(self, batch: Batch) -> NDArray[np.int32]:
        """The cell of each record in each row, shape (len(batch), rows)."""
        return self.hasher.cells(*batch.arrays, self.rows)

    def _reading(self, kernel: Kernel) -> RowReading:
        return RowReading(self, kernel)


def shared_rows(one: NDArray[np.int32], other: NDArray[np.int32]) -> Floats:
    """The part of the rows in which two records have the same cell, for all pairs; cells by record and row.

    >>> shared_rows(np.array([[1, 2]], np.int32), np.array([[1, 2], [1, 3]], np.int32))
    array([[1. , 0.5]])
    """
    shared = np.empty((len(one), len(other)))
    for i, cells in enumerate(one):
        shared[i] = np.count_nonzero(other == cells, axis=1)
    return np.asarray(shared / one.shape[1])


@dataclass(frozen=True)
class RowReading(Reading):
    """The mean over rows of the cell in which a query falls (Algorithm 2), with the fold removed: each row
    estimates the same kernel sum.
    """

    basis: HashRows
    kernel: Kernel

    def read(self, table: Cells, batch: Batch, *, threads: int) -> RowAverages:
        """Mean and variance over rows of each query's cell, before normalisation."""
        block = self.basis.independent_rows
        mean, variance = self.basis.hasher.read(*batch.arrays, _native_table(table), block, threads)
        return RowAverages(mean, variance, self.basis.blocks)

    def sums(self, table: Cells, batch: Batch, *, count: float, scale: float, threads: int) -> Floats:
        """``scale`` times the kernel sums at prepared queries: read and unfold in one step."""
        slope, shift = self._line(count, scale)
        return self.basis.hasher.means(*batch.arrays, _native_table(table), slope, shift, threads)

    def reader(self, table: Cells, *, count: float, scale: float) -> Callable[[object], Floats | None]:
        """The same for plain arrays, quickly; None for anything that needs checking or converting.

        It is native, where the hash functions have a reader and bounds do not move the origin.
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
        slope = scale / (1.0 - self.basis.fold_rate)
        return slope, -count * self.basis.fold_rate * slope

    def noise_covariance(self, batch: Batch) -> Floats:
        """Two queries share the noise of the rows in which they have one cell."""
        cells = self.basis.cells(batch)
        return np.asarray(shared_rows(cells, cells) / (cells.shape[1] * (1.0 - self.basis.fold_rate) ** 2))

    def record_answers(self, records: Batch, queries: Batch) -> Floats:
        """The part of the rows in which a record and a query have one cell, with the fold removed."""
        shared, rate = shared_rows(self.basis.cells(records), self.basis.cells(queries)), self.basis.fold_rate
        return np.asarray((shared - rate) / (1.0 - rate))


def _native_table(table: Cells) -> Any:
    """What the native loops read: the array, or the native side of a packed table."""
    return table if isinstance(table, np.ndarray) else table.native


def groups_for(failure: float) -> int:
    """Groups k = ⌈8 ln(1/δ)⌉ of the median of means (Lemma 3.3).

    >>> groups_for(0.05)
    24
    """
    if not 0.0 < failure < 1.0:
        raise UsageError("failure", "must be between 0 and 1", got=f"{failure}", remedy="try 0.05")
    return max(1, math.ceil(8.0 * math.log(1.0 / failure)))


def median_of_means_bound(row_variance: float, rows: int, failure: float) -> float:
    """Lemma 3.3: with probability 1 − δ the median of means is within √(32·σ²·ln(1/δ)/R) of the mean; R ≥ 8
    ln(1/δ).

    >>> round(median_of_means_bound(row_variance=100.0, rows=1000, failure=0.05), 3)
    3.096
    """
    if rows < groups_for(failure):
        rule = f"must be at least 8·ln(1/failure) = {groups_for(failure)} for this bound"
        remedy = "use more rows or a larger failure probability"
        raise UsageError("rows", rule, got=f"{rows}", remedy=remedy)
    return math.sqrt(32.0 * row_variance * math.log(1.0 / failure) / rows)


def rows_for_laplace(records: float, epsilon: float, variance: float, capacity: int) -> int:
    """The rows a pure-ε release should publish, without looking at anything private but a noisy count.

    The error √(v·N²/R + 2R/ε²) is smallest at R = N·ε·√(v/2), with v the typical ``variance`` of a row over
    N².

    >>> rows_for_laplace(records=245_000, epsilon=0.1, variance=3e-3, capacity=2000)
    949
    """
    best = records * epsilon * math.sqrt(variance / 2.0)
    return max(1, min(capacity, math.ceil(best)))


MAX_DIVIDED_CELLS = 1 << 28
_PATTERN = 64
# The fewest rows of a component: its error is estimated from their spread.
_FEWEST = 2

DIVIDED = Role(
    "is a linear combination of collision probabilities",
    lambda kernel: isinstance(kernel, HashableCombination),
)


@dataclass(frozen=True, slots=True)
class _Part:
    """A component: its weight, kernel, rows of the table, hash functions and rate of folding."""

    weight: float
    kernel: HashableKernel
    rows: Integers
    hasher: Hasher
    fold_rate: float

    @property
    def blocks(self) -> int:
        """How many independent blocks of rows it has."""
        return -(-len(self.rows) // self.kernel.independent_rows())

    @property
    def slope(self) -> float:
        """What the mean of its cells counts in an answer."""
        return self.weight / (1.0 - self.fold_rate)


@register
@dataclass(frozen=True)
class DividedRows(RowsBasis):
    """R hash functions, each of one component of a linear combination, with a row of W cells each.

    A record adds 1 to its cell of every row, whatever the weights. Rows are dealt out in proportion to the
    sizes of the weights, at least two to each component, in a fixed order: row r is the same whatever the
    number of rows, so that the first of them can be released alone.

    Parameters
    ----------
    kernel : HashableCombination
        A linear combination of kernels that have hash functions.
    rows, width, seed, bounds, columns
        As for `HashRows`. Components have hash functions of their own, also where they are equal in kind.

    Privacy
    -------
    A unit is one record. If it appears or disappears, exactly one cell of each of the R rows moves by 1: the
    row's hash function gives it one cell, which depends on that record alone, bit for bit. So Δ1 = R, Δ2 =
    √R. If it is replaced, or moves (its values change), at most two cells of each row move by 1 each: Δ1 =
    2R, Δ2 = √(2R). If it appears m times the move is m times as large: persons with up to m records have m·R
    and m·√R. Weights, positive or negative, are not in the table; they are applied to the noisy one.

    Notes
    -----
    Given R, the variance Σ w²σ²/n over components with n rows is least for n in proportion to |w|·σ; the σ of
    rows are private, and taken as equal.
    """

    name: ClassVar[str] = "divided-rows"
    in_pages: ClassVar[bool] = True

    bounds: Bounds | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        DIVIDED.check(self.kernel, "rows that are divided")
        numbers = max(kernel.numbers_per_row() for _, kernel in self._components)
        self._settle(numbers=numbers, most_cells=MAX_DIVIDED_CELLS)
        if self.rows < self.fewest_rows:
            rule = f"must be at least {self.fewest_rows}, {_FEWEST} for each component of the kernel"
            raise UsageError("rows", rule, got=self.rows, remedy="use more rows, or fewer components")

    @property
    def _components(self) -> tuple[tuple[float, HashableKernel], ...]:
        assert isinstance(self.kernel, HashableCombination)
        return self.kernel.hashed_components()

    @property
    def fewest_rows(self) -> int:
        """Two for each component."""
        return _FEWEST * len(self._components)

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """Rows that balance Laplace noise, which grows with them, against hashing, which falls."""
        variance = max(kernel.typical_row_variance() for _, kernel in self._components)
        best = rows_for_laplace(max(count, 1), epsilon / moves, variance, self.rows)
        return max(best, self.fewest_rows)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` to each record's cell in every row."""
        for part, records in zip(self.parts, self._split(batch), strict=True):
            if len(records) < self.width // 8:
                cells = part.hasher.cells(*records.arrays, len(part.rows))
                np.add.at(table, (part.rows, cells), step)
                continue
            own = np.zeros((len(part.rows), self.width), np.int64)
            part.hasher.count(*records.arrays, own, step, threads)
            table[part.rows] += own

    def cells(self, batch: Batch) -> NDArray[np.int32]:
        """The cell of each record in each row, shape (len(batch), rows)."""
        found = np.empty((len(batch), self.rows), np.int32)
        for part, records in zip(self.parts, self._split(batch), strict=True):
            found[:, part.rows] = part.hasher.cells(*records.arrays, len(part.rows))
        return found

    def row_shares(self) -> Floats:
        """The share of the rows that each component has."""
        return np.array([len(part) for part in self._rows_of_parts]) / self.rows

    @cached_property
    def _rows_of_parts(self) -> list[Integers]:
        pattern = _pattern([weight for weight, _ in self._components])
        dealt = np.resize(pattern, self.rows)
        return [np.flatnonzero(dealt == number) for number in range(len(self._components))]

    @cached_property
    def parts(self) -> list[_Part]:
        """The components with their rows and hash functions."""
        found = []
        for number, (weight, kernel) in enumerate(self._components):
            rows, own = self._rows_of_parts[number], derived_seed("combination", self.seed, number)
            hasher = kernel.hasher(rows=len(rows), width=self.width, seed=own)
            # A kernel with fewer values than cells leaves the others of its rows empty.
            found.append(_Part(weight, kernel, rows, hasher, fold_rate(kernel, self.width)))
        return found

    def _split(self, batch: Batch) -> list[Batch]:
        assert isinstance(self.kernel, CombinationKernel)
        return self.kernel.split(batch)

    def _reading(self, kernel: Kernel) -> DividedReading:
        return DividedReading(self, kernel)


@dataclass(frozen=True)
class DividedReading(SampledReading):
    """Σ weight·(mean over the component's rows of the cell in which a query falls), with folds removed by the
    table's own number of records, T: every row counts all records, so T is the mean of the rows' sums.

    The coefficient of a cell is a − b where the query falls into it, and −b elsewhere, with a =
    weight/((1 − 1/W)·n) for a component of n rows, and b the same for all cells.
    """

    basis: DividedRows
    kernel: Kernel

    def noise_gain(self, batch: Batch) -> Floats:
        """Σ over rows of (a − b)² + (W − 1)·b²."""
        b = self._fold
        rows, width = self.basis.shape
        squares = sum(self._each(part) ** 2 * len(part.rows) for part in self.basis.parts)
        slopes = sum(part.slope for part in self.basis.parts)
        return np.full(len(batch), squares - 2.0 * b * slopes + rows * width * b * b)

    def total(self, table: Table) -> tuple[float, float]:
        """The mean of the rows' sums, and its noise gain."""
        rows, width = self.basis.shape
        return float(table.sum(dtype=np.int64)) / rows, width / rows

    def total_covariance(self, batch: Batch) -> Floats:
        """Σ over cells of their coefficients, over the number of rows."""
        rows, width = self.basis.shape
        slopes = sum(part.slope for part in self.basis.parts)
        return np.full(len(batch), slopes / rows - width * self._fold)

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """A bound: a row's exact cell lies between 0 and N and has a mean m, hence a variance of at most N·m
        (Theorem 2.5 of the paper, Cauchy–Schwarz); the noisy mean stands for m, raised by two deviations of
        its noise.
        """
        number, total = max(count, 1.0), np.zeros(len(batch))
        for part, (mean, _) in zip(self.basis.parts, self._means(table, batch, threads=1), strict=True):
            reach = 2.0 * math.sqrt(variance / len(part.rows))
            most = np.clip(mean + reach, 0.0, number)
            total += part.slope**2 * number * most / part.blocks
        return total

    def spread(self, table: Table, batch: Batch, *, threads: int) -> RowAverages:
        """Kernel sums, their variance and a number of blocks.

        The variance is Σ weight²·(variance of the component's mean); each term is estimated from the spread
        over the rows of its component. The number of blocks is how many blocks of rows of a single kind would
        give as good an estimate (Welch–Satterthwaite, for rows of one variance).
        """
        number, _ = self.total(table)
        sums = np.full(len(batch), -number * self._fold * self.basis.rows)
        total = np.zeros(len(batch))
        for part, (mean, variance) in zip(
            self.basis.parts, self._means(table, batch, threads=threads), strict=True
        ):
            sums += part.slope * mean
            total += part.slope**2 * variance
        return RowAverages(sums, total, self._blocks)

    def rows(self, table: Table, batch: Batch) -> tuple[Floats, int]:
        """The answer plus a block's move of it times the number of blocks, for each block of a component."""
        answer, moves = self.evaluate(table, batch, threads=1), []
        cells = self.basis.cells(batch)
        for part in self.basis.parts:
            values = np.asarray(table[part.rows, cells[:, part.rows]], np.float64)
            values -= values.mean(axis=1, keepdims=True)
            starts = np.arange(0, len(part.rows), part.kernel.independent_rows())
            moves.append(self._each(part) * np.add.reduceat(values, starts, axis=1))
        joined = np.concatenate(moves, axis=1)
        return answer[:, np.newaxis] + joined.shape[1] * joined, 1

    @property
    def _fold(self) -> float:
        """b: what every cell of the table takes off, for the records that share a cell by folding."""
        folded = sum(part.slope * part.fold_rate for part in self.basis.parts)
        return folded / self.basis.rows

    def _each(self, part: _Part) -> float:
        """a: what a cell of one of the component's rows counts."""
        return part.slope / len(part.rows)

    @cached_property
    def _blocks(self) -> int:
        shares = [(part.slope**2 / part.blocks, part.blocks) for part in self.basis.parts]
        if min(blocks for _, blocks in shares) < _FEWEST:
            return 1
        freedom = sum(s for s, _ in shares) ** 2 / sum(s * s / (n - 1) for s, n in shares)
        return 1 + math.floor(freedom + 1e-9)

    def _means(self, table: Table, batch: Batch, *, threads: int) -> list[tuple[Floats, Floats]]:
        """For each component, the mean over its rows of each query's cell, and the variance of that mean."""
        found = []
        for part, queries in zip(self.basis.parts, self.basis._split(batch), strict=True):
            own = np.ascontiguousarray(table[part.rows])
            found.append(part.hasher.read(*queries.arrays, own, part.kernel.independent_rows(), threads))
        return found


def _pattern(weights: list[float]) -> Integers:
    """The component of each of some 64 rows, which repeat: every component twice, then always the one that is
    furthest behind its share.

    >>> _pattern([3.0, -1.0])[:8]
    array([0, 1, 0, 1, 0, 0, 0, 0])
    """
    total = sum(map(abs, weights))
    shares = [max(_FEWEST, round(_PATTERN * abs(weight) / total)) for weight in weights]
    dealt = [*range(len(weights))] * _FEWEST
    taken = [_FEWEST] * len(weights)
    while len(dealt) < sum(shares):
        # In integers, so that the order is the same on every machine.
        behind = [share * len(dealt) - own * sum(shares) for share, own in zip(shares, taken, strict=True)]
        left = [behind[i] if taken[i] < shares[i] else -(1 << 62) for i in range(len(weights))]
        chosen = left.index(max(left))
        dealt.append(chosen)
        taken[chosen] += 1
    return np.array(dealt)


MOST_WEIGHT = 1 << 10


PROJECTED = Role("is hashed by random projections", lambda kernel: isinstance(kernel, ProjectionKernel))


@register
@dataclass(frozen=True)
class IncrementRows(RowsOfOneKernel):
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

    weights: tuple[int, ...] = (1, 1)
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        PROJECTED.check(self.kernel, "increments")
        whole = all(type(weight) is int and abs(weight) <= MOST_WEIGHT for weight in self.weights)
        if len(self.weights) != 2 or not whole or not any(self.weights):
            rule = f"must be two integers from −{MOST_WEIGHT} to {MOST_WEIGHT}, not both 0"
            remedy = "give those of a record and of its opposite"
            raise UsageError("weights", rule, got=shown(self.weights), remedy=remedy)
        self._settle_one(MAX_DIVIDED_CELLS)

    bounds = None
    """None: a box would move the origin."""

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """The sensitivity, as the docstring of the class proves."""
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

    def _reading(self, kernel: Kernel) -> IncrementReading:
        return IncrementReading(self, kernel)


@dataclass(frozen=True)
class IncrementReading(SampledReading):
    """The mean over rows of the cell in which a query falls, with the fold removed by the mean of the rows'
    sums, which is what would be in a cell if all were alike, times the width.
    """

    basis: IncrementRows
    kernel: Kernel

    def spread(self, table: Table, batch: Batch, *, threads: int) -> RowAverages:
        """Sums of weights[0]·k(x, q) + weights[1]·k(−x, q), with the spread over independent blocks of
        rows.
        """
        rate, block = self.basis.fold_rate, self.basis.independent_rows
        keep = 1.0 / (1.0 - rate)
        mean, variance = self.basis.hasher.read(*batch.arrays, np.ascontiguousarray(table), block, threads)
        return RowAverages(keep * (mean - self._folded(table)), keep**2 * variance, self.basis.blocks)

    def _folded(self, table: Table) -> float:
        return self.basis.fold_rate * float(table.sum(dtype=np.int64)) / self.basis.rows

    def noise_gain(self, batch: Batch) -> Floats:
        """The sum of the squared coefficients: a query has the coefficient a − b in one cell of each row, and
        −b in the other cells.
        """
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
        return np.full(len(batch), most**2 / self.basis.blocks)

    def rows(self, table: Table, batch: Batch) -> tuple[Floats, int]:
        """What each row says."""
        cells = self.basis.hasher.cells(*batch.arrays, self.basis.rows)
        values = np.asarray(table[np.arange(self.basis.rows), cells], np.float64)
        return (values - self._folded(table)) / (1.0 - self.basis.fold_rate), self.basis.independent_rows


@register
@dataclass(frozen=True)
class AdjacencyRows(HashRows):
    r"""`HashRows` of the nodes of a graph, each the set of its neighbours; made by
    ``hs.methods.count_graph``.

    Parameters
    ----------
    graph : Graph
        Directed or not, and which nodes are records. The other parameters are those of `HashRows`.

    Privacy
    -------
    *One adjacency row* is one record: Δ1 = R, Δ2² = R, and the count moves by 1 (add/remove); Δ1 = 2R,
    Δ2² = 2R, and the count is public (replace).

    *One edge.* Neighbouring graphs differ in one edge, with all lines that list it. A row that changes leaves
    one cell of a hash row and enters another; a node that becomes a record enters one. So in each of the R
    hash rows, for an edge from u to v that appears (and, with opposite signs, disappears):

    ============================================  ===========================  =======  =======  ======
    what the edge does                            cells                        L1       L2²      count
    ============================================  ===========================  =======  =======  ======
    undirected, u and v are records               u: −a +a′, v: −b +b′         ≤ 4      ≤ 8      0
    undirected, v becomes one                     u: −a +a′, v: +b′            ≤ 3      ≤ 5      1
    undirected, u and v become records            +a′ +b′                      ≤ 2      ≤ 4      2
    directed, u and v are records                 u: −a +a′                    ≤ 2      ≤ 2      0
    directed, v becomes one (the empty set)       u: −a +a′, v: +e             ≤ 3      ≤ 5      1
    directed, u becomes one                       +a′                          ≤ 1      ≤ 1      1
    directed, u and v become records              +a′ +e                       ≤ 2      ≤ 4      2
    a self-loop, its node becomes a record        +e                           ≤ 1      ≤ 1      1
    a self-loop at a record, an edge listed twice  none                        0        0        0
    ============================================  ===========================  =======  =======  ======

    8 is attained by (−2, +2): a = b if u and v have the same neighbours, and a′ = b′ by folding; 5 is (−1,
    +2). With declared nodes only the cases happen in which both ends are records, and the number of records
    is public. Where the files list rows, v never becomes a record by a directed edge. The maxima over the
    cases that are possible:

    ======================  ==========  ====  ====  ===============  =====
    graph                   nodes       Δ1    Δ2²   largest change   count
    ======================  ==========  ====  ====  ===============  =====
    undirected              declared    4R    8R    2                0
    undirected              otherwise   4R    8R    2                2
    directed                declared    2R    2R    1                0
    directed                of edges    3R    5R    2                2
    directed, rows listed   as listed   2R    2R    1                1
    ======================  ==========  ====  ====  ===============  =====

    *Replace*: one edge disappears and another appears, so Δ1, Δ2 and the largest change double at most. They
    double but where both ends of directed edges become records: there the two empty sets cancel, if both
    exist, and what is left is +a −a′ −e of the edge that goes with −b +b′ of the one that comes, (−3, +2):
    Δ1 = 5R, Δ2² = 13R, largest 3. The count falls by at most its bound and then rises by at most its bound,
    so its bound stays.

    *Edges in up to k merged lists* change each of them: all bounds times k (Δ2² times k²).

    *One node* is not offered. Removing a node changes the rows of all its neighbours, and a projection to
    bounded degree does not help: see ``docs/how-to/count-a-graph.md``.
    """

    name: ClassVar[str] = "adjacency-rows"
    in_pages: ClassVar[bool] = True

    graph: Graph = field(default_factory=Graph)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel.dim is not None:
            raise UsageError(
                "kernel",
                "must compare sets, because a node is the set of its neighbours",
                got=self.kernel.name,
                remedy="use jaccard",
            )

    @classmethod
    def of(cls, rows: HashRows, graph: Graph) -> AdjacencyRows:
        """The same hash functions, for the rows of a graph."""
        return cls(**{each.name: getattr(rows, each.name) for each in fields(HashRows)}, graph=graph)

    @property
    def units(self) -> tuple[str, ...]:
        """One adjacency row, or one edge."""
        return ADJACENCY_ROW, DIRECTED_EDGE if self.graph.directed else EDGE

    @property
    def assumptions(self) -> dict[str, str]:
        """With declared nodes the claim about edges publishes how many there are."""
        if self.graph.nodes is None:
            return {}
        return dict.fromkeys((EDGE, DIRECTED_EDGE), "the list of nodes is public")

    def graph_in_words(self, edge_lists: int) -> str:
        """What kind of graph is counted, and how many merged lists of edges."""
        return str(self.graph) + (f", an edge in up to {edge_lists} lists" if edge_lists > 1 else "")

    def unit_change(self, unit: str, per_unit: int, relation: Relation) -> UnitChange:
        """How far one row, or one edge in up to ``per_unit`` lists, moves the sum; the proof is above."""
        if unit not in self.units:
            raise ClaimError(
                "unit", f"must be {self.units[0]!r} or {self.units[1]!r} for this graph", got=repr(unit)
            )
        if unit == ADJACENCY_ROW:
            return UnitChange.of_records(self.sensitivity(relation), None, relation)
        return self._edge(relation is Relation.REPLACE).times(per_unit)

    def _edge(self, replaced: bool) -> UnitChange:
        """One edge present or absent, or another one in its place, as proven above."""
        graph, rows = self.graph, self.rows
        if graph.directed and graph.nodes is None and not graph.rows_listed:
            l1, l2_squared, largest = (5, 13, 3) if replaced else (3, 5, 2)
            return UnitChange(Sensitivity(l1 * rows, l2_squared * rows, largest), 2, l1)
        steps = 2 if replaced else 1
        if graph.directed:
            edge = Sensitivity(2 * rows, 2 * rows, 1)
            return UnitChange(edge.times(steps), 1 if graph.rows_listed else 0, 2 * steps)
        edge = Sensitivity(4 * rows, 8 * rows, 2)
        return UnitChange(edge.times(steps), 2 if graph.nodes is None else 0, 4 * steps)
