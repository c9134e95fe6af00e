"""Discrete Laplace, discrete Gaussian and centred binomial noise, drawn exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from hushsum._native import fill_gaussian, fill_laplace
from hushsum.errors import UsageError

from ._source import LazyUniform, NoiseSource, check_draw, check_parameter

LARGEST_SCALE = Fraction(1 << 40)
SMALLEST_SCALE = 1 / LARGEST_SCALE

MAGNITUDE_BITS = 52


def discrete_laplace(
    size: int, scale: Fraction, source: NoiseSource, *, threads: int = 1, widen: float = 0.0
) -> NDArray[np.int64]:
    """Independent integers z with ``P(z) = (1−q)/(1+q) · q^|z|``, ``q = exp(−1/scale)``, exactly.

    Limits: scales from 2⁻⁴⁰ to 2⁴⁰. A magnitude of 2⁶³ has probability below exp(−2²²); it would wrap
    around, which is a function of the noisy integer and so costs no privacy. Above a scale of 10⁹ the exact
    path is taken more and more often (1 draw in 50,000 at 10⁹, 1 in 90 at 10¹²).

    *Why it is exact.* ``P(|Z| ≥ k) = T_k = 2q^k/(1+q)`` for k ≥ 1, so for a real uniform U the largest k
    with k = 0 or ``U < T_k`` has the distribution of |Z|; an independent bit gives the sign, and zero has
    none. ``U < T_k`` is ``k < offset − scale·ln U`` with ``offset = scale·ln(2/(1+q)) ≤ ½``. The native loop
    takes the floor of that in doubles from the first 52 bits of U, and keeps it if the distance to the next
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
    widen : float
        For tests: above 0 draws that doubles could decide take the exact path as well, which must not change
        them.

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
        raise ArithmeticError("offset of the discrete Laplace distribution not proven")
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
    """The variance ``2q/(1−q)²``, ``q = exp(−1/scale)``, of the discrete Laplace distribution.

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


LARGEST_VARIANCE = Fraction(1 << 78)
SMALLEST_VARIANCE = Fraction(1, 1 << 40)

# How many first bits of (U, V) the native loop's random words hold. The narrow words save a third of the
# keystream; beyond the limit they would send too many proposals to the exact path.
NARROW_BITS = (43, 20)
WIDE_BITS = (52, 32)
LARGEST_NARROW_SCALE = 1 << 22


def discrete_gaussian(
    size: int, variance: Fraction, source: NoiseSource, *, threads: int = 1, widen: float = 0.0
) -> NDArray[np.int64]:
    """Independent integers z with ``P(z) ∝ exp(−z²/(2·variance))``, exactly.

    Limits: variances from 2⁻⁴⁰ to 2⁷⁸. ``variance`` is the parameter of the distribution; the variance of the
    draws is `gaussian_variance`, smaller when the parameter is below 1. Overflow is as remote, and as
    harmless, as for `discrete_laplace`.

    *Why it is exact.* With ``t = ⌊σ⌋ + 1`` a discrete Laplace proposal y of scale t is kept with
    probability ``exp(−g)``, ``g = (|y| − σ²/t)²/(2σ²)``: the product ``exp(−|y|/t − g)`` is
    ``exp(−y²/(2σ²))`` times a constant, so what is kept has the discrete Gaussian distribution. The proposal
    is exact (`discrete_laplace`). It is kept if ``−ln V > g`` for a real uniform V: decided in doubles from
    the first bits of V outside a proven margin, within it by `decide_acceptance` in integers. About 3 of 4
    proposals are kept; a chunk's proposals come from the chunk's own stream, one after another.

    Parameters
    ----------
    size : int
        Number of draws.
    variance : Fraction
        The parameter σ²; Δ2²/(2ρ) for ρ-zCDP.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.
    threads : int
        Native threads; the result does not depend on it.
    widen : float
        For tests: above 0 draws that doubles could decide take the exact path as well, which must not change
        them.

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
    Canonne, Kamath & Steinke 2020, The discrete Gaussian for differential privacy, Algorithm 3.

    Examples
    --------
    >>> discrete_gaussian(5, Fraction(16900), NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    variance = check_parameter("variance", variance, SMALLEST_VARIANCE, LARGEST_VARIANCE)
    proposal = laplace_shape(Fraction(math.isqrt(math.floor(variance)) + 1))
    centre = variance / proposal.scale
    rate = 1 / (2 * variance)
    narrow = proposal.scale <= LARGEST_NARROW_SCALE
    magnitude_bits, acceptance_bits = NARROW_BITS if narrow else WIDE_BITS
    stream = source.stream()
    values = np.empty(size, dtype=np.int64)

    def decide(index: int, word: int, acceptance_word: int) -> int | None:
        magnitude = decide_magnitude(
            proposal, magnitude_uniform(word, magnitude_bits, stream.more_bits(index))
        )
        uniform = LazyUniform(acceptance_word, acceptance_bits, stream.more_bits(index, acceptance=True))
        if not decide_acceptance((magnitude - centre) ** 2 * rate, uniform):
            return None
        return wrapped(with_sign(magnitude, word))

    fill_gaussian(
        stream.key,
        stream.draw,
        values,
        float(proposal.scale),
        proposal.offset,
        float(centre),
        float(rate),
        narrow,
        widen,
        threads,
        decide,
    )
    return values


def decide_acceptance(exponent: Fraction, uniform: LazyUniform) -> bool:
    """Whether ``V < e^(−exponent)``."""
    return exponent == 0 or uniform.below(partial(exponential_bounds, exponent))


def gaussian_variance(variance: Fraction) -> float:
    """The variance of the discrete Gaussian distribution: below its parameter, and equal to it for large
    ones.

    For parameters from 1 by Poisson summation, ``v − 4π²v² Σ n² e^(−2π²vn²) / Σ e^(−2π²vn²)`` over all
    integers n; below by the direct sum. Both leave out less than a relative 10⁻¹⁷.

    Examples
    --------
    >>> gaussian_variance(Fraction(16900))
    16900.0
    >>> round(gaussian_variance(Fraction(1, 4)), 6)
    0.215013
    """
    v = float(check_parameter("variance", variance, SMALLEST_VARIANCE, LARGEST_VARIANCE))
    if v >= 1:
        terms = [(n, math.exp(-2 * math.pi**2 * v * n * n)) for n in (1, 2)]
        dual = 2 * sum(n * n * term for n, term in terms) / (1 + 2 * sum(term for _, term in terms))
        return v - 4 * math.pi**2 * v * (v * dual)
    weights = [(z, math.exp(-z * z / (2 * v))) for z in range(1, 12)]
    return 2 * sum(z * z * weight for z, weight in weights) / (1 + 2 * sum(weight for _, weight in weights))


LARGEST_TRIALS = 1 << 22
_BITS = 63


def centred_binomial(
    size: int, trials: int | Fraction, source: NoiseSource, *, threads: int = 1
) -> NDArray[np.int64]:
    """Independent integers, the numbers of heads in ``trials`` fair coins minus half of them, exactly.

    Limits: an even number of trials, up to 2²².

    *Why it is exact.* ``P(|Z| ≥ k) = S_k``, a sum of binomial coefficients over 2^trials, so the largest k
    with k = 0 or ``U < S_k`` has the distribution of |Z|; an independent bit gives the sign, and zero has
    none. The S_k are enclosed in integer arithmetic, from the one in the middle outwards. Where the first 63
    bits of U leave two values of k possible, more bits are drawn and the S_k computed to as many.

    Parameters
    ----------
    size : int
        Number of draws.
    trials : int
        Even; four times the variance.
    source : NoiseSource
        The randomness of this release; the call takes two streams from it.

    Examples
    --------
    >>> centred_binomial(5, 1000, NoiseSource.insecure(1)).dtype
    dtype('int64')
    """
    check_draw(size, threads)
    trials = check_trials(trials)
    low, high = _table(trials)
    words, further = source.stream().words(size), source.stream()
    prefixes = words & np.uint64((1 << _BITS) - 1)
    surely = len(low) - np.searchsorted(low, prefixes, side="right")
    perhaps = len(high) - np.searchsorted(high, prefixes, side="right")
    values = surely.astype(np.int64)
    for index in np.flatnonzero(surely != perhaps).tolist():
        values[index] = _decide(trials, LazyUniform(int(prefixes[index]), _BITS, further.more_bits(index)))
    return np.where(words >> np.uint64(63), -values, values)


def check_trials(trials: int | Fraction) -> int:
    """An even number of trials within the limits, as an integer."""
    if trials != int(trials) or trials % 2 or not 2 <= trials <= LARGEST_TRIALS:
        raise UsageError("trials", f"must be an even integer from 2 to {LARGEST_TRIALS}", got="another one")
    return int(trials)


def _survivals(trials: int, bits: int, number: int) -> list[tuple[int, int]]:
    """Integers that enclose ``S_k·2^bits`` for k from 1 to ``number``."""
    guard = bits + 2 * trials.bit_length() + 16
    half = trials // 2
    # The coefficient in the middle is Π (2i − 1)/(2i). Each cut loses less than a unit, which later factors
    # do not enlarge.
    low = 1 << guard
    for i in range(1, half + 1):
        low = low * (2 * i - 1) // (2 * i)
    high = low + half
    rest_low, rest_high = (1 << guard) - high, (1 << guard) - low
    bounds = []
    for k in range(1, number + 1):
        bounds.append((max(rest_low, 0) >> guard - bits, -(-rest_high >> guard - bits)))
        up, down = half - k + 1, half + k
        low, high = low * up // down, -(-high * up // down)
        rest_low, rest_high = rest_low - 2 * high, rest_high - 2 * low
    return bounds


@lru_cache(maxsize=16)
def _table(trials: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The bounds for 63 bits, in rising order, as far as the first bits of a uniform can tell."""
    # By Hoeffding S_k ≤ 2·exp(−2k²/trials): below 2⁻⁶³ from 4.72·√trials on.
    number = min(math.isqrt(23 * trials) + 2, trials // 2 + 1)
    bounds = _survivals(trials, _BITS, number)[::-1]
    low, high = zip(*bounds, strict=True)
    return np.array(low, np.uint64), np.array(high, np.uint64)


def _decide(trials: int, uniform: LazyUniform) -> int:
    while True:
        uniform.refine()
        number = min(math.isqrt(uniform.bits * trials) + 2, trials // 2 + 1)
        bounds = _survivals(trials, uniform.bits, number)
        surely = sum(uniform.prefix < low for low, _ in bounds)
        if surely == sum(uniform.prefix < high for _, high in bounds):
            return surely
