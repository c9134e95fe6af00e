from __future__ import annotations

import numpy as np
import pytest

from hushsum.errors import UsageError
from hushsum.records import Bounds


def test_none_is_no_bounds() -> None:
    assert Bounds.of(None, 3) is None


@pytest.mark.parametrize(
    "value", [(0, 1), [0, 1], [(0, 1), (0, 1)], ((0.0, 1.0), [0, 1]), np.array([[0, 1], [0, 1]])]
)
def test_every_spelling_of_the_unit_square(value: object) -> None:
    assert Bounds.of(value, 2) == Bounds((0.0, 0.0), (1.0, 1.0))


def test_bounds_pass_through() -> None:
    box = Bounds.of((0, 1), 2)
    assert Bounds.of(box, 2) is box
    with pytest.raises(UsageError, match="3 columns, got another number"):
        Bounds.of(box, 3)


@pytest.mark.parametrize(
    "value",
    [
        (1, 1),
        (2, 1),
        (float("nan"), 1),
        (0, float("inf")),
        [(0, 1)],
        [(0, 1), (0, 1), (0, 1)],
        [(0, 1), (0, 1, 2)],
        "01",
        5,
        [("a", "b"), (0, 1)],
        (True, 2),
        (-1e300, 1e300),
    ],
)
def test_refusals(value: object) -> None:
    with pytest.raises(UsageError, match="bounds"):
        Bounds.of(value, 2)


def test_clips_and_centres() -> None:
    box = Bounds((0.0, -1.0), (10.0, 1.0))
    out = box.relative(np.array([[-5.0, 0.25], [5.0, 7.0], [12.0, -7.0]]))
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, [[-5, 0.25], [0, 1], [5, -1]])


def test_queries_are_centred_without_clipping() -> None:
    box = Bounds((0.0,), (10.0,))
    np.testing.assert_array_equal(box.relative(np.array([[25.0]]), clip=False), [[20.0]])


def test_a_narrow_box_far_from_zero_loses_no_precision() -> None:
    start = 1_700_000_000.0
    seconds = start + np.arange(0, 3600, 0.5)[:, None]
    out = Bounds((start,), (start + 3600,)).relative(seconds)
    np.testing.assert_array_equal(out.astype(np.float64) + start + 1800, seconds)
    assert len(np.unique(seconds.astype(np.float32))) < 60  # what float32 alone would keep


def test_half_width_is_the_largest_magnitude() -> None:
    rng = np.random.default_rng(5)
    low = rng.normal(size=200) * 10.0 ** rng.integers(-6, 6, 200)
    high = low + np.abs(rng.normal(size=200)) * 10.0 ** rng.integers(-6, 6, 200)
    box = Bounds(tuple(low), tuple(high))
    corners = box.relative(np.stack([low - 1e9, high + 1e9]))
    np.testing.assert_array_equal(np.abs(corners).max(axis=0), box.half_width)


def test_many_blocks_are_one_elementwise_map() -> None:
    data = np.random.default_rng(1).normal(size=(40_000, 3))
    box = Bounds((-1.0, -0.5, 0.0), (1.0, 0.5, 3.0))
    expected = (np.clip(data, box.low, box.high) - box.centre).astype(np.float32)
    np.testing.assert_array_equal(box.relative(data), expected)
    np.testing.assert_array_equal(box.relative(data[::-1])[::-1], expected)


def test_json_round_trip() -> None:
    box = Bounds((0.1, -3.0), (0.2, 1e10))
    assert box.as_json() == [[0.1, 0.2], [-3.0, 1e10]]
    assert Bounds.from_json(box.as_json()) == box


@pytest.mark.parametrize("value", [None, [], {}, [[1]], [[2, 1]], "x"])
def test_json_refusals(value: object) -> None:
    with pytest.raises(UsageError):
        Bounds.from_json(value)


def test_the_arrays_of_a_box_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Bounds((0.0,), (1.0,)).centre[0] = 7
