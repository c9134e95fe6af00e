"""Where errors once stopped falling: many columns with δ, functional densities, and batches with error bars.

    HUSHSUM_DATA=... python -m benchmarks error_floors [--quick] [--parts forest,functional,seconds]

1. Forest cover, 581,012 × 54, as ``hs.plan`` releases it at ε = 1 and δ = 1e-6: mean absolute error of f(q)/N
   at queries from the data, over public seeds, and the bytes of the file. At most 2e-4 in 64 MB was required.
2. ``PrivateDensity(method="functional")`` on ages (n = 20,000): the KL divergence of its values at all ages
   from those of the exact kernel density, at rising ε. Features that are random leave an error that does not
   fall; those of one column are exact.
3. Processor seconds for 100,000 points with error bars, the less of two: at most 2 were required.

``--quick`` runs less and keeps the results in ``build``.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from benchmarks.accuracy.comparison_contestants import bytes_of
from benchmarks.data import CONTESTS, Floats, _columns, _table
from benchmarks.writer import RAW, Results, version_of_code

import hushsum as hs
from hushsum.errors import PublicAssumption, SuspiciousParameter
from hushsum.planning import planned_tally

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 10.0, 1000.0)
AGES, AGE_BANDWIDTH = 20_000, 2.0
POINTS = 100_000
_QUERIES, _SEEDS, _TIMES, _REPEATS = 200, 2, 2, 4
_NOISE_FLOOR = 4.2
"""c(ε = 1, δ = 1e-6): the standard deviation of a kernel sum whose features have length 1."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer records, into build/")
    parser.add_argument("--parts", default="forest,functional,seconds", help="measure these, keep the others")
    options = parser.parse_args(arguments)
    quick = options.quick
    output = Results("error_floors", RAW / "quick" if quick else None)
    warnings.simplefilter("ignore", SuspiciousParameter)
    warnings.simplefilter("ignore", PublicAssumption)
    measure: dict[str, Callable[[], Any]] = {
        "forest": lambda: forest(20_000 if quick else None),
        "functional": lambda: functional(1 if quick else _REPEATS),
        "seconds": lambda: batches(2000 if quick else POINTS),
    }
    version = version_of_code().as_json()
    results = output.read({"versions": {}})
    for part in options.parts.split(","):
        results[part] = measure[part]()
        results["versions"][part] = version
    output.write(results)
    output.publish(report(results))
    print(report(results))
    return 0


def forest(records: int | None) -> dict[str, Any]:
    """Errors of the planned release over public seeds."""
    contest = CONTESTS["covtype"]()
    rows = contest.records[:records]
    queries = rows[np.random.default_rng(1).choice(len(rows), _QUERIES, replace=False)]
    truth = contest.kernel.exact_sum(rows, queries) / len(rows)
    best = hs.plan(
        records=len(rows), kernel=contest.kernel, bounds=contest.bounds, epsilon=1.0, delta=DELTA
    ).best
    errors, seconds, size = [], [], 0
    for seed in range(_SEEDS):
        start = time.process_time()
        tally = planned_tally(best, contest.kernel, bounds=contest.bounds, seed=seed).add(rows, threads=1)
        f = tally.release(
            epsilon=1.0, delta=DELTA, rows=best.rows, count_share=best.count_share, rounded=best.rounded
        )
        seconds.append(time.process_time() - start)
        errors.append(float(np.abs(f(queries) - truth).mean()))
        size = bytes_of(f)
    return {
        "records": len(rows), "columns": rows.shape[1], "method": best.method, "settings": best.settings,
        "planned": best.error, "errors": errors, "density": float(truth.mean()), "bytes": size,
        "seconds": min(seconds), "noise": math.sqrt(2.0 / math.pi) * _NOISE_FLOOR / len(rows),
    }  # fmt: skip


