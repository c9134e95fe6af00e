"""How often private classifiers are right on embeddings and on tables of measurements.

    HUSHSUM_DATA=... python -m benchmarks embedding_accuracy [--repetitions 10] [--again]

Each cell is a data set, ε, a method and whether public rows are used; a repetition has its own split and its
own noise. A run that was stopped continues; ``--again`` starts anew.

Embeddings: δ = 1e-5, records of length 1, accuracy. CIFAR images are split at random: 12,000 private, 600
public, the rest for the test. The sentences have a test part; one per cent of the others are the public rows,
which are then no private records. Tables of measurements: a fifth is for the test, bounds are round numbers,
balanced accuracy. The constants of `PrivateClassifier` (ridge, shares, quantile, limit of the noise) were
chosen with all of these sets in view: none is held out, and the numbers are optimistic. The weights of the
total over classes were chosen on the training part of SST-2 and on CIFAR.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.accuracy.medium_dimension import _RANGES
from benchmarks.writer import Results, version_of_code
from numpy.typing import NDArray

import hushsum as hs
from hushsum.methods import fit_logistic

RESULTS = Results("embedding_accuracy")
EPSILONS = (1.0, 0.1)
DELTA = 1e-5
EMBEDDINGS = ("cifar10_resnet18", "agnews_minilm", "sst2_minilm")
TABLES = ("htru2", "occupancy", "cod_rna")
METHODS = ("auto", "kernel", "means", "discriminant")
LOGISTIC = "objective perturbation"
_OCCUPANCY = ((15, 30), (0, 50), (0, 2000), (0, 2500), (0.0, 0.01))
_CIFAR_PRIVATE, _CIFAR_PUBLIC = 12_000, 600
_TEST_SHARE = 0.2
_MOST_TESTED = 8000
_SOME, _FEW = 5, 3
"""Repetitions of what is only compared with, and of what is slow too."""

Rows = NDArray[np.float32]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Private records with their classes, public rows without, and a test part."""

    X: Rows
    y: Codes
    public: Rows
    test: Rows
    truth: Codes


@dataclass(frozen=True)
class Cell:
    """One number of the table."""

    data: str
    public: bool
    epsilon: float
    method: str

    @property
    def key(self) -> str:
        """What the cell is called in the file of results."""
        public = "public rows" if self.public else "no public rows"
        return f"{self.data}, {public}, {self.epsilon:g}, {self.method}"


def cells() -> Iterator[tuple[Cell, int | None]]:
    """Every cell, and the most repetitions of it."""
    for method in METHODS:
        for data, epsilon in product(TABLES, EPSILONS):
            yield Cell(data, False, epsilon, method), None
        for data, public, epsilon in product(EMBEDDINGS, (False, True), EPSILONS):
            if method != "kernel":
                yield Cell(data, public, epsilon, method), None if method == "auto" else _SOME
    for data in EMBEDDINGS:
        for epsilon in EPSILONS:
            yield Cell(data, False, epsilon, LOGISTIC), _FEW
            yield Cell(data, False, epsilon, "kernel"), _FEW


@cache
def _embeddings(name: str) -> tuple[Rows, Codes, NDArray[np.bool_]]:
    """Vectors, classes, and which rows are of the test part."""
    import pyarrow.parquet as pq

    table = pq.read_table(Path(os.environ["HUSHSUM_DATA"]) / f"{name}.parquet")
    flat = table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    vectors = flat.astype(np.float32).reshape(table.num_rows, -1)
    label = "normal_class" if name == "cifar10_resnet18" else "target"
    codes = np.unique(table[label].to_numpy(), return_inverse=True)[1]
    if "split" in table.column_names:
        return vectors, codes, np.array(table["split"].to_pylist()) == "test"
    kept = table["target"].to_numpy() == 0
    vectors = vectors[kept] / np.linalg.norm(vectors[kept], axis=1, keepdims=True)
    return vectors, codes[kept], np.zeros(int(kept.sum()), bool)


@cache
def _table(name: str) -> tuple[Rows, Codes]:
    """Columns from -1 to 1, by round numbers around the ranges that the descriptions of the data state."""
    import pyarrow.parquet as pq

    table = pq.read_table(Path(os.environ["HUSHSUM_DATA"]) / f"{name}.parquet")
    left_out = {"target", "hour", "date", "split"}
    columns = [table[each].to_numpy().astype(float) for each in table.column_names if each not in left_out]
    low, high = np.array(_OCCUPANCY if name == "occupancy" else _RANGES[name], float).T
    unit = (np.column_stack(columns) - (low + high) / 2.0) / ((high - low) / 2.0)
    return np.clip(unit, -1.0, 1.0).astype(np.float32), table["target"].to_numpy().astype(np.int64)


