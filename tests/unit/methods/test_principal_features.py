"""Principal features: a projection in the kernel's space, integers of known length, weights that fit."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum.kernels import Kernel
from hushsum.methods import LENGTH
from hushsum.methods._landmarks import PrincipalFeatures, best_number, fitted_weights, prior_variance

KERNELS: tuple[Kernel, ...] = (
    hs.GaussianKernel(dim=4, bandwidth=0.3),
    hs.LaplacianKernel(dim=4, bandwidth=0.3),
    hs.MaternKernel(dim=4, bandwidth=0.3),
)
POINTS = np.random.default_rng(0).normal(0.0, 0.2, (120, 4))
RECORDS = np.random.default_rng(1).normal(0.0, 0.2, (500, 4)).astype(np.float32)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_all_features_of_the_points_give_back_their_kernel(kernel: Kernel) -> None:
    values = PrincipalFeatures.of(kernel, POINTS).of_points
    np.testing.assert_allclose(values @ values.T, kernel.similarity(POINTS, POINTS), atol=1e-4)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("number", [1, 7, 120])
def test_no_record_is_longer_than_declared_and_one_is_nearly_so_long(kernel: Kernel, number: int) -> None:
    features = PrincipalFeatures.of(kernel, POINTS).first(number)
    everywhere = np.random.default_rng(2).uniform(-1.0, 1.0, (300, 4))
    rows = np.concatenate([RECORDS, POINTS, everywhere]).astype(np.float32)
    lengths = [int((features.sums(row[None]) ** 2).sum()) for row in rows]
    assert max(lengths) <= LENGTH**2
    if number == 120:
        assert max(lengths) > 0.99 * LENGTH**2


def test_points_that_coincide_are_no_longer_either() -> None:
    twice = np.repeat(POINTS[:20], 3, axis=0)
    features = PrincipalFeatures.of(KERNELS[0], twice)
    assert len(features.eigenvalues) <= 20
    assert np.linalg.norm(features.values(POINTS), axis=1).max() <= 1.0 + 1e-12


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_features_of_a_record_do_not_depend_on_the_others_in_its_batch(kernel: Kernel) -> None:
    features = PrincipalFeatures.of(kernel, POINTS)
    together = features.values(RECORDS)
    for first, last in ((0, 1), (3, 4), (1, 500), (0, 499), (7, 130), (490, 500)):
        np.testing.assert_array_equal(features.values(RECORDS[first:last]), together[first:last])


def test_sums_are_those_of_single_records() -> None:
    features = PrincipalFeatures.of(KERNELS[0], POINTS).first(30)
    rows = np.concatenate([RECORDS[:40], RECORDS[:15]])
    one_by_one = sum(features.sums(row[None]) for row in rows)
    np.testing.assert_array_equal(features.sums(rows), one_by_one)


def test_products_of_features_fit_a_double_for_the_largest_number_of_points() -> None:
    coefficients, _ = PrincipalFeatures.of(KERNELS[0], POINTS)._integers
    assert np.array_equal(coefficients, np.rint(coefficients))
    # Rounding adds half to each of at most 2¹³ coefficients.
    assert np.abs(coefficients).sum(axis=0).max() <= 2**32 + 2**12


def test_more_records_or_budget_mean_more_features() -> None:
    eigenvalues = PrincipalFeatures.of(KERNELS[0], POINTS).eigenvalues
    numbers = [best_number(eigenvalues, deviation, 0.03) for deviation in (1.0, 1e-2, 1e-3, 1e-4, 1e-6)]
    assert numbers == sorted(numbers)
    assert numbers[0] < 5 < numbers[-1] <= len(eigenvalues)


def test_points_of_a_shallow_tree_are_measured_by_more_features() -> None:
    eigenvalues = PrincipalFeatures.of(KERNELS[0], POINTS).eigenvalues
    assert prior_variance() == prior_variance(1e-3) < prior_variance(0.02)
    public, found = (best_number(eigenvalues, 1e-3, prior_variance(each)) for each in (0.0, 0.02))
    assert public < found


def test_the_number_of_features_is_near_the_best_of_all() -> None:
    eigenvalues = np.array([0.8**i for i in range(80)], np.float64)
    eigenvalues /= eigenvalues.sum()

    def error(number: int) -> float:
        prior, noise = 0.03 * eigenvalues, number * 1e-6
        kept = (eigenvalues * prior * noise / (prior + noise))[:number].sum()
        return float(kept + (eigenvalues * prior)[number:].sum())

    assert error(best_number(eigenvalues, 1e-3, 0.03)) < 1.02 * min(error(number) for number in range(1, 80))


def test_weights_without_noise_answer_like_the_records() -> None:
    features = PrincipalFeatures.of(KERNELS[0], POINTS)
    exact = features.values(RECORDS).mean(axis=0)
    weights, _ = fitted_weights(features, exact, 1e-14)
    answers = KERNELS[0].similarity(POINTS, RECORDS).T @ weights
    truth = KERNELS[0].exact_sum(RECORDS, RECORDS) / len(RECORDS)
    assert np.abs(answers - truth).mean() < 1e-3
    assert np.abs(answers - truth).max() < 0.01
    assert weights.sum() == pytest.approx(1.0, abs=0.05)


def test_noise_alone_leaves_equal_weights() -> None:
    features = PrincipalFeatures.of(KERNELS[0], POINTS).first(20)
    own = features.of_points.mean(axis=0)
    noisy = own + np.random.default_rng(3).normal(0.0, 1.0, 20)
    weights, _ = fitted_weights(features, noisy, 1.0)
    assert np.abs(features.of_points.T @ weights - own).max() < 0.3 * np.abs(noisy - own).max()
