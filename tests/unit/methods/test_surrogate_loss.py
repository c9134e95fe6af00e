"""The surrogate loss of a sketch, and what is read off its table."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import AngularKernel, AsymmetricAngularKernel
from hushsum.methods import (
    SketchedMoments,
    descend,
    fit_classifier,
    fit_regression,
    fit_surrogate,
    moments,
    regression_loss,
    regression_records,
    rows_for_moments,
    surrogate_tally,
)
from hushsum.methods._linear_models import margin_loss, search
from hushsum.tables import HashRows

RNG = np.random.default_rng(9)
UNIT = RNG.uniform(-1, 1, (3000, 3))
LENGTH = 2.0
FEATURES = np.column_stack((np.ones(3000), UNIT)) / LENGTH
TARGET = UNIT @ np.array([0.5, -0.3, 0.0]) + 0.1
VECTORS = regression_records(FEATURES, TARGET, LENGTH)


def sketch(
    vectors: np.ndarray, rows: int = 3000, epsilon: float = 1e6, query_radius: float | None = None
) -> hs.ReleasedFunction:
    columns = vectors.shape[1]
    tally = surrogate_tally(columns, rows=rows, seed=1, query_radius=query_radius).add(vectors)
    return tally.release(epsilon=epsilon, rows=rows)


def test_vectors_lie_in_the_ball_and_a_record_is_mapped_alone() -> None:
    assert np.linalg.norm(VECTORS, axis=1).max() <= 1.0 + 1e-12
    for size in (1, 2, 33):
        part = regression_records(FEATURES[:size], TARGET[:size], LENGTH)
        np.testing.assert_array_equal(part, VECTORS[:size])


def test_cells_are_patterns_of_signs() -> None:
    kernel = AngularKernel(dim=5, bits=4)
    planes = kernel.directions(rows=20, seed=3)
    basis = HashRows(kernel, rows=20, width=16, seed=3)
    points = RNG.normal(size=(40, 5)).astype(np.float32)
    bits = np.einsum("rka,na->nrk", planes, points) >= 0
    np.testing.assert_array_equal(basis.cells(basis.prepare(points)), (bits << np.arange(4)).sum(axis=2))


@pytest.mark.parametrize("query_radius", [None, 2.0])
def test_moments_are_those_of_the_records(query_radius: float | None) -> None:
    """The error of 14 entries is within six of its stated standard deviations, of which it is about one."""
    found = SketchedMoments.of(sketch(VECTORS, query_radius=query_radius))
    exact = VECTORS.T @ VECTORS
    errors = (found.second - exact) / found.sigma
    assert np.abs(errors).max() < 6.0
    assert 0.2 < np.sqrt(np.mean(errors**2)) < 2.0
    drift = (found.first - VECTORS.sum(axis=0)) / found.first_sigma
    assert np.abs(drift).max() < 6.0


def test_moments_are_unbiased_over_hash_seeds() -> None:
    few = VECTORS[:50]
    exact = few.T @ few
    total, sigma = np.zeros_like(exact), 0.0
    for seed in range(200):
        tally = surrogate_tally(few.shape[1], rows=50, seed=seed).add(few)
        found = SketchedMoments.of(tally.release(epsilon=1e6, rows=50))
        total += found.second / 200
        sigma = found.sigma
    assert np.abs(total - exact).max() < 6.0 * 1.5 * sigma / math.sqrt(200)


def test_the_surrogate_loss_is_a_sum_of_kernels_and_least_at_the_model() -> None:
    function = sketch(VECTORS)
    truth = np.array([0.1, 0.5, -0.3, 0.0]) * LENGTH
    queries = np.array([[*(truth / LENGTH), -1.0]])
    kernel = function.kernel
    exact = (kernel.exact_sum(VECTORS, queries) + kernel.exact_sum(VECTORS, -queries)) / 3000
    assert regression_loss(function, truth[None], LENGTH)[0] == pytest.approx(exact[0], rel=0.05)
    others = truth + RNG.normal(size=(20, 4)) * 2.0
    assert regression_loss(function, truth[None], LENGTH)[0] < regression_loss(function, others, LENGTH).min()


def exact_loss(
    records: np.ndarray, models: np.ndarray, query_radius: float | None, bits: int = 4
) -> np.ndarray:
    """The loss of models, from the kernel's own similarities."""
    kernel = AsymmetricAngularKernel(dim=records.shape[1], bits=bits, query_radius=query_radius)
    queries = np.column_stack((models, -np.ones(len(models))))
    both = kernel.exact_sum(records, queries) + kernel.exact_sum(records, -queries)
    found: np.ndarray = both / len(records)
    return found


