"""Polynomials of each record's offset in its box: the fast Gauss transform, and what follows from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import PerSurface, UsageError
from hushsum.kernels import (
    GAUSSIAN,
    PRODUCT,
    Batch,
    ColumnKernel,
    ColumnProfile,
    Kernel,
    ProfileKernel,
    one_of,
    positive_integer,
    positive_number,
)
from hushsum.methods import boxed_tally, register_tally
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds, DeclaredBounds
from hushsum.tables import (
    DEFAULT_SCALE,
    RACE,
    BoxBasis,
    LinearReading,
    Table,
    blocks,
    check_columns_of,
    gaussian_width,
    queries_of,
    register,
)
from hushsum.tally import Tally

_NOTHING = 2e-8


def column_profile(kernel: Kernel, asker: str) -> ColumnProfile:
    """k as a function of the difference in one column; refuses a kernel that is not a product over them."""
    PRODUCT.check(kernel, asker)
    profile = kernel.column_profile() if isinstance(kernel, ProfileKernel) else None
    assert profile is not None
    return profile


def reach_of(profile: ColumnProfile, width: float, farthest: float, size: float = 1.0) -> float:
    """A distance beyond which the kernel is below 2e-8 of its ``size``, or ``farthest`` where it has not
    fallen by then. A difference of kernels may be 0 in between.
    """
    places = [width]
    while places[-1] < farthest:
        places.append(1.25 * places[-1])
    seen = np.flatnonzero(np.abs(profile(np.array(places[:-1]))) > _NOTHING * size)
    return places[int(seen[-1]) + 1] if len(seen) else width


def chebyshev_coefficients(
    profile: ColumnProfile, half: float, queries: Floats, degree: int, nodes: int
) -> Floats:
    """Coefficients of x ↦ profile(half·x − q) in T₀ … T_degree on [−1, 1].

    Shape (*queries.shape, degree + 1). A discrete cosine transform at Chebyshev's nodes, exact for
    polynomials of degrees below ``nodes``.
    """
    angle = (np.arange(nodes) + 0.5) * (np.pi / nodes)
    values = profile(half * np.cos(angle) - queries[..., np.newaxis])
    waves = np.cos(np.outer(angle, np.arange(degree + 1))) * (2.0 / nodes)
    waves[:, 0] *= 0.5
    coefficients: Floats = values @ waves
    return coefficients


def chebyshev_values(points: Floats, degree: int) -> Floats:
    """T₀ … T_degree at points of [−1, 1], shape (degree + 1, *points.shape), by their recurrence.

    Elementwise and from correctly rounded operations, so that records may use it; kept within [−1, 1].

    >>> chebyshev_values(np.array([1.0, 0.5]), 2).tolist()
    [[1.0, 1.0], [1.0, 0.5], [1.0, -0.5]]
    """
    values = np.ones((degree + 1, *points.shape))
    if degree:
        values[1] = points
    for k in range(2, degree + 1):
        values[k] = np.clip(2.0 * points * values[k - 1] - values[k - 2], -1.0, 1.0)
    return values


MONOMIALS = "monomials"
FAMILIES = ("chebyshev", MONOMIALS)
_NODES = 48
_SPAN = 6.0
_STEPS = 24
"""Places a bandwidth, or a box, where errors are averaged."""


def check_family(polynomials: str) -> None:
    """Refuse an unknown family."""
    one_of("polynomials", polynomials, FAMILIES)


def box_readings(kernel: Kernel, polynomials: str, side: float, order: int, away: Floats) -> Floats:
    """Coefficients in one column of t ↦ k(centre + t·side/2, q), with q ``away`` from the centre.

    Shape (*away.shape, order + 1). In monomials these are Hermite functions,
    ``k(z − y) = Σ (y^j/j!)·h_j(z)``, z and y in units of √2 bandwidths. In Chebyshev's polynomials they are
    combinations of all of them, about 2^j times smaller at degree j, and so is what is cut off.
    """
    if polynomials == "chebyshev":
        nodes = max(_NODES, 2 * order + 2)
        return chebyshev_coefficients(column_profile(kernel, "hermite"), 0.5 * side, away, order, nodes)
    width = math.sqrt(2.0) * gaussian_width(kernel, "the expansion in monomials")
    z, ratio = away / width, 0.5 * side / width
    # Hermite functions by their recurrence, with the factorials and powers of the half side taken along.
    functions = [np.exp(-z * z)]
    if order:
        functions.append(2.0 * ratio * z * functions[0])
    for j in range(2, order + 1):
        functions.append((2.0 * ratio / j) * (z * functions[-1] - ratio * functions[-2]))
    return np.stack(functions, axis=-1)


def relative_square_error(
    kernel: Kernel, polynomials: str, side: float, order: int, degrees: list[tuple[int, ...]]
) -> float:
    """∫(k − its expansion)²/∫k² over all places of record and query.

    Every term is a product over columns, so moments of one column suffice.
    """
    assert isinstance(kernel, ColumnKernel)
    width = kernel.width
    offsets: Floats = (np.arange(_STEPS, dtype=np.float64) + 0.5) * (2.0 / _STEPS) - 1.0
    steps = int(2 * (_SPAN * width + 0.5 * side) / width * _STEPS)
    away = (np.arange(steps) / (steps - 1) * 2.0 - 1.0) * (_SPAN * width + 0.5 * side)
    true = column_profile(kernel, "hermite")(np.subtract.outer(0.5 * side * offsets, away))
    values = _family(polynomials, offsets, order)
    readings = box_readings(kernel, polynomials, side, order, away)
    terms = values[:, :, np.newaxis] * readings.T[:, np.newaxis, :]
    energy = float((true * true).mean())
    cross = (terms * true).mean(axis=(1, 2))
    pairs = np.einsum("ixy,jxy->ij", terms, terms) / true.size
    dim = len(degrees[0])
    index = np.array(degrees)
    crossed = cross[index].prod(axis=1).sum()
    product = np.ones((len(degrees), len(degrees)))
    for column in range(dim):
        product *= pairs[index[:, column]][:, index[:, column]]
    return max(0.0, float(1.0 - (2.0 * crossed - product.sum()) / energy**dim))


def read_energy(kernel: Kernel, polynomials: str, side: float, order: int) -> Floats:
    """Σ over boxes of a reading's square, averaged over queries, for each degree in one column."""
    assert isinstance(kernel, ColumnKernel)
    width = kernel.width
    step = min(width, side) / _STEPS
    reach = _SPAN * width + 0.5 * side
    away = np.arange(-reach, reach, step)
    readings = box_readings(kernel, polynomials, side, order, away)
    return np.asarray((readings * readings).sum(axis=0) * (step / side))


