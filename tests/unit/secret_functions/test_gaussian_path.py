"""A path of a Gaussian process, drawn point by point."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.secret_functions import GaussianPath, density_function, serve

KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.2)
X = np.random.default_rng(3).uniform(0.0, 1.0, size=(400, 1))


def test_a_path_drawn_piece_by_piece_has_the_law_of_one_drawn_at_once() -> None:
    at = np.linspace(0.0, 1.0, 5, dtype=np.float32)[:, None]
    wide = np.linspace(0.0, 1.0, 5)[:, None]
    rng = np.random.default_rng(0)
    covariance = density_function(X, KERNEL, bounds=(0, 1)).covariance
    draws = []
    for _ in range(4000):
        path = GaussianPath(covariance, 1)
        first = path.extend(at[[3, 0]], rng.standard_normal(2))
        second = path.extend(at[[4]], rng.standard_normal(1))
        third = path.extend(at[[1, 2]], rng.standard_normal(2))
        draws.append([first[1], third[0], third[1], first[0], second[0]])
    # Fixed seed; 4000 draws put each entry within 0.12 of the covariance, at more than 5 standard errors.
    np.testing.assert_allclose(np.cov(np.array(draws).T), KERNEL.similarity(wide, wide), atol=0.12)


def test_a_path_goes_on_across_blocks_and_after_being_recalled() -> None:
    at = np.random.default_rng(1).uniform(0.0, 1.0, (700, 1)).astype(np.float32)
    normals = np.random.default_rng(2).standard_normal(700)
    narrow = hs.MaternKernel(dim=1, bandwidth=0.05, smoothness=0.5)
    covariance = density_function(X, narrow, bounds=(0, 1)).covariance
    whole = GaussianPath(covariance, 1)
    values = whole.extend(at, normals)
    pieces = GaussianPath(covariance, 1)
    parts = [pieces.extend(at[i : i + 70], normals[i : i + 70]) for i in range(0, 700, 70)]
    np.testing.assert_allclose(np.concatenate(parts), values, atol=1e-6)
    recalled = GaussianPath(covariance, 1)
    recalled.recall(at[:600], values[:600])
    np.testing.assert_allclose(recalled.extend(at[600:], normals[600:]), values[600:], atol=1e-6)


def test_jitter_has_a_floor() -> None:
    function = density_function(X, KERNEL, bounds=(0, 1))
    with pytest.raises(UsageError, match="jitter"):
        GaussianPath(function.covariance, 1, jitter=1e-9)
    with pytest.raises(UsageError, match="jitter"):
        serve(function, epsilon=1.0, delta=1e-6, jitter=0.0)
