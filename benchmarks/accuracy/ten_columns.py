"""Ten measured columns, two classes: the classifier's own choice of method against the linear machine.

    HUSHSUM_DATA=... python -m benchmarks ten_columns

The ten numeric columns of forest cover, lodgepole pine against all others, 15,000 records to fit and 4,000 to
score, both without overlap, by ten seeds. Bounds are those that the survey's instruments have (degrees, hill
shade from 0 to 255, metres), not those of the records. Nothing was tuned on this set.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.writer import Results

import hushsum as hs

COLUMNS = {
    "Elevation": (0, 4400),
    "Aspect": (0, 360),
    "Slope": (0, 90),
    "Horizontal_Distance_To_Hydrology": (0, 5000),
    "Vertical_Distance_To_Hydrology": (-1000, 1000),
    "Horizontal_Distance_To_Roadways": (0, 10000),
    "Hillshade_9am": (0, 255),
    "Hillshade_Noon": (0, 255),
    "Hillshade_3pm": (0, 255),
    "Horizontal_Distance_To_Fire_Points": (0, 10000),
}
FITTED, SCORED = 15_000, 4_000
DELTA = 1e-5
RESULTS = Results("ten_columns")


def main() -> None:
    import pyarrow.parquet as pq
    from sklearn.linear_model import LogisticRegression

    warnings.simplefilter("ignore")
    table = pq.read_table(Path(os.environ["HUSHSUM_DATA"]) / "covtype.parquet")
    rows = np.column_stack([table[name].to_numpy() for name in COLUMNS]).astype(np.float32)
    labels = (table["target"].to_numpy() == 2).astype(int)
    bounds: Any = list(COLUMNS.values())
    found: list[dict[str, Any]] = []
    for epsilon in (0.1, 1.0):
        scores: dict[str, list[float]] = {}
        chosen: set[str] = set()
        for seed in range(10):
            order = np.random.default_rng(seed).permutation(len(rows))
            fit, test = order[:FITTED], order[FITTED : FITTED + SCORED]
            X, y = rows[fit], labels[fit]
            auto = hs.PrivateClassifier(epsilon=epsilon, delta=DELTA, bounds=bounds, classes=[0, 1])
            chosen.add(auto.chosen_method(n_features=len(COLUMNS)))
            models = {
                "PrivateClassifier, auto": auto,
                "PrivateLinearSVC": hs.PrivateLinearSVC(epsilon=epsilon, bounds=bounds, classes=[0, 1]),
            }
            for name, model in models.items():
                scores.setdefault(name, []).append(model.fit(X, y).score(rows[test], labels[test]))
            middle, width = np.mean(bounds, axis=1), np.ptp(bounds, axis=1)
            plain = LogisticRegression(max_iter=500).fit((X - middle) / width, y)
            scores.setdefault("logistic regression, not private", []).append(
                plain.score((rows[test] - middle) / width, labels[test])
            )
            scores.setdefault("most frequent class", []).append(
                float(max(labels[test].mean(), 1 - labels[test].mean()))
            )
        row = {
            name: [round(float(np.mean(each)), 4), round(float(np.std(each)), 4)]
            for name, each in scores.items()
        }
        found.append({"epsilon": epsilon, "delta": DELTA, "chosen": sorted(chosen), **row})
        print(json.dumps(found[-1]), flush=True)
    RESULTS.write(found)


if __name__ == "__main__":
    main()
