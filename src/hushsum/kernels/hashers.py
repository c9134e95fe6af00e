"""What the native side of hash functions does, and those that concatenate the hash functions of several
kernels: they collide where all of them do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats
from hushsum.kernels.public_randomness import multiply_shift, row_words
from hushsum.records.native_batch import Batch, part_of

FACTOR_WIDTH = 1 << 30
"""Cells of one factor's hash, before concatenation: two different values share one with probability 2⁻³⁰,
which is below any error that is reported.
"""

_NUMBERS_AT_A_TIME = 1 << 16

Split = Callable[[Batch], Sequence[Batch]]


class Hasher(Protocol):
    """The native side of a hash family: R hash functions of a record into W cells."""

    def count(self, *arguments: Any) -> None:
        """``(*arrays, table, step, threads)``: add ``step`` to each record's cell in every row."""

    def cells(self, *arguments: Any) -> NDArray[np.int32]:
        """``(*arrays, rows)``: the cell of each record in each of the first rows."""

    def read(self, *arguments: Any) -> tuple[Floats, Floats]:
        """``(*arrays, table, block, threads)``: mean over rows of each query's cell, and its variance."""

    def means(self, *arguments: Any) -> Floats:
        """``(*arrays, table, scale, shift, threads)``: ``scale`` times that mean plus ``shift``."""


def derived_seed(purpose: str, seed: int, number: int) -> int:
    """A public seed for one of several parts, so that equal kernels have independent hash functions."""
    return int(row_words(f"composition/{purpose}", seed, number + 1, 1)[number, 0])


class ConcatenatedHasher:
    """R hash functions into W cells, each made of one hash function of every factor.

    The values of the factors in a row are the words of one pairwise independent hash, so records that differ
    in any of them share a cell with probability 1/W.
    """

    def __init__(
        self, hashers: Sequence[Hasher], split: Split, *, rows: int, width: int, seed: int, layout: Any
    ) -> None:
        number = len(hashers)
        words = np.arange(rows * number, dtype=np.int32).reshape(rows, number)
        multipliers, addends = multiply_shift("product", seed, rows, number)
        self._codes = _native.CodeHasher(words, multipliers, addends, width, True)
        self._hashers, self._split, self._rows, self._layout = tuple(hashers), split, rows, layout

    def count(self, *arguments: Any) -> None:
        """``(*arrays, table, step, threads)``: add ``step`` to each record's cell in every row."""
        *arrays, table, step, threads = arguments
        for codes in self._blocks(arrays):
            self._codes.count(codes, table, step, threads)

    def cells(self, *arguments: Any) -> NDArray[np.int32]:
        """``(*arrays, rows)``: the cell of each record in each of the first rows."""
        *arrays, rows = arguments
        return np.concatenate([self._codes.cells(codes, rows) for codes in self._blocks(arrays)])

    def read(self, *arguments: Any) -> tuple[Floats, Floats]:
        """``(*arrays, table, block, threads)``: mean over rows of each query's cell, and its variance."""
        *arrays, table, block, threads = arguments
        found = [self._codes.read(codes, table, block, threads) for codes in self._blocks(arrays)]
        return np.concatenate([mean for mean, _ in found]), np.concatenate([each for _, each in found])

    def means(self, *arguments: Any) -> Floats:
        """``(*arrays, table, scale, shift, threads)``: ``scale`` times that mean plus ``shift``."""
        *arrays, table, scale, shift, threads = arguments
        return np.concatenate(
            [self._codes.means(codes, table, scale, shift, threads) for codes in self._blocks(arrays)]
        )

    def _blocks(self, arrays: Sequence[NDArray[Any]]) -> Iterator[NDArray[np.int32]]:
        """The factors' hash values of some records at a time, shape (records, rows·factors)."""
        # The first array of a part has a row per record, or, for sets, the second one a start per record and
        # the end.
        length = len(arrays[0]) if self._layout is None or self._layout[0] == 1 else len(arrays[1]) - 1
        batch = Batch(tuple(arrays), length, self._layout)
        step = max(1, _NUMBERS_AT_A_TIME // (self._rows * len(self._hashers)))
        for start in range(0, length, step):
            part = part_of(batch, start, start + step)
            codes = np.empty((len(part), self._rows, len(self._hashers)), np.int32)
            for number, each in enumerate(self._split(part)):
                codes[:, :, number] = self._hashers[number].cells(*each.arrays, self._rows)
            yield codes.reshape(len(part), -1)
