"""All experiments of private summarization: ``python -m papers.summarization``, or ``--quick``."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from papers.command import Step, run_paper
from papers.summarization.data import Setting, census, mnist, mnist_paper
from papers.summarization.experiments import Comparison
from papers.summarization.groups import run_groups
from papers.summarization.many_owners import run_many_owners
from papers.summarization.protocol import SIZES, run_protocol
from papers.summarization.references import run_references
from papers.summarization.report import write_report

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
            keep(path, rows)
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


def keep(path: Path, rows: list[Row]) -> None:
    """Replace a file of rows in one step."""
    lines = ",\n ".join(json.dumps(row) for row in rows)
    part = path.with_suffix(".part")
    part.write_text(f"[{lines}]\n", encoding="utf-8")
    os.replace(part, path)


def _cells(name: str, output: Path, quick: bool) -> None:
    run(name, METHODS, QUICK if quick else Extent(), output)


def _protocol(output: Path, quick: bool) -> None:
    settings = {name: (load, FEATURES[name]) for name, load in SETTINGS.items()}
    sizes, times = (QUICK.sizes, QUICK.repetitions) if quick else (SIZES, Extent().repetitions)
    run_protocol(settings, output / f"{PROTOCOL}.json", sizes=sizes, repetitions=times)


def _alone(name: str, output: Path, quick: bool) -> None:
    keep(output / f"{name}.json", run_alone(name, quick))


STEPS: Final = [
    Step("census", "papers.summarization.experiments", partial(_cells, "census"), (7200.0, 30.0)),
    Step("mnist_paper", "papers.summarization.experiments", partial(_cells, "mnist_paper"), (36_000.0, 60.0)),
    Step("mnist", "papers.summarization.experiments", partial(_cells, "mnist"), (36_000.0, 60.0)),
    Step(PROTOCOL, "papers.summarization.protocol", _protocol, (7200.0, 60.0)),
    *(Step(name, "papers.summarization.experiments", partial(_alone, name), (900.0, 20.0)) for name in ALONE),
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, and write the page."""
    given = Path(__file__).parent, STEPS, lambda output: [write_report(output)]
    return run_paper(str(__doc__), *given, arguments)


if __name__ == "__main__":
    sys.exit(main())
