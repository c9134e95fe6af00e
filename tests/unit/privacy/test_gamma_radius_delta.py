"""Gamma-radius noise under (ε, δ): the bound of δ against other computations, and releases that use it."""

from __future__ import annotations

import io
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma as gamma_distribution

import hushsum as hs
from hushsum.auditing import audit_calibration
from hushsum.errors import ClaimError
from hushsum.privacy import (
    GAMMA,
    GAUSSIAN,
    IntegerNoise,
    Promise,
    Relation,
    Sensitivity,
    UnitChange,
    calibrate,
)
from hushsum.privacy.accounting import GAMMA_MOST_CELLS, gamma_radius_delta, gamma_radius_scale
from hushsum.privacy.noise import NoiseSource


@pytest.mark.parametrize(("epsilon", "separation"), [(0.1, 0.8), (1.0, 2.0), (1.0, 1.2), (3.0, 4.0)])
def test_in_the_plane_it_is_near_the_integral_of_the_densities(epsilon: float, separation: float) -> None:
    """Brute force over both coordinates, in units of the scale, where the loss exceeds ε."""

    step = 0.005
    x, y = np.arange(-16.0, separation, step)[:, None] + step / 2.0, np.arange(0.0, 16.0, step) + step / 2.0
    excess = np.exp(-np.hypot(x, y)) - np.exp(epsilon - np.hypot(x - separation, y))
    exact = float(np.maximum(excess, 0.0).sum()) * step**2 / math.pi
    bound = gamma_radius_delta(epsilon, cells=2, separation=separation)
    assert 0.999 * exact <= bound <= 1.06 * exact


@pytest.mark.parametrize(("epsilon", "separation"), [(0.1, 0.5), (1.0, 1.5), (1.0, 1.05), (5.0, 6.0)])
def test_in_three_cells_it_is_near_the_integral_with_uniform_cosines(
    epsilon: float, separation: float
) -> None:
    a = epsilon / separation

    def at(radius: float) -> float:
        middle = (1.0 - a * a) * separation / (2.0 * radius)
        below, above = np.clip([(1.0 + middle - a) / 2.0, (1.0 - middle - a) / 2.0], 0.0, 1.0)
        return float((below - math.exp(epsilon) * above) * gamma_distribution.pdf(radius, 3))

    kinks = [separation * (1.0 - a) / 2.0, separation * (1.0 + a) / 2.0]
    exact = sum(
        quad(at, low, high, epsabs=0, epsrel=1e-9)[0]
        for low, high in zip([0.0, *kinks], [*kinks, 80.0], strict=True)
    )
    bound = gamma_radius_delta(epsilon, cells=3, separation=separation)
    assert exact * (1.0 - 1e-8) <= bound <= 1.06 * exact


@pytest.mark.parametrize("cells", [10, 60])
def test_draws_of_the_released_integers_lose_as_often(cells: int) -> None:
    """The set on which the loss of the vector exceeds ε, for rounded draws, which may only be nearer."""
    epsilon, separation, number = 1.0, 1.6 if cells == 10 else 3.0, 15_000
    scale, moved = 1000, np.zeros(cells)
    moved[0] = separation * scale
    with NoiseSource.insecure(5) as source:
        noise = IntegerNoise(GAMMA, Fraction(scale), cells)
        drawn = np.array([noise.draw(cells, source) for _ in range(number)], np.float64)

    def in_set(vectors: Any) -> float:
        loss = np.linalg.norm(vectors - moved, axis=1) - np.linalg.norm(vectors, axis=1)
        return float((loss > epsilon * scale).mean())

    first, second = in_set(drawn), in_set(drawn + moved)
    seen = first - math.exp(epsilon) * second
    error = math.sqrt((first + math.exp(2.0 * epsilon) * second) / number)
    bound = gamma_radius_delta(epsilon, cells=cells, separation=separation)
    assert seen - 5.0 * error < bound < seen + 5.0 * error + 0.02 * bound


