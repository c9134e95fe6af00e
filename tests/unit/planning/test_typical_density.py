"""What plans assume of records that nobody has looked at, and the shares and methods that follow."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.methods import TYPICAL_CHANCE, TYPICAL_HEAP, typical_density
from hushsum.methods import predicted_error as landmark_error
from hushsum.methods._landmarks import typical_eigenvalues
from hushsum.privacy import EXACT_INTEGERS, Promise, Relation, calibrate
from hushsum.records import Bounds
from hushsum.releases import NoisyTable, PointsFunction, released_table
from hushsum.tables import GridReading, predicted_error

WITH_DELTA = {"epsilon": 1.0, "delta": 1e-6}


def test_the_typical_density_is_that_of_normal_records() -> None:
    """400,000 pairs of records in one column, whose mean is within 1 %; in more columns it falls more slowly
    than in as many independent ones.
    """
    away = np.random.default_rng(0).normal(0.0, np.sqrt(2.0) / 6.0, 400_000)
    expected = np.exp(-0.5 * (away / 0.2) ** 2).mean()
    found = [typical_density(hs.GaussianKernel(d, 0.2), Bounds.of((0, 1), d)) for d in (1, 4, 9)]
    assert found[0] == pytest.approx(expected, rel=0.02)
    assert found[0] > found[1] > found[2] > found[0] ** 9


def test_eigenvalues_of_typical_records_are_those_of_a_gram_matrix() -> None:
    """One column, 1500 records: the first five eigenvalues within 15 %."""
    x = np.random.default_rng(0).normal(0.0, 1 / 8, 1500)
    gram = np.exp(-0.5 * ((x[:, None] - x[None]) / 0.1) ** 2)
    values = typical_eigenvalues(float(gram.mean()), 1)
    assert values[:5] == pytest.approx(np.linalg.eigvalsh(gram / len(x))[::-1][:5], rel=0.15)
    assert values.sum() == pytest.approx(1.0, abs=1e-4)


def test_dense_queries_pay_more_for_the_number_of_records() -> None:
    kernel = hs.GaussianKernel(dim=8, bandwidth=0.1)
    asked: dict[str, Any] = {
        "records": 20_000,
        "kernel": kernel,
        "bounds": (0, 1),
        "epsilon": 1.0,
        "delta": 1e-6,
    }
    few, many = (hs.plan(**asked, density=each).best for each in (0.01, 0.5))
    assert few.count_share < many.count_share
    fixed = hs.plan(**asked, density=0.5, count_share=Fraction(1, 50)).best
    assert fixed.count_share == pytest.approx(0.02)
    assert many.error < 0.7 * fixed.error


def test_a_release_takes_the_planned_share_of_the_count() -> None:
    X = np.random.default_rng(1).normal(0.5, 0.05, (3000, 6)).clip(0, 1)
    kernel = hs.GaussianKernel(dim=6, bandwidth=0.3)
    given: dict[str, Any] = {
        "kernel": kernel,
        "bounds": (0, 1),
        "epsilon": 1.0,
        "delta": 1e-6,
        "records": 3000,
    }
    planned = hs.plan(**given).best
    f = released_table(hs.release(X, **given, max_seconds=1.0))
    g = released_table(hs.release(X, **given, max_seconds=1.0, count_share=0.02))
    assert planned.count_share > 0.02
    assert isinstance(f, NoisyTable)
    assert isinstance(g, NoisyTable)
    # A larger share of ρ, and a smaller variance in the same proportion, but for rounding.
    assert f.count_noise.variance == pytest.approx(
        0.02 / planned.count_share * g.count_noise.variance, rel=0.1
    )


def test_landmarks_are_planned_in_more_columns_than_a_grid_takes() -> None:
    def methods(dim: int, **given: Any) -> set[str]:
        kernel = hs.GaussianKernel(dim=dim, bandwidth=0.1)
        options = hs.plan(records=50_000, kernel=kernel, bounds=(0, 1), **{"epsilon": 1.0, **given})
        return {option.method for option in options if option.requested}

    assert "landmarks" in methods(8)
    assert "landmarks" not in methods(3) | methods(40)
    # Pure ε, which is stronger, is planned under ε and δ too.
    assert "landmarks" in methods(8, delta=1e-6)
    assert "landmarks" not in methods(8, tallies_only=True) | methods(8, max_per_unit=2)
    with pytest.raises(UsageError, match="method must be"):
        methods(8, method="landmarks", tallies_only=True)


def test_landmarks_need_records_and_budget_enough_for_their_tree() -> None:
    """With few of both the places of the points are not found, and random features err less."""
    kernel = hs.GaussianKernel(dim=8, bandwidth=0.1)

    def best(records: int) -> str:
        return hs.plan(records=records, kernel=kernel, bounds=(0, 1), epsilon=1.0).best.method

    assert best(300) == "fourier_features"
    assert best(50_000) == "landmarks"


def test_the_error_of_landmarks_depends_on_the_density() -> None:
    kernel = hs.GaussianKernel(dim=8, bandwidth=0.1)
    sparse, dense = (
        hs.plan(records=50_000, kernel=kernel, bounds=(0, 1), epsilon=1.0, density=each).option(
            method="landmarks"
        )
        for each in (0.02, 0.9)
    )
    assert dense.approximation < 0.5 * sparse.approximation


def test_landmarks_that_cannot_find_the_records_err_by_the_density() -> None:
    """Noise hides everything: answers are near 0."""
    box = Bounds.declared((0, 1), 8, "landmarks")
    for density in (0.02, 0.3):
        error = landmark_error([0.1] * 8, box, density=density, deviation=1.0, penalty=1.0)
        assert math.isclose(math.hypot(error.noise, error.approximation), density, rel_tol=0.05)


def test_features_are_planned_in_many_columns_where_landmarks_miss_the_records() -> None:
    """6,000 records that vary along all of 16 columns, as designs of experiments do: landmarks err ten times
    as much as features there, and the same number along few columns is for landmarks.
    """
    for dim, method in ((16, "fourier_features"), (6, "landmarks")):
        kernel = hs.GaussianKernel(dim=dim, bandwidth=0.1)
        assert hs.plan(records=6000, kernel=kernel, bounds=(0, 1), epsilon=1.0).best.method == method


@pytest.mark.parametrize("spread", [0.02, 0.2])
def test_a_public_sample_tells_the_density(spread: float) -> None:
    """The plan is that of the declared density, which has no spread; queries replace the sample's own."""
    rng = np.random.default_rng(0)
    public, kernel = rng.normal(0.5, spread, (500, 2)), hs.GaussianKernel(dim=2, bandwidth=0.05)
    truth = float(kernel.exact_sum(rng.normal(0.5, spread, (2000, 2)), public).mean() / 2000)
    options: dict[str, Any] = {"records": 10_000, "kernel": kernel, "bounds": (0, 1), "epsilon": 1.0}
    plan = hs.plan(public=public, **options)
    assert math.isclose(plan.density, truth, rel_tol=0.1)
    declared = hs.plan(density=plan.density, **options)
    assert plan.best == declared.best
    assert hs.plan(public=public, density=0.123, **options).density == 0.123
    assert hs.plan(public=public, queries=[[0.01, 0.99]], **options).density < 0.1 * truth


