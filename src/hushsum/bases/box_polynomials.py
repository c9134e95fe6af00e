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
from hushsum.bases.base import LinearReading, Table
from hushsum.bases.chebyshev import chebyshev_values, column_profile, reach_of
from hushsum.bases.declared_box import RACE, BoxBasis, blocks, check_columns_of, gaussian_width, queries_of
from hushsum.bases.hermite_reading import MONOMIALS, box_readings, check_family
from hushsum.bases.registry import register
from hushsum.errors import PerSurface, UsageError
from hushsum.kernels.base import Batch, ColumnKernel, Kernel
from hushsum.kernels.parameters import positive_integer, positive_number
from hushsum.privacy.calibration import Sensitivity
from hushsum.privacy.claim import Relation

MAX_ORDER = 32
MAX_CELLS = 1 << 28
_ERROR_REACH = 4.0
"""Bandwidths within which errors are summed."""

_OFFSETS = 8
_PRIMES = (2.0, 3.0, 5.0, 7.0)


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


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """Boxes around some queries: their index and whether they are read, shape (n, w, …, w); and in each
    column their readings, shape (n, w, order + 1), and how far the query is from their centres, (n, w).
    """

    rows: slice
    index: NDArray[np.int64]
    near: NDArray[np.bool_]
    readings: list[Floats]
    offsets: list[Floats]


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
        profile, size = column_profile(self.kernel, "hermite"), self.kernel.size_bound()
        return reach_of(profile, self.kernel.width, farthest, size) + self.basis.side

    def _windows(self, batch: Batch, reach: float) -> Iterator[_Window]:
        """For some queries at a time, the boxes around them as far as ``reach``."""
        basis = self.basis
        spans = [min(number, 2 * math.ceil(reach / basis.side) + 1) for number in basis.boxes]
        queries = queries_of(batch)
        for start, stop in blocks(len(batch), 4 * math.prod(spans)):
            part = queries[start:stop]
            index = np.zeros((stop - start,) + (1,) * basis.dim, np.int64)
            distance = np.zeros(index.shape)
            readings, offsets = [], []
            for column, (number, span) in enumerate(zip(basis.boxes, spans, strict=True)):
                above = part[:, column] + basis.half[column]
                first = np.clip(np.rint(above / basis.side - 0.5 * span), 0, number - span).astype(np.int64)
                place = first[:, np.newaxis] + np.arange(span)
                away = above[:, np.newaxis] - (place + 0.5) * basis.side
                reading = box_readings(self.kernel, basis.polynomials, basis.side, basis.order, away)
                if self._published_reach is None:
                    reading[np.abs(away) > self._kernel_reach] = 0.0
                readings.append(reading)
                offsets.append(away)
                shape = [stop - start] + [1] * basis.dim
                shape[column + 1] = span
                index = index * number + place.reshape(shape)
                distance = distance + (away * away).reshape(shape)
            near = np.ones(index.shape, bool)
            if self._published_reach is not None:
                near = distance <= self._published_reach**2
            yield _Window(slice(start, stop), index, near, readings, offsets)

    @property
    def _reach(self) -> float:
        return self._kernel_reach if self._published_reach is None else self._published_reach

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Σ over boxes in reach and degrees."""
        answers = np.zeros(len(batch))
        for window in self._windows(batch, self._reach):
            for number, (degree, weight) in enumerate(
                zip(self.basis.degrees, self.basis.weights, strict=True)
            ):
                cells = np.where(window.near, table[window.index, number], 0) / weight
                answers[window.rows] += _folded(cells, window.readings, degree)
        return answers

    def noise_gain(self, batch: Batch) -> Floats:
        """The same with squares."""
        gain = np.zeros(len(batch))
        for window in self._windows(batch, self._reach):
            cells = window.near.astype(np.float64)
            squares = [reading * reading for reading in window.readings]
            for degree, weight in zip(self.basis.degrees, self.basis.weights, strict=True):
                gain[window.rows] += _folded(cells / float(weight) ** 2, squares, degree)
        return gain

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The squared error of the expansion, as if the records of a box were at one random place in it.

        The mean error over places has one sign in all boxes, and adds up; it is what boxes out of reach leave
        out. The spread about it is independent between boxes.
        """
        squared = np.zeros(len(batch))
        held = table[:, 0].astype(np.float64) / self.basis.weights[0]
        assert isinstance(self.kernel, ColumnKernel)
        for window in self._windows(batch, _ERROR_REACH * self.kernel.width + self.basis.side):
            errors = np.stack([self._errors_at(window, place) for place in self._places])
            mean = errors.mean(axis=0)
            cells = held[window.index]
            axes = tuple(range(1, cells.ndim))
            spread = (errors**2).mean(axis=0) - mean**2
            squared[window.rows] = (cells * mean).sum(axis=axes) ** 2 + (cells**2 * spread).sum(axis=axes)
        return squared

    @cached_property
    def _places(self) -> Floats:
        """Offsets in a box, evenly spread over it: multiples of irrational numbers (Kronecker's sequence)."""
        steps = np.sqrt(np.array(_PRIMES[: self.basis.dim]))
        return np.asarray(2.0 * np.modf(np.outer(np.arange(_OFFSETS) + 0.5, steps))[0] - 1.0)

    def _errors_at(self, window: _Window, place: Floats) -> Floats:
        """How far the reading of a record at this offset in each box of a window is from the kernel."""
        profile = column_profile(self.kernel, "hermite")
        error = np.zeros(window.index.shape)
        values = [_values(self.basis.polynomials, each[np.newaxis], self.basis.order)[:, 0] for each in place]
        for degree in self.basis.degrees:
            terms = [
                values[column][power] * reading[:, :, power]
                for column, (power, reading) in enumerate(zip(degree, window.readings, strict=True))
            ]
            error += _product(terms)
        error *= window.near
        moved = zip(window.offsets, 0.5 * self.basis.side * place, strict=True)
        return np.asarray(error - _product([profile(away - offset) for away, offset in moved]))

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


def _product(factors: list[Floats]) -> Floats:
    """The product over columns of arrays of shape (n, w), shape (n, w, …, w)."""
    product = factors[0]
    for factor in factors[1:]:
        product = product[..., np.newaxis] * factor.reshape(len(factor), *(1,) * (product.ndim - 1), -1)
    return product
