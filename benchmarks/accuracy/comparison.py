"""All methods compared: every method on every data set that suits it, ε from 0.1 to 1, with and without δ.

``python -m benchmarks comparison --again`` measures everything anew with the current code, in about an hour
on two cores. A part is one method on one data set; two are measured at a time, and each is kept when it is
done: an interrupted run is continued by the same command. All parts of a file are of one version of the code,
which the file names; a part of another version is refused without ``--again``. ``--again`` with ``--data`` or
``--parts`` measures only these anew, each with the version that measured it.

``--seconds`` begins no part after that many, ``--quick`` runs few releases on two data sets and keeps the
results in ``build``, and ``--report`` makes tables and pictures again from the raw results. Data are public:
a comparison like this one on private data would leak.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmarks.accuracy.comparison_contestants import (
    ASSUMED_RECORDS,
    CONTESTANTS,
    CURVES,
    Cell,
    auto_cells,
    build_times,
    contestant_named,
    exact_density_seconds,
    hash_cells,
    lsq_rff_cells,
    race_of,
    runs,
    scaling,
)
from benchmarks.accuracy.comparison_report import write_report
from benchmarks.data import COLUMNS, CONTESTS, SETS, Contest, on_salary_grid, sample_of
from benchmarks.writer import RAW, Results, Version, version_of_code
from papers.data import data_folder

SCALING = "scaling"
QUICK = ("salaries", "nyc")
_MOST_RECORDS = 100_000

_FEW_RECORDS = 5000

_FUNCTIONS = ("nyc", "sf")
_VARIANTS = (*_FUNCTIONS, "nyc_rounded", "nyc_heaped", "incomes")
_FIRST = (
    *("auto", "grid", "lsq_fgt", "lsq_rff", "landmarks", "fourier_features", "histogram", "hermite"),
    *("kme", "function", "sketch", "exact", "privbayes", "pfda", "fourier_series", "bernstein"),
    *("trigonometric", "mwem"),
)
"""The order of methods: the most informative parts come first."""

_GRIDS_AND_FEATURES = 3
"""Columns up to which features are left out."""

_WITH_HASH_ROWS = ("salaries", "skin", "cod_rna", "covtype")
_ONLY_ON = {
    "landmarks": ("pulsar_4", "airfoil"),
    "privbayes": ("salaries", "earnings", "skin", "pulsar_4", "cod_rna"),
    "mwem": ("salaries",),
    **dict.fromkeys(("kme", "bernstein"), ("salaries", "earnings", "skin")),
    "trigonometric": ("salaries", "earnings"),
}
"""Slow baselines, which err several times more than others wherever they run; and landmarks where ``auto``
releases something else, since its row is that of landmarks on the other data sets. Table 3 of
``papers/private_race`` has those on skin.
"""

_ON_FUNCTIONS = ("grid", "bernstein", "histogram", "lsq_fgt", "fourier_series", "privbayes", "kme", "pfda")
_LISTS = ("cells", "exact", "scaling", "builds", "parts")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--again", action="store_true", help="replace what another version measured")
    parser.add_argument("--quick", action="store_true", help="few releases, two data sets, into build/")
    parser.add_argument("--report", action="store_true", help="only tables and pictures, from the JSON")
    parser.add_argument("--data", help="only these data sets, or scaling")
    parser.add_argument("--parts", help="only these: names of methods, auto, sketch, exact, function")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no part after this many")
    parser.add_argument("--jobs", type=int, default=2, help="parts that are measured at a time")
    parser.add_argument("--output", type=Path, help="where results go")
    options = parser.parse_args(arguments)
    output = Results("comparison", options.output or (RAW / "quick" if options.quick else None))
    results = output.read()
    if not options.report:
        data_folder()
        version, some = version_of_code(), bool(options.data or options.parts)
        results = _continued(results, version, again=options.again, some=some, quick=options.quick)
        names = options.data.split(",") if options.data else QUICK if options.quick else (*CONTESTS, SCALING)
        requested = options.parts.split(",") if options.parts else None
        done = {
            part["name"]
            for part in results["parts"]
            if not options.again or part.get("version", results["version"])["digest"] == version.digest
        }
        left = [each for each in parts(names, requested, quick=options.quick) if " ".join(each) not in done]
        _measure_all(left, results, output, options, version)
    if results is None:
        raise SystemExit("there are no results to report: measure first")
    every = [" ".join(each) for each in parts((*CONTESTS, SCALING), None, quick=False)]
    missing = [name for name in every if name not in {part["name"] for part in results["parts"]}]
    print(write_report(results, output, parts=len(every), missing=[] if options.quick else missing))
    return 0


def _continued(
    found: dict[str, Any] | None, version: Version, *, again: bool, some: bool, quick: bool
) -> dict[str, Any]:
    """Results of this version to add to, or of another one where only ``some`` parts are to be replaced."""
    if found is not None and found.get("version", {}).get("digest") == version.digest:
        return found
    if found is not None and again and some:
        return found
    if found is not None and not again:
        raise SystemExit("the results are of another version of the code: --again measures all of them anew")
    return {"quick": quick, "version": version.as_json(), "data": {}, **{name: [] for name in _LISTS}}


def _measure_all(
    left: Sequence[tuple[str, str]],
    results: dict[str, Any],
    output: Results,
    options: argparse.Namespace,
    version: Version,
) -> None:
    """Measure parts, some at a time, and keep each as soon as it is done."""
    started = time.perf_counter()
    waiting, running = list(left), dict[Future[Any], str]()
    with ProcessPoolExecutor(options.jobs) as pool:
        while waiting or running:
            while waiting and len(running) < options.jobs:
                if time.perf_counter() - started > options.seconds:
                    tell(f"{len(waiting)} parts are left: call again")
                    waiting.clear()
                    break
                data, what = waiting.pop(0)
                running[pool.submit(measured, data, what, quick=options.quick)] = f"{data} {what}"
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                found, seconds = future.result()
                keep(results, name, found, seconds, version)
                tell(f"{time.perf_counter() - started:6.0f} s: {name}, {seconds:.1f} s")
                output.write(results)


def keep(results: dict[str, Any], name: str, found: dict[str, Any], seconds: float, version: Version) -> None:
    """Put a part's entries in the place of what it gave before."""
    for kind, entries in found.items():
        if kind == "data":
            results["data"].update(entries)
            results["data"] = {each: results["data"][each] for each in CONTESTS if each in results["data"]}
            continue
        others = [entry for entry in results[kind] if entry["part"] != name]
        results[kind] = others + [{**entry, "part": name} for entry in entries]
    done = [part for part in results["parts"] if part["name"] != name]
    entry = {"name": name, "seconds": round(seconds, 1)}
    if version.digest != results["version"]["digest"]:
        entry["version"] = version.as_json()
    results["parts"] = [*done, entry]


