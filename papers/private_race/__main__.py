"""All figures and tables of private RACE: ``python -m papers.private_race``, with ``--quick`` in minutes.

Figures 3 and 7 with tables 1 and 3 also need ``python -m benchmarks comparison``; without its results their
page keeps what it has, and *figure 3 on one kernel* and the bandwidths of table 2 are measured all the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from papers.command import Step, run_paper
from papers.private_race import densities_page, figure3, graphs_run, run, table2_run
from papers.private_race.curves import Settings
from papers.private_race.data import load_dataset
from papers.private_race.densities import run_densities
from papers.private_race.graphs import GRAPHS
from papers.private_race.graphs_report import write_page as write_graphs
from papers.private_race.report import write_report

_GRAPH_REPETITIONS: Final = 5
_SECONDS: Final = {
    "classification": (180.0, 6.0),
    "regression": (120.0, 8.0),
    "anomalies": (120.0, 5.0),
    "classification_paper": (60.0, 5.0),
    "regression_paper": (120.0, 10.0),
}


def _subject(name: str, dataset: str, output: Path, quick: bool) -> None:
    experiment, _ = run.EXPERIMENTS[name]
    settings = run.QUICK if quick else Settings()
    run.run_one(experiment, [dataset], run.settings_of(name, settings), output / "results")


def _figure_2(output: Path, quick: bool) -> None:
    (output / "figures").mkdir(exist_ok=True)
    run_densities(load_dataset("occupancy"), output / "figures" / "densities.png")


def _figure_3(name: str, output: Path, quick: bool) -> None:
    figure3.measure_missing([name], output / "results" / "figure3.json", quick=quick)


def _table_2(name: str, output: Path, quick: bool) -> None:
    few = {"queries": 200, "quick": True, "methods": ("race", "histogram")} if quick else {}
    table2_run.measure_missing([name], output / "results" / "table2.json", **few)  # type: ignore[arg-type]


def _growth(part: str, output: Path, quick: bool) -> None:
    densities_page.measure(output / "results" / "kde.json", [part])


def _graphs(what: str, output: Path, quick: bool) -> None:
    settings = replace(graphs_run.QUICK if quick else Settings(repetitions=_GRAPH_REPETITIONS), say=print)
    graphs = [GRAPHS[name] for name in (graphs_run.QUICK_GRAPHS if quick else GRAPHS)]
    measure = graphs_run.run_times if what == "times" else partial(graphs_run.run_errors, settings=settings)
    measure(graphs, results=output / "results", **(graphs_run.QUICK_TABLE if quick else {}))


def _module(name: str) -> str:
    return f"papers.private_race.{name}"


STEPS: Final = [
    Step("figure_2", _module("densities"), _figure_2, (5.0, 5.0)),
    *(
        Step(f"{name} {dataset}", experiment.__module__, partial(_subject, name, dataset), _SECONDS[name])
        for name, (experiment, datasets) in run.EXPERIMENTS.items()
        for dataset in datasets
    ),
    *(
        Step(f"figure_3 {name}", _module("figure3"), partial(_figure_3, name), (120.0, 4.0))
        for name in figure3.SALARIES
    ),
    *(
        Step(f"table_2 {name}", _module("table2"), partial(_table_2, name), (3600.0, quick))
        for name, quick in (("nyc", 5.0), ("sf", 5.0), ("skin", 20.0), ("cod_rna", None), ("covtype", None))
    ),
    *(
        Step(f"growth {part}", _module("kde"), partial(_growth, part), (900.0, None))
        for part in densities_page.PARTS
    ),
    Step("graphs", _module("graphs"), partial(_graphs, "errors"), (2400.0, 20.0)),
    Step("graph times", _module("graphs"), partial(_graphs, "times"), (200.0, 10.0)),
]


def report(output: Path) -> list[Path]:
    """The pages for which there are results."""
    results = output / "results"
    pages = [write_report(output), densities_page.write(output)]
    if (results / "figure6.json").is_file():
        pages.append(write_graphs(output))
    return pages


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, and write the pages."""
    return run_paper(str(__doc__), Path(__file__).parent, STEPS, report, arguments)


if __name__ == "__main__":
    sys.exit(main())
