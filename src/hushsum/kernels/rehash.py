"""The second hash: from hash values of any range into the cells of a row.

Multiply-shift hashing is pairwise independent and no more: values in arithmetic progression, such as the
floors of projections, stay in progression. Of W·m rows in a few all m occupied values fall into one cell, and
the variance of what strangers add is two to five times that of independent cells, common to all queries. So
words are *scattered* first, by the bijection w ← w·0x9E3779B1, w ← w XOR (w >> 16) of 32-bit words. A
bijection of the keys keeps pairwise independence, and with it unbiased answers; progressions are gone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushsum.kernels.randomness import row_words


def multiply_shift(
    family: str, seed: int, rows: int, words: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Multipliers (rows, words) and addends (rows,) of a strongly universal hash.

    ``h = (Σᵢ aᵢ·wᵢ + b mod 2⁶⁴) >> 32`` of 32-bit words is pairwise independent and uniform on 32 bits
    (Dietzfelbinger 1996; Thorup, *High speed hashing for integers and strings*, 2015); ``(h·W) >> 32`` then
    picks the cell. Where W is not a power of two, cells differ in probability by at most 2⁻³², which is below
    any error that is reported.
    """
    numbers = row_words(f"{family}/rehash", seed, rows, words + 1)
    return np.ascontiguousarray(numbers[:, :words]), np.ascontiguousarray(numbers[:, words])
