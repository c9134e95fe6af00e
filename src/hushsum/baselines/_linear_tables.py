"""Published methods that count in a table of coefficients of a declared box.

Polynomials of each record's offset in its box (the fast Gauss transform, and what follows from it), Bernstein
polynomials on a lattice, trigonometric polynomials on the whole box, random cosine features (locality
sensitive quantization), and the spectral estimate.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING, ClassVar, Protocol, Unpack

import numpy as np
from numpy.typing import NDArray

from hushsum import kernels, tables
from hushsum._types import Floats, Integers
from hushsum.declaration import shows_keywords
from hushsum.errors import PerSurface, UsageError
from hushsum.kernels import Batch, ColumnKernel, ColumnProfile, Kernel, ProfileKernel
from hushsum.methods import BoxKeywords, Method, boxed_tally
from hushsum.methods import register as register_method
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds
from hushsum.tables import (
    Basis,
    BoxBasis,
    BoxReading,
    FourierSeries,
    LinearReading,
    RowAverages,
    SampledReading,
    Table,
)
from hushsum.tally import Tally

__all__ = ["bernstein", "fourier_series", "hermite", "lsq_fgt", "lsq_rff", "trigonometric"]

_NOTHING = 2e-8


def _tally(
    method: str, kernel: Kernel, basis: Callable[..., Basis], **declared: Unpack[BoxKeywords]
) -> Tally:
    """An empty tally of a basis that lacks its declared box alone."""
    return boxed_tally(method, kernel, lambda box, names: basis(bounds=box, columns=names), **declared)


def column_profile(kernel: Kernel, asker: str) -> ColumnProfile:
    """k as a function of the difference in one column.

    Refuses a kernel that is not a product over columns.
    """
    kernels.PRODUCT.check(kernel, asker)
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
    return values @ waves


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


CHEBYSHEV, MONOMIALS = FAMILIES = ("chebyshev", "monomials")
_NODES = 48
_SPAN = 6.0
# Places a bandwidth, or a box, where errors are averaged.
_STEPS = 24


def box_readings(kernel: Kernel, polynomials: str, side: float, order: int, away: Floats) -> Floats:
    """Coefficients in one column of t ↦ k(centre + t·side/2, q), with q ``away`` from the centre.

    Shape (*away.shape, order + 1). In monomials these are Hermite functions,
    ``k(z − y) = Σ (y^j/j!)·h_j(z)``, z and y in units of √2 bandwidths. In Chebyshev's polynomials they are
    combinations of all of them, about 2^j times smaller at degree j, and so is what is cut off.
    """
    if polynomials == CHEBYSHEV:
        nodes = max(_NODES, 2 * order + 2)
        return chebyshev_coefficients(column_profile(kernel, "hermite"), 0.5 * side, away, order, nodes)
    width = math.sqrt(2.0) * tables.gaussian_width(kernel, "the expansion in monomials")
    z, ratio = away / width, 0.5 * side / width
    # Hermite functions by their recurrence, with the factorials and powers of the half side taken along.
    functions = [np.exp(-z * z)]
    if order:
        functions.append(2.0 * ratio * z * functions[0])
    for j in range(2, order + 1):
        functions.append((2.0 * ratio / j) * (z * functions[-1] - ratio * functions[-2]))
    return np.stack(functions, axis=-1)


def relative_square_error(kernel: Kernel, side: float, order: int, degrees: list[tuple[int, ...]]) -> float:
    """∫(k − its expansion in Chebyshev's polynomials)²/∫k² over all places of record and query.

    Every term is a product over columns, so moments of one column suffice.
    """
    assert isinstance(kernel, ColumnKernel)
    width = kernel.width
    offsets: Floats = (np.arange(_STEPS, dtype=np.float64) + 0.5) * (2.0 / _STEPS) - 1.0
    steps = int(2 * (_SPAN * width + 0.5 * side) / width * _STEPS)
    away = (np.arange(steps) / (steps - 1) * 2.0 - 1.0) * (_SPAN * width + 0.5 * side)
    true = column_profile(kernel, "hermite")(np.subtract.outer(0.5 * side * offsets, away))
    values = chebyshev_values(offsets, order)
    readings = box_readings(kernel, CHEBYSHEV, side, order, away)
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


def read_energy(kernel: Kernel, side: float, order: int) -> Floats:
    """Σ over boxes of the square of a reading in Chebyshev's polynomials, averaged over queries, for each
    degree in one column.
    """
    assert isinstance(kernel, ColumnKernel)
    width = kernel.width
    step = min(width, side) / _STEPS
    reach = _SPAN * width + 0.5 * side
    away = np.arange(-reach, reach, step)
    readings = box_readings(kernel, CHEBYSHEV, side, order, away)
    return np.asarray((readings * readings).sum(axis=0) * (step / side))


MAX_ORDER = 32
_MAX_PUBLISHED_ORDER = 12
MAX_CELLS = 1 << 28
# Bandwidths within which errors are summed.
_ERROR_REACH = 4.0

_OFFSETS = 8
_PRIMES = (2.0, 3.0, 5.0, 7.0)


@tables.register
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
        Polynomials of the offset, which is in [−1, 1] inside a box.
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
    polynomials: str = CHEBYSHEV
    every_column: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        kernels.one_of("polynomials", self.polynomials, FAMILIES)
        object.__setattr__(self, "side", kernels.positive_number("side", self.side))
        if self.order:
            object.__setattr__(
                self, "order", kernels.positive_integer("order", self.order, at_most=MAX_ORDER)
            )
        degrees = number_of_degrees(self.dim, self.order, every_column=self.every_column)
        if len(self.weights) != degrees or any(
            type(w) is not int or not 1 <= w <= self.scale for w in self.weights
        ):
            made = PerSurface("hushsum.baselines.hermite", "the hermite method", "the hermite method")
            rule = f"must be {degrees} integers from 1 to the scale"
            raise UsageError("weights", rule, got="others", remedy=("use ", made))
        cells = degrees * math.prod(max(1.0, 2.0 * half / self.side + 1.0) for half in self.half.tolist())
        if cells > MAX_CELLS:
            remedy = ("use wider boxes, narrower bounds, or ", tables.RACE, ", which works in any dimension")
            rule = f"boxes × coefficients must be at most {MAX_CELLS}"
            raise UsageError(rule, got=f"about {cells:.2g}", remedy=remedy)

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

    def _add(self, table: Integers, records: Floats, step: int) -> None:
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
    index: Integers
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
            tables.gaussian_width(self.kernel, "the expansion in monomials")
        column_profile(self.kernel, "hermite")
        tables.check_columns_of(self.kernel, self.basis.dim)

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
        queries = tables.queries_of(batch)
        for start, stop in tables.blocks(len(batch), 4 * math.prod(spans)):
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
    if polynomials == CHEBYSHEV:
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


@shows_keywords(BoxKeywords)
def hermite(
    kernel: Kernel,
    *,
    order: int | None = None,
    side: float | None = None,
    records: int | None = None,
    epsilon: float | None = None,
    **declared: Unpack[BoxKeywords],
) -> Tally:
    """An empty tally of polynomials of each record's offset in its box: a fast Gauss transform; 1–4 columns.

    Offsets enter as Chebyshev's polynomials, in which what is cut off is about 2^order times smaller than in
    monomials; and each coefficient takes the share of the budget that minimises the noise of an answer.

    Parameters
    ----------
    kernel : Kernel
        Gaussian or Laplacian in any dimension; Euclidean or Manhattan in one. The released function answers
        other bandwidths too (``f.with_kernel``), best wider ones.
    order : int, optional
        Highest degree, over all columns together. 0 is a histogram, which has the least noise.
    side : float, optional
        Side of a box, in widths of the kernel. Wider boxes are fewer and need a higher order.
    records, epsilon : int and float, optional
        About how many records there will be, declared and not counted, and the ε to be released with: order
        and side are then chosen by :func:`predicted_error`. Without them order 2 and side 1.
    **declared
        ``bounds``, never read off the data, to which records are clipped; ``columns`` and ``max_per_unit`` as
        for :func:`hushsum.race`.

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
            bounds=box, columns=names, side=width, order=degree, weights=best_weights(kernel, width, degree)
        )

    return boxed_tally("hermite", kernel, basis, **declared)


