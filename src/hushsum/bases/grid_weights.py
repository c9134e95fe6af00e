"""Weights on a grid inside declared bounds: every record is shared among the nodes around it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import Basis, LinearReading, Table, register
from hushsum.bases.grid_reading import GridReader
from hushsum.errors import UsageError
from hushsum.kernels.base import PROFILES, Batch, Kernel, ProfileKernel
from hushsum.kernels.parameters import check_columns, positive_integer
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds

MAX_DIM = 4
MAX_CELLS = 1 << 26
POSITIONS = 256
"""Places inside a cell that are distinguished: a record is moved by at most a 512th of the spacing."""

PARTS = {1: 4096, 2: 512, 3: 64, 4: 32}
"""Into how many parts a record is cut along each column, by the number of columns."""

_RECORDS_AT_A_TIME = 1 << 16


@register
@dataclass(frozen=True)
class GridWeights(Basis):
    """Each record gives the 3^d nodes around it non-negative weights, of a quadratic B-spline, that sum to 1.

    The weights of a record have its place as their mean, and a variance of a quarter of the squared spacing,
    wherever it lies. So reading with a kernel that is narrower by that variance gives the requested kernel,
    up to the third moment: an error of 0.1, 0.5 or 1.5 % of a record's kernel value for a spacing of a half,
    three quarters or one bandwidth, which alternates with its place and averages out over records.

    Parameters
    ----------
    cells : tuple of int
        How many cells the box has along each of its 1 to 4 columns.
    bounds : Bounds
        The box, declared. Records are clipped to it.
    columns : tuple of str, optional
        What the columns are called, in their order.

    Privacy
    -------
    Weights are integers out of a public table and sum to exactly F = parts^d for every record: Δ1 = F for one
    record present or absent, 2F for one replaced. Δ2 is the largest norm in the table, about 0.77^d·F; for a
    replaced record √2 times that, since weights are not negative. A record's weights depend on that record
    alone: its place along each column is rounded to a 256th of a cell in double precision, element by
    element.
    """

    name: ClassVar[str] = "grid-weights"

    cells: tuple[int, ...]
    bounds: Bounds
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        dim = len(self.bounds.low)
        if dim > MAX_DIM:
            raise UsageError(
                f"a grid takes 1 to {MAX_DIM} columns, got {dim}; use fourier_features or race for more"
            )
        cells = tuple(positive_integer("cells", n, at_most=MAX_CELLS) for n in self.cells)
        if len(cells) != dim:
            raise UsageError(
                parameter="cells",
                rule=f"must be {dim} numbers, one for each column",
                got=len(cells),
                remedy="give one each",
            )
        if math.prod(n + 2 for n in cells) > MAX_CELLS:
            raise UsageError(
                f"a grid may have {MAX_CELLS} nodes, got more; use fewer cells, a larger bandwidth or spacing"
            )
        check_columns(self.columns, dim)
        object.__setattr__(self, "cells", cells)

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes along each column: the middle of every cell, and one beyond each end."""
        return tuple(n + 2 for n in self.cells)

    @property
    def shape(self) -> tuple[int, int]:
        """The first column's nodes, and all the others' together."""
        return self.nodes[0], math.prod(self.nodes[1:])

    @property
    def spacing(self) -> tuple[float, ...]:
        """The distance of nodes along each column."""
        return tuple(
            (high - low) / n
            for low, high, n in zip(self.bounds.low, self.bounds.high, self.cells, strict=True)
        )

    @property
    def whole(self) -> int:
        """F: what the weights of a record sum to."""
        return int(PARTS[len(self.cells)] ** len(self.cells))

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """The weights of one record, or of two."""
        dim = len(self.cells)
        parts = part_table(PARTS[dim])
        squares = int((parts * parts).sum(axis=1).max()) ** dim
        records = 1 if relation is Relation.ADD_REMOVE else 2
        return Sensitivity(records * self.whole, records * squares, int(parts.max()) ** dim)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's weights to the nodes around it."""
        flat = table.reshape(-1)
        for start in range(0, len(batch), _RECORDS_AT_A_TIME):
            nodes, weights = self.weights(batch.arrays[0][start : start + _RECORDS_AT_A_TIME])
            np.add.at(flat, nodes.reshape(-1), (step * weights).reshape(-1))

    def weights(self, rows: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes around each prepared record and their integer weights, both of shape (n, 3^d)."""
        parts = part_table(PARTS[len(self.cells)])
        nodes = np.zeros((len(rows), 1), np.int64)
        weights = np.ones((len(rows), 1), np.int64)
        for column, (number, spacing) in enumerate(zip(self.cells, self.spacing, strict=True)):
            along = rows[:, column].astype(np.float64) / spacing + 0.5 * number
            place = np.clip(np.floor(along * POSITIONS), 0, number * POSITIONS - 1).astype(np.int64)
            cell, inside = np.divmod(place, POSITIONS)
            around = cell[:, None] + np.arange(3)
            nodes = (nodes[:, :, None] * (number + 2) + around[:, None, :]).reshape(len(rows), -1)
            weights = (weights[:, :, None] * parts[inside][:, None, :]).reshape(len(rows), -1)
        return nodes, weights

    def _reading(self, kernel: Kernel) -> GridReading:
        return GridReading(self, kernel)


@dataclass(frozen=True)
class GridReading(LinearReading):
    """The kernel, narrowed by the spread of a record's weights, summed over the nodes."""

    basis: GridWeights
    kernel: Kernel

    def __post_init__(self) -> None:
        PROFILES.check(self.kernel, "a grid")
        dim = self.basis.bounds.dim
        if self.kernel.dim != dim:
            raise UsageError(
                parameter="bounds",
                rule=f"must have one (low, high) for each of {self.kernel.dim} columns",
                got=f"{dim}",
                remedy="give all",
            )
        coarsest = max(self.basis.spacing)
        if not self._profiles.cusp and coarsest > 1.25 * self._profiles.width:
            raise UsageError(
                parameter="bandwidth",
                rule="must be at least 0.8 of the grid's spacing",
                got=f"{self._profiles.width / coarsest:.3g}",
                remedy="make a finer grid, or read a wider kernel",
            )

    @property
    def _profiles(self) -> ProfileKernel:
        assert isinstance(self.kernel, ProfileKernel)
        return self.kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums: the narrowed kernel, summed over the nodes."""
        return self._reader.sums(table.reshape(self.basis.nodes), batch) / self.basis.whole

    def noise_gain(self, batch: Batch) -> Floats:
        """The sum of the squared narrowed kernel over the nodes, in units of whole records."""
        return self._reader.gains(batch) / float(self.basis.whole) ** 2

    def method_variance(self, table: Table, batch: Batch, sums: Floats, count: float) -> Floats:
        """The squared error that a grid of this spacing typically has, relative to the answer."""
        coarsest = max(self.basis.spacing) / self._profiles.width
        own = typical_error(coarsest, len(self.basis.cells), cusp=self._profiles.cusp)
        return (own * np.maximum(sums, 0.0)) ** 2

    def total(self, table: Table) -> tuple[float, float]:
        """Every record's weights sum to F."""
        whole = self.basis.whole
        return float(table.sum(dtype=np.int64)) / whole, table.size / float(whole) ** 2

    @cached_property
    def _reader(self) -> GridReader:
        places: list[Floats] = [
            (np.arange(number + 2, dtype=np.float64) - 0.5 * (number + 1)) * spacing
            for number, spacing in zip(self.basis.cells, self.basis.spacing, strict=True)
        ]
        return GridReader(self._profiles, places, self.basis.spacing)


def typical_error(spacing: float, dim: int, *, cusp: float = 0.0) -> float:
    """The root mean square error of a grid itself, relative to the answer, for a spacing in widths of the
    kernel.

    Measured without noise at queries from the data: mean absolute errors of 0.0001, 0.0004 and 0.0017 for
    real salaries at spacings of 0.5, 0.75 and 1 with the Gaussian kernel, and of 0.001, 0.0024 and 0.0032 for
    skin tones. Smooth data err ten times less. Errors of neighbouring records cancel, so it is far below that
    of one record; what is left in many columns is the rounding of the weights.

    No grid follows the ``cusp`` of a kernel where query and record meet: mean absolute errors of 0.0007 to
    0.003, 0.003 to 0.005 and 0.015 at spacings of 0.2, 0.4 and 0.75 for the Euclidean kernel, two or three
    times that for the Manhattan kernel; the larger ones where records pile up on round numbers.

    >>> round(typical_error(1.0, 1), 4), round(typical_error(1.0, 3), 4)
    (0.0022, 0.0074)
    """
    rounding = 0.03 * math.sqrt(dim) / PARTS[dim]
    return (cusp * math.pow(spacing, 1.5) if cusp else 0.0022 * dim * spacing**4) + rounding


def part_table(parts: int) -> NDArray[np.int64]:
    """Integer weights of the three nodes for each place inside a cell, shape (POSITIONS, 3); rows sum to
    ``parts``.

    With u the distance from the middle of the cell in cells, the outer nodes get ½(½ ∓ u)², rounded, and the
    middle one what is left.

    >>> part_table(64)[[0, 128, 255]].tolist()
    [[32, 32, 0], [8, 48, 8], [0, 32, 32]]
    """
    from_middle = 2 * np.arange(POSITIONS) + 1 - POSITIONS
    # (½ − u)²/2 with u = from_middle/(2·POSITIONS), in integers: rounded to nearest, halves up.
    unit = 8 * POSITIONS**2
    outer = [(POSITIONS - sign * from_middle) ** 2 * parts for sign in (1, -1)]
    low, high = ((2 * value + unit) // (2 * unit) for value in outer)
    return np.stack([low, parts - low - high, high], axis=1).astype(np.int64)
