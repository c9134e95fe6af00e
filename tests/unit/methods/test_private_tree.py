"""Trees of boxes: a proof of their privacy loss in numbers, and boxes that cover the declared one."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hushsum.methods.private_tree import TREE_SHARE, column_histograms, draw_points, private_leaves
from hushsum.privacy.release_noise import release_noise
from hushsum.records.bounds import Bounds


def box(dim: int, low: float = 0.0, high: float = 1.0) -> Bounds:
    return Bounds((low,) * dim, (high,) * dim)


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
        leaves = private_leaves(rows, box(dim), widths=[0.1] * dim, epsilon=Fraction(1), moved=1, noise=noise)
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
        leaves = private_leaves(rows, box(2), widths=[0.2] * 2, epsilon=Fraction(500), moved=1, noise=noise)
    inside = (rows[:, None] >= leaves.low).all(axis=2) & (rows[:, None] < leaves.high).all(axis=2)
    np.testing.assert_allclose(leaves.weights, inside.mean(axis=0), atol=2e-3)
    assert len(leaves.weights) == 256


def test_noise_is_for_the_records_of_one_path(monkeypatch: pytest.MonkeyPatch) -> None:
    from hushsum.privacy.release_noise import ReleaseNoise

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
            private_leaves(rows, box(3), widths=[0.2] * 3, epsilon=Fraction(1), moved=moved, noise=noise)
            shape, leaf = calls[:-1], calls[-1]
            assert set(shape) == {(3 * moved, TREE_SHARE)}
            assert leaf == (moved, 1 - TREE_SHARE)
            calls.clear()
            column_histograms(
                rows, box(3), widths=[0.2] * 3, epsilon=Fraction(1, 2), moved=moved, noise=noise
            )
        assert calls == [(3 * moved, Fraction(1, 2))] * 3


def test_points_follow_leaves_and_columns() -> None:
    rng = np.random.default_rng(2)
    rows = np.concatenate([rng.normal(-0.3, 0.02, (3000, 3)), rng.normal(0.3, 0.02, (1000, 3))])
    with release_noise(6) as noise:
        some = rows.astype(np.float32)
        leaves = private_leaves(some, box(3), widths=[0.1] * 3, epsilon=Fraction(1), moved=1, noise=noise)
        histograms = column_histograms(
            some, box(3), widths=[0.1] * 3, epsilon=Fraction(1), moved=1, noise=noise
        )
    points = draw_points(leaves, histograms, 2000, np.random.default_rng(0))
    low, high = (points < 0).all(axis=1), (points > 0).all(axis=1)
    assert low.mean() == pytest.approx(0.75, abs=0.05)
    assert high.mean() == pytest.approx(0.25, abs=0.05)
    assert np.abs(points).max() <= 0.5


def test_no_record_at_all_gives_points_somewhere() -> None:
    rows = np.zeros((0, 4), np.float32)
    with release_noise(7) as noise:
        leaves = private_leaves(rows, box(4), widths=[0.3] * 4, epsilon=Fraction(1), moved=1, noise=noise)
        histograms = column_histograms(
            rows, box(4), widths=[0.3] * 4, epsilon=Fraction(1), moved=1, noise=noise
        )
    points = draw_points(leaves, histograms, 50, np.random.default_rng(0))
    assert points.shape == (50, 4)
    assert np.abs(points).max() <= 0.5