def predicted_error(
    kernel: Kernel, *, order: int, side: float, records: float, epsilon: float
) -> tuple[float, float]:
    """The standard deviation of the noise of a mean kernel value under pure ε, and its truncation error.

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
    energy = read_energy(kernel, width, order)
    weights = np.array(best_weights(kernel, width, order), np.float64)
    gain = np.array([np.prod([energy[power] for power in degree]) for degree in degrees]) / weights**2
    noise = math.sqrt(2.0 * gain.sum()) * weights.sum() / (records * epsilon)
    relative = relative_square_error(kernel, width, order, degrees)
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
    energy = read_energy(kernel, side, order)
    degrees = degrees_of(kernel.dim or 1, order, every_column=False)
    share = np.array([np.prod([energy[power] for power in degree]) for degree in degrees]) ** (1.0 / 3.0)
    steps = np.maximum(np.rint(share / share.max() * _WEIGHT_STEPS), 1.0).astype(np.int64)
    return tuple(int(step) * (tables.DEFAULT_SCALE // _WEIGHT_STEPS) for step in steps)


@shows_keywords(BoxKeywords)
def lsq_fgt(kernel: Kernel, *, order: int = 3, **declared: Unpack[BoxKeywords]) -> Tally:
    """An empty tally of monomials in boxes of √2 bandwidths, as published; low dimension.

    Kept as a peer to compare with: :func:`hushsum.baselines.hermite` cuts less off for the same noise.

    Parameters
    ----------
    kernel : GaussianKernel
    order : int
        ρ: degrees 0, …, ρ − 1 in each column, and boxes within √ρ sides of a query are read.
    **declared
        ``bounds``, never read off the data, to which records are clipped; ``columns`` and ``max_per_unit`` as
        for :func:`hushsum.race`.

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
    highest = kernels.positive_integer("order", order, at_most=_MAX_PUBLISHED_ORDER) - 1

    def basis(box: Bounds, names: tuple[str, ...] | None) -> BoxPolynomials:
        degrees = degrees_of(box.dim, highest, every_column=True)
        return BoxPolynomials(
            bounds=box,
            columns=names,
            side=math.sqrt(2.0) * tables.gaussian_width(kernel, "lsq_fgt"),
            order=highest,
            weights=tuple(max(1, tables.DEFAULT_SCALE >> sum(degree)) for degree in degrees),
            polynomials=MONOMIALS,
            every_column=True,
        )

    return boxed_tally("lsq_fgt", kernel, basis, **declared)