def split_of(cell: Cell, repetition: int) -> Split:
    """The records of a repetition; the same for every method and ε."""
    rng = np.random.default_rng((2026, repetition))
    if cell.data in TABLES:
        X, y = _table(cell.data)
        order = rng.permutation(len(y))
        tested = round(_TEST_SHARE * len(y))
        test, private = order[:tested][:_MOST_TESTED], order[tested:]
        return Split(X[private], y[private], X[:0], X[test], y[test])
    X, y, tested_rows = _embeddings(cell.data)
    if not tested_rows.any():
        order = rng.permutation(len(y))
        ends = _CIFAR_PRIVATE, _CIFAR_PRIVATE + _CIFAR_PUBLIC
        private, public, test = order[: ends[0]], order[ends[0] : ends[1]], order[ends[1] :]
    else:
        order, test = rng.permutation(np.flatnonzero(~tested_rows)), np.flatnonzero(tested_rows)
        number = len(order) // 100 if cell.public else 0
        public, private = order[:number], order[number:]
    return Split(X[private], y[private], X[public], X[test], y[test])


def accuracy(cell: Cell, repetition: int) -> tuple[float, str]:
    """Of one repetition, and the method that was used."""
    split = split_of(cell, repetition)
    classes = int(split.y.max()) + 1
    if cell.method == LOGISTIC:
        return _scored(cell, _logistic(split, classes, cell.epsilon), split.truth), LOGISTIC
    on_sphere: dict[str, Any] = {"bandwidth": 1.0} if cell.method == "kernel" else {}
    if cell.data in EMBEDDINGS and cell.method != "kernel":
        on_sphere = {"radius": 1.0}
    model = hs.PrivateClassifier(
        epsilon=cell.epsilon,
        delta=DELTA,
        classes=list(range(classes)),
        method=cell.method,
        records=round(len(split.y), -3),
        public=split.public if cell.public else None,
        random_state=repetition,
        **on_sphere,
    ).fit(split.X, split.y)
    return _scored(cell, model.predict(split.test), split.truth), model.method_


def _scored(cell: Cell, found: Codes, truth: Codes) -> float:
    """Accuracy; balanced for tables."""
    right = found == truth
    if cell.data in EMBEDDINGS:
        return float(right.mean())
    return float(np.mean([right[truth == each].mean() for each in np.unique(truth)]))


def _logistic(split: Split, classes: int, epsilon: float) -> Codes:
    """One against the rest, each with its part of a pure ε; a constant feature of half the length."""
    constant = np.full((len(split.X), 1), 0.5)
    features = np.hstack((split.X.astype(float), constant)) / np.sqrt(1.25)
    tests = range(1) if classes == 2 else range(classes)
    scores = []
    for code in tests:
        sign = np.where(split.y == (1 if classes == 2 else code), 1.0, -1.0)
        theta = fit_logistic(features, sign, epsilon=epsilon / len(tests))
        scores.append(split.test @ theta[:-1] + 0.5 * theta[-1])
    if classes == 2:
        return np.asarray(scores[0] > 0.0, np.int64)
    return np.asarray(np.argmax(scores, axis=0), np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--only", default="", help="a part of the key of the cells to run")
    options = parser.parse_args()
    known: dict[str, Any] = {"cells": {}} if options.again else RESULTS.read({"cells": {}})
    for cell, most in cells():
        if options.only not in cell.key:
            continue
        found = known["cells"].setdefault(cell.key, {"values": [], "method": ""})
        if found.pop("earlier", False):
            found["values"] = []
        for repetition in range(len(found["values"]), min(options.repetitions, most or options.repetitions)):
            value, found["method"] = accuracy(cell, repetition)
            found["values"].append(round(value, 4))
            known["version"] = version_of_code().as_json()
            RESULTS.write(known)
        print(cell.key, found["method"], _mean(found["values"]), flush=True)
    RESULTS.publish(report(known))


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values) / max(1, len(values) - 1) ** 0.5:.3f}" if values else "–"


def report(known: dict[str, Any]) -> str:
    """The tables, with the standard errors of means."""
    lines = ["# Private classification of embeddings and tables", ""]
    version = known.get("version", {})
    lines += [
        f"Version {version.get('number')}, sources {version.get('digest')}, {version.get('day')}. Mean over"
    ]
    lines[-1] += " repetitions ± its standard error; δ = 1e-5."
    for title, names in (("Accuracy on embeddings", EMBEDDINGS), ("Balanced accuracy on tables", TABLES)):
        methods = ("auto", "means", "discriminant", "kernel", *((LOGISTIC,) if names is EMBEDDINGS else ()))
        lines += [
            "",
            f"## {title}",
            "",
            f"| data | public rows | ε | {' | '.join(methods)} | auto chose | repetitions |",
        ]
        lines += ["|---" * (len(methods) + 5) + "|"]
        for name in names:
            for public in (False, True) if names is EMBEDDINGS else (False,):
                for epsilon in EPSILONS:
                    row = [known["cells"].get(Cell(name, public, epsilon, each).key, {}) for each in methods]
                    numbers = " | ".join(_mean(each.get("values", [])) for each in row)
                    chosen, many = row[0].get("method", ""), len(row[0].get("values", []))
                    said = "yes" if public else "no"
                    lines.append(f"| {name} | {said} | {epsilon:g} | {numbers} | {chosen} | {many} |")
    lines += [
        "",
        "The last column is of auto; the other methods have 3 to 10 repetitions, as the JSON file lists.",
        "All cells are of one version. Kernel rule: bandwidth 1. Objective perturbation: pure ε, one class",
        "against the rest, no more ridge than privacy needs.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
