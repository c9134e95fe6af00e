"""Run the experiments, write their results as JSON, and draw the report from them.

``python -m papers.functional_perturbation.run all`` takes some minutes on one core; ``--quick`` runs it with
two repetitions and small samples, into ``build/functional_perturbation``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from papers.functional_perturbation.experiments import FIGURES, QUICK, Settings
from papers.functional_perturbation.report import write_report

_HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the requested experiments; the report is written from whatever results there are."""
    parser = argparse.ArgumentParser(prog="python -m papers.functional_perturbation.run", description=__doc__)
    parser.add_argument("subject", nargs="*", default=["all"], choices=[*FIGURES, "report", "all"])
    parser.add_argument("--quick", action="store_true", help="two repetitions on small samples")
    parser.add_argument("--output", type=Path, help="where results, figures and the report go")
    options = parser.parse_args(arguments)
    output: Path = options.output or (Path("build/functional_perturbation") if options.quick else _HERE)
    (output / "results").mkdir(parents=True, exist_ok=True)
    for name, experiment in FIGURES.items():
        if name in options.subject or "all" in options.subject:
            start = time.process_time()
            panels = experiment(QUICK if options.quick else Settings())
            text = json.dumps(panels, indent=1, ensure_ascii=False)
            (output / "results" / f"{name}.json").write_text(text + "\n", encoding="utf-8")
            print(f"{name}: {time.process_time() - start:.0f} s", file=sys.stderr)
    print(write_report(output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
