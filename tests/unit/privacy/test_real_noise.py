"""Real noise: moments of seeded draws, and fresh keys."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import gamma, kstest

from hushsum.errors import SecretRefused
from hushsum.privacy import release_noise


def test_normal_numbers_are_normal() -> None:
    with release_noise(insecure_noise_seed=1) as noise:
        draws = noise.normal(20_000)
    assert kstest(draws, "norm").pvalue > 1e-7


@pytest.mark.parametrize("size", [1, 5, 60])
def test_gamma_vectors_have_gamma_lengths_and_no_direction(size: int) -> None:
    with release_noise(insecure_noise_seed=2) as noise:
        vectors = np.array([noise.gamma_vector(size, 3.0) for _ in range(2000)])
    lengths = np.linalg.norm(vectors, axis=1)
    assert kstest(lengths, gamma(size, scale=3.0).cdf).pvalue > 1e-7
    drift = np.linalg.norm((vectors / lengths[:, None]).mean(axis=0))
    assert drift < 6.0 / np.sqrt(2000)


def test_symmetric_noise_is_symmetric() -> None:
    with release_noise(insecure_noise_seed=3) as noise:
        matrix = noise.symmetric(4)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert len(np.unique(matrix)) == 10


def test_a_seed_repeats_and_no_seed_does_not() -> None:
    def draw(seed: int | None) -> list[float]:
        with release_noise(seed) as noise:
            return [float(each) for each in noise.normal(3)]

    assert draw(4) == draw(4)
    assert draw(None) != draw(None)


def test_nothing_is_drawn_after_the_release() -> None:
    with release_noise() as noise:
        pass
    with pytest.raises(SecretRefused):
        noise.normal(1)
