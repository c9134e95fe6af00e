"""Marginals of mixed columns: every record adds 1 to one cell of each declared marginal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, UsageError
from hushsum.kernels import Batch, CategoricalKernel, Kernel, check_columns
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds, DeclaredColumn, NumberColumn, mixed_columns, numbers_with_missing

from ._base import Basis, LinearReading, Table, register

__all__ = ["MOST_CELLS", "MOST_COLUMNS", "Marginals"]

MOST_CELLS = 1 << 24
MOST_COLUMNS = 4096


@register
@dataclass(frozen=True)
class Marginals(Basis):
    """Contingency tables of sets of columns, side by side in one row; a record is in one cell of each.

    Columns of numbers are cut at declared edges, categories are looked up in declared lists, and a missing
    value is a label where the declaration has one. What a value becomes is decided by that value and the
    declaration alone.

    Parameters
    ----------
    encodings : tuple of DeclaredColumn
        What each column may hold.
    sets : tuple of tuples of int
        The columns of each marginal, by position, rising.
    columns : tuple of str, optional
        What the columns are called, in their order.

    Privacy
    -------
    With m marginals, a record that appears or disappears moves one cell of each by 1: Δ1 = m, Δ2² = m. A
    record that is replaced leaves one cell and enters one in each marginal, the same or another:
    Δ1 ≤ 2m, Δ2² ≤ 2m, and both are met by two records that differ in every column. A record whose value lies
    outside of the declared range is clipped, and one with a missing or an undeclared value has the label
    declared for it, or the whole batch is refused before anything is counted: no record changes the cell of
    another. (An owner who leaves a refused batch out lets one record decide about the others in it: correct
    it, or declare a label for such values.) A record that appears twice is two records. Persons with up to k
    records: k times Δ.
    """

    name: ClassVar[str] = "marginals"

    encodings: tuple[DeclaredColumn, ...]
    sets: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        dim = len(self.encodings)
        if not 1 <= dim <= MOST_COLUMNS:
            rule = f"must be 1 to {MOST_COLUMNS} declarations"
            raise UsageError("columns", rule, got=dim, remedy="declare each column")
        check_columns(self.columns, dim)
        listed = len(set(self.sets)) == len(self.sets) and all(_in_order(each, dim) for each in self.sets)
        if not self.sets or not listed:
            rule = "must be different sets of columns, each with its columns once and in their order"
            raise UsageError("marginals", rule, got="others", remedy="list each set once")
        if self.shape[1] > MOST_CELLS:
            rule, remedy = (
                f"must have at most {MOST_CELLS} cells together",
                "use fewer bins or fewer marginals",
            )
            raise UsageError("marginals", rule, got=self.shape[1], remedy=remedy)

    @classmethod
    def of(
        cls,
        encodings: Sequence[DeclaredColumn],
        sets: Sequence[Sequence[int]],
        columns: Sequence[str] | None = None,
    ) -> Marginals:
        """Marginals of declared columns, each a list of positions."""
        return cls(
            tuple(encodings),
            tuple(tuple(int(i) for i in each) for each in sets),
            None if columns is None else tuple(columns),
        )

    bounds = None
    """None: each column has a declaration of its own."""

    def set_names(self) -> list[tuple[str, ...]]:
        """The names of the columns of each marginal; x0, x1, … where they have none."""
        names = self.columns or [f"x{i}" for i in range(len(self.encodings))]
        return [tuple(names[i] for i in each) for each in self.sets]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many labels each column has."""
        return tuple(each.size for each in self.encodings)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each marginal begins in the table, and where the last one ends."""
        cells = [math.prod(self.sizes[i] for i in each) for each in self.sets]
        # Python integers, which do not overflow, until the limit is checked.
        ends = list(itertools.accumulate(cells, initial=0))
        return np.array([min(end, MOST_CELLS + 1) for end in ends], np.int64)

    @property
    def shape(self) -> tuple[int, int]:
        """One row of all cells."""
        return 1, int(self.starts[-1])

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """One cell of each marginal moves by 1 (add/remove), or two of each (replace)."""
        moved = len(self.sets) * (1 if relation is Relation.ADD_REMOVE else 2)
        return Sensitivity(l1=moved, l2_squared=moved, largest=1)

    def cells(self, codes: NDArray[np.int32], marginal: int) -> NDArray[np.int64]:
        """The cell of each record in one marginal, counted from its start; the last column is fastest."""
        index = np.zeros(len(codes), np.int64)
        for column in self.sets[marginal]:
            index = index * self.sizes[column] + codes[:, column]
        return index

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` to each record's cell of every marginal."""
        codes = batch.arrays[0]
        for i, (start, end) in enumerate(itertools.pairwise(self.starts.tolist())):
            table[0, start:end] += step * np.bincount(self.cells(codes, i), minlength=end - start)

    def marginal(self, table: Table, marginal: int) -> Table:
        """One marginal of a table, as an array with an axis for each of its columns."""
        part = table.reshape(-1)[self.starts[marginal] : self.starts[marginal + 1]]
        return part.reshape([self.sizes[i] for i in self.sets[marginal]])

    def only(self, chosen: Sequence[int]) -> tuple[Marginals, NDArray[np.int64]]:
        """The basis of some marginals alone, and their cells in this table."""
        kept = tuple(self.sets[i] for i in chosen)
        cells = np.concatenate([np.arange(self.starts[i], self.starts[i + 1]) for i in chosen])
        return Marginals(self.encodings, kept, self.columns), cells

    def declared_ranges(self) -> tuple[Bounds | None, tuple[str, ...] | None]:
        """The bounds and the names of the declared columns of numbers."""
        numbers = self._number_columns()
        if not numbers:
            return None, None
        names = None if self.columns is None else tuple(self.columns[i] for i in numbers)
        ends = list(numbers.values())
        return Bounds(
            tuple(float(each.low) for each in ends), tuple(float(each.high) for each in ends)
        ), names

    def declared_numbers(self, data: object) -> Floats:
        """Columns of numbers as they came; in place of a missing number the middle of the range."""
        found = mixed_columns(data, count=len(self.encodings), names=self.columns)
        columns = []
        for i, each in self._number_columns().items():
            values, missing = numbers_with_missing(found[i], f"column {i}")
            columns.append(np.where(missing, (each.low + each.high) / 2, values))
        return np.column_stack(columns)

    def _number_columns(self) -> dict[int, NumberColumn]:
        return {i: each for i, each in enumerate(self.encodings) if isinstance(each, NumberColumn)}

    def _prepare(self, data: object, *, clip: bool) -> Batch:
        """Codes of each record, shape (n, columns); a batch that was prepared already is checked."""
        if isinstance(data, Batch):
            codes = data.arrays[0]
            fits = codes.ndim == 2 and codes.shape[1] == len(self.sizes) and codes.dtype == np.int32
            if not fits or (codes < 0).any() or (codes >= np.array(self.sizes)).any():
                rule = "codes must be those of the declared columns"
                raise DataRefused(rule, got="others", remedy="give the records")
            return data
        names = self.columns or [f"x{i}" for i in range(len(self.encodings))]
        found = mixed_columns(data, count=len(self.encodings), names=self.columns)
        listed = zip(self.encodings, found, names, strict=True)
        codes = np.column_stack([each.codes(chunks, f"column {name!r}") for each, chunks, name in listed])
        return Batch((np.ascontiguousarray(codes, np.int32),), len(codes))

    def _reading(self, kernel: Kernel) -> MarginalsReading:
        return MarginalsReading(self, kernel)


