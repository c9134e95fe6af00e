"""Hushsum's hot loops."""

from collections.abc import Callable, Sequence
from typing import overload

import numpy
import numpy.typing


def clone() -> str:
    """The instruction set the hot loops run with: baseline, v3 or v4."""

class CounterTable:
    """
    Integer counters, zero at first: one byte per cell, and more for cells beyond 255.
    """

    def __init__(self, rows: int, width: int) -> None: ...

    @property
    def shape(self) -> tuple[int, int]: ...

    def read_rows(self, first: int, values: numpy.typing.NDArray[numpy.int64], threads: int) -> None:
        """
        Fill values, int64 of shape (rows, width), with the rows from `first` on.
        """

    def add_rows(self, first: int, values: numpy.typing.NDArray[numpy.int64], threads: int) -> None:
        """Add values, int64 of shape (rows, width), to the rows from `first` on."""

    def __iadd__(self, other: CounterTable) -> CounterTable:
        """Add another table's counters to these."""

class PackedTable:
    """
    Integers of a fixed number of bits, read one by one: (base + code) * unit, and a sorted list
    of cells with other values. `check` is called with the number of each page of data before
    the page is first used.
    """

    def __init__(self, data: numpy.typing.NDArray[numpy.uint8], rows: int, width: int, bits: int, base: int, unit: int, exception_cells: numpy.typing.NDArray[numpy.int64], exception_values: numpy.typing.NDArray[numpy.int64], check: Callable[[int], None] | None = None) -> None: ...

    def read_cells(self, first: int, values: numpy.typing.NDArray[numpy.int64], threads: int) -> None:
        """Fill values with the cells from number `first` on, row after row."""

    def take(self, cells: numpy.typing.NDArray[numpy.int32]) -> numpy.typing.NDArray[numpy.int64]:
        """
        The value of cell cells[j, row] of every row, int64 of shape (records, rows).
        """

PACKED_PAGE: int = 4096

MOST_PACKED_BITS: int = 56

def pack_cells(values: numpy.typing.NDArray[numpy.int64], first: int, data: numpy.typing.NDArray[numpy.uint8], rows: int, width: int, bits: int, base: int, unit: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], int]:
    """
    Write the codes of values, cells from number `first` on, into the zeroed data of a PackedTable; returns
    the cells and values of the exceptions, and the sum of all values.
    """

