"""All figures of TRA3/19: ``python -m papers.functional_perturbation``; ``--quick`` takes a minute."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from papers.command import Step, run_paper
from papers.functional_perturbation.experiments import (
    QUICK,
    Panels,
    Settings,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_4_delta,
    figure_6,
)
from papers.functional_perturbation.report import write_report
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


_SECONDS: Final = {
    "figure_1": (60.0, 3.0),
    "figure_2": (30.0, 2.0),
    "figure_3": (30.0, 2.0),
    "figure_4": (200.0, 10.0),
    "figure_4_delta": (180.0, 10.0),
    "figure_5": (150.0, 15.0),
    "figure_6": (15.0, 3.0),
}


def _run(name: str, output: Path, quick: bool) -> None:
    run_one(name, FIGURES[name], QUICK if quick else Settings(), output / "results")


STEPS: Final = [
    Step(name, figure.__module__, partial(_run, name), _SECONDS[name]) for name, figure in FIGURES.items()
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, and write the page."""
    given = Path(__file__).parent, STEPS, lambda output: [write_report(output)]
    return run_paper(str(__doc__), *given, arguments)


if __name__ == "__main__":
    sys.exit(main())
