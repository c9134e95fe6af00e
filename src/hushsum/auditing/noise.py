"""The noise half of an audit: lower bounds on what a mechanism really gives away, by likelihood-ratio tests.

Each test simulates only the cells in which the worst pair of neighbours differ, takes the most powerful
event (or the likelihood ratio's own statistic), and bounds its probabilities by Clopper and Pearson. If the
bound exceeds the claim, the mechanism leaks more than it says; a sound one is accused with probability at
most ``1 − confidence``. ``power`` is the chance that a mechanism with 20 % less noise is caught.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import UsageError

Draw = Callable[[int], NDArray[np.int64]]

LESS_NOISE = 0.8
CONFIDENCE = 1.0 - 1e-6
_WANTED_POWER = 0.995
_AT_A_TIME = 1 << 24


@dataclass(frozen=True, slots=True)
class NoiseAudit:
    """A claim, the lower bound the audit reached, and how likely it would have caught 20 % less noise."""

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


def audit_laplace(draw: Draw, epsilon: float, *, shift: int = 1, draws: int | None = None) -> NoiseAudit:
    """Audit one cell that neighbours move by ``shift``, against pure ``epsilon``.

    For discrete Laplace noise P(z ≥ 0) = e^ε·P(z ≥ shift) exactly, and no event has a larger ratio. Audit
    at one row: over R rows the losses concentrate near ε/√R, and no test sees ε.
    """
    if not epsilon > 0:
        raise UsageError(f"epsilon must be above 0, got {epsilon}; give the claimed one")
    number = draws or laplace_draws(epsilon, shift=shift)
    near = _share(draw, number, lambda z: z >= 0)
    far = _share(draw, number, lambda z: z >= shift)
    tail = (1.0 - CONFIDENCE) / 2.0
    low = binomial_bounds(near, number, tail)[0]
    high = binomial_bounds(far, number, tail)[1]
    bound = math.log(low / high) if low > 0 else 0.0
    return NoiseAudit(
        "discrete laplace", "epsilon", epsilon, bound, 2 * number, _laplace_power(epsilon, shift, number)
    )


def audit_gaussian(draw: Draw, variance: float, *, cells: int = 1, draws: int | None = None) -> NoiseAudit:
    """Audit ``cells`` cells that neighbours move by 1 each, against the trade-off curve of a Gaussian.

    The loss depends on the sum of the cells' noise alone. Guessing by its sign relative to the midpoint
    errs with probability Φ(−μ/2) on either side, μ = √(cells/variance) (Dong, Roth, Su 2022); the audit
    bounds μ from below.
    """
    claimed = math.sqrt(cells / variance)
    number = draws or gaussian_draws(claimed)
    middle = cells / 2.0
    missed = _share(draw, number, lambda z: z >= middle, cells)
    alarm = _share(draw, number, lambda z: z + cells <= middle, cells)
    from scipy.special import ndtri

    tail = (1.0 - CONFIDENCE) / 2.0
    bound = -float(
        ndtri(binomial_bounds(missed, number, tail)[1]) + ndtri(binomial_bounds(alarm, number, tail)[1])
    )
    # Ties at the midpoint count as errors on both sides, which only lowers the bound.
    return NoiseAudit("discrete gaussian", "mu", claimed, bound, 2 * number, _gaussian_power(claimed, number))


def laplace_draws(epsilon: float, *, shift: int = 1) -> int:
    """Draws on each side that give the wanted power against 20 % less noise."""
    return _grow(lambda number: _laplace_power(epsilon, shift, number))


def gaussian_draws(mu: float) -> int:
    """Draws on each side that give the wanted power against 20 % less noise."""
    return _grow(lambda number: _gaussian_power(mu, number))


def _laplace_power(epsilon: float, shift: int, number: int) -> float:
    """Normal approximation of the chance that the bound exceeds the claim when the true ε is ε/0.8."""
    actual = epsilon / LESS_NOISE
    near = 1.0 / (1.0 + math.exp(-actual / shift))
    far = near * math.exp(-actual)
    spread = math.sqrt(((1 - near) / near + (1 - far) / far) / number)
    return _power(actual - epsilon, spread)


def _gaussian_power(mu: float, number: int) -> float:
    actual = mu / LESS_NOISE
    from scipy.special import ndtr

    error = float(ndtr(-actual / 2))
    slope = math.exp(-(actual**2) / 8) / math.sqrt(2 * math.pi)
    return _power(actual - mu, math.sqrt(2 * error * (1 - error) / number) / slope)


def _power(gap: float, spread: float) -> float:
    from scipy.special import ndtr, ndtri

    # Both sides use a bound at half the error: together they reach √2 times as far as one bound at the
    # joint spread.
    reach = -float(ndtri((1.0 - CONFIDENCE) / 2.0)) * math.sqrt(2.0)
    return float(ndtr(gap / spread - reach))


def _grow(power: Callable[[int], float]) -> int:
    number = 1000
    while power(number) < _WANTED_POWER:
        number = number * 5 // 4
        if number > 1 << 40:
            raise UsageError(
                "the claim is too strong to be audited by sampling; audit one row at a larger epsilon"
            )
    return number


def _share(
    draw: Draw, number: int, event: Callable[[NDArray[np.int64]], NDArray[np.bool_]], cells: int = 1
) -> int:
    """How many of ``number`` sums of ``cells`` draws fall into the event."""
    step = max(1, _AT_A_TIME // cells)
    hits = 0
    for start in range(0, number, step):
        size = min(step, number - start)
        sums = draw(size * cells).reshape(size, cells).sum(axis=1)
        hits += int(np.count_nonzero(event(sums)))
    return hits


def binomial_bounds(hits: int, number: int, tail: float) -> tuple[float, float]:
    """Clopper–Pearson bounds of a probability, each exceeded with probability at most ``tail``."""
    from scipy.special import betaincinv

    low = 0.0 if hits == 0 else float(betaincinv(hits, number - hits + 1, tail))
    high = 1.0 if hits == number else float(betaincinv(hits + 1, number - hits, 1.0 - tail))
    return low, high
