"""Hushsum's hot loops, compiled from src/native."""

import numpy as np
import numpy.typing as npt

def clone() -> str:
    """The instruction set the hot loops run with: baseline, v3 or v4."""

class ProjectionHasher:
    """Floors or signs of dense random projections; cells[r] hashes the p words of row r into the width.

    Each projection is the float32 chain acc = fma(weights[r, i, k], x[k], acc) over k = 0, 1, … from
    offsets[r, i], so a record's cells depend on that record alone, bit for bit.
    """

    def __init__(
        self,
        weights: npt.NDArray[np.float32],
        offsets: npt.NDArray[np.float32],
        multipliers: npt.NDArray[np.uint64],
        addends: npt.NDArray[np.uint64],
        width: int,
        signs: bool,
        fold: bool,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(
        self, records: npt.NDArray[np.float32], table: npt.NDArray[np.int64], step: int, threads: int
    ) -> None: ...
    def cells(self, records: npt.NDArray[np.float32], rows: int) -> npt.NDArray[np.int32]: ...
    def read(
        self,
        records: npt.NDArray[np.float32],
        table: npt.NDArray[np.int32] | npt.NDArray[np.int64],
        block: int,
        threads: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

class StructuredHasher:
    """Floors or signs of projections from three Hadamard–sign rounds; a block of rows has its own signs."""

    def __init__(
        self,
        signs: npt.NDArray[np.int8],
        dim: int,
        rows: int,
        power: int,
        scale: float,
        offsets: npt.NDArray[np.float32],
        multipliers: npt.NDArray[np.uint64],
        addends: npt.NDArray[np.uint64],
        width: int,
        sign_mode: bool,
        fold: bool,
        block_rows: int,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def dim(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(
        self, records: npt.NDArray[np.float32], table: npt.NDArray[np.int64], step: int, threads: int
    ) -> None: ...
    def cells(self, records: npt.NDArray[np.float32], rows: int) -> npt.NDArray[np.int32]: ...
    def read(
        self,
        records: npt.NDArray[np.float32],
        table: npt.NDArray[np.int32] | npt.NDArray[np.int64],
        block: int,
        threads: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

class MinHasher:
    """Min-wise hashes of sets of integers; set j is values[indptr[j]:indptr[j + 1]]."""

    def __init__(
        self,
        mixers: npt.NDArray[np.uint32],
        shifts: npt.NDArray[np.uint32],
        salt: int,
        multipliers: npt.NDArray[np.uint64],
        addends: npt.NDArray[np.uint64],
        width: int,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(
        self,
        values: npt.NDArray[np.int64],
        indptr: npt.NDArray[np.int64],
        table: npt.NDArray[np.int64],
        step: int,
        threads: int,
    ) -> None: ...
    def cells(
        self, values: npt.NDArray[np.int64], indptr: npt.NDArray[np.int64], rows: int
    ) -> npt.NDArray[np.int32]: ...
    def read(
        self,
        values: npt.NDArray[np.int64],
        indptr: npt.NDArray[np.int64],
        table: npt.NDArray[np.int32] | npt.NDArray[np.int64],
        block: int,
        threads: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

class CodeHasher:
    """Sampled coordinates of int32 code vectors."""

    def __init__(
        self,
        columns: npt.NDArray[np.int32],
        multipliers: npt.NDArray[np.uint64],
        addends: npt.NDArray[np.uint64],
        width: int,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    def count(
        self, records: npt.NDArray[np.int32], table: npt.NDArray[np.int64], step: int, threads: int
    ) -> None: ...
    def cells(self, records: npt.NDArray[np.int32], rows: int) -> npt.NDArray[np.int32]: ...
    def read(
        self,
        records: npt.NDArray[np.int32],
        table: npt.NDArray[np.int32] | npt.NDArray[np.int64],
        block: int,
        threads: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

def all_finite(values: npt.NDArray[np.float32]) -> bool:
    """Whether a C-contiguous float32 array holds neither NaN nor infinity."""

def bare_increments(cells: npt.NDArray[np.uint32], table: npt.NDArray[np.int64], passes: int) -> None:
    """A yardstick for benchmarks: add 1 to table[row, cells[j, row]] for every j and row, `passes` times."""
