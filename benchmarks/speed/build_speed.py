"""How fast a sketch is built: `python -m benchmarks build_speed [--quick] [--json]`.

Processor time of one thread, best of several runs, all in one process; BLAS is limited to one thread too.
"""

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from benchmarks.speed import native_baselines
from benchmarks.speed.native_baselines import Ratio, cpu_seconds, faster, no_slower

from hushsum import _native


def dense_ratios(
    records: int, dim: int, rows: int, width: int, repeats: int, numpy_target: float
) -> list[Ratio]:
    case = f"{records:,} × {dim}, R={rows}, W={width}"
    data = np.random.default_rng(2).standard_normal((records, dim), dtype=np.float32)
    hasher, weights, offsets = native_baselines.dense_hasher(rows, dim, width)
    table = np.zeros((rows, width), np.int64)
    ours = cpu_seconds(lambda: hasher.count(data, table, 1, 1), repeats)
    theirs = cpu_seconds(
        lambda: native_baselines.numpy_build(weights, offsets, data, width), max(1, repeats // 2)
    )
    ratios = [faster(case, "NumPy", ours, theirs, numpy_target)]
    if dim <= 3:
        bare = native_baselines.bare_increment_seconds(rows, width, records, repeats)
        ratios.append(no_slower(case, "bare increments", ours, bare, 1.5))
    else:
        sgemm = native_baselines.sgemm_seconds(weights, data, repeats)
        ratios.append(faster(case, "SGEMM", ours, sgemm, 0.5))
    threaded = [
        native_baselines.wall_seconds(lambda n=threads: hasher.count(data, table, 1, n), repeats)  # type: ignore[misc]
        for threads in (1, 2)
    ]
    return [*ratios, faster(case, "one thread (two)", threaded[1], threaded[0], 1.7)]


def high_dimension_ratios(records: int, dim: int, rows: int, width: int, repeats: int) -> list[Ratio]:
    case = f"{records:,} × {dim}, R={rows}, W={width}"
    data = np.random.default_rng(2).standard_normal((records, dim), dtype=np.float32)
    hasher, weights, _ = native_baselines.dense_hasher(rows, dim, width)
    structured = native_baselines.structured_hasher(rows, dim, width)
    table = np.zeros((rows, width), np.int64)
    ours = cpu_seconds(lambda: hasher.count(data, table, 1, 1), repeats)
    fast = cpu_seconds(lambda: structured.count(data, table, 1, 1), repeats)
    sgemm = native_baselines.sgemm_seconds(weights, data, repeats)
    return [faster(case, "SGEMM", ours, sgemm, 0.75), faster(f"{case}, structured", "dense", fast, ours, 2.5)]


def wide_ratios(records: int, rows: int, repeats: int) -> list[Ratio]:
    width = 500_000
    case = f"{records:,} × 3, R={rows}, W={width}"
    data = np.random.default_rng(2).standard_normal((records, 3), dtype=np.float32) * 1000
    hasher, *_ = native_baselines.dense_hasher(rows, 3, width)
    table = np.zeros((rows, width), np.int64)
    ours = cpu_seconds(lambda: hasher.count(data, table, 1, 1), repeats)
    cells = hasher.cells(data, rows).astype(np.uint32)
    bare = cpu_seconds(lambda: _native.bare_increments(cells, table, 1), repeats)
    return [faster(case, "plain scatter", ours, bare, 2)]


def thread_ratios(repeats: int) -> list[Ratio]:
    """The pool against threads that start with every call: 2 × 6 µs of work, and 2 × 60 ms."""
    pooled_small, started_small = (
        cpu_seconds(lambda each=each: each(2, 5_000, 200), 4 * repeats) / 200  # type: ignore[misc]
        for each in (_native.pool_calls, _native.thread_starts)
    )
    pooled_large, started_large = (
        cpu_seconds(lambda each=each: each(2, 50_000_000, 1), repeats)  # type: ignore[misc]
        for each in (_native.pool_calls, _native.thread_starts)
    )
    return [
        faster("2 parts of 5,000 steps", "a thread start per call", pooled_small, started_small, 1.5),
        no_slower("2 parts of 50,000,000 steps", "a thread start per call", pooled_large, started_large, 1.1),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, fewer runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    scale, repeats = (10, 2) if options.quick else (1, 4)
    ratios = [
        *dense_ratios(241_000 // scale, 3, 1000, 1000, repeats, numpy_target=4),
        *dense_ratios(581_000 // scale, 55, 1000, 1000, repeats, numpy_target=2),
        *high_dimension_ratios(200_000 // scale, 768, 500, 1000, repeats),
        *wide_ratios(241_000, 64, repeats),
        *thread_ratios(repeats),
    ]
    native_baselines.report(ratios, options.json)


if __name__ == "__main__":
    main()
