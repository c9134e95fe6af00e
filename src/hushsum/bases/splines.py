"""B-splines on equal cells: values, integer parts, and the least-squares reading along one column."""

from __future__ import annotations

import math
from dataclasses import dataclass
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


_GAUSSIAN_REACH = 8.0
_DUAL_REACH = 48
"""Cells after which the alternating tail of the dual of a spline of degree 5 is below 1e-8."""

_LARGEST_FREQUENCY = 9.0
_SMALLEST_TAIL = 1e-8
_TAIL_SHARE = 0.1
"""What is cut off of a factor may add so much to the error that the projection has anyway."""

_STEPS_IN_DEVIATION = 1500.0
_FIRST_STEPS = 64
_FEWEST_STEPS, _MOST_STEPS, _MOST_CORNER_STEPS = 32, 8192, 512
"""Tabulated places in a cell. Linear interpolation then errs by less than 1e-7 for a Gaussian; for a profile
with a corner, which no spline follows, by far less than the projection.
"""

_OVER = 20.0
"""Decay per cell of an exponential that is below 1e-300 where its tail would begin."""

_PHASES = 32


@dataclass(frozen=True, eq=False)
class ColumnFactors:
    """Coefficients c(t) of nodes at a signed distance of t cells from a query, even in t.

    ``mesh`` has c at t = 0, 1/steps, 2/steps, …; beyond ``reach`` cells c is ``tail·exp(−t/scale)``, or 0 for
    a Gaussian, whose ``tail`` is 0. ``rows`` has the same by the place of a query between two nodes: c of the
    2·reach nodes around it, shape (steps + 1, 2·reach).
    """

    degree: int
    scale: float
    gaussian: bool
    steps: int
    reach: int
    tail: float
    mesh: Floats
    rows: Floats

    def around(self, inside: Floats) -> Floats:
        """c of the 2·reach nodes around queries ``inside`` ∈ [0, 1) cells after a node, shape (n, 2·reach);
        the first of them lies reach − 1 cells before that node.
        """
        place = inside * self.steps
        left = np.minimum(place.astype(np.int64), self.steps - 1)
        lower = self.rows[left]
        result: Floats = lower + (place - left)[:, None] * (self.rows[left + 1] - lower)
        return result

    def at(self, distance: Floats) -> Floats:
        """c at any distances in cells."""
        away = np.abs(distance)
        place = np.minimum(away * self.steps, float(len(self.mesh) - 2))
        left = place.astype(np.int64)
        lower = self.mesh[left]
        values = lower + (place - left) * (self.mesh[left + 1] - lower)
        far = self.tail * np.exp(-away / self.scale) if self.tail else 0.0
        result: Floats = np.where(away <= self.reach, values, far)
        return result

    def shape(self, distance: Floats) -> Floats:
        """What the factors stand for: the profile at distances in cells."""
        away = np.abs(distance) / self.scale
        result: Floats = np.exp(-0.5 * away * away) if self.gaussian else np.exp(-away)
        return result

    def read(self, inside: Floats, distance: Floats) -> Floats:
        """What a record counts that lies ``inside`` ∈ [0, 1) of a cell, for queries at a distance from it, in
        cells; arrays that broadcast.
        """
        if self.degree == 0:
            return self.shape(distance)
        first = (self.degree - 1) / 2.0
        weights = spline_values(self.degree, np.asarray(inside, np.float64))
        total = np.zeros(np.broadcast_shapes(np.shape(inside), np.shape(distance)))
        for j in range(self.degree + 1):
            total += weights[..., j] * self.at(distance + inside + (first - j))
        return total


@lru_cache(maxsize=512)
def column_factors(degree: int, scale: float, gaussian: bool) -> ColumnFactors:
    """Of a Gaussian or exponential profile whose ``scale`` is given in cells, for weights of a degree; degree
    0 is for records that lie on nodes, which are read with the profile itself.

    For a degree above 0 the coefficients are those of the least-squares projection of the profile on the
    splines: its convolution with their dual. The error of the reading is then the part of the profile that no
    sum of the splines follows.
    """
    steps = 1 << max(0, math.ceil(math.log2(_STEPS_IN_DEVIATION / scale)))
    # A wide Gaussian has no corner that would need places in every cell.
    steps = min(steps, _MOST_STEPS) if gaussian else min(max(steps, _FEWEST_STEPS), _MOST_CORNER_STEPS)
    own = math.ceil(_GAUSSIAN_REACH * scale) if gaussian else 0
    reach = own + (_DUAL_REACH if degree else 1)
    mesh, tail = _projected(degree, scale, gaussian, steps, reach)
    whole = ColumnFactors(degree, scale, gaussian, steps, reach, tail, mesh, mesh[:0])
    if gaussian:
        reach = _shortest_reach(whole)
    node = np.arange(1 - reach, reach + 1)
    places = np.abs(np.arange(steps + 1)[:, None] - node * steps)
    rows = np.where(places <= reach * steps, mesh[np.minimum(places, len(mesh) - 1)], 0.0)
    if tail:
        far = tail * np.exp(-places / (steps * scale))
        rows = np.where(places <= reach * steps, rows, far)
    return ColumnFactors(degree, scale, gaussian, steps, reach, tail, mesh[: reach * steps + 2], rows)


