"""Tables of coefficients in a declared box: what they have in common, and `FourierSeries`, one of them.

They have bounds, fixed-point numbers and portable arithmetic in common.

What a record adds to a tally must depend on that record alone, bit for bit: not on its place in a batch, the
length of a vector register or the library at hand. Addition, multiplication and rounding are the same
everywhere; a library's ``cos`` and ``exp`` are not, so cosine, sine and exponential are made of these alone.

`FourierSeries` holds Fourier coefficients of the records: the spectral, or orthogonal series, estimate.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import PerSurface, UsageError
from hushsum.kernels import (
    COLUMNS,
    GAUSSIAN,
    Batch,
    ColumnKernel,
    GaussianProfileKernel,
    Kernel,
    check_columns,
    positive_integer,
)
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import MOST_CELLS, Bounds, CellGrid, columns_in_words

from ._base import Basis, LinearReading, Table, register, slices

__all__ = [
    "DEFAULT_SCALE", "HEAPED_SHARE", "MAX_FREQUENCY", "MAX_SCALE", "RACE", "Bins", "BoxBasis", "BoxReading",
    "FourierSeries", "SeriesReading", "blocks", "cell_errors", "check_columns_of", "check_power",
    "contracted", "cosine_and_sine", "exponential_of_minus", "gaussian_width", "outer_products", "queries_of",
]  # fmt: skip

_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(10)]
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(10)]
_EXPONENTIAL = [1.0 / math.factorial(k) for k in range(15)]
_LOG2_E = 1.4426950408889634
# ln 2 in two parts: the product of the first with any exponent here is exact.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_VANISHES = 800.0


def cosine_and_sine(turns: Floats) -> tuple[Floats, Floats]:
    """cos(2πt) and sin(2πt), within 2⁻⁵⁰; the sum of their squares is within 2⁻⁴⁹ of 1.

    >>> cosine, sine = cosine_and_sine(np.array([0.0, 0.25, 1e6 + 0.5]))
    >>> cosine.tolist(), sine.tolist()
    ([1.0, 0.0, -1.0], [0.0, 1.0, 0.0])
    """
    fraction = turns - np.rint(turns)
    quarter = np.rint(4.0 * fraction)
    angle = (fraction - 0.25 * quarter) * (2.0 * math.pi)
    square = angle * angle
    cosine = _polynomial(square, _COSINE)
    sine = angle * _polynomial(square, _SINE)
    odd = np.abs(quarter) == 1.0
    upper = np.where(odd, -sine * quarter, np.where(quarter == 0.0, cosine, -cosine)) + 0.0
    right = np.where(odd, cosine * quarter, np.where(quarter == 0.0, sine, -sine)) + 0.0
    return upper, right


def exponential_of_minus(x: Floats) -> Floats:
    """exp(−x) for x ≥ 0, within a relative 2⁻⁵⁰; 0 beyond 800.

    >>> exponential_of_minus(np.array([0.0, 1.0, 1e30])).round(6).tolist()
    [1.0, 0.367879, 0.0]
    """
    bounded = np.minimum(x, _VANISHES)
    halvings = np.rint(bounded * _LOG2_E)
    rest = (halvings * _LN2_HIGH - bounded) + halvings * _LN2_LOW
    return np.ldexp(_polynomial(rest, _EXPONENTIAL), -halvings.astype(np.int32))


def _polynomial(x: Floats, coefficients: list[float]) -> Floats:
    value = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        value *= x
        value += c
    return value


Complexes = NDArray[np.complex128]
Numbers = TypeVar("Numbers", Floats, Complexes)


def outer_products(factors: Sequence[Floats]) -> Floats:
    """From one (n, terms) array a column to all products, shape (n, terms^dim), last column fastest.

    Elementwise: a row depends on that row alone, bit for bit.

    >>> outer_products([np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])]).tolist()
    [[3.0, 5.0, 6.0, 10.0]]
    """
    product = factors[0]
    for factor in factors[1:]:
        product = (product[:, :, np.newaxis] * factor[:, np.newaxis, :]).reshape(len(product), -1)
    return product


def contracted(coefficients: Numbers, factors: Sequence[Numbers]) -> Numbers:
    """Σ over all products of one factor per column times its coefficient, shape (n,).

    ``coefficients`` is flat, with the last column fastest. For queries: the order of summation is free.
    """
    dims = [factor.shape[1] for factor in factors]
    rest = coefficients.reshape(*dims[:-1], dims[-1])
    partial = np.tensordot(factors[-1], rest, axes=(1, len(dims) - 1))
    for factor in reversed(factors[:-1]):
        partial = np.einsum("n...k,nk->n...", partial, factor)
    return partial


MAX_COEFFICIENTS = 1 << 22
RACE: Final = PerSurface("hushsum.race", "the race method", "the race method")
"""The basis that any number of columns has, as each surface calls it."""
MAX_SCALE = 1 << 20
DEFAULT_SCALE = 1 << 16
"""Fixed-point steps of a coefficient of size 1: its rounding is far below any noise."""

_BLOCK_NUMBERS = 1 << 20
_MOST_PLACES = 1 << 11
_AROUND = 40
# Of a lattice much wider than the kernel, whose points cannot find every repeated value.
_LEAST_SHARED = 0.1

HEAPED_SHARE = 0.4
"""The fraction of a kernel sum that is assumed to come from records that equal the query: the median
over the data sets of the tuning half of ``benchmarks/plans/plan_validation.py``.
"""


@runtime_checkable
@dataclass(frozen=True, kw_only=True)
class BoxBasis(Basis, Protocol):
    """Coefficients of records in a declared box, in fixed point with ``scale`` steps to 1.

    Records are clipped to the box, so that polynomials and series of them are bounded.
    """

    bounds: Bounds
    columns: tuple[str, ...] | None = None
    scale: int = DEFAULT_SCALE

    def __post_init__(self) -> None:
        check_columns(self.columns, self.dim)
        kernel = self.counted_kernel()
        if kernel is not None and kernel.dim != self.dim:
            rule = f"must have one (low, high) for each of {kernel.dim} columns"
            raise UsageError("bounds", rule, got=f"{self.dim}")
        if not 2 <= self.scale <= MAX_SCALE or self.scale & (self.scale - 1):
            rule, remedy = f"must be a power of two up to {MAX_SCALE}", f"try {DEFAULT_SCALE}"
            raise UsageError("scale", rule, got=f"{self.scale}", remedy=remedy)

    @property
    def dim(self) -> int:
        """The number of columns."""
        return self.bounds.dim

    @abstractmethod
    def _add(self, table: NDArray[np.int64], records: Floats, step: int) -> None:
        """Add a block of records, shape (n, dim), relative to the centre of the box."""

    @abstractmethod
    def numbers_per_record(self) -> int:
        """How many numbers ``_add`` holds for one record."""

    @cached_property
    def half(self) -> Floats:
        """Half the width of the box in each column, shape (dim,)."""
        return self.bounds.half_width.astype(np.float64)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's coefficients; elementwise in floats, summed in integers."""
        records = batch.arrays[0]
        for start, stop in blocks(len(batch), self.numbers_per_record()):
            self._add(table, records[start:stop].astype(np.float64), step)


