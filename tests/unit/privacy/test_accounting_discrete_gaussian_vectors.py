"""The bound on δ for moved vectors against exact sums, dp_accounting and the Gaussian mechanism."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from numpy.typing import NDArray

import hushsum as hs
from hushsum.auditing import audit_calibration
from hushsum.privacy.accounting import (
    DiscreteGaussian,
    analytic_gaussian_sigma,
    vector_delta,
    vector_variances,
    zcdp_rho,
)
from hushsum.releases import NoisyTable


@cache
def masses(variance: float) -> NDArray[np.float64]:
    """The law on integers up to nine deviations and some."""
    reach = _reach(variance)
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2.0 * variance))
    law: NDArray[np.float64] = weights / weights.sum()
    return law


def _reach(variance: float) -> int:
    return 8 + math.ceil(9 * math.sqrt(variance))


def exact_delta(epsilon: float, moves: tuple[int, ...], variances: tuple[float, ...]) -> float:
    """Σ max(0, P − e^ε P') over every noise vector, from the two laws themselves."""
    here = moved = np.ones(1)
    for move, variance in zip(moves, variances, strict=True):
        law = masses(variance)
        shifted = np.zeros_like(law)
        places = np.arange(len(law)) + move
        inside = (places >= 0) & (places < len(law))
        shifted[inside] = law[places[inside]]
        here = np.multiply.outer(here, law).ravel()
        moved = np.multiply.outer(moved, shifted).ravel()
    return float(np.maximum(here - math.exp(epsilon) * moved, 0.0).sum())


@pytest.mark.parametrize(
    ("moves", "variance"), [((3,), 20.0), ((7,), 60.0), ((1, 2), 9.0), ((3, -4), 30.0), ((2, 2), 8.0)]
)
def test_is_above_the_exact_delta(moves: tuple[int, ...], variance: float) -> None:
    l2_squared = sum(move**2 for move in moves)
    for epsilon in (0.05, 0.3, 1.0, 2.5):
        exact = exact_delta(epsilon, moves, (variance,) * len(moves))
        bound = vector_delta(epsilon, l2_squared=l2_squared, cells=len(moves), variance=variance)
        assert exact * (1.0 - 1e-9) <= bound


@pytest.mark.parametrize(("moves", "count"), [((3,), 1), ((4,), 2), ((1, 2), 1)])
def test_is_above_the_exact_delta_with_a_count(moves: tuple[int, ...], count: int) -> None:
    l2_squared = sum(move**2 for move in moves)
    variances = (16.0,) * len(moves)
    for epsilon in (0.1, 0.7, 2.0):
        bound = vector_delta(
            epsilon, l2_squared=l2_squared, cells=len(moves), variance=16.0, count=count, count_variance=9.0
        )
        for moved in range(count + 1):
            exact = exact_delta(epsilon, (*moves, moved), (*variances, 9.0))
            assert exact * (1.0 - 1e-9) <= bound


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 2.0, 8.0])
def test_one_cell_on_a_fine_lattice_is_nearly_exact(epsilon: float) -> None:
    shift = 1 << 20
    variance = (analytic_gaussian_sigma(epsilon, 1e-6) * shift) ** 2
    exact = float(DiscreteGaussian(variance).divergence(np.array([epsilon]), shift)[0])
    bound = vector_delta(epsilon, l2_squared=shift**2, cells=1, variance=variance)
    assert exact * (1 - 1e-6) <= bound <= exact * (1 + 1e-3) + 1e-9


def test_agrees_with_dp_accounting_on_a_table_and_a_count() -> None:
    """The table as one Gaussian over the reals, the count as a discrete one."""
    l2_squared, cells = 1 << 40, 1000
    table, count = vector_variances(
        epsilon=1.0, delta=1e-6, l2_squared=l2_squared, cells=cells, count=1, count_share=Fraction(1, 50)
    )
    assert count is not None
    real = pld.from_gaussian_mechanism(
        math.sqrt(float(table) / l2_squared), value_discretization_interval=1e-4
    )
    whole = pld.from_discrete_gaussian_mechanism(math.sqrt(float(count)), value_discretization_interval=1e-4)
    assert real.compose(whole).get_delta_for_epsilon(1.0) == pytest.approx(1e-6, rel=0.01)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.5, 1.0, 2.0])
def test_the_variance_is_hardly_more_than_over_the_reals(epsilon: float) -> None:
    scale = 1024**2 * 4000
    table, none = vector_variances(epsilon=epsilon, delta=1e-6, l2_squared=scale, cells=8000)
    assert none is None
    best = analytic_gaussian_sigma(epsilon, 1e-6) ** 2
    assert best < float(table) / scale < best * (1.03 if epsilon > 1 else 1.002)
    assert float(table) / scale < 0.94 / (2 * zcdp_rho(epsilon, 1e-6))


def test_a_coarse_lattice_takes_the_variance_of_rho() -> None:
    rho = Fraction(zcdp_rho(1.0, 1e-6))
    table, count = vector_variances(
        epsilon=1.0, delta=1e-6, l2_squared=9000, cells=1000, count=3, count_share=Fraction(1, 50)
    )
    assert count is not None
    assert 9000 / (2 * table) + 9 / (2 * count) == rho


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("persons", [None, 3])
def test_releases_keep_the_claim_and_less_noise_does_not(relation: str, persons: int | None) -> None:
    kernel = hs.GaussianKernel(dim=3, bandwidth=1.0)
    tally = hs.fourier_features(kernel, features=500, max_per_unit=persons)
    units = None if persons is None else [0]
    tally.add([[0.0, 0.0, 0.0]], units=units)
    f = tally.release(epsilon=1.0, delta=1e-6, relation=relation)
    assert isinstance(f, NoisyTable)
    assert all(row.holds for row in audit_calibration(f))
    less = type(f.noise)(f.noise.mechanism, f.noise.parameter * Fraction(99, 100))
    object.__setattr__(f, "noise", less)
    assert not all(row.holds for row in audit_calibration(f))