MAX_DEGREE = 1 << 12
MAX_ITERATIONS = 1 << 16
# Keeps the matrix of a fine lattice regular, in parts of its diagonal.
_RIDGE = 1e-6

# Over how many steps of the lattice the smoothing error is averaged, as a standard deviation.
_NEIGHBOURHOOD = 1.0

# More than what the rounding of all floats here can add to a bound, in proportion.
_ROUNDING = 1.0 + 2.0**-30


@tables.register
@dataclass(frozen=True, kw_only=True)
class BernsteinLattice(BoxBasis):
    """Kernel sums at (k + 1)^d lattice points of the box, interpolated by iterated Bernstein polynomials.

    The Gaussian kernel is a product over columns, so a record adds an outer product of d short vectors
    instead of (k + 1)^d distances. The polynomials smooth: features narrower than about half the box over √k
    are flattened, and iterations sharpen them again at the price of more noise. Queries outside the box are
    answered at its nearest point.

    Parameters
    ----------
    degree : int
        k; the lattice has k + 1 points in each column.
    iterations : int
        h, the order of the iterated operator I − (I − B)^h in each column.
    as_published : bool
        Declare the published sensitivity, 1 at each of the (k + 1)^d points, instead of what a local kernel
        can add up to.

    Privacy
    -------
    A record adds ⌊F·k(x, v)⌋ ≥ 0 at lattice point v. In one column with spacing s, Σ_v k(x, v) is at most
    Σ_{j∈ℤ} k(js), the sum over the endless lattice from one of its points: by Poisson's formula with positive
    coefficients no other place has a larger one. Δ1 = F·Π of these (at most k + 1 each), Δ2² = F²·Π of the
    same for k². Replaced: 2Δ1 and, both vectors being non-negative, 2Δ2².

    Notes
    -----
    Aldà and Rubinstein, *The Bernstein mechanism: function release under differential privacy*, AAAI 2017.
    They iterate the operator of all columns at once; iterating that of each column has the smaller error.
    """

    name: ClassVar[str] = "bernstein"

    kernel: Kernel
    degree: int
    iterations: int = 2
    as_published: bool = False

    def __post_init__(self) -> None:
        tables.gaussian_width(self.kernel, "bernstein")
        super().__post_init__()
        object.__setattr__(
            self, "degree", kernels.positive_integer("degree", self.degree, at_most=MAX_DEGREE)
        )
        iterations = kernels.positive_integer("iterations", self.iterations, at_most=MAX_ITERATIONS)
        object.__setattr__(self, "iterations", iterations)
        tables.check_power("degree + 1", self.degree + 1, self.dim)

    @property
    def shape(self) -> tuple[int, int]:
        """(1, (degree + 1)^dim)."""
        return 1, int((self.degree + 1) ** self.dim)

    @cached_property
    def lattice(self) -> Floats:
        """The points of each column, relative to the centre, shape (dim, degree + 1)."""
        steps = np.arange(self.degree + 1, dtype=np.float64) * 2.0 / self.degree - 1.0
        return np.multiply.outer(self.half, steps)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """What a kernel can add up to over the lattice."""
        l1, l2_squared = self._moves
        times = 2 if relation is Relation.REPLACE else 1
        return Sensitivity(l1=times * l1, l2_squared=times * l2_squared, largest=self.scale)

    @cached_property
    def _moves(self) -> tuple[int, int]:
        if self.as_published:
            return self.scale * self.shape[1], self.scale**2 * self.shape[1]
        width = tables.gaussian_width(self.kernel, self.name)
        most, squares = 1.0, 1.0
        for half in self.half.tolist():
            spacing = 2.0 * half / self.degree / width
            most *= _endless_sum(spacing, self.degree + 1.0)
            squares *= _endless_sum(spacing * math.sqrt(2.0), self.degree + 1.0)
        slack = _ROUNDING**self.dim
        return math.floor(self.scale * most * slack), math.floor(self.scale**2 * squares * slack)

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 2 * self.shape[1]

    def _add(self, table: Integers, records: Floats, step: int) -> None:
        width = tables.gaussian_width(self.kernel, self.name)
        factors = []
        for column in range(self.dim):
            offset = (records[:, column, np.newaxis] - self.lattice[column]) / width
            factors.append(tables.exponential_of_minus(0.5 * offset * offset))
        table[0] += step * np.floor(tables.outer_products(factors) * self.scale).astype(np.int64).sum(axis=0)

    def _reading(self, kernel: Kernel) -> BernsteinReading:
        return BernsteinReading(self, kernel)


