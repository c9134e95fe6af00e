"""The bounds of e^(-x) enclose it, are narrow, and agree with the decimal module's correctly rounded exp."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hushsum.privacy.noise import exponential_bounds

WIDE = Context(prec=400, Emin=-(10**9), Emax=10**9)


def enclosure(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """``e^(-x) · 2^bits`` between two fractions, from the decimal module at 400 digits.

    The argument is rounded once (relative 10^-399), the result once; 10^-380 covers both for x below 10^10.
    """
    argument = WIDE.divide(Decimal(-x.numerator), Decimal(x.denominator))
    value = Fraction(WIDE.exp(argument)) * 2**bits
    slack = Fraction(1, 10**380)
    return value * (1 - slack), value * (1 + slack)


@pytest.mark.parametrize(
    "x",
    [
        Fraction(1),
        Fraction(1, 1000),
        Fraction(1, 2**40),
        Fraction(1, 3),
        Fraction(50),
        Fraction(127, 128),
        Fraction(128),
        Fraction(299),
        Fraction(301),
        Fraction(5000, 7),
        Fraction(10**6, 7),
        Fraction(2**40),
    ],
)
@pytest.mark.parametrize("bits", [4, 53, 116, 300])
def test_bounds_enclose(x: Fraction, bits: int) -> None:
    low, high = exponential_bounds(x, bits)
    if x < 1000:
        real_low, real_high = enclosure(x, bits)
        assert low <= real_low <= real_high <= high
    else:
        assert low == 0
        assert high == 1
    assert high - low <= 2


@settings(deadline=None)
@given(
    st.fractions(min_value=0, max_value=400, max_denominator=10**12), st.integers(min_value=1, max_value=300)
)
def test_bounds_enclose_anywhere(x: Fraction, bits: int) -> None:
    low, high = exponential_bounds(x, bits)
    real_low, real_high = enclosure(x, bits)
    assert low <= real_high
    assert real_low <= high
    assert 0 <= low <= high <= 2**bits
    assert high - low <= 2


@given(
    st.fractions(min_value=0, max_value=100, max_denominator=10**6), st.integers(min_value=8, max_value=200)
)
def test_more_bits_refine_the_same_number(x: Fraction, bits: int) -> None:
    low, high = exponential_bounds(x, bits)
    finer_low, finer_high = exponential_bounds(x, bits + 64)
    assert low << 64 <= finer_high
    assert finer_low <= high << 64


@given(st.fractions(min_value=0, max_value=100), st.fractions(min_value=0, max_value=100))
def test_bounds_are_monotone(a: Fraction, b: Fraction) -> None:
    smaller, larger = sorted((a, b))
    assert exponential_bounds(larger, 96)[0] <= exponential_bounds(smaller, 96)[1]


def test_zero_is_exact() -> None:
    assert exponential_bounds(Fraction(0), 300) == (2**300, 2**300)


def test_negative_argument_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        exponential_bounds(Fraction(-1), 8)
