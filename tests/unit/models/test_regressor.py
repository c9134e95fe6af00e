"""PrivateRegressor: every method finds a plain slope, claims what it keeps, streams and travels."""

from __future__ import annotations

import io
import warnings
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from hushsum.errors import AlreadyReleased, RepeatedSpending, SecretRefused, UsageError
from hushsum.models import REGRESSION_METHODS, KeptRecords, PrivateRegressor, load_model

RNG = np.random.default_rng(10)
X = RNG.uniform(0, 10, (200_000, 2))
Y = 3.0 * X[:, 0] - 1.5 * X[:, 1] + 5.0
BOX = {"bounds": (0, 10), "target_bounds": (-15, 40)}


@pytest.fixture(autouse=True)
def _quiet() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedSpending)
        yield


@cache
def fitted(method: str, **options: object) -> PrivateRegressor:
    """Fitted once for all tests that only read it."""
    given = {"epsilon": 5.0, "random_state": 1, "theta_bound": 3.0, **BOX, **options}
    return PrivateRegressor(method=method, **given).fit(X, Y)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", REGRESSION_METHODS)
def test_every_method_finds_the_slopes(method: str) -> None:
    model = fitted(method)
    slack = 2.0 if method in ("sketch", "surrogate") else 0.3
    np.testing.assert_allclose(model.coef_, [3.0, -1.5], atol=slack)
    middle = model.predict([[5.0, 5.0]])[0]
    assert middle == pytest.approx(12.5, abs=1.5)
    assert model.predict([[5.0, 5.0]])[0] == pytest.approx(model.coef_ @ [5.0, 5.0] + model.intercept_)


def test_predictions_stay_within_the_declared_bounds() -> None:
    model = fitted("adassp", column_scaling="bounds")
    values = model.predict([[1e6, -1e6], [-1e6, 1e6]])
    np.testing.assert_array_equal(values, [40.0, -15.0])


@pytest.mark.parametrize(
    ("method", "delta", "mechanism", "arithmetic"),
    [
        ("adassp", 1e-6, "discrete gaussian", "exact integers"),
        ("adassp", None, "discrete laplace or gamma radius", "exact integers"),
        ("ssp", None, "discrete laplace or gamma radius", "exact integers"),
        ("sketch", 1e-6, "discrete gaussian", "exact integers"),
        ("surrogate", 1e-6, "discrete gaussian", "exact integers"),
        ("objective", 1e-6, "objective perturbation", "real arithmetic"),
        ("ops", 1e-6, "one posterior sample", "real arithmetic"),
        ("adaops", 1e-6, "one posterior sample", "real arithmetic"),
    ],
)
def test_the_claim_is_what_the_method_keeps(
    method: str, delta: float | None, mechanism: str, arithmetic: str
) -> None:
    claim = fitted(method, delta=delta).claim_
    assert (str(claim.mechanism), claim.arithmetic, claim.epsilon) == (mechanism, arithmetic, 5.0)
    pure = delta is None or method in ("objective", "ops")
    assert claim.delta == (0.0 if pure else delta)


def test_as_published_keeps_reals_and_needs_delta() -> None:
    model = fitted("adassp", calibration="as-published")
    assert str(model.claim_.mechanism) == "gaussian, as-published"
    assert model.claim_.arithmetic == "real arithmetic"
    np.testing.assert_allclose(model.coef_, [3.0, -1.5], atol=0.3)
    with pytest.raises(UsageError, match="delta must be above 0"):
        fitted("ssp", calibration="as-published", delta=None)


@pytest.mark.parametrize("method", ["adassp", "sketch", "objective"])
def test_batches_add_up(method: str) -> None:
    model = PrivateRegressor(method=method, epsilon=5.0, theta_bound=3.0, **BOX)  # type: ignore[arg-type]
    for part in np.split(np.arange(len(X)), 4):
        model.partial_fit(X[part], Y[part])
    assert "CONFIDENTIAL" in repr(model._state)
    assert model.release().predict([[5.0, 5.0]])[0] == pytest.approx(12.5, abs=1.5)
    with pytest.raises(AlreadyReleased):
        model.partial_fit(X, Y)


@pytest.mark.parametrize("method", ["adassp", "sketch", "ops"])
def test_a_file_answers_as_the_model_did(method: str) -> None:
    model = fitted(method)
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    again = load_model(buffer)
    assert isinstance(again, PrivateRegressor)
    assert again.method_ == method
    np.testing.assert_array_equal(again.predict(X[:50]), model.predict(X[:50]))


def test_sums_of_the_sketch_share_one_budget() -> None:
    for scaling, left in (("bounds", 1), ("quantiles", Fraction(9, 10))):
        parts = fitted("sketch", delta=None, epsilon=1.0, column_scaling=scaling).released_.parts
        spent = [part.claim.promise.epsilon for part in parts.values()]
        assert sum(each for each in spent if each is not None) == left
    parts = fitted("sketch", epsilon=1.0).released_.parts
    assert all(part.claim.rho is not None for part in parts.values())


def test_few_records_get_the_middle_of_the_bounds() -> None:
    model = PrivateRegressor(**BOX).fit(X[:100], Y[:100])  # type: ignore[arg-type]
    np.testing.assert_array_equal(model.predict(X[:5]), 12.5)


def test_the_choice_knows_declared_quantities_only() -> None:
    for columns, declared, method in (
        (5, {"delta": 1e-6}, "adassp"),
        (100, {"delta": None}, "ops"),
        (100, {"delta": 1e-6, "records": 100}, "sketch"),
        (128, {"delta": None, "epsilon": 0.1, "records": 5000}, "sketch"),
    ):
        given: dict[str, Any] = {"epsilon": 1.0, "rows": 50, **declared}
        model = PrivateRegressor(**given).fit(np.zeros((10, columns)), np.zeros(10))
        assert model.method_ == method


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "method"),
        ({"calibration": "loose"}, "calibration"),
        ({"method": "adaops", "delta": None}, "delta"),
        ({"bounds": None}, "bounds"),
        ({"target_bounds": None}, "target_bounds"),
        ({"radius": 0.5}, "radius"),
    ],
)
def test_refusals(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PrivateRegressor(**options).fit(X[:10], Y[:10])  # type: ignore[arg-type]


def test_kept_records_do_not_leave() -> None:
    kept = KeptRecords()
    kept.add(X[:2], Y[:2])
    assert "CONFIDENTIAL" in repr(kept)
    with pytest.raises(SecretRefused):
        kept.__reduce_ex__(2)
