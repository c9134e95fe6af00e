"""Polynomials of each record's offset in its box: the fast Gauss transform, and what follows from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import LinearReading, Table, register
from hushsum.bases.chebyshev import chebyshev_values, column_profile, reach_of
from hushsum.bases.declared_box import RACE, BoxBasis, blocks, check_columns_of, gaussian_width, queries_of
from hushsum.bases.hermite_reading import MONOMIALS, box_readings, check_family, relative_square_error
from hushsum.errors import PerSurface, UsageError
from hushsum.kernels.base import Batch, ColumnKernel, Kernel
from hushsum.kernels.parameters import positive_integer, positive_number
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation

MAX_ORDER = 32
MAX_CELLS = 1 << 28


@register
@dataclass(frozen=True, kw_only=True)
class BoxPolynomials(BoxBasis):
    """Boxes of equal side; a record adds polynomials of its offset from the centre to its own box.

    Low dimension: the number of boxes is the volume of the bounds over that of a box.

    Parameters
    ----------
    side : float
        The side of a box, in the units of the data.
    order : int
        Highest degree: of a product over columns in total, or in each column with ``every_column``.
    polynomials : {"chebyshev", "monomials"}
        Of the offset, which is in [−1, 1] inside a box.
    weights : tuple of int
        Steps of fixed point for each coefficient, the constant's first: more steps, less noise for it.
    every_column : bool
        All degrees up to ``order`` in each column, as published.

    Privacy
    -------
    In one box, coefficient α changes by an integer of size at most W_α, since polynomials are within [−1, 1]:
    Δ1 = ΣW, Δ2² = ΣW², both attained at a corner of the bounds. Replaced: two boxes, so twice these; or one
    box, where the constant stays and the others change by at most 2W.

    Notes
    -----
    Greengard and Strain, *The fast Gauss transform*, 1991; Wagner, Naamad and Mishra, *Fast private kernel
    density estimation via locality sensitive quantization*, ICML 2023.
    """

    name: ClassVar[str] = "box-polynomials"

    side: float
    order: int
    weights: tuple[int, ...]
    polynomials: str = "chebyshev"
    every_column: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_family(self.polynomials)
        object.__setattr__(self, "side", positive_number("side", self.side))
        if self.order:
            object.__setattr__(self, "order", positive_integer("order", self.order, at_most=MAX_ORDER))
        degrees = number_of_degrees(self.dim, self.order, every_column=self.every_column)
        if len(self.weights) != degrees or any(
            type(w) is not int or not 1 <= w <= self.scale for w in self.weights
        ):
            raise UsageError(
                parameter="weights",
                rule=f"must be {degrees} integers from 1 to the scale",
                got="others",
                remedy=("use ", PerSurface("hushsum.hermite", "the hermite method", "the hermite method")),
            )
        cells = degrees * math.prod(max(1.0, 2.0 * half / self.side + 1.0) for half in self.half.tolist())
        if cells > MAX_CELLS:
            raise UsageError(
                rule=f"boxes × coefficients must be at most {MAX_CELLS}",
                got=f"about {cells:.2g}",
                remedy=("use wider boxes, narrower bounds, or ", RACE, ", which works in any dimension"),
            )

    @cached_property
    def boxes(self) -> tuple[int, ...]:
        """Boxes in each column."""
        return tuple(max(1, math.ceil(2.0 * half / self.side)) for half in self.half.tolist())

    @cached_property
    def degrees(self) -> list[tuple[int, ...]]:
        """The degree in each column of every coefficient of a box, the constant first."""
        return degrees_of(self.dim, self.order, every_column=self.every_column)

    @property
    def shape(self) -> tuple[int, int]:
        """(boxes, coefficients of a box)."""
        return math.prod(self.boxes), len(self.degrees)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """From the weights; see the class."""
        l1, squares = sum(self.weights), sum(w * w for w in self.weights)
        first, others = self.weights[0], self.weights[1:]
        if relation is Relation.ADD_REMOVE:
            return Sensitivity(l1=l1, l2_squared=squares, largest=max(self.weights))
        return Sensitivity(
            l1=2 * l1,
            l2_squared=max(2 * squares, 4 * sum(w * w for w in others)),
            largest=max(first, 2 * max(others, default=0)),
        )

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 4 * (self.order + 1) * self.dim

    def _add(self, table: NDArray[np.int64], records: Floats, step: int) -> None:
        box = np.zeros(len(records), np.int64)
        values = []
        for column, number in enumerate(self.boxes):
            above = records[:, column] + self.half[column]
            place = np.clip(np.floor(above / self.side), 0.0, number - 1.0)
            offset = np.clip((above - (place + 0.5) * self.side) / (0.5 * self.side), -1.0, 1.0)
            values.append(_values(self.polynomials, offset, self.order))
            box = box * number + place.astype(np.int64)
        flat = table.reshape(-1)
        for index, (degree, weight) in enumerate(zip(self.degrees, self.weights, strict=True)):
            product = np.full(len(records), float(weight))
            for column, power in enumerate(degree):
                product *= values[column][power]
            np.add.at(flat, box * len(self.degrees) + index, step * np.rint(product).astype(np.int64))

    def _reading(self, kernel: Kernel) -> BoxPolynomialsReading:
        return BoxPolynomialsReading(self, kernel)


@dataclass(frozen=True)
class BoxPolynomialsReading(LinearReading):
    """The kernel's expansion in the boxes near a query, times the records' polynomials.

    Boxes are read where the kernel is above 2e-8. Of polynomials up to ``order`` in every column, as
    published, those are read whose centre is within √(order + 1) sides of the query, as published too.
    """

    basis: BoxPolynomials
    kernel: Kernel

    def __post_init__(self) -> None:
        if self.basis.polynomials == MONOMIALS:
            gaussian_width(self.kernel, "the expansion in monomials")
        column_profile(self.kernel, "hermite")
        check_columns_of(self.kernel, self.basis)

    @property
    def _published_reach(self) -> float | None:
        basis = self.basis
        return basis.side * math.sqrt(basis.order + 1) if basis.every_column else None

    @cached_property
    def _kernel_reach(self) -> float:
        """How far a box may be from a query and still matter."""
        assert isinstance(self.kernel, ColumnKernel)
        farthest = 4.0 * float(self.basis.half.max())
        return reach_of(column_profile(self.kernel, "hermite"), self.kernel.width, farthest) + self.basis.side

    def _windows(self, batch: Batch) -> Iterator[tuple[slice, NDArray[np.int64], list[Floats]]]:
        """For some queries at a time: the boxes in reach, shape (n, w, …, w), and each column's readings,
        shape (n, w, order + 1), zero where there is no box.
        """
        reach = self._kernel_reach if self._published_reach is None else self._published_reach
        spans = [min(number, 2 * math.ceil(reach / self.basis.side) + 1) for number in self.basis.boxes]
        queries = queries_of(batch)
        for start, stop in blocks(len(batch), 4 * math.prod(spans)):
            part = queries[start:stop]
            index = np.zeros((stop - start,) + (1,) * self.basis.dim, np.int64)
            distance = np.zeros(index.shape)
            readings = []
            for column, (number, span) in enumerate(zip(self.basis.boxes, spans, strict=True)):
                above = part[:, column] + self.basis.half[column]
                first = np.clip(np.rint(above / self.basis.side - 0.5 * span), 0, number - span).astype(
                    np.int64
                )
                place = first[:, np.newaxis] + np.arange(span)
                away = above[:, np.newaxis] - (place + 0.5) * self.basis.side
                reading = box_readings(
                    self.kernel, self.basis.polynomials, self.basis.side, self.basis.order, away
                )
                if self._published_reach is None:
                    reading[np.abs(away) > reach] = 0.0
                readings.append(reading)
                shape = [stop - start] + [1] * self.basis.dim
                shape[column + 1] = span
                index = index * number + place.reshape(shape)
                distance = distance + (away * away).reshape(shape)
            if self._published_reach is not None:
                # No box beyond the published distance: its place is taken by a cell that is always zero.
                index = np.where(distance <= self._published_reach**2, index, -1)
            yield slice(start, stop), index, readings

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Σ over boxes in reach and degrees."""
        answers = np.zeros(len(batch))
        for rows, index, readings in self._windows(batch):
            for number, (degree, weight) in enumerate(
                zip(self.basis.degrees, self.basis.weights, strict=True)
            ):
                cells = np.where(index >= 0, table[index, number], 0) / weight
                answers[rows] += _folded(cells, readings, degree)
        return answers

    def noise_gain(self, batch: Batch) -> Floats:
        """The same with squares."""
        gain = np.zeros(len(batch))
        for rows, index, readings in self._windows(batch):
            cells = (index >= 0).astype(np.float64)
            squares = [reading * reading for reading in readings]
            for degree, weight in zip(self.basis.degrees, self.basis.weights, strict=True):
                gain[rows] += _folded(cells / float(weight) ** 2, squares, degree)
        return gain

    def method_variance(self, table: Table, batch: Batch, sums: Floats, count: float) -> Floats:
        """The squared truncation error if all records lay at one place, averaged over places."""
        return np.asarray(self._relative_square_error * np.square(sums))

    @cached_property
    def _relative_square_error(self) -> float:
        return relative_square_error(
            self.kernel, self.basis.polynomials, self.basis.side, self.basis.order, self.basis.degrees
        )

    def total(self, table: Table) -> tuple[float, float]:
        """The constants of all boxes count the records."""
        first = float(self.basis.weights[0])
        return float(table[:, 0].sum(dtype=np.int64)) / first, self.basis.shape[0] / first**2


def degrees_of(dim: int, order: int, *, every_column: bool) -> list[tuple[int, ...]]:
    """Degrees of the products over columns: up to ``order`` in total, or in each."""
    products = itertools.product(range(order + 1), repeat=dim)
    return sorted((a for a in products if every_column or sum(a) <= order), key=lambda a: (sum(a), a))


def number_of_degrees(dim: int, order: int, *, every_column: bool) -> int:
    """How many those are."""
    return int((order + 1) ** dim if every_column else math.comb(dim + order, dim))


def _values(polynomials: str, offset: Floats, order: int) -> Floats:
    if polynomials == "chebyshev":
        return chebyshev_values(offset, order)
    values = np.ones((order + 1, len(offset)))
    for k in range(1, order + 1):
        values[k] = values[k - 1] * offset
    return values


def _folded(cells: Floats, readings: list[Floats], degree: tuple[int, ...]) -> Floats:
    """Sum over the boxes of a window, column by column, the last first."""
    for reading, power in zip(reversed(readings), reversed(degree), strict=True):
        cells = np.einsum("n...w,nw->n...", cells, reading[:, :, power])
    return cells
