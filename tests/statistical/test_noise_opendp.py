"""Our draws and OpenDP's have one law: two-sample Kolmogorov–Smirnov tests.

OpenDP cannot be seeded, so these tests are random. A false alarm has probability below 2·exp(−2·3.2²) < 10⁻⁸
(for discrete laws less). Noise a fifth smaller lies at a distance of at least 0.041, seven standard
deviations beyond the limit, so it is missed with probability below 10⁻¹¹.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from hushsum.privacy.noise import NoiseSource, discrete_gaussian, discrete_laplace

DRAWS = 60_000
LIMIT = 3.2 * math.sqrt(2 / DRAWS)


def opendp_draws(law: str, scale: float) -> NDArray[np.int64]:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law == "laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)
    return np.array(measurement([0] * DRAWS), dtype=np.int64)


def distance(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """The largest difference of the two empirical distribution functions."""
    at = np.union1d(first, second)
    below = [np.searchsorted(np.sort(sample), at, side="right") / sample.size for sample in (first, second)]
    return float(np.max(np.abs(below[0] - below[1])))


@pytest.mark.parametrize("scale", [1, 20, 1000])
def test_laplace_agrees(scale: int) -> None:
    theirs = opendp_draws("laplace", float(scale))
    assert distance(discrete_laplace(DRAWS, Fraction(scale), NoiseSource.insecure(301)), theirs) < LIMIT
    shrunk = discrete_laplace(DRAWS, Fraction(scale) * Fraction(4, 5), NoiseSource.insecure(302))
    assert distance(shrunk, theirs) > LIMIT


@pytest.mark.parametrize("sigma", [2, 130, 4000])
def test_gaussian_agrees(sigma: int) -> None:
    theirs = opendp_draws("gaussian", float(sigma))
    assert distance(discrete_gaussian(DRAWS, Fraction(sigma**2), NoiseSource.insecure(303)), theirs) < LIMIT
    shrunk = discrete_gaussian(DRAWS, Fraction(sigma**2) * Fraction(16, 25), NoiseSource.insecure(304))
    assert distance(shrunk, theirs) > LIMIT
