"""All figures and tables of private RACE: ``python -m papers.private_race``, with ``--quick`` in minutes.

Figures 3 and 7 with tables 1 and 3 also need ``python -m benchmarks comparison``; without its results their
page keeps what it has, and *figure 3 on one kernel* and the bandwidths of table 2 are measured all the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from papers.command import Step, run_paper
from papers.private_race import densities_page, figure3, graphs_page, table2_run
from papers.private_race.anomalies import run_anomalies
from papers.private_race.classification import run_classification
from papers.private_race.curves import Settings, Subject
from papers.private_race.data import ANOMALIES, CLASSIFICATION, REGRESSION, Dataset, load_dataset
from papers.private_race.densities import run_densities
from papers.private_race.graphs import GRAPHS
from papers.private_race.paper_classification import run_paper_classification
from papers.private_race.paper_regression import run_paper_regression
from papers.private_race.regression import run_regression
from papers.private_race.report import write_report
from papers.provenance import made_by

QUICK = Settings(epsilons=(0.1, 1.0, 10.0), repetitions=2, quick=True)

Experiment = Callable[[Sequence[Dataset], Settings], Subject]

EXPERIMENTS: dict[str, tuple[Experiment, tuple[str, ...]]] = {
    "classification": (run_classification, CLASSIFICATION),
    "regression": (run_regression, REGRESSION),
    "anomalies": (run_anomalies, ANOMALIES),
    "classification_paper": (run_paper_classification, CLASSIFICATION),
    "regression_paper": (run_paper_regression, REGRESSION),
}
"""Those with ``paper`` in their names are in the paper's own form."""

_PAPER_EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


def settings_of(name: str, settings: Settings) -> Settings:
    """Regression is compared from ε = 0.5 on, so that it is one of its budgets; the paper's forms have five
    budgets.
    """
    if name == "regression":
        return replace(settings, epsilons=tuple(sorted({*settings.epsilons, 0.5})))
    if name.endswith("_paper") and not settings.quick:
        return replace(settings, epsilons=_PAPER_EPSILONS)
    return settings


def run_one(experiment: Experiment, names: Sequence[str], settings: Settings, results: Path) -> None:
    """Run one experiment on its data sets, and save each with the time it took (processor seconds)."""

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    reporting = replace(settings, say=say)
    for name in names:
        started = time.process_time()
        subject = experiment([load_dataset(name)], reporting)
        subject.seconds = time.process_time() - started
        for curves in subject.curves.values():
            curves.version = made_by(experiment.__module__)
        subject.save(results)


_GRAPH_REPETITIONS: Final = 5
_SECONDS: Final = {
    "classification": (180.0, 6.0),
    "regression": (120.0, 8.0),
    "anomalies": (120.0, 5.0),
    "classification_paper": (60.0, 5.0),
    "regression_paper": (120.0, 10.0),
}


def _subject(name: str, dataset: str, output: Path, quick: bool) -> None:
    experiment, _ = EXPERIMENTS[name]
    settings = QUICK if quick else Settings()
    run_one(experiment, [dataset], settings_of(name, settings), output / "results")


def _figure_2(output: Path, quick: bool) -> None:
    (output / "figures").mkdir(exist_ok=True)
    run_densities(load_dataset("occupancy"), output / "figures" / "densities.png")


def _figure_3(name: str, output: Path, quick: bool) -> None:
    figure3.measure_missing([name], output / "results" / "figure3.json", quick=quick)


def _table_2(name: str, output: Path, quick: bool) -> None:
    few: dict[str, Any] = {"queries": 200, "quick": True, "methods": ("race", "histogram")} if quick else {}
    table2_run.measure_missing([name], output / "results" / "table2.json", **few)


def _growth(part: str, output: Path, quick: bool) -> None:
    densities_page.measure(output / "results" / "kde.json", [part])


def _graphs(what: str, output: Path, quick: bool) -> None:
    settings = replace(graphs_page.QUICK if quick else Settings(repetitions=_GRAPH_REPETITIONS), say=print)
    graphs = [GRAPHS[name] for name in (graphs_page.QUICK_GRAPHS if quick else GRAPHS)]
    table: dict[str, int] = dict(graphs_page.QUICK_TABLE) if quick else {}
    if what == "times":
        graphs_page.run_times(graphs, output / "results", **table)
    else:
        graphs_page.run_errors(graphs, settings, output / "results", **table)


def _module(name: str) -> str:
    return f"papers.private_race.{name}"


STEPS: Final = [
    Step("figure_2", _module("densities"), _figure_2, (5.0, 5.0)),
    *(
        Step(f"{name} {dataset}", experiment.__module__, partial(_subject, name, dataset), _SECONDS[name])
        for name, (experiment, datasets) in EXPERIMENTS.items()
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
        pages.append(graphs_page.write_page(output))
    return pages


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, and write the pages."""
    return run_paper(str(__doc__), Path(__file__).parent, STEPS, report, arguments)


if __name__ == "__main__":
    sys.exit(main())
