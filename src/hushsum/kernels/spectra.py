"""Random frequencies of shift-invariant kernels, the same on every machine.

By Bochner's theorem such a kernel is ``k(x − q) = E cos(ω·(x − q))`` for ω drawn from its spectral measure.
Frequencies are in *turns*, ω/(2π), because a phase in turns is reduced without rounding. They are made of
public bits by correctly rounded operations only (see `hushsum.kernels.randomness`) and are rounded to single
precision last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum.kernels.randomness import Floats, chi_squares, normals, row_words

ONE_TURN = 6.283185307179586
_NUMBERS_AT_A_TIME = 1 << 18


def normal_directions(purpose: str, seed: int, rows: int, dim: int, *, orthogonal: bool) -> Floats:
    """Standard normal vectors, shape (rows, dim); row r is the same whatever the number of rows.

    ``orthogonal`` turns each row so that it is orthogonal to those before it in its block of ``dim`` rows,
    and keeps its length. A normal vector's length is independent of its direction, and Gram–Schmidt sees
    directions alone, so every row is still standard normal, and only rows of different blocks are
    independent: the orthogonal random features of Yu et al. (2016), with no bits beyond those of independent
    ones.
    """
    words = row_words(purpose, seed, rows, dim)
    vectors = np.empty((rows, dim))
    step = max(1, _NUMBERS_AT_A_TIME // dim)
    for start in range(0, rows, step):
        vectors[start : start + step] = normals(words[start : start + step])
    if orthogonal and dim > 1:
        _native.orthogonalise(vectors)
    return vectors


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


def cauchy_directions(purpose: str, seed: int, rows: int, dim: int) -> Floats:
    """Vectors of independent standard Cauchy numbers, each a ratio of two normal ones."""
    pairs = normal_directions(purpose, seed, rows, 2 * dim, orthogonal=False)
    ratios: Floats = pairs[:, :dim] / pairs[:, dim:]
    return ratios


def in_turns(directions: Floats, scale: float) -> NDArray[np.float32]:
    """``scale`` times the directions, in turns and in single precision, kept within its range."""
    largest = float(np.finfo(np.float32).max)
    return np.clip(directions * (scale / ONE_TURN), -largest, largest).astype(np.float32)
