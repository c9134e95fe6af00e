"""Kernel mean embeddings: coordinates of bounded sensitivity, and points that reproduce the mean."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.baselines import kme
from hushsum.baselines._real_functions import (
    Lattice,
    fourier_features,
    herd,
    mean_kernel_values,
    random_frequencies,
    reduced_set,
)
from hushsum.errors import UsageError
from hushsum.kernels import Kernel
from hushsum.records import Bounds, CellGrid
from tests.recorded_draws import DrawRecord

Floats = NDArray[np.float64]
ONE = hs.GaussianKernel(dim=1, bandwidth=0.1)
TWO = hs.GaussianKernel(dim=2, bandwidth=0.3)


def records(number: int, dim: int = 1) -> Floats:
    return np.random.default_rng(1).uniform(size=(number, dim))


def test_the_mean_is_over_all_records_with_repetitions() -> None:
    rows = np.repeat(records(40, 2), 3, axis=0).astype(np.float32)
    points = records(9, 2)
    expected = TWO.exact_sum(rows, points) / 120
    np.testing.assert_allclose(mean_kernel_values(rows, points, TWO), expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", [ONE, hs.EuclideanKernel(dim=1, bandwidth=0.2)], ids=lambda k: k.name)
def test_without_noise_the_points_have_the_records_kernel_mean(kernel: Kernel) -> None:
    X = records(3000)
    f = kme(X, kernel, bounds=(0, 1), epsilon=1e6, points=80, insecure_noise_seed=1)
    Q = np.linspace(0, 1, 50)[:, None]
    np.testing.assert_allclose(f(Q), kernel.exact_sum(X, Q) / 3000, atol=0.002)


@pytest.mark.parametrize("options", [{"points": 30}, {"lattice": 12}], ids=["points", "lattice"])
def test_the_stated_error_bounds_that_of_the_noise_and_is_near_it(options: dict[str, Any]) -> None:
    """500 seeded releases: standard deviations at most six of their own standard errors above what is
    stated.
    """
    X, Q = records(200), np.linspace(0, 1, 9)[:, None]
    given: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1.0, **options}
    found = np.array([kme(X, ONE, insecure_noise_seed=seed, **given)(Q) for seed in range(500)]).std(axis=0)
    f = kme(X, ONE, **given)
    stated = f.query(Q).stderr
    assert (found < stated * (1.0 + 6.0 / np.sqrt(1000))).all()
    assert (found > 0.8 * stated).all()
    assert np.isnan(f.with_kernel(hs.GaussianKernel(dim=1, bandwidth=0.2)).query(Q).stderr).all()


@pytest.mark.parametrize("algorithm", ["subspace", "features"])
def test_a_record_replaced_moves_what_is_released_by_no_more_than_declared(
    record: DrawRecord, algorithm: str
) -> None:
    X = records(20, 2)
    corners = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5], [0.51, 0.5], [9.0, -9.0]]
    for corner in corners:
        data = np.concatenate([X, [corner]])
        kme(
            data,
            TWO,
            bounds=(0, 1),
            epsilon=1.0,
            points=60,
            algorithm=algorithm,
            features=400,
            insecure_noise_seed=1,
        )
    values = [each[0] for each in record.gaussian]
    found = max(float(np.linalg.norm(a - b)) for a in values for b in values)
    assert {l2 for _, l2, _, _ in record.gaussian} == {2.0 / 21}
    assert found <= math.sqrt(2.0) / 21 * (1.0 if algorithm == "subspace" else 1.2)
    assert found > 0.8 * math.sqrt(2.0) / 21, "the tight bound, too, is nearly reached"


@pytest.mark.parametrize(("sensitivity", "moved"), [("published", 2.0), ("tight", math.sqrt(2.0))])
def test_the_draw_is_calibrated(record: DrawRecord, sensitivity: str, moved: float) -> None:
    kme(records(50), ONE, bounds=(0, 1), epsilon=0.5, delta=1e-7, points=10, sensitivity=sensitivity)
    [(values, l2, epsilon, delta)] = record.gaussian
    assert (len(values), l2, epsilon, delta) == (10, moved / 50, Fraction(1, 2), Fraction(1, 10**7))


def test_the_second_algorithm_always_takes_the_published_sensitivity(record: DrawRecord) -> None:
    """Random features may have a product of −1, so √2 would be wrong."""
    kme(records(50), ONE, bounds=(0, 1), epsilon=0.5, points=10, sensitivity="tight", algorithm="features")
    assert record.gaussian[0][1] == 2.0 / 50


def test_features_have_length_one_and_the_kernel_as_product() -> None:
    frequencies = random_frequencies(TWO, 20_000, seed=3)
    X = records(30, 2)
    features = fourier_features(X, frequencies)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, rtol=1e-12)
    # 10,000 independent cosines: six standard deviations are 0.06.
    np.testing.assert_allclose(features @ features.T, TWO.similarity(X, X), atol=0.06)


def test_the_second_algorithm_finds_the_mean_again() -> None:
    X = np.clip(np.random.default_rng(3).normal(0.4, 0.1, size=(5000, 1)), 0, 1)
    Q = np.linspace(0, 1, 30)[:, None]
    f = kme(
        X,
        ONE,
        bounds=(0, 1),
        epsilon=1e6,
        algorithm="features",
        points=200,
        features=2000,
        insecure_noise_seed=1,
    )
    np.testing.assert_allclose(f(Q), ONE.exact_sum(X, Q) / 5000, atol=0.02)
    with pytest.raises(UsageError, match="the Gaussian shape"):
        kme(X, hs.EuclideanKernel(dim=1, bandwidth=0.1), bounds=(0, 1), epsilon=1.0, algorithm="features")


def test_herding_visits_what_the_target_holds_and_weights_meet_it() -> None:
    features = np.eye(6)
    target = np.array([0.6, 0.0, 0.3, 0.0, 0.1, 0.0])
    assert herd(features, target, 50).tolist() == [0, 2, 4]
    points, weights = reduced_set(np.arange(6.0)[:, None], features, target, sigma=0.0)
    assert points[:, 0].tolist() == [0.0, 2.0, 4.0]
    np.testing.assert_allclose(weights, [0.6, 0.3, 0.1], rtol=1e-5)


def test_a_lattice_is_the_subspace_of_its_points(record: DrawRecord) -> None:
    """The same mean and, but for the ridge, the same span; the factor is another, so the noise is too."""
    X = records(300, 2)
    lattice = Lattice.of(TWO, CellGrid(Bounds((0.0, 0.0), (1.0, 1.0)), (4, 5)), 1e-9)
    points = np.stack(np.meshgrid(*lattice.places, indexing="ij"), axis=-1).reshape(-1, 2)
    rows = (X - 0.5).astype(np.float32)
    values = lattice.mean_kernel_values(rows)
    np.testing.assert_allclose(values.ravel(), mean_kernel_values(rows, points, TWO), rtol=1e-6)
    gram = TWO.similarity(points, points)
    coordinates = lattice.coordinates(values)
    squared = values.ravel() @ np.linalg.solve(gram, values.ravel())
    assert float((coordinates**2).sum()) == pytest.approx(float(squared), rel=1e-4)
    np.testing.assert_allclose(gram @ lattice.weights(coordinates).ravel(), values.ravel(), rtol=1e-4)


def test_a_record_replaced_moves_the_lattice_s_coordinates_no_further_than_declared(
    record: DrawRecord,
) -> None:
    for corner in ([0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.52, 0.5], [9.0, -9.0]):
        data = np.concatenate([records(20, 2), [corner]])
        kme(data, TWO, bounds=(0, 1), epsilon=1.0, lattice=[7, 6], sensitivity="tight", insecure_noise_seed=1)
    values = [each[0] for each in record.gaussian]
    found = max(float(np.linalg.norm(a - b)) for a in values for b in values)
    assert {each[0].shape for each in record.gaussian} == {(7, 6)}
    assert {l2 for _, l2, _, _ in record.gaussian} == {math.sqrt(2.0) / 21}
    assert 0.8 * math.sqrt(2.0) / 21 < found <= math.sqrt(2.0) / 21


def test_without_noise_a_lattice_has_the_records_kernel_mean() -> None:
    X, Q = records(2000, 3), records(40, 3)
    kernel = hs.GaussianKernel(dim=3, bandwidth=0.2, power=2)
    f = kme(X, kernel, bounds=(0, 1), epsilon=1e6, lattice=10, insecure_noise_seed=1)
    assert f.points.shape == (1000, 3)
    np.testing.assert_allclose(f(Q), kernel.exact_sum(X, Q) / 2000, atol=0.002)


def test_public_points_may_be_given_and_are_taken_once() -> None:
    given = [[0.1], [0.5], [0.9], [0.5]]
    f = kme(records(100), ONE, bounds=(0, 1), epsilon=1.0, points=given)
    np.testing.assert_allclose(f.points[:, 0], [0.1, 0.5, 0.9], rtol=1e-6)


def test_public_points_depend_on_the_seed_alone() -> None:
    first, again, other = (
        kme(2.0 + records(n), ONE, bounds=(2, 3), epsilon=1.0, points=30, seed=seed).points
        for n, seed in ((50, 1), (60, 1), (50, 2))
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.min() >= 2.0
    assert first.max() <= 3.0


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"algorithm": "other"}, "algorithm"),
        ({"sensitivity": "none"}, "sensitivity"),
        ({"points": 0}, "points"),
        ({"points": 1 << 20}, "points"),
        ({"features": 0}, "features"),
        ({"lattice": 0}, "bins"),
        ({"lattice": 1 << 22}, "bins"),
        ({"lattice": 5, "algorithm": "features"}, "lattice"),
    ],
)
def test_refuses_parameters_that_break_a_rule(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        kme([[0.5]], ONE, bounds=(0, 1), epsilon=1.0, **options)
