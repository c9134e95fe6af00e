"""Hash functions made of random projections: dense, or structured for high dimension.

A row's hash of x is made of ``count`` numbers z = a·x + b. Dense projections draw every a independently.
Structured ones take the coordinates of three rounds of random signs and Hadamard transforms, which cost D
log D for D of them instead of D². Their marginals are close to normal for D of 128 or more, to which fewer
columns are padded, but the rows of one block share signs, so only blocks are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum.errors import Argument, UsageError, shown
from hushsum.kernels.base import Hasher
from hushsum.kernels.public_randomness import multiply_shift, normals, row_words, uniforms

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
    scale: float
    signs: bool
    structured: bool

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
        flips = self._flips(seed, -(-rows // block), size)
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
        # A ratio of normals may leave single precision; infinity times a zero column would be no number.
        largest = np.finfo(np.float32).max
        weights = np.clip(directions * self.scale, -largest, largest).astype(np.float32)
        return np.ascontiguousarray(weights.reshape(rows, self.count, self.dim))

    def _offsets(self, seed: int, rows: int) -> NDArray[np.float32]:
        if self.signs:
            return np.zeros((rows, self.count), np.float32)
        words = row_words(f"{self.family}/offsets", seed, rows, self.count)
        # Rounding to single precision may reach 1, which is as good an offset as 0.
        return uniforms(words).astype(np.float32)

    def _flips(self, seed: int, blocks: int, size: int) -> NDArray[np.int8]:
        words = row_words(f"{self.family}/signs", seed, blocks, 3 * (-(-size // 64)))
        bits = np.unpackbits(
            words.astype("<u8").view(np.uint8).reshape(blocks, 3, -1), axis=2, bitorder="little"
        )
        return np.ascontiguousarray(1 - 2 * bits[:, :, :size].astype(np.int8))


def padded(dim: int) -> int:
    """The power of two, at least 128, that holds ``dim`` columns."""
    return max(STRUCTURED_BLOCK, 1 << (dim - 1).bit_length())


def structured_block(dim: int, count: int) -> int:
    """How many rows one structured block gives: at most 128, and no more coordinates than there are."""
    return max(1, min(STRUCTURED_BLOCK, padded(dim) // count))


def check_projection(projection: str, dim: int, count: int) -> str:
    """A projection's name, refused where it cannot give enough coordinates a row."""
    if projection not in PROJECTIONS:
        raise UsageError(
            parameter="projection",
            rule="must be 'dense' or 'structured'",
            got=shown(projection),
            remedy="choose one",
        )
    if projection == "structured" and count > padded(dim):
        raise UsageError(
            parameter="projection",
            rule=f"must be 'dense' for more than {padded(dim)} numbers per row of {dim} columns",
            got=f"'structured' for {count}",
            remedy=("give ", Argument("projection", "dense")),
        )
    return projection
