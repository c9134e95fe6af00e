"""Cosine, sine and exponential from correctly rounded operations alone.

What a record adds to a tally must depend on that record alone, bit for bit: not on its place in a batch, the
length of a vector register or the library at hand. Addition, multiplication and rounding are the same
everywhere; a library's ``cos`` and ``exp`` are not. Everything is elementwise.
"""

from __future__ import annotations

import math

import numpy as np

from hushsum._types import Floats

_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(10)]
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(10)]
_EXPONENTIAL = [1.0 / math.factorial(k) for k in range(15)]
_LOG2_E = 1.4426950408889634
# ln 2 in two parts: the product of the first with any exponent here is exact.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_VANISHES = 800.0


def cosine_and_sine(turns: Floats) -> tuple[Floats, Floats]:
    """cos(2πt) and sin(2πt), within 2⁻⁵⁰; the sum of their squares is within 2⁻⁴⁹ of 1.

    >>> cosine, sine = cosine_and_sine(np.array([0.0, 0.25, 1e6 + 0.5]))
    >>> cosine.tolist(), sine.tolist()
    ([1.0, 0.0, -1.0], [0.0, 1.0, 0.0])
    """
    fraction = turns - np.rint(turns)
    quarter = np.rint(4.0 * fraction)
    angle = (fraction - 0.25 * quarter) * (2.0 * math.pi)
    square = angle * angle
    cosine = _polynomial(square, _COSINE)
    sine = angle * _polynomial(square, _SINE)
    odd = np.abs(quarter) == 1.0
    upper = np.where(odd, -sine * quarter, np.where(quarter == 0.0, cosine, -cosine)) + 0.0
    right = np.where(odd, cosine * quarter, np.where(quarter == 0.0, sine, -sine)) + 0.0
    return upper, right


def exponential_of_minus(x: Floats) -> Floats:
    """exp(−x) for x ≥ 0, within a relative 2⁻⁵⁰; 0 beyond 800.

    >>> exponential_of_minus(np.array([0.0, 1.0, 1e30])).round(6).tolist()
    [1.0, 0.367879, 0.0]
    """
    bounded = np.minimum(x, _VANISHES)
    halvings = np.rint(bounded * _LOG2_E)
    rest = (halvings * _LN2_HIGH - bounded) + halvings * _LN2_LOW
    return np.ldexp(_polynomial(rest, _EXPONENTIAL), -halvings.astype(np.int32))


def _polynomial(x: Floats, coefficients: list[float]) -> Floats:
    value = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        value *= x
        value += c
    return value
