"""Over which greedy an excess is stated: with how many random features, or with the exact kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from papers.provenance import made_by
from papers.summarization.data import Setting
from papers.summarization.exact_greedy import exact_greedy
from papers.summarization.experiments import PUBLISHED_WIDTH, Comparison

from hushsum._types import Integers
from hushsum.parties.summarization import SummaryFeatures, greedy_choice

SIZE, REPETITIONS = 2000, 2
PAIRS = (500, 1000, 2000)
MORE_PAIRS = 2000
"""For the private rule, whose noise does not grow with them."""


def run_references(
    load: Callable[[int], Setting],
    *,
    size: int = SIZE,
    pairs: tuple[int, ...] = PAIRS,
    repetitions: int = REPETITIONS,
) -> list[dict[str, Any]]:
    """Greedy summaries by what the gains are computed from, and the default rule with more features."""
    rows: list[dict[str, Any]] = []
    for seed in range(repetitions):
        setting = load(seed)
        comparison = Comparison(setting, seed, features=pairs[0])
        digits = np.unique(setting.test_labels)
        ways: list[tuple[str, int | None, bool]] = [(f"{PUBLISHED_WIDTH} features", PUBLISHED_WIDTH, False)]
        ways += [(f"{number:,} pairs", number, True) for number in pairs]
        ways.append(("exact kernel", None, True))
        for name, number, paired in ways:
            began = time.process_time()
            chosen = _greedy(comparison, number, paired, size)
            spent = time.process_time() - began
            of_target = float(np.isin(comparison.labels[chosen], digits).mean())
            row = _row(seed, "greedy", name, size, comparison.discrepancy(comparison.points[chosen]), spent)
            rows.append({**row, "of_target": of_target})
        more = Comparison(setting, seed, features=MORE_PAIRS if size >= SIZE else pairs[-1])
        found = more.cell("threshold", size, 2.0)
        rows.append(
            _row(seed, "threshold", f"{more.features:,} pairs", size, found["mmd2"], found["cpu_seconds"])
        )
    return rows


def _greedy(comparison: Comparison, features: int | None, paired: bool, size: int) -> Integers:
    """With this many features, or with the exact kernel."""
    setting = comparison.setting
    if features is None:
        return exact_greedy(comparison.points, setting.validation, size, setting.bandwidth)
    dim = comparison.points.shape[1]
    own = SummaryFeatures(dim, setting.bandwidth, features, comparison.seed, paired=paired)
    target = own.hashes(setting.validation).mean(axis=0)
    return greedy_choice(own.hashes(comparison.points), target, size, unit=own.unit)


def _row(seed: int, method: str, way: str, size: int, mmd2: float, seconds: float) -> dict[str, Any]:
    row = {"seed": seed, "method": method, "with": way, "size": size, "mmd2": mmd2, "cpu_seconds": seconds}
    print(row, flush=True)
    return {**row, "version": made_by("papers.summarization.references")}
