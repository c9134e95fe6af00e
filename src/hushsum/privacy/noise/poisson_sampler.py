"""Poisson variables, drawn exactly from enclosures of their distribution function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushsum.privacy.noise.decimal_intervals import Interval, decimals, exp, fraction, negative, times
from hushsum.privacy.noise.source import LazyUniform, NoiseSource

TABLE_DIGITS = 60


Mean = Callable[[int], Interval]
"""The mean of a law, enclosed with so many digits."""


@dataclass(frozen=True, slots=True)
class PoissonLaw:
    """A mean, and 64-bit bounds of the distribution function as far as 64 bits can tell."""

    mean: Mean
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]


def poisson_law(mean: Mean) -> PoissonLaw:
    """The law of a mean of at most some thousands."""
    largest, unit = (1 << 64) - 1, 1 << 64
    about = float(mean(TABLE_DIGITS).high)
    bounds = _bounds(mean, int(about + 14 * math.sqrt(about) + 24), TABLE_DIGITS)
    low = [min(math.floor(Fraction(each.low) * unit), largest) for each in bounds]
    high = [min(math.ceil(Fraction(each.high) * unit), largest) for each in bounds]
    return PoissonLaw(mean, np.array(low, np.uint64), np.array(high, np.uint64))


def poisson(size: int, law: PoissonLaw, source: NoiseSource) -> NDArray[np.int64]:
    """Independent Poisson variables: the smallest j with U < P(N ≤ j), for each of ``size`` uniforms.

    Where the first 64 bits of U leave two values possible, more bits are drawn and the bounds computed to as
    many digits.
    """
    words = source.stream().words(size)
    further = source.stream()
    numbers = np.searchsorted(law.high, words, side="right")
    within = np.minimum(numbers, len(law.low) - 1)
    doubtful = np.flatnonzero((numbers == len(law.low)) | (words >= law.low[within]))
    for index in doubtful.tolist():
        numbers[index] = _decide(law, LazyUniform(int(words[index]), 64, further.more_bits(index)))
    return numbers.astype(np.int64)


@lru_cache(maxsize=64)
def _bounds(mean: Mean, number: int, digits: int) -> list[Interval]:
    """Bounds of P(N ≤ j) for j from 0 to ``number − 1``."""
    context = decimals(digits + 20)
    enclosed = mean(digits)
    term = exp(negative(enclosed), context)
    bounds = [term]
    for j in range(1, number):
        term = times(times(term, enclosed, context), fraction(Fraction(1, j), context), context)
        low = context.next_minus(context.add(bounds[-1].low, term.low))
        high = context.next_plus(context.add(bounds[-1].high, term.high))
        bounds.append(Interval(low, min(high, Decimal(1))))
    return bounds


def _decide(law: PoissonLaw, uniform: LazyUniform) -> int:
    number = len(law.low)
    while True:
        digits = uniform.bits // 3 + 40
        scale = 1 << uniform.bits
        for j, bound in enumerate(_bounds(law.mean, number, digits)):
            if uniform.prefix + 1 <= Fraction(bound.low) * scale:
                return j
            if uniform.prefix < Fraction(bound.high) * scale:
                break  # U may lie on either side
        uniform.refine()
        number *= 2
