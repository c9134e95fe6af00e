"""Run the comparison, cell by cell; ``python -m papers.summarization.run mnist|census|owners|groups|report``.

A cell is one method at one size under one seed. Those with results are not run again, so the command can be
stopped at any time, or given ``--minutes`` to stop by itself; remove rows from the JSON file to run them
anew. Needs ``$HUSHSUM_DATA``; about half an hour of one core in all.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from papers.summarization.data import Setting, census, mnist
from papers.summarization.experiments import Comparison
from papers.summarization.groups import run_groups
from papers.summarization.many_owners import run_many_owners
from papers.summarization.report import write_report

HERE = Path(__file__).parent
MAIN, OTHERS = ("greedy", "uniform", "threshold"), ("published", "h2", "fresh")
PASSES = (((1000, 2000), MAIN), ((1000, 2000), OTHERS), ((4000, 8000), (*MAIN, *OTHERS)))
"""Sizes and methods, those of the main tables first for all repetitions."""
REPETITIONS = 10
EPSILONS = (2.0, 1.0)
FEATURES = {"mnist": 500, "census": 200}
SETTINGS: dict[str, Callable[[int], Setting]] = {"mnist": mnist, "census": census}

Row = dict[str, Any]
ALONE: dict[str, Callable[[], list[Row]]] = {"owners": run_many_owners, "groups": run_groups}
Cell = tuple[str, int, float | None]


def cells(methods: tuple[str, ...], sizes: tuple[int, ...]) -> Iterator[Cell]:
    """(method, size, ε) of one repetition, the references first."""
    for size in sizes:
        for method in ("greedy", "uniform", "published"):
            if method in methods:
                yield method, size, None
    for epsilon in EPSILONS:
        for size in sizes:
            if "threshold" in methods:
                yield "threshold", size, epsilon
            for method in ("h2", "fresh"):
                if method in methods and size == 2000:
                    yield method, size, epsilon


def run(name: str, repetitions: int, methods: tuple[str, ...], until: float) -> bool:
    """Run the cells that have no row yet; whether all are there."""
    path = HERE / f"{name}.json"
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    done = {(row["seed"], row["method"], row["size"], row.get("epsilon")) for row in rows}
    for (sizes, some), seed in itertools.product(PASSES, range(repetitions)):
        requested = cells(tuple(each for each in some if each in methods), sizes)
        missing = [cell for cell in requested if (seed, *cell) not in done]
        if not missing:
            continue
        if time.monotonic() > until:
            return False
        comparison = Comparison(SETTINGS[name](seed), seed, features=FEATURES[name])
        for cell in missing:
            if time.monotonic() > until:
                return False
            rows.append(comparison.cell(*cell))
            print(json.dumps(rows[-1]), flush=True)
            rows.sort(key=lambda row: (row["seed"], row["method"], row.get("epsilon") or 0.0, row["size"]))
            _write(path, rows)
    return True


def _write(path: Path, rows: list[Row]) -> None:
    lines = ",\n ".join(json.dumps(row) for row in rows)
    part = path.with_suffix(".part")
    part.write_text(f"[{lines}]\n", encoding="utf-8")
    os.replace(part, path)


def main() -> None:
    """Run one setting, or write the report from the results there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*SETTINGS, *ALONE, "report"])
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--methods", default="greedy,uniform,published,h2,threshold,fresh")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    if options.what in ALONE:
        _write(HERE / f"{options.what}.json", ALONE[options.what]())
    elif options.what in SETTINGS:
        until = time.monotonic() + 60.0 * options.minutes
        if not run(options.what, options.repetitions, tuple(options.methods.split(",")), until):
            raise SystemExit("cells are missing; run the same command again")
    else:
        write_report(HERE)


if __name__ == "__main__":
    main()
