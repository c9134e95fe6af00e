"""How large a path must be: the analytic scale, the published one, and the same on a lattice."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hushsum.errors import ClaimError
from hushsum.privacy import (
    LatticePart,
    Promise,
    lattice_variance,
    lattice_variances,
    path_scale,
    perturb_lattice,
)
from hushsum.privacy.accounting import gaussian_delta, rounding_gap, zcdp_rho


@pytest.mark.parametrize("epsilon", [0.1, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_analytic_scale_keeps_the_claim_and_hardly_more(epsilon: float, delta: float) -> None:
    scale = path_scale(2.0, Promise.of(epsilon=epsilon, delta=delta))
    assert gaussian_delta(epsilon, 2.0 / scale) <= delta
    assert gaussian_delta(epsilon, 2.0 / (0.999 * scale)) > delta


def test_the_published_scale_is_larger_and_ends_at_one() -> None:
    for epsilon in (0.1, 1.0):
        promise = Promise.of(epsilon=epsilon, delta=1e-4)
        published = path_scale(1.0, promise, calibration="as-published")
        assert published == pytest.approx(math.sqrt(2.0 * math.log(2.0 / 1e-4)) / epsilon)
        assert published > path_scale(1.0, promise)
    with pytest.raises(ClaimError, match="up to 1"):
        path_scale(1.0, Promise.of(epsilon=1.1, delta=1e-4), calibration="as-published")


def test_a_path_needs_delta_and_a_known_calibration() -> None:
    with pytest.raises(ClaimError, match="delta"):
        path_scale(1.0, Promise.of(epsilon=1.0))
    with pytest.raises(ClaimError, match="calibration"):
        path_scale(1.0, Promise.of(epsilon=1.0, delta=1e-6), calibration="loose")


@pytest.mark.parametrize("variance", [1, 4, 30, 900])
def test_the_rounding_gap_bounds_the_distance_of_the_two_laws(variance: int) -> None:
    from scipy.special import ndtr

    sigma = math.sqrt(variance)
    z = np.arange(-int(40 * sigma) - 1, int(40 * sigma) + 2)
    discrete = np.exp(-(z**2) / (2.0 * variance))
    discrete /= discrete.sum()
    rounded = ndtr((z + 0.5) / sigma) - ndtr((z - 0.5) / sigma)
    distance = 0.5 * float(np.abs(discrete - rounded).sum())
    assert 0.3 * rounding_gap(1, Fraction(variance)) < distance <= rounding_gap(1, Fraction(variance))


def test_a_fine_lattice_takes_the_analytic_variance_and_a_coarse_one_that_of_rho() -> None:
    promise = Promise.of(epsilon=1.0, delta=1e-6)
    fine = float(lattice_variance(1 << 24, 1000, promise)) / (1 << 48)
    assert path_scale(1.0, promise) ** 2 < fine < 1.001 * path_scale(1.0, promise) ** 2
    coarse = lattice_variance(1, 1000, promise)
    assert coarse == 1 / (2 * Fraction(zcdp_rho(1.0, 1e-6)))
    assert float(coarse) > fine


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-8, 1e-11])
def test_a_fine_and_a_coarse_lattice_together_keep_one_promise(epsilon: float, delta: float) -> None:
    promise = Promise.of(epsilon=epsilon, delta=delta)
    parts = [LatticePart(1 << 40, 33), LatticePart(1 << 34, 1 << 15)]
    variances = lattice_variances(parts, promise)
    rho = sum(Fraction(each.l2_squared) / (2 * own) for each, own in zip(parts, variances, strict=True))
    gap = sum(rounding_gap(each.cells, own) for each, own in zip(parts, variances, strict=True))
    over_the_reals = gaussian_delta(epsilon, math.sqrt(2.0 * float(rho)))
    # Two proofs, and one of them must hold for all parts: one part under each of them is covered by none.
    assert rho <= zcdp_rho(epsilon, delta) or over_the_reals + (1.0 + math.exp(epsilon)) * gap <= delta


def test_the_noise_on_the_lattice_has_that_variance() -> None:
    # 4·10⁴ draws: the sample variance is within 5 of its standard errors but once in 10⁶ seeds; one is fixed.
    drawn = perturb_lattice(np.zeros(40_000, np.int64), Fraction(1 << 40), insecure_noise_seed=3)
    assert abs(float(np.var(drawn)) / (1 << 40) - 1.0) < 5.0 * math.sqrt(2.0 / 40_000)
