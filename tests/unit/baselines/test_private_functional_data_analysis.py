"""PFDA: the penalised mean by its formula, the sensitivity over all pairs, and noise of the stated law."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.baselines import CurveSpace, largest_distance, pfda
from hushsum.errors import UsageError
from hushsum.privacy import gaussian_sigma
from tests.recorded_draws import DrawRecord

KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.1)
STEPS = 60
PLACES = np.linspace(0.0, 1.0, STEPS)[:, None]


def covariance() -> Any:
    return KERNEL.similarity(PLACES, PLACES)


def test_eigenvectors_are_orthonormal_on_the_line_and_give_the_covariance_back() -> None:
    space = CurveSpace.of(KERNEL, KERNEL, 0.0, 1.0, STEPS)
    spacing = 1.0 / (STEPS - 1)
    inner = spacing * space.basis.T @ space.basis
    np.testing.assert_allclose(inner, np.eye(len(inner)), atol=1e-9)
    back = (space.basis * space.eigenvalues) @ space.basis.T
    np.testing.assert_allclose(back, covariance(), atol=1e-6)


@pytest.mark.parametrize("penalty", [1e-4, 0.01, 0.3])
@pytest.mark.parametrize("other", [False, True])
def test_the_mean_is_the_penalised_one(penalty: float, other: bool) -> None:
    """Against the normal equations on the grid: (hC)(hC + φ)⁻¹ times the mean curve."""
    noise = hs.EuclideanKernel(dim=1, bandwidth=0.3) if other else KERNEL
    rng = np.random.default_rng(0)
    X = PLACES[rng.integers(0, STEPS, 400)]
    f = pfda(
        X,
        KERNEL,
        bounds=(0, 1),
        epsilon=1e6,
        covariance=noise,
        penalty=penalty,
        steps=STEPS,
        insecure_noise_seed=1,
    )
    operator = noise.similarity(PLACES, PLACES) / (STEPS - 1)
    mean = KERNEL.exact_sum(X, PLACES) / 400
    expected = operator @ np.linalg.solve(operator + penalty * np.eye(STEPS), mean)
    np.testing.assert_allclose(f.values, expected, atol=2e-4)


def test_the_largest_distance_is_over_all_pairs() -> None:
    vectors = np.random.default_rng(1).normal(size=(40, 7))
    slow = max(float(np.linalg.norm(a - b)) for a in vectors for b in vectors)
    assert slow <= largest_distance(vectors) <= slow * (1 + 1e-9)


def test_a_record_replaced_moves_what_is_released_by_no_more_than_declared(record: DrawRecord) -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(30, 1))
    moves = []
    for one in (0.0, 1.0, 0.5, 0.05, *rng.uniform(-3, 3, 12)):
        pfda(
            np.concatenate([X, [[one]]]),
            KERNEL,
            bounds=(0, 1),
            epsilon=1.0,
            steps=STEPS,
            insecure_noise_seed=1,
        )
    values = [each[0] for each in record.gaussian]
    moves = [float(np.linalg.norm(a - b)) for a in values for b in values]
    declared = record.gaussian[0][1]
    assert max(moves) <= declared
    assert max(moves) > 0.8 * declared
    assert {l2 for _, l2, _, _ in record.gaussian} == {declared}


def test_the_draw_is_calibrated(record: DrawRecord) -> None:
    f = pfda([[0.2]] * 50, KERNEL, bounds=(0, 1), epsilon=0.5, delta=1e-7, penalty=0.02, steps=STEPS)
    (values, l2, epsilon, delta), *rest = record.gaussian
    assert not rest
    assert (epsilon, delta) == (Fraction(1, 2), Fraction(1, 10**7))
    space = CurveSpace.of(KERNEL, KERNEL, -0.5, 0.5, STEPS)
    assert l2 == pytest.approx(largest_distance(space.smoothed(0.02)) / 50)
    assert len(values) == len(space.eigenvalues)
    sigma = gaussian_sigma(l2, epsilon, delta)
    np.testing.assert_allclose(f.errors, sigma, rtol=1e-5)


def test_noise_is_a_path_of_the_gaussian_process() -> None:
    """600 seeded releases: variances within six of their standard errors, correlations as near."""
    paths = np.array(
        [
            pfda(
                [[0.2]] * 50, KERNEL, bounds=(0, 1), epsilon=1.0, steps=STEPS, insecure_noise_seed=seed
            ).values
            for seed in range(600)
        ]
    )
    f = pfda([[0.2]] * 50, KERNEL, bounds=(0, 1), epsilon=1.0, steps=STEPS)
    ratio = paths.var(axis=0, ddof=1) / f.errors**2
    assert np.abs(ratio - 1.0).max() < 6.0 * np.sqrt(2.0 / 599)
    found = np.corrcoef(paths.T)
    assert np.abs(found - covariance()).max() < 6.0 / np.sqrt(600)


def test_queries_beyond_the_bounds_get_the_nearest_end() -> None:
    f = pfda([[0.9]] * 500, KERNEL, bounds=(0, 1), epsilon=1.0, steps=STEPS)
    np.testing.assert_array_equal(f([[-5.0], [7.0]]), [f.values[0], f.values[-1]])
    assert f.errors.min() > 0.0
    assert np.isnan(f.query([[0.5]]).stderr).all()


@pytest.mark.parametrize(
    ("options", "rule"),
    [({"penalty": 0.0}, "penalty"), ({"penalty": np.nan}, "penalty"), ({"steps": 3}, "steps")],
)
def test_refuses_parameters_that_break_a_rule(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        pfda([[0.5]], KERNEL, bounds=(0, 1), epsilon=1.0, **options)


def test_takes_one_column() -> None:
    with pytest.raises(UsageError, match="one column"):
        pfda([[0.5, 0.5]], hs.GaussianKernel(dim=2, bandwidth=0.1), bounds=(0, 1), epsilon=1.0)
