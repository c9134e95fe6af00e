"""Plans against measured errors, on data that the constants of the plan were not fitted to.

    HUSHSUM_DATA=... python -m benchmarks.plan_validation

Leave one data set out: what a plan guesses is the mean kernel value of queries from the data, by two
constants. These are fitted to the other data sets, ``hs.plan`` is run with them in place of those shipped,
and its best option is released. The other constants (heaps on grids, chance of features, landmarks) were
fitted to the groups of ``validation_data.TUNED_ON``: the others are the testing half. Each data set is run as
it is, at ε = 0.1 and 1 with its bandwidths, and with δ at the last of them; and rounded to two significant
digits, and with a tenth of the records set to one value, at ε = 1. Hash rows are planned from a public
sample, as ``hs.plan(public=...)`` does. Landmarks, which take longer than plans may here, are planned and
released by name in 5 to 20 columns, with at most 6,000 records.

Writes ``plan_validation.json`` and ``.md`` to ``benchmarks/results`` by cells. The same command continues
an interrupted run; ``--again`` measures anew what another version measured; ``--quick`` runs three data sets
into ``build/plan_validation``.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from benchmarks.accuracy_data import Floats
from benchmarks.source_version import version_of_code
from benchmarks.validation_data import SOURCES, TUNED_ON, VARIANTS, records_of
from benchmarks.validation_report import write_report
from papers.data import data_folder

import hushsum as hs
from hushsum.bases.grid_weights import MAX_DIM
from hushsum.errors import SuspiciousParameter
from hushsum.kernels.base import Kernel
from hushsum.methods import method_named, prediction_request
from hushsum.methods.landmarks import MOST_COLUMNS
from hushsum.methods.landmarks import NAME as LANDMARKS
from hushsum.planning import Option
from hushsum.planning.automatic_method import planned_tally
from hushsum.planning.plan import AUTO

EPSILONS = (0.1, 1.0)
DELTA = 1e-6
QUICK = ("adult age", "age and hours", "airfoil")
MOST_RECORDS = 20_000
MOST_OF_LANDMARKS = 6000
_QUERIES = 300
_MAX_SECONDS = 1.0
_RELEASES = {"grid": 20, LANDMARKS: 6}
_FEW_RECORDS, _RELEASES_OF_FEW = 5000, 200
_FEWEST_SEEDS, _MOST_SEEDS = 6, 24
_INCREMENTS = 2_000_000_000
"""Public seeds of features and hash rows, and how many features of records may be counted for a cell: the
errors of one seed at all queries are as one draw, so that the mean of six is known to a third of itself. Each
seed has as many releases as make 24 in all, since the noise of the number of records is one draw as well.
"""

_SPREADS = tuple(np.geomspace(3.0, 20.0, 40).tolist())
_POWERS = tuple(np.linspace(0.2, 1.0, 33).tolist())
_HASH_ROWS = (200, 1000)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="measure all cells anew")
    parser.add_argument("--quick", action="store_true", help="three data sets, into build/")
    parser.add_argument("--report", action="store_true", help="only the table, from the JSON")
    parser.add_argument("--data", help="only these data sets, by name, with commas between")
    parser.add_argument("--cells", default="", help="only cells whose name matches this regular expression")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no cell after so many")
    parser.add_argument("--output", type=Path, help="where results go")
    options = parser.parse_args(arguments)
    output: Path = options.output or Path("build/plan_validation" if options.quick else "benchmarks/results")
    output.mkdir(parents=True, exist_ok=True)
    file = output / "plan_validation.json"
    version = version_of_code().as_json()
    results: dict[str, Any] = {"densities": [], "cells": []}
    if file.exists():
        results = json.loads(file.read_text(encoding="utf-8"))
    if not options.report:
        data_folder()
        started = time.perf_counter()
        chosen = options.data.split(",") if options.data else QUICK if options.quick else tuple(SOURCES)
        if not results["densities"]:
            results["densities"] = list(densities(chosen if options.quick else tuple(SOURCES)))
        if options.again:
            # Cells stay until they are measured again, each with the version that measured it.
            done = {cell["name"] for cell in results["cells"] if cell["version"] == version}
        else:
            done = {cell["name"] for cell in results["cells"]}
        for name, measure in cells(chosen, results["densities"]):
            if name in done or not re.search(options.cells, name):
                continue
            if time.perf_counter() - started > options.seconds:
                print("cells are left: call again", file=sys.stderr)
                break
            found = measure()
            print(f"{name}: {found['measured'] / found['planned']:.2f}", file=sys.stderr, flush=True)
            kept = [cell for cell in results["cells"] if cell["name"] != name]
            results["cells"] = [*kept, {"name": name, **found, "version": version}]
            file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    every = sum(1 for _ in cells(tuple(SOURCES), results["densities"]))
    print(write_report(results, output, every=every))
    return 0


@lru_cache(maxsize=2)
def rows_of(name: str, variant: str) -> Floats:
    """At most so many records, since a plan is validated as well with fewer."""
    return records_of(name, variant)[:MOST_RECORDS]


def queries_of(rows: Floats) -> Floats:
    """Drawn from the records, with their heaps."""
    return rows[np.random.default_rng(7).choice(len(rows), min(_QUERIES, len(rows)), replace=False)]


def densities(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The true mean kernel values, on a sample, of every data set as it is."""
    for name in names:
        rows = rows_of(name, VARIANTS[0])[:8000]
        for bandwidth in SOURCES[name].bandwidths:
            kernel = hs.GaussianKernel(dim=rows.shape[1], bandwidth=bandwidth)
            density = float(kernel.exact_sum(rows, rows[:300]).mean() / len(rows))
            yield {
                "data": name,
                "group": SOURCES[name].group,
                "dim": rows.shape[1],
                "bandwidth": bandwidth,
                "density": density,
            }


