"""Points at which released functions are compared: where they say that records are, and all over the box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.base import ColumnKernel, Kernel
from hushsum.records.bounds import Bounds
from hushsum.releases.answers import Points, query_points
from hushsum.releases.base import ReleasedFunction

_CANDIDATES: Final = 4096
_IN_BOX: Final = 0.25
"""Of the points, the part that is spread over the whole box."""

_CLIMBS: Final = 12
_MOVES: Final = 24
_SCALES: Final = (0.3, 1.0, 3.0)
"""Lengths of moves, in bandwidths."""

_POWERS: Final = (1.0, 2.0, 4.0, 8.0)
"""A mean kernel value is smoother than the density of the records; a power of it is narrower again."""

_HIDDEN: Final = 2.0
"""Standard errors below which a value shows nothing."""

_SEED: Final = 0
_FEWEST_GIVEN: Final = 2
_MOST_GIVEN: Final = 1000


def given_points(at: object, function: ReleasedFunction) -> Points:
    """Points that were given, checked; raises ``UsageError`` for too few or too many."""
    points = query_points(at, dim=function.dim, columns=function.columns)
    if not _FEWEST_GIVEN <= len(points) <= _MOST_GIVEN:
        raise UsageError(
            parameter="at",
            rule=f"must be {_FEWEST_GIVEN} to {_MOST_GIVEN} points",
            got=len(points),
            remedy="a few hundred where records are expected",
        )
    return points


def needed_bounds(function: ReleasedFunction) -> Bounds:
    """The box in which points are chosen; raises ``UsageError`` where there is none."""
    sets = function.dim is None or any(each.dim is None for each in function.kernel.parts())
    if sets or function.bounds is None:
        raise UsageError(
            parameter="at",
            rule="must be given for functions without bounds, or with sets",
            remedy="give public points where records are expected",
        )
    return function.bounds


def stderr_in(function: ReleasedFunction, box: Bounds) -> float:
    """The standard error of a mean kernel value in the middle of the box; 0 where it is not known."""
    middle = np.asarray(box.centre, np.float64)[np.newaxis]
    return float(np.nan_to_num(function.query(middle).stderr)[0])


def probe_points(
    values: Callable[[Floats], Floats], noise: float, kernel: Kernel, box: Bounds, number: int
) -> Floats:
    """Public points for functions of columns in a box, shape (number, dim).

    A quarter of them covers the box evenly. The others are samples of distributions that are proportional to
    powers of what ``values`` show above ``noise``, their standard error, by Metropolis' algorithm. It starts
    from where an even cover of the box shows most; in many columns few of its points see any record, so the
    first moves keep the better ones. All are pseudo-random with a fixed seed: equal functions have equal
    points.
    """
    rng = np.random.default_rng(_SEED)
    low, high = np.asarray(box.low, np.float64), np.asarray(box.high, np.float64)
    side = high - low
    spread = low + side * _halton(rng, _CANDIDATES, box.dim)
    around = max(1, round(number * (1.0 - _IN_BOX)))
    hidden = max(noise, np.finfo(float).tiny)

    def height(points: Floats) -> Floats:
        return np.maximum(values(points) - _HIDDEN * hidden, 0.01 * hidden)

    heights = height(spread)
    chosen = _resampled(rng, heights, around)
    points, heights = spread[chosen], heights[chosen]
    widths = np.array(kernel.column_bandwidths()) if isinstance(kernel, ColumnKernel) else side / 10.0
    powers = np.resize(_POWERS, around)
    for move in range(_CLIMBS + _MOVES):
        step = np.minimum(_SCALES[move % len(_SCALES)] * widths, side / 2.0) / np.sqrt(box.dim)
        moved = np.clip(points + step * rng.standard_normal(points.shape), low, high)
        new = height(moved)
        better = rng.random(around) < (new / heights) ** powers
        points, heights = np.where(better[:, None], moved, points), np.where(better, new, heights)
        if move < _CLIMBS and box.dim > 1:
            kept = _resampled(rng, heights, around)
            points, heights = points[kept], heights[kept]
    return np.concatenate([points, spread[: number - around]])


def _resampled(
    rng: np.random.Generator, heights: Floats, number: int
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Systematic resampling in proportion to heights."""
    places = (np.arange(number) + rng.random()) / number
    found = np.searchsorted(np.cumsum(heights) / heights.sum(), places)
    return np.minimum(found, len(heights) - 1)


def _halton(rng: np.random.Generator, number: int, dim: int) -> Floats:
    """Points that cover the unit cube evenly, shape (number, dim): Halton points in the first primes,
    with digits permuted at random, which they need in many columns (Owen 2017).
    """
    points = np.empty((number, dim))
    for column, base in enumerate(_primes(dim)):
        left, value, scale = np.arange(number), np.zeros(number), 1.0 / base
        while scale > 1e-12:
            value += scale * rng.permutation(base)[left % base]
            left, scale = left // base, scale / base
        points[:, column] = value
    return points


def _primes(number: int) -> list[int]:
    """The first primes.

    >>> _primes(5)
    [2, 3, 5, 7, 11]
    """
    found: list[int] = []
    candidate = 2
    while len(found) < number:
        if all(candidate % each for each in found if each * each <= candidate):
            found.append(candidate)
        candidate += 1
    return found
