"""Plans against measured errors in boxes that are wider than the records.

    HUSHSUM_DATA=... python -m benchmarks concentrated [--adbench FOLDER]

Most records lie in a small part of a wide box, where the guess of a plan is worst. Columns of each data set
are declared with bounds a quarter or a half wider than their range, or six times as wide; ``hs.plan`` is run
with defaults, and its best option is released. The constants of the guess (`LIKELY_POWERS`) were chosen on
the columns of ``TUNED_ON``. Scored are the other data sets and
those of a folder of ADBench's ``.npz`` files, which no constant was chosen on.

The same command continues an interrupted run.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.data import Floats, _table
from benchmarks.plans.plan_validation import _markdown, _summary, measured, ratio
from benchmarks.writer import Results
from papers.data import data_folder

import hushsum as hs
from hushsum.planning import Plan

TUNED_ON = ("covtype", "nyc_payroll_sample", "sf_salaries_2011_2014", "protein_casp", "adult", "kdd_http",
            "shuttle", "pums_california_1000", "gas_drift_8batches", "naval_propulsion")  # fmt: skip
SCORED_ON = ("mammography", "annthyroid", "howell1", "airfoil", "occupancy", "cps_earnings_2004", "htru2",
             "glove_twitter_25d", "skin_segmentation")  # fmt: skip
_LABELS = ("target", "split", "batch", "concentration", "year")
_TWINS = ("http", "smtp", "shuttle", "mammography", "annthyroid", "skin", "cover")
"""ADBench's names of data sets that are among those above."""

BANDWIDTHS = {1: (0.003, 0.03, 0.1), 2: (0.02, 0.1), 5: (0.1, 0.3), 10: (0.2, 0.4), 57: (0.05, 0.2, 0.5)}
"""By the number of columns, in parts of the declared range."""

EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-6
MOST_RECORDS = 4000
_WIDER = (1.25, 1.5)
_VERY_WIDE = 6.0
_EFFORT = 0.2
_TURNS = {1: 3, 2: 2}
"""How many choices of the columns of each data set are planned for, by their number; else one."""

_OPENING = """\
# Plans where records are concentrated

Measured over planned mean absolute error of f(q)/N at queries from the data, for `hs.plan(...).best` with
defaults. Bounds are a quarter or a half wider than the range of the columns, or six times as wide, and
bandwidths a fixed part of them, so that the true f(q)/N is anything from 0 to 1. At most 4,000 records of
each data set; a grid is released 20 times (200 times with fewer records), features with 6 seeds or more and
landmarks with 3. Pure ε of 0.1, 1 and 10; in several columns also ε = 1 with δ = 10⁻⁶.

*Tuning* are the data sets that the constants of the guessed density were chosen on; *held out* are the
others, and those of ADBench.
"""


def rows_of(source: str) -> Floats:
    """Numeric columns that vary, in a fixed random order; of a file of the data folder, or of an ``.npz``."""
    if source.endswith(".npz"):
        with np.load(source, allow_pickle=True) as file:
            rows = np.asarray(file["X"], np.float64)
    else:
        table = _table(source)
        columns = []
        for name in table.column_names:
            if name in _LABELS:
                continue
            values = table[name].to_numpy(zero_copy_only=False)
            if np.issubdtype(values.dtype, np.number):
                columns.append(values.astype(np.float64))
        rows = np.column_stack(columns)
    rows = rows[np.isfinite(rows).all(axis=1)]
    rows = np.random.default_rng(1).permutation(rows)[:MOST_RECORDS]
    return rows[:, rows.std(axis=0) > 0.0]


def in_box(rows: Floats, wider: float, seed: int) -> Floats:
    """Rows in the unit cube, whose sides are this number of times the range of the columns."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    start = low - (wider - 1.0) * (high - low) * np.random.default_rng(seed).random(rows.shape[1])
    unit: Floats = (rows - start) / (wider * (high - low))
    return unit


def cells(sources: Sequence[str], columns: Sequence[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of every cell, and what is planned for it."""
    for source in sources:
        rows = rows_of(source)
        seed = zlib.crc32(Path(source).stem.encode())
        for dim in columns:
            if dim > rows.shape[1]:
                continue
            for turn in range(min(_TURNS.get(dim, 1), rows.shape[1])):
                first = (seed + turn) % rows.shape[1]
                chosen = rows[:, (first + np.arange(dim)) % rows.shape[1]]
                for wider in (_WIDER[(seed + turn) % 2], _VERY_WIDE):
                    for bandwidth in BANDWIDTHS[dim]:
                        promises = [(each, None) for each in EPSILONS]
                        for epsilon, delta in promises + ([(1.0, DELTA)] if dim > 1 else []):
                            name = (
                                f"{Path(source).stem}, {dim} columns, {turn}, box × {wider:g}, "
                                f"h {bandwidth:g}, ε {epsilon:g}{', δ' if delta else ''}"
                            )
                            yield (
                                name,
                                {
                                    "rows": in_box(chosen, wider, seed),
                                    "bandwidth": bandwidth,
                                    "epsilon": epsilon,
                                    "delta": delta,
                                },
                            )


