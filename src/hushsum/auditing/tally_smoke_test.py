"""Smoke test of whole releases: two neighbouring tallies are released many times and distinguished.

It catches gross faults only: noise divided by four, a forgotten factor of a person's records, a count that
was not paid for. With more than one row no test could see all of ε, so one row is released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.auditing.binomial_bounds import at_most, binomial_bounds, lower_bounds, most_hits_below
from hushsum.auditing.gaussian_combination import Term, law_of
from hushsum.auditing.report import AuditRow, Half
from hushsum.auditing.tail_test import FALSE_ALARM
from hushsum.bases.hash_rows import HashRows
from hushsum.kernels import EuclideanKernel
from hushsum.privacy.calibration import COUNT_SHARE
from hushsum.releases.sketch import TableFunction
from hushsum.tally.tally import Tally

RELEASES = 1000
GROSS = 4.0
"""How much too large a loss the stated power is for: noise divided by four."""

_EVENTS = 2
_TAIL = FALSE_ALARM / (2 * _EVENTS)
_QUANTILES = 129


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
        """What is bounded."""
        return "mu" if self.epsilon is None else "epsilon"

    @property
    def claim(self) -> float:
        """How much of it is allowed."""
        if self.epsilon is not None:
            return self.epsilon
        assert self.rho is not None
        return math.sqrt(2.0 * self.rho)

    def bound(self, with_unit: int, without: int, releases: int) -> float:
        """A lower bound on the quantity from the hits of one event on both sides."""
        from scipy.special import ndtri

        low = binomial_bounds(with_unit, releases, _TAIL)[0]
        high = binomial_bounds(without, releases, _TAIL)[1]
        if low == 0.0 or high == 1.0:
            return 0.0
        value = math.log(low / high) if self.epsilon is not None else float(ndtri(low) - ndtri(high))
        return max(value, 0.0)

    def least_alarm(self, power: Floats) -> Floats:
        """The false alarms that the claim demands of an attacker of this power."""
        from scipy.special import ndtr, ndtri

        if self.epsilon is not None:
            return power * math.exp(-self.epsilon)
        alarm: Floats = ndtr(ndtri(power) - self.claim)
        return alarm

    def chances(self, fault: float) -> tuple[float, float]:
        """P(cell ≥ the unit's records) with the unit and without, when the noise is divided by ``fault``."""
        number = self.persons or 1
        share = 1.0 - float(COUNT_SHARE)
        if self.epsilon is not None:
            loss = self.epsilon * share * fault
            likely = 1.0 / (1.0 + math.exp(-loss / number))
            return likely, likely * math.exp(-loss)
        assert self.rho is not None
        law = law_of(Term(1, number**2 / (2.0 * self.rho * share) / fault**2))
        return float(law.reaches(0)), float(law.reaches(number))


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
    lowest = max(case.bound(*hits, releases) for hits in zip(with_unit, without, strict=True))
    return AuditRow(
        str(case), Half.SMOKE, case.quantity, case.claim, lowest, _power(case, releases), 2 * releases
    )


def _power(case: SmokeCase, releases: int) -> float:
    """The chance that the cell alone shows noise divided by `GROSS`."""
    from scipy.special import ndtri

    likely, unlikely = case.chances(GROSS)
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    spread = math.sqrt(releases * likely * (1.0 - likely))
    hits = np.clip(np.rint(releases * likely + ndtri(levels) * spread), 1.0, releases)
    allowed = case.least_alarm(lower_bounds(hits, releases, _TAIL))
    numbers = np.full(hits.shape, float(releases))
    return float(at_most(most_hits_below(numbers, allowed, _TAIL), numbers, unlikely).mean())


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
