"""Public random numbers that are the same on every machine and in every version.

Tallies of different sites merge, and released files are read for years, so the hash functions behind a seed
must never change. Bits come from SHAKE-128, one stream for each purpose, seed and 64 rows: row ``r`` does
not depend on how many rows there are. From bits to normal numbers only correctly rounded operations are
used (+, −, ×, ÷, √), never a library's ``log`` or ``cos``, whose last bit differs between platforms.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats

ONE_TURN = 6.283185307179586
_NUMBERS_AT_A_TIME = 1 << 18
_ROWS_A_STREAM = 64


def row_words(purpose: str, seed: int, rows: int, words: int, *, first: int = 0) -> NDArray[np.uint64]:
    """Uniform 64-bit words of ``rows`` rows from ``first`` on, a multiple of 64; shape (rows, words).

    >>> bool((row_words("x", 1, 3, 2)[:2] == row_words("x", 1, 2, 2)).all())
    True
    """
    label = f"hushsum/1/{purpose}/{seed}/".encode()
    size = 8 * words * _ROWS_A_STREAM
    start = first // _ROWS_A_STREAM
    blocks = range(start, start - (-rows // _ROWS_A_STREAM))
    stream = b"".join(hashlib.shake_128(label + str(block).encode()).digest(size) for block in blocks)
    numbers = np.frombuffer(stream, dtype="<u8", count=rows * words)
    return numbers.astype(np.uint64, copy=False).reshape(rows, words)


def uniforms(words: NDArray[np.uint64]) -> Floats:
    """Numbers strictly between 0 and 1: odd multiples of 2⁻⁵³, the midpoints of 2⁵² equal intervals."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def normals(words: NDArray[np.uint64]) -> Floats:
    """Standard normal numbers by inversion."""
    return normal_quantiles(uniforms(words))


def normal_quantiles(p: Floats) -> Floats:
    """Quantiles of the normal distribution (Wichura 1988, algorithm AS 241, accurate to about 1e-16)."""
    q = p - 0.5
    central = np.abs(q) <= 0.425
    r = 0.180625 - q * q
    result = q * _ratio(np.where(central, r, 0.0), _CENTRE)
    tail = np.sqrt(-_log(np.where(central, 0.25, np.minimum(p, 1.0 - p))))
    near = _ratio(tail - 1.6, _NEAR)
    far = _ratio(tail - 5.0, _FAR)
    outer = np.where(tail <= 5.0, near, far)
    return np.where(central, result, np.where(q < 0.0, -outer, outer))


def cauchy_quantiles(p: Floats) -> Floats:
    """Quantiles of the Cauchy distribution: tan π(p − 1/2), by the series of sine and cosine up to π/4."""
    q = p - 0.5
    steep = np.abs(q) > 0.25
    angle = math.pi * np.where(steep, 0.5 - np.abs(q), np.abs(q))
    square = -angle * angle
    sine = angle * _polynomial(square, [1.0 / math.factorial(2 * k + 1) for k in range(9)])
    cosine = _polynomial(square, [1.0 / math.factorial(2 * k) for k in range(10)])
    tangent = np.where(steep, cosine, sine) / np.where(steep, sine, cosine)
    return np.where(q < 0.0, -tangent, tangent)


def chi_squares(p: Floats) -> Floats:
    """Chi-squared numbers of 2·n degrees of freedom from n uniform numbers each: −2 times the logarithm of
    their product.
    """
    total = np.zeros(len(p))
    # A product of 16 stays above 2⁻⁸⁴⁸.
    for start in range(0, p.shape[1], 16):
        product = np.ones(len(p))
        for column in range(start, min(start + 16, p.shape[1])):
            product *= p[:, column]
        total -= 2.0 * _log(product)
    return total


def _ratio(x: Floats, coefficients: tuple[Sequence[float], Sequence[float]]) -> Floats:
    numerator, denominator = coefficients
    return _polynomial(x, numerator) / _polynomial(x, denominator)


def _polynomial(x: Floats, coefficients: Sequence[float]) -> Floats:
    value = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = value * x + c
    return value


