"""One command for a whole paper: its experiments in steps, with progress, remaining time, and resumption."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from papers.data import output_folder
from papers.provenance import made_by

QUICK_NOTICE: Final = (
    "> **Quick run**: few repetitions, budgets and records, to show that every step works. Its numbers are "
    "not those to compare with the paper.\n\n"
)


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a paper's experiments.

    ``module`` is the experiment whose sources decide whether the part is still valid. ``seconds`` are the
    processor seconds that a whole and a quick run took when this was written; a step without the second is
    left out of quick runs.
    """

    name: str
    module: str
    run: Callable[[Path, bool], object]
    seconds: tuple[float, float | None]


def run_paper(
    description: str,
    here: Path,
    steps: Sequence[Step],
    report: Callable[[Path], Sequence[Path]],
    arguments: Sequence[str] | None = None,
) -> int:
    """Parse the command line, run the steps that are missing, and write the pages."""
    parser = argparse.ArgumentParser(
        prog=f"python -m papers.{here.name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = [step.name for step in steps]
    parser.add_argument("steps", nargs="*", metavar="step", help="only these; all by default")
    parser.add_argument(
        "--quick", action="store_true", help="every figure in minutes, on little data, marked"
    )
    parser.add_argument("--again", action="store_true", help="also steps that are done")
    parser.add_argument("--list", action="store_true", help="the steps, with which are done")
    parser.add_argument("--report", action="store_true", help="only the pages, from the results there are")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no step after that time")
    parser.add_argument("--output", type=Path, help="where results, figures and pages go")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.steps) - set(names))
    if unknown:
        parser.error(f"no step is called {', '.join(unknown)}; there are {', '.join(names)}")
    output: Path = options.output or output_folder(here, quick=options.quick)
    (output / "results").mkdir(parents=True, exist_ok=True)
    chosen = [step for step in steps if not options.steps or step.name in options.steps]
    chosen = [step for step in chosen if not options.quick or step.seconds[1] is not None]
    progress = Progress(output / "results" / "progress.json", quick=options.quick)
    if options.list:
        for step in chosen:
            print(f"{'done   ' if progress.done(step) else 'missing'} {step.name}")
        return 0
    complete = True
    if not options.report:
        waiting = [step for step in chosen if options.again or not progress.done(step)]
        complete = progress.run(waiting, len(chosen), output, until=time.monotonic() + 60.0 * options.minutes)
    for page in report(output):
        if options.quick:
            page.write_text(QUICK_NOTICE + page.read_text(encoding="utf-8"), encoding="utf-8")
        print(page)
    return 0 if complete else 3


class Progress:
    """Which steps are done, by which sources, kept in a file after each of them."""

    def __init__(self, file: Path, *, quick: bool) -> None:
        self.file, self.quick = file, quick
        self._known: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def _made(self, step: Step) -> str:
        return f"{made_by(step.module)}{', quick' if self.quick else ''}"

    def done(self, step: Step) -> bool:
        """Whether the step was finished by the sources that are here now."""
        return self._known.get(step.name) == self._made(step)

    def run(self, waiting: Sequence[Step], number: int, output: Path, *, until: float) -> bool:
        """Run steps one after the other; False if time was up before all were done."""
        expected = [step.seconds[self.quick] or 0.0 for step in waiting]
        began, spent = time.monotonic(), 0.0
        for place, step in enumerate(waiting):
            if time.monotonic() > until:
                _say(f"stopped before {step.name}; the same command goes on from there")
                return False
            pace = (time.monotonic() - began) / spent if spent > 0.0 else 1.0
            left = _duration(pace * sum(expected[place:]))
            _say(f"[{number - len(waiting) + place + 1} of {number}] {step.name}; about {left} remain")
            made = self._made(step)
            step.run(output, self.quick)
            spent += expected[place]
            self._known[step.name] = made
            self.file.write_text(json.dumps(self._known, indent=1) + "\n", encoding="utf-8")
        _say(f"all {number} steps are done")
        return True


def _duration(seconds: float) -> str:
    """
    >>> _duration(40.0), _duration(600.0), _duration(9000.0)
    ('40 s', '10 min', '2.5 h')
    """
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