def functional(repeats: int) -> list[dict[str, float]]:
    """KL divergences from the exact density of ages, on average over releases."""
    ages = _columns(_table("adult"), ["age"])[:AGES].astype(np.float64)
    places = np.arange(ages.min(), ages.max() + 1.0)[:, None]
    kernel = hs.GaussianKernel(dim=1, bandwidth=AGE_BANDWIDTH)
    exact = kernel.exact_sum(ages, places) / len(ages) / (AGE_BANDWIDTH * math.sqrt(2.0 * math.pi))
    rows = []
    for epsilon in EPSILONS:
        found = []
        for _ in range(repeats):
            model = hs.PrivateDensity(
                method="functional", epsilon=epsilon, delta=DELTA, bandwidth=AGE_BANDWIDTH, bounds=(0, 120)
            ).fit(ages)
            found.append(divergence(exact, model.predict(places)))
        rows.append({"epsilon": epsilon, "divergence": float(np.mean(found)), "releases": repeats})
    return rows


def divergence(truth: Floats, estimate: Floats) -> float:
    """Of two sets of values, each made to sum to 1."""
    p, q = truth / truth.sum(), estimate / estimate.sum()
    return float(np.sum(p * np.log(p / q)))


def batches(points: int) -> list[dict[str, Any]]:
    """Processor seconds of ``query`` at that many points."""
    rng = np.random.default_rng(0)
    found = []
    for columns in (1, 2, 5):
        records, queries = rng.normal(0.5, 0.1, (5000, columns)), rng.uniform(size=(points, columns))
        density = hs.PrivateDensity(
            method="functional", epsilon=1.0, delta=DELTA, bandwidth=0.1, bounds=(0, 1)
        ).fit(records)
        seconds = _least(density, queries)
        found.append({"what": "functional density", "columns": columns, "points": points, "seconds": seconds})
    for columns in (5, 54):
        kernel = hs.GaussianKernel(dim=columns, bandwidth=0.2)
        tally = hs.fourier_features(kernel, features=4000).add(rng.normal(0.5, 0.1, (5000, columns)))
        f = tally.release(epsilon=1.0, delta=DELTA)
        seconds = _least(f, rng.uniform(size=(points, columns)))
        found.append({"what": "4000 features", "columns": columns, "points": points, "seconds": seconds})
    return found


def _least(function: Any, queries: Floats) -> float:
    query: Callable[[Floats], object] = function.query
    taken = []
    for _ in range(_TIMES):
        start = time.process_time()
        query(queries)
        taken.append(time.process_time() - start)
    return min(taken)


def report(results: dict[str, Any]) -> str:
    """The page."""
    forest_cover = results["forest"]
    versions = {
        part: f"version {each['number']}, sources {each['digest']}, {each['day']}"
        for part, each in results["versions"].items()
    }
    error = float(np.mean(forest_cover["errors"]))
    lines = [
        "# Error floors",
        "",
        "Made by `python -m benchmarks error_floors`: "
        + "; ".join(f"{part} by {version}" for part, version in versions.items())
        + ".",
        "",
        "| what | target | measured |",
        "|---|---:|---:|",
        f"| forest cover, {forest_cover['records']:,} × {forest_cover['columns']}, ε = 1, δ = 1e-6: "
        f"mean error over {len(forest_cover['errors'])} public seeds | ≤ 2e-4 | {error:.2e} "
        f"({', '.join(f'{each:.2e}' for each in forest_cover['errors'])}) |",
        f"| its plan; the noise alone | | {forest_cover['planned']:.2e}; {forest_cover['noise']:.1e} |",
        f"| its file; processor seconds to count and release | ≤ 64 MB | "
        f"{forest_cover['bytes'] / 1e6:.2f} MB; {forest_cover['seconds']:.0f} s |",
    ]
    for row in results["functional"]:
        lines.append(
            f"| functional density of ages, ε = {row['epsilon']:g}: KL divergence over "
            f"{row['releases']} releases | | {row['divergence']:.1e} |"
        )
    for row in results["seconds"]:
        lines.append(
            f"| {row['points']:,} points with error bars, {row['what']}, {row['columns']} columns | ≤ 2 s | "
            f"{row['seconds']:.2f} s |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