class ProductReading(LinearReading, Protocol):
    """The reading of coefficients of products over the columns, one factor in each."""

    if TYPE_CHECKING:

        @property
        def basis(self) -> BoxBasis:
            """What the table counts."""

    @abstractmethod
    def _factors(self, queries: Floats) -> list[Floats]:
        """In each column what every term counts at each query, shape (n, terms)."""

    def _numbers_per_query(self) -> int:
        return self.basis.shape[1]

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Σ over all products of the factors times the noisy coefficients."""
        coefficients = table.reshape(-1) / self.basis.scale
        answers = np.empty(len(batch))
        for start, stop in tables.blocks(len(batch), self._numbers_per_query()):
            answers[start:stop] = tables.contracted(
                coefficients, self._factors(tables.queries_of(batch)[start:stop])
            )
        return answers

    def noise_gain(self, batch: Batch) -> Floats:
        """Π over columns of Σ squares."""
        gain = np.full(len(batch), 1.0 / self.basis.scale**2)
        for start, stop in tables.blocks(len(batch), self._numbers_per_query()):
            for factor in self._factors(tables.queries_of(batch)[start:stop]):
                gain[start:stop] *= (factor * factor).sum(axis=1)
        return gain

    def noise_covariance(self, batch: Batch) -> Floats:
        """Π over columns of inner products."""
        total = np.full((len(batch), len(batch)), 1.0 / self.basis.scale**2)
        for factor in self._factors(tables.queries_of(batch)):
            total *= factor @ factor.T
        return total


@dataclass(frozen=True)
class BernsteinReading(ProductReading):
    """Iterated Bernstein polynomials of the lattice values."""

    basis: BernsteinLattice
    kernel: Kernel

    @cached_property
    def _sharpening(self) -> Floats:
        """Σ_{i<h} (I − B)^i, with B the polynomials at the lattice points."""
        basis = bernstein_values(np.arange(self.basis.degree + 1) / self.basis.degree, self.basis.degree)
        step = np.eye(self.basis.degree + 1) - basis
        total = np.eye(self.basis.degree + 1)
        for _ in range(self.basis.iterations - 1):
            total = np.eye(self.basis.degree + 1) + step @ total
        return total

    def _factors(self, queries: Floats) -> list[Floats]:
        place = np.clip((queries / self.basis.half + 1.0) * 0.5, 0.0, 1.0)
        return [self._values(place[:, column]) for column in range(self.basis.dim)]

    def _values(self, places: Floats) -> Floats:
        """What each point of the lattice counts at places in [0, 1] of a column."""
        return bernstein_values(places, self.basis.degree) @ self._sharpening

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The squared smoothing error, beyond the noise of its estimate, and that of what the lattice does
        not show.

        At the points of the lattice the table has the sums themselves, and between them the function of least
        norm in the kernel's space that has these values is near the truth; the polynomials differ from it by
        the smoothing error. One estimate is its square at the query, which sees repeats; another the mean
        square over the points around it, which has less noise. The larger one counts. Of the kernel at a
        query between points that are a bandwidth apart, a part is in no combination of those at the points:
        an error of that part of the records that equal the query.
        """
        queries, own = tables.queries_of(batch), variance / self.basis.scale**2
        values = table.reshape(-1) / self.basis.scale
        squares = self._beyond_noise(values, own)
        smoothing, hidden = np.empty(len(batch)), np.empty(len(batch))
        for start, stop in tables.blocks(len(batch), 2 * self.basis.shape[1]):
            part = queries[start:stop]
            between, hidden[start:stop] = self._interpolated(part)
            smooth = self._factors(part)
            here = np.square(tables.contracted(values, smooth) - tables.contracted(values, between))
            pairs = ((smooth, smooth, 1.0), (smooth, between, -2.0), (between, between, 1.0))
            for one, other, sign in pairs:
                both = (np.einsum("ij,ij->i", a, b) for a, b in zip(one, other, strict=True))
                here -= own * sign * math.prod(both)
            smoothing[start:stop] = np.maximum(here, tables.contracted(squares, self._around(part)))
        unseen = tables.HEAPED_SHARE * hidden * self.evaluate(table, batch, threads=1)
        return np.maximum(smoothing, 0.0) + np.square(unseen)

    def _beyond_noise(self, values: Floats, variance: float) -> Floats:
        """The squared difference of polynomials and sums at the lattice, less what noise of this variance in
        every sum makes of it; flat.
        """
        dim, points = self.basis.dim, self.basis.degree + 1
        at_lattice = self._values(np.linspace(0.0, 1.0, points))
        sums = values.reshape((points,) * dim)
        smooth = sums
        for column in range(dim):
            smooth = np.moveaxis(np.tensordot(at_lattice, smooth, axes=(1, column)), 0, column)
        squares, own = (at_lattice * at_lattice).sum(axis=1), np.diagonal(at_lattice)
        gain = reduce(np.multiply.outer, [squares] * dim) - 2.0 * reduce(np.multiply.outer, [own] * dim) + 1.0
        return np.ascontiguousarray(np.square(smooth - sums) - variance * gain).reshape(-1)

    def _around(self, queries: Floats) -> list[Floats]:
        """In each column, weights of the lattice points around each query, shape (n, degree + 1)."""
        weights = []
        for column in range(self.basis.dim):
            half, lattice = self.basis.half[column], self.basis.lattice[column]
            places = np.clip(queries[:, column], -half, half)
            away = (places[:, None] - lattice) / (_NEIGHBOURHOOD * 2.0 * half / self.basis.degree)
            near = np.exp(-0.5 * away * away)
            weights.append(near / near.sum(axis=1, keepdims=True))
        return weights

    def _interpolated(self, queries: Floats) -> tuple[list[Floats], Floats]:
        """In each column, what every lattice point counts for the interpolation at each query, shape
        (n, degree + 1); and the squared length, in the kernel's space, of the part of the kernel at each
        query that is not a combination of the kernels at the lattice.
        """
        width, seen = tables.gaussian_width(self.kernel, self.basis.name), np.ones(len(queries))
        weights: list[Floats] = []
        for column in range(self.basis.dim):
            half, lattice = self.basis.half[column], self.basis.lattice[column]
            apart = (lattice[:, None] - lattice) / width
            gram = np.exp(-0.5 * apart * apart) + _RIDGE * np.eye(len(lattice))
            near = (np.clip(queries[:, column], -half, half)[:, None] - lattice) / width
            similar = np.exp(-0.5 * near * near)
            weights.append(np.linalg.solve(gram, similar.T).T)
            seen *= np.einsum("ij,ij->i", similar, weights[-1])
        return weights, np.clip(1.0 - seen, 0.0, 1.0)