def _family(polynomials: str, offsets: Floats, order: int) -> Floats:
    if polynomials == "chebyshev":
        return chebyshev_values(offsets, order)
    return np.asarray(offsets[np.newaxis, :] ** np.arange(order + 1)[:, np.newaxis])


MAX_ORDER = 32
_MAX_PUBLISHED_ORDER = 12
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
                "weights",
                f"must be {degrees} integers from 1 to the scale",
                got="others",
                remedy=("use ", PerSurface("hushsum.hermite", "the hermite method", "the hermite method")),
            )
        cells = degrees * math.prod(max(1.0, 2.0 * half / self.side + 1.0) for half in self.half.tolist())
        if cells > MAX_CELLS:
            raise UsageError(
                f"boxes × coefficients must be at most {MAX_CELLS}",
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


_WEIGHT_STEPS = 1 << 10
_ORDINARY = 0.012
_ORDERS = (0, 1, 2, 3, 4)
_SIDES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
_MOST_CELLS = 1 << 23


def hermite(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    order: int | None = None,
    side: float | None = None,
    records: int | None = None,
    epsilon: float | None = None,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of polynomials of each record's offset in its box: a fast Gauss transform; 1–4 columns.

    Offsets enter as Chebyshev's polynomials, in which what is cut off is about 2^order times smaller than in
    monomials; and each coefficient takes the share of the budget that minimises the noise of an answer.

    Parameters
    ----------
    kernel : Kernel
        Gaussian or Laplacian in any dimension; Euclidean or Manhattan in one. The released function answers
        other bandwidths too (``f.with_kernel``), best wider ones.
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it.
    order : int, optional
        Highest degree, over all columns together. 0 is a histogram, which has the least noise.
    side : float, optional
        Of a box, in widths of the kernel. Wider boxes are fewer and need a higher order.
    records, epsilon : int and float, optional
        About how many records there will be, declared and not counted, and the ε to be released with: order
        and side are then chosen by :func:`predicted_error`. Without them order 2 and side 1.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import hermite
    >>> tally = hermite(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 10))
    >>> f = tally.add([[2.0]] * 1000).release(epsilon=1.0)
    >>> bool(abs(f([[2.0]])[0] - 1.0) < 0.1)
    True

    Notes
    -----
    After Greengard and Strain, *The fast Gauss transform*, SIAM J. Sci. Stat. Comput. 1991. Noise of variance
    (Δ1/ε)² in each of the cells w_α·c_α adds Σ_α e_α/w_α² to an answer, e_α = Σ over boxes of the squared
    reading, with Δ1 = Σw; least at w_α ∝ e_α^(1/3).
    """

    def basis(box: Bounds, names: tuple[str, ...] | None) -> BoxPolynomials:
        chosen = order, side
        if records is not None and epsilon is not None:
            chosen = _best_expansion(kernel, box, order, side, records * epsilon)
        degree = 2 if chosen[0] is None else chosen[0]
        width = (1.0 if chosen[1] is None else chosen[1]) * _width(kernel)
        return BoxPolynomials(
            bounds=box,
            columns=names,
            side=width,
            order=degree,
            weights=best_weights(kernel, width, degree),
        )

    return boxed_tally("hermite", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit)


def predicted_error(
    kernel: Kernel, *, order: int, side: float, records: float, epsilon: float
) -> tuple[float, float]:
    """Of a mean kernel value under pure ε: the standard deviation of the noise, and the truncation error.

    The noise is what it will be. The truncation error is the root mean square one of the kernel times 0.012:
    what mean kernel values of ordinary data, and the averaging of errors of both signs, come to (measured on
    salaries and colours; a guess elsewhere).

    >>> import hushsum as hs
    >>> kernel = hs.GaussianKernel(dim=1, bandwidth=5000.0)
    >>> noise, truncation = predicted_error(kernel, order=3, side=1.4, records=21_000, epsilon=1.0)
    >>> round(noise, 5), round(truncation, 5)
    (0.00019, 2e-05)
    """
    dim, width = kernel.dim or 1, side * _width(kernel)
    degrees = degrees_of(dim, order, every_column=False)
    energy = read_energy(kernel, "chebyshev", width, order)
    weights = np.array(best_weights(kernel, width, order), np.float64)
    gain = np.array([np.prod([energy[power] for power in degree]) for degree in degrees]) / weights**2
    noise = math.sqrt(2.0 * gain.sum()) * weights.sum() / (records * epsilon)
    relative = relative_square_error(kernel, "chebyshev", width, order, degrees)
    return float(noise), _ORDINARY * math.sqrt(relative)


def _best_expansion(
    kernel: Kernel, bounds: Bounds, order: int | None, side: float | None, records_epsilon: float
) -> tuple[int, float]:
    """The smallest predicted error among expansions whose table is not too large."""
    dim, best, least = kernel.dim or 1, (2, 1.0), math.inf
    for each_order in _ORDERS if order is None else (order,):
        for each_side in _SIDES if side is None else (side,):
            width = each_side * _width(kernel)
            cells = number_of_degrees(dim, each_order, every_column=False)
            cells *= math.prod(math.ceil(2.0 * float(half) / width) for half in bounds.half_width)
            if cells > _MOST_CELLS:
                continue
            error = math.hypot(
                *predicted_error(
                    kernel, order=each_order, side=each_side, records=records_epsilon, epsilon=1.0
                )
            )
            if error < least:
                best, least = (each_order, each_side), error
    return best


def _width(kernel: Kernel) -> float:
    assert isinstance(kernel, ColumnKernel)
    return kernel.width


def best_weights(kernel: Kernel, side: float, order: int) -> tuple[int, ...]:
    """The integer weights of least noise, in steps so coarse that all machines find the same.

    >>> import hushsum as hs
    >>> best_weights(hs.GaussianKernel(dim=1, bandwidth=1.0), 1.0, 2)
    (65536, 32448, 9216)
    """
    energy = read_energy(kernel, "chebyshev", side, order)
    degrees = degrees_of(kernel.dim or 1, order, every_column=False)
    share = np.array([np.prod([energy[power] for power in degree]) for degree in degrees]) ** (1.0 / 3.0)
    steps = np.maximum(np.rint(share / share.max() * _WEIGHT_STEPS), 1.0).astype(np.int64)
    return tuple(int(step) * (DEFAULT_SCALE // _WEIGHT_STEPS) for step in steps)


register_tally(
    "hermite", hermite, role=PRODUCT, paper="Greengard and Strain 1991", most_columns=4, sized=True
)


def lsq_fgt(
    kernel: Kernel,
    *,
    bounds: DeclaredBounds,
    order: int = 3,
    columns: Sequence[str] | None = None,
    max_per_unit: int | None = None,
) -> Tally:
    """An empty tally of monomials in boxes of √2 bandwidths, as published; low dimension.

    Kept as a peer to compare with: :func:`hushsum.baselines.hermite` cuts less off for the same noise.

    Parameters
    ----------
    kernel : GaussianKernel
    bounds : (low, high) for all columns, a list of them, or a dictionary by column name
        Declared, never read off the data. Records are clipped to it.
    order : int
        ρ: degrees 0, …, ρ − 1 in each column, and boxes within √ρ sides of a query are read.
    columns, max_per_unit
        As for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import lsq_fgt
    >>> tally = lsq_fgt(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 10), order=4)
    >>> tally.basis.shape
    (8, 4)

    Notes
    -----
    Wagner, Naamad and Mishra, ICML 2023: offsets are within half a side, so a monomial of degree j is within
    2^−j, and the noise is for the sum of these, (2 − 2^(1−ρ))^d.
    """
    highest = positive_integer("order", order, at_most=_MAX_PUBLISHED_ORDER) - 1

    def basis(box: Bounds, names: tuple[str, ...] | None) -> BoxPolynomials:
        degrees = degrees_of(box.dim, highest, every_column=True)
        return BoxPolynomials(
            bounds=box,
            columns=names,
            side=math.sqrt(2.0) * gaussian_width(kernel, "lsq_fgt"),
            order=highest,
            weights=tuple(max(1, DEFAULT_SCALE >> sum(degree)) for degree in degrees),
            polynomials="monomials",
            every_column=True,
        )

    return boxed_tally("lsq_fgt", kernel, basis, bounds=bounds, columns=columns, max_per_unit=max_per_unit)


register_tally("lsq_fgt", lsq_fgt, role=GAUSSIAN, paper="Wagner, Naamad and Mishra 2023", most_columns=4)
