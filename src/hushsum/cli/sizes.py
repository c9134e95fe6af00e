"""Sizes and numbers as people read them."""

from __future__ import annotations


def bytes_in_words(size: int, *, digits: int = 3) -> str:
    """A number of bytes with three digits, or fewer.

    >>> bytes_in_words(2_345_678), bytes_in_words(668_400, digits=2)
    ('2.35 MB', '670 kB')
    """
    number = float(f"{float(size):.{digits}g}")
    for unit in ("B", "kB", "MB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} GB"


def short(number: float) -> str:
    """A number with five digits, whatever its size.

    >>> short(12345.678), short(0.00012345678)
    ('12346', '0.00012346')
    """
    return f"{number:.5g}" if abs(number) < 1e5 else f"{number:.0f}"