def bernstein_values(places: Floats, degree: int) -> Floats:
    """C(k, j)·x^j·(1 − x)^(k − j) for j = 0, …, k, shape (len(places), degree + 1); for queries.

    >>> bernstein_values(np.array([0.5]), 2).tolist()
    [[0.25, 0.5, 0.25]]
    """
    from scipy.special import gammaln, xlog1py, xlogy

    j = np.arange(degree + 1)
    choose = gammaln(degree + 1) - gammaln(j + 1) - gammaln(degree - j + 1)
    x = places[:, np.newaxis]
    return np.exp(choose + xlogy(j, x) + xlog1py(degree - j, -x)).round(15)


def _endless_sum(spacing: float, most: float) -> float:
    """Σ over all integers j of exp(−(j·spacing)²/2), from above, up to rounding; at most ``most``.

    It is at least √(2π)/spacing, by Poisson's formula, so that few terms decide.
    """
    if spacing * most <= 2.5:
        return most
    j = np.arange(1, math.ceil(40.0 / spacing) + 2) * spacing
    return min(1.0 + 2.0 * math.fsum(np.exp(-0.5 * j * j).tolist()), most)


@shows_keywords(BoxKeywords)
def bernstein(
    kernel: Kernel,
    *,
    degree: int = 19,
    iterations: int = 2,
    as_published: bool = False,
    **declared: Unpack[BoxKeywords],
) -> Tally:
    """An empty tally of kernel sums at the points of a lattice, read through Bernstein polynomials.

    For one to three columns and smooth functions. Peaks narrower than about half the box over √degree are
    flattened unless ``iterations`` is large.

    Parameters
    ----------
    kernel : GaussianKernel
    degree : int
        The lattice has degree + 1 points in each column.
    iterations : int
        The order h of the iterated polynomials.
    as_published : bool
        Noise for a sensitivity of 1 at every lattice point, instead of what a record can really add up to.
    **declared
        ``bounds``, never read off the data, to which records are clipped; ``columns`` and ``max_per_unit`` as
        for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import bernstein
    >>> tally = bernstein(hs.GaussianKernel(dim=1, bandwidth=2.0), bounds=(0, 10))
    >>> f = tally.add([[2.0]] * 1000).release(epsilon=1.0)
    >>> bool(f([[2.0]])[0] > f([[9.0]])[0])
    True

    Notes
    -----
    Aldà and Rubinstein, AAAI 2017. With exact integer noise on values in fixed point, and the lattice filled
    through the tensor structure of the kernel.
    """
    basis = partial(
        BernsteinLattice, kernel=kernel, degree=degree, iterations=iterations, as_published=as_published
    )
    return _tally("bernstein", kernel, basis, **declared)


MAX_TERMS = 1 << 12
_NODES_PER_WIDTH = 8
_MAX_NODES = 1 << 14


