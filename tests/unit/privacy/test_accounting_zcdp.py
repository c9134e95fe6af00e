"""Conversions between ρ-zCDP and (ε, δ) against a fine grid of Rényi orders, and what they must dominate."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushsum.errors import ClaimError
from hushsum.privacy.accounting import gaussian_delta, zcdp_delta, zcdp_epsilon, zcdp_rho

fixed = settings(deadline=None, derandomize=True)


def log_delta_on_a_grid(rho: float, epsilon: float) -> float:
    """Canonne, Kamath & Steinke's bound at 200,000 orders α, as published."""
    alpha = 1 + np.geomspace(1e-9, 1e7, 200_000)
    values = (alpha - 1) * (alpha * rho - epsilon) - np.log(alpha - 1) + alpha * np.log1p(-1 / alpha)
    return float(np.min(values))


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.02, 0.5, 4.0])
@pytest.mark.parametrize("deviations", [0.5, 2.0, 5.0, 9.0])
def test_delta_is_the_best_over_all_orders(rho: float, deviations: float) -> None:
    epsilon = rho + deviations * math.sqrt(2 * rho)
    assert math.log(zcdp_delta(rho, epsilon)) == pytest.approx(log_delta_on_a_grid(rho, epsilon), abs=1e-6)


@fixed
@given(rho=st.floats(1e-8, 20.0), deviations=st.floats(0.0, 8.0))
def test_delta_is_valid_for_the_gaussian_mechanism_which_is_rho_zcdp(rho: float, deviations: float) -> None:
    epsilon = rho + deviations * math.sqrt(2 * rho)
    exact = gaussian_delta(epsilon, math.sqrt(2 * rho))
    assert exact * (1 - 1e-6) <= zcdp_delta(rho, epsilon) <= 1


def test_delta_is_not_rounded_below_the_order_it_uses() -> None:
    with mp.workdps(50):
        for rho, epsilon in [(0.02, 1.0), (1e-5, 0.03), (3.0, 40.0)]:

            def log_delta(alpha: mp.mpf, rho: float = rho, epsilon: float = epsilon) -> mp.mpf:
                a = mp.mpf(alpha)
                return (a - 1) * (a * rho - epsilon) - mp.log(a - 1) + a * mp.log(1 - 1 / a)

            start = 1 + epsilon / (2 * rho)
            best = mp.findroot(lambda a, f=log_delta: mp.diff(f, a), start)
            assert mp.exp(log_delta(best)) <= zcdp_delta(rho, epsilon)


@fixed
@given(epsilon=st.floats(1e-3, 50.0), power=st.floats(-15.0, -0.4))
def test_rho_and_epsilon_are_inverse_and_on_the_safe_side(epsilon: float, power: float) -> None:
    delta = 10.0**power
    rho = zcdp_rho(epsilon, delta)
    assert zcdp_delta(rho, epsilon) <= delta < zcdp_delta(rho * (1 + 1e-6), epsilon)
    back = zcdp_epsilon(rho, delta)
    assert zcdp_delta(rho, back) <= delta
    assert back == pytest.approx(epsilon, rel=1e-6)


def test_is_better_than_the_simple_conversion_and_worse_than_the_exact_one() -> None:
    rho = zcdp_rho(1.0, 1e-6)
    root = math.sqrt(math.log(1e6))
    assert (math.sqrt(root**2 + 1.0) - root) ** 2 * 1.3 < rho < 1 / (2 * 4.2247**2)


def test_a_large_delta_needs_hardly_any_epsilon() -> None:
    assert 0 < zcdp_epsilon(1e-12, 0.5) < 1e-6


def test_underflow_does_not_claim_zero() -> None:
    assert zcdp_delta(1e-9, 100.0) > 0


def test_fractions_are_accepted() -> None:
    assert zcdp_delta(Fraction(1, 50), Fraction(1)) == pytest.approx(zcdp_delta(0.02, 1.0), rel=1e-9)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_refuses_what_is_no_parameter(bad: float) -> None:
    with pytest.raises(ClaimError, match=r"^rho must .*got .*; "):
        zcdp_delta(bad, 1.0)
    with pytest.raises(ClaimError, match=r"^epsilon must .*got .*; "):
        zcdp_delta(0.1, bad)
    with pytest.raises(ClaimError, match=r"^rho must .*got .*; "):
        zcdp_epsilon(bad, 1e-6)
    with pytest.raises(ClaimError, match=r"^delta must .*got .*; "):
        zcdp_epsilon(0.1, bad)
    with pytest.raises(ClaimError, match=r"^epsilon must .*got .*; "):
        zcdp_rho(bad, 1e-6)
    with pytest.raises(ClaimError, match=r"^delta must .*got .*; "):
        zcdp_rho(1.0, bad)
