"""The predicted error of Fourier features against what is measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.privacy import IntegerNoise, Promise, Relation, UnitChange, calibrate
from hushsum.tables import pair_variance, pairs_for_laplace, predicted_error
from hushsum.tables._fourier_features import TYPICAL_PAIR_VARIANCE, feature_sensitivity


def noise_of(pairs: int, promise: dict[str, float], relation: Relation = Relation.ADD_REMOVE) -> IntegerNoise:
    """The noise of a release of so many pairs."""
    change = UnitChange.of_records(feature_sensitivity(pairs, relation), None, relation)
    return calibrate(Promise.of(**promise), change, cells=2 * pairs).table


@pytest.mark.parametrize(("dim", "bandwidth"), [(1, 0.5), (2, 1.0), (10, 2.0), (30, 3.0)])
def test_the_variance_of_a_pair_for_normal_data(dim: int, bandwidth: float) -> None:
    """Seeded; 40,000 frequencies, so the variance is measured to about 1 %, its mean over queries to 3 %."""
    rng = np.random.default_rng(dim)
    queries = rng.normal(size=(200, dim))
    density = (1 + 2 / bandwidth**2) ** (-dim / 2)
    frequencies = rng.normal(size=(40_000, dim)) / bandwidth
    transform = np.exp(-0.5 * np.square(frequencies).sum(axis=1))
    rows = transform[:, None] * np.cos(frequencies @ queries.T)
    assert pair_variance(density, dim) == pytest.approx(rows.var(axis=0).mean(), rel=0.1)


def test_the_pairs_of_a_laplace_release_minimise_the_variance() -> None:
    def variance(pairs: int) -> float:
        return TYPICAL_PAIR_VARIANCE * 1e8 / pairs + 4 * pairs / 0.25

    best = pairs_for_laplace(10_000, 0.5, 10_000)
    assert variance(best) <= min(variance(best - 3), variance(best + 3))
    assert pairs_for_laplace(10_000, 0.5, 100) == 100
    assert pairs_for_laplace(1, 1e-3, 100) == 1


@pytest.mark.parametrize(
    "promise",
    [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.01}],
    ids=["pure", "delta", "rho"],
)
def test_the_noise_is_that_of_a_release(promise: dict[str, Any]) -> None:
    tally = hs.fourier_features(hs.GaussianKernel(2, 1.0), features=64).add(np.zeros((500, 2)))
    for relation in Relation:
        f: Any = tally.release(rows=64, relation=relation, insecure_noise_seed=1, **promise)
        gain = f.reading.noise_gain(f.basis.prepare_queries([[0.0, 0.0]]))[0]
        noise = noise_of(64, promise, relation)
        predicted = predicted_error(records=500, dim=2, pairs=64, noise=noise, density=1.0)
        assert predicted.chance == 0.0
        assert predicted.total == predicted.noise
        assert predicted.noise * 500 == pytest.approx(math.sqrt(2 / math.pi * f.noise.variance * gain))


def test_orders_of_magnitude() -> None:
    """Noise of a sum: √(2m)/ε under pure ε, 4.3 at ε = 1 and δ = 1e-6 whatever m (as deviations)."""
    for pairs in (100, 10_000):
        pure, mixed = (
            predicted_error(records=1, dim=50, pairs=pairs, noise=noise_of(pairs, promise), density=0.1)
            for promise in ({"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6})
        )
        assert pure.noise * math.sqrt(math.pi / 2) == pytest.approx(math.sqrt(2 * pairs), rel=0.03)
        assert mixed.noise * math.sqrt(math.pi / 2) == pytest.approx(4.27, rel=0.01)


@pytest.mark.parametrize("density", [0.0, -1.0, 1.5])
def test_densities_are_similarities(density: float) -> None:
    with pytest.raises(UsageError, match="density must be"):
        pair_variance(density, 3)
