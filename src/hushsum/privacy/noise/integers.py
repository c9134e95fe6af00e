"""Uniform integers from random words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hushsum._native import extension_nonce
from hushsum.privacy.noise.source import NoiseSource

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


def independent_places(size: int, places: int, source: NoiseSource) -> NDArray[np.int64]:
    """A place from 0 to ``places − 1`` for each of ``size`` things, independent and alike in law.

    Exactly uniform: a word that would favour the first places is drawn again.

    >>> independent_places(4, 10, NoiseSource.insecure(1)).shape
    (4,)
    """
    stream = source.stream()
    # A nonce that no other draw with this key uses: choices take theirs with index 0, or without the mark.
    nonce = extension_nonce(stream.draw, True, 1)
    fair = (1 << 64) // places * places
    words = np.empty(size, np.uint64)
    missing, used = np.arange(size), 0
    while missing.size:
        blocks = -(-missing.size // 8)
        data = stream.key.keystream(*nonce, counter=used, blocks=blocks)
        words[missing] = np.frombuffer(data, "<u8", count=missing.size)
        missing, used = missing[words[missing] > np.uint64(fair - 1)], used + blocks
    return (words % np.uint64(places)).astype(np.int64)
