"""Weights on a grid inside declared bounds: every record is shared among the nodes around it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import Basis, LinearReading, Table
from hushsum.bases.grid_errors import ReadingErrors
from hushsum.bases.grid_reading import GridColumn, GridReader
from hushsum.bases.registry import register
from hushsum.bases.splines import HIGHEST_DEGREE, LOWEST_DEGREE, part_table
from hushsum.errors import UsageError
from hushsum.kernels.base import Batch, Kernel, ProfileKernel
from hushsum.kernels.parameters import check_columns, positive_integer
from hushsum.kernels.registry import PROFILES
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation
from hushsum.records.bounds import Bounds

MAX_DIM = 4
MAX_CELLS = 1 << 26
DEFAULT_DEGREE = 3
WHOLE = 1 << 20
"""F: what the weights of a record sum to. Rounding them moves an answer by some millionths of a record."""

_PARTS = {1: WHOLE, 2: 1 << 16, 3: 1 << 16, 4: 1 << 13}
"""Into how many parts a record is cut along each column, by the number of columns: products of them are exact
in 53 bits.
"""

_PLACES = {1: 1 << 16, 2: 1 << 14, 3: 1 << 14, 4: 1 << 12}
"""Places inside a cell that are distinguished: a record is moved by at most half of one."""

WIDEST = 10_000.0
"""Of a smooth kernel, in cells: what its reading tabulates is as long as the kernel is wide."""

_NUMBERS_AT_A_TIME = 1 << 20


@register
@dataclass(frozen=True)
class GridWeights(Basis):
    """Each record gives the nodes around it non-negative weights, of a B-spline along each column, that sum
    to one whole.

    With degree p a record gives weights to p + 1 nodes along a column. Reading projects the kernel on the
    splines by least squares, so the approximation error is the part of the kernel that splines of that degree
    and spacing do not follow. Degree 0 is for a column whose values lie on declared steps: the nodes are the
    steps, each record adds its whole to one of them, and the reading is exact.

    Parameters
    ----------
    cells : tuple of int
        How many cells the box has along each of its 1 to 4 columns.
    bounds : Bounds
        The box, declared. Records are clipped to it.
    degrees : tuple of int
        Of the splines along each column, from 2 to 5; or 0 for a column of steps, which are the ends of the
        cells.
    columns : tuple of str, optional
        What the columns are called, in their order.

    Privacy
    -------
    Weights are integers that sum to exactly F = 2^20 for every record, and are not negative: Δ1 = F for one
    record present or absent, 2F for one replaced. A column's weights come from a public table with one row
    for each of 2^12 to 2^16 places in a cell. In one column Δ2 is the largest norm in the table. In d columns
    weights are products, rounded to multiples of 1/F, and the largest takes what the other n − 1 leave:
    rounding moves the vector by at most √n/2 + n/2, so Δ2 is at most the product of the largest norms plus
    that. For a replaced record √2 times that, since weights are not negative. A record's weights depend on
    that record alone: its place along each column is rounded in double precision, element by element.
    """

    name: ClassVar[str] = "grid-weights"
    fractional: ClassVar[bool] = True

    cells: tuple[int, ...]
    bounds: Bounds
    degrees: tuple[int, ...]
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
        degrees = tuple(self.degrees)
        allowed = (0, *range(LOWEST_DEGREE, HIGHEST_DEGREE + 1))
        if len(degrees) != dim or any(type(each) is not int or each not in allowed for each in degrees):
            raise UsageError(
                parameter="degree",
                rule=f"must be {LOWEST_DEGREE} to {HIGHEST_DEGREE}",
                got=", ".join(str(each) for each in degrees),
                remedy=f"{DEFAULT_DEGREE} is a common choice",
            )
        check_columns(self.columns, dim)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "degrees", degrees)
        if math.prod(self.nodes) > MAX_CELLS:
            raise UsageError(
                f"a grid may have {MAX_CELLS} nodes, got more; use fewer cells, a larger bandwidth or spacing"
            )

    @property
    def nodes(self) -> tuple[int, ...]:
        """Nodes along each column: as many beyond the ends of the box as a record at an end gives weights
        to.
        """
        return tuple(n + max(degree, 1) for n, degree in zip(self.cells, self.degrees, strict=True))

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

    def grid_columns(self) -> tuple[GridColumn, ...]:
        """The nodes along each column, relative to the centre of the box."""
        return tuple(
            GridColumn(nodes, spacing, -spacing * (0.5 * n + (0.5 * (degree - 1) if degree else 0.0)), degree)
            for n, nodes, spacing, degree in zip(
                self.cells, self.nodes, self.spacing, self.degrees, strict=True
            )
        )

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """The weights of one record, or of two."""
        length, largest = _norm_bounds(self.degrees)
        records = 1 if relation is Relation.ADD_REMOVE else 2
        return Sensitivity(records * WHOLE, records * length, largest)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's weights to the nodes around it."""
        flat = table.reshape(-1)
        block = max(1, _NUMBERS_AT_A_TIME // math.prod(degree + 1 for degree in self.degrees))
        for start in range(0, len(batch), block):
            nodes, weights = self.weights(batch.arrays[0][start : start + block])
            np.add.at(flat, nodes.reshape(-1), (step * weights).reshape(-1))

    def weights(self, rows: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The nodes around each prepared record and their integer weights, both of shape (n, Π (degree +
        1)).
        """
        nodes = np.zeros((len(rows), 1), np.int64)
        weights = np.ones((len(rows), 1), np.int64)
        largest = np.zeros(len(rows), np.int64)
        whole = 1
        for column, (number, spacing, degree) in enumerate(
            zip(self.cells, self.spacing, self.degrees, strict=True)
        ):
            along = rows[:, column].astype(np.float64) / spacing + 0.5 * number
            if degree == 0:
                around = np.clip(np.floor(along + 0.5), 0, number).astype(np.int64)[:, None]
                parts = np.ones((len(rows), 1), np.int64)
            else:
                places = _PLACES[len(self.cells)]
                place = np.clip(np.floor(along * places), 0, number * places - 1).astype(np.int64)
                cell, inside = np.divmod(place, places)
                around = cell[:, None] + np.arange(degree + 1)
                parts = part_table(degree, _PARTS[len(self.cells)], places)[inside].astype(np.int64)
                whole *= _PARTS[len(self.cells)]
            largest = largest * parts.shape[1] + parts.argmax(axis=1)
            nodes = (nodes[:, :, None] * self.nodes[column] + around[:, None, :]).reshape(len(rows), -1)
            weights = (weights[:, :, None] * parts[:, None, :]).reshape(len(rows), -1)
        if whole < WHOLE:
            weights *= WHOLE // whole
        elif whole > WHOLE:
            shift = (whole // WHOLE).bit_length() - 1
            weights = (weights + (1 << (shift - 1))) >> shift
            weights[np.arange(len(rows)), largest] += WHOLE - weights.sum(axis=1)
        return nodes, weights

    def _reading(self, kernel: Kernel) -> GridReading:
        return GridReading(self, kernel)


@dataclass(frozen=True)
class GridReading(LinearReading):
    """The kernel, projected on the splines of the weights, summed over the nodes."""

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
        smooth = zip(self.basis.spacing, self._profiles.column_widths(), self.basis.degrees, strict=True)
        coarsest = max((spacing / width for spacing, width, degree in smooth if degree), default=0.0)
        if self._profiles.smooth and coarsest > 1.25:
            raise UsageError(
                parameter="bandwidth",
                rule="must be at least 0.8 of the grid's spacing",
                got=f"{1.0 / coarsest:.3g}",
                remedy="make a finer grid, or read a wider kernel",
            )
        widths = zip(self.basis.spacing, self._profiles.column_widths(), strict=True)
        widest = max(width / spacing for spacing, width in widths)
        if self._profiles.smooth and widest > WIDEST:
            raise UsageError(
                parameter="bandwidth",
                rule=f"must be at most {WIDEST:,.0f} times the grid's spacing",
                got=f"{widest:.3g}",
                remedy="make a coarser grid, or read a narrower kernel",
            )

    @property
    def _profiles(self) -> ProfileKernel:
        assert isinstance(self.kernel, ProfileKernel)
        return self.kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums: the projection of the kernel, summed over the nodes."""
        return self._reader.sums(table.reshape(self.basis.nodes), batch) / WHOLE

    def noise_gain(self, batch: Batch) -> Floats:
        """The sum of the squared coefficients over the nodes, in units of whole records."""
        return self._reader.gains(batch) / float(WHOLE) ** 2

    def noise_covariance(self, batch: Batch) -> Floats:
        """Products over columns of the inner products of coefficients."""
        return self._reader.covariances(batch) / float(WHOLE) ** 2

    def record_answers(self, records: Batch, queries: Batch) -> Floats:
        """The kernel itself, which a grid reads nearly exactly."""
        return self.kernel.prepared_similarity(records, queries)

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """As if the records around each node were at one random place."""
        nodes = table.reshape(self.basis.nodes)
        return self.errors.variance(nodes, batch) / float(WHOLE) ** 2

    def bias_bound(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """Σ over records of the largest error that the reading of one can have, read from the table
        itself.
        """
        errors = self.errors
        nodes = table.reshape(self.basis.nodes)
        return errors.bound(nodes, batch, variance) / WHOLE + errors.floor * max(count, 0.0)

    def total(self, table: Table) -> tuple[float, float]:
        """Every record's weights sum to F."""
        return float(table.sum(dtype=np.int64)) / WHOLE, table.size / float(WHOLE) ** 2

    def total_covariance(self, batch: Batch) -> Floats:
        """The sum of the coefficients over the nodes."""
        return self._reader.sums(np.ones(self.basis.nodes, np.int64), batch) / float(WHOLE) ** 2

    @cached_property
    def errors(self) -> ReadingErrors:
        """How far the reading of one record may be from the kernel."""
        return ReadingErrors(
            self._profiles, self._reader, rounding=self._rounding, typical_rounding=self._typical_rounding
        )

    @cached_property
    def _reader(self) -> GridReader:
        return GridReader.of(self._profiles, self.basis.grid_columns())

    @property
    def _rounding(self) -> float:
        """How far an answer may move, in units of one record, by the rounding of its place and its weights.

        A place is moved by half a step, and the slope of a kernel is at most about 1/width. Of n weights,
        each is off by at most half a unit, independently of the others: the sum by less than √n units.
        """
        smooth = [degree for degree in self.basis.degrees if degree]
        moved = self._steepest / (2.0 * _PLACES[len(self.basis.cells)])
        joined = math.sqrt(math.prod(degree + 1 for degree in smooth)) / WHOLE
        parts = sum(degree + 1.0 for degree in smooth) / _PARTS[len(self.basis.cells)]
        return self._profiles.size_bound() * (moved * len(smooth) + joined + parts) if smooth else 0.0

    @property
    def _typical_rounding(self) -> float:
        """The root mean square of the same over places in a cell, from above.

        Each rounding is uniform within half a step, of variance 1/12, and independent of the others. What is
        added to the largest weight is taken from another one, so that an answer moves by a difference of two
        coefficients, which is at most about the size of the kernel.
        """
        smooth = [degree for degree in self.basis.degrees if degree]
        moved = self._steepest * math.sqrt(len(smooth)) / _PLACES[len(self.basis.cells)]
        joined = math.sqrt(math.prod(degree + 1 for degree in smooth)) / WHOLE
        parts = math.sqrt(sum(smooth)) / _PARTS[len(self.basis.cells)]
        size = self._profiles.size_bound() / math.sqrt(12.0)
        return size * math.hypot(moved, joined, parts) if smooth else 0.0

    @property
    def _steepest(self) -> float:
        """The largest spacing in widths of the kernel."""
        widths = self._profiles.column_widths()
        return max(spacing / width for spacing, width in zip(self.basis.spacing, widths, strict=True))


@lru_cache(maxsize=64)
def _norm_bounds(degrees: tuple[int, ...]) -> tuple[int, int]:
    """The largest squared norm, and the largest weight, of any record."""
    smooth = [degree for degree in degrees if degree]
    parts = _PARTS[len(degrees)]
    if not smooth:
        return WHOLE**2, WHOLE
    squares, largest = Fraction(1), Fraction(1)
    for degree in smooth:
        table = part_table(degree, parts, _PLACES[len(degrees)]).astype(np.int64)
        squares *= Fraction(int((table * table).sum(axis=1).max()), parts**2)
        largest *= Fraction(int(table.max()), parts)
    if parts ** len(smooth) <= WHOLE:
        # A multiple of the table's rows, without rounding.
        return int(squares * WHOLE**2), int(largest * WHOLE)
    number = math.prod(degree + 1 for degree in smooth)
    norm = math.isqrt(math.ceil(squares * WHOLE**2)) + 1
    moved = math.isqrt(number) // 2 + 1 + (number + 1) // 2
    return (norm + moved) ** 2, math.ceil(largest * WHOLE) + 1 + (number + 1) // 2
