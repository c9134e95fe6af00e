"""The classifier: its rules, its classes, its silence."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, cross_val_score

import hushsum as hs
from hushsum.errors import DataRefused, RepeatedSpending, UsageError
from tests.exact_tallies import exact_table

Data = tuple[NDArray[np.float64], NDArray[Any]]


def two_bells(number: int = 8000, share: float = 0.5, labels: tuple[Any, Any] = (0, 1)) -> Data:
    random = np.random.default_rng(8)
    second = random.random(number) < share
    X = random.normal(0.0, 0.15, size=(number, 2)) + np.where(second, 0.5, -0.5)[:, None]
    return X, np.where(second, labels[1], labels[0])


def test_it_tells_two_clusters_apart() -> None:
    X, y = two_bells()
    model = hs.PrivateClassifier(epsilon=1.0, classes=[0, 1], random_state=0).fit(X, y)
    assert model.score(X, y) > 0.99


def test_it_tells_five_classes_apart_and_probabilities_are_probabilities() -> None:
    random = np.random.default_rng(1)
    y = random.integers(5, size=20_000)
    centres = np.array([[-0.8, -0.8], [0.8, -0.8], [0.8, 0.8], [-0.8, 0.8], [0.0, 0.0]])
    X = centres[y] + random.normal(0.0, 0.1, size=(len(y), 2))
    model = hs.PrivateClassifier(epsilon=1.0, classes=range(5), bandwidth=0.6, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97
    probabilities = model.predict_proba(X[:100])
    assert probabilities.shape == (100, 5)
    assert (probabilities > 0.0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X[:100]))


def test_every_class_gets_the_whole_budget_and_the_claim_is_one() -> None:
    X, y = two_bells()
    model = hs.PrivateClassifier(epsilon=0.7, classes=[0, 1], method="kernel").fit(X, y)
    assert [part.claim.epsilon for part in model.released_.parts.values()] == [0.7, 0.7]
    assert model.claim_.epsilon == 0.7
    assert model.claim_.assumptions == ()


def test_sums_favour_the_frequent_class_and_means_do_not() -> None:
    X, y = two_bells(40_000, share=0.02)
    middle = np.array([[0.05, 0.05]])
    chances = {}
    for rule in ("map", "likelihood"):
        model = hs.PrivateClassifier(epsilon=4.0, classes=[0, 1], method="kernel", rule=rule, random_state=0)
        model.fit(X, y)
        chances[rule] = model.predict_proba(middle)[0, 0]
    assert chances["map"] > 0.9 > 0.7 > chances["likelihood"]


def test_priors_come_from_the_private_counts() -> None:
    X, y = two_bells(20_000, share=0.25)
    model = hs.PrivateClassifier(classes=[0, 1]).partial_fit(X, y)
    with pytest.raises(AttributeError, match="released nothing yet"):
        _ = model.class_prior_
    # Counts have a standard error of about 28 in 20,000; 0.03 is twenty of them.
    np.testing.assert_allclose(model.release().class_prior_, [0.75, 0.25], atol=0.03)


def test_a_declared_class_may_be_empty() -> None:
    X, y = two_bells()
    model = hs.PrivateClassifier(classes=[0, 1, 2], random_state=0).fit(X, y)
    assert (model.predict(X) != 2).mean() > 0.99
    # The empty class passes for 85 records or more in one run of a hundred, for 400 in one of 10⁹.
    assert model.class_prior_[2] < 0.05


def test_partial_fit_takes_the_classes_at_first() -> None:
    X, y = two_bells()
    pieces = hs.PrivateClassifier(random_state=3, column_scaling="bounds")
    pieces.partial_fit(X[:10], y[:10], classes=[0, 1])
    pieces.partial_fit(X[10:], y[10:])
    whole = hs.PrivateClassifier(classes=[0, 1], random_state=3, column_scaling="bounds").partial_fit(X, y)
    tables = [exact_table(each._state.secret[1]) for each in (pieces, whole)]
    assert np.array_equal(*tables)
    assert pieces.release().claim_.assumptions == ()


def test_a_refused_batch_changes_nothing() -> None:
    X, y = two_bells()
    model = hs.PrivateClassifier(classes=[0, 1], random_state=0, column_scaling="bounds").partial_fit(X, y)
    before = exact_table(model._state.secret[1]).copy()
    with pytest.raises(DataRefused):
        model.partial_fit(X, np.where(y == 1, 7, 0))
    assert np.array_equal(exact_table(model._state.secret[1]), before)


def test_a_search_warns_at_its_second_fit_and_a_cross_validation_too() -> None:
    X, y = two_bells(500)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RepeatedSpending)
        search = GridSearchCV(
            hs.PrivateClassifier(classes=[0, 1], random_state=0), {"bandwidth": [0.5, 1.0]}, cv=2
        )
        search.fit(X, y)
    assert sum(issubclass(each.category, RepeatedSpending) for each in caught) == 4
    with pytest.warns(RepeatedSpending):
        cross_val_score(hs.PrivateClassifier(classes=[0, 1]), X, y, cv=2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rule": "best"}, "rule must be one of"),
        ({"rows": "many"}, "rows must be an integer"),
        ({"rows": 0}, "rows must be"),
        ({"classes": []}, "at least one class"),
        ({"bandwidth": 0.0}, "bandwidth"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, Any], message: str) -> None:
    X, y = two_bells(50)
    with pytest.raises(UsageError, match=message):
        hs.PrivateClassifier(**{"classes": [0, 1], **parameters}).fit(X, y)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows"), [(1.0, None, 150), (0.01, None, 15), (100.0, None, 1000), (1.0, 1e-6, 1000)]
)
def test_the_capacity_of_rows_follows_the_budget(epsilon: float, delta: float | None, rows: int) -> None:
    X, y = two_bells(50)
    model = hs.PrivateClassifier(epsilon=epsilon, delta=delta, classes=[0, 1], method="kernel")
    model.partial_fit(X, y)
    assert model._state.secret[1][0].basis.shape[0] == rows
