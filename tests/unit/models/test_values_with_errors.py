"""Models that say how far their values may be off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.models import (
    PrivateDensity,
    PrivateGaussianProcessRegressor,
    PrivateHistogram,
    PrivateNeighbors,
    PrivateOutlierDetector,
)

X = np.random.default_rng(3).normal(0.0, 0.3, (5000, 1))
Q = np.linspace(-0.9, 0.9, 40)[:, None]
SPEND: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def test_a_density_is_within_its_errors() -> None:
    kernel = hs.GaussianKernel(dim=1, bandwidth=0.25)
    exact = kernel.exact_sum(np.clip(X, -1, 1), Q) / len(X) / np.sqrt(2.0 * np.pi * 0.25**2)
    reported = PrivateDensity(**SPEND, method="grid").fit(X).query(Q)
    # Six standard errors of Gaussian noise at forty points: a false alarm in 10⁷ runs.
    assert (np.abs(reported.value - exact) < 6.0 * reported.stderr).all()
    assert reported.stderr.max() < 0.02


def test_a_histogram_is_within_its_errors() -> None:
    model = PrivateHistogram(**SPEND, bins=20).fit(X)
    counts, edges = np.histogram(np.clip(X, -1, 1), bins=20, range=(-1, 1))
    middle = ((edges[1:] + edges[:-1]) / 2.0)[:, None]
    reported = model.query(middle)
    assert (np.abs(reported.value - counts / len(X) / 0.1) < 6.0 * reported.stderr).all()
    np.testing.assert_allclose(reported.stderr.min(), model.count_stderr_ / len(X) / 0.1, rtol=0.05)
    outside = model.query([[2.0]])
    assert outside.value.tolist() == [0.0]
    assert outside.stderr[0] > 0.0


@pytest.mark.parametrize(
    "model",
    [
        PrivateDensity(**SPEND),
        PrivateDensity(**SPEND, method="functional"),
        PrivateDensity(kernel="euclidean", bandwidth=0.5),
        PrivateHistogram(),
        PrivateGaussianProcessRegressor(),
        PrivateOutlierDetector(),
        PrivateNeighbors(),
    ],
    ids=lambda model: repr(model)[:50],
)
def test_intervals_widen_with_their_level(model: Any) -> None:
    model.fit(X, X[:, 0])
    narrow, wide = model.query(Q, level=0.5), model.query(Q, level=0.99)
    np.testing.assert_array_equal(narrow.value, wide.value)
    assert (wide.lower < narrow.lower).all()
    assert (narrow.lower < narrow.value).all()
    assert (narrow.value < narrow.upper).all()
    assert (narrow.upper < wide.upper).all()
    for level in (0.0, 1.0):
        with pytest.raises(UsageError, match="level"):
            model.query(Q, level=level)


def test_a_prediction_is_the_value_raised_to_its_error() -> None:
    far = np.concatenate([Q, [[0.999], [-0.999]]])
    for model in (PrivateDensity(**SPEND), PrivateHistogram(**SPEND)):
        reported: Any = model.fit(X).query(far)
        raised = np.maximum(reported.value, 0.0)
        assert (model.predict(far) >= raised - 1e-12).all()
        well = reported.value > 3.0 * reported.stderr
        np.testing.assert_allclose(model.predict(far)[well], reported.value[well], rtol=1e-12)


def test_a_detector_that_is_silent_knows_no_error() -> None:
    reported = PrivateOutlierDetector(epsilon=0.01).fit(X[:20]).query([[0.0], [3.0]])
    assert reported.value.tolist() == [1.0, 0.0]
    assert np.isnan(reported.stderr).all()
