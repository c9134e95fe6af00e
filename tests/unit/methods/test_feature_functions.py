"""Sensitivities of functions in a feature space, looked for by brute force, and the solver's certificate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.svm import LinearSVC

from hushsum.errors import DataRefused
from hushsum.methods import (
    TARGET_BITS,
    MatrixGram,
    allowed_gap,
    fit_machines,
    perturbed_machines,
    perturbed_posterior,
    smoother,
    solve_hinge,
    svm_sensitivity,
)
from hushsum.methods import _feature_functions as feature_functions
from hushsum.methods._feature_functions import FeatureGram, HingeSolution, certificate_error, certified_gap
from hushsum.privacy import Promise, lattice_variance

Floats = NDArray[np.float64]
PROMISE = Promise.of(epsilon=1.0, delta=1e-6)
HUGE = Promise.of(epsilon=600.0, delta=1e-6)


def features(number: int, width: int, seed: int = 0) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(number, width))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float64)


@pytest.mark.parametrize(("number", "width", "c"), [(150, 40, 10.0), (60, 90, 100.0), (900, 30, 3.0)])
def test_the_solver_reaches_its_gap_and_the_solution_of_another(number: int, width: int, c: float) -> None:
    rows = features(number, width)
    signs = np.sign(rows[:, 0] + 0.1 * np.random.default_rng(1).normal(size=number))
    signed = signs[:, None] * rows
    gap = allowed_gap(c, number, 1.0)
    solution = solve_hinge(FeatureGram(signed), number, c / number, gap=gap)
    weights = signed.T @ solution.alpha
    assert solution.gap <= gap
    certified = certified_gap(signed, solution.alpha, weights, c / number)
    assert abs(certified - solution.gap) <= certificate_error(signed.shape, c, 1.0) + 1e-12 * c
    other = LinearSVC(C=c / number, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
    other.fit(rows, signs)
    assert np.linalg.norm(weights - other.coef_[0]) <= math.sqrt(2.0 * gap) + 1e-6
    whole = solve_hinge(MatrixGram(signed @ signed.T), number, c / number, gap=gap)
    assert np.linalg.norm(signed.T @ whole.alpha - weights) <= 2.0 * math.sqrt(2.0 * gap)


def test_a_gap_is_never_below_the_distance_it_stands_for() -> None:
    rows = features(80, 10)
    best = solve_hinge(FeatureGram(rows), 80, 0.1, gap=1e-13)
    optimum = rows.T @ best.alpha
    rng = np.random.default_rng(2)
    for _ in range(50):
        alpha = np.clip(best.alpha + 0.02 * rng.normal(size=80), 0.0, 0.1)
        weights = rows.T @ alpha
        gap = certified_gap(rows, alpha, weights, 0.1)
        assert gap >= 0.5 * float(np.sum((weights - optimum) ** 2)) - 1e-12


def test_replacing_one_record_moves_a_machine_by_no_more_than_its_sensitivity_and_may_come_near() -> None:
    number, c = 40, 2.0
    gap = allowed_gap(c, number, 1.0) / 1e4
    rows = features(number, 5)
    bound = svm_sensitivity(c, number, 1.0, gap)

    def machine(changed: Floats) -> Floats:
        return changed.T @ solve_hinge(FeatureGram(changed), number, c / number, gap=gap).alpha

    base = machine(rows)
    moves = []
    for record in range(number):
        for other in (-rows[record], features(1, 5, seed=record)[0]):
            changed = rows.copy()
            changed[record] = other
            moves.append(float(np.linalg.norm(machine(changed) - base)))
    assert max(moves) <= bound
    assert max(moves) > 0.8 * bound, "a record with the margin missed on both sides moves it by 2C/n"


def test_a_machine_that_misses_its_gap_is_refused_by_public_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, codes = features(300, 8), np.arange(300) % 2

    def unfinished(gram: object, number: int, c: float, *, gap: float) -> HingeSolution:
        return HingeSolution(np.full(number, c / 2.0) * (codes + 0.5), gap / 4.0)

    assert fit_machines(rows, codes, 2, 10.0).weights.any()
    monkeypatch.setattr(feature_functions, "solve_hinge", unfinished)
    with pytest.raises(DataRefused) as refusal:
        fit_machines(rows, codes, 2, 10.0)
    assert str(refusal.value) == (
        "C must allow the machine to be solved to its duality gap, got 10, with which it was not; "
        "use a smaller C"
    )


def test_k_machines_take_the_noise_of_root_k() -> None:
    rows = features(400, 6)
    three = perturbed_machines(fit_machines(rows, np.arange(400) % 3, 3, 5.0), PROMISE, insecure_noise_seed=1)
    two = perturbed_machines(fit_machines(rows, np.arange(400) % 2, 2, 5.0), PROMISE, insecure_noise_seed=1)
    assert three.weights.shape == (3, 7)
    assert three.sigma / two.sigma == pytest.approx(math.sqrt(3.0), rel=1e-3)
    expected = svm_sensitivity(5.0, 400, 2.0001, allowed_gap(5.0, 400, 2.0001))
    assert two.sigma == pytest.approx(4.2245 * expected, rel=1e-3)


def test_the_posterior_mean_moves_by_the_stated_length_exactly() -> None:
    rows = features(30, 12)
    matrix = smoother(rows, 0.25)
    gram = rows @ rows.T
    inverse = np.linalg.inv(gram + 0.25 * np.eye(30))
    np.testing.assert_allclose(matrix, rows.T @ inverse, atol=1e-12)
    lengths = np.sqrt(np.diag(inverse @ gram @ inverse))
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=0), lengths, atol=1e-12)
    noisy = perturbed_posterior(matrix, np.zeros(30, np.int64), PROMISE, insecure_noise_seed=1)
    assert noisy.sigma == pytest.approx(4.2245 * 2.0 * lengths.max(), rel=1e-3)
    assert noisy.sigma >= 4.2243 * 2.0 * lengths.max()


def test_one_target_moves_the_whole_numbers_by_no_more_than_the_noise_was_made_for() -> None:
    matrix = smoother(features(25, 6), 0.1)
    top = 1 << TARGET_BITS
    targets = np.random.default_rng(0).integers(-top, top, 25)

    def released(values: NDArray[np.int64]) -> NDArray[np.int64]:
        found = perturbed_posterior(matrix, values, PROMISE, insecure_noise_seed=4)
        return np.asarray(found.weights[0], np.int64)

    variance = perturbed_posterior(matrix, targets, PROMISE, insecure_noise_seed=4).variance
    moves = []
    for record in range(25):
        low, high = targets.copy(), targets.copy()
        low[record], high[record] = -top, top
        moves.append(float(np.linalg.norm((released(high) - released(low)).astype(np.float64))))
    assert lattice_variance(math.ceil(max(moves)), 6, PROMISE) <= variance
    assert lattice_variance(math.ceil(max(moves) * 1.001), 6, PROMISE) >= variance


def test_targets_beyond_their_range_are_clipped_again() -> None:
    matrix = smoother(features(25, 6), 0.1)
    inside, beyond = np.full(25, 1 << TARGET_BITS), np.full(25, 1 << 20)
    one, other = (
        perturbed_posterior(matrix, each, PROMISE, insecure_noise_seed=4) for each in (inside, beyond)
    )
    assert np.array_equal(one.weights, other.weights)
