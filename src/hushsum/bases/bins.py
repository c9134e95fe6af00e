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
from hushsum.bases.base import Basis, LinearReading, Table, register
from hushsum.errors import UsageError
from hushsum.kernels.base import COLUMNS, Batch, ColumnKernel, GaussianProfileKernel, Kernel
from hushsum.kernels.parameters import check_columns
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds
from hushsum.records.cell_grid import MOST_CELLS, CellGrid

_PAIRS_AT_A_TIME = 1 << 21
_GAUSSIAN_SLOPE = 2.0 / math.e
"""The most that ``k·r²/h²`` is for the Gaussian kernel; it bounds the squared slope by ``0.74·k/h²``."""

_LARGEST_SLOPE = 1.0
"""Of the other kernels, with their width for h: 1 for the Laplacian, 0.85 for the Euclidean. The slope of the
Manhattan kernel is larger, but so near to its peak that it does not matter.
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

    bins: tuple[int, ...]
    bounds: Bounds
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.bins, tuple):
            raise UsageError(
                parameter="bins", rule="must be one integer for each column", remedy="give them all"
            )
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
        if self.kernel.dim != self.basis.bounds.dim:
            raise UsageError(
                parameter="kernel",
                rule=f"must have {self.basis.bounds.dim} columns, one for each bound",
                got=f"{self.kernel.dim}",
                remedy="make one with that dim",
            )

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums of the cells' middles, weighted by the table."""
        return self._weighted(table.reshape(-1).astype(np.float64), batch)

    def noise_gain(self, batch: Batch) -> Floats:
        """Σ k² over the cells' middles."""
        total = np.zeros(len(batch))
        for _, values in self._blocks(batch):
            total += np.einsum("ij,ij->j", values, values)
        return total

    def method_variance(self, table: Table, batch: Batch, sums: Floats, count: float) -> Floats:
        """The squared error of reading records at the middles, as if those of a cell shared one random place.

        A place is uniform in its cell, so the kernel at it is off by its slope times a twelfth of the squared
        width of the cell, in the mean square.
        """
        assert isinstance(self.kernel, ColumnKernel)
        spread = float(((self.basis.grid.width / self.kernel.width) ** 2).max()) / 12.0
        held = np.maximum(table.reshape(-1).astype(np.float64), 0.0)
        steepest = _GAUSSIAN_SLOPE if isinstance(self.kernel, GaussianProfileKernel) else _LARGEST_SLOPE
        return steepest * spread * self._weighted(held * held, batch)

    def total(self, table: Table) -> tuple[float, float]:
        """All cells together hold the number of records."""
        return float(table.sum(dtype=np.int64)), float(table.size)

    @cached_property
    def _centres(self) -> Floats:
        return self.basis.grid.centres() - self.basis.bounds.centre

    def _weighted(self, weights: Floats, batch: Batch) -> Floats:
        total = np.zeros(len(batch))
        for cells, values in self._blocks(batch):
            total += weights[cells] @ values
        return total

    def _blocks(self, batch: Batch) -> Iterator[tuple[slice, Floats]]:
        """Kernel values of some cells at all queries, block by block."""
        step = max(1, _PAIRS_AT_A_TIME // max(len(batch), 1))
        for start in range(0, self.basis.grid.cells, step):
            cells = slice(start, start + step)
            some = self._centres[cells]
            yield cells, self.kernel._pairwise(Batch((some,), len(some)), batch)
