"""Draws against the function they are drawn from, without noise; and the model on data that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.models import PrivateSampler, by_chain, by_rejection, diverse_choice, from_grid, from_list

Floats = NDArray[np.float64]

LOW, HIGH = np.zeros(2), np.array([1.0, 2.0])


def ramp(points: Floats) -> Floats:
    """Grows with the first column: the marginal there has the distribution function x²."""
    return points[:, 0]


def chain(w: Any, low: Floats, high: Floats, number: int, random: np.random.Generator) -> Floats:
    return by_chain(w, low, high, number, random, step=0.3, steps=30)


@pytest.mark.parametrize("draw", [from_grid, by_rejection, chain])
def test_draws_follow_the_weights(draw: Callable[..., Floats]) -> None:
    """Kolmogorov–Smirnov distance below 0.02 for 20,000 draws with a fixed seed: p = 2·10⁻⁷ if exact."""
    points = draw(ramp, LOW, HIGH, 20_000, np.random.default_rng(3))
    assert points.shape == (20_000, 2)
    assert (points >= LOW).all()
    assert (points <= HIGH).all()
    for column, law in ((0, np.square), (1, lambda x: x / 2.0)):
        values = np.sort(points[:, column])
        empirical = (np.arange(len(values)) + 0.5) / len(values)
        assert np.abs(law(values) - empirical).max() < 0.02


@pytest.mark.parametrize("draw", [from_grid, by_rejection, chain])
def test_where_there_is_no_weight_nothing_is_drawn(draw: Callable[..., Floats]) -> None:
    def corner(points: Floats) -> Floats:
        return ((points[:, 0] > 0.75) & (points[:, 1] > 1.5)).astype(np.float64)

    points = draw(corner, LOW, HIGH, 500, np.random.default_rng(3))
    # A cell of the grid that the corner cuts may reach a little beyond it.
    assert (points > [0.74, 1.49]).all()
    with pytest.raises(UsageError, match="noise"):
        draw(lambda points: np.zeros(len(points)), LOW, HIGH, 5, np.random.default_rng(3))


def test_a_grid_of_four_columns_is_refused() -> None:
    with pytest.raises(UsageError, match="columns"):
        from_grid(ramp, np.zeros(4), np.ones(4), 5, np.random.default_rng(0))


def test_a_list_is_drawn_by_weight_without_repetition() -> None:
    random = np.random.default_rng(3)
    weights = np.array([0.0, 1.0, 2.0, 7.0])
    first = np.bincount([from_list(weights, 1, random)[0] for _ in range(4000)], minlength=4)
    np.testing.assert_allclose(first / 4000, weights / 10.0, atol=0.05)
    for _ in range(20):
        drawn = from_list(weights, 4, random)
        assert sorted(drawn.tolist()) == [1, 2, 3]


def test_diverse_picks_are_the_greedy_determinants() -> None:
    """Against determinants computed one by one."""
    random = np.random.default_rng(3)
    points = random.uniform(size=(12, 2))
    weights = random.uniform(0.5, 1.0, 12)
    kernel = hs.EuclideanKernel(dim=2, bandwidth=0.5)
    matrix = kernel.similarity(points, points)
    scaled = np.sqrt(np.outer(weights, weights)) * matrix
    picked: list[int] = []
    for _ in range(5):
        rest = [i for i in range(12) if i not in picked]
        volumes = [np.linalg.det(scaled[np.ix_([*picked, i], [*picked, i])]) for i in rest]
        picked.append(rest[int(np.argmax(volumes))])
    assert diverse_choice(weights, lambda i: matrix[i], 5).tolist() == picked


def test_synthetic_records_resemble_the_data() -> None:
    """A bandwidth of 0.05 widens records of deviation 0.1 to 0.11; the noise at ε = 1 adds far less."""
    random = np.random.default_rng(0)
    X = np.concatenate([c + 0.1 * random.standard_normal((10_000, 2)) for c in ([-0.5, 0.0], [0.5, 0.3])])
    for method in ("chain", "grid", "rejection"):
        model = PrivateSampler(method=method, bandwidth=0.05, random_state=0).fit(X)
        drawn = model.sample(2000, random_state=1)
        left = drawn[:, 0] < 0.0
        assert abs(left.mean() - 0.5) < 0.06
        np.testing.assert_allclose(drawn[left].mean(axis=0), [-0.5, 0.0], atol=0.05)
        np.testing.assert_allclose(drawn[~left].std(axis=0), 0.112, atol=0.03)
        again = [model.sample(20, random_state=2) for _ in range(2)]
        np.testing.assert_array_equal(again[0], again[1])


def test_candidates_are_selected_where_the_data_are() -> None:
    X = np.random.default_rng(0).normal([0.5, 0.5], 0.1, (5000, 2))
    candidates = np.concatenate([np.full((50, 2), 0.5), [[0.4, 0.4], [0.6, 0.6]], np.full((50, 2), -0.8)])
    # Six standard errors: noise alone passes once in 10⁹ runs.
    model = PrivateSampler(bandwidth=0.2, floor=6.0, random_state=0).fit(X)
    weights = model.decision_function(candidates)
    assert (weights[52:] == 0.0).all()
    chosen = model.select(candidates, 3)
    # Fifty copies of one point are one point to a diverse choice.
    assert sorted(candidates[chosen][:, 0].tolist()) == [0.4, 0.5, 0.6]
    drawn = model.select(candidates, 30, diverse=False, random_state=2)
    assert len(set(drawn.tolist())) == 30
    assert (drawn < 52).all()


def test_hash_kernels_can_be_sampled_too() -> None:
    X = np.random.default_rng(0).normal(0.3, 0.05, (5000, 1))
    model = PrivateSampler(kernel="euclidean", bandwidth=0.2, power=4, random_state=0).fit(X)
    assert abs(np.median(model.sample(2000, random_state=0)) - 0.3) < 0.1


@pytest.mark.parametrize("parameters", [{"method": "dice"}, {"steps": 0}, {"kernel": "jaccard"}])
def test_wrong_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        PrivateSampler(**parameters).fit(np.zeros((5, 2)))


def test_wrong_numbers_are_refused_before_anything_is_spent() -> None:
    model = PrivateSampler().partial_fit(np.zeros((5, 2)))
    with pytest.raises(UsageError, match="n_samples"):
        model.sample(0)
    with pytest.raises(ValueError, match="released nothing yet"):
        model.sample(1)


def test_a_table_of_features_has_the_noise_of_less_variance() -> None:
    X = np.random.default_rng(3).uniform(0.0, 1.0, (500, 8))
    model = hs.PrivateSampler(epsilon=1.0, bounds=(0, 1), kernel="gaussian", random_state=0)
    before = model.claim(8)
    model.fit(X)
    table = model.released_.parts["sketch"]
    assert str(table.claim.mechanism) == "gamma radius"
    assert model.claim_ == before
    assert model.claim_.mechanism == table.claim.mechanism
    assert table.claim.mechanism in hs.PrivateSampler(epsilon=1.0).claim().mechanism
