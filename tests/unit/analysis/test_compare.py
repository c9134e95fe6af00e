"""Comparing two released functions: values, errors, refusals, and what it says of itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.analysis import Comparison, compare
from hushsum.errors import ServiceRefused, UsageError
from hushsum.releases import NoisyTable, ReleasedFunction

ONE = hs.GaussianKernel(dim=1, bandwidth=0.5)
RNG = np.random.default_rng(0)
HERE, THERE = RNG.normal(0.0, 1.0, (4000, 1)), RNG.normal(0.6, 1.0, (3000, 1))


def grid(rows: Any, seed: int, **release: Any) -> NoisyTable:
    request = {"epsilon": 1.0, **release}
    made = hs.grid(ONE, bounds=(-5, 5)).add(rows).release(insecure_noise_seed=seed, **request)
    assert isinstance(made, NoisyTable)
    return made


F, G = grid(HERE, 1), grid(THERE, 2)
RESULT = compare(F, G, names=("spring", "autumn"))


def test_a_shift_is_found_with_its_distance_and_its_place() -> None:
    assert RESULT.differ
    assert RESULT.p_value < 1e-6
    assert RESULT.test.method == "principal coordinates"
    exact = (
        ONE.similarity(HERE, HERE).mean()
        + ONE.similarity(THERE, THERE).mean()
        - 2.0 * ONE.similarity(HERE, THERE).mean()
    )
    found = RESULT.mmd_squared_of_records
    assert found is not None
    assert abs(found.value - exact) < 4.0 * found.stderr
    assert found.stderr < 0.1 * exact
    assert [each.sign for each in RESULT.regions] == [1, -1]
    assert RESULT.regions[0].high[0] < 0.5 < RESULT.regions[1].high[0]


def test_the_difference_is_that_of_the_functions() -> None:
    Q = np.linspace(-4.0, 4.0, 9)[:, None]
    np.testing.assert_allclose(RESULT.difference(Q).value, F(Q) - G(Q), rtol=1e-12)
    np.testing.assert_allclose(RESULT.difference(Q, of="sum").value, F.sum(Q) - G.sum(Q), rtol=1e-12)
    wide, narrow = RESULT.difference(Q), RESULT.difference(Q, about="records")
    assert (wide.stderr > narrow.stderr).all()
    together = RESULT.difference(Q, simultaneous=True)
    assert (together.upper - together.lower > wide.upper - wide.lower).all()
    assert set(RESULT.significant(Q).tolist()) == {-1, 0, 1}


def test_swapping_the_functions_changes_signs_alone() -> None:
    other = compare(G, F)
    assert other.p_value == pytest.approx(RESULT.p_value, rel=1e-6)
    assert other.mmd_squared is not None
    assert RESULT.mmd_squared is not None
    assert other.mmd_squared.value == pytest.approx(RESULT.mmd_squared.value, rel=1e-6)
    Q = np.linspace(-4.0, 4.0, 9)[:, None]
    one, two = RESULT.difference(Q, simultaneous=True), other.difference(Q, simultaneous=True)
    np.testing.assert_allclose(one.value, -two.value, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(one.stderr, two.stderr, rtol=1e-6)
    assert [each.sign for each in other.regions] == [-1, 1]


def test_it_says_what_it_found_and_what_it_assumes() -> None:
    text = str(RESULT)
    for words in ("the distributions differ", "spring above autumn", "MMD²", "independent samples"):
        assert words in text
    written = json.loads(json.dumps(RESULT.as_json()))
    assert written["differ"] is True
    assert written["names"] == ["spring", "autumn"]
    html = RESULT._repr_html_()
    assert "image/png" in html
    assert "spring above autumn" in html
    assert "p_value" in repr(RESULT)


def test_a_picture_of_one_column_and_of_two() -> None:
    assert RESULT.plot().get_ylabel() == "difference"
    kernel = hs.GaussianKernel(dim=2, bandwidth=0.5)
    pair = [
        hs.grid(kernel, bounds=(-4, 4))
        .add(RNG.normal(shift, 1.0, (3000, 2)))
        .release(epsilon=1.0, insecure_noise_seed=7 + i)
        for i, shift in enumerate((0.0, 0.4))
    ]
    result = compare(*pair)
    assert result.plot(labels=("a", "b")).get_xlabel() == "a"
    assert result.regions[0].low == result.regions[0].high
    assert "near column 0" in str(result)


def test_unequal_rows_of_one_sketch_are_compared_in_the_rows_that_both_have() -> None:
    kernel = hs.EuclideanKernel(dim=1, bandwidth=1.0)
    f, g = (
        hs.race(kernel, rows=200, bounds=(-5, 5))
        .add(rows)
        .release(epsilon=1.0, rows=number, insecure_noise_seed=number)
        for rows, number in ((HERE, 60), (THERE, 80))
    )
    result = compare(f, g)
    assert result.test.method == "principal coordinates"
    assert result.differ


def test_functions_of_different_bases_are_compared_point_by_point() -> None:
    g = hs.fourier_features(ONE, features=800, bounds=(-5, 5)).add(THERE)
    result = compare(F, g.release(epsilon=1.0, delta=1e-6, insecure_noise_seed=3))
    assert result.test.method == "separate points"
    assert result.differ
    assert result.mmd_squared is None
    assert "separate points" in str(result)


def test_points_may_be_given() -> None:
    result = compare(F, G, at=np.linspace(-2.0, 2.0, 11)[:, None])
    assert len(result.points) == 11
    assert result.differ
    for wrong in (np.zeros((1, 1)), np.zeros((1001, 1))):
        with pytest.raises(UsageError, match="2 to 1000"):
            compare(F, G, at=wrong)


def test_sets_and_functions_without_bounds_need_points() -> None:
    kernel = hs.JaccardKernel()
    f, g = (
        hs.race(kernel, rows=100, width=50)
        .add([[1, 2, 3]] * 500 + [[7, 8]] * number)
        .release(epsilon=3.0, insecure_noise_seed=number)
        for number in (500, 50)
    )
    with pytest.raises(UsageError, match="at must be given"):
        compare(f, g)
    assert compare(f, g, at=[[1, 2, 3], [7, 8], [1, 2]]).differ


def test_what_cannot_be_compared_is_refused_in_words() -> None:
    wider = hs.grid(hs.GaussianKernel(dim=1, bandwidth=0.7), bounds=(-5, 5)).add(HERE)
    moved = hs.grid(ONE, bounds=(-6, 5)).add(HERE)
    named = hs.grid(ONE, bounds=(-5, 5), columns=("a",)).add(HERE)
    cases: list[tuple[Any, str]] = [
        (wider.release(epsilon=1.0, insecure_noise_seed=5), "same kernel"),
        (moved.release(epsilon=1.0, insecure_noise_seed=5), "same bounds"),
        (named.release(epsilon=1.0, insecure_noise_seed=5), "same columns"),
        (F, "different releases"),
        (grid(HERE, 1), "different releases"),
        (F.rounded(), "different releases"),
        (hs.releases.combine(F, np.linspace(-2, 2, 20)[:, None]), "different releases"),
        (HERE, "must be a released function"),
    ]
    for other, words in cases:
        with pytest.raises(UsageError, match=words):
            compare(F, other)
    for wrong in ({"significance": 0.0}, {"cluster_size": 0.5}, {"names": "ab"}, {"names": ("a", "b", "c")}):
        with pytest.raises(UsageError):
            compare(F, G, **wrong)


def test_steps_of_one_stream_are_left_to_drift() -> None:
    stream = hs.stream(
        hs.grid(ONE, bounds=(-5, 5)), horizon=3, epsilon=1.0, delta=1e-6, insecure_noise_seed=1
    )
    first, second = stream.add(HERE).step(), stream.add(THERE).step()
    with pytest.raises(UsageError, match=r"hs\.drift"):
        compare(first, second)
    other = hs.stream(hs.grid(ONE, bounds=(-5, 5)), horizon=3, epsilon=1.0, delta=1e-6, insecure_noise_seed=2)
    assert compare(first, other.add(THERE).step()).differ


def test_records_that_come_together_count_less() -> None:
    alone, together = compare(F, G), compare(F, G, cluster_size=20.0)
    assert together.p_value > alone.p_value


class _OnlyAnswers:
    """A function in a service that may be queried and not be downloaded."""

    def __init__(self, function: ReleasedFunction) -> None:
        self._function = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __call__(self, Q: object) -> Any:
        return self._function(Q)

    def local(self) -> ReleasedFunction:
        raise ServiceRefused("its owner does not allow downloads")


def test_a_function_that_only_answers_is_compared_point_by_point() -> None:
    result: Comparison = compare(_OnlyAnswers(F), _OnlyAnswers(G))
    assert result.test.method == "separate points"
    assert result.differ
