"""SSP and AdaSSP: without noise they are scikit-learn's, and the published constants are what was printed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.methods import NoisyMoments, fit_as_published, moments, solve_adaptive, solve_plain
from hushsum.methods import _linear_models as sufficient_statistics
from hushsum.methods._linear_models import PublishedNoise
from hushsum.privacy import ReleaseNoise
from hushsum.privacy.accounting import gaussian_delta

RNG = np.random.default_rng(5)
FEATURES = RNG.normal(size=(400, 5)) / 5.0
FEATURES /= np.maximum(np.linalg.norm(FEATURES, axis=1), 1.0)[:, None]
TARGET = np.clip(FEATURES @ np.array([0.5, -0.3, 0.2, 0.0, 0.8]) + 0.1 * RNG.normal(size=400), -1, 1)
EXACT = NoisyMoments(FEATURES.T @ FEATURES, FEATURES.T @ TARGET, 0.0, 400.0)


def test_without_noise_both_are_least_squares() -> None:
    model = LinearRegression(fit_intercept=False).fit(FEATURES, TARGET)
    np.testing.assert_allclose(solve_plain(EXACT), model.coef_, rtol=1e-9)
    np.testing.assert_allclose(solve_adaptive(EXACT), model.coef_, rtol=1e-6)


def test_a_released_tally_gives_the_regression_of_its_records() -> None:
    rng = np.random.default_rng(6)
    records = np.column_stack((rng.uniform(-1, 1, (5000, 3)), np.zeros(5000)))
    records[:, 3] = records[:, :3] @ [0.4, -0.2, 0.1] - 0.3
    tally = moments((-1, 1), dim=4).add(records)
    theta = solve_plain(NoisyMoments.of(tally.release(epsilon=1e5, delta=1e-6)))
    slopes, intercept = tally.basis.ball.model(theta)  # type: ignore[attr-defined]
    np.testing.assert_allclose(slopes, [0.4, -0.2, 0.1], atol=1e-3)
    assert intercept == pytest.approx(-0.3, abs=1e-3)


def test_noise_alone_gives_no_slope() -> None:
    """The estimated error of a θ of pure noise is above that of none in nearly all of 200 seeded draws."""
    rng = np.random.default_rng(6)
    silent = 0
    for _ in range(200):
        noise = rng.normal(size=(5, 5))
        theta = solve_adaptive(NoisyMoments((noise + noise.T) / 2.0, rng.normal(size=5), 1.0, 400.0))
        silent += float(np.linalg.norm(theta)) < 0.5
    assert silent > 150


def test_the_ridge_beats_none_under_noise() -> None:
    """Over 100 seeded draws of noise the mean squared error of predictions is a third at most."""
    rng = np.random.default_rng(6)
    plain: list[float] = []
    adaptive: list[float] = []
    for _ in range(100):
        noise = np.triu(rng.normal(size=(5, 5)))
        noisy = NoisyMoments(
            EXACT.gram + 3.0 * (noise + np.triu(noise, 1).T),
            EXACT.cross + 3.0 * rng.normal(size=5),
            3.0,
            400.0,
        )
        for errors, solve in ((plain, solve_plain), (adaptive, solve_adaptive)):
            errors.append(float(np.mean((FEATURES @ solve(noisy) - TARGET) ** 2)))
    assert np.mean(adaptive) < np.mean(plain) / 3.0


def test_the_published_constants() -> None:
    published = PublishedNoise(0.6, 1e-6)
    assert published.sigma == pytest.approx(math.sqrt(math.log(6e6)) / 0.2)
    eta = math.sqrt(10 * math.log(6e6) * math.log(2 * 10**2 / 0.05)) / 0.2
    assert published.ridge(0.0, 10) == pytest.approx(eta)
    assert published.ridge(eta + 1.0, 10) == 0.0
    assert published.lowest(1000.0, 0.0) == pytest.approx(1000.0 - math.log(6e6) / 0.2)
    assert published.lowest(0.0, 0.0) == 0.0


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0])
def test_the_published_constants_keep_the_claim_together_though_not_apart(epsilon: float) -> None:
    published = PublishedNoise(epsilon, 1e-6)
    assert published.spent_delta(3) < 1e-6
    apart = gaussian_delta(epsilon / 3.0, 1.0 / published.sigma)
    assert (apart > 1e-6 / 3.0) == (epsilon >= 1.0)


def test_as_published_without_noise_is_ridge_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReleaseNoise, "normal", lambda self, size: np.zeros(size))
    monkeypatch.setattr(sufficient_statistics, "rounded", lambda values, sigma: values)
    plain = fit_as_published(FEATURES, TARGET, epsilon=1.0, delta=1e-6, adaptive=False)
    np.testing.assert_allclose(plain, solve_plain(EXACT), rtol=1e-9)
    published = PublishedNoise(1.0, 1e-6)
    lowest = published.lowest(float(np.linalg.eigvalsh(EXACT.gram)[0]), 0.0)
    expected = np.linalg.solve(EXACT.gram + published.ridge(lowest, 5) * np.eye(5), EXACT.cross)
    ridged = fit_as_published(FEATURES, TARGET, epsilon=1.0, delta=1e-6, adaptive=True)
    np.testing.assert_allclose(ridged, expected, rtol=1e-9)


def test_sums_move_by_at_most_one_for_each_record() -> None:
    """The sensitivities that the published calibration takes; a fifth less would be exceeded."""
    largest = np.zeros(3)
    for row, value in zip(FEATURES / np.linalg.norm(FEATURES, axis=1)[:, None], np.sign(TARGET), strict=True):
        more = EXACT.gram + np.outer(row, row)
        moved = [
            np.linalg.norm(np.triu(more - EXACT.gram)),
            np.linalg.norm(value * row),
            abs(np.linalg.eigvalsh(more)[0] - np.linalg.eigvalsh(EXACT.gram)[0]),
        ]
        largest = np.maximum(largest, moved)
    assert largest.max() <= 1.0 + 1e-9
    assert largest[1] > 0.8


def test_refusals() -> None:
    with pytest.raises(UsageError, match="bounds"):
        moments(None, dim=2)
    other = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=2).add([[0.0]]).release(epsilon=1.0)
    with pytest.raises(UsageError, match="moments"):
        NoisyMoments.of(other)
