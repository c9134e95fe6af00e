"""How far the reading of one record from a grid may be from its kernel value, wherever the record lies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.grid_reading import GridReader, Term
from hushsum.bases.splines import ColumnFactors, column_factors, inner_products
from hushsum.kernels.base import Batch, ProfileKernel
from hushsum.kernels.product_profiles import Profile

_PHASES = 64
_WIDER = (math.sqrt(2.0), 2.0, 3.0)
_CUTS = (2.5, 3.0, 4.0, 5.0, 6.0, 8.0, math.inf)
_SHARE = 0.1
"""Where one bound of an error is compared with another: the records that a query typically sees."""

_PAIRS = 8192
_MARGIN = 1.25
"""Pairs are sampled: what the largest error among them may be short of the largest of all."""

CORNER_CELLS = 1.5
"""The width of what stands for the corner of a kernel, in cells."""

_FAR, _SMALL = 0.05, 1e-3
_NOISE_ALLOWANCE = 2.0
_CELLS_AT_A_TIME = 1 << 20


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
    kernel : ProfileKernel
        What the answers are for.
    reader : GridReader
        How they are read.
    rounding : float
        The largest error of one record by the rounding of its place and its weights.
    typical_rounding : float
        The root mean square of that error over places in a cell.
    """

    kernel: ProfileKernel
    reader: GridReader
    rounding: float
    typical_rounding: float

    def bound(self, table: NDArray[np.integer], batch: Batch, variance: float) -> Floats:
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

    def variance(self, table: NDArray[np.integer], batch: Batch) -> Floats:
        """The expected squared error of the sums, in units of the table.

        With weights b of a record, n records at one place give the nodes n·b; the mean of Σb² over places
        turns squares of cells into squares of heaps. The noise of the cells adds its part of κ², which is
        far below the noise of the answer.
        """
        columns = self.reader.columns
        shared = math.prod(inner_products(each.degree)[each.degree] for each in columns if each.degree)
        terms, floor = self._typical
        heights = sum(term.height for term in terms)
        # (Σ A·κ)² is at most ΣA·Σ A·κ², where all κ are 1 in the same place.
        squares = [
            Term(heights * term.height / shared, tuple(_square(each) for each in term.factors))
            for term in terms
        ]
        if not squares:
            return np.zeros(len(batch))
        total = GridReader(columns, squares).sums(table, batch, squared=True)
        return np.asarray(total + floor**2 / shared * _sum_of_squares(table))

    @property
    def terms(self) -> tuple[Term, ...]:
        """The kernels κ with their heights A."""
        return self._bound[0]

    @property
    def floor(self) -> float:
        """The error of a record at any distance."""
        return self._bound[1]

    @cached_property
    def at_heap(self) -> float:
        """The root mean square error of a record at a query of the same value, over places in a cell."""
        rng = np.random.default_rng(0)
        inside = rng.uniform(size=(_PAIRS // 8, len(self.reader.columns)))
        peak = float(self._kernel_at(np.zeros((1, inside.shape[1])))[0])
        errors = _read(self.reader.terms, inside, np.zeros_like(inside)) - peak
        return math.hypot(float(np.sqrt(np.mean(errors**2))), self.typical_rounding)

    @cached_property
    def _bound(self) -> tuple[tuple[Term, ...], float]:
        if all(column.degree == 0 for column in self.reader.columns):
            return (), 0.0
        one = self._one_gaussian()
        return self._sampled_bound() if one is None else self._product_bound(one)

    @cached_property
    def _typical(self) -> tuple[tuple[Term, ...], float]:
        """The same for the root mean square error over places in a cell; of kernels with a corner, as if the
        error were anywhere within its bound with the same probability.
        """
        one = self._one_gaussian()
        if one is not None and self.terms:
            return self._product_bound(one, typical=True)
        shrunk = 1.0 / math.sqrt(3.0)
        return tuple(Term(shrunk * each.height, each.factors) for each in self.terms), shrunk * self.floor

    def _one_gaussian(self) -> Profile | None:
        """The profile of a kernel that is one Gaussian, of any height; None of others."""
        if not self.kernel.smooth:
            return None
        spacings = [each.spacing for each in self.reader.columns]
        sides = [each.spacing * each.nodes for each in self.reader.columns]
        profiles = self.kernel.profiles(spacings=spacings, sides=sides)
        one = profiles[0]
        return one if len(profiles) == 1 and all(one.gaussian) else None

    def _product_bound(self, one: Profile, *, typical: bool = False) -> tuple[tuple[Term, ...], float]:
        """Of a Gaussian, in units of its height: per column the error is at most A·κ + δ, κ a wider Gaussian
        that is above the kernel; the ``typical`` error is the root of its mean square over places.

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
        factors = tuple(
            column_factors(each.degree, (wider if each.degree else 1.0) * scale, True)
            for each, scale in zip(columns, scales, strict=True)
        )
        rounding = self.typical_rounding if typical else self.rounding
        size = abs(one.height)
        return (Term(size * height + rounding, factors),), size * floor

    def _sampled_bound(self) -> tuple[tuple[Term, ...], float]:
        """Of other kernels: pairs of a record and a query, near and far. The error at a corner of the kernel
        is taken as a narrow Gaussian there, what is left as a part of the kernel, or of the sizes of its
        components.
        """
        columns = self.reader.columns
        rng = np.random.default_rng(0)
        spacing = np.array([each.spacing for each in columns])
        # Distances in which the kernel falls off alike along all columns.
        units = np.array(self.kernel.column_widths()) / self.kernel.width
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
        errors, small = np.abs(read - exact), _SMALL * self.kernel.size_bound()
        corners = self._corner_terms()
        # Both as the grid reads them, since that is how the bound is read.
        sizes = [Term(abs(term.height), term.factors) for term in self.reader.terms]
        near, kept = _read(corners, inside, cells), np.maximum(_read(sizes, inside, cells), 0.0)
        far, seen = near < _FAR, kept > small
        part = _MARGIN * float((errors / np.maximum(kept, small))[far & seen].max(initial=0.0))
        floor = _MARGIN * float(errors[far & ~seen].max(initial=0.0))
        left = np.maximum(errors - part * kept, 0.0)
        height = _MARGIN * float((left / np.maximum(near, _FAR))[~far].max(initial=0.0)) + self.rounding
        terms = [Term(height * term.height, term.factors) for term in corners]
        return (*terms, *(Term(part * term.height, term.factors) for term in sizes)), floor

    def _corner_terms(self) -> list[Term]:
        """Where the kernel has corners: at the query; along every column for a product over columns."""
        columns = self.reader.columns
        narrow = tuple(column_factors(each.degree, CORNER_CELLS, True) for each in columns)
        if self.kernel.column_profile() is None or len(columns) == 1:
            return [Term(1.0, narrow)]
        return [
            Term(term.height, (*term.factors[:i], narrow[i], *term.factors[i + 1 :]))
            for term in self.reader.terms
            for i in range(len(columns))
        ]

    def _kernel_at(self, away: Floats) -> Floats:
        rows = away.astype(np.float32)
        origin = Batch((np.zeros((1, rows.shape[1]), np.float32),), 1)
        return self.kernel.prepared_similarity(Batch((rows,), len(rows)), origin)[:, 0]


def _read(terms: Sequence[Term], inside: Floats, away: Floats) -> Floats:
    """What records count that lie ``inside`` their cells, at queries ``away`` from them in cells."""
    total = np.zeros(len(inside))
    for term in terms:
        product = np.full(len(inside), term.height)
        for column, factors in enumerate(term.factors):
            product *= factors.read(inside[:, column], away[:, column])
        total += product
    return total


def _sum_of_squares(table: NDArray[np.integer]) -> float:
    flat, total = table.reshape(-1), 0.0
    for start in range(0, len(flat), _CELLS_AT_A_TIME):
        part = flat[start : start + _CELLS_AT_A_TIME].astype(np.float64)
        total += float(part @ part)
    return total


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
