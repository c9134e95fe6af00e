"""Objective perturbation: exact minima, and the condition of its proof, checked on neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge

from hushsum.errors import UsageError
from hushsum.methods import fit_logistic, fit_squares, perturbation
from hushsum.methods._linear_models import minimum_in_ball, minimum_logistic
from hushsum.privacy import ReleaseNoise

RNG = np.random.default_rng(6)
FEATURES = RNG.normal(size=(300, 4)) / 4.0
FEATURES /= np.maximum(np.linalg.norm(FEATURES, axis=1), 1.0)[:, None]
TARGET = np.clip(FEATURES @ np.array([0.9, -0.4, 0.2, 0.1]), -1, 1)
SIGN = np.where(FEATURES[:, 0] + 0.3 * RNG.normal(size=300) > 0, 1.0, -1.0)
Floats = NDArray[np.float64]


def test_without_noise_squares_are_ridge_regression() -> None:
    model = Ridge(alpha=2.5, fit_intercept=False).fit(FEATURES, TARGET)
    found = minimum_in_ball(FEATURES.T @ FEATURES, FEATURES.T @ TARGET, 2.5, 100.0)
    np.testing.assert_allclose(found, model.coef_, rtol=1e-9)


@pytest.mark.parametrize("bound", [0.05, 0.3, 0.9])
def test_on_the_sphere_the_gradient_points_outwards(bound: float) -> None:
    """The conditions of Karush, Kuhn and Tucker."""
    gram, cross = FEATURES.T @ FEATURES, FEATURES.T @ TARGET
    theta = minimum_in_ball(gram, cross, 0.1, bound)
    assert np.linalg.norm(theta) == pytest.approx(min(bound, 10.0), rel=1e-9)
    slope = gram @ theta + 0.1 * theta - cross
    assert slope @ theta < 0
    np.testing.assert_allclose(slope / np.linalg.norm(slope), -theta / bound, atol=1e-7)


def test_without_noise_logistic_is_logistic_regression() -> None:
    model = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(FEATURES, SIGN)
    found = minimum_logistic(FEATURES * SIGN[:, None], np.zeros(4), 2.0)
    np.testing.assert_allclose(found, model.coef_[0], rtol=1e-5)


def test_the_logistic_minimum_is_exact_with_a_linear_term() -> None:
    linear = np.array([3.0, -50.0, 0.1, 7.0])
    signed = FEATURES * SIGN[:, None]
    theta = minimum_logistic(signed, linear, 0.3)
    gradient = 0.3 * theta + linear - signed.T @ (1.0 / (1.0 + np.exp(signed @ theta)))
    assert np.linalg.norm(gradient) < 1e-8


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_the_two_halves_of_the_proof(epsilon: float) -> None:
    """For one θ the linear terms of neighbours and the determinants of their Hessians are as near as proven.

    A copy that claims a fifth less than it spends is caught by the worst record.
    """
    bound = 1.5
    ridge, scale = perturbation(epsilon, gradient=1.0 + bound, curvature=1.0)
    theta = np.array([bound, 0.0])
    worst = 0.0
    for angle in np.linspace(0.0, math.pi, 61):
        record = np.array([math.cos(angle), math.sin(angle)])
        for value in (-1.0, 1.0):
            moved = np.linalg.norm((record @ theta - value) * record)
            hessian = ridge * np.eye(2)
            ratio = np.linalg.det(hessian + np.outer(record, record)) / np.linalg.det(hessian)
            worst = max(worst, float(moved) / scale + math.log(ratio))
    assert worst <= epsilon * (1.0 + 1e-9)
    assert worst > 0.8 * epsilon


def captured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, float]]:
    calls: list[tuple[int, float]] = []

    def gamma_vector(self: ReleaseNoise, size: int, scale: float) -> Floats:
        calls.append((size, scale))
        return np.zeros(size)

    monkeypatch.setattr(ReleaseNoise, "gamma_vector", gamma_vector)
    return calls


def test_squares_draw_with_the_calibrated_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = captured(monkeypatch)
    theta = fit_squares(FEATURES, TARGET, epsilon=0.8, theta_bound=2.0)
    ((size, scale),) = calls
    assert size == 4
    assert scale == pytest.approx(3.0 / 0.4)
    expected = Ridge(alpha=1.0 / math.expm1(0.4), fit_intercept=False).fit(FEATURES, TARGET).coef_
    np.testing.assert_allclose(theta, expected, rtol=1e-8)


def test_logistic_draws_with_the_calibrated_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = captured(monkeypatch)
    theta = fit_logistic(FEATURES, SIGN, epsilon=0.8, ridge=1.0)
    ((size, scale),) = calls
    assert size == 4
    assert scale == pytest.approx(1.0 / 0.4)
    expected = minimum_logistic(FEATURES * SIGN[:, None], np.zeros(4), 1.0 + 0.25 / math.expm1(0.4))
    np.testing.assert_allclose(theta, expected, rtol=1e-8)


@pytest.mark.parametrize("bound", [0.0, -1.0, float("nan")])
def test_a_bound_must_be_positive(bound: float) -> None:
    with pytest.raises(UsageError, match="theta_bound"):
        fit_squares(FEATURES, TARGET, epsilon=1.0, theta_bound=bound)
