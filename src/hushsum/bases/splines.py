"""B-splines on equal cells: their values, their integer parts, and the projection of a function on them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats

LOWEST_DEGREE, HIGHEST_DEGREE = 2, 5


def spline_values(degree: int, inside: Floats) -> Floats:
    """What each of the degree + 1 nodes around a cell is given, for places 0 ≤ u < 1 in the cell.

    The nodes are one cell apart, the first of them (degree − 1)/2 cells before the start of the cell. The
    values are not negative, sum to 1, and have the place as their mean. Sums, products and quotients of
    doubles alone, each of which IEEE 754 defines to the last bit, so that every platform has the same values.

    >>> spline_values(3, np.array([0.0, 0.5])).round(4).tolist()
    [[0.1667, 0.6667, 0.1667, 0.0], [0.0208, 0.4792, 0.4792, 0.0208]]
    """
    values = [np.ones_like(inside)]
    for k in range(1, degree + 1):
        # The cardinal recursion k·b_k(x) = x·b_(k−1)(x) + (k + 1 − x)·b_(k−1)(x − 1) at x = u + k − j.
        raised = []
        for j in range(k + 1):
            x = inside + float(k - j)
            value = x * values[j - 1] if j > 0 else np.zeros_like(inside)
            if j < k:
                value = value + (float(k + 1) - x) * values[j]
            raised.append(value / float(k))
        values = raised
    return np.stack(values, axis=-1)


@lru_cache(maxsize=32)
def part_table(degree: int, parts: int, places: int) -> NDArray[np.int32]:
    """Integer weights of the degree + 1 nodes for each of the places inside a cell, shape (places, degree +
    1); rows sum to ``parts``.

    Each weight is rounded to nearest, and the largest one takes what the others leave.

    >>> part_table(2, 64, 3).tolist()
    [[22, 41, 1], [8, 48, 8], [1, 41, 22]]
    """
    inside = (np.arange(places) + 0.5) / places
    table = np.rint(spline_values(degree, inside) * float(parts)).astype(np.int32)
    row = np.arange(places)
    largest = table.argmax(axis=1)
    table[row, largest] += np.int32(parts) - table.sum(axis=1, dtype=np.int32)
    table.flags.writeable = False
    return table


def dual_response(degree: int, frequency: Floats) -> Floats:
    """The Fourier transform of the spline's dual: a function is projected on splines, by least squares, with
    the coefficients that its convolution with the dual has at the nodes.

    ``frequency`` is in radians per cell. The transform is that of the spline over the sum of its squared
    copies, which is the cosine series of the spline of degree 2·degree + 1 at whole numbers.
    """
    return sinc_power(degree, frequency) / gram_response(degree, frequency)


def sinc_power(degree: int, frequency: Floats) -> Floats:
    """The Fourier transform of a spline."""
    transform: Floats = np.sinc(frequency / (2.0 * np.pi)) ** (degree + 1)
    return transform


def gram_response(degree: int, frequency: Floats) -> Floats:
    """The transform of the inner products of a spline with its neighbours."""
    return inner_products(degree) @ np.cos(np.arange(-degree, degree + 1)[:, None] * frequency)


def inner_products(degree: int) -> Floats:
    """∫ b(x)·b(x − m) dx for m from −degree to degree."""
    order = 2 * degree + 1
    return spline_values(order, np.zeros(1))[0, :order]
