"""The bins of a histogram: every record adds 1 to the cell it lies in."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Floats, Table, register
from hushsum.errors import UsageError
from hushsum.files.container import canonical_json
from hushsum.kernels.base import Batch, Kernel, kernel_as_json, kernel_from_json
from hushsum.kernels.columns import check_columns
from hushsum.privacy.relation import Relation
from hushsum.privacy.sensitivity import Sensitivity
from hushsum.records.bounds import Bounds
from hushsum.records.cell_grid import MOST_CELLS, CellGrid

_PAIRS_AT_A_TIME = 1 << 21
_STEEPEST = 2.0 / math.e
"""The most that ``k·r²/h²`` is for the Gaussian kernel; it bounds the squared slope by ``0.74·k/h²``."""


@dataclass(frozen=True)
class Bins:
    """A box cut into equal cells; a record adds 1 to its cell, and is read as the middle of it.

    Parameters
    ----------
    kernel : Kernel
        One that compares columns of numbers; it only reads.
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

    kernel: Kernel
    bins: tuple[int, ...]
    bounds: Bounds
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        dim = self.bounds.dim
        if not self.kernel.bounded_columns or getattr(self.kernel, "dim", None) != dim:
            raise UsageError(
                f"bins need a kernel that compares {dim} columns of numbers, one for each bound, "
                f"got {self.kernel.name}; use the gaussian, euclidean or manhattan kernel with that dim"
            )
        if not isinstance(self.bins, tuple):
            raise UsageError("bins must be one integer for each column; give them all")
        object.__setattr__(self, "bins", CellGrid.of(self.bounds, self.bins, most_cells=MOST_CELLS).bins)
        check_columns(self.columns, dim)

    @cached_property
    def grid(self) -> CellGrid:
        """The cells."""
        return CellGrid(self.bounds, self.bins)

    @property
    def shape(self) -> tuple[int, int]:
        """One row of all cells."""
        return 1, self.grid.cells

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over bins, bounds and columns; the kernel only reads."""
        facts = {name: value for name, value in self.parameters().items() if name != "kernel"}
        return hashlib.sha256(canonical_json({"name": self.name, "parameters": facts})).hexdigest()

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """One cell moves by 1 (add/remove), or two (replace)."""
        moved = 1 if relation is Relation.ADD_REMOVE else 2
        return Sensitivity(l1=moved, l2_squared=moved, largest=1)

    def parameters(self) -> dict[str, Any]:
        """The basis as JSON values."""
        return {
            "kernel": kernel_as_json(self.kernel),
            "bins": list(self.bins),
            "bounds": self.bounds.as_json(),
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Bins:
        """The basis that a file's header describes."""
        return cls(
            kernel=kernel_from_json(data["kernel"]),
            bins=tuple(data["bins"]),
            bounds=Bounds.from_json(data["bounds"]),
            columns=None if data["columns"] is None else tuple(data["columns"]),
        )

    def prepare(self, data: object) -> Batch:
        """Records, checked and clipped to the bounds."""
        return self.kernel.prepare(data, self.bounds, columns=self.columns)

    def prepare_queries(self, data: object) -> Batch:
        """Queries, checked; a query may lie outside the bounds."""
        return self.kernel.prepare(data, self.bounds, clip=False, columns=self.columns)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` to each record's cell."""
        table[0] += step * self.grid.count(batch.arrays[0])

    def prefix(self, rows: int) -> Bins:
        """The bins themselves: there is one row."""
        if rows != 1:
            raise UsageError("a histogram is released whole, got a number of rows; leave rows out")
        return self

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """The one there is."""
        return 1

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
        width, in the mean square; the slope is bounded as the Gaussian kernel's.
        """
        bandwidth = float(getattr(self.kernel, "bandwidth", 1.0)) / math.sqrt(
            getattr(self.kernel, "power", 1)
        )
        spread = float(((self.grid.width / bandwidth) ** 2).max()) / 12.0
        held = np.maximum(table.reshape(-1).astype(np.float64), 0.0)
        return _STEEPEST * spread * self._weighted(held * held, batch)

    def total(self, table: Table) -> tuple[float, float] | None:
        """All cells together hold the number of records."""
        return float(table.sum(dtype=np.int64)), float(table.size)

    def with_kernel(self, kernel: Kernel) -> Bins:
        """The same bins, read with another kernel or bandwidth."""
        return replace(self, kernel=kernel)

    @cached_property
    def _centres(self) -> Floats:
        return self.grid.centres() - self.bounds.centre

    def _weighted(self, weights: Floats, batch: Batch) -> Floats:
        total = np.zeros(len(batch))
        for cells, values in self._blocks(batch):
            total += weights[cells] @ values
        return total

    def _blocks(self, batch: Batch) -> Iterator[tuple[slice, Floats]]:
        """Kernel values of some cells at all queries, block by block."""
        step = max(1, _PAIRS_AT_A_TIME // max(len(batch), 1))
        for start in range(0, self.grid.cells, step):
            cells = slice(start, start + step)
            some = self._centres[cells]
            yield cells, self.kernel._pairwise(Batch((some,), len(some)), batch)


register(Bins.name, Bins.from_parameters)
