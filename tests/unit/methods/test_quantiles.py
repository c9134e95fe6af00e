"""Private quantiles: scores and their sensitivity by brute force, grids, splits, books, refusals."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import BudgetExhausted, ClaimError, DataRefused, UsageError
from hushsum.methods import Ranks, rank_sensitivity
from hushsum.methods import _private_choice as private_choice
from hushsum.privacy import Question, Relation
from tests.memory_budget import MemoryBudget

GRID = np.array([0.0, 1.0, 2.0, 3.0])
VALUES = (-1.0, 0.0, 0.5, 1.0, 2.5, 3.0, 9.0)
QUANTILES = [Fraction(0), Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)]


def scores(data: tuple[float, ...], q: Fraction) -> list[int]:
    return Ranks.of(np.array(data), GRID).scores(q)


@pytest.mark.parametrize("q", QUANTILES)
def test_scores_are_the_distance_in_ranks(q: Fraction) -> None:
    """Against the definition, point by point, in rationals."""
    for data in combinations_with_replacement(VALUES, 3):
        for point, score in zip(GRID, scores(data, q), strict=True):
            below, upto = sum(x < point for x in data), sum(x <= point for x in data)
            expected = q * len(data)
            distance = max(below - expected, expected - upto, Fraction(0))
            assert score == -distance * q.denominator


@pytest.mark.parametrize("q", QUANTILES)
def test_a_record_more_moves_no_score_beyond_the_declared_bound(q: Fraction) -> None:
    declared = rank_sensitivity(q, Relation.ADD_REMOVE, 1)
    found = 0
    for data in combinations_with_replacement(VALUES, 3):
        for one in VALUES:
            moves = np.subtract(scores((*data, one), q), scores(data, q))
            found = max(found, int(np.abs(moves).max()))
    assert found == declared


@pytest.mark.parametrize("q", QUANTILES)
def test_a_record_replaced_moves_no_score_beyond_the_declared_bound(q: Fraction) -> None:
    declared = rank_sensitivity(q, Relation.REPLACE, 1)
    found = 0
    for data in combinations_with_replacement(VALUES, 3):
        for one in VALUES:
            moves = np.subtract(scores((*data[1:], one), q), scores(data, q))
            found = max(found, int(np.abs(moves).max()))
    assert found <= declared
    assert found == declared or q.denominator == 1 or q == Fraction(1, 100)


def test_a_person_moves_as_many_records_as_the_cap_allows() -> None:
    q = Fraction(1, 10)
    moves = np.subtract(scores((2.5, 2.5, 2.5, *VALUES), q), scores(VALUES, q))
    assert int(np.abs(moves).max()) <= rank_sensitivity(q, Relation.ADD_REMOVE, 3) == 27


def captured(monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Question]:
    requested: list[Question] = []

    def listen(questions: list[Question], *, insecure_noise_seed: int | None) -> list[int]:
        requested.extend(questions)
        return [0] * len(questions)

    monkeypatch.setattr(private_choice, "choose_positions", listen)
    hs.private_quantiles([[0.1, 5.0], [0.2, 6.0]] * 5, bounds=(0, 10), **options)
    return requested


def test_the_shares_add_up_to_epsilon_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = captured(monkeypatch, q=[0.25, 0.5, 0.75], epsilon=0.1)
    assert len(requested) == 6
    assert sum(question.epsilon for question in requested) == Fraction(1, 10)
    assert not any(question.monotone for question in requested)
    assert requested[0].rate == Fraction(1, 60) / (2 * 3)


def test_persons_take_the_cap_times_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = captured(
        monkeypatch, q=0.5, epsilon=1.0, units=["a", "b"] * 5, max_per_unit=3, relation="replace"
    )
    assert [question.sensitivity for question in requested] == [6, 6]
    assert (
        max(-min(question.scores) for question in requested) <= 6
    )  # 3 records of each of 2 persons are left


def test_the_secrets_have_no_repr() -> None:
    assert "7" not in repr(Ranks.of(np.full(7, 0.5), GRID))
    assert "7" not in repr(Question([-7, 0], Fraction(1), 1))


def test_many_records_give_nearly_the_quantiles() -> None:
    data = np.random.default_rng(0).normal(50.0, 10.0, size=(100_000, 2))
    found = hs.private_quantiles(data, [0.99, 0.5, 0.01], bounds=[(0, 100), (-100, 200)], epsilon=2.0)
    exact = np.quantile(data, [0.99, 0.5, 0.01], axis=0).T
    assert np.abs(np.array(found.values) - exact).max() < 1.5
    assert found.q == (0.99, 0.5, 0.01)
    assert str(found.claim.mechanism) == "permute and flip"
    assert found.claim.arithmetic == "exact integers"


def test_few_records_and_a_small_epsilon_still_give_ordered_values() -> None:
    for seed in range(20):
        row = hs.private_quantiles(
            [[5.0]], [0.9, 0.1, 0.5], bounds=(0, 10), epsilon=0.01, insecure_noise_seed=seed
        ).values[0]
        assert row[1] <= row[2] <= row[0]


def test_points_of_ones_own_may_be_the_grid() -> None:
    incomes = np.random.default_rng(1).lognormal(10.0, 1.0, 50_000)
    points = np.geomspace(1.0, 1e9, 200)
    found = hs.private_quantiles(incomes, 0.5, bounds=(0, 1e9), epsilon=1.0, grid=points)
    assert found.values[0][0] in points
    assert 0.8 < found.values[0][0] / np.median(incomes) < 1.25


def test_bounds_serve_a_tally_and_are_never_empty() -> None:
    for value in (0.0, 5.0, 10.0):
        bounds = hs.private_bounds([[value]] * 2000, within=(0, 10), epsilon=1.0, grid=10)
        assert len(bounds) == 1
        assert bounds[0][0] < bounds[0][1]
        hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=5, bounds=bounds).add([[value]])
    assert list(bounds[0:1]) == [bounds[0]]


def test_bounds_cover_about_what_was_requested() -> None:
    data = np.random.default_rng(2).normal(size=50_000)
    ((low, high),) = hs.private_bounds(data, within=(-50, 50), epsilon=1.0, tail=0.01, grid=10_000)
    assert 0.005 < np.mean(data < low) < 0.015
    assert 0.005 < np.mean(data > high) < 0.015


def test_a_choice_is_debited_drawn_staged_and_published() -> None:
    book = MemoryBudget(Fraction(1))
    options: dict[str, Any] = {"bounds": (0, 10), "epsilon": 0.6, "budget": book, "idempotency_key": "k"}
    first = hs.private_quantiles([[1.0], [2.0], [9.0]], [0.1, 0.9], **options)
    entry = book.entries["k"]
    assert entry.steps == ["debited", "drawn", "staged", "published"]
    assert entry.claim == first.claim
    assert entry.subject["choice"] == "quantiles"
    # The same key gives the staged values back, from other data and without another debit.
    assert hs.private_quantiles([[5.0]] * 900, [0.1, 0.9], **options) == first
    assert book.spent == Fraction(3, 5)
    with pytest.raises(BudgetExhausted):
        hs.private_quantiles([[1.0]], 0.5, **{**options, "idempotency_key": "other"})
    assert list(book.entries) == ["k"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"q": []}, UsageError),
        ({"q": 1.5}, UsageError),
        ({"q": 0.12345678}, UsageError),
        ({"epsilon": 0.0}, ClaimError),
        ({"epsilon": float("nan")}, ClaimError),
        ({"bounds": (5, 1)}, UsageError),
        ({"bounds": [(0, 1), (0, 1)]}, DataRefused),
        ({"grid": 0}, UsageError),
        ({"grid": 1 << 17}, UsageError),
        ({"grid": [1.0]}, UsageError),
        ({"grid": [2.0, 1.0]}, UsageError),
        ({"grid": [1.0, float("inf")]}, UsageError),
        ({"grid": [98.0, 99.0]}, UsageError),
        ({"units": ["a", "b"]}, UsageError),
        ({"max_per_unit": 2}, UsageError),
        ({"units": ["a"], "max_per_unit": 2}, DataRefused),
        ({"units": ["a", "b"], "max_per_unit": 0}, ClaimError),
        ({"relation": "swap"}, ClaimError),
        ({"idempotency_key": "k"}, UsageError),
        ({"budget": "ledger.db"}, UsageError),
    ],
    ids=str,
)
def test_what_breaks_a_rule_is_refused(options: dict[str, Any], error: type[Exception]) -> None:
    allowed = {"q": 0.5, "bounds": (0, 10), "epsilon": 1.0}
    with pytest.raises(error):
        hs.private_quantiles([[1.0], [2.0]], **{**allowed, **options})


@pytest.mark.parametrize("bad", [[[float("nan")]], [[float("inf")]], [["text"]], []])
def test_records_that_are_no_numbers_are_refused(bad: Any) -> None:
    with pytest.raises(DataRefused):
        hs.private_quantiles(bad, 0.5, bounds=(0, 10), epsilon=1.0)


@pytest.mark.parametrize("tail", [0.0, 0.5, -1.0])
def test_tails_are_below_a_half(tail: float) -> None:
    with pytest.raises(UsageError):
        hs.private_bounds([[1.0]], within=(0, 10), epsilon=1.0, tail=tail)
