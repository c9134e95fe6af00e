"""The vote on a kernel: one unit, one block, one vote."""

from __future__ import annotations

import importlib
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.kernels import Batch
from hushsum.privacy import Question, random_places
from tests.memory_budget import MemoryBudget

# By name: the package has a function of the same name.
vote: Any = importlib.import_module("hushsum.methods._private_choice")

KERNELS = [hs.EuclideanKernel(dim=2, bandwidth=width) for width in (0.01, 0.1, 1.0, 10.0)]


def points(seed: int, number: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(number, 2)).astype(np.float32)


def votes(data: NDArray[np.float32], places: NDArray[np.int64]) -> list[int]:
    """With a judge as capricious as can be: its vote hangs on the last bits of the block's sum."""

    def judge(block: Batch) -> int:
        return int(block.arrays[0].view(np.uint32).sum()) % 4

    found: list[int] = vote.count_votes(Batch((data,), len(data)), places, 10, judge, 4)
    return found


def test_one_record_more_or_less_moves_one_vote() -> None:
    furthest = 0
    for seed in range(20):
        data, places = points(seed, 60), np.random.default_rng(seed).integers(0, 10, 60)
        for gone in range(60):
            fewer = votes(np.delete(data, gone, axis=0), np.delete(places, gone))
            moves = np.subtract(votes(data, places), fewer)
            assert np.abs(moves).sum() <= 2
            furthest = max(furthest, int(np.abs(moves).max()))
    assert furthest == vote.VOTE_SENSITIVITY


def test_one_record_replaced_moves_one_vote() -> None:
    furthest = 0
    for seed in range(200):
        data, places = points(seed, 60), np.random.default_rng(seed).integers(0, 10, 60)
        other = data.copy()
        other[seed % 60] = points(seed + 1000, 1)[0]
        furthest = max(furthest, int(np.abs(np.subtract(votes(data, places), votes(other, places))).max()))
    assert furthest == vote.VOTE_SENSITIVITY


def test_blocks_are_independent_of_the_data_and_about_equal() -> None:
    """Exactly reproducible; seven standard deviations around 10,000 / 20, and of a correlation of 0."""
    places = random_places(10_000, 20, insecure_noise_seed=1)
    assert np.abs(np.bincount(places, minlength=20) - 500).max() < 7 * 500**0.5
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 0.07
    assert not np.array_equal(places, random_places(10_000, 20, insecure_noise_seed=2))
    first, second = (random_places(10_000, 20, insecure_noise_seed=None) for _ in range(2))
    assert not np.array_equal(first, second)


def test_all_records_of_a_person_are_one_unit() -> None:
    units = vote._units(np.arange(100).repeat(3), 300).reshape(100, 3)
    assert (units == units[:, :1]).all()
    assert len(set(units[:, 0].tolist())) == 100
    assert vote._units(None, 3).tolist() == [0, 1, 2]


def test_duplicates_do_not_make_records_look_alike() -> None:
    """Ten distinct records a hundred times each, far apart: two records are alike by a tenth."""
    data = np.arange(10.0).repeat(100)[:, np.newaxis] * np.array([[1e6, 0.0]])
    kernels = [hs.EuclideanKernel(dim=2, bandwidth=width) for width in (1.0, 1e6, 1e8)]
    assert hs.methods.choose_kernel(data, kernels, epsilon=2.0, density=0.1).index == 0
    assert hs.methods.choose_kernel(data, kernels, epsilon=2.0, density=0.9).index == 2


