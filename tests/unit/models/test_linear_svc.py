"""PrivateLinearSVC: planes, claims, classes."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

from hushsum.errors import RepeatedSpending, UsageError
from hushsum.models import PrivateLinearSVC, load_model

RNG = np.random.default_rng(11)
X = RNG.uniform(-1, 1, (40_000, 3))
Y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0.1, "yes", "no")


@pytest.fixture(autouse=True)
def _quiet() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedSpending)
        yield


def fitted(method: str, **options: object) -> PrivateLinearSVC:
    given = {"epsilon": 2.0, "classes": ["no", "yes"], "random_state": 1, **options}
    return PrivateLinearSVC(method=method, **given).fit(X, Y)  # type: ignore[arg-type]


@pytest.mark.parametrize(("method", "least"), [("sketch", 0.85), ("objective", 0.95)])
def test_both_methods_find_the_plane(method: str, least: float) -> None:
    model = fitted(method)
    assert model.score(X, Y) > least
    assert model.coef_.shape == (1, 3)
    values = X[:10] @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X[:10]), values, rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X[:10]), np.where(values > 0, "yes", "no"))


def test_classes_may_be_of_any_sizes() -> None:
    """A tenth of the records in one class: both are found."""
    rare = X[:, 0] > 0.8
    labels = np.where(rare, 1, 0)
    model = PrivateLinearSVC(epsilon=5.0, delta=1e-6, classes=[0, 1], random_state=1).fit(X, labels)
    found = model.predict(X)
    assert np.mean(found[rare] == 1) > 0.8
    assert np.mean(found[~rare] == 0) > 0.7


def test_claims() -> None:
    claim = fitted("objective", delta=1e-6).claim_
    assert (claim.delta, claim.arithmetic) == (0.0, "real arithmetic")
    claim = fitted("sketch").claim_
    assert (str(claim.mechanism), claim.arithmetic) == ("discrete laplace", "exact integers")
    assert not claim.assumptions
    parts = fitted("sketch").released_.parts
    assert [part.claim.epsilon for part in parts.values()] == [2.0, 2.0]


def test_classes_of_partial_fit() -> None:
    model = PrivateLinearSVC(epsilon=5.0, random_state=1)
    model.partial_fit(X[:20_000], Y[:20_000], classes=["no", "yes"]).partial_fit(X[20_000:], Y[20_000:])
    assert model.release().score(X, Y) > 0.85


def test_a_file_answers_as_the_model_did() -> None:
    for method in ("sketch", "objective"):
        model = fitted(method)
        buffer = io.BytesIO()
        model.save(buffer)
        buffer.seek(0)
        again = load_model(buffer)
        assert isinstance(again, PrivateLinearSVC)
        np.testing.assert_array_equal(again.predict(X[:50]), model.predict(X[:50]))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "hinge"}, "method"), ({"classes": [1]}, "one class"), ({"classes": [1, 2, 3]}, "binary")],
)
def test_refusals(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PrivateLinearSVC(**options).fit(X[:10], Y[:10])  # type: ignore[arg-type]
