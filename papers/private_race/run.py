"""Run experiments on data sets, and write their results as JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from papers.private_race.anomalies import run_anomalies
from papers.private_race.classification import run_classification
from papers.private_race.curves import Settings, Subject
from papers.private_race.data import ANOMALIES, CLASSIFICATION, REGRESSION, Dataset, load_dataset
from papers.private_race.paper_classification import run_paper_classification
from papers.private_race.paper_regression import run_paper_regression
from papers.private_race.regression import run_regression
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