class ProjectionHasher:
    """
    Floors or signs of dense random projections; cells[r] hashes the p words of row r into the width.

    Each projection is the float32 chain acc = fma(weights[r, i, k], x[k], acc) over k = 0, 1, ... from
    offsets[r, i], so a record's cells depend on that record alone, bit for bit.
    """

    def __init__(self, weights: numpy.typing.NDArray[numpy.float32], offsets: numpy.typing.NDArray[numpy.float32], multipliers: numpy.typing.NDArray[numpy.uint64], addends: numpy.typing.NDArray[numpy.uint64], width: int, signs: bool, fold: bool, scattered: bool = False) -> None: ...

    @overload
    def count(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int64], step: int, threads: int) -> None:
        """
        Add step (+1 or -1) to the cell of every record in every row of the int64 table; threads share the rows.
        """

    @overload
    def count(self, records: numpy.typing.NDArray[numpy.float32], table: CounterTable, step: int, threads: int) -> None:
        """The same for a table of bytes."""

    def cells(self, records: numpy.typing.NDArray[numpy.float32], rows: int) -> numpy.typing.NDArray[numpy.int32]:
        """
        The cell of every record in the first rows, as int32 of shape (records, rows).
        """

    @overload
    def read(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], block: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """
        Mean over the rows of an int32 or int64 table of each query's cell, and the estimated variance of that mean
        from blocks of consecutive rows (NaN with fewer than two blocks).
        """

    @overload
    def read(self, records: numpy.typing.NDArray[numpy.float32], table: PackedTable, block: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """The same for a packed table."""

    @overload
    def means(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], scale: float, shift: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """scale times that mean plus shift, for those who need no variance."""

    @overload
    def means(self, records: numpy.typing.NDArray[numpy.float32], table: PackedTable, scale: float, shift: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """The same for a packed table."""

    @property
    def rows(self) -> int: ...

    @property
    def width(self) -> int: ...

    def reader(self, table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64] | PackedTable, scale: float, shift: float) -> ProjectionReader:
        """A reader of this table that answers scale times the mean plus shift."""

    @property
    def dim(self) -> int: ...

class ProjectionReader:
    """A hasher, a table, a scale and a shift, for single queries."""

    def __call__(self, queries: object) -> numpy.typing.NDArray[numpy.float64] | None:
        """
        scale times the mean over rows plus shift, or None where queries need checking or converting first.
        """

class StructuredHasher:
    """
    Floors or signs of projections from three Hadamard-sign rounds; a block of rows has its own signs.
    """

    def __init__(self, signs: numpy.typing.NDArray[numpy.int8], dim: int, rows: int, power: int, scale: float, offsets: numpy.typing.NDArray[numpy.float32], multipliers: numpy.typing.NDArray[numpy.uint64], addends: numpy.typing.NDArray[numpy.uint64], width: int, sign_mode: bool, fold: bool, block_rows: int, scattered: bool = False) -> None: ...

    @overload
    def count(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int64], step: int, threads: int) -> None:
        """
        Add step (+1 or -1) to the cell of every record in every row of the int64 table; threads share the rows.
        """

    @overload
    def count(self, records: numpy.typing.NDArray[numpy.float32], table: CounterTable, step: int, threads: int) -> None:
        """The same for a table of bytes."""

    def cells(self, records: numpy.typing.NDArray[numpy.float32], rows: int) -> numpy.typing.NDArray[numpy.int32]:
        """
        The cell of every record in the first rows, as int32 of shape (records, rows).
        """

    @overload
    def read(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], block: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """
        Mean over the rows of an int32 or int64 table of each query's cell, and the estimated variance of that mean
        from blocks of consecutive rows (NaN with fewer than two blocks).
        """

    @overload
    def read(self, records: numpy.typing.NDArray[numpy.float32], table: PackedTable, block: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """The same for a packed table."""

    @overload
    def means(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], scale: float, shift: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """scale times that mean plus shift, for those who need no variance."""

    @overload
    def means(self, records: numpy.typing.NDArray[numpy.float32], table: PackedTable, scale: float, shift: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """The same for a packed table."""

    @property
    def rows(self) -> int: ...

    @property
    def width(self) -> int: ...

    def reader(self, table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64] | PackedTable, scale: float, shift: float) -> StructuredReader:
        """A reader of this table that answers scale times the mean plus shift."""

    @property
    def dim(self) -> int: ...

class StructuredReader:
    """A hasher, a table, a scale and a shift, for single queries."""

    def __call__(self, queries: object) -> numpy.typing.NDArray[numpy.float64] | None:
        """
        scale times the mean over rows plus shift, or None where queries need checking or converting first.
        """

class CodeHasher:
    """Sampled coordinates of int32 code vectors."""

    def __init__(self, columns: numpy.typing.NDArray[numpy.int32], multipliers: numpy.typing.NDArray[numpy.uint64], addends: numpy.typing.NDArray[numpy.uint64], width: int, scattered: bool = False) -> None: ...

    @overload
    def count(self, records: numpy.typing.NDArray[numpy.int32], table: numpy.typing.NDArray[numpy.int64], step: int, threads: int) -> None:
        """
        Add step (+1 or -1) to the cell of every record in every row of the int64 table; threads share the rows.
        """

    @overload
    def count(self, records: numpy.typing.NDArray[numpy.int32], table: CounterTable, step: int, threads: int) -> None:
        """The same for a table of bytes."""

    def cells(self, records: numpy.typing.NDArray[numpy.int32], rows: int) -> numpy.typing.NDArray[numpy.int32]:
        """
        The cell of every record in the first rows, as int32 of shape (records, rows).
        """

    @overload
    def read(self, records: numpy.typing.NDArray[numpy.int32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], block: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """
        Mean over the rows of an int32 or int64 table of each query's cell, and the estimated variance of that mean
        from blocks of consecutive rows (NaN with fewer than two blocks).
        """

    @overload
    def read(self, records: numpy.typing.NDArray[numpy.int32], table: PackedTable, block: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """The same for a packed table."""

    @overload
    def means(self, records: numpy.typing.NDArray[numpy.int32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], scale: float, shift: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """scale times that mean plus shift, for those who need no variance."""

    @overload
    def means(self, records: numpy.typing.NDArray[numpy.int32], table: PackedTable, scale: float, shift: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """The same for a packed table."""

    @property
    def rows(self) -> int: ...

    @property
    def width(self) -> int: ...

class MinHasher:
    """
    Min-wise hashes of sets of integers; set j is values[indptr[j]:indptr[j + 1]].
    """

    def __init__(self, mixers: numpy.typing.NDArray[numpy.uint32], shifts: numpy.typing.NDArray[numpy.uint32], salt: int, multipliers: numpy.typing.NDArray[numpy.uint64], addends: numpy.typing.NDArray[numpy.uint64], width: int, scattered: bool = False) -> None: ...

    @overload
    def count(self, values: numpy.typing.NDArray[numpy.int64], indptr: numpy.typing.NDArray[numpy.int64], table: numpy.typing.NDArray[numpy.int64], step: int, threads: int) -> None:
        """
        Add step (+1 or -1) to the cell of every record in every row of the int64 table; threads share the rows.
        """

    @overload
    def count(self, values: numpy.typing.NDArray[numpy.int64], indptr: numpy.typing.NDArray[numpy.int64], table: CounterTable, step: int, threads: int) -> None:
        """The same for a table of bytes."""

    def cells(self, values: numpy.typing.NDArray[numpy.int64], indptr: numpy.typing.NDArray[numpy.int64], rows: int) -> numpy.typing.NDArray[numpy.int32]:
        """
        The cell of every record in the first rows, as int32 of shape (records, rows).
        """

    @overload
    def read(self, values: numpy.typing.NDArray[numpy.int64], indptr: numpy.typing.NDArray[numpy.int64], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], block: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """
        Mean over the rows of an int32 or int64 table of each query's cell, and the estimated variance of that mean
        from blocks of consecutive rows (NaN with fewer than two blocks).
        """

    @overload
    def read(self, values: numpy.typing.NDArray[numpy.int64], indptr: numpy.typing.NDArray[numpy.int64], table: PackedTable, block: int, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """The same for a packed table."""

    @overload
    def means(self, values: numpy.typing.NDArray[numpy.int64], indptr: numpy.typing.NDArray[numpy.int64], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], scale: float, shift: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """scale times that mean plus shift, for those who need no variance."""

    @overload
    def means(self, values: numpy.typing.NDArray[numpy.int64], indptr: numpy.typing.NDArray[numpy.int64], table: PackedTable, scale: float, shift: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """The same for a packed table."""

    @property
    def rows(self) -> int: ...

    @property
    def width(self) -> int: ...

    def reader(self, table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64] | PackedTable, scale: float, shift: float) -> MinReader:
        """A reader of this table that answers scale times the mean plus shift."""

class MinReader:
    """A hasher, a table, a scale and a shift, for single queries."""

    def __call__(self, queries: object) -> numpy.typing.NDArray[numpy.float64] | None:
        """
        scale times the mean over rows plus shift, or None where queries need checking or converting first.
        """

def all_finite(values: numpy.typing.NDArray[numpy.float32]) -> bool:
    """Whether a C-contiguous float32 array holds neither NaN nor infinity."""

def bare_increments(cells: numpy.typing.NDArray[numpy.uint32], table: numpy.typing.NDArray[numpy.int64], passes: int, group: int = 16) -> None:
    """
    A yardstick for benchmarks: add 1 to table[row, cells[j, row]] for every j and row, `passes` times,
    from cells that were computed before. A build does at least these increments. `group` rows are
    counted together; all rows, and more than 16, means record by record.
    """

class FeatureMap:
    """
    Cosines and sines of projections, as integers; a record's pair in a row is no longer than WAVE_LENGTH.

    The phase of row r is the float32 chain acc = fma(frequencies[r, k], x[k], acc) over k = 0, 1, ... from 0,
    in turns; WAVE_AMPLITUDE times its cosine and sine, rounded, are the record's two integers.
    """

    def __init__(self, frequencies: numpy.typing.NDArray[numpy.float32]) -> None: ...

    def add(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int64], step: int, threads: int) -> None:
        """
        Add step (+1 or -1) times every record's integers to the int64 table (rows, 2); threads share the rows.
        """

    def integers(self, records: numpy.typing.NDArray[numpy.float32]) -> numpy.typing.NDArray[numpy.int32]:
        """The integers of every record, as int32 of shape (records, rows, 2)."""

    def waves(self, records: numpy.typing.NDArray[numpy.float32]) -> numpy.typing.NDArray[numpy.float32]:
        """
        Cosine and sine of every record's phases, unrounded, as float32 of shape (records, rows, 2).
        """

    def read(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], scale: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """
        scale times the sum over an int32 or int64 table's rows of cells times waves, for every query.
        """

    def spread(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], block: int, scale: float, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """
        The mean over rows of scale times cells times waves, for every query, and the variance of that mean as
        the spread over blocks of `block` rows shows it; NaN for a single block.
        """

    @property
    def rows(self) -> int: ...

    @property
    def dim(self) -> int: ...

class StructuredFeatureMap:
    """
    The same for structured projections: with y = H S3 H S2 H S1 x, of x padded with zeros and Hadamard matrices H
    that add from the widest distance to the narrowest, the phase of row r of a block is y[r] * scales[r].
    """

    def __init__(self, signs: numpy.typing.NDArray[numpy.int8], scales: numpy.typing.NDArray[numpy.float32], dim: int) -> None: ...

    def add(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int64], step: int, threads: int) -> None:
        """As FeatureMap.add; threads share the blocks."""

    def integers(self, records: numpy.typing.NDArray[numpy.float32]) -> numpy.typing.NDArray[numpy.int32]:
        """As FeatureMap.integers."""

    def read(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], scale: float, threads: int) -> numpy.typing.NDArray[numpy.float64]:
        """As FeatureMap.read."""

    def spread(self, records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], block: int, scale: float, threads: int) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """
        As FeatureMap.spread, for blocks of one row or of the size of the matrix.
        """

    @property
    def rows(self) -> int: ...

    @property
    def dim(self) -> int: ...

WAVE_AMPLITUDE: float = 1023.0

WAVE_LENGTH: int = 1024

def orthogonalise(rows: numpy.typing.NDArray[numpy.float64]) -> None:
    """
    Make every float64 row orthogonal to those before it in its block of as many rows as there are columns,
    in place, keeping its length; the same bits on every machine.
    """

def count_on_grid(records: numpy.typing.NDArray[numpy.float32], table: numpy.typing.NDArray[numpy.int64], axes: Sequence[tuple[int, float, numpy.typing.NDArray[numpy.int32] | None]], part: int, whole: int, step: int, threads: int) -> None:
    """
    Add step (+1 or -1) times every record's weights to the nodes of a grid, an int64 array of all of them.

    An axis has a number of cells, their side, and the parts of the nodes around a value by its place in a
    cell, int32 of shape (places, nodes), which sum to `part`; without them a value belongs to the nearest
    node. Weights are products of parts, as multiples of 1 / whole that sum to whole.
    """

def sum_windows(table: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], windows: Sequence[tuple[int, numpy.typing.NDArray[numpy.float64]]], along: numpy.typing.NDArray[numpy.float64], squared: bool, threads: int) -> numpy.typing.NDArray[numpy.float64]:
    """
    The sum over the nodes near each query of an int32 or int64 table, or of its squares, times products of
    coefficients.

    A window has a number of nodes and the coefficients of the nodes around a query by its place between two
    nodes, float64 of shape (steps + 1, nodes in reach), which are interpolated. `along`, of shape (queries,
    columns), counts cells from the first node.
    """

def sum_coefficients(windows: Sequence[tuple[int, numpy.typing.NDArray[numpy.float64]]], along: numpy.typing.NDArray[numpy.float64], squared: bool, threads: int) -> numpy.typing.NDArray[numpy.float64]:
    """
    The sum over the nodes near each query of the products of coefficients, or of their squares.
    """

class StreamKey:
    """256 secret bits from the operating system, or given ones for tests."""

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, bytes: bytes) -> None: ...

    def clear(self) -> None:
        """Wipes the key; every later use fails."""

    @property
    def usable(self) -> bool:
        """False once wiped, and in a child process."""

    def keystream(self, nonce0: int, nonce1: int, nonce2: int, counter: int, blocks: int) -> bytes:
        """Blocks of 64 bytes of the ChaCha20 keystream (RFC 8439)."""

