"""The Gamma-radius distribution under (ε, δ): a bound of δ, and the least scale.

The noise is a vector b in n cells with a density ∝ exp(−‖b‖₂/s), rounded to integers; a unit moves the table
by an integer vector v with ‖v‖₂ ≤ Δ.

**Rounding.** For a table t of integers, rounding t + b gives t plus the rounded b. So what is released is a
post-processing of t + b over the reals, and its hockey-stick divergence at most that of b and b + v.

**Shorter moves.** On every line along v the density of b is log-concave, so its ratio to its own shift is
monotone, and the divergence of the two is the largest ``P[X < c] − e^ε P[X < c − ‖v‖]`` over c, which grows
with ‖v‖. The divergence in n cells is the integral over the lines. So ‖v‖ = Δ is the worst case, and by the
same argument, scaled, δ falls as s grows.

**Two integrals.** Let Δ = 1, a = ε·s < 1, r = ‖b‖, which has the Gamma distribution of shape n and scale s,
and u the cosine of the angle between b and v, of which (1 + u)/2 has the Beta distribution of both shapes
(n − 1)/2 and is independent of r. The loss (‖b − v‖ − ‖b‖)/s of b exceeds ε where ``u < (1 − a²)/2r − a``. By
symmetry b + v lies there where ``‖b − v‖ < ‖b‖ − a``: r > a and ``u > (1 − a²)/2r + a``. With P(r) and Q(r)
the probabilities of both, given r,

    δ(ε) = E[P(r) − e^ε·Q(r)].

P falls with r and Q grows, so on each interval of r the difference is at most that at its lower end: the sum
over intervals bounds δ from above, however coarse they are.

**Floating point.** Arguments are moved by 10⁻¹² towards a larger δ, far more than they are rounded by. P, Q
and the Gamma distribution have a relative error of 10⁻¹¹ at most (measured against exact ones; their
libraries state 10⁻¹³), for which P is enlarged and Q reduced by 10⁻⁹. Probabilities of intervals are
differences of the distribution function below the median and of its complement above it. Summed by parts,
their errors multiply the steps of P − e^ε·Q by 10⁻¹¹ of the function that is the smaller, and together are
within the same factor.

Joseph, Kulesza and Yu (2025), *Privately releasing vectors with the ℓ2 mechanism*; here with a bound in place
of a quadrature.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from hushsum._types import Floats
from hushsum.errors import ClaimError

from ._gaussian import LARGEST_EPSILON
from ._parameters import Real, float_above, float_below, narrowed, positive_epsilon, proper_delta

MOST_CELLS = 1024
"""With more, the least scale has at most a hundredth less variance than Gaussian noise."""
_NODES = 1 << 12
_NUDGE, _SLACK = 1e-12, 1e-9


def gamma_radius_delta(epsilon: Real, *, cells: int, separation: Real) -> float:
    """An upper bound on δ(ε) of the noise of ``cells`` cells, 2 to `MOST_CELLS`, where one unit moves the
    table by ``separation`` scales.

    Above the true δ by about a hundredth, and by a few where cells are few.

    >>> round(gamma_radius_delta(1.0, cells=3, separation=2.0), 3)
    0.257
    """
    if not 2 <= cells <= MOST_CELLS:
        rule = f"noise with delta is for 2 to {MOST_CELLS} cells"
        raise ClaimError("mechanism", rule, got=cells, remedy="leave it out")
    # The bound holds at every lower ε, too.
    target = min(float_below(positive_epsilon(epsilon)), LARGEST_EPSILON)
    scale = 1.0 / float_above(separation)
    return 0.0 if target * scale >= 1.0 else _delta(target, cells, scale)


def _delta(epsilon: float, cells: int, scale: float) -> float:
    from scipy.special import betainc, gammainc, gammaincc, gammainccinv, gammaincinv

    a, half = epsilon * scale, (cells - 1) / 2.0
    # Closer together where r is small, which in few cells decides.
    lowest, highest = gammaincinv(cells, 1e-13), gammainccinv(cells, 1e-13)
    ends = lowest + (highest - lowest) * np.linspace(0.0, 1.0, _NODES) ** 2
    below = np.concatenate([[0.0], gammainc(cells, ends), [1.0]])
    above = np.concatenate([[1.0], gammaincc(cells, ends), [0.0]])
    within = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    middle = np.asarray((1.0 - a * a) / (2.0 * scale * ends), np.float64)

    def cap(cosine: Floats) -> Floats:
        """The probability that u is below."""
        found: Floats = betainc(half, half, np.clip((1.0 + cosine) / 2.0, 0.0, 1.0))
        return found

    # Below the first end nothing is known of either.
    kept = np.append(1.0, cap(middle - a + _NUDGE)) * (1.0 + _SLACK)
    paid = np.append(0.0, cap(-middle - a - _NUDGE)) * (1.0 - _SLACK)
    grown = math.exp(epsilon) * paid
    total = math.fsum(within * (kept - grown)) + _SLACK * math.fsum(within * (kept + grown))
    return min(1.0, max(total, 0.0) + 1e-300)


def gamma_radius_scale(epsilon: Real, delta: Real, *, cells: int) -> float:
    """The least scale, for a move of length 1, at which the bound of δ is kept; at most 1/ε, which is pure ε.

    >>> scale = gamma_radius_scale(1.0, 1e-6, cells=20)
    >>> round(scale**2 * 21, 1)
    12.5
    """
    target, bound = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
    return _scale(target, bound, cells)


@lru_cache(maxsize=512)
def _scale(target: float, bound: float, cells: int) -> float:
    def keeps(log_scale: float) -> bool:
        separation = math.exp(-log_scale)
        return gamma_radius_delta(target, cells=cells, separation=separation) <= bound

    # At a scale of 1.01/ε the bound is 0.
    high = math.log(1.01 / target)
    low = high - 1.0
    while keeps(low):
        high, low = low, low - 1.0
    return min(math.exp(narrowed(low, high, keeps, width=1e-5)) * (1.0 + 1e-12), float_above(1.01 / target))
