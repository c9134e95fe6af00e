"""Public random numbers that are the same on every machine and in every version.

Tallies of different sites merge, and released files are read for years, so the hash functions behind a seed
must never change. Bits come from SHAKE-128, one stream for each purpose, seed and 64 rows: row ``r`` does
not depend on how many rows there are. From bits to normal numbers only correctly rounded operations are
used (+, −, ×, ÷, √), never a library's ``log`` or ``cos``, whose last bit differs between platforms.

The native hash functions are made of them: random projections, dense or structured, and those of several
kernels, concatenated.

Scrambled Sobol points
======================
Each point is uniform in the unit cube, so a mean over points is unbiased over seeds; points are dependent
such that the error of the mean of a smooth function falls faster than that of independent points, up to 1/n.

The digits come from integer operations alone. Direction numbers are those of Joe and Kuo, scrambled by a
random lower triangular matrix of bits and a random shift for each coordinate (Matoušek 1998).

Notes
-----
Joe and Kuo, *Constructing Sobol sequences with better two-dimensional projections*, SIAM Journal on
Scientific Computing 30, 2008.

The table of direction numbers: copyright (c) 2008, Frances Y. Kuo and Stephen Joe. All rights reserved.
Redistribution and use in source and binary forms, with or without modification, are permitted provided that
the following conditions are met: redistributions of source code must retain the above copyright notice, this
list of conditions and the following disclaimer; redistributions in binary form must reproduce the above
copyright notice, this list of conditions and the following disclaimer in the documentation and/or other
materials provided with the distribution; neither the names of the copyright holders nor the names of the
University of New South Wales and the University of Waikato and its contributors may be used to endorse or
promote products derived from this software without specific prior written permission. THIS SOFTWARE IS
PROVIDED BY THE COPYRIGHT HOLDERS "AS IS" AND ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED
TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT
SHALL THE COPYRIGHT HOLDERS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR
CONSEQUENTIAL DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF
USE, DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER IN
CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT OF THE USE OF
THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats
from hushsum.errors import Argument, UsageError, shown
from hushsum.records import Batch, part_of

__all__ = [
    "MOST_COORDINATES", "derived_seed", "hadamard", "multiply_shift", "normals", "padded", "row_words",
    "sobol_points", "structured_block", "structured_signs", "uniforms",
]  # fmt: skip

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
    return pairs[:, :dim] / pairs[:, dim:]


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


_BITS = 32

# Of each coordinate after the first: a primitive polynomial over GF(2), as the number with its coefficients
# as bits, and the initial direction numbers.
_JOE_KUO = (
    (3, 1), (7, 1, 3), (11, 1, 3, 1), (13, 1, 1, 1), (19, 1, 1, 3, 3), (25, 1, 3, 5, 13),
    (37, 1, 1, 5, 5, 17), (41, 1, 1, 5, 5, 5), (47, 1, 1, 7, 11, 19), (55, 1, 1, 5, 1, 1),
    (59, 1, 1, 1, 3, 11), (61, 1, 3, 5, 5, 31), (67, 1, 3, 3, 9, 7, 49), (91, 1, 1, 1, 15, 21, 21),
    (97, 1, 3, 1, 13, 27, 49), (103, 1, 1, 1, 15, 7, 5), (109, 1, 3, 1, 15, 13, 25),
    (115, 1, 1, 5, 5, 19, 61), (131, 1, 3, 7, 11, 23, 15, 103), (137, 1, 3, 7, 13, 13, 15, 69),
    (143, 1, 1, 3, 13, 7, 35, 63), (145, 1, 3, 5, 9, 1, 25, 53), (157, 1, 3, 1, 13, 9, 35, 107),
    (167, 1, 3, 1, 5, 27, 61, 31), (171, 1, 1, 5, 11, 19, 41, 61), (185, 1, 3, 5, 3, 3, 13, 69),
    (191, 1, 1, 7, 13, 1, 19, 1), (193, 1, 3, 7, 5, 13, 19, 59), (203, 1, 1, 3, 9, 25, 29, 41),
    (211, 1, 3, 5, 13, 23, 1, 55), (213, 1, 3, 7, 3, 13, 59, 17),
)  # fmt: skip

MOST_COORDINATES = 1 + len(_JOE_KUO)


def sobol_points(purpose: str, seed: int, rows: int, dim: int, *, first: int = 0) -> Floats:
    """Points of a scrambled Sobol sequence, shape (rows, dim), strictly between 0 and 1, from ``first`` on: a
    multiple of a power of two that is at least ``rows``.

    Point r is the same whatever the number of rows, and coordinate c whatever the number of coordinates. Any
    2ᵏ consecutive points from a multiple of 2ᵏ on are evenly spread.

    >>> (4 * sobol_points("x", 1, 8, 2)).astype(int).T.tolist()
    [[0, 3, 1, 2, 0, 3, 1, 2], [2, 1, 0, 3, 1, 2, 3, 0]]
    """
    # Of each coordinate 32 random columns of a matrix, and a shift.
    random = row_words(purpose, seed, dim, _BITS // 2 + 1).astype("<u8").view("<u4").astype(np.uint32)
    directions = _scrambled(_directions(dim), random)
    digits = np.empty((rows, dim), np.uint32)
    digits[0] = random[:, _BITS]
    for power in range(first.bit_length()):
        if first >> power & 1:
            digits[0] ^= directions[:, power]
    for power in range((rows - 1).bit_length()):
        done = 1 << power
        digits[done : 2 * done] = digits[: min(done, rows - done)] ^ directions[:, power]
    return (digits.astype(np.float64) + 0.5) * 2.0**-_BITS


def _directions(dim: int) -> NDArray[np.uint32]:
    """Direction numbers, shape (dim, bits): what the k-th digit of a point's number adds, modulo 2."""
    found = [[1 << (_BITS - 1 - k) for k in range(_BITS)]]
    for polynomial, *first in _JOE_KUO[: dim - 1]:
        degree, numbers = polynomial.bit_length() - 1, list(first)
        for k in range(degree, _BITS):
            number = numbers[k - degree] ^ numbers[k - degree] << degree
            for i in range(1, degree):
                if polynomial >> (degree - i) & 1:
                    number ^= numbers[k - i] << i
            numbers.append(number)
        found.append([number << (_BITS - 1 - k) for k, number in enumerate(numbers)])
    return np.array(found, np.uint32)


def _scrambled(directions: NDArray[np.uint32], random: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Direction numbers times a lower triangular matrix of random bits, with ones on its diagonal."""
    found = np.zeros_like(directions)
    for place in range(_BITS):
        top = np.uint32(1 << (_BITS - 1 - place))
        column = random[:, place] & (top - np.uint32(1)) | top
        found ^= np.where(directions & top, column[:, np.newaxis], np.uint32(0))
    return found


FACTOR_WIDTH = 1 << 30
"""Cells of one factor's hash, before concatenation: two different values share one with probability 2⁻³⁰,
which is below any error that is reported.
"""

_CODES_AT_A_TIME = 1 << 16

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
    step = max(1, _CODES_AT_A_TIME // (rows * number))

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
