"""The parts of the test: tails, coordinates, weights in place of records."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from hushsum.analysis import (
    Coordinates,
    filtered_test,
    fit_records,
    separate_test,
    squared_distance,
    weighted_square_tail,
)


@pytest.mark.parametrize("number", [1, 2, 5, 40])
@pytest.mark.parametrize("p", [0.9, 0.5, 0.3, 0.05, 1e-3, 1e-8])
def test_tails_of_equal_weights_are_those_of_chi_square(number: int, p: float) -> None:
    at = float(chi2.isf(p, number))
    assert weighted_square_tail(np.full(number, 0.3), 0.3 * at) == pytest.approx(p, rel=0.12)


def test_tails_of_other_weights_agree_with_draws() -> None:
    weights = np.power(0.7, np.arange(20.0))
    draws = np.random.default_rng(0).chisquare(1.0, (200_000, 20)) @ weights
    for value in np.quantile(draws, [0.05, 0.5, 0.9, 0.95, 0.99]):
        assert weighted_square_tail(weights, float(value)) == pytest.approx(
            float((draws >= value).mean()), rel=0.04
        )
    assert weighted_square_tail(weights, 0.0) == 1.0
    assert weighted_square_tail(np.zeros(3), 1.0) == 1.0


def test_the_squared_distance_is_unbiased_and_its_standard_error_right() -> None:
    rng = np.random.default_rng(1)
    covariance = np.diag([0.5, 0.2, 0.1])
    mean = np.array([1.5, -2.0, 0.0])
    found = [
        squared_distance(each, covariance) for each in rng.multivariate_normal(mean, covariance, size=20_000)
    ]
    values = np.array([each.value for each in found])
    assert values.mean() == pytest.approx(6.25, abs=0.1)
    assert np.sqrt(np.mean([each.stderr**2 for each in found])) == pytest.approx(values.std(), rel=0.1)


@pytest.mark.parametrize("moves", [None, np.eye(30)[:, :3]])
def test_p_values_are_uniform_under_the_hypothesis(moves: np.ndarray | None) -> None:
    rng = np.random.default_rng(2)
    sampling, noise = np.diag(0.8 ** np.arange(30)), 0.05 * np.eye(30)
    drawn = rng.standard_normal((1500, 30)) * np.sqrt(np.diag(sampling + noise))
    p = np.array([filtered_test(each, sampling, noise, moves).p_value for each in drawn])
    # The largest gap of 1500 uniform numbers is above 0.066 with a probability below 1e-5.
    assert np.abs(np.sort(p) - np.arange(1500) / 1500).max() < 0.066


def test_a_move_is_found_in_the_coordinates_in_which_samples_hardly_vary() -> None:
    """It changes one in which they vary much as well, which hides it from the length of the projection."""
    rng = np.random.default_rng(3)
    sampling, noise = np.diag(0.6 ** np.arange(20)), 1e-3 * np.eye(20)
    moves = np.zeros((20, 1))
    moves[[0, 12], 0] = 1.0, 0.3
    drawn = rng.standard_normal((400, 20)) * np.sqrt(np.diag(sampling + noise)) + 3.0 * moves[:, 0]
    p = np.array([filtered_test(each, sampling, noise, moves).p_value for each in drawn])
    assert (p <= 0.05).mean() > 0.95


def test_an_estimate_of_almost_no_sampling_variance_is_not_relied_on() -> None:
    rng = np.random.default_rng(4)
    estimated = np.diag(np.where(np.arange(20) < 10, 0.6 ** np.arange(20), 1e-6))
    true = estimated + 2e-3 * np.trace(estimated) * np.eye(20)
    moves, noise = np.ones((20, 1)), 1e-6 * np.eye(20)
    drawn = rng.standard_normal((1000, 20)) * np.sqrt(np.diag(true + noise))
    p = np.array([filtered_test(each, estimated, noise, moves).p_value for each in drawn])
    # Were the estimate taken at its word, most would be rejected.
    assert (p <= 0.05).mean() < 0.1


def test_points_that_are_not_of_a_kernel_have_no_coordinates() -> None:
    assert Coordinates.of(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    points = np.linspace(0.0, 1.0, 40)
    found = Coordinates.of(np.exp(-np.square(points[:, None] - points)))
    assert found is not None
    assert found.matrix.shape[1] < 5
    assert found.captured > 0.999


def test_weights_agree_with_released_values_and_leave_the_rest_elsewhere() -> None:
    points = np.linspace(0.0, 10.0, 60)
    similar = np.exp(-np.square(points[:, None] - points))
    truth = np.where(points < 3.0, 1.0, 0.0)
    truth *= 0.6 / truth.sum()
    model = fit_records(similar, truth @ similar, np.full(60, 1e-6))
    assert model.weights.sum() == pytest.approx(0.6, abs=0.05)
    assert (model.weights >= 0.0).all()
    np.testing.assert_allclose(model.weights @ similar, truth @ similar, atol=0.01)
    exact = (similar.T * truth) @ similar - np.outer(truth @ similar, truth @ similar)
    np.testing.assert_allclose(np.trace(model.covariance(similar)), np.trace(exact), rtol=0.1)
    np.testing.assert_allclose(np.diag(model.covariance(similar)), model.variance(similar))


def test_a_few_features_show_that_records_lie_in_a_tight_cluster() -> None:
    points = np.linspace(0.0, 10.0, 200)
    phases = points[:, None] * np.array([0.4, 0.7, 1.1])
    features = np.hstack([np.cos(phases), np.sin(phases)])
    truth = np.exp(-0.5 * np.square((points - 4.0) / 0.2))
    truth /= truth.sum()
    exact = np.trace(features.T @ (truth[:, None] * features)) - float(np.square(truth @ features).sum())
    rng = np.random.default_rng(5)
    found = [
        np.trace(fit_records(features, truth @ features + drawn, np.full(6, 0.03**2)).covariance(features))
        for drawn in 0.03 * rng.standard_normal((20, 6))
    ]
    # With a penalty on squared weights: 4.2 times.
    assert 0.5 < float(np.mean(found)) / exact < 2.0


def test_separate_points_are_bonferronis() -> None:
    found = separate_test(np.array([0.0, 3.0]), np.array([1.0, 1.0]))
    assert found.p_value == pytest.approx(4.0 * 0.00135, rel=0.01)
    assert found.statistic == 3.0
