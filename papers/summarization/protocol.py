"""The published protocol as it is published, one point per round, and in batches, which run sooner.

Batches of a fiftieth of the summary have 50 rounds in place of thousands, and so as many times fewer
iterations of h2. Uniform sampling and greedy stand beside, in the same repetitions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from papers.summarization.data import Setting
from papers.summarization.experiments import Comparison
from papers.summarization.tables import LABELS, error, versions, with_error

METHODS: Final = ("uniform", "published", "published_batches", "threshold", "greedy")
EPSILON: Final = 2.0
"""Of the threshold rule; the protocol has no claim."""

SIZES: Final = (1000, 2000)

Row = dict[str, Any]


def run_protocol(
    settings: dict[str, tuple[Callable[[int], Setting], int]],
    file: Path,
    *,
    sizes: Sequence[int] = SIZES,
    repetitions: int = 10,
    until: float = float("inf"),
) -> bool:
    """Add rows that the file does not have, by setting and repetition; whether all are there."""
    rows: list[Row] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    done = {(row["setting"], row["seed"], row["size"], row["method"]) for row in rows}
    for seed in range(repetitions):
        for name, (load, features) in settings.items():
            for size in sizes:
                missing = [each for each in METHODS if (name, seed, size, each) not in done]
                if not missing:
                    continue
                if time.monotonic() > until:
                    return False
                comparison = Comparison(load(seed), seed, features=features, largest=size)
                for method in missing:
                    began = time.process_time()
                    row = comparison.cell(method, size, EPSILON if method == "threshold" else None)
                    row |= {"setting": name, "cpu_seconds": time.process_time() - began}
                    print(json.dumps(row), flush=True)
                    rows.append(row)
                lines = ",\n ".join(json.dumps(row) for row in rows)
                file.write_text(f"[{lines}]\n", encoding="utf-8")
    return True


def protocol(rows: Sequence[Row]) -> str:
    """MMD² and accuracy of every method, and differences to uniform sampling in the same repetitions."""
    lines = [
        "| data, size | method | MMD² | accuracy, % | minus uniform's, points | minus greedy's, points "
        "| processor time | runs |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, size in dict.fromkeys((row["setting"], row["size"]) for row in rows):
        here = [row for row in rows if (row["setting"], row["size"]) == (name, size)]
        accuracy = {(row["method"], row["seed"]): 100.0 * row["accuracy"] for row in here}
        for method in METHODS:
            same = [row for row in here if row["method"] == method]
            if not same:
                continue
            seeds = [row["seed"] for row in same]
            own = np.array([accuracy[method, seed] for seed in seeds])
            beside = []
            for other in ("uniform", "greedy"):
                apart = np.array(
                    [accuracy[method, s] - accuracy[other, s] for s in seeds if (other, s) in accuracy]
                )
                known = method != other and len(apart) > 1
                beside.append(f"{apart.mean():+.2f} ± {error(apart):.2f}" if known else "–")
            mmd = np.array([row["mmd2"] for row in same])
            seconds = np.mean([row["cpu_seconds"] for row in same])
            label = LABELS[method] + (f", ε = {EPSILON:g}" if method == "threshold" else "")
            lines.append(
                f"| {name}, {size:,} | {label} | {with_error(mmd, 5)} | {with_error(own, 2)} "
                f"| {' | '.join(beside)} | {seconds:.1f} s | {len(same)} |"
            )
    return "\n".join([*lines, "", versions(rows)])
