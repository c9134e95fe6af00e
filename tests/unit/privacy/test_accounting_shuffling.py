"""Amplification by shuffling, against the definition."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from mpmath import ceil, exp, log, loggamma, mpf, workdps
from scipy.stats import binom

from hushsum.errors import ClaimError
from hushsum.privacy.accounting import local_epsilon_for, shuffled_delta, shuffled_epsilon


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


def part_of(local: float, epsilon: float, clones: int) -> mpf:
    """The sum over a given this number of clones, to 50 digits."""
    with workdps(50):
        q, ratio = 1 / (1 + exp(-mpf(local))), exp(mpf(epsilon))
        least = int(ceil((ratio * q - (1 - q)) / ((2 * q - 1) * (1 + ratio)) * (clones + 1)))
        logarithm = loggamma(mpf(clones) + 1) - loggamma(mpf(least)) - loggamma(mpf(clones - least + 2))
        before = exp(logarithm - clones * log(mpf(2)))
        # P[A = a + 1]/P[A = a] = (c − a)/(a + 1), from a = least − 1 on; 12 deviations further all is over.
        a = np.arange(least - 1, least - 1 + int(12 * math.sqrt(clones)), dtype=np.float64)
        beyond = before * mpf(math.fsum(np.cumprod((clones - a) / (a + 1.0))))
        return before * (q - ratio * (1 - q)) - beyond * (ratio - 1)


@pytest.mark.parametrize(("local", "reports"), [(1.0, 10**8), (0.5, 10**9), (1.0, 10**10)])
def test_many_reports_are_rounded_to_the_safe_side(
    local: float, reports: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only the likeliest number of clones is evaluated, so that it can be compared with 50 digits.
    clones = int((reports - 1) * math.exp(-local))
    narrow = SimpleNamespace(
        ppf=lambda *_: clones + 1, isf=lambda *_: clones - 1, cdf=lambda *_: 0.0, sf=lambda *_: 0.0,
        pmf=lambda k, n, p: np.ones_like(k) if p != 0.5 else binom.pmf(k, n, p),
    )  # fmt: skip
    monkeypatch.setattr("scipy.stats.binom", narrow)
    for epsilon in (2.0 / math.sqrt(clones), 5.0 / math.sqrt(clones)):
        exact = part_of(local, epsilon, clones)
        found = shuffled_delta(local, reports, epsilon)
        assert exact <= found <= exact * (1 + 1e-6)


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
