"""Groups, relations and the size of δ."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushsum.errors import ClaimError
from hushsum.privacy.accounting import (
    analytic_gaussian_sigma,
    check_delta,
    gaussian_delta,
    group_delta,
    group_epsilon,
    group_rho,
    relation_steps,
)

fixed = settings(deadline=None, derandomize=True)


@fixed
@given(epsilon=st.fractions(Fraction(1, 1000), 50), size=st.integers(1, 1000))
def test_groups_are_exact(epsilon: Fraction, size: int) -> None:
    assert group_epsilon(epsilon, size) == epsilon * size
    assert group_rho(epsilon, size) == epsilon * size * size


def test_a_float_is_the_rational_it_stands_for() -> None:
    assert group_epsilon(0.1, 3) == 3 * Fraction(0.1)
    assert group_epsilon(0.1, 3) != Fraction(3, 10)


@fixed
@given(epsilon=st.floats(1e-6, 30.0), power=st.floats(-150.0, -60.0), size=st.integers(1, 5))
def test_the_delta_of_a_group_is_the_geometric_sum_rounded_up(
    epsilon: float, power: float, size: int
) -> None:
    delta = 10.0**power
    with mp.workdps(50):
        exact = mp.mpf(delta) * mp.fsum(mp.exp(k * mp.mpf(epsilon)) for k in range(size))
        assert exact <= group_delta(epsilon, delta, size) <= exact * (1 + mp.mpf("1e-11"))


def test_group_privacy_covers_a_gaussian_moved_twice_as_far() -> None:
    sigma = analytic_gaussian_sigma(0.5, 1e-9)
    assert gaussian_delta(1.0, 2 / sigma) <= group_delta(0.5, 1e-9, 2)


def test_a_group_too_large_to_promise_anything_is_refused() -> None:
    with pytest.raises(ClaimError, match=r"^delta must stay below 1 .*got .*; "):
        group_delta(1.0, 1e-6, 15)
    with pytest.raises(ClaimError, match=r"^delta must stay below 1 .*got .*; "):
        group_delta(1e6, 1e-6, 10**9)


def test_replace_from_add_remove_is_two_steps() -> None:
    steps = relation_steps("add/remove", "replace")
    assert group_epsilon(Fraction(1, 3), steps) == Fraction(2, 3)
    assert group_rho(Fraction(1, 3), steps) == Fraction(4, 3)
    assert group_delta(0.5, 1e-6, steps) == pytest.approx(1e-6 * (1 + math.exp(0.5)), rel=1e-12)


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_the_same_relation_changes_nothing(relation: str) -> None:
    assert relation_steps(relation, relation) == 1
    assert group_delta(0.5, 1e-6, 1) == 1e-6


def test_replace_never_gives_add_remove() -> None:
    with pytest.raises(ClaimError, match="cannot be had from 'replace'"):
        relation_steps("replace", "add/remove")


def test_an_unknown_relation_is_named() -> None:
    with pytest.raises(ClaimError, match=r"^relation must .*got 'edge'"):
        relation_steps("edge", "replace")
    with pytest.raises(ClaimError, match=r"^relation must .*got 'edge'"):
        relation_steps("replace", "edge")


@pytest.mark.parametrize("size", [0, -1, 1.5])
def test_refuses_what_is_no_group(size: int) -> None:
    with pytest.raises(ClaimError, match=r"^group size must .*got .*; "):
        group_epsilon(1.0, size)


def test_numpy_integers_are_integers_and_booleans_are_not() -> None:
    assert group_epsilon(1, np.int64(4)) == 4  # type: ignore[arg-type]
    with pytest.raises(ClaimError, match=r"^group size must .*got True; "):
        group_epsilon(1, True)


def test_delta_is_compared_exactly_with_the_number_of_units() -> None:
    check_delta(Fraction(1, 1001), 100)
    with pytest.raises(ClaimError, match=r"^delta must be below .*got .*; .*allow_large"):
        check_delta(Fraction(1, 1000), 100)
    check_delta(Fraction(1, 1000), 100, allow_large_delta=True)
    check_delta(0.3, None)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan, math.inf])
def test_no_option_makes_a_delta_of_what_is_none(delta: float) -> None:
    with pytest.raises(ClaimError, match=r"^delta must .*got .*; "):
        check_delta(delta, None, allow_large_delta=True)


def test_a_population_is_counted_from_one() -> None:
    with pytest.raises(ClaimError, match=r"^population must .*got 0; "):
        check_delta(1e-6, 0)
