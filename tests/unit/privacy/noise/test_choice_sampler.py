"""Exact choices: coins decided by proof, laws that sum to one, worst pairs, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest

from hushsum.errors import SecretRefused, UsageError
from hushsum.privacy.noise import (
    NoiseSource,
    below,
    exponential_bounds,
    exponential_choice,
    exponential_distribution,
    flip,
    permute_and_flip,
    permute_and_flip_distribution,
)

Choose = Callable[[Sequence[int], Fraction, NoiseSource], int]
Law = Callable[[Sequence[int], float], list[float]]
BOTH: list[Choose] = [permute_and_flip, exponential_choice]
LAWS: list[Law] = [permute_and_flip_distribution, exponential_distribution]


def words(value: int, bits: int) -> Callable[[int], int]:
    """The 64-bit groups of a number below 2^bits, highest first."""
    return lambda i: value >> bits - 64 * (i + 1) & (1 << 64) - 1


@pytest.mark.parametrize("x", [Fraction(1, 10**9), Fraction(1, 3), Fraction(1), Fraction(17), Fraction(90)])
def test_a_coin_is_decided_rightly_one_unit_either_side_of_its_probability(x: Fraction) -> None:
    """Uniforms that agree with e^(−x) in their first 300 digits: doubles could not tell."""
    bits = 320
    low, high = exponential_bounds(x, bits)
    requested: list[int] = []

    def listening(value: int) -> Callable[[int], int]:
        def more(i: int) -> int:
            requested.append(i)
            return words(value, bits)(i)

        return more

    assert flip(x, listening(low - (1 << 20)))
    assert requested == [0, 1, 2, 3, 4]
    assert not flip(x, listening(high + (1 << 20)))


def test_a_coin_of_probability_one_asks_for_no_bits() -> None:
    def never(i: int) -> int:
        raise AssertionError

    assert flip(Fraction(0), never)


def test_a_hopeless_coin_needs_one_word() -> None:
    assert not flip(Fraction(10**9), lambda i: [1][i])


def test_uniform_integers_reject_the_unfair_end() -> None:
    unfair = (1 << 64) - 1
    assert below(3, iter([unfair, 7]).__next__) == 1
    assert [below(5, iter([word]).__next__) for word in range(5)] == [0, 1, 2, 3, 4]
    assert below(1, iter([12345]).__next__) == 0


def permuted_law(scores: Sequence[int], rate: float) -> list[float]:
    """Permute-and-flip as it is defined: over all orders, the first coin that falls."""
    best = max(scores)
    chance = [math.exp(-rate * (best - score)) for score in scores]
    law = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0 / len(orders)
        for candidate in order:
            law[candidate] += left * chance[candidate]
            left *= 1.0 - chance[candidate]
    return law


@pytest.mark.parametrize("scores", [[0], [3, 3], [0, 1, 2], [5, -2, 0, 5, 1], [0, 0, 0, -1, -1, 4]])
def test_the_integral_of_the_proof_is_the_law_of_the_algorithm(scores: list[int]) -> None:
    law = permute_and_flip_distribution(scores, 0.7)
    assert law == pytest.approx(permuted_law(scores, 0.7), rel=1e-12)
    assert sum(law) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("monotone", [False, True])
def test_no_neighbour_of_small_scores_breaks_the_claim(law: Law, monotone: bool) -> None:
    """Every pair with scores from −2 to 2 and moves up to Δ = 1: the loss reaches ε at most, and for
    permute-and-flip exactly."""
    epsilon = 1.0
    rate = epsilon if monotone else epsilon / 2
    moves = [(0, 1), (-1, 0)] if monotone else [(-1, 0, 1)]
    worst = 0.0
    for scores in product(range(-2, 3), repeat=3):
        here = law(scores, rate)
        for allowed in moves:
            for move in product(allowed, repeat=3):
                there = law([score + step for score, step in zip(scores, move, strict=True)], rate)
                worst = max(worst, *(abs(math.log(p / q)) for p, q in zip(here, there, strict=True)))
    assert worst <= epsilon + 1e-9
    if law is permute_and_flip_distribution:
        assert worst == pytest.approx(epsilon, rel=1e-9)
    else:
        assert worst > 0.9 * epsilon


def test_scores_that_move_apart_need_twice_the_noise_of_counts() -> None:
    """The rate of monotone scores, used where scores move apart, leaks twice ε: the 2 is no caution."""
    left, right = permute_and_flip_distribution([-2, 0], 1.0), permute_and_flip_distribution([-1, -1], 1.0)
    assert math.log(right[0] / left[0]) == pytest.approx(2.0)


@pytest.mark.parametrize("scores", [[0, 1], [0, 3, -1, 2]])
def test_permute_and_flip_never_loses_more_on_average(scores: list[int]) -> None:
    pairs = [sum(p * s for p, s in zip(law(scores, 0.5), scores, strict=True)) for law in LAWS]
    assert pairs[0] >= pairs[1]


@pytest.mark.parametrize("choose", BOTH)
def test_seeded_choices_repeat_and_streams_differ(choose: Choose) -> None:
    source = NoiseSource.insecure(5)
    first = [choose([0, 0, 0, 0], Fraction(1), source) for _ in range(40)]
    again = NoiseSource.insecure(5)
    assert first == [choose([0, 0, 0, 0], Fraction(1), again) for _ in range(40)]
    assert set(first) == {0, 1, 2, 3}


@pytest.mark.parametrize("choose", BOTH)
def test_huge_scores_stay_exact(choose: Choose) -> None:
    """Scores beyond 2^53 that differ by 1, which doubles cannot tell apart."""
    scores = [2**80, 2**80 + 1]
    assert {choose(scores, Fraction(1000), NoiseSource.insecure(seed)) for seed in range(20)} == {1}


@pytest.mark.parametrize("choose", BOTH)
@pytest.mark.parametrize(
    ("scores", "rate"),
    [
        ([], Fraction(1)),
        ([0.5], Fraction(1)),
        ([True], Fraction(1)),
        ([1], Fraction(0)),
        ([1], Fraction(-1)),
        ([1], 0.5),
    ],
)
def test_what_cannot_be_exact_is_refused(choose: Choose, scores: Any, rate: Any) -> None:
    with pytest.raises(UsageError):
        choose(scores, rate, NoiseSource.insecure(1))


def test_a_closed_source_is_refused() -> None:
    with NoiseSource.insecure(1) as source:
        permute_and_flip([1, 2], Fraction(1), source)
    with pytest.raises(SecretRefused):
        permute_and_flip([1, 2], Fraction(1), source)
