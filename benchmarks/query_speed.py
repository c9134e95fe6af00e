"""How fast a table is read: `python -m benchmarks.query_speed [--quick] [--json]`.

Seconds per query on one thread, single queries (with the check that they are finite) and batches.
"""

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from benchmarks import yardsticks
from benchmarks.yardsticks import Ratio, cpu_seconds, faster

from hushsum import _native


def query_ratios(dim: int, rows: int, width: int, batch: int, repeats: int) -> list[Ratio]:
    case = f"d={dim}, R={rows}, W={width}"
    rng = np.random.default_rng(3)
    hasher, weights, offsets = yardsticks.dense_hasher(rows, dim, width)
    table = rng.integers(-1000, 1000, (rows, width))
    queries = rng.standard_normal((batch, dim), dtype=np.float32)
    singles = min(batch, 1000)

    def ours_one_by_one() -> None:
        for j in range(singles):
            query = queries[j : j + 1]
            if _native.all_finite(query):
                hasher.read(query, table, 1, 1)

    def theirs_one_by_one() -> None:
        for j in range(singles):
            query = queries[j : j + 1]
            if np.isfinite(query).all():
                yardsticks.numpy_query(weights, offsets, query, table)

    single = (
        cpu_seconds(ours_one_by_one, repeats) / singles,
        cpu_seconds(theirs_one_by_one, repeats) / singles,
    )
    many = (
        cpu_seconds(lambda: hasher.read(queries, table, 1, 1), repeats) / batch,
        cpu_seconds(lambda: yardsticks.numpy_query(weights, offsets, queries, table), repeats) / batch,
    )
    return [
        faster(f"{case}, single", "NumPy", *single, at_least=5),
        faster(f"{case}, batch of {batch:,}", "NumPy", *many, at_least=6),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer queries and runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    batch, repeats = (1000, 2) if options.quick else (10_000, 5)
    ratios = [ratio for dim in (3, 10, 55) for ratio in query_ratios(dim, 1000, 1000, batch, repeats)]
    yardsticks.report(ratios, options.json)


if __name__ == "__main__":
    main()
