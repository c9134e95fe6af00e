"""Rational numbers out of text from outside, in bounded time and memory.

``Fraction("1e9999999")`` takes minutes and gigabytes. Whatever reads a number from a file, a message, a
request or a database uses this module instead.
"""

from __future__ import annotations

import re
from fractions import Fraction

MOST_DIGITS = 2000
"""Of a numerator or denominator in a file. The smallest double has a denominator of 324 digits."""

_STORED = re.compile(
    rf"-?(0|[1-9][0-9]{{0,{MOST_DIGITS - 1}}})(/[1-9][0-9]{{0,{MOST_DIGITS - 1}}})?", re.ASCII
)
_LONGEST_TYPED = 100
_LARGEST_EXPONENT = 400
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)\s*\Z", re.ASCII)


def stored_rational(text: object) -> Fraction:
    """A rational as ``str(Fraction)`` writes it: ``"3"``, ``"-1/10"``; nothing else.

    Raises
    ------
    TypeError, ValueError
        It is not text, not in lowest terms, has an exponent or a point, or more than 2,000 digits.

    Examples
    --------
    >>> stored_rational("1/10")
    Fraction(1, 10)
    >>> stored_rational("1e9999999")
    Traceback (most recent call last):
    ...
    ValueError: not a stored rational
    """
    if not isinstance(text, str):
        raise TypeError("a rational is stored as text")
    if not _STORED.fullmatch(text):
        raise ValueError("not a stored rational")
    number = Fraction(text)
    if str(number) != text:
        raise ValueError("not a stored rational")
    return number


def typed_rational(text: str) -> Fraction:
    """A rational as a person types it, such as ``"0.1"``, ``"1/3"`` or ``"1e-6"``.

    Raises
    ------
    ValueError
        It is not a number, has more than 100 characters or an exponent beyond ±400.

    Examples
    --------
    >>> typed_rational("1e-2")
    Fraction(1, 100)
    """
    exponent = _EXPONENT.search(text) if len(text) <= _LONGEST_TYPED else None
    if len(text) > _LONGEST_TYPED or (exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT):
        raise ValueError("a number too long")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("a fraction of nothing") from None
