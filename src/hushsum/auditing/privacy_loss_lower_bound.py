"""The noise half of an audit: lower bounds on what a mechanism really gives away, by likelihood-ratio tests.

Each test simulates only the cells in which the worst pair of neighbours differ, and reduces them to the
statistic their likelihood ratio depends on (`tail_test` explains what is then counted). A mechanism that
keeps its claim is accused with probability at most `FALSE_ALARM`. ``power`` is the chance that a copy with a
fifth less noise is caught: exact for one direction, so that both together do at least as well.

What no sampling sees: faults in tails that draws do not reach, such as noise cut off at forty deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.auditing.binomial_bounds import binomial_bounds
from hushsum.auditing.gaussian_combination import LatticeLaw, Term, law_of
from hushsum.auditing.tail_test import (
    FALSE_ALARM,
    Events,
    Hits,
    draws_for,
    one_direction_power,
    too_strong,
)
from hushsum.errors import Parameter, UsageError

Draw = Callable[[int], NDArray[np.int64]]
"""Gives as many independent draws of one cell's noise as requested."""

LESS_NOISE = 0.8
_AT_A_TIME = 1 << 22
_LAPLACE_TAIL = FALSE_ALARM / 2
_GAUSSIAN_TAIL = FALSE_ALARM / 4
_NEAR_LEVELS = (0.9, 0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.05)


@dataclass(frozen=True, slots=True)
class NoiseAudit:
    """A claim, the lower bound the audit reached, and how likely it would have caught a fifth less noise."""

    mechanism: str
    quantity: str
    claimed: float
    lower_bound: float
    draws: int
    power: float

    @property
    def holds(self) -> bool:
        """Whether the audit failed to break the claim."""
        return self.lower_bound <= self.claimed


def audit_laplace(
    draw: Draw,
    epsilon: float | Fraction,
    *,
    shift: int = 1,
    draws: int | None = None,
    less: float = LESS_NOISE,
) -> NoiseAudit:
    """Audit one cell that neighbours move by ``shift``, against pure ``epsilon``.

    For discrete Laplace noise P(z ≥ 0) = e^ε·P(z ≥ shift) exactly, and no event has a larger ratio. Audit
    at one cell: over R rows the losses concentrate near ε/√R, and no test sees ε.

    Parameters
    ----------
    draw : callable
        The noise of one cell.
    epsilon : float
        What it is claimed to keep when the cell moves by ``shift``.
    draws : int, optional
        Default: as many as catch noise of ``less`` times the scale with a power of 0.995.

    Raises
    ------
    UsageError
        if ε is not above 0, or too large (about 15) for its rare events to be sampled.
    """
    claimed = float(epsilon)
    if not claimed > 0 or shift < 1:
        raise UsageError(
            parameter="epsilon",
            rule="must be above 0 and shift at least 1",
            got=f"{claimed:g} and {shift}",
            remedy="give those claimed",
        )
    number = laplace_draws(claimed, shift=shift, less=less) if draws is None else draws
    directions = _counted(draw, number, Events(0, shift))
    lowest = max(-math.log(binomial_bounds(hits.far, hits.near, _LAPLACE_TAIL)[1]) for hits in directions)
    power = laplace_power(claimed, number, shift=shift, less=less)
    return NoiseAudit("discrete laplace", "epsilon", claimed, lowest, number, power)


def laplace_draws(epsilon: float, *, shift: int = 1, less: float = LESS_NOISE) -> int:
    """Draws that give the required power against noise of ``less`` times the scale.

    >>> laplace_draws(1.0) < 10_000
    True
    """
    number = draws_for(lambda number: laplace_power(epsilon, number, shift=shift, less=less))
    if number is None:
        raise too_strong("epsilon", epsilon)
    return number


def laplace_power(epsilon: float, number: int, *, shift: int = 1, less: float = LESS_NOISE) -> float:
    """The chance that one direction breaks the claim when the scale is ``less`` times what it should be."""
    actual = epsilon / less
    near = 1.0 / (1.0 + math.exp(-actual / shift))
    return one_direction_power(
        number,
        near,
        math.exp(-actual),
        lambda y: np.full(y.shape, math.exp(-epsilon)),
        near_tail=0.0,
        far_tail=_LAPLACE_TAIL,
    )


@dataclass(frozen=True, slots=True)
class GaussianPair:
    """The worst pair of a table with discrete Gaussian noise: ``cells`` cells and, if it is noisy, the count
    move by ``shift`` each.

    The statistic is ``T = a·Σ cells + b·count`` with the integers next to the ratio of the inverse
    variances, on which the likelihood ratio depends. μ² = shift²·(cells/variance + 1/count_variance).
    """

    variance: float
    cells: int = 1
    shift: int = 1
    count_variance: float | None = None

    @property
    def mu(self) -> float:
        """How many deviations apart the two datasets are."""
        count = 0.0 if self.count_variance is None else 1.0 / self.count_variance
        return self.shift * math.sqrt(self.cells / self.variance + count)

    @property
    def weights(self) -> tuple[int, int]:
        """(a, b); b is 0 without a noisy count."""
        if self.count_variance is None:
            return 1, 0
        ratio = self.variance / self.count_variance
        return (1, max(1, round(ratio))) if ratio >= 1 else (max(1, round(1 / ratio)), 1)

    @property
    def move(self) -> int:
        """How far the statistic moves."""
        a, b = self.weights
        return self.shift * (a * self.cells + b)

    def law(self, less: float = 1.0) -> LatticeLaw:
        """The law of the statistic when every deviation is ``less`` times what it should be."""
        a, b = self.weights
        terms = [Term(self.cells, self.variance * less**2, a)]
        if self.count_variance is not None:
            terms.append(Term(1, self.count_variance * less**2, b))
        return law_of(*terms)

    def least_ratio(self, power: Floats) -> Floats:
        """g(y)/y of the exact trade-off curve: its corners are the thresholds, and lines join them.

        Thresholds are the most powerful tests because the law is log-concave (Neyman and Pearson).
        """
        law, move = self.law(), self.move
        if law.survival is None:
            from scipy.special import ndtr, ndtri

            smooth: Floats = ndtr(ndtri(power) - move / law.deviation) / power
            return smooth
        reach = len(law.survival) // 2
        far = np.arange(reach + move, -reach - 1, -1)
        alarms, powers = law.reaches(far), law.reaches(far - move)
        ratio: Floats = np.interp(power, powers, alarms) / power
        return ratio