def fitted(found: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """The box in deviations and the power of the columns that fit these densities best: least squares of
    logarithms, every group of data sets with the same weight.
    """
    weight = np.array([1.0 / sum(b["group"] == a["group"] for b in found) for a in found])
    truth = np.log([each["density"] for each in found])

    def loss(spread: float, power: float) -> float:
        away = np.array([modelled(each, spread, power) for each in found]) - truth
        return float((weight * away**2).sum())

    return min(((s, p) for s in _SPREADS for p in _POWERS), key=lambda pair: loss(*pair))


def modelled(each: dict[str, Any], spread: float, power: float) -> float:
    """The logarithm of the density of normal records in a unit box that vary along dim^power columns."""
    variance = 1.0 / (spread * each["bandwidth"]) ** 2
    return float(-0.5 * each["dim"] ** power * math.log(1.0 + 2.0 * variance))


def cells(names: Sequence[str], found: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The name of every cell, and what measures it."""
    # The testing half first, and of that several columns: there plans are least certain.
    for name in sorted(
        names, key=lambda name: (SOURCES[name].group in TUNED_ON, len(SOURCES[name].columns) == 1)
    ):
        source = SOURCES[name]
        others = [each for each in found if each["group"] != source.group] or found
        constants = fitted(others)
        for variant in VARIANTS:
            plain = variant == VARIANTS[0]
            for bandwidth in source.bandwidths if plain else source.bandwidths[-1:]:
                # In one column a grid keeps pure ε whatever δ is.
                last = bandwidth == source.bandwidths[-1]
                for delta in (None, DELTA) if plain and last and len(source.columns) > 1 else (None,):
                    for epsilon in EPSILONS if plain else EPSILONS[-1:]:
                        words = f"{name}, {variant}, h {bandwidth:.3g}, ε {epsilon:g}{', δ' if delta else ''}"
                        yield words, _Planned(name, variant, bandwidth, epsilon, delta, constants)
        if MAX_DIM < len(source.columns) <= MOST_COLUMNS:
            for bandwidth in source.bandwidths:
                for epsilon in EPSILONS:
                    words = f"{name}, landmarks, h {bandwidth:.3g}, ε {epsilon:g}"
                    yield words, _Planned(name, VARIANTS[0], bandwidth, epsilon, None, constants, LANDMARKS)
        for delta in (None, DELTA):
            words = f"{name}, hash rows, ε 1{', δ' if delta else ''}"
            yield words, _Hashed(name, VARIANTS[0], source.bandwidths[-1], delta)


class _Planned:
    """One plan from declared quantities, and what it came to; or of landmarks, chosen or not."""

    def __init__(
        self,
        name: str,
        variant: str,
        bandwidth: float,
        epsilon: float,
        delta: float | None,
        constants: tuple[float, float],
        method: str = AUTO,
    ) -> None:
        self.name, self.variant, self.bandwidth = name, variant, bandwidth
        self.epsilon, self.delta, self.constants, self.method = epsilon, delta, constants, method

    def __call__(self) -> dict[str, Any]:
        named = self.method != AUTO
        rows = rows_of(self.name, self.variant)[: MOST_OF_LANDMARKS if named else None]
        kernel = hs.GaussianKernel(dim=rows.shape[1], bandwidth=self.bandwidth)
        with mock.patch.multiple(
            prediction_request, BOX_IN_DEVIATIONS=self.constants[0], EFFECTIVE_POWER=self.constants[1]
        ):
            plan = hs.plan(
                records=len(rows),
                kernel=kernel,
                bounds=(0.0, 1.0),
                epsilon=self.epsilon,
                delta=self.delta,
                method=self.method,
                max_seconds=math.inf if named else _MAX_SECONDS,
            )
        best = plan.best
        errors, density = measured(rows, kernel, best, self.epsilon, self.delta)
        return {
            "kind": self.method if named else "declared",
            "data": self.name,
            "group": SOURCES[self.name].group,
            "variant": self.variant,
            "columns": rows.shape[1],
            "records": len(rows),
            "bandwidth": self.bandwidth,
            "epsilon": self.epsilon,
            "delta": self.delta or 0.0,
            "method": best.method,
            "settings": best.settings,
            "count_share": best.count_share,
            "planned_density": plan.density,
            "density": density,
            "constants": self.constants,
            "planned": best.error,
            "measured": float(np.mean(errors)),
            "spread": float(np.std(errors)),
            "releases": len(errors),
        }


class _Hashed:
    """Hash rows planned from a public sample of a hundredth of the records, 500 at least."""

    def __init__(self, name: str, variant: str, bandwidth: float, delta: float | None) -> None:
        self.name, self.variant, self.bandwidth, self.delta = name, variant, bandwidth, delta

    def __call__(self) -> dict[str, Any]:
        rows = rows_of(self.name, self.variant)
        kernel = hs.EuclideanKernel(dim=rows.shape[1], bandwidth=self.bandwidth)
        sample = np.random.default_rng(5).permutation(len(rows))[: max(500, len(rows) // 100)]
        best = hs.plan(
            records=len(rows),
            kernel=kernel,
            epsilon=1.0,
            delta=self.delta,
            public=rows[sample],
            rows=list(_HASH_ROWS),
        ).best
        errors, density = measured(rows, kernel, best, 1.0, self.delta)
        return {
            "kind": "public sample",
            "data": self.name,
            "group": SOURCES[self.name].group,
            "variant": self.variant,
            "columns": rows.shape[1],
            "records": len(rows),
            "bandwidth": self.bandwidth,
            "epsilon": 1.0,
            "delta": self.delta or 0.0,
            "method": best.method,
            "settings": best.settings,
            "count_share": best.count_share,
            "density": density,
            "planned": best.error,
            "measured": float(np.mean(errors)),
            "spread": float(np.std(errors)),
            "releases": len(errors),
        }


def measured(
    rows: Floats, kernel: Kernel, best: Option, epsilon: float, delta: float | None
) -> tuple[list[float], float]:
    """Errors of releases as planned, at queries from the data, and the mean kernel value there."""
    queries = queries_of(rows)
    truth = kernel.exact_sum(rows, queries) / len(rows)
    method, errors = method_named(best.method), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousParameter)
        if method.tally is None:
            for seed in range(_RELEASES[best.method]):
                f = method.release(rows, kernel, bounds=(0.0, 1.0), epsilon=epsilon, seed=seed, **best.sizes)
                errors.append(float(np.abs(f(queries) - truth).mean()))
            return errors, float(truth.mean())
        bounds = (0.0, 1.0) if method.needs_bounds else None
        on_grid = best.method in _RELEASES
        affordable = _INCREMENTS // (len(rows) * best.rows)
        seeds = 1 if on_grid else max(_FEWEST_SEEDS, min(_MOST_SEEDS, affordable))
        releases = _RELEASES[best.method] if on_grid else _MOST_SEEDS // seeds
        if on_grid and len(rows) < _FEW_RECORDS:
            releases = _RELEASES_OF_FEW
        for seed in range(seeds):
            tally = planned_tally(best, kernel, bounds=bounds, seed=seed).add(rows)
            for _ in range(releases):
                f = tally.release(
                    epsilon=epsilon,
                    delta=delta if best.delta else None,
                    rows="auto" if on_grid else best.rows,
                    count_share=best.count_share,
                    rounded=best.rounded,
                )
                errors.append(float(np.abs(f(queries) - truth).mean()))
    return errors, float(truth.mean())


if __name__ == "__main__":
    raise SystemExit(main())
