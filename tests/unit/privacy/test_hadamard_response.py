"""One report of the local model: its law, and that too little noise is noticed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from hushsum.privacy import hadamard_response, local_source, sign_gain

ROWS, ORDER, CELL = 3, 8, 5


def responses(epsilon: Fraction, number: int) -> list[Any]:
    made = []
    with local_source(7) as source:
        for _ in range(number):
            made.append(
                hadamard_response(lambda row: CELL, rows=ROWS, order=ORDER, epsilon=epsilon, source=source)
            )
    return made


def flips(made: list[Any]) -> int:
    """How many signs are not the true ones."""
    return sum(((CELL & each.column).bit_count() % 2 == 1) != each.negative for each in made)


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(3)])
def test_signs_are_flipped_as_often_as_epsilon_says(epsilon: Fraction) -> None:
    """A correct sampler fails once in 10⁶ runs; one with 20 % less noise, at 1.2 ε, in fewer than one in
    10⁶ it passes.
    """
    number = 20_000
    probability = 1.0 / (1.0 + math.exp(float(epsilon)))
    low = float(binom.ppf(5e-7, number, probability))
    high = float(binom.isf(5e-7, number, probability))
    assert low <= flips(responses(epsilon, number)) <= high
    careless = 1.0 / (1.0 + math.exp(1.2 * float(epsilon)))
    assert binom.cdf(high, number, careless) - binom.cdf(low - 1, number, careless) < 1e-6


def test_rows_and_columns_are_uniform_and_say_nothing() -> None:
    """False alarm once in 10⁶."""
    made = responses(Fraction(1), 8_000)
    for part, size in (([each.row for each in made], ROWS), ([each.column for each in made], ORDER)):
        assert chisquare(np.bincount(part, minlength=size)).pvalue > 1e-6


def test_the_gain_is_the_mean_of_a_sign() -> None:
    assert sign_gain(Fraction(2)) == pytest.approx(1.0 - 2.0 / (1.0 + math.exp(2.0)))


def test_only_the_drawn_row_is_looked_up() -> None:
    seen: list[int] = []

    def cell_of(row: int) -> int:
        seen.append(row)
        return 0

    with local_source(1) as source:
        made = hadamard_response(cell_of, rows=9, order=2, epsilon=Fraction(1), source=source)
    assert seen == [made.row]
