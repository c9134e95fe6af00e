"""Outliers: a declared threshold, a paid one, and silence."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.ledger import DatasetTerms, Ledger
from hushsum.models._neighbors import QUANTILE_SHARE, _scores_alone


def cluster(number: int = 20_000) -> NDArray[np.float64]:
    return np.random.default_rng(4).normal(0.0, 0.15, size=(number, 3))


def test_points_far_from_the_records_are_outliers() -> None:
    model = hs.PrivateOutlierDetector(epsilon=1.0, random_state=0).fit(cluster())
    assert model.predict([[0.0, 0.0, 0.0], [0.9, -0.9, 0.9], [5.0, 5.0, 5.0]]).tolist() == [1, -1, -1]
    assert model.offset_ == 0.01
    assert str(model.claim_.mechanism) == "discrete laplace"


def test_scores_are_shares_of_similar_records() -> None:
    X = cluster()
    model = hs.PrivateOutlierDetector(epsilon=10.0, random_state=0).fit(X)
    exact = hs.EuclideanKernel(3, 0.5, power=4).exact_sum(X, X[:50]) / len(X)
    # 1000 rows at ε = 10: a standard error of about 0.01.
    np.testing.assert_allclose(model.score_samples(X[:50]), exact, atol=0.08)
    decision = model.decision_function(X[:50])
    assert np.array_equal(model.predict(X[:50]), np.where(decision >= 0.0, 1, -1))


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_a_paid_threshold_leaves_about_the_asked_share_below_it(share: float) -> None:
    X = cluster()
    model = hs.PrivateOutlierDetector(epsilon=1.0, contamination=share, random_state=0).fit(X)
    # A private quantile at ε/4 is off by about 100 ranks of 20,000, and a step of the grid is 2 % of it.
    assert (model.predict(X) == -1).mean() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_threshold_and_the_sketch_share_the_budget_exactly(delta: float | None) -> None:
    model = hs.PrivateOutlierDetector(epsilon=1.0, delta=delta, contamination=0.1).fit(cluster(2000))
    sketch = model.released_.parts["similarity"].claim.promise
    assert sketch.epsilon == 1 - QUANTILE_SHARE == Fraction(3, 4)
    assert (model.claim_.epsilon, model.claim_.delta) == (1.0, delta or 0.0)
    kind = "laplace" if delta is None else "gaussian"
    assert str(model.claim_.mechanism) == f"discrete {kind} + permute and flip"


def test_the_records_are_kept_only_where_they_are_needed_and_only_until_the_release() -> None:
    declared = hs.PrivateOutlierDetector().partial_fit(cluster(100))
    assert declared._state.secret[1]._features == []
    paid = hs.PrivateOutlierDetector(contamination=0.1).partial_fit(cluster(100)).partial_fit(cluster(50))
    assert len(paid._state.secret[1].all()[0]) == 150
    assert repr(paid._state.secret[1]) == "<KeptRecords CONFIDENTIAL>"
    paid.release()
    assert paid._state.secret is None


def test_a_records_score_depends_on_that_record_alone() -> None:
    X = cluster(300)
    model = hs.PrivateOutlierDetector(random_state=0).fit(cluster())
    function = model.released_.parts["similarity"]
    together = function(X)
    for size in (1, 2, 7):
        for start in range(0, 30, size):
            assert np.array_equal(function(X[start : start + size]), together[start : start + size])


def test_a_book_takes_the_claim_of_both_steps(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path))
    ledger = Ledger.create(tmp_path / "book.db")
    ledger.create_dataset("people", DatasetTerms.of(epsilon=1.0))
    model = hs.PrivateOutlierDetector(
        epsilon=0.75, contamination=0.1, budget=ledger.dataset("people"), idempotency_key="first"
    )
    model.fit(cluster(2000))
    assert ledger.account("people").remaining.in_words() == "ε 0.25"


def test_below_the_noise_of_its_count_only_the_bounds_speak() -> None:
    """Twenty records at ε = 1 pass for many with a probability below 1e-6."""
    model = hs.PrivateOutlierDetector(epsilon=1.0).fit(cluster(20))
    assert model.predict([[0.9, 0.9, 0.9], [1.0, 1.0, 1.0], [1.1, 0.0, 0.0]]).tolist() == [1, 1, -1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"threshold": -0.1}, "threshold must be"),
        ({"threshold": "low"}, "threshold must be"),
        ({"contamination": 0.0}, "contamination must be"),
        ({"contamination": 0.6}, "contamination must be"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hs.PrivateOutlierDetector(**parameters).fit(cluster(50))


def vectors(number: int, seed: int, spread: int) -> NDArray[np.float64]:
    """Unit vectors of 100 columns, of which the first ``spread`` vary much."""
    rows = np.random.default_rng(seed).normal(size=(number, 100)) * np.where(
        np.arange(100) < spread, 1.0, 0.2
    )
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


@pytest.mark.parametrize(("epsilon", "kernel"), [(1.0, "polynomial"), (0.02, "dot-product")])
def test_vectors_of_a_model_are_scored_by_inner_products(epsilon: float, kernel: str) -> None:
    X = vectors(3000, 1, 10)
    model = hs.PrivateOutlierDetector(epsilon=epsilon, delta=1e-6, radius=1.0, contamination=0.05).fit(X)
    function = model.released_.parts["similarity"]
    assert function.kernel.name == kernel
    predicted = model.predicted_error(3000, 100)
    assert predicted is not None
    assert predicted.error > 0.0
    if kernel == "polynomial":
        like, unlike = model.predict(vectors(500, 2, 10)), model.predict(vectors(500, 3, 100))
        assert (like == -1).mean() == pytest.approx(0.05, abs=0.05)
        assert (unlike == -1).mean() > 0.9
        # A long vector is not like more records than a short one.
        np.testing.assert_allclose(model.score_samples(100.0 * X[:5]), model.score_samples(X[:5]), rtol=1e-5)


def test_the_score_behind_a_paid_threshold_is_that_of_the_record_alone() -> None:
    X = vectors(200, 1, 10)
    for epsilon in (1.0, 0.02):
        model = hs.PrivateOutlierDetector(epsilon=epsilon, delta=1e-6, radius=1.0).fit(X)
        function = model.released_.parts["similarity"]
        scores = _scores_alone(function, X)
        expected = function(X)
        # Sums of products of single precision: their rounding follows the largest of them, which is noise.
        np.testing.assert_allclose(scores, expected, atol=1e-5 + 1e-6 * float(np.abs(expected).max()))
        np.testing.assert_array_equal(_scores_alone(function, X[::-1])[::-1], scores)
        np.testing.assert_array_equal(_scores_alone(function, X[7:8]), scores[7:8])
