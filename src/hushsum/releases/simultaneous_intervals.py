"""Simultaneous intervals: how many standard errors they reach so that all queries hold together."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hushsum._types import Floats
from hushsum.privacy.integer_noise import GAMMA, LAPLACE

DRAWS = 500
MOST_NUMBERS = 1 << 25
"""Of cells times draws, or of queries times rows: beyond, errors are not simulated."""

MOST_QUERIES = 2000
_UNIT = 1 << 20
_SEED = 0
_SMALLEST_TAIL = 1e-12

Simulation = Callable[[np.random.Generator, int], Floats]
"""The largest error over all queries, in standard errors, of each of some independent draws."""


def simultaneous_reach(
    level: float, number: int, quantile: Callable[[float], float], simulate: Simulation | None
) -> float:
    """Standard errors that contain all of ``number`` errors with probability ``level``.

    ``quantile(p)`` is what contains one of them with probability p. By Bonferroni's inequality its value at
    ``1 − (1 − level)/number`` suffices, whatever the dependence, as far as errors are normal. Simulated
    errors have the dependence of nearby queries, for which less is enough, and the tails of Laplace noise,
    which need more: the quantile of their maxima, one standard deviation of its rank above the level. The
    draws are pseudo-random with a fixed seed, so that equal queries have equal intervals.
    """
    rank = math.ceil(level * DRAWS + math.sqrt(level * (1.0 - level) * DRAWS))
    if simulate is None or number < 2 or rank >= DRAWS:
        return quantile(1.0 - (1.0 - level) / max(number, 1))
    from scipy.special import ndtr

    normal = float(np.sort(simulate(np.random.default_rng(_SEED), DRAWS))[rank])
    # Student's law in place of the normal one, where the standard errors are estimated.
    tail = 2.0 * float(ndtr(-normal))
    return normal * quantile(1.0 - tail) / quantile_of_normal(tail) if tail > _SMALLEST_TAIL else normal


def quantile_of_normal(tail: float) -> float:
    """What a normal error exceeds in size with this probability."""
    from scipy.special import ndtri

    return float(-ndtri(0.5 * tail))


def noise_table(
    rng: np.random.Generator, shape: tuple[int, ...], mechanism: str
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], float]:
    """Noise of the law of a release in whole numbers, for a reading, and its standard deviation."""
    if mechanism == LAPLACE:
        drawn = rng.laplace(scale=math.sqrt(0.5), size=shape)
    else:
        drawn = rng.standard_normal(shape)
    if mechanism == GAMMA:
        # Normal numbers of one variance, which has a Gamma law (`gamma_radius`).
        half = (math.prod(shape) + 1) / 2.0
        drawn *= math.sqrt(rng.gamma(half) / half)
    return np.rint(drawn * _UNIT).astype(np.int64), float(_UNIT)


def multiplier_maxima(
    rng: np.random.Generator, draws: int, rows: Floats, block: int, variance: Floats, common: Floats
) -> Floats:
    """Maxima of the errors of means over rows, each row multiplied by a random number: the multiplier
    bootstrap, which has the dependence between queries that the rows have.

    Parameters
    ----------
    rows : array of shape (queries, rows)
        What each row says.
    block : int
        How many rows share a random number, because they depend on each other.
    variance : array of shape (queries,)
        Of the means.
    common : array of shape (queries,)
        A part of each error that one more random number decides, that of the number of records.
    """
    number = rows.shape[1]
    starts = np.arange(0, number, block)
    sums = np.add.reduceat(rows - rows.mean(axis=1, keepdims=True), starts, axis=1) / number
    scale = np.sqrt(variance + common**2)
    paths = sums @ rng.standard_normal((len(starts), draws))
    paths += np.outer(common, rng.standard_normal(draws))
    largest: Floats = (np.abs(paths) / np.where(scale > 0.0, scale, np.inf)[:, None]).max(axis=0)
    return largest
