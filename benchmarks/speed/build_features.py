"""How fast Fourier features are built and read: `python -m benchmarks build_features [--quick] [--json]`.

Processor time of one thread, best of several runs, all in one process; BLAS is limited to one thread too.
NumPy does what scikit-learn's RBFSampler does, with the sine beside the cosine: one matrix product, two
elementary functions, a sum, in blocks that stay in the cache. `--real FOLDER` also builds forest cover types
(covtype.parquet), all but 500 of its 581,012
records, on two threads, and measures the error of the answers, as they
are and sharpened by the queries.
"""

import argparse
import os
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from benchmarks.speed import native_baselines
from benchmarks.speed.native_baselines import Floats, Ratio, cpu_seconds, faster, wall_seconds

import hushsum as hs
from hushsum import _native
from hushsum.releases import CoefficientFunction
from hushsum.tables import predicted_error


def numpy_build(frequencies: Floats, records: Floats) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Sums of cosines and sines in tuned NumPy, in single precision."""
    rows, block = len(frequencies), 512
    table = np.zeros((rows, 2))
    angular = np.ascontiguousarray(frequencies.T) * np.float32(2 * np.pi)
    phases, waves = np.empty((2, block, rows), np.float32)
    for start in range(0, len(records), block):
        part = records[start : start + block]
        here = len(part)
        np.matmul(part, angular, out=phases[:here])
        np.cos(phases[:here], out=waves[:here])
        table[:, 0] += waves[:here].sum(axis=0)
        np.sin(phases[:here], out=waves[:here])
        table[:, 1] += waves[:here].sum(axis=0)
    return table


def build_ratios(records: int, dim: int, features: int, repeats: int, numpy_target: float) -> list[Ratio]:
    case = f"{records:,} × {dim}, {features:,} features"
    data = np.random.default_rng(2).standard_normal((records, dim), dtype=np.float32)
    frequencies = hs.GaussianKernel(dim, 2.0).frequencies(rows=features, seed=1, orthogonal=True)
    native = _native.FeatureMap(frequencies)
    table = np.zeros((features, 2), np.int64)
    ours = cpu_seconds(lambda: native.add(data, table, 1, 1), repeats)
    sgemm = native_baselines.sgemm_seconds(frequencies, data, repeats)
    theirs = cpu_seconds(lambda: numpy_build(frequencies, data), max(1, repeats // 2))
    threaded = [
        wall_seconds(lambda n=threads: native.add(data, table, 1, n), repeats)  # type: ignore[misc]
        for threads in (1, 2)
    ]
    return [
        faster(case, "NumPy", ours, theirs, numpy_target),
        faster(case, "SGEMM", ours, sgemm, 0.75),
        faster(case, "one thread (two)", threaded[1], threaded[0], 1.7),
    ]


def read_ratios(queries: int, dim: int, features: int, repeats: int) -> list[Ratio]:
    data = np.random.default_rng(2).standard_normal((queries, dim), dtype=np.float32)
    frequencies = hs.GaussianKernel(dim, 2.0).frequencies(rows=features, seed=1, orthogonal=True)
    native = _native.FeatureMap(frequencies)
    table = np.random.default_rng(3).integers(-(10**6), 10**6, (features, 2), dtype=np.int32)
    ours = cpu_seconds(lambda: native.read(data, table, 1.0, 1), repeats)
    sgemm = native_baselines.sgemm_seconds(frequencies, data, repeats)
    return [faster(f"{queries:,} queries, {features:,} features", "SGEMM", ours, sgemm, 0.75)]


def real_data(folder: Path, bandwidth: float, numbers: list[int]) -> None:
    """Seconds and errors on forest cover types, every column scaled to a range of 1."""
    import pandas as pd

    columns = pd.read_parquet(folder / "covtype.parquet").drop(columns="target").to_numpy(np.float32)
    low, high = columns.min(axis=0), columns.max(axis=0)
    records = np.ascontiguousarray((columns - low) / np.maximum(high - low, 1))
    # Queries sharpen the answers below, so they are records that are not counted.
    mixed = np.random.default_rng(0).permutation(len(records))
    queries, records = records[mixed[:500]], records[mixed[500:]]
    kernel = hs.GaussianKernel(records.shape[1], bandwidth)
    exact = kernel.exact_sum(records, queries) / len(records)
    print(f"\ncovtype {records.shape}, bandwidth {bandwidth:g}, mean density {exact.mean():.4f}")
    titles = ("features", "wall s", "CPU s", "ε", "δ", "published", "error", "predicted", "sharpened")
    print("".join(f"{title:>10}" for title in titles))
    for number in numbers:
        tally = hs.fourier_features(kernel, features=number, seed=1)
        started = time.perf_counter(), time.process_time()
        tally.add(records, threads=2)
        wall, cpu = time.perf_counter() - started[0], time.process_time() - started[1]
        for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-6), (1.0, None), (0.1, None)):
            f = tally.release(epsilon=epsilon, delta=delta)
            assert isinstance(f, CoefficientFunction)
            predicted = predicted_error(
                records=len(records),
                dim=records.shape[1],
                pairs=f.rows,
                noise=f.noise,
                density=float(exact.mean()),
            )
            error = float(np.abs(f(queries) - exact).mean())
            sharp = float(np.abs(f.with_public_points(queries)(queries) - exact).mean())
            print(
                f"{number:>10,}{wall:>10.1f}{cpu:>10.1f}{epsilon:>10g}{delta or 0:>10g}"
                f"{f.rows:>10,}{error:>10.1e}{predicted.total:>10.1e}{sharp:>10.1e}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, fewer runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--real", type=Path, help="a folder with covtype.parquet")
    parser.add_argument("--bandwidth", type=float, default=0.5)
    options = parser.parse_args()
    scale, repeats = (10, 2) if options.quick else (1, 3)
    ratios = [
        *build_ratios(100_000 // scale, 54, 4000, repeats, 1.5),
        *build_ratios(240_000 // scale, 3, 4000, repeats, 3.0),
        *build_ratios(max(8192, 20_000 // scale), 768, 4000, repeats, 1.0),
        *read_ratios(10_000, 54, 4000, repeats),
    ]
    native_baselines.report(ratios, options.json)
    if options.real is not None:
        real_data(options.real, options.bandwidth, [2000, 4000, 16_000])


if __name__ == "__main__":
    main()
