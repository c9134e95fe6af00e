"""From (ε, δ) to variances: they keep the claim, and little less does not."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushsum.errors import ClaimError
from hushsum.privacy import accounting as discrete_gaussian
from hushsum.privacy.accounting import analytic_gaussian_sigma, discrete_gaussian_delta, gaussian_variances

fixed = settings(deadline=None, derandomize=True)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("cells", [1, 2, 30, 1000, 200_000])
def test_the_variance_keeps_the_claim_and_a_hundredth_less_does_not(
    epsilon: float, delta: float, cells: int
) -> None:
    variance, count_variance = gaussian_variances(epsilon=epsilon, delta=delta, cells=cells)
    assert count_variance is None
    assert discrete_gaussian_delta(epsilon, cells=cells, variance=variance) <= delta
    for less in (Fraction(99, 100), Fraction(9998, 10_000)):
        assert discrete_gaussian_delta(epsilon, cells=cells, variance=variance * less) > delta


@pytest.mark.parametrize("share", [0.001, 0.02, Fraction(1, 2), 0.9])
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 8.0])
@pytest.mark.parametrize("cells", [4, 1000, 200_000])
def test_the_count_takes_its_share(epsilon: float, cells: int, share: float | Fraction) -> None:
    variance, count_variance = gaussian_variances(epsilon=epsilon, delta=1e-6, cells=cells, count_share=share)
    assert count_variance is not None
    table_cost, count_cost = cells / variance / 2, 1 / count_variance / 2
    assert float(count_cost / (table_cost + count_cost)) == pytest.approx(float(share), rel=1e-5)

    def delta(factor: Fraction) -> float:
        return discrete_gaussian_delta(
            epsilon, cells=cells, variance=variance * factor, count_variance=count_variance * factor
        )

    assert delta(Fraction(1)) <= 1e-6 < delta(Fraction(9998, 10_000))


@pytest.mark.parametrize(
    ("epsilon", "floor"), [(0.05, 69.27), (0.1, 36.30), (0.5, 8.058), (1.0, 4.225), (2.0, 2.2305)]
)
def test_the_noise_floor_does_not_depend_on_the_rows(epsilon: float, floor: float) -> None:
    for cells in (300, 10_000, 10**6):
        variance, _ = gaussian_variances(epsilon=epsilon, delta=1e-6, cells=cells)
        assert math.sqrt(variance / cells) == pytest.approx(floor, rel=3e-4)


@fixed
@given(
    epsilon=st.floats(1e-3, 50.0),
    delta=st.floats(-15.0, -0.31).map(lambda power: 10.0**power),
    cells=st.integers(1, 10**6),
    share=st.none() | st.floats(1e-3, 0.999),
)
def test_whatever_is_asked_for_is_kept(epsilon: float, delta: float, cells: int, share: float | None) -> None:
    variance, count_variance = gaussian_variances(
        epsilon=epsilon, delta=delta, cells=cells, count_share=share
    )
    spent = discrete_gaussian_delta(epsilon, cells=cells, variance=variance, count_variance=count_variance)
    assert spent <= delta
    for value in (variance, count_variance):
        assert value is None or value.denominator.bit_count() == 1


def test_a_wrong_start_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    right = gaussian_variances(epsilon=0.7, delta=1e-7, cells=500, count_share=0.02)
    for factor in (0.3, 4.0):

        def wrong(epsilon: float, delta: float, factor: float = factor) -> float:
            return factor * analytic_gaussian_sigma(epsilon, delta)

        monkeypatch.setattr(discrete_gaussian, "analytic_gaussian_sigma", wrong)
        discrete_gaussian.gaussian_variances.cache_clear()
        found = gaussian_variances(epsilon=0.7, delta=1e-7, cells=500, count_share=0.02)
        assert float(found.variance) == pytest.approx(float(right.variance), rel=1e-4)


def test_a_calibration_is_computed_once() -> None:
    discrete_gaussian.gaussian_variances.cache_clear()
    found = [gaussian_variances(epsilon=0.9, delta=Fraction(1, 10**6), cells=50) for _ in range(3)]
    assert found[0] == found[1] == found[2]
    assert discrete_gaussian.gaussian_variances.cache_info().misses == 1


def test_exact_fractions_are_not_rounded_in_the_wrong_direction() -> None:
    third = Fraction(1, 3)
    variance, _ = gaussian_variances(epsilon=third, delta=Fraction(1, 10**6), cells=10)
    assert discrete_gaussian_delta(third, cells=10, variance=variance) <= Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"delta": 1e-250}, "delta"),
        ({"delta": None}, "delta"),
        ({"cells": -3}, "cells"),
        ({"count_share": 0.0}, "count_share"),
        ({"count_share": 1.0}, "count_share"),
        ({"count_share": math.nan}, "count_share"),
        ({"count_share": "all"}, "count_share"),
    ],
)
def test_refuses_what_is_no_parameter(arguments: dict[str, float], name: str) -> None:
    given_arguments = {"epsilon": 1.0, "delta": 1e-6, "cells": 4} | arguments
    with pytest.raises(ClaimError, match=rf"^{name} must .*got .*; "):
        gaussian_variances(**given_arguments)