@pytest.mark.parametrize("cells", [2, 3, 17, 300, GAMMA_MOST_CELLS])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_the_least_scale_keeps_delta_and_is_no_larger_than_pure_epsilon_needs(
    cells: int, epsilon: float
) -> None:
    scale = gamma_radius_scale(epsilon, 1e-6, cells=cells)
    assert gamma_radius_delta(epsilon, cells=cells, separation=1.0 / scale) <= 1e-6
    assert scale <= 1.0101 / epsilon
    less = gamma_radius_delta(epsilon, cells=cells, separation=1.001 / (scale * 0.99))
    assert less > 1e-6 or scale > 0.99 / epsilon


@pytest.mark.parametrize("cells", [1, GAMMA_MOST_CELLS + 1])
def test_other_numbers_of_cells_are_refused(cells: int) -> None:
    with pytest.raises(ClaimError, match="for 2 to"):
        gamma_radius_delta(1.0, cells=cells, separation=2.0)


@pytest.mark.parametrize(("cells", "most"), [(10, 0.86), (20, 0.74), (45, 0.88), (100, 0.96)])
@pytest.mark.parametrize("relation", Relation)
def test_it_is_taken_where_it_adds_less(cells: int, most: float, relation: Relation) -> None:
    moved = Sensitivity(l1=math.isqrt(cells << 20), l2_squared=1 << 20, largest=1 << 10)
    change = UnitChange.of_records(moved, None, relation)
    promise = Promise.of(epsilon=1.0, delta=1e-6)
    chosen = calibrate(promise, change, cells=cells)
    gaussian = calibrate(promise, change, cells=cells, mechanism=GAUSSIAN)
    pure = calibrate(Promise.of(epsilon=1.0), change, cells=cells)
    assert chosen.table.mechanism == GAMMA
    assert chosen.keeps(promise) == promise
    # The count takes more from it than from Gaussian noise, where it is paid.
    least = min(gaussian.table.variance, pure.table.variance)
    assert chosen.table.variance < (most + (0.1 if change.count else 0.0)) * least
    if change.count:
        assert chosen.count.variance == pytest.approx(gaussian.count.variance, rel=1e-2)


def released(**options: Any) -> Any:
    rng = np.random.default_rng(1)
    tally = hs.fourier_features(hs.GaussianKernel(dim=2, bandwidth=1.0), features=20)
    return tally.add(rng.normal(size=(500, 2))).release(epsilon=1.0, delta=1e-6, **options)


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_the_noise_of_a_release_keeps_its_claim_and_less_does_not(relation: str) -> None:
    f = released(relation=relation)
    assert (str(f.claim.mechanism), f.claim.delta) == (GAMMA, 1e-6)
    assert all(row.holds for row in audit_calibration(f))
    stream = io.BytesIO()
    f.save(stream)
    again: Any = hs.load(io.BytesIO(stream.getvalue()))
    np.testing.assert_array_equal(again([[0.0, 0.0]]), f([[0.0, 0.0]]))
    object.__setattr__(f, "noise", IntegerNoise(GAMMA, f.noise.parameter * Fraction(97, 100), f.noise.cells))
    assert not all(row.holds for row in audit_calibration(f))


def test_it_can_be_requested_under_delta_and_not_under_rho() -> None:
    assert str(released(mechanism=GAMMA).claim.mechanism) == GAMMA
    tally = hs.fourier_features(hs.GaussianKernel(dim=2, bandwidth=1.0), features=2000)
    with pytest.raises(ClaimError, match="2 to 1024 cells"):
        tally.release(epsilon=1.0, delta=1e-6, mechanism=GAMMA)
    with pytest.raises(ClaimError, match="with or without delta"):
        tally.release(rho=0.1, mechanism=GAMMA)


def test_errors_of_answers_are_those_of_the_noise() -> None:
    errors, bars = [], []
    exact: Any = released(mechanism=GAUSSIAN, insecure_noise_seed=0)
    queries = np.random.default_rng(2).normal(size=(5, 2))
    for seed in range(300):
        f: Any = released(insecure_noise_seed=seed)
        errors.append(f.sum(queries))
        bars.append(
            math.sqrt(f.noise.variance * float(f.reading.noise_gain(f.basis.prepare_queries(queries))[0]))
        )
    assert np.std(errors, axis=0).mean() == pytest.approx(bars[0], rel=0.1)
    assert exact.noise.variance > 1.05 * f.noise.variance
