"""How far a release with δ is from the error of its noise alone, by data set.

    HUSHSUM_DATA=... python -m benchmarks distance_to_floor [--quick]

Each data set is planned with declared quantities alone at ε = 1 and δ = 1e-6 and released as planned, for two
public seeds and four draws of the noise each, and so are as many random frequencies. Errors are mean absolute
errors of f(q)/N̂ at 300 queries from the data, over 3.37/N: the error of noise on a vector of length 1 when
the number of records is known. A release pays for that number too, which makes the noise about 1 + K times as
large at a mean similarity K; the table states it. The prediction of the approximation error was fitted to the
data sets that are marked.

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
from benchmarks.data import Floats
from benchmarks.plans.plan_validation import SOURCES, TUNED_ON, records_of
from benchmarks.writer import RAW, Results, version_of_code

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.planning import Option, planned_tally

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
)
QUICK = ("airfoil", "thyroid")
_QUERIES, _SEEDS, _DRAWS = 300, 2, 4
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
        rows = records_of(name)[:_MOST_RECORDS]
        yield from ((name, rows, bandwidth) for bandwidth in SOURCES[name].bandwidths)


def measured(rows: Floats, bandwidth: float) -> dict[str, Any]:
    """Errors over the floor, planned and measured."""
    number, dim = rows.shape
    kernel = hs.GaussianKernel(dim=dim, bandwidth=bandwidth)
    best = hs.plan(records=number, kernel=kernel, bounds=(0, 1), epsilon=1.0, delta=DELTA).best
    queries = rows[np.random.default_rng(1).choice(number, _QUERIES, replace=False)]
    truth = kernel.exact_sum(rows, queries) / number
    start = time.process_time()
    found = [one for seed in range(_SEEDS) for one in _errors(best, kernel, rows, queries, truth, seed)]
    seconds = (time.process_time() - start) / _SEEDS
    unit = FLOOR / number
    result = {
        "records": number,
        "columns": dim,
        "density": float(truth.mean()),
        "method": best.method,
        "settings": dict(best.settings),
        "planned": best.error / unit,
        "noise": float(np.mean([noise for _, noise in found])) / unit,
        "error": float(np.mean([error for error, _ in found])) / unit,
        "seconds": seconds,
        "bytes": best.size,
    }
    if best.method == "fourier_features":
        random = _errors(best, kernel, rows, queries, truth, 0, sobol=False)
        result["random"] = float(np.mean([error for error, _ in random])) / unit
    return result


def _errors(
    best: Option, kernel: Any, rows: Floats, queries: Floats, truth: Floats, seed: int, **frequencies: Any
) -> list[tuple[float, float]]:
    """The error of each draw of the noise, and what its distribution says of the noise alone."""
    if frequencies and "groups" not in best.settings:
        number = int(best.settings["features"])
        tally = hs.fourier_features(kernel, features=number, bounds=(0, 1), seed=seed, **frequencies)
    else:
        tally = planned_tally(best, kernel, bounds=(0, 1), seed=seed)
    tally.add(rows)
    found = []
    for _ in range(_DRAWS):
        f: Any = tally.release(epsilon=1.0, delta=DELTA, count_share=best.count_share)
        gain = f.reading.noise_gain(f.basis.prepare_queries(queries))
        deviations = np.sqrt(f.cell_variance * gain + np.square(truth * f.count_stderr)) / len(rows)
        noise = math.sqrt(2.0 / math.pi) * float(deviations.mean())
        found.append((float(np.abs(f(queries) - truth).mean()), noise))
    return found


def report(results: dict[str, Any]) -> str:
    """The page."""
    version = next(iter(results.values()))["version"]
    lines = [
        "# Distance to the noise floor",
        "",
        f"Measured by version {version['number']}, sources {version['digest']}, {version['day']}.",
        "",
        "Mean absolute errors of f(q)/N̂ at 300 queries from the data over 3.37/N, the error of noise on a",
        "vector of length 1 at ε = 1 and δ = 1e-6. *Noise* includes that of the number of records.",
        f"{_SEEDS} public seeds with {_DRAWS} draws of the noise each; as many random frequencies with one",
        f"seed and {_DRAWS} draws. Data sets with a star are those that the prediction of approximation",
        "errors was fitted to.",
        "",
        "| data | records × columns | bandwidth | mean similarity | planned release | planned | noise "
        "| measured | random frequencies | file | seconds |",
        "|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for key, each in results.items():
        name = each["data"]
        tuned = SOURCES[name].group in TUNED_ON
        settings = ", ".join(f"{value:,} {what}" for what, value in each["settings"].items())
        random = f"{each['random']:.1f}" if "random" in each else ""
        lines.append(
            f"| {name}{' *' if tuned else ''} | {each['records']:,} × {each['columns']} "
            f"| {key.split(', ')[1]} "
            f"| {each['density']:.2f} | {settings} | {each['planned']:.2f} | {each['noise']:.2f} "
            f"| {each['error']:.2f} | {random} | {each['bytes'] / 1e6:.1f} MB | {each['seconds']:.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