@dataclass(frozen=True, slots=True)
class _Design:
    events: Events
    number: int
    power: float


def audit_gaussian(
    draw: Draw,
    variance: float | Fraction,
    *,
    cells: int = 1,
    shift: int = 1,
    count: tuple[Draw, float | Fraction] | None = None,
    draws: int | None = None,
    less: float = LESS_NOISE,
) -> NoiseAudit:
    """Audit cells, and a count, that neighbours move by ``shift`` each, against the trade-off curve.

    The claim is the exact curve of the stated noise, lattice and all: at a variance of 1 a discrete Gaussian
    is 5 % easier to distinguish than the Gaussian curve of its μ allows (Dong, Roth and Su 2022), and a test
    against that curve would accuse it. The bound is given as a μ, scaled so that the stated noise has
    exactly its own. Events of probability δ are not counted: no affordable number of draws sees them.

    Parameters
    ----------
    draw : callable
        The noise of one cell.
    variance : float
        The stated parameter σ².
    count : (draw, variance), optional
        The noise of the separate count.
    draws : int, optional
        How often the pair is simulated; default: for a power of 0.995 against deviations of ``less`` times
        what was stated.
    """
    pair = GaussianPair(float(variance), cells, shift, None if count is None else float(count[1]))
    design = _design(pair, less, draws)
    a, b = pair.weights

    def statistic(size: int) -> NDArray[np.int64]:
        total: NDArray[np.int64] = a * draw(size * cells).reshape(size, cells).sum(axis=1)
        return total if count is None else total + b * count[0](size)

    directions = _counted(statistic, design.number, design.events, cells)
    lowest = max(_mu_bound(pair, hits) for hits in directions)
    return NoiseAudit("discrete gaussian", "mu", pair.mu, lowest, design.number, design.power)


def gaussian_draws(pair: GaussianPair, *, less: float = LESS_NOISE) -> int:
    """How often a pair must be simulated for the required power.

    >>> gaussian_draws(GaussianPair(variance=16.0, cells=16)) < 10_000
    True
    """
    return _design(pair, less, None).number


def _mu_bound(pair: GaussianPair, hits: Hits) -> float:
    from scipy.special import ndtri

    near = binomial_bounds(hits.near, hits.number, _GAUSSIAN_TAIL)[0]
    if near == 0.0:
        return 0.0
    far = binomial_bounds(hits.far, hits.near, _GAUSSIAN_TAIL)[1] * near
    claimed = float(pair.least_ratio(np.array([near]))[0]) * near
    # The claim is broken exactly when far < claimed; on the scale of normal quantiles that reads as a μ.
    return pair.mu * float((ndtri(near) - ndtri(far)) / (ndtri(near) - ndtri(claimed)))


@lru_cache(maxsize=256)
def _design(pair: GaussianPair, less: float, draws: int | None) -> _Design:
    """The threshold that needs the fewest draws, and how many."""
    if not (pair.variance > 0 and pair.cells >= 1 and pair.shift >= 1):
        raise UsageError(
            parameter="variance",
            rule=("must be above 0, ", Parameter("cells"), " and ", Parameter("shift"), " at least 1"),
            remedy="give the stated ones",
        )
    from scipy.special import ndtri

    stated, weaker, move = pair.law(), pair.law(less), pair.move
    nears = {round(-float(ndtri(level)) * stated.deviation) for level in _NEAR_LEVELS} | {0, 1, -(move // 2)}
    best: _Design | None = None
    for near in sorted(nears):
        events = Events(near, near + move)
        chance, further = (float(weaker.reaches(at)) for at in (near, near + move))

        def power(number: int, chance: float = chance, further: float = further) -> float:
            return one_direction_power(
                number,
                chance,
                further / chance,
                pair.least_ratio,
                near_tail=_GAUSSIAN_TAIL,
                far_tail=_GAUSSIAN_TAIL,
            )

        if draws is None:
            number = draws_for(power)
            if number is not None and (best is None or number < best.number):
                best = _Design(events, number, power(number))
        elif best is None or power(draws) > best.power:
            best = _Design(events, draws, power(draws))
    if best is None:
        raise too_strong("mu", pair.mu)
    return best


def _counted(draw: Draw, number: int, events: Events, cells: int = 1) -> list[Hits]:
    """The hits of ``number`` draws in both directions, a bounded piece of memory at a time."""
    step = max(1, _AT_A_TIME // cells)
    totals = [Hits(0, 0, 0), Hits(0, 0, 0)]
    for start in range(0, number, step):
        parts = events.count(draw(min(step, number - start)))
        totals = [
            Hits(total.number + part.number, total.near + part.near, total.far + part.far)
            for total, part in zip(totals, parts, strict=True)
        ]
    return totals
