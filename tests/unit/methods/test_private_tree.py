"""Trees of boxes: a proof of their privacy loss in numbers, and boxes that cover the declared one."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushsum.methods._landmarks import (
    TREE_SHARE,
    ColumnHistograms,
    Leaves,
    PlaceSearch,
    column_histograms,
    draw_points,
    nearest_shares,
    private_leaves,
)
from hushsum.privacy import ReleaseNoise, release_noise
from hushsum.records import Bounds


def box(dim: int, low: float = 0.0, high: float = 1.0) -> Bounds:
    return Bounds((low,) * dim, (high,) * dim)


def leaves_of(
    rows: Any, noise: ReleaseNoise, *, width: float, epsilon: Fraction = Fraction(1), moved: int = 1
) -> Leaves:
    """Of records in the unit cube, relative to its centre."""
    dim, count = rows.shape[1], float(len(rows))
    return private_leaves(rows, PlaceSearch(box(dim), [width] * dim, epsilon, moved, noise, count))


def histograms_of(
    rows: Any, noise: ReleaseNoise, *, width: float, epsilon: Fraction = Fraction(1), moved: int = 1
) -> ColumnHistograms:
    dim, count = rows.shape[1], float(len(rows))
    return column_histograms(rows, PlaceSearch(box(dim), [width] * dim, epsilon, moved, noise, count))


def survival(above: int, scale: float) -> float:
    """P(Z > above) of the discrete Laplace law."""
    q = math.exp(-1.0 / scale)
    return q ** (above + 1) / (1 + q) if above >= 0 else 1.0 - q**-above / (1 + q)


def path_loss(counts: tuple[int, ...], scale: float, penalty: int) -> float:
    """How far a record more raises the logarithm of the probability that all boxes of a path are halved."""

    def log_probability(more: int) -> float:
        scores = (max(count + more - depth * penalty, -penalty) for depth, count in enumerate(counts))
        return sum(math.log(survival(-score, scale)) for score in scores)

    return log_probability(1) - log_probability(0)


@pytest.mark.parametrize("scale", [0.7, 1.0, 3.0, 11.3])
def test_no_path_loses_more_than_three_over_the_scale(scale: float) -> None:
    penalty = math.ceil(scale * math.log(2.0))
    steps = range(0, 4 * penalty + 1, max(1, penalty // 3))
    losses = [
        path_loss(tuple(itertools.accumulate(falls[::-1]))[::-1], scale, penalty)
        for falls in itertools.product(steps, repeat=4)
    ]
    assert max(losses) <= 3.0 / scale
    assert max(losses) > 1.5 / scale


def test_a_smaller_penalty_loses_more() -> None:
    scale = 12.0
    assert path_loss(tuple(range(40, 0, -1)), scale, penalty=1) > 3.0 / scale


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_leaves_cover_the_box_once_and_are_small_where_records_are(dim: int) -> None:
    rows = np.random.default_rng(dim).normal(0.2, 0.02, (5000, dim)).astype(np.float32)
    with release_noise(3) as noise:
        leaves = leaves_of(rows, noise, width=0.1)
    volumes = np.prod(leaves.high - leaves.low, axis=1)
    assert volumes.sum() == pytest.approx(1.0)
    assert leaves.weights.sum() == pytest.approx(1.0)
    places = np.random.default_rng(0).uniform(-0.5, 0.5, (200, dim))
    inside = (places[:, None] >= leaves.low).all(axis=2) & (places[:, None] < leaves.high).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    heavy = int(np.argmax(leaves.weights))
    assert volumes[heavy] < 1e-1**dim
    assert np.abs(0.5 * (leaves.low + leaves.high)[heavy] - 0.2).max() < 0.1


def test_counts_of_leaves_are_those_of_their_records() -> None:
    rows = np.random.default_rng(1).uniform(-0.5, 0.5, (4000, 2)).astype(np.float32)
    with release_noise(4) as noise:
        leaves = leaves_of(rows, noise, width=0.2, epsilon=Fraction(500))
    inside = (rows[:, None] >= leaves.low).all(axis=2) & (rows[:, None] < leaves.high).all(axis=2)
    np.testing.assert_allclose(leaves.weights, inside.mean(axis=0), atol=2e-3)
    assert len(leaves.weights) == 256


def test_noise_is_for_the_records_of_one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, Fraction]] = []
    laplace = ReleaseNoise.laplace

    def watched(self: ReleaseNoise, counts: Any, l1: int, epsilon: Fraction) -> object:
        calls.append((l1, epsilon))
        return laplace(self, counts, l1, epsilon)

    monkeypatch.setattr(ReleaseNoise, "laplace", watched)
    rows = np.zeros((300, 3), np.float32)
    for moved in (1, 2):
        calls.clear()
        with release_noise(5) as noise:
            leaves_of(rows, noise, width=0.2, moved=moved)
            shape, leaf = calls[:-1], calls[-1]
            assert set(shape) == {(3 * moved, TREE_SHARE)}
            assert leaf == (moved, 1 - TREE_SHARE)
            calls.clear()
            histograms_of(rows, noise, width=0.2, epsilon=Fraction(1, 2), moved=moved)
        assert calls == [(3 * moved, Fraction(1, 2))] * 3


def test_points_follow_leaves_and_columns() -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.normal(-0.3, 0.02, (3000, 3)), rng.normal(0.3, 0.02, (1000, 3))])
    with release_noise(6) as noise:
        some = rows.astype(np.float32)
        leaves, histograms = leaves_of(some, noise, width=0.1), histograms_of(some, noise, width=0.1)
    points = draw_points(leaves, histograms, 2000, np.random.default_rng(0))
    low, high = (points < 0).all(axis=1), (points > 0).all(axis=1)
    assert low.mean() == pytest.approx(0.75, abs=0.05)
    assert high.mean() == pytest.approx(0.25, abs=0.05)
    assert np.abs(points).max() <= 0.5


def test_no_record_at_all_gives_points_somewhere() -> None:
    rows = np.zeros((0, 4), np.float32)
    with release_noise(7) as noise:
        leaves, histograms = leaves_of(rows, noise, width=0.3), histograms_of(rows, noise, width=0.3)
    points = draw_points(leaves, histograms, 50, np.random.default_rng(0))
    assert points.shape == (50, 4)
    assert np.abs(points).max() <= 0.5


def test_shares_are_the_nearest_that_counts_can_be() -> None:
    """Against all shares of a lattice: none has a smaller sum of squares."""
    noisy, count = np.array([31, -8, 13, 2]), 30.0
    found = nearest_shares(noisy, count)
    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= 0.0
    lattice = np.array([each for each in itertools.product(range(31), repeat=4) if sum(each) == 30])
    distances = ((lattice - noisy) ** 2).sum(axis=1)
    assert ((count * found - noisy) ** 2).sum() <= distances.min() + 1e-9
    assert nearest_shares(np.array([-5, -9]), 1.0).tolist() == [1.0, 0.0]
