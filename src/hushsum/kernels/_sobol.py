"""Scrambled Sobol points from a public seed: evenly spread, and the same on every machine.

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

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats

from ._public_randomness import row_words

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
