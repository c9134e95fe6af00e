"""Draw points by the weights of a public function: anywhere in a box, or out of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hushsum._types import Floats, Integers
from hushsum.errors import Argument, UsageError
from hushsum.models.mode_search import spread_points

Weights = Callable[[Floats], Floats]

_SPREAD: Final = 1 << 14
_GRID_CELLS: Final = 1 << 16
_LARGEST_GRID: Final = 3
_MOST_PROPOSALS: Final = 1 << 22
_SCALES: Final = (0.1, 0.3, 1.0)


def from_grid(w: Weights, low: Floats, high: Floats, number: int, random: np.random.Generator) -> Floats:
    """Points in up to three columns: a cell of an even grid by its weight, then evenly inside it.

    Raises
    ------
    UsageError
        for more columns.
    """
    dim = len(low)
    if dim > _LARGEST_GRID:
        raise UsageError(
            parameter="method",
            rule=f"must be 'chain' for more than {_LARGEST_GRID} columns",
            got=dim,
            remedy=("use ", Argument("method", "chain")),
        )
    side = round(_GRID_CELLS ** (1.0 / dim))
    unit = np.stack(np.meshgrid(*[np.arange(side)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = _positive(w(low + (high - low) * (unit + 0.5) / side))
    cells = unit[random.choice(len(unit), size=number, p=weights / weights.sum())]
    return np.asarray(low + (high - low) * (cells + random.random((number, dim))) / side, np.float64)


def by_rejection(w: Weights, low: Floats, high: Floats, number: int, random: np.random.Generator) -> Floats:
    """Even points of the box, each kept with probability w/w_max.

    The largest weight is looked for on the way; whenever a larger one turns up, earlier points are thinned
    accordingly, so the draws are exact for the largest weight seen.

    Raises
    ------
    UsageError
        if too few are kept, as happens in many columns.
    """
    largest = float(_positive(w(spread_points(low, high, _SPREAD, 0))).max())
    kept = np.empty((0, len(low)))
    proposed = 0
    while len(kept) < number:
        if proposed >= _MOST_PROPOSALS:
            raise UsageError(
                rule="rejection must keep a point now and then",
                got="too few in this box",
                remedy=("use ", Argument("method", "chain")),
            )
        points = low + (high - low) * random.random((_SPREAD, len(low)))
        weights = w(points)
        proposed += len(points)
        if weights.max() > largest:
            kept = kept[random.random(len(kept)) < largest / weights.max()]
            largest = float(weights.max())
        kept = np.concatenate([kept, points[random.random(len(points)) * largest < weights]])
    return kept[:number]


def by_chain(
    w: Weights,
    low: Floats,
    high: Floats,
    number: int,
    random: np.random.Generator,
    *,
    step: float | Floats,
    steps: int,
) -> Floats:
    """One Metropolis chain a point, in any number of columns.

    Chains start at evenly spread points drawn by their weights, which is close to the goal already, and take
    ``steps`` steps of three sizes, relative to ``step``, which may differ by column, reflected at the box.
    """
    cloud = spread_points(low, high, _SPREAD, int(random.integers(1 << 31)))
    weights = _positive(w(cloud))
    points = cloud[random.choice(len(cloud), size=number, p=weights / weights.sum())]
    here = w(points)
    for _ in range(steps):
        size = step * random.choice(_SCALES, size=(number, 1))
        trial = _reflected(points + size * random.standard_normal(points.shape), low, high)
        there = w(trial)
        moves = random.random(number) * here < there
        points[moves], here[moves] = trial[moves], there[moves]
    return points


def from_list(weights: Floats, number: int, random: np.random.Generator) -> Integers:
    """Positions drawn one after the other by weight, none twice (Efraimidis, Spirakis 2006)."""
    alive = np.flatnonzero(weights > 0.0)
    keys = np.log(random.random(len(alive))) / weights[alive]
    drawn: Integers = alive[np.argsort(-keys, kind="stable")[:number]]
    return drawn


def diverse_choice(weights: Floats, similarity: Callable[[int], Floats], number: int) -> Integers:
    """Positions of heavy items that are unlike one another, in the order in which they are picked.

    Each pick enlarges the determinant of √w·S·√w the most, which is the greedy mode of a determinantal point
    process; S is the kernel over its size, at most 1, whose row ``similarity(i)`` gives. Costs number² ×
    len(weights).

    Notes
    -----
    Chen, Zhang, Zhou, *Fast greedy MAP inference for determinantal point processes*, NeurIPS 2018. A
    collision probability is positive definite, so the determinant is never negative.
    """
    root = np.sqrt(np.maximum(weights, 0.0))
    gain = root**2
    factors = np.zeros((len(weights), number))
    picked: list[int] = []
    for k in range(min(number, int(np.count_nonzero(gain > 0.0)))):
        best = int(gain.argmax())
        if gain[best] <= 1e-12 * float(root.max()) ** 2:
            break
        picked.append(best)
        row = root[best] * similarity(best) * root
        factors[:, k] = (row - factors[:, :k] @ factors[best, :k]) / np.sqrt(gain[best])
        gain = np.maximum(gain - factors[:, k] ** 2, 0.0)
        gain[picked] = 0.0
    return np.array(picked, np.int64)


def _positive(weights: Floats) -> Floats:
    if not (weights > 0.0).any():
        raise UsageError(
            rule="the released function must stand out of its noise somewhere",
            got="nothing above its error",
            remedy=("use a larger ε or bandwidth, or ", Argument("floor", 0)),
        )
    return weights


def _reflected(points: Floats, low: Floats, high: Floats) -> Floats:
    """Points beyond a face, as often as needed, mirrored at it."""
    folded = np.mod((points - low) / (high - low), 2.0)
    return np.asarray(low + (high - low) * np.minimum(folded, 2.0 - folded), np.float64)
