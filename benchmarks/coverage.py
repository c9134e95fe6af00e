"""How many 95 % intervals hold, per method, data, heaping and ε: ``python -m benchmarks.coverage``.

Each cell is 40 releases, whose errors at all queries are few draws, each with a noise of its own and, where
a method has one, a public seed of its own, at 150 queries drawn from the data and 50 fixed ones, which are
drawn from the declared box; on plain data also at queries found by climbing on the released function
itself, for which intervals are not meant. A cell's *mean* is over releases and queries, its *worst* is the
release with the fewest that hold, of the first 10. *exact* is the worst release of intervals that are right
by construction (1.96 times the root mean square error that each query has over these releases): below 0.85
it says that the queries of the cell have so few independent errors that no interval of 95 % could do
better.

    HUSHSUM_DATA=… python -m benchmarks.coverage [--quick] [--again] [--only METHOD] [--half "held out"]
    HUSHSUM_DATA=… python -m benchmarks.coverage --bands

Cells that ``results/coverage.json`` contains are not measured again unless ``--again`` is given.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.coverage_data import HEAPS, PLAIN, SOURCES, Array, Source, heaped, records_of
from benchmarks.coverage_methods import METHODS, Measured
from benchmarks.coverage_report import write_report
from benchmarks.source_version import version_of_code

EPSILONS = (0.1, 1.0)
WORST_OF, QUERIES, FIXED, CLIMBERS, BANDS = 10, 150, 50, 10, 20
RESULTS = Path(__file__).parent / "results"
_CLIMBS = 12


class Truth:
    """Exact mean kernel values at the queries of one variant of the data."""

    def __init__(self, rows: Array, source: Source) -> None:
        self.rows, self.source = rows, source
        low, high = np.array(source.bounds).T
        self.centre = (low + high) / 2
        rng = np.random.default_rng(5)
        drawn = rows[rng.choice(len(rows), QUERIES)]
        self.queries = np.concatenate([drawn, rng.uniform(low, high, (FIXED, source.dim))])
        # Heaped data have few distinct records: their kernels are summed once, with weights.
        self.distinct, self.repeats = np.unique(rows, axis=0, return_counts=True)
        self._known: dict[str, Array] = {}

    def at(self, kernel: Any, queries: Array) -> Array:
        """Mean kernel values."""
        similar = kernel.similarity(self.distinct - self.centre, queries - self.centre)
        mean: Array = self.repeats @ similar / len(self.rows)
        return mean

    def values(self, kernel: Any) -> Array:
        """At the queries of every release."""
        if kernel.name not in self._known:
            self._known[kernel.name] = self.at(kernel, self.queries)
        return self._known[kernel.name]


def climbed(f: Any, truth: Truth, kernel: Any, seed: int) -> tuple[Array, Array]:
    """Queries from the data, moved uphill on the released function, and the truth there."""
    rng = np.random.default_rng(seed)
    best = truth.queries[rng.choice(QUERIES, CLIMBERS)]
    value = f(best)
    for _ in range(_CLIMBS):
        tried = best + rng.normal(0.0, 0.3 * truth.source.bandwidth, best.shape)
        found = f(tried)
        better = found > value
        best, value = np.where(better[:, None], tried, best), np.where(better, found, value)
    return best, truth.at(kernel, best)


def seeds_of(key: str, number: int) -> Sequence[int]:
    """Of the releases of one cell. No two cells have the same: otherwise all of them would have the same few
    errors of N̂, and be above or below 0.95 together.
    """
    start = (zlib.crc32(key.encode()) % (1 << 24)) << 6
    return range(start, start + number)


def measured(key: str, method: Measured, source: Source, truth: Truth, epsilon: float) -> dict[str, Any]:
    """One cell."""
    heap = key.split(" | ")[2]
    kernel = method.kernel(source)
    exact = truth.values(kernel)
    errors, reach, held, climbs = [], [], [], []
    start = time.process_time()
    for seed in seeds_of(key, method.releases):
        f = method.make(truth.rows, source, epsilon, seed)
        answers = f.query(truth.queries)
        errors.append(answers.value - exact)
        reach.append(answers.stderr)
        if not np.isfinite(answers.stderr).any():
            break
        held.append((answers.lower <= exact) & (exact <= answers.upper))
        if heap == PLAIN and not method.slow:
            queries, true = climbed(f, truth, kernel, seed)
            found = f.query(queries)
            climbs.append(float(((found.lower <= true) & (true <= found.upper)).mean()))
    error, stderr = np.array(errors), np.array(reach)
    cell: dict[str, Any] = {
        "method": method.name, "data": source.name, "half": source.half, "dim": source.dim, "heap": heap,
        "epsilon": epsilon, "releases": len(errors), "commit": version_of_code().commit,
        "seconds": round(time.process_time() - start, 2),
    }  # fmt: skip
    if not np.isfinite(stderr).any():
        return {**cell, "states": False}
    first = error[:WORST_OF]
    own = 1.96 * np.sqrt((first**2).mean(axis=0))
    kept, parts = np.array(held), (slice(0, QUERIES), slice(QUERIES, None))
    per_release = kept[:, parts[0]].mean(axis=1)
    fixed = kept[:, parts[1]].mean(axis=1)
    ideal = (np.abs(first) <= own)[:, parts[0]].mean(axis=1)
    ratio = np.sqrt((stderr[:, parts[0]] ** 2).mean() / (error[:, parts[0]] ** 2).mean())
    return {
        **cell,
        "states": True,
        "mean": round(float(per_release.mean()), 4),
        "worst": round(float(per_release[:WORST_OF].min()), 4),
        "fixed_mean": round(float(fixed.mean()), 4),
        "fixed_worst": round(float(fixed[:WORST_OF].min()), 4),
        "exact_worst": round(float(ideal.min()), 4),
        "climbed": round(float(np.mean(climbs)), 4) if climbs else None,
        "error": float(f"{np.abs(error[:, parts[0]]).mean():.3g}"),
        "stderr_over_rms": round(float(ratio), 2),
    }


def together(key: str, method: Measured, source: Source, truth: Truth, epsilon: float) -> float:
    """The share of releases whose simultaneous intervals hold at all queries from the data."""
    exact = truth.values(method.kernel(source))[:QUERIES]
    held = []
    for seed in seeds_of(key, BANDS):
        f = method.make(truth.rows, source, epsilon, seed)
        answers = f.query(truth.queries[:QUERIES], simultaneous=True)
        held.append(bool(np.all((answers.lower <= exact) & (exact <= answers.upper))))
    return float(np.mean(held))


def main() -> None:
    """Measure what is missing, and write both files after every data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one data set of one column, ε = 1")
    parser.add_argument("--again", action="store_true", help="measure cells that are known")
    parser.add_argument("--only", default="", help="methods, separated by commas")
    parser.add_argument("--half", default="", help="tuning or held out")
    parser.add_argument("--data", default="", help="one data set")
    parser.add_argument("--bands", action="store_true", help="only simultaneous intervals, on plain data")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    file = given.output / "coverage.json"
    cells: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    folder, chosen = Path(os.environ["HUSHSUM_DATA"]), [each for each in given.only.split(",") if each]
    warnings.simplefilter("ignore", UserWarning)
    for source in SOURCES:
        if given.half not in ("", source.half) or given.data not in ("", source.name):
            continue
        if given.quick and source is not SOURCES[0]:
            continue
        rows = records_of(source, folder)
        for heap in HEAPS[:1] if given.bands else HEAPS:
            truth = Truth(heaped(rows, heap, source), source)
            for method in METHODS:
                if not method.least <= source.dim <= method.most or (chosen and method.name not in chosen):
                    continue
                for epsilon in EPSILONS[1:] if given.quick else EPSILONS:
                    key = f"{method.name} | {source.name} | {heap} | {epsilon:g}"
                    if given.bands:
                        if heap == PLAIN and method.bands and "together" not in cells[key]:
                            cells[key]["together"] = together(key, method, source, truth, epsilon)
                            print(key, cells[key]["together"], flush=True)
                        continue
                    if key in cells and not given.again:
                        continue
                    cells[key] = measured(key, method, source, truth, epsilon)
                    print(key, {k: v for k, v in cells[key].items() if k in _SHOWN}, flush=True)
            given.output.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(cells, indent=1) + "\n")
    write_report(cells, given.output / "coverage.md")


_SHOWN = ("states", "mean", "worst", "fixed_mean", "exact_worst", "climbed", "stderr_over_rms", "seconds")

if __name__ == "__main__":
    main()
