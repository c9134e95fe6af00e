"""Private linear regression on real data: the error of every method, relative to the mean of the target.

Airfoil, naval propulsion, gas sensors and protein structures; a random fifth is held out each time. Columns
and target are scaled by their range over the whole set, taken as public for the experiment. 1 is the error of
predicting the mean; the middle of the target's range alone is 14 on gas sensors, 1.2 on airfoil and protein.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import RepeatedSpending
from hushsum.models import PrivateRegressor

Floats = NDArray[np.float64]

EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0)
DELTA = 1e-6
TARGETS = {
    "airfoil": "target",
    "naval_propulsion": "target",
    "gas_drift_8batches": "concentration",
    "protein_casp": "target",
}
NO_FEATURES = {"target", "concentration", "batch", "target_compressor_decay"}


@dataclass(frozen=True, slots=True)
class Contender:
    """A method with its parameters; ``pure`` ones get no δ."""

    name: str
    method: str
    pure: bool = False
    published: bool = False
    unbounded: bool = False


CONTENDERS = (
    Contender("auto", "auto"),
    Contender("adassp", "adassp"),
    Contender("adassp as published", "adassp", published=True),
    Contender("ssp", "ssp"),
    Contender("ssp as published", "ssp", published=True),
    Contender("adaops", "adaops"),
    Contender("sketch", "sketch"),
    Contender("auto, pure", "auto", pure=True),
    Contender("adassp, pure", "adassp", pure=True),
    Contender("sketch, pure", "sketch", pure=True),
    Contender("ops, pure", "ops", pure=True),
    Contender("objective, pure", "objective", pure=True),
    Contender("objective, pure, wide", "objective", pure=True, unbounded=True),
)


def dataset(name: str) -> tuple[Floats, Floats]:
    """Features and target."""
    folder = os.environ.get("HUSHSUM_DATA")
    if not folder:
        raise SystemExit(f"set HUSHSUM_DATA to the folder that holds {name}.parquet")
    import pyarrow.parquet as pq

    table = pq.read_table(Path(folder) / f"{name}.parquet")
    features = [column for column in table.column_names if column not in NO_FEATURES]
    X = np.column_stack([table[column].to_numpy().astype(np.float64) for column in features])
    return X, table[TARGETS[name]].to_numpy().astype(np.float64)


def relative_error(X: Floats, y: Floats, contender: Contender, epsilon: float, seed: int) -> float:
    """The squared error on a held-out fifth over that of its mean."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[: len(X) * 4 // 5], order[len(X) * 4 // 5 :]
    low, high = X.min(axis=0), X.max(axis=0)
    bounds = list(zip(low, np.where(high > low, high, low + 1.0), strict=True))
    model = PrivateRegressor(
        epsilon=epsilon,
        delta=None if contender.pure else DELTA,
        method=contender.method,
        bounds=bounds,
        target_bounds=(float(y.min()), float(y.max())),
        records=len(train),
        theta_bound=float(np.sqrt(X.shape[1] + 1)) if contender.unbounded else 2.0,
        calibration="as-published" if contender.published else "tight",
        random_state=seed,
    ).fit(X[train], y[train])
    return float(np.mean((model.predict(X[test]) - y[test]) ** 2) / np.var(y[test]))


def measure(names: list[str], repetitions: int) -> list[dict[str, Any]]:
    """Mean errors and their standard errors, one row for each dataset, ε and method."""
    rows: list[dict[str, Any]] = []
    for name in names:
        X, y = dataset(name)
        for epsilon in EPSILONS:
            for contender in CONTENDERS:
                errors = [relative_error(X, y, contender, epsilon, seed) for seed in range(repetitions)]
                spread = float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else 0.0
                row = {
                    "data": name,
                    "epsilon": epsilon,
                    "method": contender.name,
                    "error": float(np.mean(errors)),
                    "stderr": spread,
                }
                print(json.dumps(row), flush=True)
                rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """A table for each dataset."""
    for name in dict.fromkeys(row["data"] for row in rows):
        print(f"\n{name:28s}" + "".join(f"{epsilon:>9g}" for epsilon in EPSILONS))
        for contender in CONTENDERS:
            found = {
                row["epsilon"]: row["error"]
                for row in rows
                if row["data"] == name and row["method"] == contender.name
            }
            print(f"{contender.name:28s}" + "".join(f"{found[each]:9.3f}" for each in EPSILONS))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(TARGETS))
    parser.add_argument("--repetitions", type=int, default=10)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", RepeatedSpending)
    show(measure(arguments.data, arguments.repetitions))


if __name__ == "__main__":
    main()
