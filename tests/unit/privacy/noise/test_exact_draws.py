"""What doubles decide is what integers decide, bit for bit; limits and rules of the two samplers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushsum._native import NOISE_CHUNK, StreamKey, fill_laplace
from hushsum.errors import UsageError
from hushsum.privacy.noise import (
    LazyUniform,
    NoiseSource,
    decide_acceptance,
    decide_magnitude,
    discrete_gaussian,
    discrete_laplace,
    gaussian_variance,
    laplace_shape,
    laplace_variance,
    wrapped,
)

SCALES = [
    Fraction(1, 50),
    Fraction(1, 3),
    Fraction(1),
    Fraction(22, 7),
    Fraction(1000),
    Fraction(10**9),
    Fraction(2**40),
]
VARIANCES = [
    Fraction(1, 1000),
    Fraction(1, 3),
    Fraction(1),
    Fraction(7, 2),
    Fraction(130**2),
    Fraction(2**43),
    Fraction(10**14),
]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("widen", [0.01, 1e9])
def test_exact_path_gives_the_same_laplace_draws(scale: Fraction, widen: float) -> None:
    fast = discrete_laplace(1500, scale, NoiseSource.insecure(3))
    exact = discrete_laplace(1500, scale, NoiseSource.insecure(3), widen=widen)
    np.testing.assert_array_equal(fast, exact)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("widen", [0.01, 1e9])
def test_exact_path_gives_the_same_gaussian_draws(variance: Fraction, widen: float) -> None:
    fast = discrete_gaussian(1000, variance, NoiseSource.insecure(4))
    exact = discrete_gaussian(1000, variance, NoiseSource.insecure(4), widen=widen)
    np.testing.assert_array_equal(fast, exact)


def test_margins_are_needed() -> None:
    """Doubles alone would be wrong at a large scale: the comparisons above can fail."""
    exact = discrete_laplace(20_000, Fraction(2**40), NoiseSource.insecure(9))
    careless = discrete_laplace(20_000, Fraction(2**40), NoiseSource.insecure(9), widen=-9.0)
    assert 5 < np.count_nonzero(exact != careless) < 200


def words_of(value: int, bits: int) -> Callable[[int], int]:
    """The bits of a long uniform after its first ``bits``, in groups of 64, then zeros."""

    def more(i: int) -> int:
        return (value << 4096) >> (4096 + 1024 - bits - 64 * (i + 1)) & (1 << 64) - 1

    return more


@settings(deadline=None)
@given(
    st.integers(min_value=1, max_value=2**1024 - 1),
    st.sampled_from([1, 4, 17, 52]),
    st.sampled_from(SCALES[:6]),
)
def test_short_prefixes_give_the_same_magnitude(value: int, bits: int, scale: Fraction) -> None:
    shape = laplace_shape(scale)
    lazy = decide_magnitude(shape, LazyUniform(value >> (1024 - bits), bits, words_of(value, bits)))
    whole = decide_magnitude(shape, LazyUniform(value >> (1024 - 300), 300, words_of(value, 300)))
    assert lazy == whole


@settings(deadline=None)
@given(
    st.integers(min_value=0, max_value=2**1024 - 1),
    st.sampled_from([0, 4, 32]),
    st.fractions(min_value=0, max_value=30, max_denominator=1000),
)
def test_short_prefixes_give_the_same_acceptance(value: int, bits: int, exponent: Fraction) -> None:
    lazy = decide_acceptance(exponent, LazyUniform(value >> (1024 - bits), bits, words_of(value, bits)))
    whole = decide_acceptance(exponent, LazyUniform(value >> (1024 - 300), 300, words_of(value, 300)))
    assert lazy is whole


@pytest.mark.parametrize("scale", SCALES[1:6])
def test_magnitudes_cut_the_unit_interval_at_the_survival_function(scale: Fraction) -> None:
    """Over all 10-bit prefixes followed by zeros: the largest k with U < T_k, T_k from the float formula."""
    shape = laplace_shape(scale)

    def survival(k: int) -> float:
        return 2 * math.exp(-k / float(scale)) / (1 + math.exp(-1 / float(scale)))

    for prefix in range(1, 1024):
        u = prefix / 1024
        k = decide_magnitude(shape, LazyUniform(prefix, 10, lambda _: 0))
        assert k == 0 or u < survival(k) * (1 + 1e-13)
        assert u >= survival(k + 1) * (1 - 1e-13)


def test_a_zero_prefix_takes_more_bits() -> None:
    requested: list[int] = []

    def more(i: int) -> int:
        requested.append(i)
        return 0 if i < 2 else 1 << 63

    magnitude = decide_magnitude(laplace_shape(Fraction(10)), LazyUniform(0, 52, more))
    assert requested[:3] == [0, 1, 2]
    # U = 2^-181: |Z| = floor(1/2 - 1/80 + 10 · 181 ln 2), up to rounding far from an integer.
    assert magnitude == 1255


def test_wrapping_is_modulo_two_to_the_64() -> None:
    assert wrapped(2**63) == -(2**63)
    assert wrapped(-(2**63) - 1) == 2**63 - 1
    assert wrapped(-5) == -5


def test_an_error_in_the_exact_path_leaves_no_draws() -> None:
    values = np.full(10, 7, dtype=np.int64)

    def fails(index: int, word: int, acceptance: int) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fill_laplace(StreamKey(), 0, values, 1000.0, 0.5, 1e9, 2, fails)
    np.testing.assert_array_equal(values, np.zeros(10))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 129, NOISE_CHUNK, NOISE_CHUNK + 1])
def test_sizes(size: int) -> None:
    laplace = discrete_laplace(size, Fraction(50), NoiseSource.insecure(1))
    gaussian = discrete_gaussian(size, Fraction(50), NoiseSource.insecure(1))
    assert laplace.shape == gaussian.shape == (size,)
    assert laplace.dtype == gaussian.dtype == np.int64
    longer = discrete_laplace(size + 5, Fraction(50), NoiseSource.insecure(1))
    np.testing.assert_array_equal(longer[:size], laplace)


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**40 + 1), Fraction(1, 2**41)])
def test_scale_out_of_range_is_refused(scale: Fraction) -> None:
    with pytest.raises(UsageError, match="the scale of noise must be from"):
        discrete_laplace(1, scale, NoiseSource.insecure(1))


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(2**78 + 1), Fraction(1, 2**41)])
def test_variance_out_of_range_is_refused(variance: Fraction) -> None:
    with pytest.raises(UsageError, match="the variance of noise must be from"):
        discrete_gaussian(1, variance, NoiseSource.insecure(1))


def test_other_rules() -> None:
    source = NoiseSource.insecure(1)
    with pytest.raises(UsageError, match="scale must be a Fraction or an integer, got float"):
        discrete_laplace(1, 1.5, source)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="size must not be negative, got -1"):
        discrete_laplace(-1, Fraction(1), source)
    with pytest.raises(UsageError, match="threads must be at least 1, got 0"):
        discrete_gaussian(1, Fraction(1), source, threads=0)


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_variance_is_the_sum(scale: Fraction) -> None:
    q = math.exp(-1 / float(scale))
    if scale < 10**4:
        weights = [q**z for z in range(1, int(60 * scale) + 60)]
        direct = 2 * sum(z * z * weight for z, weight in enumerate(weights, 1)) * (1 - q) / (1 + q)
    else:
        direct = 2 * float(scale) ** 2
    assert laplace_variance(scale) == pytest.approx(direct, rel=1e-9, abs=0)


@pytest.mark.parametrize("variance", [*VARIANCES[:5], Fraction(999, 1000), Fraction(1001, 1000)])
def test_gaussian_variance_is_the_sum(variance: Fraction) -> None:
    v = float(variance)
    weights = [math.exp(-z * z / (2 * v)) for z in range(1, int(40 * math.sqrt(v)) + 10)]
    direct = 2 * math.fsum(z * z * w for z, w in enumerate(weights, 1)) / (1 + 2 * math.fsum(weights))
    assert gaussian_variance(variance) == pytest.approx(direct, rel=1e-12, abs=0)
