"""Hushsum's hot loops, compiled from src/native."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

def clone() -> str:
    """The instruction set the hot loops run with: baseline, v3 or v4."""

class ProjectionHasher:
    """Floors or signs of dense random projections; cells[r] hashes the p words of row r into the width.

    Each projection is the float32 chain acc = fma(weights[r, i, k], x[k], acc) over k = 0, 1, … from
    offsets[r, i], so a record's cells depend on that record alone, bit for bit.
    """

    def __init__(
        self,
        weights: NDArray[np.float32],
        offsets: NDArray[np.float32],
        multipliers: NDArray[np.uint64],
        addends: NDArray[np.uint64],
        width: int,
        signs: bool,
        fold: bool,
        scattered: bool = False,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(
        self, records: NDArray[np.float32], table: NDArray[np.int64], step: int, threads: int
    ) -> None: ...
    def cells(self, records: NDArray[np.float32], rows: int) -> NDArray[np.int32]: ...
    def read(
        self,
        records: NDArray[np.float32],
        table: NDArray[np.int32] | NDArray[np.int64],
        block: int,
        threads: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def reader(
        self, table: NDArray[np.int32] | NDArray[np.int64], scale: float, shift: float
    ) -> Callable[[object], NDArray[np.float64] | None]: ...
    def means(
        self,
        records: NDArray[np.float32],
        table: NDArray[np.int32] | NDArray[np.int64],
        scale: float,
        shift: float,
        threads: int,
    ) -> NDArray[np.float64]: ...

class StructuredHasher:
    """Floors or signs of projections from three Hadamard–sign rounds; a block of rows has its own signs."""

    def __init__(
        self,
        signs: NDArray[np.int8],
        dim: int,
        rows: int,
        power: int,
        scale: float,
        offsets: NDArray[np.float32],
        multipliers: NDArray[np.uint64],
        addends: NDArray[np.uint64],
        width: int,
        sign_mode: bool,
        fold: bool,
        block_rows: int,
        scattered: bool = False,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(
        self, records: NDArray[np.float32], table: NDArray[np.int64], step: int, threads: int
    ) -> None: ...
    def cells(self, records: NDArray[np.float32], rows: int) -> NDArray[np.int32]: ...
    def read(
        self,
        records: NDArray[np.float32],
        table: NDArray[np.int32] | NDArray[np.int64],
        block: int,
        threads: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def reader(
        self, table: NDArray[np.int32] | NDArray[np.int64], scale: float, shift: float
    ) -> Callable[[object], NDArray[np.float64] | None]: ...
    def means(
        self,
        records: NDArray[np.float32],
        table: NDArray[np.int32] | NDArray[np.int64],
        scale: float,
        shift: float,
        threads: int,
    ) -> NDArray[np.float64]: ...

class MinHasher:
    """Min-wise hashes of sets of integers; set j is values[indptr[j]:indptr[j + 1]]."""

    def __init__(
        self,
        mixers: NDArray[np.uint32],
        shifts: NDArray[np.uint32],
        salt: int,
        multipliers: NDArray[np.uint64],
        addends: NDArray[np.uint64],
        width: int,
        scattered: bool = False,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(
        self,
        values: NDArray[np.int64],
        indptr: NDArray[np.int64],
        table: NDArray[np.int64],
        step: int,
        threads: int,
    ) -> None: ...
    def cells(self, values: NDArray[np.int64], indptr: NDArray[np.int64], rows: int) -> NDArray[np.int32]: ...
    def read(
        self,
        values: NDArray[np.int64],
        indptr: NDArray[np.int64],
        table: NDArray[np.int32] | NDArray[np.int64],
        block: int,
        threads: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def means(
        self,
        values: NDArray[np.int64],
        indptr: NDArray[np.int64],
        table: NDArray[np.int32] | NDArray[np.int64],
        scale: float,
        shift: float,
        threads: int,
    ) -> NDArray[np.float64]: ...

class CodeHasher:
    """Sampled coordinates of int32 code vectors."""

    def __init__(
        self,
        columns: NDArray[np.int32],
        multipliers: NDArray[np.uint64],
        addends: NDArray[np.uint64],
        width: int,
        scattered: bool = False,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(
        self, records: NDArray[np.int32], table: NDArray[np.int64], step: int, threads: int
    ) -> None: ...
    def cells(self, records: NDArray[np.int32], rows: int) -> NDArray[np.int32]: ...
    def read(
        self,
        records: NDArray[np.int32],
        table: NDArray[np.int32] | NDArray[np.int64],
        block: int,
        threads: int,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def means(
        self,
        records: NDArray[np.int32],
        table: NDArray[np.int32] | NDArray[np.int64],
        scale: float,
        shift: float,
        threads: int,
    ) -> NDArray[np.float64]: ...

def all_finite(values: NDArray[np.float32]) -> bool:
    """Whether a C-contiguous float32 array holds neither NaN nor infinity."""

def bare_increments(cells: NDArray[np.uint32], table: NDArray[np.int64], passes: int) -> None:
    """A yardstick for benchmarks: add 1 to table[row, cells[j, row]] for every j and row, `passes` times."""

def pack_integers(values: NDArray[np.int32] | NDArray[np.int64], centre: int) -> bytes:
    """Rice codes of int32 or int64 values around a centre."""

def unpack_integers(source: bytes, values: NDArray[np.int32] | NDArray[np.int64], centre: int) -> bool:
    """Fill values from Rice codes; false if the bytes are no code of so many values."""

NOISE_CHUNK: int

class StreamKey:
    def __init__(self, bytes: bytes = ...) -> None: ...
    def clear(self) -> None: ...
    @property
    def usable(self) -> bool: ...
    def keystream(self, nonce0: int, nonce1: int, nonce2: int, counter: int, blocks: int) -> bytes: ...

def extension_nonce(draw: int, acceptance: bool, index: int) -> tuple[int, int, int]: ...
def fill_laplace(
    key: StreamKey,
    draw: int,
    out: NDArray[np.int64],
    scale: float,
    offset: float,
    widen: float,
    threads: int,
    decide: Callable[[int, int, int], int],
) -> None: ...
def fill_gaussian(
    key: StreamKey,
    draw: int,
    out: NDArray[np.int64],
    scale: float,
    offset: float,
    centre: float,
    rate: float,
    narrow: bool,
    widen: float,
    threads: int,
    decide: Callable[[int, int, int], int | None],
) -> None: ...

WAVE_AMPLITUDE: float
WAVE_LENGTH: int

class FeatureMap:
    """Cosines and sines of projections, as integers; a record's pair in a row is no longer than WAVE_LENGTH.

    The phase of row r is the float32 chain acc = fma(frequencies[r, k], x[k], acc) over k = 0, 1, … from 0,
    in turns; WAVE_AMPLITUDE times its cosine and sine, rounded, are the record's two integers.
    """

    def __init__(self, frequencies: NDArray[np.float32]) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def dim(self) -> int: ...
    def add(
        self, records: NDArray[np.float32], table: NDArray[np.int64], step: int, threads: int
    ) -> None: ...
    def integers(self, records: NDArray[np.float32]) -> NDArray[np.int32]: ...
    def waves(self, records: NDArray[np.float32]) -> NDArray[np.float32]: ...
    def read(
        self,
        records: NDArray[np.float32],
        table: NDArray[np.int32] | NDArray[np.int64],
        scale: float,
        threads: int,
    ) -> NDArray[np.float64]: ...

def orthogonalise(rows: NDArray[np.float64]) -> None:
    """Make every row orthogonal to those before it in its block, in place, keeping its length."""