def parts(names: Sequence[str], requested: Sequence[str] | None, *, quick: bool) -> Iterator[tuple[str, str]]:
    """Data and method of all parts of the named data sets, in the order in which they are measured: ours and
    the best baselines first, for every data set.

    In one column the slow baselines run on made-up salaries and on whole functions of real ones, and heaped
    variants and a very small data set with the best baselines: other cells would say the same again. So would
    features in one to three columns, where they err 10 to 100 times more than grids, and slow baselines on
    every data set.
    """
    found: list[tuple[str, str]] = []
    for name in names:
        if name == SCALING:
            every = [f"{label} {size}" for label, curve in CURVES.items() for size, _ in curve.sizes]
            every.append("builds")
        elif name in SETS:
            every = ["sketch"]
        elif name in _VARIANTS:
            every = ["auto", "grid", "lsq_fgt", "histogram"]
            every += ["function"] if name in _FUNCTIONS and not quick else []
        else:
            running = [each.name for each in CONTESTANTS if runs(each, COLUMNS[name])]
            every = ["auto", *(each for each in running if name in _ONLY_ON.get(each, (name,)))]
            if COLUMNS[name] <= _GRIDS_AND_FEATURES:
                every.remove("fourier_features")
            else:
                every.append("lsq_rff")
            every += ["sketch", "exact"] if name in _WITH_HASH_ROWS else []
        found += [(name, what) for what in every if requested is None or what in requested]
    yield from sorted(found, key=lambda part: _FIRST.index(part[1]) if part[1] in _FIRST else len(_FIRST))


