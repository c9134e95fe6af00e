"""What the bases on a declared box have in common: bounds, columns, a file, and no choice of rows."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Floats, Table
from hushsum.errors import UsageError
from hushsum.files.container import canonical_json
from hushsum.kernels.base import Batch, Kernel, kernel_as_json, kernel_from_json
from hushsum.kernels.columns import check_columns
from hushsum.kernels.gaussian import GaussianKernel
from hushsum.privacy.relation import Relation
from hushsum.privacy.sensitivity import Sensitivity
from hushsum.records.bounds import Bounds

MAX_COEFFICIENTS = 1 << 22
MAX_SCALE = 1 << 20
DEFAULT_SCALE = 1 << 16
"""Fixed-point steps of a coefficient of size 1: its rounding is far below any noise."""

_BLOCK_NUMBERS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class BoxBasis(ABC):
    """Coefficients of records in a declared box, in fixed point with ``scale`` steps to 1.

    Records are clipped to the box, so that polynomials and series of them are bounded.
    """

    name: ClassVar[str]

    kernel: Kernel
    bounds: Bounds
    columns: tuple[str, ...] | None = None
    scale: int = DEFAULT_SCALE

    def __post_init__(self) -> None:
        dim = self.dim
        check_columns(self.columns, dim)
        if self.bounds.dim != dim:
            raise UsageError(f"bounds must have one (low, high) for each of {dim} columns, got other ones")
        if not 2 <= self.scale <= MAX_SCALE or self.scale & (self.scale - 1):
            raise UsageError(
                f"scale must be a power of two up to {MAX_SCALE}, got {self.scale}; try {DEFAULT_SCALE}"
            )

    @property
    def dim(self) -> int:
        """The number of columns."""
        return int(getattr(self.kernel, "dim", 1))

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and cells a row of the table."""

    @abstractmethod
    def sensitivity(self, relation: Relation) -> Sensitivity:
        """How far one record moves the sum."""

    @abstractmethod
    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums at prepared queries, shape (len(batch),)."""

    @abstractmethod
    def noise_gain(self, batch: Batch) -> Floats:
        """The variance of an answer when every cell has noise of variance 1."""

    @abstractmethod
    def total(self, table: Table) -> tuple[float, float] | None:
        """The number of records as the table tells it, and its noise gain."""

    @abstractmethod
    def _choices(self) -> dict[str, Any]:
        """The fields beyond kernel, bounds, columns and scale, as JSON values."""

    @abstractmethod
    def _add(self, table: NDArray[np.int64], records: Floats, step: int) -> None:
        """Add a block of records, shape (n, dim), relative to the centre of the box."""

    @abstractmethod
    def _numbers_a_record(self) -> int:
        """How many numbers ``_add`` holds for one record."""

    @cached_property
    def half(self) -> Floats:
        """Half the width of the box in each column, shape (dim,)."""
        return self.bounds.half_width.astype(np.float64)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the name and all parameters."""
        return hashlib.sha256(
            canonical_json({"name": self.name, "parameters": self.parameters()})
        ).hexdigest()

    def parameters(self) -> dict[str, Any]:
        """The basis as JSON values."""
        return {
            "kernel": kernel_as_json(self.kernel),
            "bounds": self.bounds.as_json(),
            "columns": None if self.columns is None else list(self.columns),
            "scale": self.scale,
            **self._choices(),
        }

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> Self:
        """The basis that a file's header describes."""
        fields = dict(data)
        columns, bounds = fields.pop("columns"), fields.pop("bounds")
        choices: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
        }
        return cls(
            kernel=kernel_from_json(choices.pop("kernel")),
            bounds=Bounds.from_json(bounds),
            columns=None if columns is None else tuple(columns),
            **choices,
        )

    def prepare(self, data: object) -> Batch:
        """Records, checked and clipped to the bounds."""
        return self.kernel.prepare(data, self.bounds, columns=self.columns)

    def prepare_queries(self, data: object) -> Batch:
        """Queries, checked; a query may lie outside the bounds."""
        return self.kernel.prepare(data, self.bounds, clip=False, columns=self.columns)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's coefficients; elementwise in floats, summed in integers."""
        records = batch.arrays[0]
        for start, stop in blocks(len(batch), self._numbers_a_record()):
            self._add(table, records[start:stop].astype(np.float64), step)

    def prefix(self, rows: int) -> Self:
        """All rows: coefficients do not stand for each other."""
        if rows != self.shape[0]:
            raise UsageError(
                f"rows must be all {self.shape[0]} of a {self.name} table, got {rows}; leave rows out"
            )
        return self

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """All rows."""
        return self.shape[0]

    def with_kernel(self, kernel: Kernel) -> Self:
        """Refused: these coefficients are of one kernel."""
        raise UsageError(
            f"a {self.name} table is made for one kernel; release a grid, which is read with any kernel"
        )

    def _read_with(self, kernel: Kernel) -> Self:
        """The same coefficients of records, read with another kernel of as many columns."""
        if getattr(kernel, "dim", None) != self.dim:
            raise UsageError(f"the kernel must have {self.dim} columns as the table, got another number")
        return replace(self, kernel=kernel)

    def method_variance(self, table: Table, batch: Batch, sums: Floats, count: float) -> Floats:
        """The squared error of the approximation if all records lay at one place, averaged over places."""
        return np.asarray(max(count, 0.0) ** 2 * self._mean_square_error(queries_of(batch)))

    def _mean_square_error(self, queries: Floats) -> Floats:
        """Of the approximate kernel, over places in the box, at each query."""
        return np.zeros(len(queries))


def queries_of(batch: Batch) -> Floats:
    """Prepared rows in double precision, shape (n, dim), relative to the centre of the box."""
    rows: Floats = batch.arrays[0].astype(np.float64)
    return rows


def blocks(length: int, numbers_a_record: int) -> Iterator[tuple[int, int]]:
    """Ranges of records that need about a million numbers each."""
    step = max(1, _BLOCK_NUMBERS // max(1, numbers_a_record))
    for start in range(0, length, step):
        yield start, min(length, start + step)


def gaussian_width(kernel: Kernel, method: str) -> float:
    """The standard deviation of a Gaussian kernel; refuses others."""
    if not isinstance(kernel, GaussianKernel):
        raise UsageError(
            f"{method} needs the gaussian kernel, got {kernel.name}; use GaussianKernel, or hushsum.race"
        )
    return float(kernel.bandwidth / kernel.power**0.5)


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
            f"({what})^dim must be at most {MAX_COEFFICIENTS} coefficients, got more; "
            "use fewer of them, or hushsum.race, which works in any dimension"
        )
    return int(terms**dim)
