"""Elementary functions against the library's, and against themselves in other places of other arrays."""

from __future__ import annotations

import numpy as np
import pytest

from hushsum.tables import cosine_and_sine, exponential_of_minus

TURNS = np.concatenate([np.linspace(-3.0, 3.0, 4001), np.array([0.125, -0.375, 1e9 + 0.25, 1e60])])


def test_cosine_and_sine() -> None:
    cosine, sine = cosine_and_sine(TURNS)
    turn = TURNS - np.rint(TURNS)
    assert np.abs(cosine - np.cos(2 * np.pi * turn)).max() < 2.0**-50
    assert np.abs(sine - np.sin(2 * np.pi * turn)).max() < 2.0**-50


def test_squares_sum_to_one_closely_enough_for_the_proof() -> None:
    cosine, sine = cosine_and_sine(np.random.default_rng(0).uniform(-9.0, 9.0, 200_000))
    assert np.abs(cosine**2 + sine**2 - 1.0).max() < 2.0**-49


def test_exponential() -> None:
    x = np.concatenate([np.linspace(0.0, 700.0, 5001), np.array([1e-300, 0.5])])
    assert np.abs(exponential_of_minus(x) / np.exp(-x) - 1.0).max() < 2.0**-50
    assert exponential_of_minus(np.array([0.0, 801.0, 1e300])).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 9, 17])
def test_a_value_does_not_depend_on_its_place(size: int) -> None:
    x = np.random.default_rng(1).uniform(0.0, 40.0, 64)
    whole = (*cosine_and_sine(x), exponential_of_minus(x))
    for start in range(64 - size):
        part = x[start : start + size].copy()
        parts = (*cosine_and_sine(part), exponential_of_minus(part))
        for all_values, values in zip(whole, parts, strict=True):
            assert (all_values[start : start + size] == values).all()
