"""Goodness of fit of the noise to its exact law, and proof that the test sees noise 20 % too small.

Seeds are fixed, so a run always gives the same answer. For a fresh seed a test would raise a false alarm
with probability below 10⁻⁸ (p-value limit 10⁻⁹; the chi-square tail by the Wilson–Hilferty approximation).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum.privacy.noise import NoiseSource, discrete_gaussian, discrete_laplace

DRAWS = 2_000_000
LIMIT = 1e-9

SCALES = [
    Fraction(1, 50),
    Fraction(1, 4),
    Fraction(2, 3),
    Fraction(1),
    Fraction(7),
    Fraction(1000),
    Fraction(10**9),
]
VARIANCES = [
    Fraction(1, 1000),
    Fraction(1, 10),
    Fraction(1, 2),
    Fraction(1),
    Fraction(9, 2),
    Fraction(130**2),
    Fraction(4000**2),
    Fraction(10**14),
]


def laplace_cdf(scale: Fraction) -> Callable[[int], float]:
    """``P(Z <= z)`` of the discrete Laplace law."""
    s = float(scale)
    q = math.exp(-1 / s)

    def cdf(z: int) -> float:
        return 1 - math.exp(-(z + 1) / s) / (1 + q) if z >= 0 else math.exp(z / s) / (1 + q)

    return cdf


def gaussian_cdf(variance: Fraction) -> Callable[[int], float]:
    """``P(Z <= z)`` of the discrete Gaussian law: its sum, or the integral above σ = 10⁵ (10⁻¹¹ apart)."""
    v = float(variance)
    sigma = math.sqrt(v)
    if sigma > 1e5:
        return lambda z: 0.5 * math.erfc(-(z + 0.5) / (sigma * math.sqrt(2)))
    reach = math.ceil(40 * sigma) + 2
    weights = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * v))
    cumulated = np.cumsum(weights) / weights.sum()
    return lambda z: float(cumulated[min(max(z, -reach), reach) + reach])


def bin_edges(cdf: Callable[[int], float], spread: float) -> list[int]:
    """Integers that cut the law into about a hundred bins of equal probability, finer in both tails."""
    levels = [1e-5, 1e-4, 1e-3, *(i / 98 for i in range(1, 98)), 1 - 1e-3, 1 - 1e-4, 1 - 1e-5]
    edges: list[int] = []
    for level in levels:
        low, high = -math.ceil(60 * spread) - 2, math.ceil(60 * spread) + 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if cdf(middle) < level else (low, middle)
        if not edges or high > edges[-1]:
            edges.append(high)
    return edges


def fit_p_value(values: NDArray[np.int64], cdf: Callable[[int], float], spread: float) -> float:
    """The p-value of Pearson's chi-square test over the bins with at least five expected draws."""
    edges = bin_edges(cdf, spread)
    bounds = np.array([0.0, *(cdf(edge) for edge in edges), 1.0])
    expected = np.diff(bounds) * values.size
    below = np.searchsorted(np.sort(values), np.array(edges), side="right")
    observed = np.diff(np.concatenate(([0], below, [values.size]))).astype(np.float64)
    enough = expected >= 5
    rare_expected, rare_observed = expected[~enough].sum(), observed[~enough].sum()
    if rare_observed > 20 + 10 * rare_expected:
        return 0.0
    statistic = float(((observed - expected)[enough] ** 2 / expected[enough]).sum())
    freedom = int(enough.sum()) - 1
    if freedom == 0:
        return 1.0
    ninth = 2 / (9 * freedom)
    normal = ((statistic / freedom) ** (1 / 3) - (1 - ninth)) / math.sqrt(ninth)
    return 0.5 * math.erfc(normal / math.sqrt(2))


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_fits(scale: Fraction) -> None:
    values = discrete_laplace(DRAWS, scale, NoiseSource.insecure(101))
    assert fit_p_value(values, laplace_cdf(scale), float(scale)) > LIMIT


@pytest.mark.parametrize("variance", VARIANCES)
def test_gaussian_fits(variance: Fraction) -> None:
    values = discrete_gaussian(DRAWS, variance, NoiseSource.insecure(102))
    assert fit_p_value(values, gaussian_cdf(variance), math.sqrt(variance)) > LIMIT


@pytest.mark.parametrize("scale", SCALES[1:])
def test_laplace_with_a_fifth_less_scale_is_caught(scale: Fraction) -> None:
    values = discrete_laplace(DRAWS, scale * Fraction(4, 5), NoiseSource.insecure(103))
    assert fit_p_value(values, laplace_cdf(scale), float(scale)) < LIMIT


@pytest.mark.parametrize("variance", VARIANCES[1:])
def test_gaussian_with_a_fifth_less_sigma_is_caught(variance: Fraction) -> None:
    values = discrete_gaussian(DRAWS, variance * Fraction(16, 25), NoiseSource.insecure(104))
    assert fit_p_value(values, gaussian_cdf(variance), math.sqrt(variance)) < LIMIT


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(130**2)])
def test_a_rounded_normal_is_caught_only_where_it_differs(variance: Fraction) -> None:
    """The fit tells the discrete Gaussian from a rounded normal at σ² = 1/2; at σ = 130 both agree."""
    normal = np.random.default_rng(5).normal(0, math.sqrt(variance), DRAWS)
    p_value = fit_p_value(np.rint(normal).astype(np.int64), gaussian_cdf(variance), math.sqrt(variance))
    assert (p_value < LIMIT) == (variance < 1)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1000)])
def test_laplace_is_independent_from_draw_to_draw(scale: Fraction) -> None:
    """Correlations at lags that are lanes, blocks, groups and chunks apart; seven standard deviations."""
    values = discrete_laplace(DRAWS, scale, NoiseSource.insecure(105)).astype(np.float64)
    values /= values.std()
    for lag in (1, 2, 4, 8, 16, 64, 128, 256, 16384):
        assert abs(np.mean(values[lag:] * values[:-lag])) < 7 / math.sqrt(DRAWS - lag)
        assert abs(np.mean(np.abs(values[lag:]) * np.sign(values[:-lag]))) < 7 / math.sqrt(DRAWS - lag)


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(130**2)])
def test_gaussian_is_independent_from_draw_to_draw(variance: Fraction) -> None:
    values = discrete_gaussian(DRAWS, variance, NoiseSource.insecure(106)).astype(np.float64)
    values /= values.std()
    for lag in (1, 2, 4, 8, 16, 64, 97, 128, 194, 256, 16384):
        assert abs(np.mean(values[lag:] * values[:-lag])) < 7 / math.sqrt(DRAWS - lag)
        squares = values**2 - 1
        assert abs(np.mean(squares[lag:] * squares[:-lag])) < 7 * 3 / math.sqrt(DRAWS - lag)