@lru_cache(maxsize=32)
def _contest(name: str) -> Contest:
    found = CONTESTS[name]()
    if len(found.records) <= 3 * _MOST_RECORDS:
        return found
    words = f"{found.words}; {_MOST_RECORDS:,} of {len(found.records):,} records"
    return replace(sample_of(found, _MOST_RECORDS), name=name, words=words)


def measured(data: str, what: str, *, quick: bool) -> tuple[dict[str, Any], float]:
    """Entries of the JSON by their list, and the seconds that they took."""
    began = time.perf_counter()
    if data == SCALING:
        found = _scaled(what)
    elif what == "exact":
        contest = _contest(data)
        found = {"exact": [exact_density_seconds(contest, 500 if contest.dim <= 3 else 20)]}
    else:
        contest = _contest(data)
        cells = _cells(contest, what, releases(contest, quick=quick))
        found = {"data": {data: _facts(contest)}, "cells": [cell.as_json() for cell in cells]}
    return found, time.perf_counter() - began


def releases(contest: Contest, *, quick: bool) -> int:
    """How often ours are released; baselines a part of that. Small tables are cheap; and of few records the
    number is so uncertain that the mean error is decided by some releases of many.
    """
    if quick:
        return 8
    if len(contest.records) < _FEW_RECORDS:
        return 200
    return 120 if contest.dim == 1 else 60 if contest.dim == 2 else 24


def _cells(contest: Contest, what: str, repeats: int) -> list[Cell]:
    if what == "auto":
        declared = auto_cells(contest, repeats=repeats, tell=tell)
        # A plan for as many records as one without a declaration assumes is the same plan.
        if len(contest.records) == ASSUMED_RECORDS:
            return declared
        without = auto_cells(contest, repeats=repeats, tell=tell, known=declared, declared=False)
        return declared + without
    if what == "sketch":
        return hash_cells(contest, tell=tell)
    if what == "lsq_rff":
        return lsq_rff_cells(contest, tell=tell)
    if what == "function":
        return functions_of(on_salary_grid(contest), repeats)
    return race_of(contest, contestant_named(what), repeats=repeats, tell=tell)


def _scaled(what: str) -> dict[str, Any]:
    if what == "builds":
        return {"builds": build_times(CONTESTS["skin"](), CONTESTS["covtype"]())}
    label, size = what.split(" ")
    forest = _contest("covtype")
    width = dict(CURVES[label].sizes)[int(size)]
    return {"scaling": [scaling(forest, label, int(size), width, tell=tell)]}


def functions_of(contest: Contest, repeats: int) -> list[Cell]:
    """Errors of whole functions of salaries, with those that the published figure compares."""
    cells = auto_cells(contest, repeats=repeats, tell=tell) + hash_cells(contest, tell=tell, planned=False)
    for contestant in CONTESTANTS:
        if contestant.name in _ON_FUNCTIONS:
            cells += race_of(contest, contestant, repeats=repeats, tell=tell)
    return cells


def _facts(contest: Contest) -> dict[str, Any]:
    return {
        "records": len(contest.records),
        "columns": contest.dim,
        "words": contest.words,
        "bandwidth": getattr(contest.kernel, "bandwidth", None),
        "hash_bandwidth": getattr(contest.matched, "bandwidth", None),
        "density": float(contest.truth.mean()),
    }


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
