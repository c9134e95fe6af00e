"""A declared box cut into equal cells: where discretised methods put their records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.records.bounds import Bounds

MOST_CELLS = 1 << 24
MOST_BINS = 1 << 20

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CellGrid:
    """``bins[j]`` cells of equal width along column j of a box; declared, never learned from the data.

    Privacy
    -------
    A record's cell is computed elementwise in float64 from that record's own float32 bits, so it depends on
    that record alone.

    Examples
    --------
    >>> grid = CellGrid.of(Bounds.of([(0, 10), (0, 1)], dim=2), [5, 2])
    >>> grid.codes(np.array([[-5.0, 0.4], [5.0, -0.5]], dtype=np.float32))
    array([[0, 1],
           [4, 0]])
    """

    bounds: Bounds
    bins: tuple[int, ...]

    @classmethod
    def of(cls, bounds: Bounds, bins: int | Sequence[int], *, most_cells: int | None = None) -> CellGrid:
        """Read a ``bins=`` argument: one number for all columns, or one for each.

        ``most_cells`` limits the cells of the whole box; None where a method never forms it.

        Raises
        ------
        UsageError
            A number is not an integer from 1 to 2²⁰, there are not as many as columns, or too many cells.
        """
        given = (
            [bins] * bounds.dim
            if isinstance(bins, int | np.integer)
            else list(np.atleast_1d(np.asarray(bins, object)))
        )
        if len(given) != bounds.dim:
            raise UsageError(
                parameter="bins",
                rule=f"must be one number, or one for each of {bounds.dim} columns",
                got="another number",
            )
        for each in given:
            whole = isinstance(each, int | np.integer) and not isinstance(each, bool)
            if not whole or not 1 <= each <= MOST_BINS:
                raise UsageError(
                    parameter="bins",
                    rule=f"must be integers from 1 to {MOST_BINS}",
                    got="another",
                    remedy="try 64",
                )
        grid = cls(bounds, tuple(int(each) for each in given))
        if most_cells is not None and grid.cells > most_cells:
            raise UsageError(
                parameter="bins",
                rule=f"must make at most {most_cells} cells together",
                got=f"{grid.cells}",
                remedy="use fewer bins",
            )
        return grid

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.bins)

    @property
    def width(self) -> Floats:
        """The width of a cell along each column."""
        width: Floats = (np.array(self.bounds.high) - np.array(self.bounds.low)) / np.array(self.bins)
        return width

    def codes(self, rows: NDArray[np.float32]) -> Codes:
        """The cell of each record along each column; rows as ``kernel.prepare`` centres them on the box."""
        number = np.array(self.bins, dtype=np.float64)
        low = np.array(self.bounds.low) - self.bounds.centre
        place = np.floor((rows.astype(np.float64) - low) / self.width)
        return np.clip(place, 0.0, number - 1.0).astype(np.int64)

    def flat(self, codes: Codes) -> Codes:
        """One number for each record's cell, from 0 to ``cells − 1``, the last column fastest."""
        index = np.zeros(len(codes), np.int64)
        for column, number in enumerate(self.bins):
            index = index * number + codes[:, column]
        return index

    def count(self, rows: NDArray[np.float32]) -> Codes:
        """How many records lie in each cell, shape (cells,); secret."""
        return np.bincount(self.flat(self.codes(rows)), minlength=self.cells).astype(np.int64)

    def centres(self) -> Floats:
        """The middle of each cell in the units of the data, shape (cells, columns)."""
        codes = np.empty((self.cells, len(self.bins)), np.int64)
        index = np.arange(self.cells)
        for column in reversed(range(len(self.bins))):  # NumPy has no such arrays of more than 64 columns
            index, codes[:, column] = np.divmod(index, self.bins[column])
        return self.places(codes, 0.5)

    def places(self, codes: Codes | NDArray[np.int_], within: float | Floats) -> Floats:
        """Points in the units of the data, ``within`` (0 to 1) of the way through their cells."""
        low, high = np.array(self.bounds.low), np.array(self.bounds.high)
        return np.clip(low + (codes + within) * self.width, low, high)


def bins_for_bandwidth(
    bounds: Bounds, bandwidths: Sequence[float], *, fraction: float, most_cells: int
) -> list[int]:
    """Bins a declared ``fraction`` of the bandwidth of their column wide, fewer where that makes more than
    ``most_cells``.

    >>> bins_for_bandwidth(Bounds.of((0, 10), dim=1), [1.0], fraction=0.5, most_cells=1000)
    [20]
    """
    spans = np.array(bounds.high) - np.array(bounds.low)
    cells = np.maximum(1.0, np.ceil(spans / (fraction * np.array(bandwidths))))
    # Columns that are narrower than a cell keep their one cell; the others share what is left.
    while math.prod(int(each) for each in cells) > most_cells:
        free = cells > 1.0
        excess = float(np.prod(cells)) / most_cells
        cells[free] = np.maximum(1.0, np.floor(cells[free] * min(excess ** (-1.0 / free.sum()), 0.999)))
    return [int(each) for each in cells]
