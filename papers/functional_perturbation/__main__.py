"""All figures of TRA3/19: ``python -m papers.functional_perturbation``; ``--quick`` takes a minute."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from papers.command import Step, run_paper
from papers.functional_perturbation.experiments import QUICK, Settings
from papers.functional_perturbation.report import write_report
from papers.functional_perturbation.run import FIGURES, run_one

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
