"""A census with categories and gaps, encoded three ways: what a classifier makes of each at ε = 1.

Needs ``HUSHSUM_DATA``. Hash seeds are fixed. Balanced accuracies are about 0.75 and move by less than 0.01
from noise to noise; guessing gives 0.5.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline

import hushsum as hs
from hushsum.models import CategoryColumn, NumberColumn, PrivateClassifier, PublicEncoder

DATA = os.environ.get("HUSHSUM_DATA", "")
pytestmark = pytest.mark.skipif(not DATA, reason="HUSHSUM_DATA is not set: no real data")

# From the census's code book, not from the file.
COLUMNS: dict[str, Any] = {
    "age": NumberColumn(17, 90),
    "education_num": NumberColumn(1, 16),
    "hours_per_week": NumberColumn(1, 99),
    "capital_gain": NumberColumn(0, 20_000),
    "marital_status": CategoryColumn(
        ["Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed"], unknown="other"
    ),
    "occupation": CategoryColumn(
        ["Exec-managerial", "Prof-specialty", "Craft-repair", "Sales", "Adm-clerical", "Other-service"],
        unknown="other",
    ),
    "sex": CategoryColumn(["Female", "Male"], missing="refuse"),
}


@pytest.fixture(scope="module")
def census() -> Any:
    import pyarrow.parquet as pq

    table = pq.read_table(Path(DATA) / "adult.parquet")
    training = np.array(table["split"].to_pylist()) == "train"
    y = table["target"].to_numpy()
    return table.filter(training), y[training], table.filter(~training), y[~training]


def test_one_hot_columns_feed_the_classifier(census: Any) -> None:
    X, y, Q, truth = census
    model = make_pipeline(
        PublicEncoder(COLUMNS),
        PrivateClassifier(classes=[0, 1], rule="likelihood", bandwidth=3.0, random_state=0),
    )
    assert balanced_accuracy_score(truth, model.fit(X, y).predict(Q)) > 0.7


@pytest.mark.parametrize(
    ("output", "kernel"), [("codes", hs.HammingKernel(dim=7, power=4)), ("sets", hs.JaccardKernel(power=4))]
)
def test_codes_and_sets_tell_the_classes_apart(census: Any, output: str, kernel: Any) -> None:
    X, y, Q, truth = census
    encoder = PublicEncoder(COLUMNS, output=output)
    records, queries = encoder.transform(X), encoder.transform(Q)
    f, g = (hs.race(kernel, rows=1000).add(records[y == label]).release(epsilon=1.0) for label in (0, 1))
    assert balanced_accuracy_score(truth, g(queries) > f(queries)) > 0.7
