"""Uniform integers, exactly, from 64-bit words."""

from __future__ import annotations

from collections.abc import Callable

_MOST_WORDS = 1 << 34


def words_of(more: Callable[[int], int]) -> Callable[[], int]:
    """The words ``more(0), more(1), …``, one a call."""
    count = iter(range(_MOST_WORDS))
    return lambda: more(next(count))


def below(limit: int, word: Callable[[], int]) -> int:
    """A uniform integer from 0 to ``limit − 1``, by rejection; ``limit`` is from 1 to 2⁶³.

    >>> below(10, iter([2**64 - 1, 123]).__next__)
    3
    """
    fair = (1 << 64) // limit * limit
    while (value := word()) >= fair:
        pass
    return value % limit
