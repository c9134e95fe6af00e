"""How fast a grid counts and answers: `python -m benchmarks grid_speed [--quick] [--json]`.

Counting is compared with adding 16 numbers per record to cells that are known beforehand, the least that a
cubic spline in two columns needs. Answers are compared with SciPy's cubic interpolation of an image, which
reads 16 nodes and has no error estimate.
"""

import argparse
import os
import time
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from benchmarks.speed import native_baselines
from benchmarks.speed.native_baselines import Ratio, cpu_seconds, faster, no_slower
from scipy.ndimage import map_coordinates

import hushsum as hs


def wall_seconds(work: Callable[[], object], repeats: int) -> float:
    """The shortest time of some runs, of all threads together."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def ratios(records: int, queries: int, repeats: int) -> list[Ratio]:
    rng = np.random.default_rng(3)
    X = np.clip(rng.normal(10, 2, (records, 2)), 0, 20).astype(np.float32)
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.2), bounds=(0, 20), degree=3)
    side, cells = tally.basis.shape[0], int(np.prod(tally.basis.shape))
    image = np.zeros(cells, np.int64)
    corner = rng.integers(0, cells - 4 * side, (records, 1))
    places = (corner + (np.arange(4)[:, None] * side + np.arange(4)).reshape(-1)).reshape(-1)
    ones = np.ones(len(places), np.int64)
    count = cpu_seconds(lambda: tally.add(X, threads=1), repeats)
    bare = cpu_seconds(lambda: np.add.at(image, places, ones), repeats)
    two = wall_seconds(lambda: tally.add(X, threads=2), repeats)
    one = wall_seconds(lambda: tally.add(X, threads=1), repeats)
    f = tally.release(epsilon=1.0)
    points = rng.uniform(0, 20, (queries, 2))
    table = np.asarray(tally.release(epsilon=1.0)(rng.uniform(0, 20, (side * side, 2)))).reshape(side, side)
    along = points.T / 20 * (side - 1)
    answer = cpu_seconds(lambda: f(points), repeats) / queries
    interval = cpu_seconds(lambda: f.query(points), repeats) / queries
    image_read = cpu_seconds(lambda: map_coordinates(table, along, prefilter=False), repeats) / queries
    singles = points[:300, None]
    single = cpu_seconds(lambda: [f.query(each) for each in singles], repeats) / len(singles)
    return [
        no_slower(f"count {records:,} × 2", "bare increments", count / records, bare / records, at_most=1.3),
        faster("count, two threads", "one thread", two / records, one / records, at_least=1.8),
        no_slower(f"batch of {queries:,}", "SciPy's image", answer, image_read, at_most=4),
        no_slower("the same with intervals", "without them", interval, answer, at_most=10),
        no_slower("single, with interval", "in a batch", single, interval, at_most=100),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer records and runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    records, queries, repeats = (500_000, 20_000, 3) if options.quick else (5_000_000, 100_000, 5)
    native_baselines.report(ratios(records, queries, repeats), options.json)


if __name__ == "__main__":
    main()
