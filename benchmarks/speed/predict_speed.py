"""How many rows a second each model predicts: `python -m benchmarks predict_speed [--quick] [--json]`.

Processor time of one thread, best of several, for 10,000 rows through the public method. Every model is
fitted on 50,000 made-up records and released before.
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from sklearn.base import is_classifier, is_regressor

import hushsum.models
from hushsum.errors import PublicAssumption
from hushsum.models import PrivateModel

ROWS = 10_000
MOST_SECONDS = 1.0
METHODS = ("predict", "predict_proba", "decision_function", "score_samples")
COLUMNS = (3, 8)


def cases(model: PrivateModel) -> list[tuple[str, PrivateModel]]:
    """Every model as it comes, and with δ, where it has more rows or features to read."""
    name = type(model).__name__
    return [(name, model), (f"{name}, δ = 1e-6", type(model)(delta=1e-6))]


def released(model: Any, records: int, columns: int) -> Any:
    random = np.random.default_rng(7)
    X = random.normal(0.0, 0.3, size=(records, columns)).clip(-1.0, 1.0)
    y = None
    if is_classifier(model):
        y = (X[:, 0] > 0.0).astype(int)
    elif is_regressor(model):
        y = X[:, 0] / 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicAssumption)
        return model.set_params(random_state=0).fit(X, y)


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def measure(records: int, repeats: int) -> list[dict[str, Any]]:
    found = []
    names = [each for each in hushsum.models.__all__ if each.startswith("Private") and each != "PrivateModel"]
    for columns in COLUMNS:
        queries = np.random.default_rng(1).uniform(-1.0, 1.0, size=(ROWS, columns))
        for name in names:
            for case, model in cases(getattr(hushsum.models, name)()):
                ready = released(model, records, columns)
                method = next(each for each in METHODS if hasattr(ready, each))
                seconds = best_seconds(partial(getattr(ready, method), queries), repeats)
                found.append(
                    {
                        "model": case,
                        "columns": columns,
                        "method": method,
                        "seconds": seconds,
                        "rows_a_second": ROWS / seconds,
                    }
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer records and repeats")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    found = measure(5_000, 2) if options.quick else measure(50_000, 5)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{'model':<44}{'columns':>8}  {'method':<18}{'ms / 10,000':>12}{'rows a second':>16}")
        for row in found:
            print(
                f"{row['model']:<44}{row['columns']:>8}  {row['method']:<18}"
                f"{1000 * row['seconds']:>12.1f}{row['rows_a_second']:>16,.0f}"
            )
    slow = [row["model"] for row in found if row["seconds"] > MOST_SECONDS]
    if slow:
        raise SystemExit(f"more than {MOST_SECONDS:g} s for {ROWS:,} rows: {', '.join(slow)}")


if __name__ == "__main__":
    main()