def _projected(degree: int, scale: float, gaussian: bool, steps: int, reach: int) -> tuple[Floats, float]:
    """c at t = i/steps up to ``reach`` and one step beyond, and the factor of an exponential's tail."""
    count = reach * steps + 2
    t = np.arange(count) / steps
    if degree == 0:
        away = t / scale
        return (np.exp(-0.5 * away * away), 0.0) if gaussian else (np.exp(-away), 1.0)
    period = 1 << math.ceil(math.log2(2 * reach + 2))
    if gaussian:
        # The transform has nothing left beyond these frequencies, so that a coarse mesh is enough to begin
        # with.
        coarse = min(steps, _FIRST_STEPS)
        kept = min(period * coarse // 2, math.ceil(_LARGEST_FREQUENCY / scale * period / (2.0 * np.pi)))
        frequency = 2.0 * np.pi * np.arange(kept + 1) / period
        transform = scale * math.sqrt(2.0 * math.pi) * np.exp(-0.5 * (scale * frequency) ** 2)
        rough = np.fft.irfft(transform * dual_response(degree, frequency), period * coarse) * coarse
        return _refined(rough, steps // coarse, count), 0.0
    samples = period * steps
    frequency = 2.0 * np.pi * np.arange(samples // 2 + 1) / period
    transform = 2.0 * scale / (1.0 + (scale * frequency) ** 2)
    mesh = np.fft.irfft(transform * dual_response(degree, frequency), samples)[:count] * steps
    # Away from its corner an exponential is an eigenfunction of the convolution, with this eigenvalue.
    tail = _eigenvalue(degree, 1.0 / scale)
    # What the other periods' tails add to this one.
    ahead, behind = np.exp(-(period - t) / scale), np.exp(-(period + t) / scale)
    mesh -= tail * (ahead + behind) / -math.expm1(-period / scale)
    return mesh, tail


def _refined(rough: Floats, factor: int, count: int) -> Floats:
    """An even function, given on a mesh, at the first ``count`` places of a mesh that is so many times
    finer: by polynomials through six neighbours.
    """
    if factor == 1:
        return rough[:count]
    around = np.arange(-2, 4)
    between = np.arange(factor) / factor
    weights = np.ones((6, factor))
    for i, node in enumerate(around):
        for other in around[around != node]:
            weights[i] *= (between - other) / float(node - other)
    cells = -(-count // factor)
    neighbours = rough[np.abs(np.arange(cells)[:, None] + around)]
    refined: Floats = (neighbours @ weights).reshape(-1)[:count]
    return refined


def _eigenvalue(degree: int, rate: float) -> float:
    """The dual's transform at the imaginary frequency i·rate; 0 for a profile that is over after a few
    cells.
    """
    if rate > _OVER:
        return 0.0
    half = 0.5 * rate
    spline = (math.sinh(half) / half) ** (degree + 1) if half > 1e-8 else 1.0
    return spline / float(inner_products(degree) @ np.cosh(rate * np.arange(-degree, degree + 1)))


def _shortest_reach(factors: ColumnFactors) -> int:
    """The fewest cells beyond which all coefficients together are far below the error of the projection."""
    phases = np.arange(_PHASES) / _PHASES
    own = 0.0
    if factors.degree:
        distance = np.arange(0.0, 2.0 * factors.scale, 0.25 * factors.scale)
        error = factors.read(phases[:, None], distance) - factors.shape(distance)
        own = float(np.abs(error).max())
    allowed = max(_TAIL_SHARE * own, _SMALLEST_TAIL)
    size = np.abs(factors.mesh[: factors.reach * factors.steps]).reshape(factors.reach, factors.steps)
    # Σ over whole cells of the largest coefficient in each, on both sides.
    tails = 2.0 * size.max(axis=1)[::-1].cumsum()[::-1]
    within = np.flatnonzero(tails <= allowed)
    return max(1, int(within[0])) if len(within) else factors.reach
