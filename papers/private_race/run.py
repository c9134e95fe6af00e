"""Run the experiments, write their results as JSON, and draw the report from them.

``python -m papers.private_race.run all`` takes about 25 minutes on one core; with ``--quick`` there are two
repetitions and three or four budgets. Results, figures and README.md go into ``--output``, by default the
folder of this file for a whole run and ``build/private_race`` for a quick one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from papers.data import output_folder
from papers.private_race.anomalies import run_anomalies
from papers.private_race.classification import run_classification
from papers.private_race.curves import Settings, Subject
from papers.private_race.data import ANOMALIES, CLASSIFICATION, REGRESSION, Dataset, load_dataset
from papers.private_race.densities import run_densities
from papers.private_race.paper_classification import run_paper_classification
from papers.private_race.paper_regression import run_paper_regression
from papers.private_race.regression import run_regression
from papers.private_race.report import HERE, write_report
from papers.provenance import made_by

_QUICK = Settings(epsilons=(0.1, 1.0, 10.0), repetitions=2, quick=True)

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested experiments; a report is written from whatever results there are."""
    parser = argparse.ArgumentParser(
        prog="python -m papers.private_race.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "subject", nargs="?", default="all", choices=[*EXPERIMENTS, "densities", "report", "all"]
    )
    parser.add_argument("--quick", action="store_true", help="two repetitions, three budgets, fewer draws")
    parser.add_argument("--data", nargs="+", default=[], help="only these data sets; the others are kept")
    parser.add_argument("--repetitions", type=int, help="10 by default")
    parser.add_argument("--output", type=Path, help="where results, figures and the report go")
    options = parser.parse_args(arguments)
    output: Path = options.output or output_folder(HERE, quick=options.quick)
    results = output / "results"
    results.mkdir(parents=True, exist_ok=True)
    settings = _QUICK if options.quick else Settings()
    settings = replace(settings, repetitions=options.repetitions or settings.repetitions)
    for name, (experiment, names) in EXPERIMENTS.items():
        if options.subject in (name, "all"):
            chosen = [each for each in names if not options.data or each in options.data]
            run_one(experiment, chosen, _settings(name, settings), results)
    if options.subject in ("densities", "all"):
        (output / "figures").mkdir(exist_ok=True)
        run_densities(load_dataset("occupancy"), output / "figures" / "densities.png")
    print(write_report(output))
    return 0


def _settings(name: str, settings: Settings) -> Settings:
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


if __name__ == "__main__":
    raise SystemExit(main())
