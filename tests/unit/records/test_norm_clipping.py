"""The map into the unit ball and back."""

from __future__ import annotations

import numpy as np
import pytest

from hushsum.errors import UsageError
from hushsum.records import Bounds, UnitBall


def ball_of(radius: float | None = None) -> UnitBall:
    box = Bounds.of([(0.0, 10.0), (-5.0, 5.0), (100.0, 300.0)], 3)
    assert box is not None
    return UnitBall(box, radius)


def test_a_model_predicts_the_same_in_both_units() -> None:
    ball = ball_of()
    records = np.random.default_rng(0).uniform([0, -5, 100], [10, 5, 300], (50, 3))
    features, target = ball.of_records(records)
    theta = np.array([0.2, -0.4, 0.7])
    slopes, intercept = ball.model(theta)
    np.testing.assert_allclose(
        records[:, :2] @ slopes + intercept, 200.0 + 100.0 * (features @ theta), rtol=1e-5
    )
    np.testing.assert_allclose(target, (records[:, 2] - 200.0) / 100.0, atol=1e-6)


@pytest.mark.parametrize("radius", [None, 1.1, 1.5, 9.0])
def test_lengths_stay_below_one(radius: float | None) -> None:
    ball = ball_of(radius)
    records = np.random.default_rng(0).normal(0, 100, (200, 3))
    features, target = ball.of_records(records)
    assert np.linalg.norm(features, axis=1).max() <= 1.0 + 1e-12
    assert np.abs(target).max() <= 1.0
    np.testing.assert_array_equal(features[:, 0], 1.0 / ball.length)


def test_a_record_is_mapped_alone() -> None:
    ball = ball_of(1.3)
    records = np.random.default_rng(0).normal(0, 10, (99, 3))
    features, _ = ball.of_records(records)
    for size in (1, 2, 17):
        np.testing.assert_array_equal(ball.of_records(records[:size])[0], features[:size])


@pytest.mark.parametrize("radius", [1.0, 0.0, float("nan"), float("inf")])
def test_a_radius_without_room_is_refused(radius: float) -> None:
    with pytest.raises(UsageError, match="radius"):
        ball_of(radius)
