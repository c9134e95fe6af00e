"""How far a release with δ is from the error of its noise alone, by data set.

    HUSHSUM_DATA=... python -m benchmarks distance_to_floor [--quick]

Each data set is planned with declared quantities alone at ε = 1 and δ = 1e-6 and released as planned, for a
public seed and two draws of the noise. Answers are those of the features alone, and of the same releases
sharpened with points that are found in them, as ``hs.release`` returns them. Errors are mean absolute errors
of f(q)/N̂ at 300 queries from the data and at 200 random places of the box, over 3.37/N: the error of noise on
a vector of length 1 when the number of records is known. A release pays for that number too, which makes the
noise about 1 + K times as large at a mean similarity K; the table states it. The prediction of the
approximation error was fitted to the data sets that are marked; the search for points was made with cod_rna,
protein, glove, shuttle, naval propulsion and forest cover in view.

``--quick`` runs two data sets and keeps the results in ``build``.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks.data import Floats, _table
from benchmarks.plans.plan_validation import SOURCES, TUNED_ON, records_of
from benchmarks.writer import RAW, Results, version_of_code

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.methods import FOURIER_FEATURES
from hushsum.planning import planned_tally

DELTA = 1e-6
FLOOR = 3.37
NAMES = (
    "pulsar 4",
    "occupancy",
    "airfoil",
    "mammography",
    "thyroid",
    "cod_rna",
    "pulsar",
    "shuttle",
    "protein",
    "glove",
    "naval",
    "forest cover",
    "gas drift",
)
QUICK = ("airfoil", "thyroid")
WIDE = {
    "naval": ("naval_propulsion", 16, 0.2),
    "gas drift": ("gas_drift_8batches", 128, 1.0),
    "forest cover": ("covtype", 54, 0.5),
}
"""Columns of a file, in the ranges that the data have, rounded outwards to two digits, and a bandwidth."""
_QUERIES, _PLACES, _DRAWS = 300, 200, 2
_MOST_RECORDS = 60_000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two data sets, into build/")
    options = parser.parse_args(arguments)
    output = Results("distance_to_floor", RAW / "quick" if options.quick else None)
    warnings.simplefilter("ignore", SuspiciousParameter)
    version = version_of_code().as_json()
    results = output.read({})
    for name, rows, bandwidth in data(QUICK if options.quick else NAMES):
        key = f"{name}, {bandwidth:g}"
        if results.get(key, {}).get("version") != version:
            results[key] = {**measured(rows, bandwidth), "version": version, "data": name}
            output.write(results)
            print(key, results[key], flush=True)
    output.publish(report(results))
    return 0


def data(names: Sequence[str]) -> Iterator[tuple[str, Floats, float]]:
    """Records in their declared unit cube, in random order, and bandwidths."""
    for name in names:
        if name in WIDE:
            yield name, _wide(*WIDE[name][:2])[:_MOST_RECORDS], WIDE[name][2]
        else:
            rows = records_of(name)[:_MOST_RECORDS]
            yield from ((name, rows, bandwidth) for bandwidth in SOURCES[name].bandwidths)


def _wide(file: str, columns: int) -> Floats:
    table = _table(file)
    kept = [each for each in table.column_names if pa.types.is_primitive(table.schema.field(each).type)]
    rows = np.column_stack([table[each].to_numpy().astype(np.float64) for each in kept[:columns]])
    rows = np.random.default_rng(1).permutation(rows[np.isfinite(rows).all(axis=1)])
    low, high = rows.min(axis=0), rows.max(axis=0)
    step = 10.0 ** np.floor(np.log10(np.maximum(high - low, 1e-12))) / 10.0
    low, high = np.floor(low / step) * step, np.ceil(high / step) * step
    unit: Floats = (rows - low) / np.where(high > low, high - low, 1.0)
    return unit


def measured(rows: Floats, bandwidth: float) -> dict[str, Any]:
    """Errors over the floor, planned and measured."""
    number, dim = rows.shape
    kernel = hs.GaussianKernel(dim=dim, bandwidth=bandwidth)
    best = hs.plan(records=number, kernel=kernel, bounds=(0, 1), epsilon=1.0, delta=DELTA).best
    rng = np.random.default_rng(1)
    places = {
        "records": rows[rng.choice(number, _QUERIES, replace=False)],
        "empty": rng.uniform(size=(_PLACES, dim)),
    }
    truths = {name: kernel.exact_sum(rows, queries) / number for name, queries in places.items()}
    tally = planned_tally(best, kernel, bounds=(0, 1), seed=0).add(rows)
    found, seconds = [], 0.0
    for _ in range(_DRAWS):
        f: Any = tally.release(epsilon=1.0, delta=DELTA, count_share=best.count_share)
        gain = f.reading.noise_gain(f.basis.prepare_queries(places["records"]))
        deviations = np.sqrt(f.cell_variance * gain + np.square(truths["records"] * f.count_stderr))
        one = {"noise": math.sqrt(2.0 / math.pi) * float(deviations.mean()) / FLOOR}
        start = time.process_time()
        versions = {"plain": f, "sharp": f.sharpened() if best.method == FOURIER_FEATURES else f}
        seconds += time.process_time() - start
        for version, function in versions.items():
            for name, queries in places.items():
                answers, truth = function.query(queries), truths[name]
                error = float(np.abs(answers.value - truth).mean())
                held = float(((answers.lower <= truth) & (truth <= answers.upper)).mean())
                one |= {f"{version} {name}": error * number / FLOOR, f"{version} {name} held": held}
        found.append(one)
    return {
        "records": number,
        "columns": dim,
        "density": float(truths["records"].mean()),
        "settings": dict(best.settings),
        "planned": best.error * number / FLOOR,
        "seconds": seconds / _DRAWS,
        "bytes": best.size,
        **{each: float(np.mean([one[each] for one in found])) for each in found[0]},
    }


def report(results: dict[str, Any]) -> str:
    """The page."""
    version = next(iter(results.values()))["version"]
    lines = [
        "# Distance to the noise floor",
        "",
        f"Measured by version {version['number']}, sources {version['digest']}, {version['day']}.",
        "",
        "Mean absolute errors of f(q)/N̂ over 3.37/N, the error of noise on a vector of length 1 at ε = 1",
        "and δ = 1e-6, at 300 queries from the data and at 200 random places of the box. *Noise* includes",
        f"that of the number of records. {_DRAWS} draws of the noise. First the features alone, then the",
        "same releases sharpened with points that are found in them, which takes the stated seconds of",
        "processor time, and how many of their intervals hold at a level of 0.95. Data sets with a star are",
        "those that the prediction of approximation errors was fitted to.",
        "",
        "| data | records × columns | bandwidth | mean similarity | planned release | planned | noise "
        "| features alone | sharpened | held "
        "| empty places: features alone | sharpened | held | file | seconds |",
        "|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for key, each in results.items():
        name = each["data"]
        tuned = name in SOURCES and SOURCES[name].group in TUNED_ON
        settings = ", ".join(f"{value:,} {what}" for what, value in each["settings"].items())
        lines.append(
            f"| {name}{' *' if tuned else ''} | {each['records']:,} × {each['columns']} "
            f"| {key.split(', ')[1]} "
            f"| {each['density']:.2f} | {settings} | {each['planned']:.2f} | {each['noise']:.2f} "
            f"| {each['plain records']:.2f} | {each['sharp records']:.2f} | {each['sharp records held']:.2f} "
            f"| {each['plain empty']:.2f} | {each['sharp empty']:.2f} | {each['sharp empty held']:.2f} "
            f"| {each['bytes'] / 1e6:.1f} MB | {each['seconds']:.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
