"""For which groups of the census a shift matters: a model of their own members against a uniform one."""

from __future__ import annotations

from typing import Any

import numpy as np
from papers.provenance import made_by
from papers.summarization.data import GROUPS, census_split

SIZE, REPETITIONS = 2000, 10
FIRST_SEED = 100
"""Splits that the comparison does not use, since a group was chosen by them."""


def run_groups(repetitions: int = REPETITIONS) -> list[dict[str, Any]]:
    """Accuracies on each group of linear machines of its own members and of an equal number of each owner."""
    from sklearn.svm import LinearSVC

    rows: list[dict[str, Any]] = []
    for group in GROUPS:
        for seed in range(FIRST_SEED, FIRST_SEED + repetitions):
            split = census_split(seed, group)
            rng = np.random.default_rng(seed + 2000)
            first, *rest = split.others
            owners = [np.concatenate([first, split.own]), *rest]
            uniform = np.concatenate(
                [rng.choice(each, SIZE // len(owners), replace=False) for each in owners]
            )
            row: dict[str, Any] = {"group": group, "seed": seed, "members": len(split.own)}
            row["version"] = made_by("papers.summarization.groups")
            for name, places in (("own", split.own[:SIZE]), ("uniform", uniform)):
                model = LinearSVC(C=0.1, dual=False).fit(split.points[places], split.labels[places])
                row[name] = float(model.score(split.points[split.test], split.labels[split.test]))
            rows.append(row)
    return rows