def captured(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Question:
    requested: list[Question] = []

    def listen(questions: list[Question], *, insecure_noise_seed: int | None) -> list[int]:
        requested.extend(questions)
        return [0]

    monkeypatch.setattr(vote, "choose_positions", listen)
    hs.methods.choose_kernel(points(4, 500), KERNELS, **options)
    return requested[0]


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_votes_that_move_apart_take_twice_the_noise(monkeypatch: pytest.MonkeyPatch, relation: str) -> None:
    question = captured(monkeypatch, epsilon=0.5, relation=relation, blocks=40)
    assert question.rate == Fraction(1, 2) / (2 * vote.VOTE_SENSITIVITY)
    assert sum(question.scores) == 40


def test_the_number_of_blocks_does_not_depend_on_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    assert vote._blocks(None, Fraction(1, 10), 4) == 351
    assert vote._blocks(None, Fraction(10), 4) == 16
    question = captured(monkeypatch, epsilon=1.0)
    assert sum(question.scores) <= vote._blocks(None, Fraction(1), 4)


@pytest.mark.parametrize(("density", "width"), [(0.003, 0.01), (0.03, 0.1), (0.3, 1.0), (0.9, 10.0)])
def test_the_kernel_of_the_expected_density_wins(density: float, width: float) -> None:
    chosen = hs.methods.choose_kernel(points(5, 20_000), KERNELS, epsilon=1.0, density=density)
    assert chosen.candidate == hs.EuclideanKernel(dim=2, bandwidth=width)
    assert KERNELS[chosen.index] == chosen.candidate
    assert chosen.claim.epsilon == 1.0


def test_records_all_alike_and_records_too_few_still_choose() -> None:
    assert hs.methods.choose_kernel([[1.0, 1.0]] * 50, KERNELS, epsilon=1.0).index in range(4)
    assert hs.methods.choose_kernel([[1.0, 1.0]], KERNELS, epsilon=1.0).index in range(4)


def test_persons_are_protected_whatever_they_bring() -> None:
    data = points(6, 4000)
    chosen = hs.methods.choose_kernel(
        data, KERNELS, epsilon=1.0, units=np.arange(4000) // 4, max_per_unit=4, density=0.03
    )
    assert (chosen.claim.unit, chosen.claim.records_per_unit) == ("person", 4)


def test_a_choice_is_booked_once() -> None:
    book = MemoryBudget(Fraction(1))
    options: dict[str, Any] = {"epsilon": 1.0, "budget": book, "idempotency_key": "k"}
    first = hs.methods.choose_kernel(points(7, 500), KERNELS, **options)
    staged = json.loads(book.entries["k"].staged or b"")
    assert staged["result"] == {"candidate": first.index}
    assert staged["subject"]["candidates"][0]["parameters"]["bandwidth"] == 0.01
    assert hs.methods.choose_kernel(points(8, 9), KERNELS, **options) == first
    assert book.spent == 1
    with pytest.raises(UsageError, match="belongs to another release"):
        hs.methods.choose_kernel(points(8, 9), KERNELS, density=0.9, **options)
    with pytest.raises(UsageError, match="belongs to another release"):
        hs.methods.choose_kernel(points(8, 9), KERNELS, **{**options, "epsilon": 0.5})


@pytest.mark.parametrize(
    ("candidates", "options", "error"),
    [
        ([], {}, UsageError),
        ([KERNELS[0], hs.ManhattanKernel(dim=2, bandwidth=1.0)], {}, UsageError),
        ([KERNELS[0], hs.EuclideanKernel(dim=3, bandwidth=1.0)], {}, UsageError),
        (KERNELS, {"density": 0.0}, UsageError),
        (KERNELS, {"density": 1.0}, UsageError),
        (KERNELS, {"blocks": 0}, UsageError),
        (KERNELS, {"epsilon": 0.0}, UsageError),
        (KERNELS, {"units": ["a"] * 20}, UsageError),
        (KERNELS, {"units": ["a"], "max_per_unit": 1}, DataRefused),
    ],
    ids=str,
)
def test_what_breaks_a_rule_is_refused(
    candidates: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        hs.methods.choose_kernel(points(9, 20), candidates, **{"epsilon": 1.0, **options})


def test_sets_have_no_vote() -> None:
    with pytest.raises(UsageError, match="sets"):
        hs.methods.choose_kernel([[1, 2], [3]], [hs.JaccardKernel()], epsilon=1.0)
