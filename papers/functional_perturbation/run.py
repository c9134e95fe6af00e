"""Run the experiments, and write their results as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from papers.functional_perturbation.experiments import (
    Panels,
    Settings,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_4_delta,
    figure_6,
)
from papers.functional_perturbation.timing import figure_5
from papers.provenance import made_by

FIGURES: dict[str, Callable[[Settings], Panels]] = {
    "figure_1": figure_1,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
    "figure_4_delta": figure_4_delta,
    "figure_5": figure_5,
    "figure_6": figure_6,
}


def run_one(name: str, experiment: Callable[[Settings], Panels], settings: Settings, results: Path) -> None:
    """Run one figure and save it with its version and processor time.

    Fits are small, so that starting threads for each product takes longer than the product: BLAS has one.
    """
    from threadpoolctl import threadpool_limits

    start = time.process_time()
    with threadpool_limits(limits=1):
        panels = experiment(settings)
    seconds = time.process_time() - start
    document = {"version": made_by(experiment.__module__), "seconds": round(seconds, 1), "panels": panels}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (results / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{name}: {seconds:.0f} s", file=sys.stderr)