@tables.register
@dataclass(frozen=True, kw_only=True)
class TrigonometricPolynomials(BoxBasis):
    """Products of cos(r·θ) with x = cos θ in each column: Chebyshev's polynomials of the record.

    The records' part does not know the kernel: any kernel that is a product over the columns is read from
    one table, as the sum over its own coefficients. Few terms see only wide kernels.

    Parameters
    ----------
    terms : int
        t, in each column: r = 0, …, t − 1, so t^d coefficients.

    Privacy
    -------
    Each of the t^d coefficients is an integer within ±F: Δ1 = F·t^d, Δ2² = F²·t^d, attained at a corner of
    the box. A record replaced leaves the constant as it was: twice and four times the others; or, of a
    person, it has no counterpart and moves all as above.

    Notes
    -----
    Wang, Jin, Fan, Zhang, Huang, Zhong and Wang, *Differentially private data releasing for smooth queries*,
    JMLR 2016 (NIPS 2013). Their coefficients of a query come from Jackson's kernel; here they are Chebyshev's
    own, which decay at the rate of the best polynomial for the analytic kernels meant here.
    """

    name: ClassVar[str] = "trigonometric"
    in_pages: ClassVar[bool] = True

    terms: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "terms", kernels.positive_integer("terms", self.terms, at_most=MAX_TERMS))
        tables.check_power("terms", self.terms, self.dim)

    @property
    def shape(self) -> tuple[int, int]:
        """(1, terms^dim)."""
        return 1, int(self.terms**self.dim)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Every coefficient moves by at most F; by 2F, except the constant, under replace."""
        coefficients, moved = self.shape[1], self.shape[1] - 1
        added = Sensitivity(self.scale * coefficients, self.scale**2 * coefficients, self.scale)
        if relation is Relation.ADD_REMOVE:
            return added
        exchanged = Sensitivity(2 * self.scale * moved, 4 * self.scale**2 * moved, 2 * self.scale)
        return added.at_least(exchanged)

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 2 * self.shape[1]

    def _add(self, table: Integers, records: Floats, step: int) -> None:
        factors = [
            chebyshev_values(records[:, column] / self.half[column], self.terms - 1).T
            for column in range(self.dim)
        ]
        whole = np.rint(tables.outer_products(factors) * self.scale).astype(np.int64)
        table[0] += step * whole.sum(axis=0)

    def _reading(self, kernel: Kernel) -> TrigonometricReading:
        return TrigonometricReading(self, kernel)


@dataclass(frozen=True)
class TrigonometricReading(ProductReading, BoxReading):
    """The kernel's own coefficients times the records'."""

    basis: TrigonometricPolynomials
    kernel: Kernel

    def __post_init__(self) -> None:
        column_profile(self.kernel, "trigonometric")
        tables.check_columns_of(self.kernel, self.basis.dim)

    def _factors(self, queries: Floats) -> list[Floats]:
        profile, degree = column_profile(self.kernel, "trigonometric"), self.basis.terms - 1
        columns = zip(self.basis.half.tolist(), queries.T, self._nodes, strict=True)
        return [
            chebyshev_coefficients(profile, half, places, degree, nodes) for half, places, nodes in columns
        ]

    @cached_property
    def _nodes(self) -> list[int]:
        """Enough to see the kernel and the highest term."""
        assert isinstance(self.kernel, ColumnKernel)
        width = self.kernel.width
        return [
            min(_MAX_NODES, max(4 * self.basis.terms, int(_NODES_PER_WIDTH * half / width), 64))
            for half in self.basis.half
        ]

    def _numbers_per_query(self) -> int:
        return max(*self._nodes, self.basis.shape[1])

    def _read_lattice(self, queries: Floats) -> Floats:
        places, _ = self._lattice
        read = np.ones((len(queries), len(places)))
        for column, factor in enumerate(self._factors(queries)):
            along = np.clip(places[:, column] / self.basis.half[column], -1.0, 1.0)
            read *= factor @ chebyshev_values(along, self.basis.terms - 1)
        return read

    def total(self, table: Table) -> tuple[float, float]:
        """The constant term counts the records."""
        return float(table[0, 0]) / self.basis.scale, 1.0 / self.basis.scale**2


@shows_keywords(BoxKeywords)
def trigonometric(kernel: Kernel, *, terms: int = 16, **declared: Unpack[BoxKeywords]) -> Tally:
    """An empty tally of trigonometric polynomials, from which every smooth query on the box is read.

    The released function answers other kernels and bandwidths too (``f.with_kernel``), as far as so few terms
    can follow them. For one to three columns and wide kernels.

    Parameters
    ----------
    kernel : Kernel
        Gaussian or Laplacian in any dimension; Euclidean or Manhattan in one.
    terms : int
        In each column; terms^dim coefficients share the budget.
    **declared
        ``bounds``, never read off the data, to which records are clipped; ``columns`` and ``max_per_unit`` as
        for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import trigonometric
    >>> tally = trigonometric(hs.GaussianKernel(dim=1, bandwidth=2.0), bounds=(0, 10), terms=8)
    >>> f = tally.add([[2.0]] * 1000).release(epsilon=1.0)
    >>> bool(f([[2.0]])[0] > f.with_kernel(hs.GaussianKernel(dim=1, bandwidth=3.0))([[9.0]])[0])
    True

    Notes
    -----
    Wang et al., *Differentially private data releasing for smooth queries*, JMLR 2016. With exact integer
    noise on coefficients in fixed point.
    """
    basis = partial(TrigonometricPolynomials, terms=terms)
    return _tally("trigonometric", kernel, basis, **declared)


MAX_FEATURES = 1 << 22
MAX_NUMBERS = 1 << 28


@tables.register
@dataclass(frozen=True, kw_only=True)
class CosineFeatures(BoxBasis):
    """√2·cos(ω·x + β) of each record for I random frequencies; a kernel sum is the mean of products.

    Any dimension. The answer's own error is about N/√I whatever the noise, and pure ε divides the budget
    among the features: I balances the two.

    Parameters
    ----------
    features : int
        I.
    seed : int
        Public, of frequencies and phases.

    Privacy
    -------
    Each feature is an integer within ±F (F for a cosine of 1): Δ1 = F·I, Δ2² = F²·I; twice and four times
    that for a record replaced. As published: Laplace noise of scale √2·I/(ε·n) on means of √2·cos.

    Notes
    -----
    Wagner, Naamad and Mishra, *Fast private kernel density estimation via locality sensitive quantization*,
    ICML 2023; Rahimi and Recht, *Random features for large-scale kernel machines*, NIPS 2007.
    """

    name: ClassVar[str] = "cosine-features"
    in_pages: ClassVar[bool] = True

    kernel: Kernel
    features: int
    seed: int = 0

    def __post_init__(self) -> None:
        tables.gaussian_width(self.kernel, "lsq_rff")
        super().__post_init__()
        features = kernels.positive_integer("features", self.features, at_most=MAX_FEATURES)
        object.__setattr__(self, "features", features)
        if features * (self.dim + 1) > MAX_NUMBERS:
            raise UsageError(
                f"features × columns must be at most {MAX_NUMBERS}, got more; use fewer features"
            )
        object.__setattr__(self, "seed", kernels.integer_seed(self.seed))

    @property
    def shape(self) -> tuple[int, int]:
        """(1, features)."""
        return 1, self.features

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Every feature moves by at most F, or 2F under replace."""
        most = self.scale * (2 if relation is Relation.REPLACE else 1)
        return Sensitivity(l1=most * self.features, l2_squared=most**2 * self.features, largest=most)

    @cached_property
    def _waves(self) -> tuple[Floats, Floats]:
        """Frequencies in turns a unit, shape (dim, I), and phases in turns, shape (I,)."""
        words = kernels.row_words("cosine-features", self.seed, self.features, self.dim + 1)
        width = tables.gaussian_width(self.kernel, self.name) * (2.0 * math.pi)
        return np.ascontiguousarray((kernels.normals(words[:, :-1]) / width).T), kernels.uniforms(
            words[:, -1]
        )

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 8 * self.features

    def cosines(self, points: Floats) -> Floats:
        """cos(ω·x + β) of each point for each frequency, shape (n, features)."""
        frequency, phase = self._waves
        turns = np.repeat(phase[np.newaxis], len(points), axis=0)
        for column in range(self.dim):
            turns += points[:, column, np.newaxis] * frequency[column]
        return tables.cosine_and_sine(turns)[0]

    def _add(self, table: Integers, records: Floats, step: int) -> None:
        cosine = np.clip(self.cosines(records), -1.0, 1.0)
        table[0] += step * np.rint(cosine * self.scale).astype(np.int64).sum(axis=0)

    def _reading(self, kernel: Kernel) -> CosineReading:
        return CosineReading(self, kernel)


