"""Smoke test of mechanisms with Gaussian noise on many numbers: two neighbours are released many times.

What is released of either neighbour is a vector; the auditor, who made up the data, knows both without noise
and looks along given directions: the one in which they differ most for their noise, and others in which a
likely fault would show. Deciding for the second neighbour beyond the middle is the best test of two normal
laws. Its hits on both sides bound the distance μ of the laws from below (Dong, Roth and Su 2022), which the
claim allows to be 1/σ for the least σ that keeps (ε, δ) at sensitivity 1. A bound on ε itself would have to
count events of probability δ, which no sample contains.

How many releases that takes is computed from the pair, for two promises: half the noise is caught, and the
bound on a sound mechanism is not so low that it carries no information. The first does not imply the second:
noise that is half of what it should be is easily distinguished, so it needs fewer releases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.auditing.binomial_bounds import at_most, binomial_bounds, lower_bounds, most_hits_below
from hushsum.auditing.gaussian_combination import Term, law_of
from hushsum.auditing.report import AuditRow, Half
from hushsum.auditing.tail_test import FALSE_ALARM, draws_for, too_strong
from hushsum.privacy.accounting.continuous_gaussian import analytic_gaussian_sigma
from hushsum.privacy.claim import Promise

THOROUGH_RELEASES = 2000
LESS_NOISE = 0.5
"""The fault that the stated power is for. At `THOROUGH_RELEASES` noise less by √2 is caught too."""

INFORMATIVE = 0.3
"""The part of the claim that the lower bound on a sound mechanism exceeds with the required power."""

_QUANTILES = 129

Chances = Callable[[float], tuple[float, float]]
"""``chances(less)``: how likely a release of the second and of the first neighbour lies beyond the middle,
along the first direction, when all noise is ``less`` times what it should be.
"""


def normal_chances(distance: float) -> Chances:
    """Of two normal laws whose means are ``distance`` standard deviations apart.

    >>> [round(chance, 2) for chance in normal_chances(2.0)(1.0)]
    [0.84, 0.16]
    """
    from scipy.special import ndtr

    def chances(less: float) -> tuple[float, float]:
        half = distance / less / 2.0
        return float(ndtr(half)), float(ndtr(-half))

    return chances


def lattice_chances(variance: float, *, cells: int, move: int) -> Chances:
    """Of the sum of ``cells`` discrete Gaussians, moved by ``move`` steps of their lattice.

    Where the standard deviation is not far above one step this is not the normal law: at half a step and a
    move of one step, the neighbours are 1.26 times as far apart as two normal laws would be.

    >>> [round(chance, 2) for chance in lattice_chances(0.25, cells=1, move=1)(1.0)]
    [0.89, 0.11]
    """

    def chances(less: float) -> tuple[float, float]:
        law = law_of(Term(cells, variance * less**2))
        beyond = move // 2 + 1
        return float(law.reaches(beyond - move)), float(law.reaches(beyond))

    return chances


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
    chances : callable
        The law of the test along the first direction: what the stated power is computed from.
    """

    exact: tuple[Floats, Floats]
    release: Callable[[int, int | None], Floats]
    directions: Floats
    mu: float
    chances: Chances

    @property
    def tail(self) -> float:
        """The false-alarm rate of one bound: all directions and both sides share it."""
        return FALSE_ALARM / (2 * len(self.directions))

    def power(self, releases: int) -> float:
        """The chance that half the noise is caught along the first direction."""
        return separation_power(self.mu, self.chances(LESS_NOISE), releases, self.tail)

    def informs(self, releases: int) -> float:
        """The chance that the bound on a sound mechanism exceeds `INFORMATIVE` of the claim."""
        return separation_power(INFORMATIVE * self.mu, self.chances(1.0), releases, self.tail)

    def releases(self) -> int:
        """How many of each neighbour give both of these the required power."""
        number = draws_for(lambda number: min(self.power(number), self.informs(number)))
        if number is None:
            raise too_strong("mu", self.mu)
        return number

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


def audit_separation(
    what: str, pair: Separated, *, releases: int | None = None, seed: int | None = None
) -> AuditRow:
    """Release both neighbours and bound how far apart their laws are.

    A mechanism that keeps its claim is accused with probability 1e-8 at most. By default there are as many
    releases as the pair needs.
    """
    number = pair.releases() if releases is None else releases
    without, with_unit = (pair.hits(side, number, seed) for side in (0, 1))
    lowest = max(
        _distance(more, less, number, pair.tail) for more, less in zip(with_unit, without, strict=True)
    )
    return AuditRow(what, Half.SMOKE, "mu", pair.mu, max(lowest, 0.0), pair.power(number), 2 * number)


def separation_power(allowed: float, chances: tuple[float, float], releases: int, tail: float) -> float:
    """The probability of the bound exceeding ``allowed``, for the chances of a hit on either side.

    Exact but for averaging over 129 quantiles of the hits on the second side.
    """
    from scipy.special import ndtr, ndtri

    likely, unlikely = chances
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    spread = math.sqrt(releases * likely * (1.0 - likely))
    hits = np.clip(np.rint(releases * likely + ndtri(levels) * spread), 1.0, releases)
    fewest = ndtr(ndtri(lower_bounds(hits, releases, tail)) - allowed)
    numbers = np.full(hits.shape, float(releases))
    return float(at_most(most_hits_below(numbers, fewest, tail), numbers, unlikely).mean())


def _distance(with_unit: int, without: int, releases: int, tail: float) -> float:
    from scipy.special import ndtri

    low = binomial_bounds(with_unit, releases, tail)[0]
    high = binomial_bounds(without, releases, tail)[1]
    return 0.0 if low == 0.0 or high == 1.0 else float(ndtri(low) - ndtri(high))