def _log(x: Floats) -> Floats:
    """Natural logarithm: x = m·2^e with m near 1, log m = 2·artanh((m − 1)/(m + 1)) by its series."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < 0.7071067811865476
    mantissa = np.where(low, 2.0 * mantissa, mantissa)
    exponent = exponent - low
    s = (mantissa - 1.0) / (mantissa + 1.0)
    series = _polynomial(s * s, [1.0 / (2 * k + 1) for k in range(14)])
    return 2.0 * s * series + exponent.astype(np.float64) * 0.6931471805599453


_CENTRE = (
    (
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
        1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
        3.3430575583588128105e4, 2.5090809287301226727e3,
    ),
    (
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2,
        5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
        2.8729085735721942674e4, 5.2264952788528545610e3,
    ),
)  # fmt: skip
_NEAR = (
    (
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4,
    ),
    (
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
        6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
        5.47593808499534494600e-4, 1.05075007164441684324e-9,
    ),
)  # fmt: skip
_FAR = (
    (
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7,
    ),
    (
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
        1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
        1.42151175831644588870e-7, 2.04426310338993978564e-15,
    ),
)  # fmt: skip


def multiply_shift(
    family: str, seed: int, rows: int, words: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Multipliers (rows, words) and addends (rows,) of a strongly universal hash: the second hash, from hash
    values of any range into the cells of a row.

    ``h = (Σᵢ aᵢ·wᵢ + b mod 2⁶⁴) >> 32`` of 32-bit words is pairwise independent and uniform on 32 bits
    (Dietzfelbinger 1996; Thorup, *High speed hashing for integers and strings*, 2015); ``(h·W) >> 32`` then
    picks the cell. Where W is not a power of two, cells differ in probability by at most 2⁻³², which is below
    any error that is reported.

    Multiply-shift hashing is pairwise independent and no more: values in arithmetic progression, such as the
    floors of projections, stay in progression. Of W·m rows in a few all m occupied values fall into one cell,
    and the variance of what strangers add is two to five times that of independent cells, common to all
    queries. So words are *scattered* first, by the bijection w ← w·0x9E3779B1, w ← w XOR (w >> 16) of 32-bit
    words. A bijection of the keys keeps pairwise independence, and with it unbiased answers; progressions
    are gone.
    """
    numbers = row_words(f"{family}/rehash", seed, rows, words + 1)
    return np.ascontiguousarray(numbers[:, :words]), np.ascontiguousarray(numbers[:, words])


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


def cauchy_directions(purpose: str, seed: int, rows: int, dim: int) -> Floats:
    """Vectors of independent standard Cauchy numbers, each a ratio of two normal ones."""
    pairs = normal_directions(purpose, seed, rows, 2 * dim, orthogonal=False)
    ratios: Floats = pairs[:, :dim] / pairs[:, dim:]
    return ratios


def single_precision(values: NDArray[Any]) -> NDArray[np.float32]:
    """Numbers in single precision, kept within its range: infinity times a zero would be no number."""
    largest = float(np.finfo(np.float32).max)
    return np.asarray(np.clip(values, -largest, largest), np.float32)


def in_turns(directions: Floats, scale: float) -> NDArray[np.float32]:
    """``scale`` times the directions, in turns and in single precision, kept within its range.

    By Bochner's theorem a shift-invariant kernel is ``k(x − q) = E cos(ω·(x − q))`` for ω drawn from its
    spectral measure. The frequencies are in *turns*, ω/(2π), because a phase in turns is reduced without
    rounding.
    """
    return single_precision(directions * (scale / ONE_TURN))


def normal_lengths(purpose: str, seed: int, rows: int, dim: int) -> Floats:
    """Lengths of standard normal vectors in an even number of columns, shape (rows,)."""
    squares = np.empty(rows)
    step = max(64, _NUMBERS_AT_A_TIME // dim // 64 * 64)
    for start in range(0, rows, step):
        some = min(step, rows - start)
        squares[start : start + some] = chi_squares(
            uniforms(row_words(purpose, seed, some, dim // 2, first=start))
        )
    return np.sqrt(squares)


def structured_signs(purpose: str, seed: int, blocks: int, size: int) -> NDArray[np.int8]:
    """Random signs, shape (blocks, 3, size), for three rounds of Hadamard transforms of ``size``, a multiple
    of 64.

    With H orthonormal, the rows of H·S₃·H·S₂·H·S₁ are orthonormal exactly. Each is a direction whose
    coordinates are uncorrelated and of equal variance exactly, and whose distribution is close to uniform on
    the sphere without being it: the structured orthogonal features of Yu et al. (2016), whose kernel has a
    bias that falls with the size and not with the number of blocks.
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
