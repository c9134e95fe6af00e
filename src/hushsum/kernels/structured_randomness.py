"""Random numbers of structured frequencies: signs for fast transforms, and the lengths of normal vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels.public_randomness import chi_squares, row_words

_NUMBERS_AT_A_TIME = 1 << 18


def normal_lengths(purpose: str, seed: int, rows: int, dim: int) -> Floats:
    """Lengths of standard normal vectors in an even number of columns, shape (rows,)."""
    squares = np.empty(rows)
    step = max(64, _NUMBERS_AT_A_TIME // dim // 64 * 64)
    for start in range(0, rows, step):
        some = min(step, rows - start)
        squares[start : start + some] = chi_squares(row_words(purpose, seed, some, dim // 2, first=start))
    return np.sqrt(squares)


def structured_signs(purpose: str, seed: int, blocks: int, size: int) -> NDArray[np.int8]:
    """Random signs, shape (blocks, 3, size), for three rounds of Hadamard transforms of ``size``, a multiple
    of 64.

    With H orthonormal, the rows of H·S₃·H·S₂·H·S₁ are orthonormal exactly. Each is a direction whose
    coordinates are uncorrelated and of equal variance exactly, and whose law is close to uniform on the
    sphere without being it: the structured orthogonal features of Yu et al. (2016), whose kernel has a bias
    that falls with the size and not with the number of blocks.
    """
    words = row_words(purpose, seed, blocks, 3 * (size // 64))
    bits = np.unpackbits(words.astype("<u8").view(np.uint8).reshape(blocks, 3, -1), axis=2, bitorder="little")
    return np.ascontiguousarray(1 - 2 * bits.astype(np.int8))


def hadamard(values: Floats) -> Floats:
    """The unnormalised Hadamard transform of the last axis."""
    half = values.shape[-1] // 2
    while half:
        pairs = values.reshape(*values.shape[:-1], -1, 2, half)
        first, second = pairs[..., 0, :], pairs[..., 1, :]
        values = np.stack([first + second, first - second], axis=-2).reshape(values.shape)
        half //= 2
    return values
