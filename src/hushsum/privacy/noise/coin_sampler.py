"""Independent coins with given log-odds, flipped exactly.

A coin of log-odds −x falls with probability 1/(1 + e^x). For rational x that probability is enclosed by
integer bounds of e^(−|x|) and compared with as many random bits as the decision needs, so that both outcomes
keep their probabilities however small they are. A coin of b bits would draw a probability below 2⁻ᵇ as 0: an
outcome that one of two neighbours can never have, which no ε and no ρ bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from hushsum.errors import UsageError
from hushsum.privacy.noise.discrete_laplace_sampler import exponential_bounds
from hushsum.privacy.noise.source import LazyUniform, NoiseSource

__all__ = ["flip", "flip_log_odds", "log_odds_coins"]


def log_odds_coins(against: Sequence[Fraction], source: NoiseSource) -> list[bool]:
    """Independent coins, the i-th true with probability ``1/(1 + e^against[i])``, exactly.

    Parameters
    ----------
    against : sequence of Fraction
        The log-odds against each outcome; secret.
    source : NoiseSource
        The randomness of this release; the call takes one stream from it.

    Raises
    ------
    UsageError
        if one is neither a Fraction nor an integer.

    Examples
    --------
    >>> log_odds_coins([Fraction(-1000), Fraction(1000)], NoiseSource.insecure(1))
    [True, False]
    """
    if not all(isinstance(each, int | Fraction) for each in against):
        raise UsageError(rule="log-odds must be Fractions", got="something else", remedy="use Fraction(...)")
    stream = source.stream()
    return [flip_log_odds(Fraction(each), stream.more_bits(i)) for i, each in enumerate(against)]


def flip_log_odds(against: Fraction, more: Callable[[int], int]) -> bool:
    """A coin that falls with probability 1/(1 + e^against), exactly; ``more(i)`` gives the i-th 64 random
    bits.
    """

    def bounds(bits: int) -> tuple[int, int]:
        # 1/(1 + e^x) is e^(−x)/(1 + e^(−x)) for x ≥ 0, and 1 minus that of −x below: it grows with e^(−|x|).
        low, high = exponential_bounds(abs(against), bits)
        one = 1 << bits
        low, high = (low << bits) // (one + low), -((-high << bits) // (one + high))
        return (low, high) if against >= 0 else (one - high, one - low)

    return _decide(bounds, more)


def flip(x: Fraction, more: Callable[[int], int]) -> bool:
    """A coin that falls with probability e^(−x), exactly; ``more(i)`` gives the i-th 64 random bits."""
    return x == 0 or _decide(lambda bits: exponential_bounds(x, bits), more)


def _decide(bounds: Callable[[int], tuple[int, int]], more: Callable[[int], int]) -> bool:
    """Whether a uniform number lies below one that ``bounds(bits)`` encloses, in units of 2⁻ᵇⁱᵗˢ."""
    uniform = LazyUniform(0, 0, more)
    while True:
        uniform.refine()
        bits = uniform.bits + 64
        low, high = bounds(bits)
        if uniform.surely_below(low, bits):
            return True
        if uniform.surely_above(high, bits):
            return False
