"""How many points the curator sees with many owners, against the K^{1/3} of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from papers.summarization.data import Setting, census
from papers.summarization.experiments import Comparison

from hushsum.summarize.objective import parsimony_order, points_seen_bound

OWNERS = (4, 10, 30, 100)
SIZE, FEATURES, SEED = 1000, 200, 0


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


def run_many_owners() -> list[dict[str, Any]]:
    """Points seen for each one of the summary, in one process, for growing numbers of owners."""
    rows: list[dict[str, Any]] = []
    whole = census(SEED)
    for owners in OWNERS:
        comparison = Comparison(shared_among(whole, owners), SEED, features=FEATURES)
        for method, epsilon in (("threshold", 2.0), ("threshold", 1.0), ("published", None)):
            row = comparison.cell(method, SIZE, epsilon)
            repeats = max(1, round(owners ** (2.0 / 3.0)))
            bound = points_seen_bound(SIZE, owners, rate=1.0, repeats=repeats) / SIZE
            rows.append({**row, "owners": owners, "order": parsimony_order(owners), "bound": bound})
            print(owners, method, epsilon, row["seen"] / SIZE, row["mmd2"], flush=True)
        rows.append({**comparison.cell("uniform", SIZE, None), "owners": owners})
    return rows
