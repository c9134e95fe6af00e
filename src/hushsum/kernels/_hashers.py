"""Native hash functions: random projections, dense or structured, and several kernels' concatenated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats
from hushsum.errors import Argument, UsageError, shown
from hushsum.records import Batch, part_of

from ._public_randomness import (
    multiply_shift,
    normals,
    row_words,
    single_precision,
    structured_signs,
    uniforms,
)

FACTOR_WIDTH = 1 << 30
"""Cells of one factor's hash, before concatenation: two different values share one with probability 2⁻³⁰,
which is below any error that is reported.
"""

_NUMBERS_AT_A_TIME = 1 << 16

Split = Callable[[Batch], Sequence[Batch]]
Blocks = Callable[[Sequence[NDArray[Any]]], Iterable[NDArray[Any]]]
"""The arrays of a batch as those that are hashed, some records at a time."""


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


class BlockwiseHasher:
    """Hash functions of what records are turned into, block by block; ``blocks`` gives one array for each."""

    def __init__(self, inner: Hasher, blocks: Blocks) -> None:
        self._inner, self._blocks = inner, blocks

    def count(self, *arguments: Any) -> None:
        """``(*arrays, table, step, threads)``: add ``step`` to each record's cell in every row."""
        for block in self._blocks(arguments[:-3]):
            self._inner.count(block, *arguments[-3:])

    def cells(self, *arguments: Any) -> NDArray[np.int32]:
        """``(*arrays, rows)``: the cell of each record in each of the first rows."""
        *arrays, rows = arguments
        return np.concatenate([self._inner.cells(each, rows) for each in self._blocks(arrays)])

    def read(self, *arguments: Any) -> tuple[Floats, Floats]:
        """``(*arrays, table, block, threads)``: mean over rows of each query's cell, and its variance."""
        found = [self._inner.read(each, *arguments[-3:]) for each in self._blocks(arguments[:-3])]
        return np.concatenate([mean for mean, _ in found]), np.concatenate([each for _, each in found])

    def means(self, *arguments: Any) -> Floats:
        """``(*arrays, table, scale, shift, threads)``: ``scale`` times that mean plus ``shift``."""
        found = [self._inner.means(each, *arguments[-4:]) for each in self._blocks(arguments[:-4])]
        return np.concatenate(found)


def concatenated(
    hashers: Sequence[Hasher], split: Split, *, rows: int, width: int, seed: int, layout: Any
) -> BlockwiseHasher:
    """R hash functions into W cells, each made of one hash function of every factor.

    The values of the factors in a row are the words of one pairwise independent hash, so records that differ
    in any of them share a cell with probability 1/W.
    """
    number = len(hashers)
    words = np.arange(rows * number, dtype=np.int32).reshape(rows, number)
    step = max(1, _NUMBERS_AT_A_TIME // (rows * number))

    def blocks(arrays: Sequence[NDArray[Any]]) -> Iterator[NDArray[np.int32]]:
        """The factors' hash values of some records at a time, shape (records, rows·factors)."""
        # The first array of a part has a row per record, or, for sets, the second one a start per record and
        # the end.
        length = len(arrays[0]) if layout is None or layout[0] == 1 else len(arrays[1]) - 1
        batch = Batch(tuple(arrays), length, layout)
        for start in range(0, length, step):
            part = part_of(batch, start, start + step)
            codes = np.empty((len(part), rows, number), np.int32)
            for factor, (hasher, each) in enumerate(zip(hashers, split(part), strict=True)):
                codes[:, :, factor] = hasher.cells(*each.arrays, rows)
            yield codes.reshape(len(part), -1)

    multipliers, addends = multiply_shift("product", seed, rows, number)
    return BlockwiseHasher(_native.CodeHasher(words, multipliers, addends, width, True), blocks)


STRUCTURED_BLOCK = 128
"""Rows of one structured block: large enough to be cheap, small enough that 1000 rows have 8 independent
blocks.
"""

PROJECTIONS = ("dense", "structured")


@dataclass(frozen=True, slots=True)
class Projections:
    """``count`` projections a row of ``dim`` columns; ``signs`` keeps one bit of each, else the floor of z
    is kept.
    """

    family: str
    dim: int
    count: int
    scale: float = 1.0
    signs: bool = False
    structured: bool = False

    def hasher(self, *, rows: int, width: int, seed: int, fold: bool) -> Hasher:
        """The native hash functions; values that are folded are scattered first."""
        words = -(-self.count // 32) if self.signs else self.count
        multipliers, addends = multiply_shift(self.family, seed, rows, words)
        offsets = self._offsets(seed, rows)
        if not self.structured:
            weights = self._weights(seed, rows)
            return _native.ProjectionHasher(
                weights, offsets, multipliers, addends, width, self.signs, fold, fold
            )
        size = padded(self.dim)
        block = structured_block(self.dim, self.count)
        flips = structured_signs(f"{self.family}/signs", seed, -(-rows // block), size)
        # H has orthogonal rows of squared length D, so three rounds scale by D^{3/2}; coordinates shall
        # have the variance of a normal projection, ‖x‖², which leaves 1/D.
        return _native.StructuredHasher(
            flips, self.dim, rows, self.count, self.scale / size, offsets, multipliers, addends,
            width, self.signs, fold, block, fold,
        )  # fmt: skip

    def independent_rows(self) -> int:
        """How many consecutive rows share random numbers: 1, or those of a structured block."""
        return structured_block(self.dim, self.count) if self.structured else 1

    def numbers(self, *, seed: int, rows: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Directions a (rows, count, dim), divided by the bandwidth, and offsets b (rows, count) of dense
        projections.
        """
        return self._weights(seed, rows), self._offsets(seed, rows)

    def _weights(self, seed: int, rows: int) -> NDArray[np.float32]:
        numbers = self.count * self.dim
        if self.family == "manhattan":
            words = row_words("manhattan/directions", seed, rows, 2 * numbers)
            pairs = normals(words)
            directions = pairs[:, :numbers] / pairs[:, numbers:]
        else:
            directions = normals(row_words(f"{self.family}/directions", seed, rows, numbers))
        # A ratio of normals may leave single precision.
        weights = single_precision(directions * self.scale)
        return np.ascontiguousarray(weights.reshape(rows, self.count, self.dim))

    def _offsets(self, seed: int, rows: int) -> NDArray[np.float32]:
        if self.signs:
            return np.zeros((rows, self.count), np.float32)
        words = row_words(f"{self.family}/offsets", seed, rows, self.count)
        # Rounding to single precision may reach 1, which is as good an offset as 0.
        return uniforms(words).astype(np.float32)


def padded(dim: int) -> int:
    """The power of two, at least 128, that holds ``dim`` columns."""
    return max(STRUCTURED_BLOCK, 1 << (dim - 1).bit_length())


def structured_block(dim: int, count: int) -> int:
    """How many rows one structured block gives: at most 128, and no more coordinates than there are."""
    return max(1, min(STRUCTURED_BLOCK, padded(dim) // count))


def check_projection(projection: str, dim: int, count: int) -> None:
    """Refuse the name of a projection that is unknown, or cannot give enough coordinates for a row."""
    if projection not in PROJECTIONS:
        raise UsageError("projection", "must be 'dense' or 'structured'", got=shown(projection))
    if projection == "structured" and count > padded(dim):
        rule = f"must be 'dense' for more than {padded(dim)} numbers per row of {dim} columns"
        remedy = ("give ", Argument("projection", "dense"))
        raise UsageError("projection", rule, got=f"'structured' for {count}", remedy=remedy)
