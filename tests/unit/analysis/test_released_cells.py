"""Clusters of functions that were already released: every kind, and refusals."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.analysis import Cells, Sketch, released_cells
from hushsum.analysis._cells import _distance, _overlap, _packed
from hushsum.baselines import histogram
from hushsum.errors import UsageError

CENTRES = np.array([[-0.6, -0.5], [0.5, -0.4], [0.1, 0.6]])
X = np.concatenate([c + 0.08 * np.random.default_rng(0).standard_normal((800, 2)) for c in CENTRES])
GAUSSIAN = hs.GaussianKernel(dim=2, bandwidth=0.15)
SEEDED: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "insecure_noise_seed": 1}


def functions() -> dict[str, Any]:
    wide = hs.GaussianKernel(dim=2, bandwidth=0.4)
    return {
        "grid": hs.grid(GAUSSIAN, bounds=(-1, 1)).add(X).release(**SEEDED),
        "features": hs.fourier_features(wide, features=128, bounds=(-1, 1)).add(X).release(**SEEDED),
        "hash rows": hs.race(hs.EuclideanKernel(dim=2, bandwidth=0.3), rows=300, bounds=(-1, 1))
        .add(X)
        .release(**SEEDED),
        "points": histogram(X, GAUSSIAN, bounds=(-1, 1), epsilon=2.0, insecure_noise_seed=1),
    }


@pytest.fixture(scope="module")
def released() -> dict[str, Any]:
    return functions()


@pytest.mark.parametrize("kind", ["grid", "features", "hash rows", "points"])
def test_every_kind_of_function_has_clusters(released: dict[str, Any], kind: str) -> None:
    f = released[kind]
    model = hs.PrivateKMeans(3, bounds=(-5, 5), random_state=0).fit_released(f)
    found = model.cluster_centers_[np.argsort(model.cluster_centers_[:, 0])]
    np.testing.assert_allclose(found, CENTRES[np.argsort(CENTRES[:, 0])], atol=0.12)
    assert model.claim_ == f.claim
    assert model.column_bounds() != [(-1.0, 1.0)] * 2  # the estimator's own parameter stays
    np.testing.assert_allclose(model.counts_, 800.0, rtol=0.25)
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    again: Any = hs.load(buffer)
    np.testing.assert_array_equal(again.predict(X[::50]), model.predict(X[::50]))
    assert again.column_bounds() == [(-1.0, 1.0)] * 2


def test_a_mixture_of_a_function(released: dict[str, Any]) -> None:
    for kind in ("grid", "features"):
        model = hs.PrivateMixture(3, random_state=0).fit_released(released[kind])
        assert model.score(X) > 0.3, kind  # one normal law of these records has −1.5
        np.testing.assert_allclose(model.weights_, 1.0 / 3.0, atol=0.05)


def test_the_number_of_clusters_is_chosen_from_the_function(released: dict[str, Any]) -> None:
    model = hs.PrivateKMeans("auto", max_clusters=6, random_state=0)
    assert model.fit_released(released["grid"]).n_clusters_ == 3


def test_nothing_is_spent_and_records_are_refused(released: dict[str, Any]) -> None:
    model = hs.PrivateKMeans(3, random_state=0)
    with pytest.raises(UsageError, match="released function"):
        model.fit_released(X)  # type: ignore[arg-type]
    sets = hs.race(hs.JaccardKernel(), rows=8).add([[1, 2]] * 20).release(epsilon=1.0)
    with pytest.raises(UsageError, match="columns of numbers"):
        model.fit_released(sets)
    many = hs.race(hs.EuclideanKernel(dim=4, bandwidth=0.5), rows=8, bounds=(-1, 1))
    with pytest.raises(UsageError, match="Fourier features"):
        model.fit_released(many.add(np.zeros((50, 4))).release(epsilon=1.0))
    model.fit_released(released["grid"])
    assert not hasattr(model, "partial_fit")


def test_a_function_of_noise_has_no_clusters() -> None:
    empty = hs.grid(GAUSSIAN, bounds=(-1, 1)).add(X[:1]).release(epsilon=0.01, insecure_noise_seed=3)
    with pytest.raises(UsageError, match="stand out"):
        released_cells(empty, 3, [(-1.0, 1.0)] * 2, seed=0)


def test_gradients_of_the_fit_to_features(released: dict[str, Any]) -> None:
    sketch = Sketch.of(released["features"])
    low, scale = np.array([-1.0, -1.0]), np.array([2.0, 2.0])
    found = Cells(np.array([0.4, 0.5]), CENTRES[:2] + 0.1, np.full((2, 2), 0.02))
    packed = _packed(found, low, scale)
    value, gradient = _distance(packed, sketch=sketch, low=low, scale=scale)
    one = np.array([0.3, 0.6, -2.0])
    height, slope = _overlap(one, sketch=sketch, residual=sketch.waves, low=low, scale=scale)
    for i in range(len(packed)):
        step = np.eye(len(packed))[i] * 1e-6
        moved = _distance(packed + step, sketch=sketch, low=low, scale=scale)[0]
        assert (moved - value) / 1e-6 == pytest.approx(gradient[i], abs=1e-4)
    for i in range(3):
        step = np.eye(3)[i] * 1e-6
        moved = _overlap(one + step, sketch=sketch, residual=sketch.waves, low=low, scale=scale)[0]
        assert (moved - height) / 1e-6 == pytest.approx(slope[i], abs=1e-3)
