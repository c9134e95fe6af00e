"""What the native loops are measured against: tuned NumPy, OpenBLAS through NumPy, and a clock."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from hushsum import _native

Floats = npt.NDArray[np.float32]
Counters = npt.NDArray[np.int64]

MIXER = np.uint32(2654435761)


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of `repeats` runs."""
    return min(_timed(work, time.process_time) for _ in range(repeats))


def wall_seconds(work: Callable[[], object], repeats: int) -> float:
    """The least wall-clock time of `repeats` runs."""
    return min(_timed(work, time.perf_counter) for _ in range(repeats))


def _timed(work: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    work()
    return clock() - start


def dense_hasher(
    rows: int, dim: int, width: int, seed: int = 0
) -> tuple[_native.ProjectionHasher, Floats, Floats]:
    """A hasher of one floor per row, with its weights and offsets for the baselines."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((rows, 1, dim), dtype=np.float32)
    offsets = rng.random((rows, 1), dtype=np.float32)
    hasher = _native.ProjectionHasher(
        weights,
        offsets,
        multipliers=rng.integers(0, 2**64, (rows, 1), dtype=np.uint64),
        addends=rng.integers(0, 2**64, rows, dtype=np.uint64),
        width=width,
        signs=False,
        fold=True,
    )
    return hasher, weights[:, 0], offsets


def structured_hasher(rows: int, dim: int, width: int, block_rows: int = 128) -> _native.StructuredHasher:
    """A hasher of structured projections in the smallest Hadamard matrix that holds the dimension."""
    rng = np.random.default_rng(0)
    size = 1 << (dim - 1).bit_length()
    return _native.StructuredHasher(
        rng.choice(np.array([-1, 1], np.int8), (-(-rows // block_rows), 3, size)),
        dim,
        rows,
        power=1,
        scale=1 / size,
        offsets=rng.random((rows, 1), dtype=np.float32),
        multipliers=rng.integers(0, 2**64, (rows, 1), dtype=np.uint64),
        addends=rng.integers(0, 2**64, rows, dtype=np.uint64),
        width=width,
        sign_mode=False,
        fold=True,
        block_rows=block_rows,
    )


def hash_floors(z: Floats, width: int) -> npt.NDArray[np.uint32]:
    """Cells of projections by a 32-bit multiplicative hash, in place wherever NumPy can."""
    np.floor(z, out=z)
    cells = z.astype(np.int32).view(np.uint32)
    cells *= MIXER
    cells >>= np.uint32(16)
    cells *= np.uint32(width)
    cells >>= np.uint32(16)
    return cells


def numpy_build(weights: Floats, offsets: Floats, records: Floats, width: int) -> Counters:
    """A sketch in tuned NumPy: sixteen rows and 16,384 records at a time, one bincount per row.

    Row-wise products keep BLAS busy and the cells of a row contiguous. The hash has half the strength of the
    native one (a 16-bit fold), which favours NumPy.
    """
    rows, block = len(weights), 16_384
    table = np.zeros((rows, width), np.int64)
    columns = np.ascontiguousarray(records.T)
    for start in range(0, len(records), block):
        part = columns[:, start : start + block]
        for row in range(0, rows, 16):
            z = weights[row : row + 16] @ part
            z += offsets[row : row + 16]
            for r, cells in enumerate(hash_floors(z, width), row):
                table[r] += np.bincount(cells, minlength=width)
    return table


def numpy_query(weights: Floats, offsets: Floats, query: Floats, table: npt.NDArray[np.int32]) -> float:
    """The mean over rows at one finite query, in as few NumPy calls as it takes; no error estimate."""
    if not np.isfinite(query).all():
        raise ValueError("query")
    rows, width = table.shape
    z = weights @ query
    z += offsets[:, 0]
    return float(table.reshape(-1).take(hash_floors(z, width) + _starts(rows, width)).mean())


def numpy_queries(
    weights: Floats, offsets: Floats, queries: Floats, table: npt.NDArray[np.int32]
) -> npt.NDArray[np.float64]:
    """The same for a batch: one product, then row after row, whose counters stay in the cache."""
    rows, width = table.shape
    cells = weights @ queries.T
    cells += offsets
    hashed = hash_floors(cells, width)
    total: npt.NDArray[np.float64] = np.zeros(len(queries))
    for row in range(rows):
        total += table[row].take(hashed[row])
    total /= rows
    return total


@cache
def _starts(rows: int, width: int) -> npt.NDArray[np.int64]:
    return np.arange(rows) * width


def sgemm_seconds(weights: Floats, records: Floats, repeats: int) -> float:
    """Processor time of the bare float32 matrix product of the same shape, in cache-sized blocks."""
    block = 4096
    out = np.empty((len(weights), block), np.float32)
    columns = [
        np.ascontiguousarray(records[s : s + block].T) for s in range(0, len(records) - block + 1, block)
    ]

    def work() -> None:
        for part in columns:
            np.matmul(weights, part, out=out)

    return cpu_seconds(work, repeats) * len(records) / (block * len(columns))


def bare_increment_seconds(rows: int, width: int, records: int, repeats: int) -> float:
    """Processor time of the increments alone, from cells that lie in the cache."""
    held = 256
    cells = np.random.default_rng(1).integers(0, width, (held, rows), dtype=np.uint32)
    table = np.zeros((rows, width), np.int64)
    passes = max(1, records // held)
    return (
        cpu_seconds(lambda: _native.bare_increments(cells, table, passes), repeats)
        * records
        / (passes * held)
    )


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison of a run: `ratio` is how much better ours is, or its share of the yardstick."""

    case: str
    against: str
    ours: float
    theirs: float
    ratio: float
    target: str
    reached: bool


def faster(case: str, against: str, ours: float, theirs: float, at_least: float) -> Ratio:
    """Ours must take at most theirs / at_least."""
    ratio = theirs / ours
    return Ratio(case, against, ours, theirs, ratio, f"≥ {at_least:g}", ratio >= at_least)


def no_slower(case: str, against: str, ours: float, theirs: float, at_most: float) -> Ratio:
    """Ours must take at most theirs · at_most."""
    ratio = ours / theirs
    return Ratio(case, against, ours, theirs, ratio, f"≤ {at_most:g}", ratio <= at_most)


def report(ratios: list[Ratio], as_json: bool) -> None:
    """Print the comparisons as a table, or as JSON."""
    if as_json:
        json.dump(
            {"clone": _native.clone(), "ratios": [asdict(ratio) for ratio in ratios]}, sys.stdout, indent=2
        )
        print()
        return
    print(f"clone {_native.clone()}; seconds of one core\n")
    print(f"{'case':<42}{'against':<22}{'ours':>11}{'theirs':>11}{'ratio':>8}  target")
    for r in ratios:
        mark = "" if r.reached else "  missed"
        print(f"{r.case:<42}{r.against:<22}{r.ours:>11.3g}{r.theirs:>11.3g}{r.ratio:>8.2f}  {r.target}{mark}")
