"""Checks of kernel parameters, each one sentence when it fails."""

from __future__ import annotations

import math
import operator

from hushsum.errors import UsageError, shown


def positive_integer(name: str, value: int, *, at_most: int) -> int:
    """An integer from 1 to ``at_most``."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= at_most:
        raise UsageError(
            f"{name} must be an integer from 1 to {at_most}, got {shown(value)}; give one in that range"
        )
    return number


def positive_number(name: str, value: float) -> float:
    """A finite number above 0."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise UsageError(
            f"{name} must be a finite number above 0, got {shown(value)}; "
            "give the scale of the data in its units"
        )
    return number


def bandwidth_number(value: float) -> float:
    """A bandwidth that single-precision records can be divided by: from 1e-30 to 1e30."""
    number = positive_number("bandwidth", value)
    if not 1e-30 <= number <= 1e30:
        raise UsageError(f"bandwidth must be from 1e-30 to 1e30, got {number:g}; rescale the columns")
    return number
