"""Weights on a grid: splines of each record, how the noisy grid is read, and the errors of a reading."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import PROFILES, Batch, Kernel, Profile, ProfileKernel, check_columns, positive_integer
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds

from ._base import Basis, LinearReading, Table, register, slices

__all__ = [
    "CORNER_CELLS", "HIGHEST_DEGREE", "LOWEST_DEGREE", "MAX_CELLS", "MAX_DIM", "WHOLE", "WIDEST",
    "GridReading", "GridWeights",
]  # fmt: skip

LOWEST_DEGREE, HIGHEST_DEGREE = 2, 5


def spline_values(degree: int, inside: Floats) -> Floats:
    """What each of the degree + 1 nodes around a cell is given, for places 0 ≤ u < 1 in the cell.

    The nodes are one cell apart, the first of them (degree − 1)/2 cells before the start of the cell. The
    values are not negative, sum to 1, and have the place as their mean. Sums, products and quotients of
    doubles alone, each of which IEEE 754 defines to the last bit, so that every platform has the same values.

    >>> spline_values(3, np.array([0.0, 0.5])).round(4).tolist()
    [[0.1667, 0.6667, 0.1667, 0.0], [0.0208, 0.4792, 0.4792, 0.0208]]
    """
    values = [np.ones_like(inside)]
    for k in range(1, degree + 1):
        # The cardinal recursion k·b_k(x) = x·b_(k−1)(x) + (k + 1 − x)·b_(k−1)(x − 1) at x = u + k − j.
        raised = []
        for j in range(k + 1):
            x = inside + float(k - j)
            value = x * values[j - 1] if j > 0 else np.zeros_like(inside)
            if j < k:
                value = value + (float(k + 1) - x) * values[j]
            raised.append(value / float(k))
        values = raised
    return np.stack(values, axis=-1)


@lru_cache(maxsize=32)
def part_table(degree: int, parts: int, places: int) -> NDArray[np.int32]:
    """Integer weights of the degree + 1 nodes for each of the places inside a cell, shape (places, degree +
    1); rows sum to ``parts``.

    Each weight is rounded to nearest, and the largest one takes what the others leave.

    >>> part_table(2, 64, 3).tolist()
    [[22, 41, 1], [8, 48, 8], [1, 41, 22]]
    """
    inside = (np.arange(places) + 0.5) / places
    table = np.rint(spline_values(degree, inside) * float(parts)).astype(np.int32)
    row = np.arange(places)
    largest = table.argmax(axis=1)
    table[row, largest] += np.int32(parts) - table.sum(axis=1, dtype=np.int32)
    table.flags.writeable = False
    return table


def dual_response(degree: int, frequency: Floats) -> Floats:
    """The Fourier transform of the spline's dual: a function is projected on splines, by least squares, with
    the coefficients that its convolution with the dual has at the nodes.

    ``frequency`` is in radians per cell. The transform is that of the spline over the sum of its squared
    copies, which is the cosine series of the spline of degree 2·degree + 1 at integers.
    """
    spline = np.sinc(frequency / (2.0 * np.pi)) ** (degree + 1)
    neighbours = np.cos(np.arange(-degree, degree + 1)[:, None] * frequency)
    return np.asarray(spline / (inner_products(degree) @ neighbours))


@lru_cache(maxsize=HIGHEST_DEGREE + 1)
def inner_products(degree: int) -> Floats:
    """∫ b(x)·b(x − m) dx for m from −degree to degree."""
    order = 2 * degree + 1
    return spline_values(order, np.zeros(1))[0, :order]


_GAUSSIAN_REACH = 8.0
# Cells after which the alternating tail of the dual of a spline of degree 5 is below 1e-8.
_DUAL_REACH = 48

_LARGEST_FREQUENCY = 9.0
_SMALLEST_TAIL = 1e-8
# What is cut off of a factor may add so much to the error that the projection has anyway.
_TAIL_SHARE = 0.1

_STEPS_IN_DEVIATION = 1500.0
_FIRST_STEPS = 64
_FEWEST_STEPS, _MOST_STEPS, _MOST_CORNER_STEPS = 32, 8192, 512
"""Tabulated places in a cell. Linear interpolation then has an error below 1e-7 for a Gaussian; for a profile
with a corner, which no spline follows, by far less than the projection.
"""

# Decay per cell of an exponential that is below 1e-300 where its tail would begin.
_OVER = 20.0

_SPLINE_PHASES = 32


@dataclass(frozen=True, eq=False)
class ColumnFactors:
    """Coefficients c(t) of nodes at a signed distance of t cells from a query, even in t.

    ``mesh`` has c at t = 0, 1/steps, 2/steps, …; beyond ``reach`` cells c is ``tail·exp(−t/scale)``, or 0 for
    a Gaussian, whose ``tail`` is 0. ``rows`` has the same by the place of a query between two nodes: c of the
    2·reach nodes around it, shape (steps + 1, 2·reach).
    """

    degree: int
    scale: float
    gaussian: bool
    steps: int
    reach: int
    tail: float
    mesh: Floats
    rows: Floats

    def around(self, inside: Floats) -> Floats:
        """c of the 2·reach nodes around queries ``inside`` ∈ [0, 1) cells after a node, shape (n, 2·reach);
        the first of them lies reach − 1 cells before that node.
        """
        place = inside * self.steps
        left = np.minimum(place.astype(np.int64), self.steps - 1)
        lower = self.rows[left]
        return np.asarray(lower + (place - left)[:, None] * (self.rows[left + 1] - lower))

    def at(self, distance: Floats) -> Floats:
        """c at any distances in cells."""
        away = np.abs(distance)
        place = np.minimum(away * self.steps, float(len(self.mesh) - 2))
        left = place.astype(np.int64)
        lower = self.mesh[left]
        values = lower + (place - left) * (self.mesh[left + 1] - lower)
        far = self.tail * np.exp(-away / self.scale) if self.tail else 0.0
        return np.where(away <= self.reach, values, far)

    def shape(self, distance: Floats) -> Floats:
        """What the factors stand for: the profile at distances in cells."""
        away = np.abs(distance) / self.scale
        return np.asarray(np.exp(-0.5 * away * away) if self.gaussian else np.exp(-away))

    def read(self, inside: Floats, distance: Floats) -> Floats:
        """What a record counts that lies ``inside`` ∈ [0, 1) of a cell, for queries at a distance from it, in
        cells; arrays that broadcast.
        """
        if self.degree == 0:
            return self.shape(distance)
        first = (self.degree - 1) / 2.0
        weights = spline_values(self.degree, np.asarray(inside, np.float64))
        total = np.zeros(np.broadcast_shapes(np.shape(inside), np.shape(distance)))
        for j in range(self.degree + 1):
            total += weights[..., j] * self.at(distance + inside + (first - j))
        return total


@lru_cache(maxsize=512)
def column_factors(degree: int, scale: float, gaussian: bool) -> ColumnFactors:
    """The factors of a Gaussian or exponential profile whose ``scale`` is given in cells, for weights of a
    degree. Degree 0 is for records that lie on nodes, which are read with the profile itself.

    For a degree above 0 the coefficients are those of the least-squares projection of the profile on the
    splines: its convolution with their dual. The error of the reading is then the part of the profile that no
    sum of the splines follows.
    """
    steps = 1 << max(0, math.ceil(math.log2(_STEPS_IN_DEVIATION / scale)))
    # A wide Gaussian has no corner that would need places in every cell.
    steps = min(steps, _MOST_STEPS) if gaussian else min(max(steps, _FEWEST_STEPS), _MOST_CORNER_STEPS)
    own = math.ceil(_GAUSSIAN_REACH * scale) if gaussian else 0
    reach = own + (_DUAL_REACH if degree else 1)
    mesh, tail = _projected(degree, scale, gaussian, steps, reach)
    whole = ColumnFactors(degree, scale, gaussian, steps, reach, tail, mesh, mesh[:0])
    if gaussian:
        reach = _shortest_reach(whole)
    node = np.arange(1 - reach, reach + 1)
    places = np.abs(np.arange(steps + 1)[:, None] - node * steps)
    rows = np.where(places <= reach * steps, mesh[np.minimum(places, len(mesh) - 1)], 0.0)
    if tail:
        far = tail * np.exp(-places / (steps * scale))
        rows = np.where(places <= reach * steps, rows, far)
    return ColumnFactors(degree, scale, gaussian, steps, reach, tail, mesh[: reach * steps + 2], rows)


def _projected(degree: int, scale: float, gaussian: bool, steps: int, reach: int) -> tuple[Floats, float]:
    """c at t = i/steps up to ``reach`` and one step beyond, and the factor of an exponential's tail."""
    count = reach * steps + 2
    t = np.arange(count) / steps
    if degree == 0:
        away = t / scale
        return (np.exp(-0.5 * away * away), 0.0) if gaussian else (np.exp(-away), 1.0)
    period = 1 << math.ceil(math.log2(2 * reach + 2))
    if gaussian:
        # The transform has nothing left beyond these frequencies, so that a coarse mesh is enough to begin
        # with.
        coarse = min(steps, _FIRST_STEPS)
        kept = min(period * coarse // 2, math.ceil(_LARGEST_FREQUENCY / scale * period / (2.0 * np.pi)))
        frequency = 2.0 * np.pi * np.arange(kept + 1) / period
        transform = scale * math.sqrt(2.0 * math.pi) * np.exp(-0.5 * (scale * frequency) ** 2)
        rough = np.fft.irfft(transform * dual_response(degree, frequency), period * coarse) * coarse
        return _refined(rough, steps // coarse, count), 0.0
    samples = period * steps
    frequency = 2.0 * np.pi * np.arange(samples // 2 + 1) / period
    transform = 2.0 * scale / (1.0 + (scale * frequency) ** 2)
    mesh = np.fft.irfft(transform * dual_response(degree, frequency), samples)[:count] * steps
    # Away from its corner an exponential is an eigenfunction of the convolution, with this eigenvalue.
    tail = _eigenvalue(degree, 1.0 / scale)
    # What the other periods' tails add to this one.
    ahead, behind = np.exp(-(period - t) / scale), np.exp(-(period + t) / scale)
    mesh -= tail * (ahead + behind) / -math.expm1(-period / scale)
    return mesh, tail


def _refined(rough: Floats, factor: int, count: int) -> Floats:
    """An even function, given on a mesh, at the first ``count`` places of a mesh that is ``factor`` times
    finer: by polynomials through six neighbours.
    """
    if factor == 1:
        return rough[:count]
    around = np.arange(-2, 4)
    between = np.arange(factor) / factor
    weights = np.ones((6, factor))
    for i, node in enumerate(around):
        for other in around[around != node]:
            weights[i] *= (between - other) / float(node - other)
    cells = -(-count // factor)
    neighbours = rough[np.abs(np.arange(cells)[:, None] + around)]
    return np.asarray((neighbours @ weights).reshape(-1)[:count])


def _eigenvalue(degree: int, rate: float) -> float:
    """The dual's transform at the imaginary frequency i·rate; 0 for a profile that is over after a few
    cells.
    """
    if rate > _OVER:
        return 0.0
    half = 0.5 * rate
    spline = (math.sinh(half) / half) ** (degree + 1) if half > 1e-8 else 1.0
    return spline / float(inner_products(degree) @ np.cosh(rate * np.arange(-degree, degree + 1)))


def _shortest_reach(factors: ColumnFactors) -> int:
    """The fewest cells beyond which all coefficients together are far below the error of the projection."""
    phases = np.arange(_SPLINE_PHASES) / _SPLINE_PHASES
    own = 0.0
    if factors.degree:
        distance = np.arange(0.0, 2.0 * factors.scale, 0.25 * factors.scale)
        error = factors.read(phases[:, None], distance) - factors.shape(distance)
        own = float(np.abs(error).max())
    allowed = max(_TAIL_SHARE * own, _SMALLEST_TAIL)
    size = np.abs(factors.mesh[: factors.reach * factors.steps]).reshape(factors.reach, factors.steps)
    # Σ over whole cells of the largest coefficient in each, on both sides.
    tails = 2.0 * size.max(axis=1)[::-1].cumsum()[::-1]
    within = np.flatnonzero(tails <= allowed)
    return max(1, int(within[0])) if len(within) else factors.reach


_NUMBERS_READ_AT_A_TIME = 1 << 22
# Windows with more nodes are summed with the whole grid by matrix products.
_NODES_A_QUERY = 20_000

# Nodes that a matrix product sums in the time in which one is gathered.
_NODES_PER_PRODUCT = 16

# Fewer queries are not looked at for a lattice.
_FEWEST_OF_A_LATTICE, _FIRST_OF_A_LATTICE = 64, 4096
_MOST_FACTORS = 1 << 24
"""The most factors of a column of a lattice, one for each place and node.

Where there are more, few nodes are in reach.
"""


@dataclass(frozen=True, slots=True)
class GridColumn:
    """The nodes along one column: how many, their distance, the place of the first relative to the centre of
    the box, and the degree of the weights, 0 where records lie on nodes.
    """

    nodes: int
    spacing: float
    first: float
    degree: int


@dataclass(frozen=True, slots=True)
class Term:
    """``height`` times a product over columns, which is read with one factor for each."""

    height: float
    factors: tuple[ColumnFactors, ...]


class GridReader:
    """Sums a kernel over the nodes of a grid, with the coefficients that project it on the weights.

    A kernel is read as a sum of terms that are products over columns. Of a term that is narrow only the nodes
    near a query are summed; one that is wide is summed over all of them by matrix products.
    """

    def __init__(self, columns: Sequence[GridColumn], terms: Sequence[Term]) -> None:
        self.columns, self.terms = tuple(columns), tuple(terms)

    @classmethod
    def of(cls, profiles: Sequence[Profile], columns: Sequence[GridColumn]) -> GridReader:
        """The reader of a kernel that is the sum of these profiles."""
        return cls(columns, [_term(columns, each.height, each.scales, each.gaussian) for each in profiles])

    def sums(self, table: Table, batch: Batch, *, squared: bool = False, threads: int = 1) -> Floats:
        """Σ over nodes of the table, or of its squares, times the coefficients of each query."""
        queries = batch.arrays[0].astype(np.float64)

        def numbers() -> Floats:
            values = table.astype(np.float64)
            return values * values if squared else values

        # Points of a picture come in rows, so that the first of them show whether it is worth looking at all.
        if _lattice(queries[:_FIRST_OF_A_LATTICE]) is not None and (lattice := _lattice(queries)) is not None:
            most = max(len(each[0]) * own.nodes for each, own in zip(lattice, self.columns, strict=True))
            if most <= _MOST_FACTORS:
                return self._lattice_sums(numbers(), lattice)
        total = np.zeros(len(queries))
        wide = []
        for term in self.terms:
            if self._narrow(term, table.size):
                near = self._windows(term, queries)
                total += term.height * _native.sum_windows(table.reshape(-1), *near, squared, threads)
            else:
                wide.append(term)
        if wide:
            total += self._product_sums(wide, numbers(), queries)
        return total

    def totals(self, batch: Batch) -> Floats:
        """Σ over nodes of the coefficients of each query."""
        queries = batch.arrays[0].astype(np.float64)
        total = np.zeros(len(queries))
        for term in self.terms:
            if self._has_reach(term):
                sums = _native.sum_coefficients(*self._windows(term, queries), False, 1)
            else:
                factors = (self._all(term, queries, column) for column in range(len(self.columns)))
                sums = math.prod(each.sum(axis=1) for each in factors)
            total += term.height * sums
        return total

    def gains(self, batch: Batch) -> Floats:
        """Σ over nodes of the squared coefficients of each query: products over columns of the inner
        products of the terms' factors.
        """
        queries = batch.arrays[0].astype(np.float64)
        heights = np.array([term.height for term in self.terms])
        gain = np.empty(len(queries))
        if len(heights) == 1 and self._has_reach(self.terms[0]):
            return np.asarray(
                heights[0] ** 2 * _native.sum_coefficients(*self._windows(self.terms[0], queries), True, 1)
            )
        most = max(column.nodes for column in self.columns) * len(heights)
        for at in slices(len(queries), _NUMBERS_READ_AT_A_TIME // max(most, len(heights) ** 2)):
            part = queries[at]
            if len(self.columns) == 1:
                # The terms can be added before they are squared.
                factor = sum(each.height * self._all(each, part, 0) for each in self.terms)
                gain[at] = np.square(factor).sum(axis=1)
                continue
            inner = np.ones((len(part), len(heights), len(heights)))
            for column in range(len(self.columns)):
                factors = np.stack([self._all(each, part, column) for each in self.terms], axis=1)
                inner *= factors @ factors.transpose(0, 2, 1)
            gain[at] = np.einsum("i,qij,j->q", heights, inner, heights)
        return gain

    def covariances(self, batch: Batch) -> Floats:
        """Σ over nodes of the products of the coefficients of each pair of queries, in the same way."""
        queries = batch.arrays[0].astype(np.float64)
        places = range(len(self.columns))
        factors = [[self._all(each, queries, column) for column in places] for each in self.terms]
        if len(self.columns) == 1:
            factor: Floats = np.zeros((len(queries), self.columns[0].nodes))
            for term, (values,) in zip(self.terms, factors, strict=True):
                factor += term.height * values
            return factor @ factor.T
        total = np.zeros((len(queries), len(queries)))
        for i, one in enumerate(self.terms):
            for j, other in enumerate(self.terms[: i + 1]):
                product = np.full_like(total, one.height * other.height)
                for mine, theirs in zip(factors[i], factors[j], strict=True):
                    product *= mine @ theirs.T
                total += product if i == j else product + product.T
        return total

    def _has_reach(self, term: Term) -> bool:
        return all(factors.gaussian for factors in term.factors)

    def _narrow(self, term: Term, size: int) -> bool:
        """Whether to gather the nodes near a query, rather than to sum over all."""
        if not self._has_reach(term):
            return False
        window = math.prod(2 * factors.reach for factors in term.factors)
        dense = size // _NODES_PER_PRODUCT + sum(column.nodes for column in self.columns)
        return window <= min(_NODES_A_QUERY, dense)

    def _along(self, values: Floats, column: int) -> Floats:
        """Values of a column as places in cells, counted from the first node."""
        nodes = self.columns[column]
        return np.asarray((values - nodes.first) / nodes.spacing)

    def _all(self, term: Term, queries: Floats, column: int) -> Floats:
        """Factors of all nodes along one column, shape (queries, nodes)."""
        factors, number = term.factors[column], self.columns[column].nodes
        along, where = _distinct(self._along(queries[:, column], column))
        if not factors.gaussian or 2 * factors.reach > number:
            return factors.at(along[:, None] - np.arange(number))[where]
        # Windows are put among zeros, with as many before and behind for those that leave the grid.
        before = np.floor(along)
        room = 2 * factors.reach
        start = np.clip(before - (factors.reach - 1) + room, 0, number + room).astype(np.int64)
        dense = np.zeros((len(along), number + 2 * room))
        np.put_along_axis(dense, start[:, None] + np.arange(room), factors.around(along - before), axis=1)
        return dense[where, room : room + number]

    def _windows(self, term: Term, queries: Floats) -> tuple[list[tuple[int, Floats]], Floats]:
        """The numbers of nodes with the factors around a query, by column, and the places of the queries."""
        windows = [(own.nodes, each.rows) for own, each in zip(self.columns, term.factors, strict=True)]
        along = [self._along(queries[:, column], column) for column in range(len(self.columns))]
        return windows, np.stack(along, axis=1)

    def _lattice_sums(self, table: Floats, lattice: Sequence[tuple[Floats, NDArray[np.intp]]]) -> Floats:
        """The sums at all points of a lattice, computed one column after the other.

        It is used for queries that are most points of a lattice, such as the pixels of a picture.
        """
        total: Floats = np.zeros([len(places) for places, _ in lattice])
        for term in self.terms:
            values = table.reshape([column.nodes for column in self.columns])
            for column, (places, _) in enumerate(lattice):
                queries = np.broadcast_to(places[:, None], (len(places), len(lattice)))
                values = np.tensordot(values, self._all(term, queries, column), axes=(0, 1))
            total += term.height * values
        return np.asarray(total[tuple(where for _, where in lattice)])

    def _product_sums(self, terms: Sequence[Term], table: Floats, queries: Floats) -> Floats:
        """Kernel sums over all nodes, one column after the other."""
        values = table.reshape(self.columns[0].nodes, -1)
        sums = np.zeros(len(queries))
        for at in slices(len(queries), _NUMBERS_READ_AT_A_TIME // max(values.shape)):
            for term in terms:
                factors = [self._all(term, queries[at], column) for column in range(len(self.columns))]
                sums[at] += term.height * _contracted(factors[0] @ values, factors[:0:-1])
        return sums


def _lattice(queries: Floats) -> list[tuple[Floats, NDArray[np.intp]]] | None:
    """The distinct places along each column, and which of them each query has, if most points of their
    product are queries.
    """
    if len(queries) < _FEWEST_OF_A_LATTICE:
        return None
    found = [np.unique(each, return_inverse=True) for each in queries.T]
    return found if math.prod(len(places) for places, _ in found) <= 2 * len(queries) else None


def _distinct(along: Floats) -> tuple[Floats, NDArray[np.intp] | slice]:
    """The distinct places and which of them each query has, where that saves work: the points of a picture
    have few places along each column.
    """
    places, where = np.unique(along, return_inverse=True)
    return (places, where) if 2 * len(places) <= len(along) else (along, slice(None))


def _term(
    columns: Sequence[GridColumn], height: float, scales: Sequence[float], gaussian: Sequence[bool]
) -> Term:
    listed = zip(columns, scales, gaussian, strict=True)
    factors = (column_factors(each.degree, scale / each.spacing, normal) for each, scale, normal in listed)
    return Term(height, tuple(factors))


def _contracted(values: Floats, factors: Sequence[Floats]) -> Floats:
    """Values of each query at the nodes, shape (queries, nodes), times the factors of the last column, then
    of the one before, and so on.
    """
    for factor in factors:
        values = np.matmul(values.reshape(len(factor), -1, factor.shape[1]), factor[:, :, None])[..., 0]
    return values.reshape(len(values), -1)[:, 0]


_PHASES = 64
_WIDER = (math.sqrt(2.0), 2.0, 3.0)
_CUTS = (2.5, 3.0, 4.0, 5.0, 6.0, 8.0, math.inf)
# Where one bound of an error is compared with another: the records that a query typically sees.
_SHARE = 0.1

_PAIRS = 8192
# Pairs are sampled: what the largest error among them may be short of the largest of all.
_MARGIN = 1.25

CORNER_CELLS = 1.5
"""The width of what stands for the corner of a kernel, in cells."""

_FAR, _SMALL = 0.05, 1e-3
MOST_STORED = 128
"""Profiles of a kernel whose constants a file holds; one with more is fitted again by its readers."""

_LARGEST_CONSTANT = 1e60
_NOISE_ALLOWANCE = 2.0
_CELLS_AT_A_TIME = 1 << 20


def profiles_of(kernel: ProfileKernel, columns: Sequence[GridColumn]) -> tuple[Profile, ...]:
    """The sum of profiles as which a grid reads a kernel."""
    sides = [column.spacing * (column.nodes - 1) for column in columns]
    return kernel.profiles(spacings=[column.spacing for column in columns], sides=sides)


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """How far the reading of a record may be from the kernel, as a sum of kernels that the grid reads.

    Of a kernel that is one Gaussian: ``height`` times one that is ``wider``. Of others ``wider`` is 0: the
    error is ``height`` times narrow Gaussians at the corners of the kernel, and the ``part`` of the profiles.
    And ``floor`` at any distance.
    """

    height: float = 0.0
    wider: float = 0.0
    part: float = 0.0
    floor: float = 0.0

    def scaled(self, factor: float) -> ErrorBound:
        """The bound of ``factor`` times the error."""
        return ErrorBound(factor * self.height, self.wider, factor * self.part, factor * self.floor)


@dataclass(frozen=True, slots=True)
class GridConstants:
    """What is computed once, when a grid is released, and stored in its file: the profiles as which the
    kernel is read, the largest error of a record, and the typical one.
    """

    profiles: tuple[Profile, ...]
    bound: ErrorBound
    typical: ErrorBound

    def as_json(self) -> dict[str, Any]:
        """For the header of a file."""
        return {
            "profiles": [[each.height, list(each.scales), list(each.gaussian)] for each in self.profiles],
            "bound": list(astuple(self.bound)),
            "typical": list(astuple(self.typical)),
        }

    @classmethod
    def from_json(cls, data: Any, columns: Sequence[GridColumn]) -> GridConstants:
        """The inverse; ValueError for numbers that no kernel on such a grid has."""
        if set(data) != {"profiles", "bound", "typical"} or not 1 <= len(data["profiles"]) <= MOST_STORED:
            raise ValueError("constants")
        widest = max(
            64.0 * math.hypot(*(each.spacing * each.nodes for each in columns)),
            2.0 * WIDEST * max(each.spacing for each in columns),
        )
        profiles = []
        for height, scales, gaussian in data["profiles"]:
            if len(scales) != len(columns) or [type(each) for each in gaussian] != [bool] * len(columns):
                raise ValueError("profile")
            for scale, normal, column in zip(scales, gaussian, columns, strict=True):
                most = widest if normal else _LARGEST_CONSTANT
                _stored(scale, 1e-9 * column.spacing, most)
            _stored(height, -_LARGEST_CONSTANT, _LARGEST_CONSTANT)
            profiles.append(Profile(height, tuple(scales), tuple(gaussian)))
        limits = (_LARGEST_CONSTANT, max(_WIDER), _LARGEST_CONSTANT, _LARGEST_CONSTANT)
        for name in ("bound", "typical"):
            for number, most in zip(data[name], limits, strict=True):
                _stored(number, 0.0, most)
        return cls(tuple(profiles), ErrorBound(*data["bound"]), ErrorBound(*data["typical"]))


def _stored(value: object, least: float, most: float) -> None:
    if type(value) is not float or not least <= value <= most:
        raise ValueError("number")


@dataclass(frozen=True)
class ReadingErrors:
    """The error of each record, as a sum of kernels that the grid itself reads.

    The error of one record at a query depends on where the record lies in its cell, and on its distance from
    the query. For each distance the worst place is taken: the error is then at most Σ A·κ(distance) + floor,
    with κ wider than the kernel. Summed over the records, that is a kernel sum, so it is read from the
    released table, and is as local as the data: post-processing. It holds for every arrangement of records.

    `variance` is what intervals contain: as if the records that a node counts were all at one place, a
    random one. Heaps of different nodes then err with independent signs, where the bound has all errors of
    one sign. Data whose values lie on a lattice that is commensurate with the nodes can be between the two.

    Parameters
    ----------
    reading : GridReading
        Its stored constants, from a file, are taken where there are any.
    """

    reading: GridReading

    @property
    def reader(self) -> GridReader:
        """How the grid is read."""
        return self.reading.reader

    @cached_property
    def roundings(self) -> tuple[float, float]:
        """How far an answer may move, in units of one record, by the rounding of its place and its weights;
        and the root mean square of that over places in a cell, from above.

        A place is moved by half a step, and the slope of a kernel is at most about 1/width. Of n weights,
        each is off by at most half a unit, independently of the others: the sum by less than √n units.

        Each rounding is uniform within half a step, of variance 1/12, and independent of the others. What is
        added to the largest weight is taken from another one, so that an answer moves by a difference of two
        coefficients, which is at most about the size of the kernel.
        """
        basis, kernel = self.reading.basis, self.reading.profile_kernel
        smooth = [degree for degree in basis.degrees if degree]
        if not smooth:
            return 0.0, 0.0
        places, parts = _PLACES[len(basis.cells)], _PARTS[len(basis.cells)]
        widths = zip(basis.spacing, kernel.column_widths(), strict=True)
        steepest = max(spacing / width for spacing, width in widths)
        joined = math.sqrt(math.prod(degree + 1 for degree in smooth)) / WHOLE
        moved = steepest / (2.0 * places) * len(smooth)
        largest = moved + joined + sum(degree + 1.0 for degree in smooth) / parts
        spread = steepest * math.sqrt(len(smooth)) / places, joined, math.sqrt(sum(smooth)) / parts
        size = kernel.size_bound()
        return size * largest, size / math.sqrt(12.0) * math.hypot(*spread)

    def bound(self, table: Table, batch: Batch, variance: float) -> Floats:
        """The largest error of the sums at each query, but for the floor, in units of the table, whose cells
        have noise of this variance.

        The noise of this reading is allowed for by two standard deviations, which are a small part of the
        noise of the answer.
        """
        total = np.zeros(len(batch))
        for term in self.terms:
            reader = GridReader(self.reader.columns, (term,))
            deviation = np.sqrt(variance * reader.gains(batch))
            total += np.maximum(reader.sums(table, batch), 0.0)
            total += _NOISE_ALLOWANCE * deviation
        return total

    def variance(self, table: Table, batch: Batch) -> Floats:
        """The expected squared error of the sums, in units of the table.

        With weights b of a record, n records at one place give the nodes n·b; the mean of Σb² over places
        turns squares of cells into squares of repeated values. The noise of the cells adds its part of κ²,
        which is far below the noise of the answer.
        """
        if not self._squares.terms:
            return np.zeros(len(batch))
        total = self._squares.sums(table, batch, squared=True)
        return np.asarray(total + self.constants.typical.floor**2 / self._shared * _sum_of_squares(table))

    @cached_property
    def _shared(self) -> float:
        """The mean of Σb² over places in a cell."""
        columns = self.reader.columns
        return math.prod(float(inner_products(each.degree)[each.degree]) for each in columns if each.degree)

    @cached_property
    def _squares(self) -> GridReader:
        """(Σ A·κ)² is at most ΣA·Σ A·κ², where all κ are 1 in the same place."""
        terms = self._terms_of(self.constants.typical)
        heights = sum(term.height for term in terms) / self._shared
        squares = [Term(heights * each.height, tuple(map(_square, each.factors))) for each in terms]
        return GridReader(self.reader.columns, squares)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The kernels κ with their heights A."""
        return self._terms_of(self.constants.bound)

    @property
    def floor(self) -> float:
        """The error of a record at any distance."""
        return self.constants.bound.floor

    @cached_property
    def at_heap(self) -> float:
        """The root mean square error of a record at a query of the same value, over places in a cell."""
        rng = np.random.default_rng(0)
        inside = rng.uniform(size=(_PAIRS // 8, len(self.reader.columns)))
        peak = float(self._kernel_at(np.zeros((1, inside.shape[1])))[0])
        errors = _read(self.reader.terms, inside, np.zeros_like(inside)) - peak
        return math.hypot(float(np.sqrt(np.mean(errors**2))), self.roundings[1])

    @cached_property
    def constants(self) -> GridConstants:
        """The largest and the typical error of a record.

        The typical one is the root mean square over places in a cell; of kernels with a corner, as if the
        error were anywhere within its bound with the same probability.
        """
        if self.reading.stored is not None:
            return self.reading.stored
        profiles = self.reading.profiles
        one = profiles[0]
        if all(column.degree == 0 for column in self.reader.columns):
            bound = typical = ErrorBound()
        elif self.reading.profile_kernel.smooth and len(profiles) == 1 and all(one.gaussian):
            bound, typical = self._product_bound(one), self._product_bound(one, typical=True)
        else:
            bound = self._sampled_bound()
            typical = bound.scaled(1.0 / math.sqrt(3.0))
        return GridConstants(profiles, bound, typical)

    def _terms_of(self, bound: ErrorBound) -> tuple[Term, ...]:
        """The kernels of a bound, with their heights."""
        columns = self.reader.columns
        if bound.wider:
            one = self.reading.profiles[0]
            wider = [bound.wider if each.degree else 1.0 for each in columns]
            scales = [factor * width for factor, width in zip(wider, one.scales, strict=True)]
            return (_term(columns, bound.height, scales, one.gaussian),)
        if not bound.height and not bound.part:
            return ()
        corners = [Term(bound.height * each.height, each.factors) for each in self._corner_terms()]
        parts = (Term(bound.part * abs(each.height), each.factors) for each in self.reader.terms)
        return (*corners, *parts)

    def _product_bound(self, one: Profile, *, typical: bool = False) -> ErrorBound:
        """The error bound of a Gaussian, in units of its height.

        Per column the error is at most A·κ + δ, where κ is a wider Gaussian above the kernel. The ``typical``
        error is the root of its mean square over places.

        In several columns a record's places in the cells of each are independent: errors join as the root of
        the sum of squares. All of them at their largest, which is √d times that, needs a record at the worst
        place in every column.
        """
        columns = self.reader.columns
        scales = [width / each.spacing for width, each in zip(one.scales, columns, strict=True)]
        smooth = [(each.degree, scale) for each, scale in zip(columns, scales, strict=True) if each.degree]
        best: tuple[float, float, float, float] | None = None
        for wider, cut in itertools.product(_WIDER, _CUTS):
            pairs = [_column_bound(degree, scale, wider, cut, typical) for degree, scale in smooth]
            # Factors of the other columns are at most 1 + A + δ times the kernel.
            others = math.prod(1.0 + a + b for a, b in pairs)
            height = others * math.hypot(*(a for a, _ in pairs))
            floor = others * math.hypot(*(b for _, b in pairs))
            cost = height * wider ** len(smooth) * _SHARE + floor
            if best is None or cost < best[0]:
                best = cost, wider, height, floor
        assert best is not None
        _, wider, height, floor = best
        rounding = self.roundings[1 if typical else 0]
        size = abs(one.height)
        return ErrorBound(size * height + rounding, wider, floor=size * floor)

    def _sampled_bound(self) -> ErrorBound:
        """The error bound of other kernels, from pairs of a record and a query, near and far.

        The error at a corner of the kernel is taken as a narrow Gaussian there. The remaining error is taken
        as a part of the kernel, or of the sizes of its components.
        """
        columns = self.reader.columns
        rng = np.random.default_rng(0)
        spacing = np.array([each.spacing for each in columns])
        # Distances in which the kernel falls off alike along all columns.
        units = np.array(self.reading.profile_kernel.column_widths()) / self.reading.profile_kernel.width
        steps, side = spacing / units, spacing * [each.nodes for each in columns] / units
        inside = rng.uniform(size=(_PAIRS, len(columns)))
        direction = rng.normal(size=inside.shape)
        direction *= rng.uniform(size=inside.shape) < rng.uniform(0.3, 1.0, (_PAIRS, 1))
        radius = steps.min() * np.exp(
            rng.uniform(-2.0, math.log(float(side.max() / steps.min())), (_PAIRS, 1))
        )
        radius[: _PAIRS // 4] = 0.0
        away = radius * direction / np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-9)
        away *= units
        cells = away / spacing
        exact, read = self._kernel_at(away), _read(self.reader.terms, inside, cells)
        errors, small = np.abs(read - exact), _SMALL * self.reading.profile_kernel.size_bound()
        corners = self._corner_terms()
        # Both as the grid reads them, since that is how the bound is read.
        sizes = [Term(abs(term.height), term.factors) for term in self.reader.terms]
        near, kept = _read(corners, inside, cells), np.maximum(_read(sizes, inside, cells), 0.0)
        far, seen = near < _FAR, kept > small
        part = _MARGIN * float((errors / np.maximum(kept, small))[far & seen].max(initial=0.0))
        floor = _MARGIN * float(errors[far & ~seen].max(initial=0.0))
        left = np.maximum(errors - part * kept, 0.0)
        height = _MARGIN * float((left / np.maximum(near, _FAR))[~far].max(initial=0.0)) + self.roundings[0]
        return ErrorBound(height, part=part, floor=floor)

    def _corner_terms(self) -> list[Term]:
        """Where the kernel has corners: at the query; along every column for a product over columns."""
        columns = self.reader.columns
        narrow = tuple(column_factors(each.degree, CORNER_CELLS, True) for each in columns)
        if self.reading.profile_kernel.column_profile() is None or len(columns) == 1:
            return [Term(1.0, narrow)]
        return [
            Term(term.height, (*term.factors[:i], narrow[i], *term.factors[i + 1 :]))
            for term in self.reader.terms
            for i in range(len(columns))
        ]

    def _kernel_at(self, away: Floats) -> Floats:
        rows = away.astype(np.float32)
        origin = Batch((np.zeros((1, rows.shape[1]), np.float32),), 1)
        return self.reading.profile_kernel.prepared_similarity(Batch((rows,), len(rows)), origin)[:, 0]


def _read(terms: Sequence[Term], inside: Floats, away: Floats) -> Floats:
    """What records count that lie ``inside`` their cells, at queries ``away`` from them in cells."""
    total = np.zeros(len(inside))
    for term in terms:
        product = np.full(len(inside), term.height)
        for column, factors in enumerate(term.factors):
            product *= factors.read(inside[:, column], away[:, column])
        total += product
    return total


def _sum_of_squares(table: Table) -> float:
    flat = table.reshape(-1)
    parts = (flat[at].astype(np.float64) for at in slices(len(flat), _CELLS_AT_A_TIME))
    return sum(float(part @ part) for part in parts)


def _square(factors: ColumnFactors) -> ColumnFactors:
    """The square of what the factors stand for, at the nodes themselves."""
    narrower = math.sqrt(2.0) if factors.gaussian else 2.0
    return column_factors(0, factors.scale / narrower, factors.gaussian)


@lru_cache(maxsize=4096)
def _column_bound(degree: int, scale: float, wider: float, cut: float, typical: bool) -> tuple[float, float]:
    """A and δ: the error is at most A·exp(−t²/2·wider²) up to ``cut`` deviations, and δ beyond."""
    distance, largest, root_mean_square = _envelope(degree, scale)
    errors = root_mean_square if typical else largest
    inside = distance <= cut
    height = float((errors * np.exp(0.5 * (distance / wider) ** 2))[inside].max())
    return height, float(errors[~inside].max(initial=0.0))


@lru_cache(maxsize=512)
def _envelope(degree: int, scale: float) -> tuple[Floats, Floats, Floats]:
    """Distances in deviations of a Gaussian whose scale is given in cells, and the largest and the root mean
    square error of a record at that distance over all places in its cell.
    """
    factors = column_factors(degree, scale, True)
    most = factors.reach + degree + 1.0
    distance = np.arange(0.0, most, min(1.0, scale) / 16.0)
    phases = np.arange(_PHASES) / _PHASES
    largest, squares = np.zeros(len(distance)), np.zeros(len(distance))
    for phase in phases:
        error = np.abs(factors.read(np.full(1, phase), distance) - factors.shape(distance))
        largest = np.maximum(largest, error)
        squares += error * error
    return distance / scale, largest, np.sqrt(squares / _PHASES)


MAX_DIM = 4
MAX_CELLS = 1 << 26
DEFAULT_DEGREE = 3
WHOLE = 1 << 20
"""F: what the weights of a record sum to. Rounding them moves an answer by some millionths of a record."""

# Into how many parts a record is cut along each column, by the number of columns: products of them are exact
# in 53 bits.
_PARTS = {1: WHOLE, 2: 1 << 16, 3: 1 << 16, 4: 1 << 13}

# Places inside a cell that are distinguished: a record is moved by at most half of one.
_PLACES = {1: 1 << 16, 2: 1 << 14, 3: 1 << 14, 4: 1 << 12}

WIDEST = 10_000.0
"""The largest width of a smooth kernel, in cells: what its reading tabulates is as long as the kernel is
wide.
"""


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
    in_pages: ClassVar[bool] = True
    fractional: ClassVar[bool] = True

    cells: tuple[int, ...]
    bounds: Bounds
    degrees: tuple[int, ...]
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        dim = len(self.bounds.low)
        if dim > MAX_DIM:
            remedy = "use fourier_features or race for more"
            raise UsageError(f"a grid takes 1 to {MAX_DIM} columns", got=dim, remedy=remedy)
        cells = tuple(positive_integer("cells", n, at_most=MAX_CELLS) for n in self.cells)
        if len(cells) != dim:
            raise UsageError("cells", f"must be {dim} numbers, one for each column", got=len(cells))
        degrees = tuple(self.degrees)
        allowed = (0, *range(LOWEST_DEGREE, HIGHEST_DEGREE + 1))
        if len(degrees) != dim or any(type(each) is not int or each not in allowed for each in degrees):
            rule, got = f"must be {LOWEST_DEGREE} to {HIGHEST_DEGREE}", ", ".join(map(str, degrees))
            raise UsageError("degree", rule, got=got, remedy=f"{DEFAULT_DEGREE} is a common choice")
        check_columns(self.columns, dim)
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "degrees", degrees)
        if math.prod(self.nodes) > MAX_CELLS:
            remedy = "use fewer cells, a larger bandwidth or spacing"
            raise UsageError(f"a grid may have {MAX_CELLS} nodes", got="more", remedy=remedy)

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
        sides = zip(self.bounds.low, self.bounds.high, self.cells, strict=True)
        return tuple((high - low) / n for low, high, n in sides)

    def grid_columns(self) -> tuple[GridColumn, ...]:
        """The nodes along each column, relative to the centre of the box."""
        listed = zip(self.cells, self.nodes, self.spacing, self.degrees, strict=True)
        return tuple(
            GridColumn(nodes, spacing, -spacing * (0.5 * n + (0.5 * (degree - 1) if degree else 0.0)), degree)
            for n, nodes, spacing, degree in listed
        )

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """The weights of one record, or of two."""
        length, largest = _norm_bounds(self.degrees)
        records = 1 if relation is Relation.ADD_REMOVE else 2
        return Sensitivity(records * WHOLE, records * length, largest)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's weights to the nodes around it."""
        places, parts = _PLACES[len(self.cells)], _PARTS[len(self.cells)]
        axes = [
            (cells, spacing, part_table(degree, parts, places) if degree else None)
            for cells, spacing, degree in zip(self.cells, self.spacing, self.degrees, strict=True)
        ]
        _native.count_on_grid(batch.arrays[0], table.reshape(-1), axes, parts, WHOLE, step, threads)

    def _reading(self, kernel: Kernel) -> GridReading:
        return GridReading(self, kernel)


@dataclass(frozen=True)
class GridReading(LinearReading):
    """The kernel, projected on the splines of the weights, summed over the nodes."""

    basis: GridWeights
    kernel: Kernel
    stored: GridConstants | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        PROFILES.check(self.kernel, "a grid")
        dim = self.basis.bounds.dim
        if self.kernel.dim != dim:
            rule = f"must have one (low, high) for each of {self.kernel.dim} columns"
            raise UsageError("bounds", rule, got=f"{dim}")
        if not self.profile_kernel.smooth:
            return
        widths = zip(self.basis.spacing, self.profile_kernel.column_widths(), self.basis.degrees, strict=True)
        found = [(spacing / width, width / spacing, degree) for spacing, width, degree in widths]
        coarsest = max((coarse for coarse, _, degree in found if degree), default=0.0)
        if coarsest > 1.25:
            rule = "must be at least 0.8 of the grid's spacing"
            remedy = "make a finer grid, or read a wider kernel"
            raise UsageError("bandwidth", rule, got=f"{1.0 / coarsest:.3g}", remedy=remedy)
        widest = max(wide for _, wide, _ in found)
        if widest > WIDEST:
            rule = f"must be at most {WIDEST:,.0f} times the grid's spacing"
            remedy = "make a coarser grid, or read a narrower kernel"
            raise UsageError("bandwidth", rule, got=f"{widest:.3g}", remedy=remedy)

    @property
    def profile_kernel(self) -> ProfileKernel:
        """The kernel, which is a sum of profiles."""
        assert isinstance(self.kernel, ProfileKernel)
        return self.kernel

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums: the projection of the kernel, summed over the nodes."""
        return self.reader.sums(table.reshape(self.basis.nodes), batch, threads=threads) / WHOLE

    def noise_gain(self, batch: Batch) -> Floats:
        """The sum of the squared coefficients over the nodes, in units of whole records."""
        return self.reader.gains(batch) / float(WHOLE) ** 2

    def noise_covariance(self, batch: Batch) -> Floats:
        """Products over columns of the inner products of coefficients."""
        return self.reader.covariances(batch) / float(WHOLE) ** 2

    def record_answers(self, records: Batch, queries: Batch) -> Floats:
        """The kernel itself, which a grid reads nearly exactly."""
        return self.kernel.prepared_similarity(records, queries)

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The expected squared error under the assumption that all records around a node are at one random
        place.
        """
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
        return self.reader.totals(batch) / float(WHOLE) ** 2

    @cached_property
    def errors(self) -> ReadingErrors:
        """How far the reading of one record may be from the kernel."""
        return ReadingErrors(self)

    def constants_as_json(self) -> dict[str, Any] | None:
        """The profiles of the kernel and the bounds of errors; None for a kernel of very many profiles."""
        return self.errors.constants.as_json() if len(self.profiles) <= MOST_STORED else None

    def with_constants(self, data: Any) -> GridReading:
        """The reading with the constants of a file."""
        return replace(self, stored=GridConstants.from_json(data, self.basis.grid_columns()))

    @cached_property
    def profiles(self) -> tuple[Profile, ...]:
        """The sum of profiles as which the kernel is read."""
        if self.stored is not None:
            return self.stored.profiles
        return profiles_of(self.profile_kernel, self.basis.grid_columns())

    @cached_property
    def reader(self) -> GridReader:
        """How the grid is read."""
        return GridReader.of(self.profiles, self.basis.grid_columns())


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
