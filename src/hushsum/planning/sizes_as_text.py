"""Sizes and durations as a table of a plan shows them."""

from __future__ import annotations


def in_bytes(size: int) -> str:
    """A size with its unit.

    >>> in_bytes(12_345)
    '12.3 kB'
    """
    number = float(size)
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


def in_seconds(seconds: float) -> str:
    """A duration with its unit.

    >>> in_seconds(0.012)
    '12 ms'
    """
    return f"{seconds * 1000:.2g} ms" if seconds < 1 else f"{seconds:.3g} s"
