"""The bins of a histogram: every record adds 1 to the cell it lies in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import COLUMNS, Batch, Kernel, check_columns
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import MOST_CELLS, Bounds, CellGrid

from ._base import Basis, LinearReading, Table, register, slices
from ._declared_box import check_columns_of

_PAIRS_AT_A_TIME = 1 << 21
_LATTICE_SLOPE, _LATTICE_CURVATURE = 2.0, 5.4
"""Moments of a place u in a cell, from −1/2 to 1/2, that is an edge or uniform with equal probability: E u²
over 1/12, and E u⁴ over 1/144.
"""


@register
@dataclass(frozen=True)
class Bins(Basis):
    """A box cut into equal cells; a record adds 1 to its cell, and is read as the middle of it.

    Parameters
    ----------
    bins : tuple of int
        How many cells along each column.
    bounds : Bounds
        Declared; records are clipped to it.
    columns : tuple of str, optional
        What the columns are called, in their order.

    Privacy
    -------
    One record present or absent moves one cell by 1: Δ1 = Δ2 = 1. One record replaced moves at most two:
    Δ1 = 2, Δ2 = √2. A record's cell depends on that record alone.
    """

    name: ClassVar[str] = "bins"
    in_pages: ClassVar[bool] = True

    bins: tuple[int, ...]
    bounds: Bounds
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.bins, tuple):
            raise UsageError("bins", "must be one integer for each column", remedy="give them all")
        object.__setattr__(self, "bins", CellGrid.of(self.bounds, self.bins, most_cells=MOST_CELLS).bins)
        check_columns(self.columns, self.bounds.dim)

    @cached_property
    def grid(self) -> CellGrid:
        """The cells."""
        return CellGrid(self.bounds, self.bins)

    @property
    def shape(self) -> tuple[int, int]:
        """One row of all cells."""
        return 1, self.grid.cells

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """One cell moves by 1 (add/remove), or two (replace)."""
        moved = 1 if relation is Relation.ADD_REMOVE else 2
        return Sensitivity(l1=moved, l2_squared=moved, largest=1)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` to each record's cell."""
        table[0] += step * self.grid.count(batch.arrays[0])

    def _reading(self, kernel: Kernel) -> BinsReading:
        return BinsReading(self, kernel)


@dataclass(frozen=True)
class BinsReading(LinearReading):
    """Every record at the middle of its cell."""

    basis: Bins
    kernel: Kernel

    def __post_init__(self) -> None:
        COLUMNS.check(self.kernel, "a histogram")
        check_columns_of(self.kernel, self.basis.bounds.dim)

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums of the cells' middles, weighted by the table."""
        weights = table.reshape(-1).astype(np.float64)
        total = np.zeros(len(batch))
        for cells, values in self._blocks(batch):
            total += weights[cells] @ values
        return total

    def noise_gain(self, batch: Batch) -> Floats:
        """Σ k² over the cells' middles."""
        total = np.zeros(len(batch))
        for _, values in self._blocks(batch):
            total += np.einsum("ij,ij->j", values, values)
        return total

    def noise_covariance(self, batch: Batch) -> Floats:
        """Σ k(c, q)·k(c, q') over the cells' middles c."""
        total = np.zeros((len(batch), len(batch)))
        for _, values in self._blocks(batch):
            total += values.T @ values
        return total

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The squared error of reading records at the middles of their cells: `cell_errors`."""
        held = table.reshape(-1).astype(np.float64)
        queries, width = batch.arrays[0].astype(np.float64), self.basis.grid.width
        errors = np.empty(len(batch))
        for at in slices(len(batch), _PAIRS_AT_A_TIME // self.basis.grid.cells):
            part = Batch((queries[at],), len(queries[at]))
            errors[at] = cell_errors(self.kernel, self._centres, width, held, part)
        return errors

    def total(self, table: Table) -> tuple[float, float]:
        """All cells together hold the number of records."""
        return float(table.sum(dtype=np.int64)), float(table.size)

    @cached_property
    def _centres(self) -> Floats:
        return self.basis.grid.centres() - self.basis.bounds.centre

    def _blocks(self, batch: Batch) -> Iterator[tuple[slice, Floats]]:
        """Kernel values of some cells at all queries, block by block."""
        for cells in slices(self.basis.grid.cells, _PAIRS_AT_A_TIME // max(len(batch), 1)):
            some = self._centres[cells]
            yield cells, self.kernel._pairwise(Batch((some,), len(some)), batch)


def cell_errors(kernel: Kernel, centres: Floats, width: Floats, held: Floats, batch: Batch) -> Floats:
    """The expected squared error of kernel sums at prepared queries in which records stand at the middles of
    cells, shape (len(batch),).

    Records are taken to be at one place of their cell, uniform in it. Their mean error is the curvature of
    the kernel times a twenty-fourth of the squared width, and errors of all cells add up in it. About it they
    spread by the slope over √12 widths, independently between cells where each has repeated values of its
    own. Where a column's values are on a lattice whose steps are whole cells, such as ages in half years, the
    place is the same in all cells, and errors of slopes and of curvatures add up. Steps and bounds are mostly
    round numbers, so the place is then an edge with probability 1/2: slopes have twice the second moment of a
    uniform place, and curvatures 5.4 times the squared mean of one. The table does not show which is the
    case, so in each column the larger error counts. Slopes and curvatures are found at two places in each
    column, which have the moments of a uniform one.
    """
    middle = kernel._pairwise(Batch((centres,), len(centres)), batch)
    mean, spread = np.zeros(len(batch)), np.zeros(len(batch))
    for column in range(centres.shape[1]):
        moved = np.zeros(centres.shape[1])
        moved[column] = width[column] / math.sqrt(12.0)
        above = kernel._pairwise(Batch((centres + moved,), len(centres)), batch)
        below = kernel._pairwise(Batch((centres - moved,), len(centres)), batch)
        bent = held @ (0.5 * (above + below) - middle)
        slope = 0.5 * (above - below)
        mean += bent
        shared = _LATTICE_SLOPE * np.square(held @ slope) + (_LATTICE_CURVATURE - 1.0) * np.square(bent)
        spread += np.maximum(np.square(held) @ np.square(slope), shared)
    errors: Floats = np.square(mean) + spread
    return errors
