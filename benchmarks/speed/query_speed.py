"""How fast a released function answers: `python -m benchmarks query_speed [--quick] [--json]`.

Seconds per query on one thread through the public call ``f(Q)``, single queries and batches, against tuned
NumPy that computes the same mean, without the correction and the checks of ours.
"""

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from benchmarks.speed import native_baselines
from benchmarks.speed.native_baselines import Ratio, cpu_seconds, faster

import hushsum as hs
from hushsum.releases import TableFunction


def query_ratios(dim: int, rows: int, width: int, batch: int, repeats: int) -> list[Ratio]:
    case = f"d={dim}, R={rows}, W={width}"
    rng = np.random.default_rng(3)
    queries = rng.standard_normal((batch, dim), dtype=np.float32)
    tally = hs.race(hs.EuclideanKernel(dim=dim, bandwidth=1.0), rows=rows, width=width).add(queries)
    f = tally.release(epsilon=1.0, rows=rows)
    assert isinstance(f, TableFunction)
    table = np.array(f.table, np.int32)
    _, weights, offsets = native_baselines.dense_hasher(rows, dim, width)
    singles = [np.ascontiguousarray(query) for query in queries[:1000]]
    single = (
        cpu_seconds(lambda: [f(query) for query in singles], repeats) / len(singles),
        cpu_seconds(
            lambda: [native_baselines.numpy_query(weights, offsets, query, table) for query in singles],
            repeats,
        )
        / len(singles),
    )
    many = (
        cpu_seconds(lambda: f(queries), repeats) / batch,
        cpu_seconds(lambda: native_baselines.numpy_queries(weights, offsets, queries, table), repeats)
        / batch,
    )
    product = native_baselines.sgemm_seconds(weights, queries, repeats) / batch
    return [
        faster(f"{case}, single", "NumPy", *single, at_least=5),
        faster(f"{case}, batch of {batch:,}", "NumPy", *many, at_least=6),
        faster(f"{case}, batch of {batch:,}", "the product alone", many[0], product, at_least=0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer queries and runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    batch, repeats = (5000, 3) if options.quick else (10_000, 7)
    ratios = [ratio for dim in (3, 10, 55) for ratio in query_ratios(dim, 1000, 1000, batch, repeats)]
    native_baselines.report(ratios, options.json)


if __name__ == "__main__":
    main()
