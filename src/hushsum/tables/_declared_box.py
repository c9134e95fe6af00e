"""What tables of coefficients in a declared box have in common: bounds, fixed point, portable arithmetic.

What a record adds to a tally must depend on that record alone, bit for bit: not on its place in a batch, the
length of a vector register or the library at hand. Addition, multiplication and rounding are the same
everywhere; a library's ``cos`` and ``exp`` are not, so cosine, sine and exponential are made of these alone.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import PerSurface, UsageError
from hushsum.kernels import GAUSSIAN, Batch, ColumnKernel, GaussianProfileKernel, Kernel, check_columns
from hushsum.privacy import Sensitivity
from hushsum.records import Bounds, columns_in_words
from hushsum.tables._base import Basis, LinearReading, Table

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
_LEAST_SHARED = 0.1
"""Of a lattice much wider than the kernel, whose points cannot find every heap."""

HEAPED_SHARE = 0.4
"""What counts as having the very value of a query, of the records that make up its kernel sum: the median
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
            raise UsageError(
                "bounds", f"must have one (low, high) for each of {kernel.dim} columns", got=f"{self.dim}"
            )
        if not 2 <= self.scale <= MAX_SCALE or self.scale & (self.scale - 1):
            raise UsageError(
                "scale",
                f"must be a power of two up to {MAX_SCALE}",
                got=f"{self.scale}",
                remedy=f"try {DEFAULT_SCALE}",
            )

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
        """The squared error of the approximation if records are in heaps: on a lattice of half a bandwidth,
        or of more where that would have more than 2048 points, as many at each point as the released function
        finds around it.

        A heap of n records reads n·k at the points around it. So the squares of the readings, divided by the
        sum of k² over a lattice, have n² for their sum.
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


def check_columns_of(kernel: Kernel, basis: BoxBasis) -> None:
    """Refuse to read a table with a kernel of another number of columns."""
    if kernel.dim != basis.dim:
        raise UsageError(
            "kernel",
            f"must have {columns_in_words(basis.dim)}, as the table",
            got=f"{kernel.dim}",
            remedy="make one with that dim",
        )


def larger(one: Sensitivity, other: Sensitivity) -> Sensitivity:
    """Bounds that cover both: a person replaced may have had fewer records, so that some of theirs are
    exchanged and some only added or removed.
    """
    return Sensitivity(
        max(one.l1, other.l1), max(one.l2_squared, other.l2_squared), max(one.largest, other.largest)
    )


def check_power(what: str, terms: int, dim: int) -> int:
    """``terms`` to the power ``dim``; refuses a tensor beyond reach, from public parameters alone."""
    if (terms > 1 and dim > 64) or terms**dim > MAX_COEFFICIENTS:
        raise UsageError(
            f"({what})^dim must be at most {MAX_COEFFICIENTS} coefficients",
            got="more",
            remedy=("use fewer of them, or ", RACE, ", which works in any dimension"),
        )
    return int(terms**dim)
