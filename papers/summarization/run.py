"""Run the comparison, cell by cell; ``python -m papers.summarization.run mnist``, or another name below.

A cell is one method at one size under one seed. Those with results are not run again, so the command can be
stopped at any time, or given ``--minutes`` to stop by itself; remove rows from the JSON file to run them
anew. ``report`` writes the page from the results there are. ``--quick`` has two repetitions of small
summaries and writes to ``build/summarization``. Data: ``python -m papers.data``. All of
it takes hours.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers.data import output_folder
from papers.summarization.data import Setting, census, mnist, mnist_paper
from papers.summarization.experiments import Comparison
from papers.summarization.groups import run_groups
from papers.summarization.many_owners import run_many_owners
from papers.summarization.protocol import SIZES, run_protocol
from papers.summarization.references import run_references
from papers.summarization.report import write_report

HERE = Path(__file__).parent
METHODS = ("greedy", "greedy_exact", "uniform", "threshold", "published", "published_batches", "h2", "fresh")
REFERENCES = ("greedy", "greedy_exact", "uniform", "published_batches", "published")
EPSILONS = (2.0, 1.0)
FEATURES = {"mnist": 500, "mnist_paper": 500, "census": 200}
SETTINGS: dict[str, Callable[[int], Setting]] = {"mnist": mnist, "mnist_paper": mnist_paper, "census": census}
ALONE = ("owners", "groups", "references")
PROTOCOL = "protocol"

Row = dict[str, Any]
Cell = tuple[str, int, float | None]


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is run: sizes as in the paper's figures, and the one at which every method is compared."""

    sizes: tuple[int, ...] = (1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000)
    compared: int = 2000
    repetitions: int = 10


QUICK = Extent((100, 200), 200, 2)


def cells(methods: Sequence[str], extent: Extent) -> Iterator[Cell]:
    """(method, size, ε) of one repetition, the references first."""
    for method, size in itertools.product(REFERENCES, extent.sizes):
        if method in methods:
            yield method, size, None
    for epsilon in EPSILONS:
        for size in extent.sizes:
            if "threshold" in methods:
                yield "threshold", size, epsilon
        for method in ("h2", "fresh"):
            if method in methods:
                yield method, extent.compared, epsilon


def run(name: str, methods: Sequence[str], extent: Extent, output: Path, until: float = float("inf")) -> bool:
    """Run the cells that have no row yet; whether all are there."""
    path = output / f"{name}.json"
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    done = {(row["seed"], row["method"], row["size"], row.get("epsilon")) for row in rows}
    for seed in range(extent.repetitions):
        missing = [cell for cell in cells(methods, extent) if (seed, *cell) not in done]
        if not missing:
            continue
        if time.monotonic() > until:
            return False
        largest = max(cell[1] for cell in missing)
        comparison = Comparison(SETTINGS[name](seed), seed, features=FEATURES[name], largest=largest)
        for cell in missing:
            if time.monotonic() > until:
                return False
            rows.append(comparison.cell(*cell))
            print(json.dumps(rows[-1]), flush=True)
            rows.sort(key=lambda row: (row["seed"], row["method"], row.get("epsilon") or 0.0, row["size"]))
            _write(path, rows)
    return True


def run_alone(name: str, quick: bool) -> list[Row]:
    """The trials beside the comparison."""
    load = SETTINGS["census"]
    if name == "groups":
        return run_groups(repetitions=2) if quick else run_groups()
    if name == "references":
        images = SETTINGS["mnist_paper"]
        few: dict[str, Any] = {"size": 100, "pairs": (50, 100), "repetitions": 1}
        return run_references(images, **few) if quick else run_references(images)
    return run_many_owners(load, size=200, owners=(4, 10), repetitions=1) if quick else run_many_owners(load)


def _write(path: Path, rows: list[Row]) -> None:
    lines = ",\n ".join(json.dumps(row) for row in rows)
    part = path.with_suffix(".part")
    part.write_text(f"[{lines}]\n", encoding="utf-8")
    os.replace(part, path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one setting, or write the report from the results there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=[*SETTINGS, PROTOCOL, *ALONE, "report", "all"])
    parser.add_argument("--quick", action="store_true", help="two repetitions of small summaries")
    parser.add_argument("--output", type=Path, help="where results, figures and the report go")
    parser.add_argument("--repetitions", type=int, help="seeds from 0 on; 10 by default")
    parser.add_argument("--sizes", help="only these, with commas between them")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args(arguments)
    output: Path = options.output or output_folder(HERE, quick=options.quick)
    output.mkdir(parents=True, exist_ok=True)
    extent = QUICK if options.quick else Extent()
    sizes = extent.sizes if options.sizes is None else tuple(int(each) for each in options.sizes.split(","))
    extent = Extent(sizes, extent.compared, options.repetitions or extent.repetitions)
    until = time.monotonic() + 60.0 * options.minutes
    complete = True
    if options.what in (PROTOCOL, "all"):
        complete &= run_protocol(
            {name: (load, FEATURES[name]) for name, load in SETTINGS.items()},
            output / f"{PROTOCOL}.json",
            sizes=extent.sizes if options.quick or options.sizes else SIZES,
            repetitions=extent.repetitions,
            until=until,
        )
    for name in (*SETTINGS, *ALONE):
        if options.what not in (name, "all"):
            continue
        if name in ALONE:
            _write(output / f"{name}.json", run_alone(name, options.quick))
        else:
            complete &= run(name, options.methods.split(","), extent, output, until)
    print(write_report(output))
    if not complete:
        raise SystemExit("cells are missing; run the same command again")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
