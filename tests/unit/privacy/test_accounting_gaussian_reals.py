"""The Gaussian mechanism over the reals against 60-digit arithmetic."""

from __future__ import annotations

import math

import mpmath as mp
import pytest

from hushsum.errors import ClaimError
from hushsum.privacy.accounting import analytic_gaussian_sigma, gaussian_delta


def exact_delta(epsilon: float, separation: float) -> mp.mpf:
    """Balle & Wang's formula as published."""
    with mp.workdps(60):
        e, mu = mp.mpf(epsilon), mp.mpf(separation)
        return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 1.0, 7.0, 50.0, 900.0])
@pytest.mark.parametrize("separation", [1e-3, 0.02, 0.5, 3.0, 11.0, 60.0])
def test_delta_keeps_its_digits(epsilon: float, separation: float) -> None:
    exact = exact_delta(epsilon, separation)
    assert gaussian_delta(epsilon, separation) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("epsilon", [1e-3, 0.01, 0.1, 1.0, 5.0, 20.0, 50.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-9, 1e-6, 0.01, 0.5])
def test_sigma_is_private_and_no_larger_than_needed(epsilon: float, delta: float) -> None:
    sigma = analytic_gaussian_sigma(epsilon, delta, 3.0)
    with mp.workdps(60):
        assert exact_delta(epsilon, 3.0 / sigma) <= mp.mpf(delta)
        assert exact_delta(epsilon, 3.0 / (sigma * (1 - 1e-7))) > mp.mpf(delta)


@pytest.mark.parametrize(
    ("epsilon", "floor"), [(0.05, 69.271), (0.1, 36.305), (0.5, 8.0576), (1.0, 4.2247), (2.0, 2.2305)]
)
def test_known_constants(epsilon: float, floor: float) -> None:
    assert analytic_gaussian_sigma(epsilon, 1e-6) == pytest.approx(floor, rel=1e-4)


def test_is_below_the_classical_calibration() -> None:
    for epsilon in (0.1, 0.5, 1.0):
        classical = math.sqrt(2 * math.log(1.25 / 1e-6)) / epsilon
        assert 0.5 * classical < analytic_gaussian_sigma(epsilon, 1e-6) < classical


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0.0, 1e-6, 1.0), "epsilon"),
        ((1.0, 0.0, 1.0), "delta"),
        ((1.0, 1e-6, 0.0), "sensitivity"),
        ((1.0, 1e-6, math.inf), "sensitivity"),
    ],
)
def test_refuses_what_is_no_parameter(arguments: tuple[float, float, float], name: str) -> None:
    with pytest.raises(ClaimError, match=rf"^{name} must .*got .*; "):
        analytic_gaussian_sigma(*arguments)
