"""How far apart the Fourier features of two records of a declared box can be: what a replaced record moves.

Letters: m frequencies ω_j in turns per unit, d columns, h the half widths of the box, A the amplitude of
features, u = 2⁻²⁴. A prepared record x has |x_i| ≤ h_i, and adds v(x), m pairs of integers.

**From features to a kernel.** v_j = A·e^{2πi(ω_j·x + e_j)} + r_j. The rounding r_j of a pair is at most
0.51·√2 long (`hushsum.bases.fourier_features`). The phase is a chain of d fused multiply–adds in single
precision, so |e_j| ≤ (d + 1)·u·E_j with E_j = Σ_i |ω_ji|·h_i; a phase so large that its fraction is lost has
2π(d + 1)·u·E_j > 2, which holds for any two numbers on the circle. So with k(δ) = (1/m)·Σ_j cos 2πω_j·δ,

    ‖v(x) − v(x')‖ ≤ A·√(m·(2 − 2·k(x − x'))) + 2A·√(Σ_j (2π(d + 1)·u·E_j)²) + 2·0.51·√(2m),

and k is needed on the box of differences |δ_i| ≤ 2h_i, from below.

**From all differences to a lattice.** Let k be smallest at δ*. Along every column, δ* lies on a face of the
box, or the derivative of k is zero there. Take a lattice that has points on all faces, with steps s_i. Of its
points, let δ⁰ be nearest to δ*: along a column on whose face δ* lies the two agree, and along the others the
derivative is zero. So with g = δ⁰ − δ*, |g_i| ≤ s_i/2, Taylor's theorem gives k(δ⁰) ≤ k(δ*) + ½·gᵀHg, H the
second derivatives at some point, and gᵀHg ≤ (1/m)·Σ_j (2πω_j·g)², which is convex in g and hence largest at a
corner:

    min over the box ≥ min over the lattice − max over corners g of (1/2m)·Σ_j (2πω_j·g)².

k is even, so half of the first column is enough.

**On the lattice** k is a sum over j of products over columns. Cosines and sines of each column come from the
native loop, in single precision and equal on every machine, within 2·10⁻⁵, and are rounded to multiples of
2⁻ᵇ. In units of 2⁻ᵇᵈ all sums are integers, below 2⁵³ since b is small enough, so double precision adds them
exactly in any order. An error η per factor, √2·(2⁻ᵇ⁻¹ + 2·10⁻⁵), is (1 + η)ᵈ − 1 at most in a product. Phases
are within 6·u·E_j: points and products are rounded to single precision, at twice the half widths. What is
left is rounding in double precision, a part of 10⁻¹² at most, for which a part of 10⁻⁹ is added; all sums of
many terms are exact (`math.fsum`), and powers are products. So no number depends on the machine.

**Where single precision has a range.** All relative errors above need points of the lattice that neither
overflow nor lose digits to underflow: half widths from 2⁻¹⁰⁰ to 2¹⁰⁰. In other boxes nothing is proven. A
record so near to zero that it is rounded to a multiple of 2⁻¹⁴⁹, or to zero where a process flushes such
numbers, then moves by less than a part u of h.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum._types import Floats
from hushsum.bases.fourier_feature_errors import AMPLITUDE, LENGTH

Waves = tuple[Floats, Floats]
"""Cosines and sines of phases, each of shape (points, features)."""

MOST_COLUMNS: Final = 8
"""With more, a lattice has too few points per column."""

MOST_WORK: Final = 1 << 28
"""Frequencies times points of the lattice: a few hundredths of a second to a few tenths."""

_MOST_WAVES: Final = 1 << 22
"""Frequencies times points of one column: 32 megabytes for the cosines, as many for the sines."""

_MOST_NUMBERS: Final = 1 << 20
"""In a table of sums of columns, and in a product of two: 8 megabytes."""

_FINEST: Final = 0.004
"""Of k, between the points of the lattice: less than this is not worth a finer one."""

_MOST_BITS, _FEWEST_BITS = 14, 6
_NARROWEST, _WIDEST = 2.0**-100, 2.0**100
_MOST_REMEMBERED: Final = 256
_EXACT_BITS: Final = 53
_SINGLE: Final = 2.0**-24
_WAVE_ERROR: Final = 2e-5
_ROUNDING: Final = 0.51
_DOUBLE: Final = 1e-9


def squared_diameter(frequencies: NDArray[np.float32], half_width: NDArray[np.float32]) -> int:
    """An upper bound of ‖v(x) − v(x')‖² over all records of the box; at most 4·m·L², which always holds.

    Parameters
    ----------
    frequencies : array of shape (features, dim)
        In turns per unit.
    half_width : array of shape (dim,)
        No prepared record is further from zero.

    >>> from hushsum.kernels import GaussianKernel
    >>> found = GaussianKernel(dim=1, bandwidth=1.0).frequencies(rows=500, seed=0, orthogonal=False)
    >>> round(squared_diameter(found, np.float32([5.0])) / (500 * 1024**2), 1)
    2.1
    """
    features, dim = len(frequencies), len(half_width)
    always = 4 * features * LENGTH**2
    least = least_similarity(frequencies, half_width)
    if least is None:
        return always
    phases = 2.0 * math.pi * (dim + 1) * _SINGLE * _reach(frequencies, half_width)
    length = (
        AMPLITUDE * math.sqrt(features * (2.0 - 2.0 * least))
        + 2.0 * AMPLITUDE * math.sqrt(math.fsum(np.square(phases)))
        + 2.0 * _ROUNDING * math.sqrt(2.0 * features)
    )
    return min(always, math.ceil(length * length * (1.0 + _DOUBLE)))


_remembered: dict[tuple[bytes, bytes], int] = {}


def remembered_squared_diameter(frequencies: NDArray[np.float32], half_width: NDArray[np.float32]) -> int:
    """`squared_diameter`, computed once for equal numbers, since tallies of one form share it.

    They are recognised by the frequencies themselves, not by the kernel that is said to have drawn them: the
    bound holds for what records are counted with.
    """
    key = hashlib.sha256(frequencies.tobytes()).digest(), half_width.tobytes()
    found = _remembered.get(key)
    if found is None:
        found = squared_diameter(frequencies, half_width)
        if len(_remembered) >= _MOST_REMEMBERED:
            _remembered.clear()
        _remembered[key] = found
    return found


def least_similarity(frequencies: NDArray[np.float32], half_width: NDArray[np.float32]) -> float | None:
    """A lower bound of (1/m)·Σ_j cos 2πω_j·(x − x') over records of the box, above −1; None where none is
    found with bounded work.
    """
    features, dim = len(frequencies), len(half_width)
    bits = min(_MOST_BITS, (_EXACT_BITS - 2 - features.bit_length()) // dim)
    if dim > MOST_COLUMNS or bits < _FEWEST_BITS:
        return None
    if not np.all((half_width >= _NARROWEST) & (half_width <= _WIDEST)):
        return None
    angular = 2.0 * math.pi * frequencies.astype(np.float64)
    sides = 2.0 * half_width.astype(np.float64)
    parts = _parts_of_sides(angular, sides)
    if parts is None:
        return None
    between = _largest_rise(angular, sides / np.array(parts) / 2.0)
    factor = math.sqrt(2.0) * (2.0 ** -(bits + 1) + _WAVE_ERROR)
    phases = 2.0 * math.pi * 6.0 * _SINGLE * math.fsum(_reach(frequencies, half_width)) / features
    uncertain = between + math.prod([1.0 + factor] * dim) - 1.0 + phases
    if not uncertain < 1.0:
        return None
    nodes = [np.arange(-many if column else 0, many + 1) / many for column, many in enumerate(parts)]
    waves = [
        _scaled_waves(frequencies[:, column], nodes[column] * sides[column], bits) for column in range(dim)
    ]
    lowest = _lattice_minimum(waves) / (features * 2.0 ** (bits * dim))
    found = lowest - uncertain - _DOUBLE
    return found if found > -1.0 else None


def _reach(frequencies: NDArray[np.float32], half_width: NDArray[np.float32]) -> Floats:
    """E_j = Σ_i |ω_ji|·h_i, shape (features,); column by column, since the order of a sum matters."""
    total = np.zeros(len(frequencies))
    for column, half in enumerate(half_width.astype(np.float64)):
        total += np.abs(frequencies[:, column].astype(np.float64)) * half
    return total


def _parts_of_sides(angular: Floats, sides: Floats) -> list[int] | None:
    """How many steps each side of the lattice has, from its middle to its face: as fine as the work allows;
    None if that is useless. Steps are in proportion to the scale on which k changes along the column.
    """
    features, dim = angular.shape
    scales = [
        float(side) * math.sqrt(math.fsum(np.square(column)) / features)
        for side, column in zip(sides, angular.T, strict=True)
    ]
    step, coarsest = math.sqrt(8.0 * _FINEST / dim), math.sqrt(8.0 / dim)
    if not all(each / coarsest < _MOST_WAVES for each in scales):
        return None
    while step < coarsest:
        parts = [max(1, math.ceil(each / step)) for each in scales]
        nodes = [parts[0] + 1, *(2 * each + 1 for each in parts[1:])]
        if features * max(nodes) <= _MOST_WAVES and features * math.prod(nodes) <= MOST_WORK:
            return parts
        step *= 1.1
    return None


def _largest_rise(angular: Floats, halves: Floats) -> float:
    """The largest (1/2m)·Σ_j (2πω_j·g)² over corners g of the box of these half widths."""
    features, dim = angular.shape
    found = 0.0
    for signs in itertools.product((-1.0, 1.0), repeat=dim - 1):
        along = angular[:, 0] * halves[0]
        for column, sign in enumerate(signs, 1):
            along = along + sign * halves[column] * angular[:, column]
        found = max(found, math.fsum(np.square(along)) / (2.0 * features))
    return found


def _scaled_waves(column: NDArray[np.float32], at: Floats, bits: int) -> Waves:
    """2ᵇ·cos and 2ᵇ·sin of a column's phases, rounded to integers, each of shape (points, features)."""
    native = _native.FeatureMap(np.ascontiguousarray(column[:, np.newaxis]))
    waves = native.waves(np.ascontiguousarray(at[:, np.newaxis], np.float32)).reshape(len(at), -1, 2)
    whole = np.rint(waves.astype(np.float64) * 2.0**bits)
    return np.ascontiguousarray(whole[..., 0]), np.ascontiguousarray(whole[..., 1])


def _lattice_minimum(waves: list[Waves]) -> float:
    """The smallest sum over frequencies, of exact integers, over all points of the lattice.

    Columns are joined from both ends to two tables, the points of some columns each, while these are small:
    so a product of matrices has much to do, whatever the number of columns.
    """
    if len(waves) == 1:
        return float(waves[0][0].sum(axis=1).min())
    first, *middle, last = waves
    while middle:
        ahead = len(first[0]) <= len(last[0])
        if (first if ahead else last)[0].size * len(middle[0 if ahead else -1][0]) > _MOST_NUMBERS:
            break
        if ahead:
            first = _joined(first, middle.pop(0))
        else:
            last = _joined(last, middle.pop())
    if middle:
        column, *later = middle
        rows = zip(*(each[:, np.newaxis] for each in column), strict=True)
        return min(_lattice_minimum([_joined(first, row), *later, last]) for row in rows)
    step = max(1, _MOST_NUMBERS // len(last[0]))
    return min(
        float((first[0][at : at + step] @ last[0].T - first[1][at : at + step] @ last[1].T).min())
        for at in range(0, len(first[0]), step)
    )


def _joined(one: Waves, other: Waves) -> Waves:
    """Cosines and sines of all sums of a phase of one and a phase of the other."""
    (cosine, sine), (cosines, sines) = (each[:, np.newaxis] for each in one), other
    features = one[0].shape[1]
    return (
        (cosine * cosines - sine * sines).reshape(-1, features),
        (cosine * sines + sine * cosines).reshape(-1, features),
    )
