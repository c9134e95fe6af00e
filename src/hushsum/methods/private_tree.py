"""Where the records are, under pure ε: a tree of boxes (PrivTree) and the histogram of each column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushsum._types import Floats, Integers, Rows
from hushsum.privacy.release_noise import ReleaseNoise
from hushsum.records.bounds import Bounds
from hushsum.records.discretised_box import CellGrid

TREE_SHARE = Fraction(7, 10)
"""Of the tree's ε: for its shape; the rest is for the counts of its leaves."""

CELLS_PER_BANDWIDTH = 2
_MOST_BINS = 1 << 10
_TREE_COST = 3
_ABOVE_LN_2 = Fraction(6_931_471_806, 10**10)
_SPREAD = 0.05
"""The part of a column's histogram that is spread evenly, so that no place in a leaf is impossible."""


@dataclass(frozen=True, slots=True)
class Leaves:
    """Boxes that cover the declared one, relative to its centre, and a public weight for each."""

    low: Floats
    high: Floats
    weights: Floats


def private_leaves(
    rows: Rows,
    bounds: Bounds,
    *,
    widths: Sequence[float],
    epsilon: Fraction,
    moved: int,
    noise: ReleaseNoise,
    count: float,
) -> Leaves:
    """Boxes that are small where records are dense, halved until they are half a bandwidth wide.

    Parameters
    ----------
    rows : array of shape (n, columns)
        Records, centred on the box; secret.
    widths : sequence of float
        The bandwidth along each column.
    moved : int
        1 under add/remove, 2 under replace.
    count : float
        The public number of records, which the weights of the leaves are fitted to.

    Privacy
    -------
    Pure ε, exact integers: 7/10 for the shape of the tree, the rest for the counts of its leaves, of which a
    record is in one. All boxes of a depth are halved along the same public column.

    *Shape.* A box with c records at depth i has the score ``b = max(u, −D)``, ``u = c − i·D``, and is halved
    if ``b + Z > 0``, with Z discrete Laplace of scale λ and D ≥ λ·ln 2 an integer. One record more raises c
    by 1 along one path. Let q = e^(−1/λ). The leaf at the end of the path changes the probability of the tree
    by a factor from q to 1. A halved box changes it by a factor of at least 1 and at most e^ρ(b), with

    - ρ = 0 where u < −D, since b stays −D;
    - ρ ≤ 1/λ always;
    - ρ(b) = ln(1 + q^b·(1 − q)/(1 + q − q^b)) ≤ q^b·(1 − q) for b ≥ 1, because P(Z > −b) = 1 − q^b/(1 + q).

    Along the path u falls by D or more from box to box. So one u at most is in [−D, 0), and those from 0 on
    are at least 0, D, 2D, …: their sum is at most 1/λ + 1/λ + (1 − q)·Σ_{k≥1} q^{kD} ≤ 3/λ, since q^D ≤ ½ and
    1 − q ≤ 1/λ. One record replaced is one less and one more.

    Notes
    -----
    Zhang, Xiao and Xie, *PrivTree*, SIGMOD 2016, with two children per box, and with integer noise.
    """
    low = np.array([bounds.low], np.float64) - bounds.centre
    high = np.array([bounds.high], np.float64) - bounds.centre
    shape_epsilon = TREE_SHARE * epsilon
    penalty = depth_penalty(epsilon, moved)
    place = np.zeros(len(rows), np.int64)
    index = np.arange(len(rows))
    lows, highs, counts = [], [], []
    depth = 0
    while len(low):
        inside = np.bincount(place, minlength=len(low)).astype(np.int64)
        sides = (high[0] - low[0]) / np.array(widths)
        column = int(np.argmax(sides))
        split = np.zeros(len(low), bool)
        if sides[column] > 1.0 / CELLS_PER_BANDWIDTH:
            score = np.maximum(inside - depth * penalty, -penalty)
            split = noise.laplace(score, _TREE_COST * moved, shape_epsilon)[0] > 0
        lows.append(low[~split])
        highs.append(high[~split])
        counts.append(inside[~split])
        # The halves of the k-th box that was split are boxes 2k and 2k + 1 of the next depth.
        low, high = low[split].repeat(2, axis=0), high[split].repeat(2, axis=0)
        middle = 0.5 * (low[:, column] + high[:, column])
        high[0::2, column] = middle[0::2]
        low[1::2, column] = middle[1::2]
        stays = split[place]
        index, place = index[stays], 2 * (np.cumsum(split) - 1)[place[stays]]
        if len(index):
            place += rows[index, column].astype(np.float64) >= low[place + 1, column]
        depth += 1
    noisy, _ = noise.laplace(np.concatenate(counts), moved, epsilon - shape_epsilon)
    return Leaves(np.concatenate(lows), np.concatenate(highs), nearest_shares(noisy, count))