NOISE_CHUNK: int = 16384

def extension_nonce(draw: int, acceptance: bool, index: int) -> tuple[int, int, int]:
    """The nonce whose stream continues the bits of one draw."""

def fill_laplace(key: StreamKey, draw: int, out: numpy.typing.NDArray[numpy.int64], scale: float, offset: float, widen: float, threads: int, decide: Callable[[int, int, int], int]) -> None:
    """Fills out with discrete Laplace draws."""

def fill_gaussian(key: StreamKey, draw: int, out: numpy.typing.NDArray[numpy.int64], scale: float, offset: float, centre: float, rate: float, narrow: bool, widen: float, threads: int, decide: Callable[[int, int, int], int | None]) -> None:
    """Fills out with discrete Gaussian draws."""

def pack_integers(values: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], centre: int) -> bytes:
    """Rice codes of int32 or int64 values around a centre."""

def unpack_integers(source: bytes, values: numpy.typing.NDArray[numpy.int32] | numpy.typing.NDArray[numpy.int64], centre: int) -> bool:
    """
    Fill values from Rice codes; false if the bytes are not the code of that many values.
    """

def pool_calls(parts: int, steps: int, calls: int) -> int:
    """
    Hand `parts` chains of `steps` products (about a nanosecond each) to the pool, `calls` times; a yardstick.
    """

def thread_starts(parts: int, steps: int, calls: int) -> int:
    """
    The same on threads that start and end with every call, and the same result.
    """