def test_a_grid_is_planned_for_more_than_the_typical_heap() -> None:
    """The stated error is an expectation, above that of the median heap and below that of one value."""
    kernel, box = hs.GaussianKernel(dim=1, bandwidth=0.1), (0, 1)
    option = hs.plan(records=10**7, kernel=kernel, bounds=box, epsilon=1.0, density=0.1).option(method="grid")
    reading = hs.grid(kernel, bounds=box, **option.settings).reading
    assert isinstance(reading, GridReading)
    at_heap = reading.errors.at_heap * np.sqrt(2.0 / np.pi)
    assert TYPICAL_HEAP * 0.1 * at_heap < option.approximation < at_heap
    assert option.error == pytest.approx(np.hypot(option.noise, option.approximation))


def test_the_planned_noise_of_a_grid_is_that_of_its_answers() -> None:
    """A grid of few nodes counts the records itself, and errs there in the same direction as its answers."""
    X, kernel = np.random.default_rng(1).uniform(size=(20_000, 1)), hs.GaussianKernel(dim=1, bandwidth=0.1)
    given: dict[str, Any] = {"kernel": kernel, "bounds": (0, 1), "epsilon": 0.1, "records": 20_000}
    option = hs.plan(**given, density=0.25).option(method="grid", epsilon=0.1)
    f = (
        hs.grid(kernel, bounds=(0, 1), **option.settings)
        .add(X)
        .release(epsilon=0.1, count_share=option.count_share, insecure_noise_seed=1)
    )
    stated = f.query(np.linspace(0.3, 0.7, 50)[:, None]).stderr.mean() * np.sqrt(2.0 / np.pi)
    assert option.noise == pytest.approx(stated, rel=0.15)


def test_a_guessed_density_is_uncertain() -> None:
    """The error is expected over powers of the typical density, so it differs from that of the typical one;
    where the density is declared it does not.
    """
    kernel, box = hs.GaussianKernel(dim=3, bandwidth=0.1), Bounds.of((0, 1), 3)
    given: dict[str, Any] = {"kernel": kernel, "bounds": (0, 1), "epsilon": 1.0, "records": 20_000}
    guessed = hs.plan(**given).best
    known = hs.plan(**given, density=typical_density(kernel, box)).best
    assert known.error < guessed.error < 1.5 * known.error


