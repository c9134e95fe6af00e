"""Smoke tests of whole releases: two neighbours are released many times and distinguished.

*Mechanisms with Gaussian noise on many numbers* (`audit_separation`). What is released of either neighbour is
a vector; the auditor, who made up the data, knows both without noise and looks along given directions: the
one in which they differ most for their noise, and others in which a likely fault would show. Deciding for the
second neighbour beyond the middle is the best test of two normal distributions. Its hits on both sides bound
the distance μ of the distributions from below (Dong, Roth and Su 2022), which the claim allows to be 1/σ for
the least σ that keeps (ε, δ) at sensitivity 1. A bound on ε itself would have to count events of probability
δ, which no sample contains.

The number of releases that this takes is computed from the pair, for two promises: half the noise is caught,
and the bound on a sound mechanism is not so low that it carries no information. The first does not imply the
second: noise that is half of what it should be is easily distinguished, so it needs fewer releases.

*Releases of tallies* (`audit_smoke`). It catches gross faults only: noise divided by four, a forgotten factor
of a person's records, a count that was not paid for. With more than one row no test could see all of ε, so
one row is released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.auditing._noise import (
    FALSE_ALARM,
    Term,
    at_most,
    binomial_bounds,
    distribution_of,
    draws_for,
    likely_hits,
    lower_bounds,
    most_hits_below,
    too_strong,
)
from hushsum.auditing._report import AuditRow, Half
from hushsum.kernels import EuclideanKernel
from hushsum.privacy import COUNT_SHARE, Promise
from hushsum.privacy.accounting import analytic_gaussian_sigma
from hushsum.releases import TableFunction
from hushsum.tables import HashRows
from hushsum.tally import Tally

THOROUGH_RELEASES = 2000
HALF_NOISE = 0.5
"""The fault that the stated power is for. At `THOROUGH_RELEASES` noise less by √2 is caught too."""

INFORMATIVE = 0.3
"""The part of the claim that the lower bound on a sound mechanism exceeds with the required power."""


Chances = Callable[[float], tuple[float, float]]
"""``chances(less)``: the probabilities that a release of the second and of the first neighbour lies beyond
the middle, along the first direction, when all noise is ``less`` times what it should be.
"""


def normal_chances(distance: float) -> Chances:
    """The chances for two normal distributions whose means are ``distance`` standard deviations apart.

    >>> [round(chance, 2) for chance in normal_chances(2.0)(1.0)]
    [0.84, 0.16]
    """
    from scipy.special import ndtr

    def chances(less: float) -> tuple[float, float]:
        half = distance / less / 2.0
        return float(ndtr(half)), float(ndtr(-half))

    return chances


def lattice_chances(variance: float, *, cells: int, move: int) -> Chances:
    """The chances for the sum of ``cells`` discrete Gaussians, moved by ``move`` steps of their lattice.

    Where the standard deviation is not far above one step this is not the normal distribution: at half a step
    and a move of one step, the neighbours are 1.26 times as far apart as two normal distributions would be.

    >>> [round(chance, 2) for chance in lattice_chances(0.25, cells=1, move=1)(1.0)]
    [0.89, 0.11]
    """

    def chances(less: float) -> tuple[float, float]:
        noise = distribution_of(Term(cells, variance * less**2))
        beyond = move // 2 + 1
        return float(noise.reaches(beyond - move)), float(noise.reaches(beyond))

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
        How far apart the claim allows the two distributions to be.
    chances : callable
        The distribution of the test along the first direction: what the stated power is computed from.
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
        """The probability that half the noise is caught along the first direction."""
        return separation_power(self.mu, self.chances(HALF_NOISE), releases, self.tail)

    def informs(self, releases: int) -> float:
        """The probability that the bound on a sound mechanism exceeds `INFORMATIVE` of the claim."""
        return separation_power(INFORMATIVE * self.mu, self.chances(1.0), releases, self.tail)

    def releases(self) -> int:
        """How many of each neighbour give both of these the required power."""
        number = draws_for(lambda number: min(self.power(number), self.informs(number)))
        if number is None:
            raise too_strong("mu", self.mu)
        return number

    def hits(self, side: int, releases: int, seed: int | None) -> list[int]:
        """How often a release of one side lies beyond the middle, along each direction."""
        middle = (self.exact[0] + self.exact[1]) / 2.0
        towards = np.sign(self.directions @ (self.exact[1] - self.exact[0]))
        found = np.zeros(len(self.directions), np.int64)
        for i in range(releases):
            own = None if seed is None else (2 * seed + side) * releases + i
            found += towards * (self.directions @ (self.release(side, own) - middle)) > 0.0
        return found.tolist()


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
    """Release both neighbours and bound how far apart their distributions are.

    A mechanism that keeps its claim is accused with probability 1e-8 at most. By default there are as many
    releases as the pair needs.
    """
    number = pair.releases() if releases is None else releases
    without, with_unit = (pair.hits(side, number, seed) for side in (0, 1))
    lowest = max(_shown(*hits, number, pair.tail) for hits in zip(with_unit, without, strict=True))
    return AuditRow(what, Half.SMOKE, "mu", pair.mu, lowest, pair.power(number), 2 * number)


def separation_power(
    allowed: float, chances: tuple[float, float], releases: int, tail: float, *, quantity: str = "mu"
) -> float:
    """The probability of the bound exceeding ``allowed``, for the probabilities of a hit on either side.

    Exact but for averaging over quantiles of the hits on the second side.
    """
    from scipy.special import ndtr, ndtri

    likely, unlikely = chances
    powers = lower_bounds(likely_hits(releases, likely), releases, tail)
    # The least false alarms that a claim of this size demands of an attacker of such a power.
    alarms = powers * math.exp(-allowed) if quantity == "epsilon" else ndtr(ndtri(powers) - allowed)
    numbers = np.full(powers.shape, float(releases))
    return float(at_most(most_hits_below(numbers, alarms, tail), numbers, unlikely).mean())


def _shown(with_unit: int, without: int, releases: int, tail: float, quantity: str = "mu") -> float:
    """A lower bound on the quantity from the hits of one event on both sides."""
    from scipy.special import ndtri

    low = binomial_bounds(with_unit, releases, tail)[0]
    high = binomial_bounds(without, releases, tail)[1]
    if low == 0.0 or high == 1.0:
        return 0.0
    return max(0.0, math.log(low / high) if quantity == "epsilon" else float(ndtri(low) - ndtri(high)))


RELEASES = 1000
GROSS = 4.0
"""How much too large a loss the stated power is for: noise divided by four."""

_EVENTS = 2
_TAIL = FALSE_ALARM / (2 * _EVENTS)


@dataclass(frozen=True, slots=True)
class SmokeCase:
    """The parameters of the releases: pure ε, or ρ; and how many records a person may have."""

    epsilon: float | None = None
    rho: float | None = None
    persons: int | None = None

    def __str__(self) -> str:
        unit = "a record" if self.persons is None else f"a person with {self.persons} records"
        return f"releases with and without {unit}"

    @property
    def quantity(self) -> str:
        """The name of the bounded quantity."""
        return "mu" if self.epsilon is None else "epsilon"

    @property
    def claim(self) -> float:
        """The largest allowed value of the quantity."""
        if self.epsilon is not None:
            return self.epsilon
        assert self.rho is not None
        return math.sqrt(2.0 * self.rho)

    def chances(self, fault: float) -> tuple[float, float]:
        """P(cell ≥ the unit's records) with the unit and without, when the noise is divided by ``fault``."""
        number = self.persons or 1
        share = 1.0 - float(COUNT_SHARE)
        if self.epsilon is not None:
            loss = self.epsilon * share * fault
            likely = 1.0 / (1.0 + math.exp(-loss / number))
            return likely, likely * math.exp(-loss)
        assert self.rho is not None
        noise = distribution_of(Term(1, number**2 / (2.0 * self.rho * share) / fault**2))
        return float(noise.reaches(0)), float(noise.reaches(number))


CASES = (
    SmokeCase(epsilon=1.0),
    SmokeCase(epsilon=1.0, persons=4),
    SmokeCase(rho=0.05),
    SmokeCase(rho=0.05, persons=4),
)


def audit_smoke(case: SmokeCase, *, seed: int | None = None, releases: int = RELEASES) -> AuditRow:
    """Release both neighbours ``releases`` times and bound what that reveals.

    Two events are looked at: that the unit's cell reaches the unit's records, and that the count does. Pure
    ε is bounded by the log-ratio of probabilities, ρ by the μ = √(2ρ) of the Gaussian curve; at this noise
    the lattice exceeds that curve by less than half a per cent, far within the slack of the bounds.
    """
    number = case.persons or 1
    empty, full = (_tally(case.persons, visits) for visits in (0, number))
    cell = int(np.argmax(full._state()["table"][0]))
    without, with_unit = (
        np.count_nonzero(_observe(tally, case, cell, releases, seed, side) >= number, axis=0).tolist()
        for side, tally in enumerate((empty, full))
    )
    lowest = max(
        _shown(*hits, releases, _TAIL, case.quantity) for hits in zip(with_unit, without, strict=True)
    )
    # The cell alone shows noise divided by `GROSS` with this probability.
    power = separation_power(case.claim, case.chances(GROSS), releases, _TAIL, quantity=case.quantity)
    return AuditRow(str(case), Half.SMOKE, case.quantity, case.claim, lowest, power, 2 * releases)


def _tally(persons: int | None, visits: int) -> Tally:
    """A made-up tally with ``visits`` equal records, so that its state may be looked at."""
    tally = Tally(
        HashRows(EuclideanKernel(dim=1, bandwidth=1.0), rows=1, width=4, seed=1), max_per_unit=persons
    )
    if visits:
        tally.add([[0.0]] * visits, units=None if persons is None else ["one"] * visits, threads=1)
    return tally


def _observe(
    tally: Tally, case: SmokeCase, cell: int, releases: int, seed: int | None, side: int
) -> NDArray[np.int64]:
    """The unit's cell and the count, as everyone sees them."""
    seen = np.empty((releases, 2), np.int64)
    for i in range(releases):
        function = tally.release(
            epsilon=case.epsilon,
            rho=case.rho,
            rows=1,
            threads=1,
            insecure_noise_seed=None if seed is None else (seed * 2 + side) * releases + i,
        )
        assert isinstance(function, TableFunction)
        seen[i] = function.table[0, cell], function.noisy_count
    return seen
