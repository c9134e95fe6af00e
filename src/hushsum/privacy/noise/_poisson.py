"""Poisson and Skellam noise, and shares of Laplace noise, drawn exactly with intervals of decimals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import UsageError

from ._samplers import LARGEST_SCALE, discrete_laplace, wrapped
from ._source import LazyUniform, NoiseSource, check_draw, check_parameter


@dataclass(frozen=True, slots=True)
class Interval:
    """A real number between two decimals; those of products, quotients and roots are positive."""

    low: Decimal
    high: Decimal

    @classmethod
    def around(cls, low: Decimal, high: Decimal, context: Context) -> Interval:
        """What lies between two numbers that were rounded correctly: their neighbours enclose the exact
        ones. The decimal module rounds exponentials, logarithms and roots correctly too.
        """
        return cls(context.next_minus(low), context.next_plus(high))

    @classmethod
    def between(cls, low: int, high: int, unit: int, context: Context) -> Interval:
        """The numbers from ``low/unit`` to ``high/unit``."""
        one = Decimal(unit)
        return cls.around(context.divide(Decimal(low), one), context.divide(Decimal(high), one), context)

    def exp(self, context: Context) -> Interval:
        """The exponential."""
        return Interval.around(context.exp(self.low), context.exp(self.high), context)

    def ln(self, context: Context) -> Interval:
        """The natural logarithm."""
        return Interval.around(context.ln(self.low), context.ln(self.high), context)

    def root(self, context: Context) -> Interval:
        """The square root."""
        return Interval.around(context.sqrt(self.low), context.sqrt(self.high), context)

    def times(self, other: Interval, context: Context) -> Interval:
        """The product."""
        low, high = context.multiply(self.low, other.low), context.multiply(self.high, other.high)
        return Interval.around(low, high, context)

    def over(self, other: Interval, context: Context) -> Interval:
        """The quotient."""
        low, high = context.divide(self.low, other.high), context.divide(self.high, other.low)
        return Interval.around(low, high, context)

    def plus(self, other: Interval, context: Context) -> Interval:
        """The sum."""
        low, high = context.add(self.low, other.low), context.add(self.high, other.high)
        return Interval.around(low, high, context)

    def negative(self) -> Interval:
        """The number with the other sign."""
        return Interval(self.high.copy_negate(), self.low.copy_negate())

    def not_negative(self) -> Interval:
        """The interval of a number that is known to be at least 0."""
        return Interval(max(self.low, Decimal(0)), self.high)


def decimals(digits: int) -> Context:
    """Decimal arithmetic of this precision that never overflows."""
    return Context(prec=digits, Emin=-(10**17), Emax=10**17, traps=[])


def fraction(value: Fraction, context: Context) -> Interval:
    """A rational number."""
    return Interval.between(value.numerator, value.numerator, value.denominator, context)


_ONE = Interval(Decimal(1), Decimal(1))


TABLE_DIGITS = 60


Mean = Callable[[int], Interval]
"""The mean of a distribution, enclosed with the given number of digits."""


@dataclass(frozen=True, slots=True)
class PoissonDistribution:
    """A mean, and 64-bit bounds of the distribution function as far as 64 bits can tell."""

    mean: Mean
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]


def poisson_distribution(mean: Mean) -> PoissonDistribution:
    """The distribution of a mean of at most some thousands."""
    largest, unit = (1 << 64) - 1, 1 << 64
    about = float(mean(TABLE_DIGITS).high)
    bounds = _bounds(mean, int(about + 14 * math.sqrt(about) + 24), TABLE_DIGITS)
    low = [min(math.floor(Fraction(each.low) * unit), largest) for each in bounds]
    high = [min(math.ceil(Fraction(each.high) * unit), largest) for each in bounds]
    return PoissonDistribution(mean, np.array(low, np.uint64), np.array(high, np.uint64))


def poisson(size: int, distribution: PoissonDistribution, source: NoiseSource) -> NDArray[np.int64]:
    """Independent Poisson variables: the smallest j with U < P(N ≤ j), for each of ``size`` uniforms.

    Where the first 64 bits of U leave two values possible, more bits are drawn and the bounds computed to as
    many digits.
    """
    words = source.stream().words(size)
    further = source.stream()
    numbers = np.searchsorted(distribution.high, words, side="right")
    within = np.minimum(numbers, len(distribution.low) - 1)
    doubtful = np.flatnonzero((numbers == len(distribution.low)) | (words >= distribution.low[within]))
    for index in doubtful.tolist():
        numbers[index] = _decide(distribution, LazyUniform(int(words[index]), 64, further.more_bits(index)))
    return numbers.astype(np.int64)


@lru_cache(maxsize=64)
def _bounds(mean: Mean, number: int, digits: int) -> list[Interval]:
    """Bounds of P(N ≤ j) for j from 0 to ``number − 1``."""
    context = decimals(digits + 20)
    enclosed = mean(digits)
    term = enclosed.negative().exp(context)
    bounds = [term]
    for j in range(1, number):
        term = term.times(enclosed, context).times(fraction(Fraction(1, j), context), context)
        total = bounds[-1].plus(term, context)
        bounds.append(Interval(total.low, min(total.high, Decimal(1))))
    return bounds


def _decide(distribution: PoissonDistribution, uniform: LazyUniform) -> int:
    number = len(distribution.low)
    while True:
        digits = uniform.bits // 3 + 40
        scale = 1 << uniform.bits
        for j, bound in enumerate(_bounds(distribution.mean, number, digits)):
            if uniform.prefix + 1 <= Fraction(bound.low) * scale:
                return j
            if uniform.prefix < Fraction(bound.high) * scale:
                break  # U may lie on either side
        uniform.refine()
        number *= 2


SMALLEST_SKELLAM = Fraction(1, 1 << 20)
LARGEST_SKELLAM = Fraction(1 << 12)


def skellam(size: int, variance: Fraction, source: NoiseSource, *, threads: int = 1) -> NDArray[np.int64]:
    """Independent integers A − B with A and B Poisson of mean ``variance/2``, exactly.

    Draws add up to Skellam variables: n of one variance add up to one of n times the variance. This
    makes the distribution suitable for noise in shares, however small a share is.

    Limits: variances from 2⁻²⁰ to 2¹².

    Parameters
    ----------
    size : int
        Number of draws.
    variance : Fraction
        The sum of both means.
    source : NoiseSource
        The randomness of this release; the call takes four streams from it.

    References
    ----------
    Agarwal, Kairouz & Liu 2021, "The Skellam mechanism for differentially private federated learning".

    Examples
    --------
    >>> skellam(5, Fraction(1, 2), NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    distribution = _half(check_parameter("variance", variance, SMALLEST_SKELLAM, LARGEST_SKELLAM))
    gained, lost = poisson(size, distribution, source), poisson(size, distribution, source)
    return gained - lost


@lru_cache(maxsize=64)
def _half(variance: Fraction) -> PoissonDistribution:
    return poisson_distribution(partial(_mean, variance / 2))


def _mean(mean: Fraction, digits: int) -> Interval:
    return fraction(mean, decimals(digits + 20))


SMALLEST_SHARED_SCALE = Fraction(1, 64)
MOST_PARTS = 1 << 20
_BITS = 52
# Prefixes of a uniform below this are left to the exact path, where first-order error bounds are not used.
_FEWEST = 1 << 20
_CELLS_AT_A_TIME = 1 << 18


def discrete_laplace_share(
    size: int, scale: Fraction, parts: int, source: NoiseSource, *, threads: int = 1, widen: float = 1.0
) -> NDArray[np.int64]:
    """Independent integers, ``parts`` of which add up to the discrete Laplace distribution of ``scale``,
    exactly.

    Each is the difference of two negative binomials NB(1/parts, q), ``q = exp(−1/scale)``, whose generating
    function ``((1−q)/(1−qz))^(1/parts)``, raised to ``parts``, is that of the geometric distribution; and
    discrete Laplace noise is the difference of two geometric variables.

    Limits: scales from 1/64 to 2⁴⁰, up to 2²⁰ parts. Above a scale of 10⁹ the exact path is taken more and
    more often.

    *Why it is exact.* With ``c = −ln(1−q)``, ``ln`` of the generating function of NB(r, q) is ``r·c·(G(z) −
    1)``, G that of the logarithmic distribution ``P(L = k) = q^k/(k·c)``. So the difference of two is a sum
    of N such variables with independent random signs, N ~ Poisson(2c/parts). N is read off a uniform by
    proven bounds of the Poisson distribution's distribution function. Given a uniform U, L is geometric:
    ``P(L > k) = W^k`` with ``W = 1 − (1−q)^U`` (Kemp 1981; integrate ``W^(k−1)(1−W)`` over U, by the
    substitution ``y = (1−q)^U``). So ``L = 1 + ⌊ln V/ln W⌋`` for a second uniform V: decided in doubles from
    the first 52 bits of U and V outside a margin for all rounding errors and unseen bits, and within it by
    `_decide_logarithmic`, which draws further bits until intervals of correctly rounded decimals leave one
    integer.

    Parameters
    ----------
    size : int
        Number of draws.
    scale : Fraction
        That of the sum: sensitivity Δ1 divided by ε.
    parts : int
        How many draws add up to it.
    source : NoiseSource
        The randomness of this release; the call takes some streams from it.
    widen : float
        For tests: above 1 draws that doubles could decide take the exact path as well, which must not change
        them.

    References
    ----------
    Ács & Castelluccia 2011 and Goryczka & Xiong 2015 (divisible noise); Kemp 1981 (the logarithmic
    distribution).

    Examples
    --------
    >>> discrete_laplace_share(5, Fraction(1000), 20, NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    scale = check_parameter("scale", scale, SMALLEST_SHARED_SCALE, LARGEST_SCALE)
    if type(parts) is not int or not 1 <= parts <= MOST_PARTS:
        raise UsageError("parts", f"must be an integer from 1 to {MOST_PARTS}", got=f"{parts}")
    if parts == 1:
        return discrete_laplace(size, scale, source, threads=threads)
    distribution = _share_distribution(scale, parts)
    values = np.empty(size, np.int64)
    for start in range(0, size, _CELLS_AT_A_TIME):
        many = min(_CELLS_AT_A_TIME, size - start)
        numbers = poisson(many, distribution.number, source)
        ends = np.cumsum(numbers)
        terms = _signed_logarithmic(int(ends[-1]), distribution, source, widen)
        # Differences of running sums; what wraps around wraps back.
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(terms)])
        values[start : start + many] = sums[ends] - sums[ends - numbers]
    return values


@dataclass(frozen=True, slots=True)
class _ShareDistribution:
    """``scale``, c rounded to a double, and the distribution of the number of terms."""

    scale: Fraction
    rate: float
    number: PoissonDistribution


@lru_cache(maxsize=64)
def _loss_rate(scale: Fraction, digits: int) -> Interval:
    """c = −ln(1 − exp(−1/scale))."""
    # 1 − q loses as many digits as 1/scale is small.
    context = decimals(digits + 20)
    kept = fraction(1 / scale, context).negative().exp(context)
    return _ONE.plus(kept.negative(), context).ln(context).negative()


def _steps(scale: Fraction, parts: int, digits: int) -> Interval:
    """2c/parts, the mean of the number of terms."""
    context = decimals(digits + 20)
    return _loss_rate(scale, digits).times(fraction(Fraction(2, parts), context), context)


@lru_cache(maxsize=64)
def _share_distribution(scale: Fraction, parts: int) -> _ShareDistribution:
    rate = _loss_rate(scale, TABLE_DIGITS)
    return _ShareDistribution(scale, float(rate.low), poisson_distribution(partial(_steps, scale, parts)))


def _signed_logarithmic(
    size: int, distribution: _ShareDistribution, source: NoiseSource, widen: float
) -> NDArray[np.int64]:
    first, second = source.stream().words(size), source.stream().words(size)
    further = source.stream()
    u, v = first & np.uint64((1 << _BITS) - 1), second & np.uint64((1 << _BITS) - 1)
    quotient, margin = _quotients(u, v, distribution.rate)
    below = np.floor(quotient - widen * margin)
    # A huge margin compares false as well as a missing one.
    sure = (below == np.floor(quotient + widen * margin)) & (u >= _FEWEST) & (v >= _FEWEST)
    values = np.where(sure, below, 0.0).astype(np.int64) + 1
    for index in np.flatnonzero(~sure).tolist():
        uniforms = (
            LazyUniform(int(u[index]), _BITS, further.more_bits(index)),
            LazyUniform(int(v[index]), _BITS, further.more_bits(index, acceptance=True)),
        )
        values[index] = wrapped(_decide_logarithmic(distribution, *uniforms))
    return np.where(first >> np.uint64(63), -values, values)


def _quotients(u: NDArray[np.uint64], v: NDArray[np.uint64], rate: float) -> tuple[Floats, Floats]:
    """``ln V/ln W`` at the middles of what U and V may be, and twice a bound on its error.

    With ``a = c·U`` and ``g(a) = −ln(1 − e^(−a))``: an error of η of a moves g by ``(a + 3/2)·η`` of itself
    at most, since ``|a·g'/g| = a/((e^a − 1)·g) ≤ a + 1``. Either formula for g is within 2⁻⁴⁸ of itself if
    the library's functions are within 8 units in the last place. V is off by 2⁻⁵³ at most.
    """
    U, V = (u + 0.5) * 2.0**-_BITS, (v + 0.5) * 2.0**-_BITS
    a = rate * U
    with np.errstate(divide="ignore", invalid="ignore"):
        falls = np.where(a < math.log(2.0), -np.log(-np.expm1(-a)), -np.log1p(-np.exp(-a)))
        quotient = -np.log(V) / falls
        off = (a + 1.5) * (2.0**-53 / U + 2.0**-51) + 2.0**-47
        return quotient, 2.0 * (2.0**-53 / (V * falls) + quotient * off)


def _decide_logarithmic(distribution: _ShareDistribution, first: LazyUniform, second: LazyUniform) -> int:
    """``1 + ⌊ln V/ln W⌋``, refining U and V until the bounds leave one integer."""
    while True:
        digits = first.bits // 3 + 40
        context = decimals(digits)
        if first.prefix and second.prefix and second.prefix + 1 < 1 << second.bits:
            unit = 1 << first.bits
            U, V = (Interval.between(each.prefix, each.prefix + 1, unit, context) for each in (first, second))
            power = _loss_rate(distribution.scale, digits).times(U, context).negative().exp(context)
            falls = _ONE.plus(power.negative(), context).ln(context).negative()
            tall = V.ln(context).negative()
            if falls.low > 0 and tall.low >= 0:
                quotient = tall.over(falls, context)
                if math.floor(quotient.low) == math.floor(quotient.high):
                    return 1 + math.floor(quotient.low)
        first.refine()
        second.refine()
