"""Bounds of e^(-x) for rational x, proven in integer arithmetic."""

from __future__ import annotations

from fractions import Fraction


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
