"""The protocol of a basis: a public, integer-valued vector of each record.

Everything linear in Hushsum is one of these: a tally is the sum of the vectors, so it is added to, merged,
made private and read by code that knows only this page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import FileRefused
from hushsum.files.container import canonical_json
from hushsum.kernels.base import Batch, Kernel
from hushsum.privacy.relation import Relation
from hushsum.privacy.sensitivity import Sensitivity

Floats = NDArray[np.float64]
Table = NDArray[np.int64] | NDArray[np.int32]


@dataclass(slots=True, eq=False)
class Readings:
    """What a table says at each query, before the number of records is known.

    ``mean`` averages the rows' cells, and ``variance`` estimates the variance of that average from their
    spread (NaN where fewer than two independent blocks of rows exist). ``blocks`` is the number of
    independent blocks.
    """

    mean: Floats
    variance: Floats
    blocks: int


@runtime_checkable
class Basis(Protocol):
    """A public map from a record to a vector of integers, and back from a noisy sum of vectors to answers."""

    name: ClassVar[str]

    @property
    def kernel(self) -> Kernel:
        """The similarity whose sums the table answers."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and cells a row of the table."""

    @property
    def fingerprint(self) -> str:
        """A digest of everything that must agree for two tallies to merge."""

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """How far one record moves the sum, for the given neighbours."""

    def parameters(self) -> dict[str, Any]:
        """The basis as JSON values."""

    def prepare(self, data: object) -> Batch:
        """Check records and bring them into native form; raises ``DataRefused``."""

    def prepare_queries(self, data: object) -> Batch:
        """Check queries; bounds that clip records do not clip queries."""

    def accumulate(self, table: NDArray[np.int64], batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's vector to the table, in place."""

    def prefix(self, rows: int) -> Self:
        """The basis of the first rows alone; refused where rows are not interchangeable."""

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """How many rows a pure-ε release should publish, from the paid noisy count.

        ``moves`` is how many records' vectors one unit may move: 2 for a replaced record, times the cap.
        """


@runtime_checkable
class RowBasis(Basis, Protocol):
    """Rows that each estimate the same kernel sum by the one cell in which a query falls."""

    def cells(self, batch: Batch) -> NDArray[np.int32]:
        """The cell of each record in each row, shape (len(batch), rows)."""

    def read(self, table: Table, batch: Batch, *, threads: int) -> Readings:
        """The table's answers at prepared queries."""

    def sums(self, table: Table, batch: Batch, *, count: float, scale: float, threads: int) -> Floats:
        """``scale`` times the kernel sums at prepared queries: read and unfold in one step."""

    def reader(self, table: Table, *, count: float, scale: float) -> Callable[[object], Floats | None]:
        """The same for plain arrays without ceremony; None for anything that needs checking or converting."""

    def unfold(self, mean: Floats, count: float) -> Floats:
        """Kernel sums from mean cells: removes what other records add by sharing a cell."""

    @property
    def fold_rate(self) -> float:
        """The chance that two different hash values share a cell; 0 where every value has its own."""


@runtime_checkable
class LinearBasis(Basis, Protocol):
    """Answers are linear in the whole table: f̂(q) = Σ_j r_j(q)·table_j, with public r."""

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums at prepared queries, shape (len(batch),)."""

    def noise_gain(self, batch: Batch) -> Floats:
        """Σ_j r_j(q)²: the variance of an answer when every cell has noise of variance 1."""

    def method_variance(self, table: Table, batch: Batch, sums: Floats, count: float) -> Floats:
        """The expected squared error of the method itself, were there no noise; zeros where it is exact."""

    def total(self, table: Table) -> tuple[float, float] | None:
        """The number of records as the table tells it, and its noise gain; None where it tells nothing."""

    def with_kernel(self, kernel: Kernel) -> Self:
        """The same table, read for another kernel; ``UsageError`` where the table is made for one."""


@runtime_checkable
class SampledBasis(LinearBasis, Protocol):
    """Rows that are random draws: each estimates the kernel sum, so that their spread tells the error."""

    def spread(self, table: Table, batch: Batch) -> Readings:
        """Kernel sums, the variance of each estimated from independent blocks of rows with the noise that is
        in them, and the number of blocks.
        """


Reader = Callable[[dict[str, Any]], Basis]
_BASES: dict[str, Reader] = {}


def register(name: str, reader: Reader) -> None:
    """Make a basis known by its name, for files."""
    _BASES[name] = reader


def basis_as_json(basis: Basis) -> dict[str, Any]:
    """A basis for a file's header."""
    return {"name": basis.name, "parameters": basis.parameters()}


def format_version(basis: Basis) -> int:
    """The first format version of files whose readers know this basis."""
    version: int = getattr(basis, "format_version", 1)
    return version


def basis_from_json(data: dict[str, Any]) -> Basis:
    """The basis that a file's header describes."""
    name = data.get("name")
    if name not in _BASES:
        raise FileRefused(
            f"the file uses the basis {name!r}, which this Hushsum does not know; install a later one"
        )
    basis = _BASES[name](data["parameters"])
    if canonical_json(basis.parameters()) != canonical_json(data["parameters"]):
        raise ValueError("a basis has one description")
    bounds, dim = getattr(basis, "bounds", None), getattr(basis.kernel, "dim", None)
    if bounds is not None and dim is not None and bounds.dim != dim:
        raise ValueError("bounds of another number of columns")
    return basis