def cloud(number: int = 4000) -> np.ndarray:
    """Records (x, y) with a slope of 0.5, and residuals as long as the line itself."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-0.4, 0.4, number)
    return np.column_stack((x, 0.5 * x + rng.uniform(-0.5, 0.5, number)))


def test_with_a_query_radius_the_least_loss_is_that_of_least_squares() -> None:
    records = cloud()
    slopes = np.linspace(-1.0, 3.0, 401)
    least_squares = (records[:, 0] @ records[:, 1]) / (records[:, 0] @ records[:, 0])
    padded = exact_loss(records, slopes[:, None], 4.0)
    assert slopes[np.argmin(padded)] == pytest.approx(least_squares, abs=0.02)
    # Without it, the minimum is that of total least squares: the axis of the cloud.
    unpadded = exact_loss(records, slopes[:, None], None)
    axis = np.linalg.eigh(records.T @ records)[1][:, -1]
    assert axis[1] / axis[0] > least_squares + 1.0
    assert slopes[np.argmin(unpadded)] > least_squares + 0.5


@pytest.mark.parametrize("bits", [2, 4])
def test_with_a_query_radius_the_loss_is_convex(bits: int) -> None:
    """Second differences along random chords of the ball; records are hashed in single precision."""
    records = np.vstack((cloud(200), [[1.0, 0.0], [0.0, -1.0], [0.0, 0.0]]))
    rng = np.random.default_rng(4)
    radius = 2.0
    reach = math.sqrt(radius**2 - 1.0)
    bent = dict.fromkeys((None, radius), 0)
    for _ in range(100):
        ends = rng.uniform(-reach, reach, (2, 1))
        chord = np.vstack((ends[:1], ends.mean(axis=0, keepdims=True), ends[1:]))
        for each in bent:
            low, middle, high = exact_loss(records, chord, each, bits)
            bent[each] += bool(low + high - 2.0 * middle < -1e-6)
    assert bent[radius] == 0
    assert bent[None] > 0


def test_the_surrogate_finds_the_slopes_and_the_sketch_s_loss_is_the_exact_one() -> None:
    function = sketch(VECTORS, rows=8000, query_radius=math.sqrt(5.0))
    models = np.array([[0.1, 0.5, -0.3, 0.0], [0.0, 0.0, 0.0, 0.0], [0.5, -0.9, 0.9, 0.6]])
    exact = exact_loss(VECTORS, models, math.sqrt(5.0))
    np.testing.assert_allclose(regression_loss(function, models * LENGTH, LENGTH), exact, rtol=0.03)
    level = moments((-1, 1), dim=1).add(TARGET[:, None]).release(epsilon=1e6)
    theta = fit_surrogate(function, level, LENGTH, 2.0, seed=1) / LENGTH
    assert np.abs(theta - models[0]).max() < 0.25
    assert theta[1] > 0.25
    again = fit_surrogate(function, level, LENGTH, 2.0, seed=1) / LENGTH
    np.testing.assert_array_equal(theta, again)
    short = fit_surrogate(function, level, LENGTH, 0.2, seed=1) / LENGTH
    assert np.linalg.norm(short) <= 0.2 + 1e-12


def test_the_descent_finds_a_known_minimum() -> None:
    goal = np.array([0.5, -0.4])

    def loss(points: np.ndarray) -> np.ndarray:
        values: np.ndarray = ((points - goal) ** 2).sum(axis=1)
        return values

    found = descend(loss, np.zeros(2), bound=2.0, seed=1, step=0.1)
    np.testing.assert_allclose(found, goal, atol=0.05)


def test_regression_finds_the_slopes() -> None:
    level = moments((-1, 1), dim=1).add(TARGET[:, None]).release(epsilon=1e6)
    theta = fit_regression(sketch(VECTORS, rows=8000), level, LENGTH) / LENGTH
    assert theta[1] > 0.3
    assert theta[2] < -0.15
    assert abs(theta[3]) < 0.1
    assert theta[0] == pytest.approx(0.1, abs=0.05)


def test_without_slopes_the_model_is_the_mean() -> None:
    level = moments((-1, 1), dim=1).add(np.full((3000, 1), 0.4)).release(epsilon=1e6)
    noise = np.zeros((1, VECTORS.shape[1]))
    theta = fit_regression(sketch(noise, rows=16, epsilon=0.01), level, LENGTH)
    assert np.linalg.norm(theta[1:]) < 2.0 * LENGTH
    assert theta.shape == (4,)


def test_classifiers_find_the_plane() -> None:
    side = UNIT[:, 0] > UNIT[:, 1]
    first, second = (sketch(FEATURES[chosen]) for chosen in (~side, side))
    theta = fit_classifier(first, second, LENGTH, seed=1)
    assert np.mean((FEATURES @ theta > 0) == side) > 0.93
    worse = np.array([[0.0, -1.0, 1.0, 0.0]])
    assert margin_loss(first, second, theta[None])[0] < margin_loss(first, second, worse)[0]


def test_the_search_descends() -> None:
    goal = np.array([0.6, 0.8, 0.0])
    start = np.array([0.8, 0.5, 0.2])

    def loss(points: np.ndarray) -> np.ndarray:
        values: np.ndarray = ((points - goal) ** 2).sum(axis=1)
        return values

    found = search(loss, start, seed=1, rounds=40)
    assert np.linalg.norm(found - goal) < 0.05
    np.testing.assert_array_equal(found, search(loss, start, seed=1, rounds=40))


def test_rows_balance_noise_and_hashing() -> None:
    assert rows_for_moments(10_000, 1.0, 5000) == round(10_000 / math.sqrt(32))
    assert rows_for_moments(10, 0.01, 5000) == 16
    assert rows_for_moments(1e9, 1.0, 5000) == 5000


def test_other_functions_are_refused() -> None:
    euclidean = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=4).add([[0.0]]).release(epsilon=1.0)
    with pytest.raises(UsageError, match="angular"):
        SketchedMoments.of(euclidean)
    folded = (
        hs.race(AsymmetricAngularKernel(dim=2, bits=6), rows=4, width=7)
        .add([[0.0, 1.0]])
        .release(epsilon=1.0)
    )
    with pytest.raises(UsageError, match="folded"):
        SketchedMoments.of(folded)
    with pytest.raises(UsageError, match="structured"):
        AngularKernel(dim=2, bits=4, projection="structured").directions(rows=1, seed=0)


@pytest.mark.parametrize("kind", ["regressor", "surrogate", "classifier"])
def test_models_of_sketches_are_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"epsilon": 2.0, "bounds": (-1, 1), "method": "sketch", "random_state": 0}
    model: Any
    if kind != "classifier":
        options["method"] = "surrogate" if kind == "surrogate" else "sketch"
        model = hs.PrivateRegressor(target_bounds=(-1, 1), **options).fit(UNIT, TARGET)
    else:
        model = hs.PrivateLinearSVC(classes=[0, 1], **options).fit(UNIT, (TARGET > 0.0).astype(int))
    model.save(tmp_path / "m.hush")
    again: Any = hs.load(tmp_path / "m.hush")
    np.testing.assert_array_equal(again.predict(UNIT[:9]), model.predict(UNIT[:9]))
