"""Releases with the default method work whatever the bandwidth is against the bounds."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs

RNG = np.random.default_rng(0)

# Which is warned of; that it works nevertheless is tested here.
pytestmark = pytest.mark.filterwarnings("ignore:the bandwidth is larger:hushsum.errors.SuspiciousParameter")


@pytest.mark.parametrize("kernel", ["euclidean", "gaussian", "laplacian", "manhattan"])
@pytest.mark.parametrize("ratio", [0.05, 1.0, 60.0, 900.0])
def test_in_one_column(kernel: str, ratio: float) -> None:
    X = RNG.random((2000, 1))
    f = hs.release(X, kernel=kernel, bounds=(0, 1), bandwidth=1.0 / ratio, epsilon=4.0, records=2000)
    exact = f.kernel.similarity(X, X[:20]).mean(axis=0)
    answer = f.query(X[:20], level=0.999)
    np.testing.assert_allclose(f(X[:20]), exact, atol=float(np.max(answer.upper - answer.lower)))


@pytest.mark.filterwarnings("ignore:the bandwidth is too small")
@pytest.mark.parametrize("ratio", [0.05, 40.0])
def test_in_two_columns(ratio: float) -> None:
    X = RNG.random((500, 2))
    f = hs.release(X, bounds=(0, 1), bandwidth=1.0 / ratio, epsilon=4.0, records=500)
    assert np.isfinite(f.query(X[:5]).stderr).all()
