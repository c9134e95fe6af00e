"""All experiments of private summarization: ``python -m papers.summarization``, or ``--quick``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from papers.command import Step, run_paper
from papers.summarization.protocol import SIZES, run_protocol
from papers.summarization.report import write_report
from papers.summarization.run import (
    ALONE,
    FEATURES,
    METHODS,
    PROTOCOL,
    QUICK,
    SETTINGS,
    Extent,
    run,
    run_alone,
)
from papers.summarization.run import keep as keep_rows


def _cells(name: str, output: Path, quick: bool) -> None:
    run(name, METHODS, QUICK if quick else Extent(), output)


def _protocol(output: Path, quick: bool) -> None:
    settings = {name: (load, FEATURES[name]) for name, load in SETTINGS.items()}
    sizes, times = (QUICK.sizes, QUICK.repetitions) if quick else (SIZES, Extent().repetitions)
    run_protocol(settings, output / f"{PROTOCOL}.json", sizes=sizes, repetitions=times)


def _alone(name: str, output: Path, quick: bool) -> None:
    keep_rows(output / f"{name}.json", run_alone(name, quick))


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
