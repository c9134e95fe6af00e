"""Hash rows of a linear combination of kernels, divided among its components."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, Integers
from hushsum.bases.base import Basis, RowAverages, SampledReading, Table
from hushsum.bases.hash_rows import check_table, checked_size, rows_for_laplace
from hushsum.bases.registry import register
from hushsum.errors import UsageError
from hushsum.kernels.base import (
    Batch,
    HashableCombination,
    HashableKernel,
    Hasher,
    Kernel,
)
from hushsum.kernels.combination import CombinationKernel
from hushsum.kernels.hashers import derived_seed
from hushsum.kernels.parameters import integer_seed
from hushsum.kernels.registry import Role
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds

MAX_CELLS = 1 << 28
_PATTERN = 64
_FEWEST = 2
"""Rows that every component has, so that their spread shows its error."""

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
class DividedRows(Basis):
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

    kernel: Kernel
    rows: int
    width: int
    seed: int
    bounds: Bounds | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        DIVIDED.check(self.kernel, "rows that are divided")
        rows, width = checked_size(self.rows, self.width)
        if rows < self.fewest_rows:
            raise UsageError(
                parameter="rows",
                rule=f"must be at least {self.fewest_rows}, {_FEWEST} for each component of the kernel",
                got=rows,
                remedy="use more rows, or fewer components",
            )
        numbers = max(kernel.numbers_per_row() for _, kernel in self._components)
        check_table(self, self.kernel, rows, width, numbers=numbers, most_cells=MAX_CELLS)
        for field, value in (("rows", rows), ("width", width), ("seed", integer_seed(self.seed))):
            object.__setattr__(self, field, value)

    @property
    def _components(self) -> tuple[tuple[float, HashableKernel], ...]:
        assert isinstance(self.kernel, HashableCombination)
        return self.kernel.hashed_components()

    @property
    def fewest_rows(self) -> int:
        """Two for each component."""
        return _FEWEST * len(self._components)

    def counted_kernel(self) -> Kernel:
        """The combination."""
        return self.kernel

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
        return self if rows == self.rows else replace(self, rows=rows)

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
            rows, distinct = self._rows_of_parts[number], kernel.distinct_hashes()
            # A kernel with fewer values than cells leaves the others of its rows empty.
            fold_rate = 1.0 / self.width if distinct is None or distinct > self.width else 0.0
            own = derived_seed("combination", self.seed, number)
            hasher = kernel.hasher(rows=len(rows), width=self.width, seed=own)
            found.append(_Part(weight, kernel, rows, hasher, fold_rate))
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

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums at prepared queries."""
        return self.spread(table, batch, threads=threads).mean

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
        """Kernel sums; their variance Σ weight²·(variance of the component's mean), each from the spread over
        its own rows; and the blocks that as good an estimate from rows of one kind has (Welch–Satterthwaite,
        where all rows have one variance).
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
        """Of each block of a component: the answer, and the block's move of it times the number of blocks."""
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
        """Of each component: the mean over its rows of each query's cell, and the variance of that mean."""
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
