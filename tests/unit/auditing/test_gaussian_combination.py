from __future__ import annotations

import math

import numpy as np
import pytest

from hushsum.auditing._statistics import GaussianPair, Term, distribution_of


def masses(variance: float, reach: int) -> list[float]:
    weights = [math.exp(-z * z / (2 * variance)) for z in range(-reach, reach + 1)]
    return [weight / math.fsum(weights) for weight in weights]


@pytest.mark.parametrize(
    ("cells", "variance", "count", "weight"),
    [(1, 0.3, None, 1), (3, 1.7, None, 1), (3, 4.0, 2.0, 2), (2, 0.5, 3.0, 5)],
)
def test_against_direct_convolution(cells: int, variance: float, count: float | None, weight: int) -> None:
    law = np.array([1.0])
    for _ in range(cells):
        law = np.convolve(law, masses(variance, 60))
    terms = [Term(cells, variance)]
    if count is not None:
        spread = np.zeros(120 * weight + 1)
        spread[::weight] = masses(count, 60)
        law = np.convolve(law, spread)
        terms.append(Term(1, count, weight))
    middle = len(law) // 2
    for threshold in (-7, -1, 0, 1, 2, 9):
        expected = law[middle + threshold :].sum()
        assert float(distribution_of(*terms).reaches(threshold)) == pytest.approx(expected, abs=1e-12)


def test_the_normal_law_takes_over_where_nothing_jumps() -> None:
    exact, smooth = distribution_of(Term(100, 3.99e6)), distribution_of(Term(100, 4.01e6))
    assert exact.survival is not None
    assert smooth.survival is None
    for deviations in (-1.0, 0.0, 2.0):
        left, right = (law.reaches(round(deviations * law.deviation)) for law in (exact, smooth))
        assert float(left) == pytest.approx(float(right), rel=2e-4)


def test_the_trade_off_curve_is_the_one_of_all_tests() -> None:
    """Against the Neyman–Pearson curve by brute force: outcomes sorted by likelihood ratio."""
    pair = GaussianPair(variance=1.3, cells=2)
    law = np.convolve(masses(1.3, 40), masses(1.3, 40))
    first, second = np.pad(law, (0, 2)), np.pad(law, (2, 0))
    with np.errstate(divide="ignore"):
        order = np.argsort(-(second / np.maximum(first, 1e-300)))
    powers, alarms = np.cumsum(second[order]), np.cumsum(first[order])
    for power in (0.05, 0.3, 0.62, 0.95):
        expected = np.interp(power, powers, alarms)
        assert float(pair.least_ratio(np.array([power]))[0]) * power == pytest.approx(expected, rel=1e-9)


def test_the_curve_of_the_lattice_is_lower_than_the_one_of_the_reals() -> None:
    """At a variance of 1 a sound sampler beats the Gaussian curve of its μ and must not be judged by it."""
    from scipy.special import ndtr, ndtri

    pair = GaussianPair(variance=1.0)
    power = float(pair.distribution().reaches(0))
    lattice = float(pair.least_ratio(np.array([power]))[0]) * power
    assert lattice < float(ndtr(ndtri(power) - pair.mu)) - 0.005


def test_mu_counts_cells_and_count() -> None:
    pair = GaussianPair(variance=100.0, cells=30, shift=2, count_variance=5.0)
    assert pair.mu == pytest.approx(2 * math.sqrt(30 / 100 + 1 / 5))
    assert pair.weights == (1, 20)
    assert pair.move == 2 * (30 + 20)
    assert GaussianPair(5.0, 30, 1, 100.0).weights == (20, 1)