class BoxReading(LinearReading, Protocol):
    """The reading of coefficients in a box, with the error of the kernel that they stand for."""

    if TYPE_CHECKING:

        @property
        def basis(self) -> BoxBasis:
            """What the table counts."""

    @abstractmethod
    def _read_lattice(self, queries: Floats) -> Floats:
        """What a record at each place of the lattice counts at each query, shape (queries, places)."""

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The squared error of the approximation if records have repeated values: on a lattice of half a
        bandwidth, or of more where that would have more than 2048 points, as many at each point as the
        released function finds around it.

        A value that n records share reads n·k at the points around it. So the squares of the readings,
        divided by the sum of k² over a lattice, have n² for their sum.
        """
        places, squares = self._lattice[0], self._heaps(table)
        errors = np.empty(len(batch))
        rows = Batch((places,), len(places))
        for start, stop in blocks(len(batch), 4 * len(places)):
            queries = queries_of(batch)[start:stop]
            exact = self.kernel._pairwise(rows, Batch((queries,), len(queries)))
            errors[start:stop] = np.square(self._read_lattice(queries) - exact.T) @ squares
        return errors

    def _heaps(self, table: Table) -> Floats:
        """The squared number of records at each place of the lattice."""
        places, shared = self._lattice
        found = self.evaluate(table, Batch((places.astype(np.float32),), len(places)), threads=1)
        # Below 0 is noise alone, unless the kernel may be negative.
        return np.asarray(np.square(found if self.kernel.signed else np.maximum(found, 0.0)) / shared)

    @cached_property
    def _lattice(self) -> tuple[Floats, float]:
        """Places all over the box, shape (n, dim), and the sum of k² over such a lattice without end."""
        assert isinstance(self.kernel, ColumnKernel)
        half, width = self.basis.half, self.kernel.width
        steps = np.maximum(1.0, 4.0 * half / width)
        steps *= min(1.0, (_MOST_PLACES / float(steps.prod())) ** (1.0 / len(half)))
        numbers = np.maximum(1, np.rint(steps)).astype(int)
        axes = [
            side * ((np.arange(n) + 0.5) * (2.0 / n) - 1.0) for side, n in zip(half, numbers, strict=True)
        ]
        places = np.stack([each.reshape(-1) for each in np.meshgrid(*axes, indexing="ij")], axis=1)
        spacing = 2.0 * half / numbers
        # From a point of the lattice, and from the middle between points: the smaller of the two.
        around = np.arange(-_AROUND, _AROUND + 1)
        offsets = np.stack([(around + shift)[:, None] * spacing for shift in (0.0, 0.5)])
        shared = 1.0
        for column in range(len(half)):
            line = np.zeros((2, len(around), len(half)))
            line[:, :, column] = offsets[:, :, column]
            origin = Batch((np.zeros((1, len(half))),), 1)
            sums = [
                float((self.kernel._pairwise(Batch((each,), len(each)), origin) ** 2).sum()) for each in line
            ]
            shared *= max(min(sums), _LEAST_SHARED * self.kernel.size_bound() ** 2)
        return places, shared


def queries_of(batch: Batch) -> Floats:
    """Prepared rows in double precision, shape (n, dim), relative to the centre of the box."""
    rows: Floats = batch.arrays[0].astype(np.float64)
    return rows


def blocks(length: int, numbers_per_record: int) -> Iterator[tuple[int, int]]:
    """Ranges of records that need about a million numbers each."""
    step = max(1, _BLOCK_NUMBERS // max(1, numbers_per_record))
    for start in range(0, length, step):
        yield start, min(length, start + step)


def gaussian_width(kernel: Kernel, asker: str) -> float:
    """The standard deviation of a kernel of the Gaussian shape; refuses others."""
    GAUSSIAN.check(kernel, asker)
    assert isinstance(kernel, GaussianProfileKernel)
    return kernel.gaussian_width()


def check_columns_of(kernel: Kernel, dim: int) -> None:
    """Refuse to read a table with a kernel of another number of columns."""
    if kernel.dim != dim:
        rule = f"must have {columns_in_words(dim)}, as the table"
        raise UsageError("kernel", rule, got=f"{kernel.dim}", remedy="make one with that dim")


def check_power(what: str, terms: int, dim: int) -> int:
    """``terms`` to the power ``dim``; refuses a tensor beyond reach, from public parameters alone."""
    if (terms > 1 and dim > 64) or terms**dim > MAX_COEFFICIENTS:
        rule = f"({what})^dim must be at most {MAX_COEFFICIENTS} coefficients"
        remedy = ("use fewer of them, or ", RACE, ", which works in any dimension")
        raise UsageError(rule, got="more", remedy=remedy)
    return int(terms**dim)


MAX_FREQUENCY = 1 << 10
# Below this many steps a coefficient is mostly rounding, and its kernel coefficient below 1e-4.
_LEAST_WEIGHT = 64

# The part of the variance of the noise below which a bound on other errors takes their place.
_NEGLIGIBLE = 1e-4


@register
@dataclass(frozen=True, kw_only=True)
class FourierSeries(BoxBasis):
    """Cosines and sines of each record up to a frequency, on the box widened by some bandwidths.

    The kernel sum is a convolution, so its coefficients are the records' times the kernel's own: the table is
    read by multiplying with them. The series is periodic; the padding keeps one end of the box from being
    felt at the other.

    Parameters
    ----------
    frequencies : int
        M, the highest frequency in each column: ((2M + 1)^d − 1)/2 pairs of coefficients.
    padding : float
        How many bandwidths the period exceeds the width of the box.
    taper : float
        A pair's weight is k̂ to this power: 0 gives equal shares of the budget, as published. 2/3 minimises
        Laplace noise of an answer and 1/2 Gaussian noise, which is then a path of the Gaussian process whose
        covariance is the kernel. Pairs whose weight would be below 64, or half of the scale, are left out.

    Privacy
    -------
    A pair (⌊W cos⌋, ⌊W sin⌋), rounded toward 0, has squares that sum to at most W² and so sizes that sum to
    at most √2·W: Δ1 = W₀ + Σ⌊√2·W⌋, Δ2² = W₀² + ΣW². A record replaced leaves the constant as it was and
    moves a pair by at most 2W; or, of a person, it has no counterpart and moves all as above. The computed
    squares exceed W² by less than 1, and are integers.

    Notes
    -----
    Hall, Rinaldo and Wasserman, *Differential privacy for functions and functional data*, JMLR 2013;
    Wasserman and Zhou, *A statistical framework for differential privacy*, JASA 2010, section 6.
    """

    name: ClassVar[str] = "fourier-series"
    in_pages: ClassVar[bool] = True

    kernel: Kernel
    frequencies: int
    padding: float = 4.0
    taper: float = 0.0

    def __post_init__(self) -> None:
        gaussian_width(self.kernel, "fourier_series")
        super().__post_init__()
        highest = positive_integer("frequencies", self.frequencies, at_most=MAX_FREQUENCY)
        object.__setattr__(self, "frequencies", highest)
        if not (math.isfinite(self.padding) and self.padding >= 0.0):
            rule = "must be finite and at least 0"
            raise UsageError("padding", rule, got=f"{self.padding}", remedy="try 4")
        if not 0.0 <= self.taper <= 1.0:
            raise UsageError("taper", "must be from 0 to 1", got=f"{self.taper}", remedy="try 0.5")
        check_power("2·frequencies + 1", 2 * highest + 1, self.dim)

    @cached_property
    def period(self) -> Floats:
        """The width of the padded box in each column."""
        return 2.0 * self.half + self.padding * gaussian_width(self.kernel, self.name)

    @cached_property
    def _decays(self) -> list[Floats]:
        """What each order of a column adds to −log k̂: from 0, never falling, shape (frequencies + 1,) each.

        Correctly rounded operations alone: weights and their rounding agree on every machine.
        """
        phases = np.arange(self.frequencies + 1) * self._widths[:, np.newaxis]
        return list(2.0 * math.pi * math.pi * phases * phases)

    @property
    def _widths(self) -> Floats:
        return gaussian_width(self.kernel, self.name) / self.period

    def _reach(self, before: Floats, decay: Floats) -> NDArray[np.int64]:
        """The highest order of a column that is kept, for each decay of the columns before it.

        Sums and products are rounded without changing their order, so what is kept has no gaps, and the order
        is found by halving.
        """
        if self.taper == 0.0:
            return np.full(len(before), self.frequencies)
        # Weights of at least _LEAST_WEIGHT, or half of the scale: powers of two, as the scale is one.
        most = max(self.scale.bit_length() - _LEAST_WEIGHT.bit_length(), 1) * math.log(2.0)
        reach = np.zeros(len(before), np.int64)
        for bit in range(self.frequencies.bit_length() - 1, -1, -1):
            further = reach + (1 << bit)
            decays = before + decay[np.minimum(further, self.frequencies)]
            kept = (further <= self.frequencies) & (decays * self.taper <= most)
            reach = np.where(kept, further, reach)
        return reach

    @cached_property
    def _pairs(self) -> int:
        """How many pairs are kept, with the constant: counted by the sizes of all columns but one, so that a
        short file does not cost what it declares.
        """
        if self.taper == 0.0:
            return int((2 * self.frequencies + 1) ** self.dim // 2 + 1)
        decay, times = np.zeros(1), np.ones(1, np.int64)
        for added in self._decays[:-1]:
            reach = self._reach(decay, added)
            place, order = _ranges(reach * 0, reach)
            decay, times = decay[place] + added[order], times[place] * np.where(order > 0, 2, 1)
        return int((times * (2 * self._reach(decay, self._decays[-1]) + 1)).sum() // 2 + 1)

    @cached_property
    def series(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        """Frequencies of the pairs (P, dim), their integer weights, and k̂; the constant comes first."""
        frequency, decay = np.zeros((1, 0), np.int64), np.zeros(1)
        for column, added in enumerate(self._decays):
            reach = self._reach(decay, added)
            place, order = _ranges(-reach if column else reach * 0, reach)
            frequency = np.column_stack((frequency[place], order))
            decay = decay[place] + added[np.abs(order)]
        # Of two opposite frequencies, the one whose first order that is not 0 is positive.
        first = np.take_along_axis(frequency, (frequency != 0).argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
        frequency, decay = frequency[first >= 0], decay[first >= 0]
        place = np.lexsort((*frequency.T[::-1], np.square(frequency).sum(axis=1)))
        frequency, decay = frequency[place], decay[place]
        if self.taper > 0.0:
            weight = np.rint(self.scale * exponential_of_minus(decay * self.taper)).astype(np.int64)
            weight[0] = round(self.scale / math.sqrt(2.0))
        else:
            weight = np.full(len(frequency), self.scale, np.int64)
        constant = math.prod(float(width) * math.sqrt(2.0 * math.pi) for width in self._widths)
        return frequency, weight, constant * exponential_of_minus(decay)

    @property
    def shape(self) -> tuple[int, int]:
        """(1, coefficients): the constant, then a cosine and a sine for each pair."""
        return 1, 2 * self._pairs - 1

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """From the pairs' weights; see the class."""
        first = int(self.series[1][0])
        counted = zip(*np.unique(self.series[1][1:], return_counts=True), strict=True)
        weights = [(int(w), int(n)) for w, n in counted]
        added = Sensitivity(
            l1=first + sum(n * math.isqrt(2 * w * w) for w, n in weights),
            l2_squared=first * first + sum(n * w * w for w, n in weights),
            largest=max(first, *(w for w, _ in weights), 0),
        )
        if relation is Relation.ADD_REMOVE:
            return added
        exchanged = Sensitivity(
            l1=sum(n * math.isqrt(8 * w * w) for w, n in weights),
            l2_squared=sum(4 * n * w * w for w, n in weights),
            largest=2 * max((w for w, _ in weights), default=0),
        )
        # A person replaced may have had fewer records: some are exchanged, others only added or removed.
        return added.at_least(exchanged)

    def numbers_per_record(self) -> int:
        """How many numbers a block holds for one record."""
        return 4 * len(self.series[1])

    def _add(self, table: NDArray[np.int64], records: Floats, step: int) -> None:
        frequency, weight, _ = self.series
        real, imaginary = self.waves(records)
        table[0, 0] += step * len(records) * int(weight[0])
        for cells, waves in ((slice(1, len(frequency)), real), (slice(len(frequency), None), imaginary)):
            table[0, cells] += step * np.trunc(weight[1:] * waves[:, 1:]).astype(np.int64).sum(axis=0)

    def waves(self, points: Floats) -> tuple[Floats, Floats]:
        """cos and sin of 2π·m·x for each pair, shape (n, P): products of the columns' own waves."""
        frequency = self.series[0]
        real, imaginary = np.ones((1, 1)), np.zeros((1, 1))
        for column in range(self.dim):
            order = np.arange(self.frequencies + 1, dtype=np.float64)
            cosine, sine = cosine_and_sine(order * (points[:, column, np.newaxis] / self.period[column]))
            chosen = frequency[:, column]
            cosine, sine = cosine[:, np.abs(chosen)], sine[:, np.abs(chosen)] * np.sign(chosen)
            real, imaginary = real * cosine - imaginary * sine, real * sine + imaginary * cosine
        return real, imaginary

    def _reading(self, kernel: Kernel) -> SeriesReading:
        return SeriesReading(self, kernel)


