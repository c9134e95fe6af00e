"""The hash rows of the RACE sketch: every record adds 1 to one cell of every row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum.bases.base import Floats, Readings, Table, register
from hushsum.bases.race_theory import rows_for_laplace
from hushsum.errors import UsageError
from hushsum.files.container import canonical_json
from hushsum.kernels.base import Batch, Hasher, Kernel, kernel_as_json, kernel_from_json
from hushsum.kernels.columns import check_columns
from hushsum.kernels.parameters import positive_integer
from hushsum.privacy.relation import Relation
from hushsum.privacy.sensitivity import Sensitivity
from hushsum.records.bounds import Bounds

MAX_ROWS = 1 << 24
MAX_WIDTH = 1 << 30
MAX_CELLS = 1 << 34
MAX_NUMBERS = 1 << 32
"""Random numbers behind the hash functions: a file that asks for more is refused before any is made."""


@dataclass(frozen=True)
class HashRows:
    """R independent hash functions, each with a row of W cells; a record adds 1 to its cell of every row.

    Parameters
    ----------
    kernel : Kernel
        A hashable kernel; its hash functions collide for x and q with probability k(x, q).
    rows : int
        R. More rows answer more precisely, and take more noise under pure ε.
    width : int
        W. Hash values beyond W are folded into W cells by a pairwise independent hash. A kernel with fewer
        values than that gets only the cells it can use.
    seed : int
        Public. Equal seeds give equal hash functions on every machine.
    bounds : Bounds, optional
        Records are clipped to this box, which is declared and never learned from the data.
    columns : tuple of str, optional
        What the columns are called, in their order. Frames and tables are then read by name, arrays by
        position.
    scattered : bool
        Whether hash values are scattered before they are folded (:mod:`hushsum.kernels.rehash`). Rows of
        format version 1 are not, and err more; values that have a cell each are not either.

    Privacy
    -------
    One record present or absent moves exactly one cell of each row by 1: Δ1 = R, Δ2 = √R. One record
    replaced moves at most two cells of each row by 1: Δ1 = 2R, Δ2 = √(2R). A record's cells depend on
    that record alone, bit for bit.

    Notes
    -----
    Coleman and Shrivastava, *A one-pass distributed and private sketch for kernel sums*, CCS 2021,
    Algorithm 1.
    """

    name: ClassVar[str] = "hash-rows"

    kernel: Kernel
    rows: int
    width: int
    seed: int
    bounds: Bounds | None = None
    columns: tuple[str, ...] | None = None
    scattered: bool = True

    def __post_init__(self) -> None:
        if not self.kernel.hashable:
            self.kernel.hasher(rows=1, width=2, seed=0)
        rows = positive_integer("rows", self.rows, at_most=MAX_ROWS)
        width = positive_integer("width", self.width, at_most=MAX_WIDTH)
        if width < 2:
            raise UsageError(
                "width must be at least 2, got 1; with one cell every record looks alike, try 1000"
            )
        distinct = self.kernel.distinct_hashes()
        width = width if distinct is None else min(width, distinct)
        numbers = rows * getattr(self.kernel, "dim", 1) * getattr(self.kernel, "power", 1)
        if numbers * getattr(self.kernel, "bits", 1) > MAX_NUMBERS:
            raise UsageError(
                f"rows × columns × power must be at most {MAX_NUMBERS}, got more; use fewer rows"
            )
        if rows * width > MAX_CELLS:
            raise UsageError(f"rows × width must be at most {MAX_CELLS}, got {rows * width}; use fewer rows")
        if isinstance(self.seed, bool) or not hasattr(self.seed, "__index__"):
            raise UsageError(f"seed must be an integer, got {type(self.seed).__name__}; give one such as 7")
        check_columns(self.columns, getattr(self.kernel, "dim", 1))
        if self.bounds is not None and not self.kernel.bounded_columns:
            raise UsageError(f"the {self.kernel.name} kernel takes no bounds; leave them out")
        for field, value in (("rows", rows), ("width", width), ("seed", self.seed.__index__())):
            object.__setattr__(self, field, value)
        object.__setattr__(self, "scattered", self.scattered and self.fold_rate > 0.0)

    @property
    def format_version(self) -> int:
        """The first format version whose readers know these hash functions."""
        return 2 if self.scattered else 1

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, width)."""
        return self.rows, self.width

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over kernel, rows, width, seed, bounds and columns."""
        return hashlib.sha256(
            canonical_json({"name": self.name, "parameters": self.parameters()})
        ).hexdigest()

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """One cell a row moves by 1 (add/remove), or two (replace)."""
        moved = self.rows if relation is Relation.ADD_REMOVE else 2 * self.rows
        return Sensitivity(l1=moved, l2_squared=moved, largest=1)

    def parameters(self) -> dict[str, Any]:
        """The basis as JSON values."""
        scattered = {"scattered": True} if self.scattered else {}
        return {
            **scattered,
            "kernel": kernel_as_json(self.kernel),
            "rows": self.rows,
            "width": self.width,
            "seed": self.seed,
            "bounds": None if self.bounds is None else self.bounds.as_json(),
            "columns": None if self.columns is None else list(self.columns),
        }

    @classmethod
    def from_parameters(cls, data: dict[str, Any]) -> HashRows:
        """The basis that a file's header describes."""
        return cls(
            kernel=kernel_from_json(data["kernel"]),
            rows=data["rows"],
            width=data["width"],
            seed=data["seed"],
            bounds=None if data["bounds"] is None else Bounds.from_json(data["bounds"]),
            columns=None if data["columns"] is None else tuple(data["columns"]),
            scattered=_flag(data.get("scattered", False)),
        )

    def prepare(self, data: object) -> Batch:
        """Records, checked and clipped to the bounds."""
        return self.kernel.prepare(data, self.bounds, columns=self.columns)

    def prepare_queries(self, data: object) -> Batch:
        """Queries, checked; a query may lie outside the bounds."""
        return self.kernel.prepare(data, self.bounds, clip=False, columns=self.columns)

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` to each record's cell in every row."""
        self._hasher.count(*batch.arrays, table, step, threads)

    def prefix(self, rows: int) -> HashRows:
        """The first rows; row r is the same whatever the number of rows."""
        return self if rows == self.rows else replace(self, rows=rows)

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """Rows that balance Laplace noise, which grows with them, against hashing, which falls."""
        return rows_for_laplace(max(count, 1), epsilon / moves, self.rows)

    def cells(self, batch: Batch) -> NDArray[np.int32]:
        """The cell of each record in each row."""
        return self._hasher.cells(*batch.arrays, self.rows)

    def read(self, table: Table, batch: Batch, *, threads: int) -> Readings:
        """Mean and variance over rows of each query's cell (Algorithm 2, before normalisation)."""
        block = self._block
        mean, variance = self._hasher.read(*batch.arrays, table, block, threads)
        return Readings(mean, variance, -(-self.rows // block))

    def sums(self, table: Table, batch: Batch, *, count: float, scale: float, threads: int) -> Floats:
        """``scale`` times the kernel sums (Algorithm 2 with the fold removed)."""
        slope, shift = self._line(count, scale)
        return self._hasher.means(*batch.arrays, table, slope, shift, threads)

    def reader(self, table: Table, *, count: float, scale: float) -> Callable[[object], Floats | None]:
        """A native reader of plain arrays; of nothing where bounds move the origin or records are no rows."""
        make = getattr(self._hasher, "reader", None)
        if make is None or self.bounds is not None:
            return lambda queries: None
        reader: Callable[[object], Floats | None] = make(table, *self._line(count, scale))
        return reader

    def _line(self, count: float, scale: float) -> tuple[float, float]:
        """Slope and shift that take a mean cell to ``scale`` times the kernel sum."""
        slope = scale / (1.0 - self.fold_rate)
        return slope, -count * self.fold_rate * slope

    def unfold(self, mean: Floats, count: float) -> Floats:
        """Remove the fold: E[cell] = Σ k + (1 − k)/W, so f̂ = (mean − N̂/W)/(1 − 1/W)."""
        slope, shift = self._line(count, 1.0)
        return mean * slope + shift

    @cached_property
    def fold_rate(self) -> float:
        """1/W, or 0 where every hash value has its own cell."""
        distinct = self.kernel.distinct_hashes()
        return 1.0 / self.width if distinct is None or distinct > self.width else 0.0

    @cached_property
    def _block(self) -> int:
        return self.kernel.independent_rows()

    @cached_property
    def _hasher(self) -> Hasher:
        return self.kernel.hasher(rows=self.rows, width=self.width, seed=self.seed, scattered=self.scattered)


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise TypeError("scattered")
    return value


register(HashRows.name, HashRows.from_parameters)