@dataclass(frozen=True)
class CosineReading(SampledReading):
    """The mean over features of products."""

    basis: CosineFeatures
    kernel: Kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """The mean over features of √2·cos at the query times the records' sum of √2·cos."""
        return self.spread(table, batch, threads=threads).mean

    def noise_gain(self, batch: Batch) -> Floats:
        """Σ (2·cos/(F·I))²."""
        gain = np.empty(len(batch))
        for start, stop in tables.blocks(len(batch), self.basis.numbers_per_record()):
            gain[start:stop] = np.square(self.basis.cosines(tables.queries_of(batch)[start:stop])).sum(axis=1)
        return gain * (2.0 / self.basis.scale / self.basis.features) ** 2

    def noise_covariance(self, batch: Batch) -> Floats:
        """Inner products of the same coefficients."""
        cosine = self.basis.cosines(tables.queries_of(batch))
        return np.asarray(cosine @ cosine.T) * (2.0 / self.basis.scale / self.basis.features) ** 2

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """No product exceeds twice the size of a feature: the mean of their squares over the number of
        features, which includes the noise. :meth:`spread` is sharper.
        """
        squares = np.square(table[0] * (2.0 / self.basis.scale))
        return np.full(len(batch), float(squares.mean()) / self.basis.features)

    def spread(self, table: Table, batch: Batch, *, threads: int) -> RowAverages:
        """The spread of the products over features."""
        values = table[0] * (2.0 / self.basis.scale)
        mean, variance = np.empty(len(batch)), np.full(len(batch), np.nan)
        for start, stop in tables.blocks(len(batch), self.basis.numbers_per_record()):
            products = self.basis.cosines(tables.queries_of(batch)[start:stop]) * values
            mean[start:stop] = products.mean(axis=1)
            if self.basis.features > 1:
                variance[start:stop] = products.var(axis=1, ddof=1) / self.basis.features
        return RowAverages(mean, variance, self.basis.features)

    def rows(self, table: Table, batch: Batch) -> tuple[Floats, int]:
        """The product of each feature."""
        return self.basis.cosines(tables.queries_of(batch)) * (table[0] * (2.0 / self.basis.scale)), 1


