"""Run the comparison and write results.json; ``python -m papers.summarization.run mnist|census|report``.

Needs ``$HUSHSUM_DATA``. About ten minutes on one core for both settings.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from papers.summarization.data import census, mnist
from papers.summarization.experiments import Comparison
from papers.summarization.report import write_report

HERE = Path(__file__).parent
SIZES = [1000, 2000, 4000, 8000]


def run_mnist(repetitions: int, write: Any) -> None:
    """All methods at 2,000 points for every seed, and the sizes for the first."""
    for seed in range(repetitions):
        comparison = Comparison(mnist(seed), seed, features=500)
        for size in SIZES if seed == 0 else [2000]:
            write(comparison.uniform(size))
            for epsilon in (2.0, 1.0):
                write(comparison.private(size, epsilon, "threshold"))
            if size == 2000:
                for epsilon in (2.0, 1.0):
                    write(comparison.private(size, epsilon, "fresh"))
                    write(comparison.calibrated_h2(size, epsilon))
            if size <= 2000:
                write(comparison.published(size))
        for row in comparison.greedy(SIZES if seed == 0 else [2000]):
            write(row)


def run_census(repetitions: int, write: Any) -> None:
    """Private, uniform and greedy over repetitions at 2,000 points, and the sizes for the first."""
    for seed in range(repetitions):
        comparison = Comparison(census(seed), seed, features=200)
        sizes = SIZES if seed == 0 else [2000]
        for size in sizes:
            write(comparison.uniform(size))
            for epsilon in (2.0, 1.0):
                write(comparison.private(size, epsilon, "threshold"))
        for row in comparison.greedy(sizes):
            write(row)


def main() -> None:
    """Run one setting, or write the report from the results there are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["mnist", "census", "report"])
    parser.add_argument("--repetitions", type=int, default=None)
    asked = parser.parse_args()
    if asked.what != "report":
        path = HERE / f"{asked.what}.json"
        rows: list[dict[str, Any]] = []

        def write(row: dict[str, Any]) -> None:
            rows.append(row)
            path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")

        if asked.what == "mnist":
            run_mnist(asked.repetitions or 3, write)
        else:
            run_census(asked.repetitions or 10, write)
    write_report(HERE)


if __name__ == "__main__":
    main()