def measure(rows: Floats, bandwidth: float, epsilon: float, delta: float | None) -> dict[str, Any]:
    """A plan and what it came to."""
    kernel = hs.GaussianKernel(dim=rows.shape[1], bandwidth=bandwidth)
    plan: Plan = hs.plan(
        records=len(rows), kernel=kernel, bounds=(0.0, 1.0), epsilon=epsilon, delta=delta, comparison=False
    )
    errors, density = measured(rows, kernel, plan.best, epsilon, delta, effort=_EFFORT)
    return {
        "columns": rows.shape[1],
        "method": plan.best.method,
        "delta": delta or 0.0,
        "planned": plan.best.error,
        "sparse": plan.best.sparse_error,
        "dense": plan.best.dense_error,
        "density": density,
        "measured": float(np.mean(errors)),
    }


def write_report(results: Sequence[dict[str, Any]], output: Results) -> Path:
    """Write ``concentrated.md``."""
    parts = [_OPENING]
    for title, own in (
        ("Held out", [each for each in results if each["source"] not in TUNED_ON]),
        ("Tuning", [each for each in results if each["source"] in TUNED_ON]),
    ):
        groups: dict[str, list[float]] = {}
        for cell in sorted(own, key=lambda cell: (cell["columns"], cell["method"], cell["delta"])):
            what = f"{cell['columns']} columns, {cell['method']}, {'δ' if cell['delta'] else 'pure ε'}"
            groups.setdefault(what, []).append(ratio(cell))
        groups["all"] = [ratio(each) for each in own]
        head = ["what", "cells", "smallest", "one in ten below", "median", "one in ten above", "largest",
                "within 1.5 ×"]  # fmt: skip
        rows = [[name, *_summary(values)] for name, values in groups.items() if values]
        parts += [f"## {title}: {len({each['source'] for each in own})} data sets\n", _markdown(head, rows)]
    far = sorted((each for each in results if not 0.5 <= ratio(each) <= 2.0), key=ratio)
    if far:
        lines = [
            [each["name"], each["method"], f"{ratio(each):.2f}", f"{each['density']:.2g}"] for each in far
        ]
        parts += ["## Beyond 2 ×\n", _markdown(["cell", "method", "ratio", "density"], lines)]
    return output.publish("\n".join(parts))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--adbench", type=Path, help="a folder of ADBench's .npz files")
    parser.add_argument("--columns", default="1,2,5,10,57", help="numbers of columns, with commas between")
    parser.add_argument("--sources", default="", help="only data sets whose name contains one of these")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no cell after this many")
    options = parser.parse_args(arguments)
    data_folder()
    sources = [*SCORED_ON, *TUNED_ON]
    for path in sorted(options.adbench.glob("*.npz")) if options.adbench else ():
        # Without its number: 5_campaign.
        if path.stat().st_size and path.stem.partition("_")[2] not in _TWINS:
            sources.append(str(path))
    wanted = [each for each in options.sources.split(",") if each]
    sources = [each for each in sources if not wanted or any(word in Path(each).stem for word in wanted)]
    output = Results("concentrated")
    results: list[dict[str, Any]] = output.read([])
    done, started = {each["name"] for each in results}, time.perf_counter()
    for source in sources:
        for name, about in cells([source], [int(each) for each in options.columns.split(",")]):
            if name in done or time.perf_counter() - started > options.seconds:
                continue
            found = measure(**about)
            results.append({"name": name, "source": Path(source).stem, **found})
            print(f"{name}: {found['method']}, {ratio(found):.2f}", file=sys.stderr, flush=True)
        output.write(results)
    print(write_report(results, output))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