def test_features_are_planned_for_densities_far_above_the_typical_one() -> None:
    """Where a density of 0.01 is guessed and 0.1 is true, the error at the planned number of features is
    within 1.8 times the plan, and a tenth of the guess is no less than half of it. The best number for the
    guess alone errs by more than twice its own plan.
    """
    kernel = hs.GaussianKernel(dim=9, bandwidth=0.01)
    asked: dict[str, Any] = {"records": 20_000, "kernel": kernel, "bounds": (0, 1), "epsilon": 0.1}
    guessed = hs.plan(**asked, method="fourier_features").best
    known = hs.plan(**asked, method="fourier_features", density=0.01).best

    def error(pairs: int, density: float) -> float:
        change = hs.fourier_features(kernel, features=pairs).basis.unit_change(
            "record", 1, Relation.ADD_REMOVE
        )
        noise = calibrate(Promise.of(epsilon=0.1), change, cells=2 * pairs).table
        found = predicted_error(records=20_000, dim=9, pairs=pairs, noise=noise, density=density)
        return math.hypot(found.noise, TYPICAL_CHANCE * found.chance)

    assert typical_density(kernel, Bounds.of((0, 1), 9)) == pytest.approx(0.01)
    assert guessed.rows > 1.3 * known.rows
    assert 0.5 * guessed.error < error(guessed.rows, 0.001) < error(guessed.rows, 0.1) < 1.8 * guessed.error
    assert error(known.rows, 0.1) > 2.0 * known.error


def test_auto_releases_landmarks_in_exact_integers() -> None:
    X = np.random.default_rng(1).normal(0.5, 0.05, (2000, 6)).clip(0, 1)
    given: dict[str, Any] = {
        "kernel": hs.GaussianKernel(dim=6, bandwidth=0.2),
        "bounds": (0, 1),
        "epsilon": 5.0,
        "records": 2000,
    }
    assert hs.plan(**given).best.method == "landmarks"
    f = hs.release(X, **given, insecure_noise_seed=1)
    assert isinstance(f, PointsFunction)
    assert f.claim.arithmetic == EXACT_INTEGERS
    assert str(f.claim.mechanism) == "discrete laplace + gamma radius"
    # What only the release of a tally has chooses among tallies.
    assert not isinstance(hs.release(X, **given, rounded=False), PointsFunction)


def test_a_grid_with_nodes_on_all_values_is_one_option() -> None:
    ages = hs.GaussianKernel(1, 1.5)
    options = [
        each
        for each in hs.plan(records=10_000, kernel=ages, bounds=(0, 120), epsilon=1.0, steps=1.0)
        if "steps" in each.settings and each.requested
    ]
    assert len(options) == 1


@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
def test_the_error_of_a_density_on_a_grid_is_not_understated(epsilon: float) -> None:
    """A tenth of 20,000 at one value, between the nodes of a grid whose spacing does not depend on ε. The
    error of one release varies by 0.6 of the prediction: 32 of them are above 1.8 by chance once in 10⁶.
    """
    ages = np.random.default_rng(5).normal(40.0, 9.0, 20_000).clip(0, 120)
    ages[:2000] = 41.3

    def model() -> hs.PrivateDensity:
        return hs.PrivateDensity(epsilon=epsilon, bandwidth=3.0, bounds=[(0, 120)], method="grid")

    Q = ages[::50].reshape(-1, 1)
    exact = hs.GaussianKernel(1, 3.0)
    truth = exact.exact_sum(ages.reshape(-1, 1), Q) / len(ages) / exact.integral()
    fitted = [model().fit(ages.reshape(-1, 1)) for _ in range(32)]
    errors = [np.abs(each.predict(Q) - truth).mean() for each in fitted]
    predicted = model().predicted_error(20_000, 1)
    assert predicted is not None
    assert np.mean(errors) < 1.8 * predicted.error


def test_a_reading_of_another_kernel_on_the_same_grid_is_planned() -> None:
    tally = hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 50))
    wide = GridReading(tally.basis, hs.GaussianKernel(1, 4.0))  # type: ignore[arg-type]
    narrow = hs.plan(records=1000, epsilon=1.0, reading=tally.reading).best
    assert hs.plan(records=1000, epsilon=1.0, reading=wide).best.approximation < narrow.approximation


@pytest.mark.parametrize("dim", [50, 500])
def test_a_bandwidth_that_grows_with_the_columns_is_not_taken_to_see_all_records(dim: int) -> None:
    """Distances of records grow with the number of columns, too: a guess near 1 would mean few features."""
    kernel = hs.GaussianKernel(dim, 0.1 * dim**0.5)
    assert 0.01 <= typical_density(kernel, Bounds.of((0, 1), dim)) < 0.5
