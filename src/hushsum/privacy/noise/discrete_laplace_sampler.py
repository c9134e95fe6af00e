"""The discrete Laplace law, P(z) ∝ exp(−|z|/scale), drawn exactly by proven bounds of exponentials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushsum._native import fill_laplace
from hushsum.privacy.noise.source import LazyUniform, NoiseSource, check_draw, check_parameter

LARGEST_SCALE = Fraction(1 << 40)
SMALLEST_SCALE = 1 / LARGEST_SCALE

MAGNITUDE_BITS = 52


def discrete_laplace(
    size: int, scale: Fraction, source: NoiseSource, *, threads: int = 1
) -> NDArray[np.int64]:
    """Independent integers z with ``P(z) = (1−q)/(1+q) · q^|z|``, ``q = exp(−1/scale)``, exactly.

    Limits: scales from 2⁻⁴⁰ to 2⁴⁰. A magnitude of 2⁶³ has probability below exp(−2²²); it would wrap
    around, which is a function of the noisy integer and so costs no privacy. Above a scale of 10⁹ the exact
    path is taken more and more often (1 draw in 50,000 at 10⁹, 1 in 90 at 10¹²).

    *Why it is exact.* ``P(|Z| ≥ k) = T_k = 2q^k/(1+q)`` for k ≥ 1, so for a real uniform U the largest k
    with k = 0 or ``U < T_k`` has the law of |Z|; an independent bit gives the sign, and zero has none. ``U
    < T_k`` is ``k < offset − scale·ln U`` with ``offset = scale·ln(2/(1+q)) ≤ ½``. The native loop takes
    the floor of that in doubles from the first 52 bits of U, and keeps it if the distance to the next
    integer exceeds what all rounding errors and all unseen bits can do (bounds beside the code). Otherwise
    `decide_magnitude` draws further bits and compares integers.

    Parameters
    ----------
    size : int
        Number of draws.
    scale : Fraction
        Sensitivity Δ1 divided by ε.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.
    threads : int
        Native threads; the result does not depend on it.

    Returns
    -------
    NDArray of shape (size,)
        64-bit integers.

    Raises
    ------
    UsageError
        If a parameter breaks its rule.
    SecretRefused
        If the source cannot be used.

    References
    ----------
    Ghosh, Roughgarden & Sundararajan 2012 (the geometric mechanism); von Neumann 1951 (deciding on the
    first bits).

    Examples
    --------
    >>> discrete_laplace(5, Fraction(1000), NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    return _draw(size, scale, source, threads=threads)


def _draw(
    size: int, scale: Fraction, source: NoiseSource, *, threads: int = 1, widen: float = 0.0
) -> NDArray[np.int64]:
    # widen > 0 sends draws that doubles could decide through the exact path as well, which must not change
    # them.
    check_draw(size, threads)
    shape = laplace_shape(check_parameter("scale", scale, SMALLEST_SCALE, LARGEST_SCALE))
    stream = source.stream()
    values = np.empty(size, dtype=np.int64)

    def decide(index: int, word: int, _: int) -> int:
        uniform = magnitude_uniform(word, MAGNITUDE_BITS, stream.more_bits(index))
        return wrapped(with_sign(decide_magnitude(shape, uniform), word))

    fill_laplace(stream.key, stream.draw, values, float(shape.scale), shape.offset, widen, threads, decide)
    return values


@dataclass(frozen=True, slots=True)
class LaplaceShape:
    """A scale and ``offset = scale·ln(2/(1+exp(−1/scale)))``, right to a relative 2⁻⁵²."""

    scale: Fraction
    offset: float


@lru_cache(maxsize=64)
def laplace_shape(scale: Fraction) -> LaplaceShape:
    """Compute the offset, then prove it: ``exp(−offset·(1 ± 2⁻⁵²)/scale)`` must enclose ``(1+q)/2``."""
    context = Context(prec=80, Emin=-(10**17), Emax=10**17, traps=[])
    real = context.divide(Decimal(scale.numerator), Decimal(scale.denominator))
    q = context.exp(context.divide(Decimal(-1), real))
    half = context.divide(context.add(Decimal(1), q), Decimal(2))
    offset = float(context.multiply(real, context.minus(context.ln(half))))
    bits = 256
    low, high = (bound + (1 << bits) for bound in exponential_bounds(1 / scale, bits))
    error = Fraction(1, 1 << 52)
    largest = exponential_bounds(Fraction(offset) * (1 - error) / scale, bits)[0]
    smallest = exponential_bounds(Fraction(offset) * (1 + error) / scale, bits)[1]
    if not 2 * smallest <= low <= high <= 2 * largest:
        raise ArithmeticError("offset of the discrete Laplace law not proven")
    return LaplaceShape(scale, offset)


def decide_magnitude(shape: LaplaceShape, uniform: LazyUniform) -> int:
    """The largest k with k = 0 or ``U < T_k``, refining U until the bounds of the T leave one k.

    A guess in doubles proposes three candidates; only a proof accepts one, so the guess cannot bias the
    result. It ends with probability 1, because the T_k are countable and U equals none of them almost
    surely.
    """
    scale = shape.scale
    while True:
        if uniform.prefix:
            minus_log = uniform.bits * math.log(2) - math.log(uniform.prefix)
            guess = math.floor(shape.offset + float(scale) * minus_log)
            for k in range(max(0, guess - 1), guess + 2):
                if _surely(k, scale, uniform):
                    return k
        uniform.refine()


def _surely(k: int, scale: Fraction, uniform: LazyUniform) -> bool:
    bits = uniform.bits + 64
    if not uniform.surely_above(_survival_bounds(k + 1, scale, bits)[1], bits):
        return False
    return k == 0 or uniform.surely_below(_survival_bounds(k, scale, bits)[0], bits)


def _survival_bounds(k: int, scale: Fraction, bits: int) -> tuple[int, int]:
    one = 1 << bits
    power_low, power_high = exponential_bounds(k / scale, bits)
    q_low, q_high = exponential_bounds(1 / scale, bits)
    return (power_low << bits + 1) // (one + q_high), -((-power_high << bits + 1) // (one + q_low))


def magnitude_uniform(word: int, bits: int, more: Callable[[int], int]) -> LazyUniform:
    """U of one draw: the low bits of its word, then its own stream."""
    return LazyUniform(word & (1 << bits) - 1, bits, more)


def with_sign(magnitude: int, word: int) -> int:
    """The magnitude with the sign that the highest bit of the word gives."""
    return -magnitude if word >> 63 else magnitude


def wrapped(value: int) -> int:
    """The value modulo 2⁶⁴, as a signed integer."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def laplace_variance(scale: Fraction) -> float:
    """The variance ``2q/(1−q)²``, ``q = exp(−1/scale)``, of the discrete Laplace law.

    Examples
    --------
    >>> laplace_variance(Fraction(1000))
    1999999.8333333...
    """
    half = 0.5 / float(check_parameter("scale", scale, SMALLEST_SCALE, LARGEST_SCALE))
    # 2q/(1−q)² is 1/(2 sinh²(1/(2·scale))), which does not cancel; sinh would overflow where q² is nothing
    # beside 1.
    return 0.5 / math.sinh(half) ** 2 if half < 100 else 2 * math.exp(-2 * half)


def exponential_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with ``low <= e^(-x) · 2^bits <= high`` and ``high - low <= 2``.

    With ``y = x / 2^m < 2^-7`` in fixed point, the series of ``e^(-y)`` is summed in integers. A term is
    off by less than two units (one for its own cut, 2^-7 of the error of the term before), rounding y moves
    the result by at most one, and the alternating tail is smaller than the first term cut to zero: n terms
    give the sum within ``2n + 3`` units. Squaring m times rounds the lower bound down, the upper bound up,
    and doubles the width plus two each time. The guard bits keep the final width below one unit of
    ``2^-bits``.

    Parameters
    ----------
    x : Fraction
        Not negative.
    bits : int
        Binary places of the bounds.

    Examples
    --------
    >>> exponential_bounds(Fraction(0), 8)
    (256, 256)
    >>> low, high = exponential_bounds(Fraction(1), 20)
    >>> low <= 385749.4 <= high
    True
    """
    if x < 0:
        raise ValueError("x must not be negative")
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:
        # e^(-bits) < 2^-bits: below one unit, and the squarings of a huge x are saved.
        return 0, 1
    halvings = int(x).bit_length() + 7
    precision = bits + halvings + bits.bit_length() + 12
    y = (x.numerator << precision) // (x.denominator << halvings)
    total = term = 1 << precision
    terms = 0
    while term:
        terms += 1
        term = (term * y >> precision) // terms
        total += -term if terms & 1 else term
    low, high = total - 2 * terms - 3, total + 2 * terms + 3
    for _ in range(halvings):
        low = low * low >> precision
        high = (high * high >> precision) + 1
    guard = precision - bits
    return low >> guard, min((high >> guard) + 1, 1 << bits)
