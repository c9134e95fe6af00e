"""The Gamma-radius law: doubles decide what decimals decide, error bounds hold, and the law is as stated."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, gamma, kstest

from hushsum.errors import UsageError
from hushsum.privacy import noise as module
from hushsum.privacy.noise import LazyUniform, NoiseSource, gamma_radius

SIZES = [1, 2, 3, 10, 61]
SCALES = [Fraction(1, 50), Fraction(1, 3), Fraction(22, 7), Fraction(1000), Fraction(10**9), Fraction(2**40)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("widen", [0.01, 1e9])
def test_the_exact_path_gives_the_same_draws(size: int, scale: Fraction, widen: float) -> None:
    for seed in range(4):
        fast = gamma_radius(size, scale, NoiseSource.insecure(seed))
        exact = module.gamma_radius(size, scale, NoiseSource.insecure(seed), widen=widen)
        np.testing.assert_array_equal(fast, exact)


@pytest.mark.parametrize("size", SIZES)
def test_doubles_err_less_than_their_bounds(size: int) -> None:
    """Bounds have something to spare for logarithms of other libraries, so a part of them is required."""
    shares = []
    for seed in range(100):
        source = NoiseSource.insecure(seed)
        points, mixture = module._DiscPoints.of(-(-size // 2), source), module._Mixture.of(size, source)
        vector = module._Vector(Fraction(1), points, mixture)
        cells, bounds = vector.approximate
        context = Context(prec=100)
        total = mixture.enclosed(2, context)
        for point in range(len(points.words)):
            magnitudes, quotient = points.enclosed(point, 2, context)
            length = 2 * context.sqrt(context.multiply(total.low, quotient.low))
            for i in range(2):
                exact = context.multiply(length, magnitudes[i].low)
                error = abs(float(context.subtract(Decimal(float(cells[point, i])), exact)))
                shares.append(error / bounds[point, i])
    assert 0.0 < max(shares) < 0.5


def test_logarithms_of_this_platform_are_as_good_as_assumed() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate(
        [rng.random(3000), 1.0 - 2.0 ** -rng.uniform(1, 52, 3000), 2.0 ** -rng.uniform(0, 60, 500)]
    )
    values = values[(values > 0.0) & (values < 1.0)]
    context = Context(prec=50)
    exact = [context.ln(Decimal(float(value))) for value in values]
    off = [abs(float((Decimal(float(a)) - b) / b)) for a, b in zip(np.log(values), exact, strict=True)]
    assert max(off) < module._ROUNDING / 2.0


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(3, 2), Fraction(7)])
def test_one_cell_has_the_rounded_law_of_laplace(scale: Fraction) -> None:
    source, number = NoiseSource.insecure(5), 10_000
    drawn = np.array([int(gamma_radius(1, scale, source)[0]) for _ in range(number)])
    most = math.ceil(float(scale) * math.log(number / 50))
    within = np.clip(drawn, -most, most)
    # P(|b| > k − ½) = e^(−(k − ½)/scale), half of it on each side.
    tails = np.exp(-(np.arange(1, most + 1) - 0.5) / float(scale)) / 2.0
    one_side = tails - np.append(tails[1:], 0.0)
    law = np.concatenate([one_side[::-1], [1.0 - 2.0 * tails[0]], one_side])
    assert chisquare(np.bincount(within + most), number * law).pvalue > 1e-6


def test_two_cells_have_the_density_of_their_length() -> None:
    """In whole cells of the plane, against the integral of exp(−‖b‖/scale); n is even, so that the mixture
    has its half.
    """
    scale, most, number, fine = 0.8, 3, 10_000, 40
    source = NoiseSource.insecure(6)
    drawn = np.array([gamma_radius(2, Fraction(4, 5), source) for _ in range(number)])
    offsets = (np.arange(fine) + 0.5) / fine - 0.5
    axis = (np.arange(-most, most + 1)[:, None] + offsets).ravel()
    density = np.exp(-np.hypot(axis[:, None], axis[None, :]) / scale) / (2.0 * math.pi * scale**2 * fine**2)
    law = density.reshape(2 * most + 1, fine, 2 * most + 1, fine).sum(axis=(1, 3)).ravel()
    inside = (np.abs(drawn) <= most).all(axis=1)
    places = (drawn[inside] + most) @ [2 * most + 1, 1]
    found = np.append(np.bincount(places, minlength=len(law)), number - inside.sum())
    assert chisquare(found, number * np.append(law, 1.0 - law.sum())).pvalue > 1e-6


@pytest.mark.parametrize("size", [2, 5, 60])
def test_lengths_have_a_gamma_law_and_directions_none(size: int) -> None:
    source = NoiseSource.insecure(2)
    vectors = np.array([gamma_radius(size, Fraction(10**6), source) for _ in range(2000)], np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    assert kstest(lengths, gamma(size, scale=1e6).cdf).pvalue > 1e-7
    drift = np.linalg.norm((vectors / lengths[:, None]).mean(axis=0))
    assert drift < 6.0 / np.sqrt(2000)
    # Signs are fair and independent of everything else.
    assert abs((vectors > 0).mean() - 0.5) < 3.0 / math.sqrt(vectors.size)


def test_points_on_the_edge_of_the_disc_are_decided_by_further_bits() -> None:
    # Half of 2 is a square: (x, y) = √½·(1, 1) lies on the edge, and the next bits decide.
    bits, root = 63, math.isqrt(1 << 125)
    inside = LazyUniform(root, bits, lambda i: 0), LazyUniform(root, bits, lambda i: 0)
    outside = [LazyUniform(root, bits, lambda i: (1 << 64) - 1) for _ in range(2)]
    assert module._surely_inside(*inside)
    assert inside[0].bits > bits
    assert not module._surely_inside(*outside)


def test_a_point_next_to_the_centre_or_the_edge_is_left_to_decimals() -> None:
    source = NoiseSource.insecure(1)
    mixture = module._Mixture.of(3, source)
    ends: list[Any] = [[1 << 20, 1 << 20], [(1 << 63) - 1, 1]]
    points = module._DiscPoints(
        np.array(ends, np.uint64), np.zeros(2, np.int64), np.arange(2), (source.stream(),)
    )
    cells, bounds = module._Vector(Fraction(1000), points, mixture).approximate
    assert np.isfinite(cells).all()
    assert np.isinf(bounds).all()
    vector = module._Vector(Fraction(10**6), points, mixture)
    # s = 2⁻⁸⁵ and x/√s = √½ but for the unseen bits.
    centre = 2e6 * math.sqrt(mixture.approximate[0] * 85.0 * math.log(2.0) / 2.0)
    assert vector.nearest(0) == pytest.approx(centre, rel=1e-5)
    assert 0 <= vector.nearest(2) < 10


def test_uniforms_that_doubles_cannot_hold_are_left_to_decimals() -> None:
    further = NoiseSource.insecure(1).stream()
    tiny = module._Mixture(np.array([5], np.uint64), further, None)
    full = module._Mixture(np.array([(1 << 64) - 1], np.uint64), further, None)
    assert tiny.approximate == full.approximate == (1.0, math.inf)
    near = module._Mixture(np.array([(1 << 64) - (1 << 30)], np.uint64), further, None)
    total, error = near.approximate
    assert total == pytest.approx(2.0**-34, rel=1e-8)
    assert 0.0 < error < 1e-8
    low, high = (
        module._Mixture.enclosed(tiny, 1, Context(prec=60)).low,
        module._Mixture.enclosed(full, 1, Context(prec=60)).high,
    )
    assert 42.5 < float(low) < 44.4
    assert 0.0 < float(high) < 2.0**-63


def test_a_uniform_that_may_be_0_leaves_everything_undecided() -> None:
    """However many others there are, beside which an error of a few would be nothing."""
    words = np.full(2_100_001, int(2**64 / math.e), np.uint64)
    words[7] = 0
    assert module._Mixture(words, NoiseSource.insecure(1).stream(), None).approximate == (1.0, math.inf)


def test_no_cell_is_no_draw_and_bad_parameters_are_refused() -> None:
    assert gamma_radius(0, Fraction(1), NoiseSource.insecure(1)).shape == (0,)
    with pytest.raises(UsageError, match="size must not be negative"):
        gamma_radius(-1, Fraction(1), NoiseSource.insecure(1))
    with pytest.raises(UsageError, match="scale of noise"):
        gamma_radius(1, Fraction(1 << 41), NoiseSource.insecure(1))
    with pytest.raises(UsageError, match="Fraction"):
        gamma_radius(1, 0.5, NoiseSource.insecure(1))  # type: ignore[arg-type]
