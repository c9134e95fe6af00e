"""The race: every method on every data set that suits it, ε from 0.05 to 2, pure and with δ = 1e-6.

``python -m benchmarks.accuracy`` writes ``accuracy.json``, ``accuracy.md`` and pictures to
``benchmarks/results``; it takes about an hour on one core. It goes part by part, a part being one method on
one data set, keeps each in the JSON, and leaves out what is there: ``--seconds`` ends it after the part
under way, and another call goes on. ``--again`` measures parts anew. ``--quick`` runs few releases on two
data sets and writes to ``build/accuracy``. ``--report`` makes tables and pictures again from the JSON. Data
are public: a comparison like this one on private data would leak.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.accuracy_data import CONTESTS, Contest, data_folder, on_salary_grid, sample_of
from benchmarks.accuracy_methods import CONTESTANTS, Cell, Contestant, race_of
from benchmarks.accuracy_ours import (
    auto_cells,
    build_times,
    exact_density_seconds,
    hash_cells,
)
from benchmarks.accuracy_report import write_report
from benchmarks.accuracy_scaling import CURVES, scaling

SCALING = "scaling"
QUICK = ("salaries", "nyc")
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
    parser.add_argument("--data", help="only these data sets, or scaling")
    parser.add_argument("--parts", help="only these: names of methods, auto, sketch, exact, function")
    parser.add_argument("--again", action="store_true", help="also what was measured before")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no part after so many")
    parser.add_argument("--output", type=Path, help="where results go")
    options = parser.parse_args(arguments)
    output: Path = options.output or Path("build/accuracy" if options.quick else "benchmarks/results")
    output.mkdir(parents=True, exist_ok=True)
    file = output / "accuracy.json"
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else _nothing(options.quick)
    if not options.report:
        data_folder()
        started = time.perf_counter()
        names = options.data.split(",") if options.data else QUICK if options.quick else (*CONTESTS, SCALING)
        requested = options.parts.split(",") if options.parts else None
        seen = {} if options.again else {part["name"]: part for part in results["parts"]}
        for part in _parts(names, requested, quick=options.quick):
            if part.name in seen:
                continue
            if time.perf_counter() - started > options.seconds:
                tell("more is left: call again")
                break
            began = time.perf_counter()
            keep(results, part.name, part.measure(), time.perf_counter() - began)
            text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
            file.write_text(text, encoding="utf-8")
    print(write_report(results, output))
    return 0


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the race that is measured at once; ``measure`` gives entries of the JSON by their list."""

    name: str
    measure: Callable[[], dict[str, Any]]


def _nothing(quick: bool) -> dict[str, Any]:
    lists: tuple[str, ...] = ("cells", "exact", "scaling", "builds", "parts")
    return {"quick": quick, "data": {}, **{name: [] for name in lists}}


def keep(results: dict[str, Any], name: str, found: dict[str, Any], seconds: float) -> None:
    """Put a part's entries in the place of what it gave before."""
    for kind, entries in found.items():
        if kind == "data":
            results["data"].update(entries)
            results["data"] = {each: results["data"][each] for each in CONTESTS if each in results["data"]}
            continue
        others = [entry for entry in results[kind] if entry["part"] != name]
        results[kind] = others + [{**entry, "part": name} for entry in entries]
    done = [part for part in results["parts"] if part["name"] != name]
    results["parts"] = [*done, {"name": name, "seconds": round(seconds, 1)}]


def _parts(names: Sequence[str], requested: Sequence[str] | None, *, quick: bool) -> Iterator[Part]:
    """All parts of the named data sets, in the order in which they are measured."""
    made: dict[str, Contest] = {}

    def contest(name: str) -> Contest:
        if name not in made:
            made.clear()
            made[name] = CONTESTS[name]()
        return made[name]

    @cache
    def forest() -> Contest:
        return sample_of(CONTESTS["covtype"](), _SCALING_RECORDS)

    def part(data: str, what: str, measure: Callable[[], dict[str, Any]]) -> Iterator[Part]:
        if requested is None or what in requested:
            yield Part(f"{data} {what}", measure)

    for name in names:
        if name == SCALING:
            for label, curve in CURVES.items():
                for size, width in curve.sizes:
                    if requested is None or {label, f"{label} {size}"} & set(requested):
                        yield Part(f"{name} {label} {size}", partial(_scaled, forest, label, size, width))
            yield from part(name, "builds", _builds)
            continue
        repeats = 8 if quick else 160 if name in ("salaries", "nyc", "sf") else 16
        for contestant in CONTESTANTS:
            yield from part(
                name, contestant.name, partial(_contestant_cells, contest, name, contestant, repeats)
            )
        yield from part(name, "auto", partial(_auto, contest, name, repeats))
        yield from part(name, "sketch", partial(_sketch, contest, name))
        yield from part(name, "exact", partial(_exact, contest, name))
        if name in ("nyc", "sf"):
            yield from part(name, "function", partial(_function, contest, name, 8 if quick else 40))


Contests = Callable[[str], Contest]


def _contestant_cells(contest: Contests, name: str, contestant: Contestant, repeats: int) -> dict[str, Any]:
    data = contest(name)
    some = repeats if contestant.ours else max(4, repeats // 5)
    if contestant.tally is None and data.dim == 1:
        some = max(4, some // 4)
    return _with_facts(data, race_of(data, contestant, repeats=some, tell=tell))


def _auto(contest: Contests, name: str, repeats: int) -> dict[str, Any]:
    return _with_facts(contest(name), auto_cells(contest(name), repeats=repeats, tell=tell))


def _sketch(contest: Contests, name: str) -> dict[str, Any]:
    return _with_facts(contest(name), hash_cells(contest(name), tell=tell))


def _exact(contest: Contests, name: str) -> dict[str, Any]:
    data = contest(name)
    return {"exact": [exact_density_seconds(data, 500 if data.dim <= 3 else 20)]}


def _function(contest: Contests, name: str, repeats: int) -> dict[str, Any]:
    cells = functions_of(on_salary_grid(contest(name)), repeats)
    return {"cells": [cell.as_json() for cell in cells]}


def _scaled(forest: Callable[[], Contest], label: str, size: int, width: int) -> dict[str, Any]:
    return {"scaling": [scaling(forest(), label, size, width, tell=tell)]}


def _builds() -> dict[str, Any]:
    return {"builds": build_times(CONTESTS["skin"](), CONTESTS["covtype"]())}


def _with_facts(contest: Contest, cells: Sequence[Cell]) -> dict[str, Any]:
    return {"data": {contest.name: _facts(contest)}, "cells": [cell.as_json() for cell in cells]}


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
