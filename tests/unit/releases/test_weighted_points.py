"""Released points, against sums over all of them."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.baselines import CurveFunction, histogram, pfda
from hushsum.errors import FileRefused, UsageError
from hushsum.records import Bounds
from hushsum.releases import FeatureErrors, PointsFunction
from hushsum.releases._public_points import LEAST_EIGENVALUE, PrincipalErrors, _principal

KERNEL = hs.EuclideanKernel(dim=2, bandwidth=0.3)
X = np.random.default_rng(1).uniform(size=(400, 2))
Q = np.random.default_rng(2).uniform(-1, 2, size=(700, 2))


def points() -> PointsFunction:
    return histogram(X, KERNEL, bounds=[(0, 1), (-1, 1)], epsilon=1.0, bins=[5, 7], insecure_noise_seed=1)


def curve() -> CurveFunction:
    kernel = hs.GaussianKernel(dim=1, bandwidth=0.1)
    return pfda(X[:, :1], kernel, bounds=(0, 1), epsilon=1.0, steps=32, insecure_noise_seed=1)


def copied(function: Any) -> Any:
    stream = io.BytesIO()
    function.save(stream)
    stream.seek(0)
    return hs.load(stream)


def test_sums_are_over_all_points() -> None:
    f = points()
    values = KERNEL.similarity(f.points, Q)
    np.testing.assert_allclose(f.sum(Q), f.weights @ values, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(f(Q), f.sum(Q) / f.count)


def test_points_without_weight_do_not_count() -> None:
    f = points()
    half = replace(f, weights=np.where(np.arange(35) % 2, 0.0, f.weights))
    kept = replace(f, points=f.points[::2].copy(), weights=f.weights[::2].copy())
    np.testing.assert_allclose(half.sum(Q), kept.sum(Q))
    # Their noise does: a noisy count of 0 is as uncertain as any other.
    assert (half.query(Q[:5]).stderr > kept.query(Q[:5]).stderr).all()


def test_standard_errors_by_hand() -> None:
    f = points()
    values = KERNEL.similarity(f.points, Q)
    assert f.weight_variance is not None
    noise = f.weight_variance * (values**2).sum(axis=0)
    f = replace(f, cell_width=None)
    np.testing.assert_allclose(f.query(Q, of="sum").stderr, np.sqrt(noise), rtol=1e-5)
    of_mean = np.sqrt(noise + f(Q) ** 2 * f.count_variance) / f.count
    np.testing.assert_allclose(f.query(Q).stderr, of_mean, rtol=1e-5)
    unknown = replace(f, weight_variance=None).query(Q)
    assert np.isnan(unknown.stderr).all()
    np.testing.assert_allclose(unknown.value, f(Q))


def test_any_kernel_may_be_read_afterwards() -> None:
    f = points()
    other = hs.GaussianKernel(dim=2, bandwidth=0.5)
    g = f.with_kernel(other)
    assert g.kernel == other
    np.testing.assert_allclose(g.sum(Q), f.weights @ other.similarity(f.points, Q), rtol=1e-4, atol=1e-3)
    for wrong in (hs.GaussianKernel(dim=3, bandwidth=1.0), hs.JaccardKernel(), hs.HammingKernel(dim=2)):
        with pytest.raises(UsageError, match=r"kernel must have dim|compares columns of numbers"):
            f.with_kernel(wrong)


def test_points_and_weights_must_fit() -> None:
    f = points()
    with pytest.raises(UsageError, match="one row a weight"):
        replace(f, weights=f.weights[1:].copy())
    with pytest.raises(UsageError, match="kernel must have dim"):
        replace(f, bounds=Bounds((0.0,), (1.0,)))


@pytest.mark.parametrize(
    "change",
    [
        {"points": np.full((35, 2), 9.0)},
        {"points": np.full((35, 2), np.nan)},
        {"weights": np.full(35, np.inf)},
        {"count": 0.0},
        {"count_variance": -1.0},
        {"weight_variance": -1.0},
        {"cell_width": (-1.0, 0.1)},
        {"cell_width": (9.0, 9.0)},
        {"feature_errors": FeatureErrors(3, -1.0, 1.0)},
        {"feature_errors": FeatureErrors(99, 1.0, 1.0)},
    ],
)
def test_a_file_that_no_method_writes_is_refused(change: dict[str, Any]) -> None:
    copied(points())
    with pytest.raises(FileRefused):
        copied(replace(points(), **change))


@pytest.mark.parametrize(
    "change", [{"values": np.full(32, np.nan)}, {"errors": np.full(32, -1.0)}, {"count": 0.5}]
)
def test_a_curve_s_file_that_no_method_writes_is_refused(change: dict[str, Any]) -> None:
    copied(curve())
    with pytest.raises(FileRefused):
        copied(replace(curve(), **change))


def test_a_curve_is_straight_between_its_values() -> None:
    f = curve()
    places = np.linspace(0, 1, 32)
    np.testing.assert_allclose(f(places[:, None]), f.values, atol=1e-6)
    between = (places[:-1] + places[1:]) / 2
    np.testing.assert_allclose(f(between[:, None]), (f.values[:-1] + f.values[1:]) / 2, atol=1e-6)
    np.testing.assert_allclose(f.sum(places[:, None]), f.count * f.values, atol=1e-3)


def test_a_curve_s_shape_is_checked() -> None:
    f = curve()
    with pytest.raises(UsageError, match="at least two values"):
        replace(f, values=f.values[:1].copy(), errors=f.errors[:1].copy())
    with pytest.raises(UsageError, match="one error for each value"):
        replace(f, errors=f.errors[:-1].copy())


def test_functions_that_were_not_measured_are_less_certain() -> None:
    kernel = hs.GaussianKernel(dim=2, bandwidth=0.3)
    weights, means = np.full(len(X), 1.0 / len(X)), np.full(9, 0.3)
    few, many = (
        PrincipalErrors(kernel, X, weights, FeatureErrors(number, 1e-6, 0.01)).variance(X[:9], means)
        for number in (5, 20)
    )
    assert (few > many).all()


@pytest.mark.parametrize(
    "kernel",
    [
        hs.GaussianKernel(dim=2, bandwidth=0.5),
        hs.GaussianKernel(dim=2, bandwidth=0.01),
        hs.LaplacianKernel(dim=2, bandwidth=0.5),
    ],
)
def test_principal_functions_are_those_of_a_whole_decomposition(kernel: Any) -> None:
    gram = kernel.similarity(X, X) / len(X)
    (values, vectors), (found, columns) = np.linalg.eigh(gram), _principal(gram)
    kept, same = values > LEAST_EIGENVALUE, found > LEAST_EIGENVALUE
    np.testing.assert_allclose(found[same], values[kept], atol=1e-14)
    projections = [each @ each.T for each in (vectors[:, kept], columns[:, same])]
    np.testing.assert_allclose(projections[1], projections[0], atol=1e-7)
    indefinite = gram - np.median(values) * np.eye(len(X)) * 2.0 - 0.1 * np.outer(X[:, 0], X[:, 0])
    np.testing.assert_allclose(_principal(indefinite)[0][-5:], np.linalg.eigh(indefinite)[0][-5:], atol=1e-12)
