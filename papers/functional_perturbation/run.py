"""Run the experiments, write their results as JSON, and draw the report from them.

``python -m papers.functional_perturbation.run all`` takes some minutes on one core; ``--quick`` runs it with
two repetitions and small samples, into ``build/functional_perturbation``. A figure's results are written when
it is done, so a run that was stopped goes on with the figures that are missing, by name.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from papers.data import output_folder
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

_HERE = Path(__file__).parent

FIGURES: dict[str, Callable[[Settings], Panels]] = {
    "figure_1": figure_1,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_4": figure_4,
    "figure_4_delta": figure_4_delta,
    "figure_5": figure_5,
    "figure_6": figure_6,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested experiments; the report is written from whatever results there are."""
    parser = argparse.ArgumentParser(prog="python -m papers.functional_perturbation.run", description=__doc__)
    parser.add_argument("subject", nargs="*", default=["all"], choices=[*FIGURES, "report", "all"])
    parser.add_argument("--quick", action="store_true", help="two repetitions on small samples")
    parser.add_argument("--output", type=Path, help="where results, figures and the report go")
    options = parser.parse_args(arguments)
    output: Path = options.output or output_folder(_HERE, quick=options.quick)
    (output / "results").mkdir(parents=True, exist_ok=True)
    for name, experiment in FIGURES.items():
        if name in options.subject or "all" in options.subject:
            run_one(name, experiment, QUICK if options.quick else Settings(), output / "results")
    print(write_report(output))
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
