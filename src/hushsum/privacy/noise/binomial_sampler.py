"""The centred binomial law, Bin(n, ½) − n/2, drawn exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError
from hushsum.privacy.noise.source import LazyUniform, NoiseSource, check_draw

LARGEST_TRIALS = 1 << 22
_BITS = 63


def centred_binomial(size: int, trials: int, source: NoiseSource, *, threads: int = 1) -> NDArray[np.int64]:
    """Independent integers, the numbers of heads in ``trials`` fair coins minus half of them, exactly.

    Limits: an even number of trials, up to 2²².

    *Why it is exact.* ``P(|Z| ≥ k) = S_k``, a sum of binomial coefficients over 2^trials, so the largest k
    with k = 0 or ``U < S_k`` has the law of |Z|; an independent bit gives the sign, and zero has none. The
    S_k are enclosed in integer arithmetic, from the one in the middle outwards. Where the first 63 bits of U
    leave two values of k possible, more bits are drawn and the S_k computed to as many.

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
    check_trials(trials)
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
        raise UsageError(
            parameter="trials", rule=f"must be an even integer from 2 to {LARGEST_TRIALS}", got="another one"
        )
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
