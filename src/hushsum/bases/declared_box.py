"""What the bases on a declared box have in common: bounds, columns, fixed point, and no choice of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.base import Basis, LinearReading, Table
from hushsum.errors import PerSurface, UsageError
from hushsum.kernels.base import GAUSSIAN, Batch, GaussianProfileKernel, Kernel
from hushsum.kernels.parameters import check_columns
from hushsum.privacy.calibration import Sensitivity
from hushsum.records.bounds import Bounds

MAX_COEFFICIENTS = 1 << 22
RACE: Final = PerSurface("hushsum.race", "the race method", "the race method")
"""The basis that any number of columns has, as each surface calls it."""
MAX_SCALE = 1 << 20
DEFAULT_SCALE = 1 << 16
"""Fixed-point steps of a coefficient of size 1: its rounding is far below any noise."""

_BLOCK_NUMBERS = 1 << 20


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
                parameter="bounds",
                rule=f"must have one (low, high) for each of {kernel.dim} columns",
                got=f"{self.dim}",
                remedy="give all",
            )
        if not 2 <= self.scale <= MAX_SCALE or self.scale & (self.scale - 1):
            raise UsageError(
                parameter="scale",
                rule=f"must be a power of two up to {MAX_SCALE}",
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

    def method_variance(self, table: Table, batch: Batch, sums: Floats, count: float) -> Floats:
        """The squared error of the approximation if all records lay at one place, averaged over places."""
        return np.asarray(max(count, 0.0) ** 2 * self._mean_square_error(queries_of(batch)))

    @abstractmethod
    def _mean_square_error(self, queries: Floats) -> Floats:
        """Of the approximate kernel, over places in the box, at each query."""


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
            parameter="kernel",
            rule=f"must have {basis.dim} columns, as the table",
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
            rule=f"({what})^dim must be at most {MAX_COEFFICIENTS} coefficients",
            got="more",
            remedy=("use fewer of them, or ", RACE, ", which works in any dimension"),
        )
    return int(terms**dim)
