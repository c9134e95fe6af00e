"""Smoke test of mechanisms with Gaussian noise on many numbers: two neighbours are released many times.

What is released of either neighbour is a vector; the auditor, who made up the data, knows both without noise
and looks along given directions: the one in which they differ most for their noise, and others in which a
likely fault would show. Deciding for the second neighbour beyond the middle is the best test of two normal
laws. Its hits on both sides bound the distance μ of the laws from below (Dong, Roth and Su 2022), which the
claim allows to be 1/σ for the least σ that keeps (ε, δ) at sensitivity 1. A bound on ε itself would have to
count events of probability δ, which nobody sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum.auditing.binomial import at_most, binomial_bounds, lower_bounds, most_hits_below
from hushsum.auditing.report import AuditRow, Half
from hushsum.auditing.tail_test import FALSE_ALARM
from hushsum.privacy.accounting.analytic import analytic_gaussian_sigma
from hushsum.privacy.claim import Promise

Floats = NDArray[np.float64]

RELEASES = 500
THOROUGH_RELEASES = 2000
LESS_NOISE = 0.5
"""The fault that the stated power is for. At `THOROUGH_RELEASES` noise less by √2 is caught too."""

_QUANTILES = 129


@dataclass(frozen=True, slots=True, eq=False)
class Separated:
    """Two made-up neighbours and a mechanism.

    Attributes
    ----------
    exact : two arrays of shape (n,)
        What would be released of either without noise.
    release : callable
        ``release(side, seed)``: what is released of one, shape (n,); with None the noise is fresh.
    directions : array of shape (k, n)
        Along which to look. The first shows the whole distance.
    mu : float
        How far apart the claim allows the two laws to be.
    reach : float
        What part of it this pair has along the first direction.
    """

    exact: tuple[Floats, Floats]
    release: Callable[[int, int | None], Floats]
    directions: Floats
    mu: float
    reach: float = 1.0

    def hits(self, side: int, releases: int, seed: int | None) -> list[int]:
        """How often a release of one side lies on the second one's, along each direction."""
        middle = (self.exact[0] + self.exact[1]) / 2.0
        towards = np.sign(self.directions @ (self.exact[1] - self.exact[0]))
        found = np.zeros(len(self.directions), np.int64)
        for i in range(releases):
            own = None if seed is None else (2 * seed + side) * releases + i
            found += towards * (self.directions @ (self.release(side, own) - middle)) > 0.0
        return [int(each) for each in found]


def allowed_distance(promise: Promise) -> float:
    """μ of a Gaussian release that spends all of (ε, δ), or ρ.

    >>> round(allowed_distance(Promise.of(epsilon=8.0, delta=1e-6)), 2)
    1.53
    """
    if promise.rho is not None:
        return math.sqrt(2.0 * float(promise.rho))
    assert promise.epsilon is not None
    return 1.0 / analytic_gaussian_sigma(promise.epsilon, promise.delta, 1.0)


def audit_separation(what: str, pair: Separated, *, releases: int, seed: int | None = None) -> AuditRow:
    """Release both neighbours and bound how far apart their laws are.

    A mechanism that keeps its claim is accused with probability 1e-8 at most.
    """
    tail = FALSE_ALARM / (2 * len(pair.directions))
    without, with_unit = (pair.hits(side, releases, seed) for side in (0, 1))
    lowest = max(_distance(more, less, releases, tail) for more, less in zip(with_unit, without, strict=True))
    power = separation_power(pair.mu, pair.reach * pair.mu / LESS_NOISE, releases, tail)
    return AuditRow(what, Half.SMOKE, "mu", pair.mu, max(lowest, 0.0), power, 2 * releases)


def separation_power(allowed: float, actual: float, releases: int, tail: float) -> float:
    """The chance that two laws at the distance ``actual`` are shown to be further apart than ``allowed``.

    Exact but for averaging over 129 quantiles of the hits on one side.
    """
    from scipy.special import ndtr, ndtri

    likely = float(ndtr(actual / 2.0))
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    spread = math.sqrt(releases * likely * (1.0 - likely))
    hits = np.clip(np.rint(releases * likely + ndtri(levels) * spread), 1.0, releases)
    fewest = ndtr(ndtri(lower_bounds(hits, releases, tail)) - allowed)
    numbers = np.full(hits.shape, float(releases))
    return float(at_most(most_hits_below(numbers, fewest, tail), numbers, 1.0 - likely).mean())


def _distance(with_unit: int, without: int, releases: int, tail: float) -> float:
    from scipy.special import ndtri

    low = binomial_bounds(with_unit, releases, tail)[0]
    high = binomial_bounds(without, releases, tail)[1]
    return 0.0 if low == 0.0 or high == 1.0 else float(ndtri(low) - ndtri(high))