def depth_penalty(epsilon: Fraction, moved: int) -> int:
    """D: the records that a box must hold for each halving before it, to be halved again."""
    return math.ceil(_TREE_COST * moved / (TREE_SHARE * epsilon) * _ABOVE_LN_2)


def full_depth(bounds: Bounds, widths: Sequence[float]) -> int:
    """How often the box is halved until its parts are half a bandwidth wide along every column.

    >>> full_depth(Bounds.of((0, 1), 3), widths=[0.1] * 3)
    15
    """
    sides = ((high - low) / width for low, high, width in zip(bounds.low, bounds.high, widths, strict=True))
    return sum(max(0, math.ceil(math.log2(side * CELLS_PER_BANDWIDTH))) for side in sides)


@dataclass(frozen=True, slots=True)
class ColumnHistograms:
    """The distribution function of each column, piecewise linear, relative to the centre of the box."""

    edges: tuple[Floats, ...]
    steps: tuple[Floats, ...]


def column_histograms(
    rows: Rows,
    bounds: Bounds,
    *,
    widths: Sequence[float],
    epsilon: Fraction,
    moved: int,
    noise: ReleaseNoise,
    count: float,
) -> ColumnHistograms:
    """Noisy histograms with cells half a bandwidth wide, fitted to the public number of records.

    Privacy
    -------
    Pure ε, exact integers. A record is in one cell of every column, so Δ1 is the number of columns, and twice
    that under replace.
    """
    spans = np.array(bounds.high) - np.array(bounds.low)
    bins = (
        np.clip(np.ceil(spans / np.array(widths) * CELLS_PER_BANDWIDTH), 1, _MOST_BINS).astype(int).tolist()
    )
    grid = CellGrid.of(bounds, bins)
    codes = grid.codes(rows)
    edges, steps = [], []
    for column, number in enumerate(bins):
        counts = np.bincount(codes[:, column], minlength=number).astype(np.int64)
        noisy, _ = noise.laplace(counts, moved * bounds.dim, epsilon)
        cells = (1.0 - _SPREAD) * nearest_shares(noisy, count) + _SPREAD / number
        low = bounds.low[column] - bounds.centre[column]
        edges.append(low + spans[column] * np.linspace(0.0, 1.0, number + 1))
        steps.append(np.concatenate([[0.0], np.cumsum(cells)]))
    return ColumnHistograms(tuple(edges), tuple(steps))


def draw_points(
    leaves: Leaves, histograms: ColumnHistograms, number: int, rng: np.random.Generator
) -> Floats:
    """Public points: a leaf by its weight, and each column by its histogram within that leaf."""
    chosen = rng.choice(len(leaves.weights), number, p=leaves.weights)
    points = np.empty((number, leaves.low.shape[1]))
    for column, (edges, steps) in enumerate(zip(histograms.edges, histograms.steps, strict=True)):
        first = np.interp(leaves.low[chosen, column], edges, steps)
        last = np.interp(leaves.high[chosen, column], edges, steps)
        points[:, column] = np.interp(first + (last - first) * rng.random(number), steps, edges)
    return points


def nearest_shares(noisy: Integers, count: float) -> Floats:
    """Noisy counts as parts of 1: the nearest numbers, by the sum of squares, that are not negative and sum
    to the number of records.

    They are the counts less one constant, and 0 where that is negative, so most of the noise of empty cells
    is gone.

    >>> nearest_shares(np.array([60, 50, -20, 0]), 100.0).tolist()
    [0.55, 0.45, 0.0, 0.0]
    """
    falling = np.sort(noisy.astype(np.float64))[::-1]
    above = (np.cumsum(falling) - max(count, 1.0)) / np.arange(1, len(noisy) + 1)
    kept = np.maximum(noisy - above[np.flatnonzero(falling > above)[-1]], 0.0)
    shares: Floats = kept / kept.sum()
    return shares