_ANYWHERE = (-1e38, 1e38)


@shows_keywords(BoxKeywords)
def lsq_rff(kernel: Kernel, *, features: int = 200, seed: int = 0, **declared: Unpack[BoxKeywords]) -> Tally:
    """An empty tally of random cosine features, one phase each, as published; any dimension.

    Kept as a peer to compare with: paired features of one frequency have half the noise and no random phase.

    Parameters
    ----------
    kernel : GaussianKernel
    features : int
        I: the error of the method is about 1/√I, that of the noise about I^½/(ε·n).
    seed : int
        Public seed of frequencies and phases. Tallies that shall merge need the same one.
    **declared
        ``bounds``, never read off the data, to which records are clipped; ``columns`` and ``max_per_unit`` as
        for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import lsq_rff
    >>> tally = lsq_rff(hs.GaussianKernel(dim=5, bandwidth=1.0), features=400, seed=7)
    >>> f = tally.add([[0.0] * 5] * 10_000).release(epsilon=1.0)
    >>> bool(f([[0.0] * 5])[0] > f([[9.0] * 5])[0])
    True

    Notes
    -----
    Wagner, Naamad and Mishra, ICML 2023. With exact integer noise on features in fixed point.
    """
    basis = partial(CosineFeatures, kernel=kernel, features=features, seed=seed)
    if declared.get("bounds") is None:
        # Features are bounded without.
        declared["bounds"] = _ANYWHERE
    return _tally("lsq_rff", kernel, basis, **declared)


@shows_keywords(BoxKeywords)
def fourier_series(
    kernel: Kernel,
    *,
    frequencies: int = 10,
    padding: float = 4.0,
    tapered: bool = False,
    **declared: Unpack[BoxKeywords],
) -> Tally:
    """An empty tally of Fourier coefficients on a box: the orthogonal series, or spectral, estimate.

    For one to three columns and bandwidths that are a good part of the box: narrow peaks need as many
    frequencies as the box has bandwidths, and pure ε pays for each.

    Parameters
    ----------
    kernel : GaussianKernel
    frequencies : int
        The highest frequency in each column.
    padding : float
        Bandwidths that keep one end of the box from being felt at the other, the series being periodic.
    tapered : bool
        Divide the budget among the coefficients by what they matter to an answer. The published method
        divides equally.
    **declared
        ``bounds``, never read off the data, to which records are clipped; ``columns`` and ``max_per_unit`` as
        for :func:`hushsum.race`.

    Examples
    --------
    >>> import hushsum as hs
    >>> from hushsum.baselines import fourier_series
    >>> tally = fourier_series(hs.GaussianKernel(dim=1, bandwidth=1.0), bounds=(0, 10), frequencies=8)
    >>> f = tally.add([[2.0]] * 500 + [[7.0]] * 500).release(epsilon=1.0)
    >>> bool(f([[2.0]])[0] > f([[4.5]])[0])
    True

    Notes
    -----
    Hall, Rinaldo and Wasserman, JMLR 2013; Wasserman and Zhou, JASA 2010. With exact integer noise on
    coefficients in fixed point.
    """
    basis = partial(
        FourierSeries,
        kernel=kernel,
        frequencies=frequencies,
        padding=padding,
        taper=2.0 / 3.0 if tapered else 0.0,
    )
    return _tally("fourier_series", kernel, basis, **declared)


_LSQ_PAPER = "Wagner, Naamad and Mishra 2023"
_SERIES_PAPER = "Hall, Rinaldo and Wasserman 2013"
for _each in (
    Method(
        "hermite", kernels.PRODUCT, "Greengard and Strain 1991", tally=hermite, most_columns=4, sized=True
    ),
    Method("lsq_fgt", kernels.GAUSSIAN, _LSQ_PAPER, tally=lsq_fgt, most_columns=4),
    Method("lsq_rff", kernels.GAUSSIAN, _LSQ_PAPER, tally=lsq_rff, needs_bounds=False),
    Method("bernstein", kernels.GAUSSIAN, "Aldà and Rubinstein 2017", tally=bernstein, most_columns=3),
    Method("trigonometric", kernels.PRODUCT, "Wang et al. 2016", tally=trigonometric, most_columns=3),
    Method("fourier_series", kernels.GAUSSIAN, _SERIES_PAPER, tally=fourier_series, most_columns=3),
):
    register_method(_each)
