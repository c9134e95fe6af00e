"""How many points the curator sees with many owners, against the K^{1/3} of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from papers.summarization.data import Setting
from papers.summarization.experiments import Comparison
from papers.summarization.theorems import (
    auction_parameters,
    expected_requests,
    parsimony_order,
    points_seen_bound,
)

OWNERS = (4, 10, 30, 100)
SIZE, FEATURES, REPETITIONS = 1000, 200, 3
EPSILON, DELTA = 1.0, 1e-4
"""Of the theorem, for ε_auc."""


def shared_among(setting: Setting, owners: int) -> Setting:
    """The census with the same records among more owners: each one's table is cut into equal parts."""
    records: dict[str, Any] = {}
    labels: dict[str, Any] = {}
    names = list(setting.owners)
    for number, name in enumerate(names):
        parts = len(range(number, owners, len(names)))
        for i, place in enumerate(np.array_split(np.arange(len(setting.owners[name])), parts)):
            records[f"{name}{i}"] = setting.owners[name][place]
            labels[f"{name}{i}"] = setting.labels[name][place]
    return replace(setting, owners=records, labels=labels)


def run_many_owners(
    load: Callable[[int], Setting],
    *,
    size: int = SIZE,
    owners: Sequence[int] = OWNERS,
    repetitions: int = REPETITIONS,
) -> list[dict[str, Any]]:
    """Points seen for each one of the summary, in one process, for growing numbers of owners.

    The published auction runs at the theorem's ε_auc and, for comparison, at ε_auc = 1.
    """
    rows: list[dict[str, Any]] = []
    for seed in range(repetitions):
        whole = load(seed)
        for number in owners:
            comparison = Comparison(shared_among(whole, number), seed, features=FEATURES)
            for epsilon in (2.0, 1.0):
                row = comparison.cell("threshold", size, epsilon)
                rows.append({**row, "owners": number, "order": parsimony_order(number)})
            rate, repeats = auction_parameters(EPSILON, DELTA, number)
            for each in (rate, 1.0):
                row = comparison.published(size, auction_epsilon=each)
                rows.append(
                    {
                        **row,
                        "owners": number,
                        "order": parsimony_order(number),
                        "auction_epsilon": each,
                        "expected": expected_requests(number, each),
                        "bound": points_seen_bound(size, number, rate=each, repeats=repeats) / size,
                    }
                )
                print(seed, number, f"{each:.4f}", row["seen"] / size, row["mmd2"], flush=True)
            rows.append({**comparison.cell("uniform", size, None), "owners": number})
    return rows