def _ranges(low: NDArray[np.int64], high: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All integers from each low to its high, in turn: the place of the pair, and the integer."""
    length = high - low + 1
    place = np.repeat(np.arange(len(low)), length)
    return place, np.arange(len(place)) - np.repeat(np.cumsum(length) - length - low, length)


@dataclass(frozen=True)
class SeriesReading(BoxReading):
    """The records' coefficients times the kernel's own."""

    basis: FourierSeries
    kernel: Kernel

    def _inside(self, queries: Floats) -> NDArray[np.bool_]:
        """Where the series means the kernel sum; further out the sum is taken to be 0."""
        return np.asarray((np.abs(queries) <= 0.5 * self.basis.period).all(axis=1))

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Σ k̂·(coefficient/W)·wave, each pair twice for its mirror image: summed over one column after the
        other, since a wave is the product of those of the columns.
        """
        coefficients, orders = self._coefficients(table), 2 * int(self._highest[-1]) + 1
        numbers = 2 * (int((2 * self._highest + 1).sum()) + -(-len(coefficients) // orders))
        answers = np.empty(len(batch))
        for start, stop in blocks(len(batch), numbers):
            queries = queries_of(batch)[start:stop]
            part = contracted(coefficients, self._column_waves(queries)).real
            answers[start:stop] = np.where(self._inside(queries), part, 0.0)
        return answers

    def _coefficients(self, table: Table) -> Complexes:
        """c with an answer Re Σ c_m·e^{2πi·m·q}, for m from 0 to the highest order that is kept in the first
        column, and from its negative in the others, the last fastest; flat.
        """
        frequency, weight, kernel = self.basis.series
        pairs, highest = len(frequency), self._highest
        gain = 2.0 * kernel[1:] / weight[1:]
        flat = table.reshape(-1).astype(np.float64)
        dense = np.zeros((highest[0] + 1, *(2 * highest[1:] + 1)), np.complex128)
        place = (frequency[:, 0], *(frequency[:, 1:] + highest[1:]).T)
        constant = kernel[0] / weight[0] * flat[0]
        dense[place] = np.concatenate(([constant], gain * (flat[1:pairs] - 1j * flat[pairs:])))
        return dense.reshape(-1)

    @cached_property
    def _highest(self) -> NDArray[np.int64]:
        """The highest order that is kept in each column, shape (dim,)."""
        return np.asarray(np.abs(self.basis.series[0]).max(axis=0))

    def _column_waves(self, queries: Floats) -> list[Complexes]:
        """e^{2πi·m·q} in each column, for the same m."""
        found: list[Complexes] = []
        for column in range(self.basis.dim):
            order = np.arange(self._highest[column] + 1, dtype=np.float64)
            turns = queries[:, column, np.newaxis] / self.basis.period[column]
            cosine, sine = cosine_and_sine(order * turns)
            waves = cosine + 1j * sine
            found.append(waves if column == 0 else np.concatenate((waves[:, :0:-1].conj(), waves), axis=1))
        return found

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The expected squared error as for every box.

        Where a bound on it is far below the noise, as with many frequencies, the bound is returned.
        """
        if self.kernel != self.basis.kernel:
            return super().method_variance(table, batch, count, variance)
        errors: Floats = self._largest_error(queries_of(batch)) ** 2 * float(self._heaps(table).sum())
        large = errors > _NEGLIGIBLE * variance * self.noise_gain(batch)
        if large.any():
            some = Batch((batch.arrays[0][large],), int(large.sum()))
            errors[large] = super().method_variance(table, some, count, variance)
        return errors

    def _largest_error(self, queries: Floats) -> Floats:
        """How far the series is from the kernel, at most, for a record anywhere in the box.

        Coefficients are positive, so those left out add at most their sum, which is what is left of the
        periodic kernel at 0. The kernels of a column's other periods are at least ``gap`` away from a query.
        """
        width, period = gaussian_width(self.kernel, self.basis.name), self.basis.period / np.sqrt(2.0)
        far = np.exp(-np.square(period / width))
        gap = np.maximum(self.basis.period - np.abs(queries) - self.basis.half, 0.0)
        others = 2.0 * np.exp(-0.5 * np.square(gap / width)) / (1.0 - far)
        kernel = self.basis.series[2]
        left_out = float(np.prod(1.0 + 2.0 * far / (1.0 - far)) - kernel[0] - 2.0 * kernel[1:].sum())
        return np.asarray(np.prod(1.0 + others, axis=1) - 1.0 + max(left_out, 0.0))

    def noise_gain(self, batch: Batch) -> Floats:
        """The gain of the noise, which is the same at every query in the box, because cos² + sin² = 1."""
        _, weight, kernel = self.basis.series
        gain = (kernel[0] / weight[0]) ** 2 + ((2.0 * kernel[1:] / weight[1:]) ** 2).sum()
        return np.where(self._inside(queries_of(batch)), float(gain), 0.0)

    @cached_property
    def _lattice_waves(self) -> tuple[Floats, Floats]:
        return self.basis.waves(self._lattice[0])

    def _read_lattice(self, queries: Floats) -> Floats:
        kernel = self.basis.series[2].copy()
        kernel[1:] *= 2.0
        real, imaginary = self._lattice_waves
        at_query = self.basis.waves(queries)
        read = (at_query[0] * kernel) @ real.T + (at_query[1] * kernel) @ imaginary.T
        return np.asarray(np.where(self._inside(queries)[:, np.newaxis], read, 0.0))

    def total(self, table: Table) -> tuple[float, float]:
        """The constant coefficient counts the records."""
        first = float(self.basis.series[1][0])
        return float(table[0, 0]) / first, 1.0 / first**2


_PAIRS_AT_A_TIME = 1 << 21
_LATTICE_SLOPE, _LATTICE_CURVATURE = 2.0, 5.4
"""Moments of a place u in a cell, from −1/2 to 1/2, that is an edge or uniform with equal probability: E u²
over 1/12, and E u⁴ over 1/144.
"""


@register
@dataclass(frozen=True)
class Bins(Basis):
    """A box cut into equal cells; a record adds 1 to its cell, and is read as the middle of it.

    Parameters
    ----------
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
    in_pages: ClassVar[bool] = True

    bins: tuple[int, ...]
    bounds: Bounds
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.bins, tuple):
            raise UsageError("bins", "must be one integer for each column", remedy="give them all")
        object.__setattr__(self, "bins", CellGrid.of(self.bounds, self.bins, most_cells=MOST_CELLS).bins)
        check_columns(self.columns, self.bounds.dim)

    @cached_property
    def grid(self) -> CellGrid:
        """The cells."""
        return CellGrid(self.bounds, self.bins)

    @property
    def shape(self) -> tuple[int, int]:
        """One row of all cells."""
        return 1, self.grid.cells

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """One cell moves by 1 (add/remove), or two (replace)."""
        moved = 1 if relation is Relation.ADD_REMOVE else 2
        return Sensitivity(l1=moved, l2_squared=moved, largest=1)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` to each record's cell."""
        table[0] += step * self.grid.count(batch.arrays[0])

    def _reading(self, kernel: Kernel) -> BinsReading:
        return BinsReading(self, kernel)


@dataclass(frozen=True)
class BinsReading(LinearReading):
    """Every record at the middle of its cell."""

    basis: Bins
    kernel: Kernel

    def __post_init__(self) -> None:
        COLUMNS.check(self.kernel, "a histogram")
        check_columns_of(self.kernel, self.basis.bounds.dim)

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums of the cells' middles, weighted by the table."""
        weights = table.reshape(-1).astype(np.float64)
        total = np.zeros(len(batch))
        for cells, values in self._blocks(batch):
            total += weights[cells] @ values
        return total

    def noise_gain(self, batch: Batch) -> Floats:
        """Σ k² over the cells' middles."""
        total = np.zeros(len(batch))
        for _, values in self._blocks(batch):
            total += np.einsum("ij,ij->j", values, values)
        return total

    def noise_covariance(self, batch: Batch) -> Floats:
        """Σ k(c, q)·k(c, q') over the cells' middles c."""
        total = np.zeros((len(batch), len(batch)))
        for _, values in self._blocks(batch):
            total += values.T @ values
        return total

    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The squared error of reading records at the middles of their cells: `cell_errors`."""
        held = table.reshape(-1).astype(np.float64)
        queries, width = batch.arrays[0].astype(np.float64), self.basis.grid.width
        errors = np.empty(len(batch))
        for at in slices(len(batch), _PAIRS_AT_A_TIME // self.basis.grid.cells):
            part = Batch((queries[at],), len(queries[at]))
            errors[at] = cell_errors(self.kernel, self._centres, width, held, part)
        return errors

    def total(self, table: Table) -> tuple[float, float]:
        """All cells together hold the number of records."""
        return float(table.sum(dtype=np.int64)), float(table.size)

    @cached_property
    def _centres(self) -> Floats:
        return self.basis.grid.centres() - self.basis.bounds.centre

    def _blocks(self, batch: Batch) -> Iterator[tuple[slice, Floats]]:
        """Kernel values of some cells at all queries, block by block."""
        for cells in slices(self.basis.grid.cells, _PAIRS_AT_A_TIME // max(len(batch), 1)):
            some = self._centres[cells]
            yield cells, self.kernel._pairwise(Batch((some,), len(some)), batch)


def cell_errors(kernel: Kernel, centres: Floats, width: Floats, held: Floats, batch: Batch) -> Floats:
    """The expected squared error of kernel sums at prepared queries in which records stand at the middles of
    cells, shape (len(batch),).

    Records are taken to be at one place of their cell, uniform in it. Their mean error is the curvature of
    the kernel times a twenty-fourth of the squared width, and errors of all cells add up in it. About it they
    spread by the slope over √12 widths, independently between cells where each has repeated values of its
    own. Where a column's values are on a lattice whose steps are whole cells, such as ages in half years, the
    place is the same in all cells, and errors of slopes and of curvatures add up. Steps and bounds are mostly
    round numbers, so the place is then an edge with probability 1/2: slopes have twice the second moment of a
    uniform place, and curvatures 5.4 times the squared mean of one. The table does not show which is the
    case, so in each column the larger error counts. Slopes and curvatures are found at two places in each
    column, which have the moments of a uniform one.
    """
    middle = kernel._pairwise(Batch((centres,), len(centres)), batch)
    mean, spread = np.zeros(len(batch)), np.zeros(len(batch))
    for column in range(centres.shape[1]):
        moved = np.zeros(centres.shape[1])
        moved[column] = width[column] / math.sqrt(12.0)
        above = kernel._pairwise(Batch((centres + moved,), len(centres)), batch)
        below = kernel._pairwise(Batch((centres - moved,), len(centres)), batch)
        bent = held @ (0.5 * (above + below) - middle)
        slope = 0.5 * (above - below)
        mean += bent
        shared = _LATTICE_SLOPE * np.square(held @ slope) + (_LATTICE_CURVATURE - 1.0) * np.square(bent)
        spread += np.maximum(np.square(held) @ np.square(slope), shared)
    errors: Floats = np.square(mean) + spread
    return errors
