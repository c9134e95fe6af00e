"""The vote on a kernel: one unit, one block, one vote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.kernels.base import Batch
from hushsum.methods import vote
from hushsum.privacy.selection import Question
from tests.memory_budget import MemoryBudget

KERNELS = [hs.EuclideanKernel(dim=2, bandwidth=width) for width in (0.01, 0.1, 1.0, 10.0)]


def points(seed: int, number: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(number, 2)).astype(np.float32)


def votes(data: NDArray[np.float32], blocks: int) -> list[int]:
    """With a judge as capricious as can be: its vote hangs on the last bit of the block's sum."""

    def judge(block: Batch) -> int:
        return int(block.arrays[0].view(np.uint32).sum()) % 4

    batch = Batch((data,), len(data))
    return vote.count_votes(batch, vote._places(data, blocks), blocks, judge, 4)


def removals() -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    for seed in range(20):
        data = points(seed, 60)
        for gone in range(0, 60, 7):
            yield data, np.delete(data, gone, axis=0)


def test_one_record_moves_one_vote() -> None:
    furthest = 0
    for data, fewer in removals():
        moves = np.subtract(votes(data, 10), votes(fewer, 10))
        assert np.abs(moves).sum() <= 2
        furthest = max(furthest, int(np.abs(moves).max()))
    assert furthest == 1


def test_one_record_replaced_moves_two_votes() -> None:
    furthest = 0
    for seed in range(200):
        data = points(seed, 60)
        other = data.copy()
        other[seed % 60] = points(seed + 1000, 1)[0]
        furthest = max(furthest, int(np.abs(np.subtract(votes(data, 10), votes(other, 10))).max()))
    assert furthest == 2


def test_a_record_has_its_block_wherever_it_stands() -> None:
    data = points(1, 300)
    places = vote._places(data, 17)
    order = np.random.default_rng(2).permutation(300)
    assert np.array_equal(vote._places(data[order], 17), places[order])
    assert np.array_equal(vote._places(data[5:6], 17), places[5:6])


def test_blocks_are_about_equal() -> None:
    """Exactly reproducible; seven standard deviations around 10,000 / 20."""
    sizes = np.bincount(vote._places(points(3, 10_000), 20), minlength=20)
    assert np.abs(sizes - 500).max() < 7 * 500**0.5


def test_all_records_of_a_person_are_in_one_block() -> None:
    places = vote._places_of(np.arange(100).repeat(3), 300, 8).reshape(100, 3)
    assert (places == places[:, :1]).all()
    assert len(set(places[:, 0].tolist())) == 8


def captured(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Question:
    asked: list[Question] = []

    def listen(questions: list[Question], *, insecure_noise_seed: int | None) -> list[int]:
        asked.extend(questions)
        return [0]

    monkeypatch.setattr(vote, "select", listen)
    hs.choose_kernel(points(4, 500), KERNELS, **options)
    return asked[0]


@pytest.mark.parametrize(("relation", "sensitivity"), [("add/remove", 1), ("replace", 2)])
def test_the_noise_is_that_of_the_relation(
    monkeypatch: pytest.MonkeyPatch, relation: str, sensitivity: int
) -> None:
    question = captured(monkeypatch, epsilon=0.5, relation=relation, blocks=40)
    assert question.rate == Fraction(1, 2) / (2 * sensitivity)
    assert sum(question.scores) == 40


def test_the_number_of_blocks_does_not_depend_on_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    assert vote._blocks(None, Fraction(1, 10), 4) == 351
    assert vote._blocks(None, Fraction(10), 4) == 16
    question = captured(monkeypatch, epsilon=1.0)
    assert sum(question.scores) <= vote._blocks(None, Fraction(1), 4)


@pytest.mark.parametrize(("density", "width"), [(0.003, 0.01), (0.03, 0.1), (0.3, 1.0), (0.9, 10.0)])
def test_the_kernel_of_the_wanted_density_wins(density: float, width: float) -> None:
    chosen = hs.choose_kernel(points(5, 20_000), KERNELS, epsilon=1.0, density=density)
    assert chosen.candidate == hs.EuclideanKernel(dim=2, bandwidth=width)
    assert KERNELS[chosen.index] == chosen.candidate
    assert chosen.claim.epsilon == 1.0


def test_records_all_alike_and_records_too_few_still_choose() -> None:
    assert hs.choose_kernel([[1.0, 1.0]] * 50, KERNELS, epsilon=1.0).index in range(4)
    assert hs.choose_kernel([[1.0, 1.0]], KERNELS, epsilon=1.0).index in range(4)


def test_persons_are_protected_whatever_they_bring() -> None:
    data = points(6, 4000)
    chosen = hs.choose_kernel(
        data, KERNELS, epsilon=1.0, units=np.arange(4000) // 4, max_per_unit=4, density=0.03
    )
    assert (chosen.claim.unit, chosen.claim.records_per_unit) == ("person", 4)


def test_a_choice_is_booked_once() -> None:
    book = MemoryBudget(Fraction(1))
    options: dict[str, Any] = {"epsilon": 1.0, "ledger": book, "dataset": "d", "key": "k"}
    first = hs.choose_kernel(points(7, 500), KERNELS, **options)
    staged = json.loads(book.entries["k"].staged or b"")
    assert staged["result"] == {"candidate": first.index}
    assert staged["subject"]["candidates"][0]["parameters"]["bandwidth"] == 0.01
    assert hs.choose_kernel(points(8, 9), KERNELS, **options) == first
    assert book.spent == 1
    with pytest.raises(UsageError, match="another choice"):
        hs.choose_kernel(points(8, 9), KERNELS, density=0.9, **options)
    with pytest.raises(UsageError, match="another choice"):
        hs.choose_kernel(points(8, 9), KERNELS, **{**options, "epsilon": 0.5})


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
        hs.choose_kernel(points(9, 20), candidates, **{"epsilon": 1.0, **options})


def test_sets_have_no_vote() -> None:
    with pytest.raises(UsageError, match="sets"):
        hs.choose_kernel([[1, 2], [3]], [hs.JaccardKernel()], epsilon=1.0)
