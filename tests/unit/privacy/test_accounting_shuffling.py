"""Amplification by shuffling, against the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from hushsum.errors import ClaimError
from hushsum.privacy.accounting.shuffling import local_epsilon_for, shuffled_delta, shuffled_epsilon


def defined_delta(local: float, reports: int, epsilon: float) -> float:
    """Both laws of the theorem on all pairs of numbers, summed one by one."""
    q, clone = 1.0 / (1.0 + math.exp(-local)), math.exp(-local)
    total = 0.0
    for clones in range(reports):
        ways = binom.pmf(np.arange(-1, clones + 2), clones, 0.5)  # A = -1, 0, ..., c + 1
        here, before = ways[1:], ways[:-1]
        first, second = q * before + (1 - q) * here, (1 - q) * before + q * here
        difference = np.maximum(first - math.exp(epsilon) * second, 0.0).sum()
        total += binom.pmf(clones, reports - 1, clone) * difference
    return total


@pytest.mark.parametrize("local", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("reports", [1, 2, 30, 200])
def test_delta_is_the_defined_one_from_above(local: float, reports: int) -> None:
    for epsilon in (0.0, 0.05, 0.2, 0.9 * local):
        exact = defined_delta(local, reports, epsilon)
        found = shuffled_delta(local, reports, epsilon, tail=1e-13)
        assert exact <= found <= exact * (1 + 1e-6) + 2e-12


def test_the_known_value_and_not_the_closed_form() -> None:
    assert 0.16 < shuffled_epsilon(4.0, 100_000, 1e-6) < 0.18
    assert shuffled_delta(4.0, 100_000, shuffled_epsilon(4.0, 100_000, 1e-6)) <= 1e-6


def test_one_report_hides_nothing_more() -> None:
    assert shuffled_epsilon(1.0, 1, 1e-9) == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("local", [20.0, 33.0, 34.7, 35.0, 60.0])
def test_the_rarer_sign_is_not_lost_to_rounding(local: float) -> None:
    """One report alone: δ = (1 − e^(ε − ε₀))/(1 + e^(−ε₀)) for ε below ε₀."""
    for below in (0.055, 1e-3):
        exact = -math.expm1(-below) / (1.0 + math.exp(-local))
        assert shuffled_delta(local, 1, local - below) == pytest.approx(exact, rel=1e-6)


def test_more_reports_hide_more() -> None:
    found = [shuffled_epsilon(1.0, reports, 1e-6) for reports in (100, 1_000, 10_000, 1_000_000)]
    assert found == sorted(found, reverse=True)


def test_the_local_epsilon_is_the_inverse_from_below() -> None:
    local = local_epsilon_for(0.3, 10_000, 1e-6)
    assert shuffled_delta(local, 10_000, 0.3) <= 1e-6 < shuffled_delta(1.01 * local, 10_000, 0.3)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan])
def test_refuses_impossible_deltas(delta: float) -> None:
    with pytest.raises(ClaimError):
        shuffled_epsilon(1.0, 10, delta)
