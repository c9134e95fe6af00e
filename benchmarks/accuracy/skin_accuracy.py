"""The sketch's error on real data against what was planned: skin tones, 245,057 × 3, bandwidth 5.

Mean absolute and mean relative error of f(q)/N over 2,000 queries drawn from the data, ε in {0.1, 0.5, 1, 2},
pure and with δ = 1e-6. Three parts are compared with ``hs.plan``: the noise alone (released minus exact
table), the hashing alone (exact table minus exact sum) against its bound, and the total against a plan made
from a public 1 % sample. The data are public, so looking at exact values here leaks nothing. README.md's
table is from the results.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results
from numpy.typing import NDArray

import hushsum as hs
from hushsum.releases import TableFunction
from hushsum.tables import RowReading

Floats = NDArray[np.float64]

BANDWIDTH = 5.0
EPSILONS = (0.1, 0.5, 1.0, 2.0)
DELTA = 1e-6
QUERIES = 2000


def skin() -> NDArray[np.float32]:
    """The pixels, shuffled (the file is sorted by class)."""
    folder = os.environ.get("HUSHSUM_DATA")
    if not folder:
        raise SystemExit("set HUSHSUM_DATA to the folder that holds skin_segmentation.parquet")
    import pyarrow.parquet as pq

    table = pq.read_table(Path(folder) / "skin_segmentation.parquet", columns=["R", "G", "B"])
    pixels = np.column_stack([table[name].to_numpy() for name in ("R", "G", "B")]).astype(np.float32)
    return np.ascontiguousarray(np.random.default_rng(0).permutation(pixels))


def measure(rows: int, seeds: int) -> list[dict[str, Any]]:
    """One row of results for each promise, averaged over hash seeds.

    Errors of nearby queries share their hash functions, so one seed says little: the standard deviation of
    its mean error is half of that error.
    """
    pixels = skin()
    kernel = hs.EuclideanKernel(dim=3, bandwidth=BANDWIDTH)
    queries = pixels[:QUERIES]
    public = pixels[-len(pixels) // 100 :]
    truth = kernel.exact_sum(pixels, queries) / len(pixels)
    promises = [(epsilon, delta) for delta in (None, DELTA) for epsilon in EPSILONS]
    sums = {promise: np.zeros(5) for promise in promises}
    relative_errors: dict[tuple[float, float | None], list[float]] = {promise: [] for promise in promises}
    hashing = 0.0
    for seed in range(seeds):
        tally = hs.race(kernel, rows=rows, seed=seed).add(pixels)
        exact = _without_noise(tally, queries, len(pixels))
        hashing += float(np.abs(exact - truth).mean()) / seeds
        for epsilon, delta in promises:
            values = tally.release(epsilon=epsilon, delta=delta, rows=rows)(queries)
            auto = tally.release(epsilon=epsilon, delta=delta)
            assert isinstance(auto, TableFunction)
            error = np.abs(values - truth)
            relative_errors[epsilon, delta].append(float((error / truth).mean()))
            sums[epsilon, delta] += (
                error.mean(),
                (error / truth).mean(),
                np.abs(values - exact).mean(),
                auto.rows,
                np.abs(auto(queries) - truth).mean(),
            )
    results = []
    for epsilon, delta in promises:
        measured, relative, noise, auto_rows, auto_error = (sums[epsilon, delta] / seeds).tolist()
        plan = partial(hs.plan, records=len(pixels), kernel=kernel, epsilon=epsilon, delta=delta, rows=rows)
        bound = plan(density=float(truth.mean())).best
        estimate = plan(public=public).best
        results.append(
            {
                "epsilon": epsilon,
                "delta": delta or 0.0,
                "rows": rows,
                "error": measured,
                "relative_error": relative,
                "relative_error_stderr": float(np.std(relative_errors[epsilon, delta], ddof=1) / seeds**0.5),
                "noise": noise,
                "planned_noise": bound.noise,
                "noise_ratio": noise / bound.noise,
                "hashing": hashing,
                "hashing_bound": bound.approximation,
                "planned_error": estimate.error,
                "total_ratio": measured / estimate.error,
                "auto_rows": round(auto_rows),
                "auto_error": auto_error,
            }
        )
    return results


def _without_noise(tally: hs.Tally, queries: NDArray[np.float32], number: int) -> Floats:
    """The answers of the exact table, which only a benchmark on public data may look at."""
    reading = tally.reading
    assert isinstance(reading, RowReading)
    mean = reading.read(tally._table, reading.basis.prepare_queries(queries), threads=1).mean
    return reading.unfold(mean, number) / number


def table(results: list[dict[str, float]], seeds: int) -> str:
    """For readers; README's table is part of it."""
    lines = [
        "# Skin tones",
        "",
        f"Mean absolute and mean relative error of f(q)/N at {QUERIES:,} queries, over {seeds} hash seeds.",
        "",
        "| ε | δ | rows | error | relative error | noise / plan | hashing | its bound | total / plan |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {r['epsilon']:g} | {r['delta']:g} | {r['rows']} | {r['error']:.2e} | {r['relative_error']:.1%} "
        f"| {r['noise_ratio']:.2f} | {r['hashing']:.2e} | {r['hashing_bound']:.2e} | {r['total_ratio']:.2f} |"
        for r in results
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="eight hash seeds instead of 64")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--output", type=Path, help="where results go; a quick run writes none by default")
    arguments = parser.parse_args()
    seeds = 8 if arguments.quick else 64
    results = measure(arguments.rows, seeds)
    if arguments.output or not arguments.quick:
        output = Results("skin_accuracy", arguments.output)
        output.write({"seeds": seeds, "queries": QUERIES, "results": results})
        output.publish(table(results, seeds))
    if arguments.json:
        print(json.dumps(results))
        return 0
    print(
        "  eps   delta  rows  error     relative noise/plan  hashing (bound)     total/plan  auto rows, error"
    )
    for r in results:
        print(
            f"{r['epsilon']:5g}  {r['delta']:6g} {r['rows']:5d}  {r['error']:.2e} {r['relative_error']:8.1%}"
            f"   {r['noise_ratio']:8.2f}    {r['hashing']:.2e} ({r['hashing_bound']:.2e}) "
            f"{r['total_ratio']:8.2f}    {r['auto_rows']:5d}, {r['auto_error']:.2e}"
        )
    print("targets: noise/plan and total/plan within 0.8 to 1.2; hashing below its bound")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
