"""Vectors in a ball of a declared radius, as whole numbers: what bounds the length of every record."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.records.unit_ball import norms

MOST_BITS = 20
FEWEST_BITS = 8


def whole_length(dim: int, bits: int) -> int:
    """A: the whole number that stands for the radius, so that rounded vectors are no longer than 2^bits.

    >>> whole_length(512, 12)
    4083
    """
    return (1 << bits) - math.isqrt(dim) // 2 - 2


def clipped_to_ball(rows: Floats, radius: float) -> Floats:
    """Rows that are longer than the radius, shortened to it; each row's bits depend on that row alone."""
    # At least the radius, so that the quotient neither overflows nor warns, which would tell of a record.
    shrink = radius / np.maximum(norms(rows), radius)
    clipped: Floats = rows * shrink[:, None]
    return clipped


def whole_vectors(rows: Floats, radius: float, bits: int) -> NDArray[np.int64]:
    """Rows in the ball of this radius, rounded to whole numbers z with ‖z‖ ≤ S = 2^bits.

    Privacy
    -------
    A row is clipped to the radius, multiplied by A/radius and rounded, each column by itself; the squares
    behind its length are summed column by column. So its bits depend on that row alone. Rounding moves each
    of d columns by at most ½, and clipping and scaling in double precision make the length wrong by less
    than d·2⁻⁴⁹ of itself. So ‖z‖ ≤ A·(1 + d·2⁻⁴⁹) + √d/2 ≤ S, with A = S − ⌊⌊√d⌋/2⌋ − 2, for every d up to
    2²⁰.
    """
    length = whole_length(rows.shape[1], bits)
    scaled = clipped_to_ball(rows, radius) * (length / radius)
    return np.rint(scaled).astype(np.int64)
