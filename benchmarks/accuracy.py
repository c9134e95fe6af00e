"""The race: every method on every data set that suits it, ε from 0.05 to 2, pure and with δ = 1e-6.

``python -m benchmarks.accuracy`` writes ``accuracy.json``, ``accuracy.md`` and pictures to
``benchmarks/results``; it takes about a quarter of an hour on two cores. ``--quick`` runs few releases on
two data sets and writes to ``build/accuracy``. ``--report`` makes tables and pictures again from the JSON.
The data are public: a comparison like this one on private data would leak.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy_data import CONTESTS, Contest, data_folder, on_salary_grid, sample_of
from benchmarks.accuracy_methods import CONTESTANTS, Cell, race_of
from benchmarks.accuracy_ours import (
    auto_cells,
    build_times,
    exact_density_seconds,
    hash_cells,
    scaling,
)
from benchmarks.accuracy_report import write_report

SCALING = "scaling"
QUICK = ("salaries", "nyc")
SIZES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
_SCALING_RECORDS = 100_000
_ON_FUNCTIONS = (
    "grid",
    "bernstein",
    "histogram",
    "lsq_fgt",
    "fourier_series",
    "privbayes",
    "kme",
    "pfda",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few releases, two data sets, into build/")
    parser.add_argument("--report", action="store_true", help="only tables and pictures, from the JSON")
    parser.add_argument("--data", help="only these data sets, or scaling, beside what was measured before")
    parser.add_argument("--output", type=Path, help="where results go")
    asked = parser.parse_args(arguments)
    output: Path = asked.output or Path("build/accuracy" if asked.quick else "benchmarks/results")
    output.mkdir(parents=True, exist_ok=True)
    file = output / "accuracy.json"
    if not asked.report:
        data_folder()
        names = asked.data.split(",") if asked.data else QUICK if asked.quick else (*CONTESTS, SCALING)
        results = run(names, quick=asked.quick)
        if asked.data and file.exists():
            results = joined(json.loads(file.read_text(encoding="utf-8")), results)
        file.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(write_report(json.loads(file.read_text(encoding="utf-8")), output))
    return 0


def run(names: Sequence[str], *, quick: bool) -> dict[str, Any]:
    """All measurements as one JSON document."""
    started = time.perf_counter()
    kept = {name: CONTESTS[name]() for name in names if name != SCALING}
    cells: list[Cell] = []
    exact = []
    for contest in kept.values():
        repeats = 8 if quick else 160 if contest.dim == 1 else 16
        for contestant in CONTESTANTS:
            some = repeats if contestant.ours else max(4, repeats // 5)
            if contestant.tally is None and contest.dim == 1:
                some = max(4, some // 4)
            cells += race_of(contest, contestant, repeats=some, tell=tell)
        cells += auto_cells(contest, repeats=repeats, tell=tell)
        cells += hash_cells(contest, tell=tell)
        exact.append(exact_density_seconds(contest, 500 if contest.dim <= 3 else 20))
    for name in ("nyc", "sf"):
        if name in kept:
            cells += functions_of(on_salary_grid(kept[name]), 8 if quick else 40)
    results: dict[str, Any] = {
        "quick": quick,
        "data": {name: _facts(contest) for name, contest in kept.items()},
        "cells": [cell.as_json() for cell in cells],
        "exact": exact,
        "scaling": [],
        "builds": [],
    }
    if SCALING in names:
        forest = kept.get("covtype") or CONTESTS["covtype"]()
        results["scaling"] = scaling(sample_of(forest, _SCALING_RECORDS), SIZES, tell=tell)
        results["builds"] = build_times(kept.get("skin") or CONTESTS["skin"](), forest)
    results["seconds"] = time.perf_counter() - started
    return results


def joined(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Earlier results, with those of the data sets that were measured now in their place."""

    def stays(name: str) -> bool:
        return name.partition(" ")[0] not in now["data"]

    return {
        "quick": before["quick"] or now["quick"],
        "data": {**before["data"], **now["data"]},
        "cells": [cell for cell in before["cells"] if stays(cell["data"])] + now["cells"],
        "exact": [each for each in before["exact"] if stays(each["data"])] + now["exact"],
        "scaling": now["scaling"] or before["scaling"],
        "builds": now["builds"] or before["builds"],
        "seconds": before["seconds"] + now["seconds"],
    }


def functions_of(contest: Contest, repeats: int) -> list[Cell]:
    """Errors of whole functions of salaries, with those that the published figure compares."""
    cells = auto_cells(contest, repeats=repeats, tell=tell) + hash_cells(contest, tell=tell)
    for contestant in CONTESTANTS:
        if contestant.name in _ON_FUNCTIONS:
            some = repeats if contestant.tally is not None else max(2, repeats // 5)
            cells += race_of(contest, contestant, repeats=some, tell=tell)
    return cells


def _facts(contest: Contest) -> dict[str, Any]:
    return {
        "records": len(contest.records),
        "columns": contest.dim,
        "words": contest.words,
        "bandwidth": contest.kernel.bandwidth,
        "hash_bandwidth": contest.matched.bandwidth,
        "density": float(contest.truth.mean()),
    }


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
