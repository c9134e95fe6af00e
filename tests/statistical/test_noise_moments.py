"""Moments and tails, within seven standard deviations: for a fresh seed false alarms below 10⁻¹⁰."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hushsum.privacy.noise import (
    NoiseSource,
    discrete_gaussian,
    discrete_laplace,
    gaussian_variance,
    laplace_variance,
)

DRAWS = 4_000_000


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(1000), Fraction(10**9)])
def test_laplace_moments(scale: Fraction) -> None:
    values = discrete_laplace(DRAWS, scale, NoiseSource.insecure(201)).astype(np.float64)
    variance = laplace_variance(scale)
    assert abs(values.mean()) < 7 * math.sqrt(variance / DRAWS)
    # The kurtosis of the discrete law is 6 + 1/variance.
    assert abs(np.mean(values**2) / variance - 1) < 7 * math.sqrt((5 + 1 / variance) / DRAWS)


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(9), Fraction(130**2), Fraction(10**14)])
def test_gaussian_moments(variance: Fraction) -> None:
    values = discrete_gaussian(DRAWS, variance, NoiseSource.insecure(202)).astype(np.float64)
    expected = gaussian_variance(variance)
    assert abs(values.mean()) < 7 * math.sqrt(expected / DRAWS)
    # The kurtosis is 3 up to 0.2 for these parameters.
    assert abs(np.mean(values**2) / expected - 1) < 7 * math.sqrt(2.2 / DRAWS)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1000)])
@pytest.mark.parametrize("nats", [3, 6, 9, 12])
def test_laplace_tails(scale: Fraction, nats: int) -> None:
    threshold = nats * int(scale)
    values = discrete_laplace(DRAWS, scale, NoiseSource.insecure(203))
    q = math.exp(-1 / float(scale))
    expected = DRAWS * math.exp(-threshold / float(scale)) / (1 + q)
    for tail in (int((values >= threshold).sum()), int((values <= -threshold).sum())):
        assert abs(tail - expected) < 7 * math.sqrt(expected) + 7


@pytest.mark.parametrize("sigma", [2, 130, 4000])
@pytest.mark.parametrize("sigmas", [2, 3, 4, 5])
def test_gaussian_tails(sigma: int, sigmas: int) -> None:
    values = discrete_gaussian(DRAWS, Fraction(sigma**2), NoiseSource.insecure(204))
    support = np.arange(-20 * sigma, 20 * sigma + 1, dtype=np.float64)
    weights = np.exp(-(support**2) / (2 * sigma**2))
    expected = DRAWS * weights[support >= sigmas * sigma].sum() / weights.sum()
    for tail in (int((values >= sigmas * sigma).sum()), int((values <= -sigmas * sigma).sum())):
        assert abs(tail - expected) < 7 * math.sqrt(expected) + 7


def test_likelihood_ratio_of_neighbours_stays_within_epsilon() -> None:
    """At cells with many draws the ratio of neighbouring counts is e^(±1/scale): the pure claim itself."""
    scale = Fraction(2)
    values = discrete_laplace(DRAWS, scale, NoiseSource.insecure(205))
    counts = np.bincount(values + 100, minlength=201).astype(np.float64)[90:111]
    ratios = np.abs(np.diff(np.log(counts)))
    errors = np.sqrt(1 / counts[1:] + 1 / counts[:-1])
    assert np.all(np.abs(ratios - 0.5) < 7 * errors)


@pytest.mark.parametrize(("scale", "threads"), [(Fraction(1, 50), 1), (Fraction(1, 2**40), 2)])
def test_tiny_scales_give_zero(scale: Fraction, threads: int) -> None:
    assert not discrete_laplace(10**5, scale, NoiseSource.insecure(206), threads=threads).any()
