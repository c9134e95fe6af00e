"""Checks of kernel parameters, each one sentence when it fails."""

from __future__ import annotations

import math

from hushsum.errors import UsageError


def positive_integer(name: str, value: int, *, at_most: int) -> int:
    """An integer from 1 to ``at_most``."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 1 <= value.__index__() <= at_most:
        raise UsageError(
            f"{name} must be an integer from 1 to {at_most}, got {value!r}; give one in that range"
        )
    return value.__index__()


def positive_number(name: str, value: float) -> float:
    """A finite number above 0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise UsageError(
            f"{name} must be a finite number above 0, got {value!r}; give the scale of the data in its units"
        )
    return number
