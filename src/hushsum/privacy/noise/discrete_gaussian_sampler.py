"""The discrete Gaussian law, P(z) ∝ exp(−z²/(2·variance)), drawn exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hushsum._native import fill_gaussian
from hushsum.privacy.noise.discrete_laplace_sampler import (
    decide_magnitude,
    exponential_bounds,
    laplace_shape,
    magnitude_uniform,
    with_sign,
    wrapped,
)
from hushsum.privacy.noise.source import LazyUniform, NoiseSource, check_draw, check_parameter

LARGEST_VARIANCE = Fraction(1 << 78)
SMALLEST_VARIANCE = Fraction(1, 1 << 40)

# How many first bits of (U, V) the native loop's random words hold. The narrow words save a third of the
# keystream; beyond the limit they would send too many proposals to the exact path.
NARROW_BITS = (43, 20)
WIDE_BITS = (52, 32)
LARGEST_NARROW_SCALE = 1 << 22


def discrete_gaussian(
    size: int, variance: Fraction, source: NoiseSource, *, threads: int = 1
) -> NDArray[np.int64]:
    """Independent integers z with ``P(z) ∝ exp(−z²/(2·variance))``, exactly.

    Limits: variances from 2⁻⁴⁰ to 2⁷⁸. ``variance`` is the parameter of the law; the variance of the draws is
    `gaussian_variance`, smaller when the parameter is below 1. Overflow is as remote, and as harmless, as for
    `discrete_laplace`.

    *Why it is exact.* With ``t = ⌊σ⌋ + 1`` a discrete Laplace proposal y of scale t is kept with
    probability ``exp(−g)``, ``g = (|y| − σ²/t)²/(2σ²)``: the product ``exp(−|y|/t − g)`` is
    ``exp(−y²/(2σ²))`` times a constant, so what is kept has the discrete Gaussian law. The proposal is
    exact (`discrete_laplace`). It is kept if ``−ln V > g`` for a real uniform V: decided in doubles from
    the first bits of V outside a proven margin, within it by `decide_acceptance` in integers. About 3 of
    4 proposals are kept; a chunk's proposals come from the chunk's own stream, one after another.

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
    return _draw(size, variance, source, threads=threads)


def _draw(
    size: int, variance: Fraction, source: NoiseSource, *, threads: int = 1, widen: float = 0.0
) -> NDArray[np.int64]:
    # widen > 0 sends draws that doubles could decide through the exact path as well, which must not change
    # them.
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
    """Whether ``V < e^(−exponent)``, refining V until the bounds of the exponential leave one answer."""
    while exponent:
        bits = uniform.bits + 64
        low, high = exponential_bounds(exponent, bits)
        if uniform.surely_below(low, bits):
            return True
        if uniform.surely_above(high, bits):
            return False
        uniform.refine()
    return True


def gaussian_variance(variance: Fraction) -> float:
    """The variance of the discrete Gaussian law: below its parameter, and equal to it for large ones.

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
