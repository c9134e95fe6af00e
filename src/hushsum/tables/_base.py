"""Counting and reading, the registered bases by name, and their JSON in the headers of files.

A `Basis` is a public, integer-valued vector of each record. Everything linear in Hushsum is one: a tally is
the sum of the vectors, so it is added to, merged and made private by code that depends on this module only. A
`Reading` defines how a noisy sum of vectors is read at a query, for one kernel. Some bases are counted for
one kernel; others, such as a grid, are read with any kernel that has the role their reading needs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import types
import typing
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats, RoleType
from hushsum.errors import FileRefused, UsageError, shown
from hushsum.files import canonical_json
from hushsum.kernels import Batch, Kernel, dense_batch, kernel_as_json, kernel_from_json
from hushsum.privacy import PERSON, RECORD, Relation, Sensitivity, UnitChange, checked_unit
from hushsum.records import Bounds, DeclaredColumn, column_from_json, columns_of, part_of

if TYPE_CHECKING:
    from hushsum.files import PackedTable

__all__ = [
    "Basis", "Cells", "LinearReading", "Reading", "RowAverages", "SampledReading", "Table", "all_bases",
    "basis_as_json", "basis_from_json", "counted_alone", "load_baselines", "probed_covariance",
    "reading_as_json", "reading_from_json", "register", "slices",
]  # fmt: skip


# The largest table whose coefficients are found cell by cell.
_MOST_CELLS: Final = 1 << 12

_PROBES: Final = 1 << 10
# What tables of integers have for 1, so that fractions are kept.
_UNIT: Final = 1 << 20


def probed_covariance(reading: LinearReading, batch: Batch) -> Floats:
    """Σ_j r_j(q)·r_j(q') for all pairs of queries, from answers of made-up tables.

    Coefficients are found cell by cell, or for a large table their products from 1024 random tables, which is
    exact up to 5 %.
    """
    shape = reading.basis.shape
    cells = shape[0] * shape[1]
    drawn = cells > _MOST_CELLS
    rng = np.random.default_rng(0)
    read = np.empty((_PROBES if drawn else cells, len(batch)))
    for i in range(len(read)):
        table = np.zeros(shape, np.int64)
        if drawn:
            table[:] = np.rint(rng.standard_normal(shape) * _UNIT)
        else:
            table.reshape(-1)[i] = _UNIT
        read[i] = reading.evaluate(table, batch, threads=1) / _UNIT
    return np.asarray(read.T @ read) / (_PROBES if drawn else 1.0)


def counted_alone(reading: LinearReading, records: Batch, queries: Batch) -> Floats:
    """What each record adds to the answer at each query: each is counted in a table of its own and read."""
    answers = np.empty((len(records), len(queries)))
    for i in range(len(records)):
        table = reading.basis.new_table()
        reading.basis.accumulate(table, part_of(records, i, i + 1), step=1, threads=1)
        answers[i] = reading.evaluate(table, queries, threads=1)
    return answers


Table = NDArray[np.int64] | NDArray[np.int32]
Cells: TypeAlias = "Table | PackedTable"
"""A noisy table as an array, or packed where it is large."""


@dataclass(slots=True, eq=False)
class RowAverages:
    """What the rows of a table say at each query, before the number of records is known.

    ``mean`` averages the rows' answers, and ``variance`` estimates the variance of that average from their
    spread (NaN where fewer than two independent blocks of rows exist). ``blocks`` is the number of
    independent blocks.
    """

    mean: Floats
    variance: Floats
    blocks: int


@runtime_checkable
class Basis(Protocol, metaclass=RoleType):
    """A public map from a record to a vector of integers.

    A basis is a frozen dataclass. Its fields are exactly what must agree for two tallies to merge: they make
    the fingerprint and the header of a file. Parameters that only affect reading are not fields of the basis.
    """

    name: ClassVar[str]
    constants: ClassVar[Mapping[str, int]] = types.MappingProxyType({})
    """Numbers of this version that a record's vector depends on; a file with others is refused."""

    fractional: ClassVar[bool] = False
    """Whether cells count in such small fractions of a record that their low digits hold noise alone: they
    are rounded in a release, by a step that adds a thousandth to the variance, so that files are small.
    """

    in_pages: ClassVar[bool] = False
    """Whether the reader for web pages answers it; ``src/browser/released_function.js`` names the same."""

    # Declared for type checkers only: at run time properties would be the defaults of dataclass fields.
    if TYPE_CHECKING:

        @property
        def bounds(self) -> Bounds | None:
            """The declared box that records are clipped to."""

        @property
        def columns(self) -> tuple[str, ...] | None:
            """What the columns are called, in their order."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The rows of the table, and the cells of a row."""

    @property
    def box(self) -> Bounds | None:
        """A declared box that holds every record that was counted; pictures show it by default."""
        return self.bounds

    @abstractmethod
    def sensitivity(self, relation: Relation) -> Sensitivity:
        """How far one record moves the sum, for the given neighbours."""

    def costly_sensitivity(self, relation: Relation) -> bool:
        """Whether `sensitivity` may take longer than reading a file of the table; a file's noise is then
        compared with its claim when the file is first used.
        """
        return False

    @abstractmethod
    def accumulate(self, table: Any, batch: Batch, *, step: int, threads: int) -> None:
        """Add ``step`` times each record's vector to a table that `new_table` made, in place."""

    @abstractmethod
    def _reading(self, kernel: Kernel) -> Reading:
        """How the table is read for a kernel; raises ``UsageError`` for one without the role it needs."""

    @property
    def units(self) -> tuple[str, ...]:
        """Whom a release may protect; the first one unless another is requested, or persons are counted."""
        return RECORD, PERSON

    @property
    def assumptions(self) -> Mapping[str, str]:
        """What a claim for a unit takes as public, by unit."""
        return {}

    def unit_change(self, unit: str, per_unit: int, relation: Relation) -> UnitChange:
        """How far one unit moves the sum and the number of records.

        Raises
        ------
        ClaimError
            for a unit that these records do not have.
        """
        checked_unit(unit, self.units)
        moved = self.sensitivity(relation)
        if unit != PERSON:
            return UnitChange.of_records(moved, None, relation)
        if relation is Relation.REPLACE:
            # A person with a records may become one with b records, both at most per_unit: the smaller number
            # of records is replaced, and the others are added or removed, which may move the sum further.
            moved = moved.at_least(self.sensitivity(Relation.ADD_REMOVE))
        return UnitChange.of_records(moved, per_unit, relation)

    def new_table(self) -> Any:
        """Exact sums of no records: int64 zeros, or another form that :meth:`accumulate` takes."""
        return np.zeros(self.shape, np.int64)

    def counted_kernel(self) -> Kernel | None:
        """The kernel that records are counted for, by default the field ``kernel``; None where the table is
        read with several.
        """
        counted: Kernel | None = getattr(self, "kernel", None)
        return counted

    def reading(self, kernel: Kernel | None = None) -> Reading:
        """How the table is read for a kernel; by default the one that it is counted for.

        Raises
        ------
        UsageError
            where the table is counted for another kernel, or the kernel does not have the role.
        """
        own = self.counted_kernel()
        chosen = own if kernel is None else kernel
        if chosen is None:
            rule = f"must be given, because a {self.name} table serves several"
            raise UsageError("kernel", rule, got="none", remedy="give the one to read")
        if own is not None and chosen != own:
            raise UsageError(
                "kernel",
                f"must be the one that a {self.name} table was counted for",
                got="another",
                remedy="release that too, or a grid, which is read with any kernel of its columns",
            )
        return self._reading(chosen)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the name and the fields: everything that must agree for two tallies to merge."""
        return hashlib.sha256(canonical_json(self.description())).hexdigest()

    def description(self) -> dict[str, Any]:
        """The name and the parameters, as JSON values."""
        return {"name": self.name, "parameters": self.parameters()}

    def parameters(self) -> dict[str, Any]:
        """The fields and constants, as JSON values."""
        fields = dataclasses.fields(cast("Any", self))
        return {**self.constants, **{each.name: _encoded(getattr(self, each.name)) for each in fields}}

    @classmethod
    def from_parameters(cls, data: Mapping[str, Any]) -> Self:
        """The basis that a file's header describes.

        Raises
        ------
        ValueError
            if a field is missing, unknown or of another type.
        """
        names = {each.name for each in dataclasses.fields(cast("Any", cls))}
        if set(data) != names | set(cls.constants):
            raise ValueError("fields")
        for constant, value in cls.constants.items():
            if data[constant] != value or type(data[constant]) is not int:
                raise ValueError(constant)
        hints = typing.get_type_hints(cls)
        return cls(**{name: _decoded(hints[name], data[name]) for name in names})

    def prepare(self, data: object) -> Batch:
        """Records, checked, clipped to the bounds and in native form; raises ``DataRefused``."""
        return self._prepare(data, clip=True)

    def prepare_queries(self, data: object) -> Batch:
        """Queries, checked; a query may lie outside the bounds."""
        return self._prepare(data, clip=False)

    def declared_ranges(self) -> tuple[Bounds | None, tuple[str, ...] | None]:
        """The declared ranges of the columns of numbers, and their names; public."""
        return self.bounds, self.columns

    def declared_numbers(self, data: object) -> Floats:
        """The columns of numbers of records as they came, in the order of `declared_ranges`; secret."""
        kernel = self.counted_kernel()
        dim = self.bounds.dim if self.bounds is not None else kernel.dim if kernel is not None else None
        assert dim is not None
        return columns_of(data, dim, self.columns)

    def _prepare(self, data: object, *, clip: bool) -> Batch:
        kernel = self.counted_kernel()
        if kernel is not None:
            return kernel.prepare(data, self.bounds, clip=clip, columns=self.columns)
        assert self.bounds is not None
        return dense_batch(data, self.bounds.dim, self.bounds, clip=clip, columns=self.columns)

    def prefix(self, rows: int) -> Self:
        """The basis of the first rows alone; refused where rows do not stand for each other."""
        if rows != self.shape[0]:
            raise UsageError("rows", f"must be left out: a {self.name} table is released whole")
        return self

    def rows_for(self, count: int, epsilon: float, moves: int) -> int:
        """How many rows a pure-ε release should publish, from the noisy count; by default all.

        ``moves`` is how many records' vectors one unit may move: 2 for a replaced record, times the cap.
        """
        return self.shape[0]


@runtime_checkable
class Reading(Protocol, metaclass=RoleType):
    """How a noisy table is read for one kernel."""

    if TYPE_CHECKING:

        @property
        def basis(self) -> Basis:
            """What the table counts."""

        @property
        def kernel(self) -> Kernel:
            """The similarity whose sums are answered."""

    def constants_as_json(self) -> Any:
        """Numbers that a release computes once and stores in its file, so that no reader computes them again;
        None if the basis needs no such numbers.
        """
        return None

    def with_constants(self, data: Any) -> Reading:
        """The reading with the stored constants of a file; ValueError for what could not have been stored."""
        raise ValueError("constants")

    @abstractmethod
    def noise_covariance(self, batch: Batch) -> Floats:
        """The covariances of answers when every cell has noise of variance 1, shape (len(batch), len(batch)),
        for a number of records that is known.
        """

    @abstractmethod
    def record_answers(self, records: Batch, queries: Batch) -> Floats:
        """What each record adds to the answer at each query, shape (len(records), len(queries)): the kernel
        with the error of the basis.
        """


@runtime_checkable
class LinearReading(Reading, Protocol):
    """Answers that are linear in the whole table: f̂(q) = Σ_j r_j(q)·table_j, with public r."""

    @abstractmethod
    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """Kernel sums at prepared queries, shape (len(batch),)."""

    @abstractmethod
    def noise_gain(self, batch: Batch) -> Floats:
        """Σ_j r_j(q)²: the variance of an answer when every cell has noise of variance 1."""

    def noise_covariance(self, batch: Batch) -> Floats:
        """Σ_j r_j(q)·r_j(q') for all pairs of queries: `probed_covariance` unless there is a formula."""
        return probed_covariance(self, batch)

    def record_answers(self, records: Batch, queries: Batch) -> Floats:
        """By default each record is counted alone and read."""
        return counted_alone(self, records, queries)

    def total(self, table: Table) -> tuple[float, float] | None:
        """The number of records as the table holds it, and its noise gain; None, the default, where it does
        not.
        """
        return None

    def total_covariance(self, batch: Batch) -> Floats:
        """Σ_j r_j(q)·c_j, where the table's number of records is Σ_j c_j·table_j: how the noise of an answer
        goes with that of the number. Zeros, the default, make intervals of quotients wider.
        """
        return np.zeros(len(batch))

    @abstractmethod
    def method_variance(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """The expected squared error of the method itself, without noise; zeros where the method is exact.

        The cells have noise of the given variance. There is no default: standard errors without this part
        would state that noise is the only error.

        It depends on where the records are, and is estimated from the released table: as if the records in
        a part of the box that the table resolves were all at one place, a random one. Smooth data err less.
        """

    def bias_bound(self, table: Table, batch: Batch, count: float, variance: float) -> Floats:
        """How far the method itself may be off, in either direction, for any arrangement of the records;
        zeros where no such bound is known. The cells have noise of the given variance.
        """
        return np.zeros(len(batch))


@runtime_checkable
class SampledReading(LinearReading, Protocol):
    """Rows that are random draws: each estimates the kernel sum, so that their spread shows the error."""

    def evaluate(self, table: Table, batch: Batch, *, threads: int) -> Floats:
        """The mean of the rows' answers."""
        return self.spread(table, batch, threads=threads).mean

    @abstractmethod
    def spread(self, table: Table, batch: Batch, *, threads: int) -> RowAverages:
        """Kernel sums, the variance of each estimated from independent blocks of rows with the noise that is
        in them, and the number of blocks.
        """

    @abstractmethod
    def rows(self, table: Table, batch: Batch) -> tuple[Floats, int]:
        """What each row says, shape (len(batch), rows), and how many consecutive rows are a block."""


def check_integer(name: str, value: object, least: int, most: int, remedy: str | None = None) -> None:
    """Refuse a field of a basis that is no integer in its range."""
    if type(value) is not int or not least <= value <= most:
        raise UsageError(name, f"must be an integer from {least} to {most}", got=shown(value), remedy=remedy)


def slices(length: int, step: int) -> Iterator[slice]:
    """Consecutive ranges of ``step`` places; the last one may reach beyond the length."""
    return (slice(start, start + max(1, step)) for start in range(0, length, max(1, step)))


def _encoded(value: object) -> Any:
    if isinstance(value, tuple):
        return [_encoded(each) for each in value]
    if isinstance(value, Kernel):
        return kernel_as_json(value)
    if isinstance(value, _AsJson):
        return value.as_json()
    return value


def _decoded(hint: Any, value: Any) -> Any:
    """A JSON value as the type of a field; raises for another one."""
    if hint == DeclaredColumn:
        return column_from_json(value)
    choices = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and types.NoneType in choices:
        return None
    (kind,) = (each for each in choices if each is not types.NoneType)
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise ValueError("list")
        return tuple(_decoded(typing.get_args(kind)[0], each) for each in value)
    if Kernel in kind.__mro__:
        return kernel_from_json(value)
    if hasattr(kind, "from_json"):
        return kind.from_json(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ValueError(kind.__name__)
    return value


@runtime_checkable
class _AsJson(Protocol):
    def as_json(self) -> Any: ...


B = TypeVar("B", bound=type[Basis])
_BASES: dict[str, type[Basis]] = {}


def register(basis: B) -> B:
    """Make a basis known by its name, for files."""
    _BASES[basis.name] = basis
    return basis


def load_baselines() -> None:
    """Import the published methods that stand apart: they register their bases, methods, files and audits."""
    importlib.import_module("hushsum.baselines")


def all_bases() -> list[type[Basis]]:
    """The registered bases, in the order of their names."""
    load_baselines()
    return [_BASES[name] for name in sorted(_BASES)]


def basis_as_json(basis: Basis) -> dict[str, Any]:
    """A basis for a file's header."""
    return basis.description()


def basis_from_json(data: dict[str, Any]) -> Basis:
    """The basis that a file's header describes."""
    name = data.get("name")
    if name not in _BASES:
        load_baselines()
    if name not in _BASES:
        raise FileRefused(
            f"the file uses the basis {name!r}, which this version of Hushsum does not have",
            remedy="install a later one",
        )
    basis = _BASES[name].from_parameters(data["parameters"])
    if canonical_json(basis.parameters()) != canonical_json(data["parameters"]):
        raise ValueError("a basis has one description")
    kernel = basis.counted_kernel()
    if kernel is not None and basis.bounds is not None and basis.bounds.dim != kernel.dim:
        raise ValueError("bounds of another number of columns")
    return basis


def reading_as_json(reading: Reading) -> dict[str, Any]:
    """``basis`` and ``kernel`` of a file's header; no kernel where the basis is counted for one."""
    counted = reading.basis.counted_kernel() is not None
    return {
        "basis": basis_as_json(reading.basis),
        "kernel": None if counted else kernel_as_json(reading.kernel),
    }


def reading_from_json(header: Mapping[str, Any]) -> Reading:
    """The reading that a file's header describes."""
    kernel = header["kernel"]
    return basis_from_json(header["basis"]).reading(None if kernel is None else kernel_from_json(kernel))
