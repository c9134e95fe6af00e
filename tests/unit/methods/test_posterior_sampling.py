"""Posterior samples: the right law, and calibrated steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import ks_2samp

from hushsum.errors import UsageError
from hushsum.methods import _linear_models, fit_adaops, fit_ops
from hushsum.methods._linear_models import Posterior, sample_in_ball
from hushsum.privacy import ReleaseNoise, largest_leverage, largest_precision, release_noise
from hushsum.privacy.accounting import analytic_gaussian_sigma

RNG = np.random.default_rng(7)
FEATURES = RNG.normal(size=(400, 3)) / 3.0
FEATURES /= np.maximum(np.linalg.norm(FEATURES, axis=1), 1.0)[:, None]
TARGET = np.clip(FEATURES @ np.array([0.7, -0.3, 0.2]), -1, 1)


@pytest.mark.parametrize("centre", [0.0, 0.9, 1.6])
def test_samples_in_the_ball_have_the_restricted_law(centre: float) -> None:
    """Against rejection without a tilt; seeded, each comparison fails once in 10⁷ under fresh seeds."""
    law = Posterior(np.array([6.0, 9.0]), np.eye(2), np.array([6.0 * centre, 0.0]), 2.0)
    with release_noise(insecure_noise_seed=8) as noise:
        drawn = np.array([sample_in_ball(law, 1.0, noise) for _ in range(1500)])
    assert np.linalg.norm(drawn, axis=1).max() <= 1.0
    free = RNG.normal(size=(400_000, 2)) / np.sqrt(2.0 * law.values) + law.along / law.values
    kept = free[np.linalg.norm(free, axis=1) <= 1.0]
    for axis in range(2):
        assert ks_2samp(drawn[:, axis], kept[:, axis]).pvalue > 1e-7


def test_samples_are_multiples_of_a_public_step() -> None:
    ops = fit_ops(FEATURES, TARGET, epsilon=1.0, theta_bound=2.0, insecure_noise_seed=1)
    adaops = fit_adaops(FEATURES, TARGET, epsilon=1.0, delta=1e-6, insecure_noise_seed=1)
    for theta in (ops, adaops):
        assert np.array_equal(theta * 2.0**32, np.rint(theta * 2.0**32))
        assert theta.any()


def test_ops_spends_epsilon_at_the_worst_record() -> None:
    """On the ball the exponent changes by at most ε and, at the worst record, by that."""
    epsilon, bound = 0.7, 2.0
    precision = 2.0 * epsilon / (1.0 + bound) ** 2
    change = [
        precision * (value - point) ** 2 / 2.0 for value in (-1.0, 1.0) for point in (-bound, 0.0, bound)
    ]
    assert max(change) == pytest.approx(epsilon)


def test_ops_centres_on_the_ridge_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Posterior] = []

    def take(law: Posterior, bound: float, noise: object) -> object:
        seen.append(law)
        return law.along

    monkeypatch.setattr(_linear_models, "sample_in_ball", take)
    fit_ops(FEATURES, TARGET, epsilon=0.9, theta_bound=2.0)
    (law,) = seen
    assert law.precision == pytest.approx(2.0 * 0.9 / 9.0)
    ridge = 2.0 * 3 / (law.precision * 4.0)
    expected = np.linalg.solve(FEATURES.T @ FEATURES + ridge * np.eye(3), FEATURES.T @ TARGET)
    np.testing.assert_allclose(law.vectors @ (law.along / law.values), expected, rtol=1e-9)


def test_adaops_steps_are_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[tuple[float, float]] = []
    sampled: list[dict[str, float]] = []

    def sigma(epsilon: float, delta: float) -> float:
        requested.append((epsilon, delta))
        return analytic_gaussian_sigma(epsilon, delta)

    def precision(epsilon: float, delta: float, *, leverage: float, residual: float) -> float:
        sampled.append({"epsilon": epsilon, "delta": delta, "leverage": leverage, "residual": residual})
        return largest_precision(epsilon, delta, leverage=leverage, residual=residual)

    monkeypatch.setattr(_linear_models, "analytic_gaussian_sigma", sigma)
    monkeypatch.setattr(_linear_models, "largest_precision", precision)
    fit_adaops(FEATURES, TARGET, epsilon=4.0, delta=6e-6, insecure_noise_seed=3)
    assert requested[0] == pytest.approx((1.0, 1e-6))
    (step,) = sampled
    assert (step["epsilon"], step["delta"]) == pytest.approx((2.0, 2e-6))
    assert 0.0 < step["leverage"] <= largest_leverage(2.0, 2e-6) / 2.0
    assert step["residual"] > 1.0


def test_the_eigenvalue_bound_covers_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise just within the quantile of δ/6 keeps the bound below the least eigenvalue, rounded up or not."""
    delta, lowered = 6e-6, []
    best_floor = _linear_models._best_floor
    many = np.tile(FEATURES, (20, 1))
    least = float(np.linalg.eigvalsh(many.T @ many)[0])
    quantile = float(-ndtri(delta / 6.0))

    def floor(lowest: float, spread: float, raised: float, smallest: float) -> float:
        lowered.append(lowest)
        return best_floor(lowest, spread, raised, smallest)

    monkeypatch.setattr(_linear_models, "_best_floor", floor)
    for part in np.linspace(0.0, 2.0**-10, 40):
        noise = quantile - float(part)
        monkeypatch.setattr(ReleaseNoise, "normal", lambda self, size, noise=noise: np.full(size, noise))
        fit_adaops(many, np.tile(TARGET, 20), epsilon=4.0, delta=delta)
    assert min(lowered) > 0.0, "the bound must not be cut off at 0"
    assert max(lowered) <= least - 1.0


def test_the_bound_on_residuals_moves_as_little_as_proven() -> None:
    """ln(1 + ‖θ̂‖) for one record more, against ln(1 + 1/λ₀)."""
    ridge = 2.0
    gram = FEATURES[:20].T @ FEATURES[:20] + ridge * np.eye(3)
    cross = FEATURES[:20].T @ TARGET[:20]
    floor = float(np.linalg.eigvalsh(gram)[0])
    before = math.log1p(float(np.linalg.norm(np.linalg.solve(gram, cross))))
    for row in RNG.normal(size=(500, 3)):
        record = row / np.linalg.norm(row)
        for value in (-1.0, 1.0):
            theta = np.linalg.solve(gram + np.outer(record, record), cross + value * record)
            assert abs(math.log1p(float(np.linalg.norm(theta))) - before) <= math.log1p(1.0 / floor)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_both_run_over_the_whole_range(epsilon: float) -> None:
    assert np.linalg.norm(fit_ops(FEATURES, TARGET, epsilon=epsilon, theta_bound=2.0)) <= 2.0
    assert np.isfinite(fit_adaops(FEATURES, TARGET, epsilon=epsilon, delta=1e-6)).all()


def test_with_a_large_budget_both_are_near_the_truth() -> None:
    many = np.tile(FEATURES, (200, 1)), np.tile(TARGET, 200)
    for theta in (
        fit_ops(*many, epsilon=100.0, theta_bound=2.0, insecure_noise_seed=1),
        fit_adaops(*many, epsilon=100.0, delta=1e-6, insecure_noise_seed=1),
    ):
        np.testing.assert_allclose(theta, [0.7, -0.3, 0.2], atol=0.1)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="theta_bound"):
        fit_ops(FEATURES, TARGET, epsilon=1.0, theta_bound=0.0)
    assert "CONFIDENTIAL" in repr(Posterior.of(FEATURES, TARGET, 1.0, 1.0))