@dataclass(frozen=True)
class MarginalsReading(LinearReading):
    """Sums of the Hamming kernel, exact but for noise: how many columns records share with a query.

    The share of columns in which two records agree, to the power p, is a sum over lists of p columns of
    whether they agree in all of them. So it is linear in the marginals of up to p columns, here p of 1 or 2.
    """

    basis: Marginals
    kernel: Kernel

    def __post_init__(self) -> None:
        dim = len(self.basis.encodings)
        kernel = self.kernel
        if not isinstance(kernel, CategoricalKernel) or kernel.dim != dim or kernel.agreement_power() > 2:
            rule = f"must be a Hamming kernel of {dim} columns with power 1 or 2 to read marginals"
            raise UsageError("kernel", rule, got=kernel.name, remedy="make one with that dim")
        power = kernel.agreement_power()
        enough = len(self.basis.sets) >= (dim if power == 1 else dim + math.comb(dim, 2))
        if not enough or not self._needed.keys() <= set(self.basis.sets):
            rule = f"with power {power} reads all marginals of up to {power} columns"
            remedy = "count those too, or use power 1"
            raise UsageError("kernel", rule, got="a table without some of them", remedy=remedy)

    @cached_property
    def _needed(self) -> dict[tuple[int, ...], float]:
        """The weight of each marginal that the kernel is made of."""
        dim = len(self.basis.encodings)
        assert isinstance(self.kernel, CategoricalKernel)
        if self.kernel.agreement_power() == 1:
            return {(i,): 1.0 / dim for i in range(dim)}
        single = {(i,): 1.0 / dim**2 for i in range(dim)}
        return single | dict.fromkeys(itertools.combinations(range(dim), 2), 2.0 / dim**2)

    @cached_property
    def _weights(self) -> list[tuple[int, float]]:
        return [(i, self._needed[each]) for i, each in enumerate(self.basis.sets) if each in self._needed]

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """The weighted cells in which a query falls."""
        held = table.reshape(-1)
        total = np.zeros(len(batch))
        for i, weight in self._weights:
            total += weight * held[self.basis.starts[i] + self.basis.cells(batch.arrays[0], i)]
        return total

    def noise_gain(self, batch: Batch) -> Floats:
        """The squared weights, the same at every query."""
        return np.full(len(batch), sum(weight**2 for _, weight in self._weights))

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """Zeros: cells hold the numbers of records themselves."""
        return np.zeros(len(batch))

    def total(self, table: Table) -> tuple[float, float]:
        """Every marginal adds up to the number of records; those with few cells do so with little noise."""
        cells = np.diff(self.basis.starts).astype(np.float64)
        sums = np.add.reduceat(table.reshape(-1).astype(np.float64), self.basis.starts[:-1])
        weights = (1.0 / cells) / (1.0 / cells).sum()
        return float(weights @ sums), float(1.0 / (1.0 / cells).sum())


def _in_order(members: tuple[int, ...], dim: int) -> bool:
    rising = all(a < b for a, b in itertools.pairwise(members))
    return bool(members) and rising and members[0] >= 0 and members[-1] < dim
