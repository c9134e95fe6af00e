r"""The binomial mechanism of cpSGD (Agarwal et al. 2018) on integer tables, for moves of single cells by 1.

One unit moves ``cells`` cells by 1 each, up or down, and each has noise B − n/2, B ~ Bin(n, ½); a count moves
by 1 under noise of its own. cpSGD bounds δ by concentration inequalities for any vector. Here the moments of
the loss are summed, which for these vectors needs far less noise.

**Proof.** Between P, the distribution of B, and Q, that of B + 1, the loss at b ≥ 1 is ``ln P(b)/Q(b) = ln((n
− b + 1)/b)``, and at b = 0 it is infinite, which has probability 2⁻ⁿ. (Reflection and translation swap the
pair, so up and down are alike.) For s > 0 let ``M_n(s) = Σ_{b ≥ 1} P(b)·((n − b + 1)/b)^s``. Losses of
independent cells add, so for the sum L of those that are finite ``E[e^(sL)] = M_n(s)^cells·M_m(s)``, m the
trials of the count. Since ``max(0, 1 − e^(ε−x)) ≤ s^s/(s+1)^(s+1)·e^(s(x−ε))`` for all x,

    δ(ε) ≤ cells·2⁻ⁿ + 2⁻ᵐ + s^s/(s+1)^(s+1)·e^(−sε)·M_n(s)^cells·M_m(s),

for every s; the smallest of a grid is taken. Sums are enlarged by 2⁻³⁰ of their logarithm's scale, more than
the rounding errors of up to 2²² positive terms.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hushsum._types import Floats
from hushsum.errors import ClaimError
from hushsum.privacy.accounting._gaussian import analytic_gaussian_sigma, divided, least_scale
from hushsum.privacy.accounting._parameters import (
    Real,
    cell_count,
    float_below,
    positive_epsilon,
    proper_delta,
)

MOST_TRIALS = 1 << 22
ORDERS = np.geomspace(0.25, 4096.0, 160)
_SLACK = 2.0**-30


def binomial_delta(epsilon: Real, *, cells: int, trials: int, count_trials: int | None = None) -> float:
    """Return a proven upper bound on δ(ε) of a table with centred binomial noise; see the top of the module.

    >>> f"{binomial_delta(1.0, cells=100, trials=9000):.1e}"
    '3.4e-07'
    """
    target, cells = float_below(positive_epsilon(epsilon)), cell_count(cells)
    logs = cells * _log_moments(trials)
    infinite = cells * 2.0**-trials
    if count_trials is not None:
        logs = logs + _log_moments(count_trials)
        infinite += 2.0**-count_trials
    return min(moments_delta(target, logs) + infinite * (1 + _SLACK) + 1e-300, 1.0)


def moments_delta(epsilon: float, logs: Floats) -> float:
    """``s^s/(s+1)^(s+1)·e^(−sε)·M(s)`` at the best of the orders, from ln M at each of them."""
    s = ORDERS
    constant = s * np.log(s) - (s + 1) * np.log1p(s)
    exponents = constant - s * epsilon + logs + _SLACK * (1 + s * epsilon + np.abs(logs))
    return math.exp(min(float(np.min(exponents)), 0.0))


@lru_cache(maxsize=64)
def _log_moments(trials: int) -> Floats:
    """An upper bound on ln M(s) at the orders; infinite where ((n − b + 1)/b)^s leaves the doubles."""
    from scipy.special import gammaln

    b = np.arange(1.0, trials + 1)
    if trials > 1 << 16:
        # Outside 60 deviations by the largest ratio: P(|B − n/2| ≥ 60·√n/2) ≤ 2e^(−1800), times n^s.
        reach = 30.0 * math.sqrt(trials)
        b = b[np.abs(b - trials / 2) <= reach]
    weights = gammaln(trials + 1) - gammaln(b + 1) - gammaln(trials - b + 1) - trials * math.log(2)
    losses = np.log((trials - b + 1) / b)
    result = np.empty(len(ORDERS))
    for i, s in enumerate(ORDERS):
        terms = weights + s * losses
        peak = float(terms.max())
        result[i] = peak + math.log(float(np.exp(terms - peak).sum()))
    if trials > 1 << 16:
        outside = math.log(2) - 1800.0 + ORDERS * math.log(trials)
        result = np.logaddexp(result, outside)
    # gammaln is right to a few units of its size, n·ln n.
    off = 64 * 2.0**-53 * trials * math.log(trials + 1.0) + 1e-12
    enlarged: Floats = result + off
    return enlarged


def binomial_trials(
    *, epsilon: Real, delta: Real, cells: int, count_share: Real | None = None
) -> tuple[int, int | None]:
    """Return the fewest trials, to a relative 1e−4, whose noise is (ε, δ)-private: even numbers, of each
    cell's noise and of the count's, if a count is released too.

    With ``count_share`` = s the count takes that share of the cost, as with Gaussian noise:
    ``cells/trials : 1/count_trials = (1 − s) : s``. The δ of exactly these trials has been checked.

    Raises
    ------
    ClaimError
        if more than 2²² trials are needed.

    >>> binomial_trials(epsilon=1.0, delta=1e-6, cells=100)
    (8218, None)
    """
    target, bound = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
    share = None if count_share is None else float(Fraction(count_share))
    return _fewest(target, bound, cell_count(cells), share)


@lru_cache(maxsize=256)
def _fewest(target: float, bound: float, cells: int, share: float | None) -> tuple[int, int | None]:
    def kept(scale: float) -> bool:
        table, count = divided(cells, scale, share, _even)
        if max(table, count or 0) > MOST_TRIALS:
            raise ClaimError(
                f"binomial noise must be of at most {MOST_TRIALS} coins per cell",
                got="more",
                remedy="use a larger epsilon, fewer rows, or discrete Gaussian noise",
            )
        return binomial_delta(target, cells=cells, trials=table, count_trials=count) <= bound

    # As many as the Gaussian mechanism would need over the reals, or a few more.
    start = 4.0 * analytic_gaussian_sigma(target, bound) ** 2
    return divided(cells, least_scale(start, kept), share, _even)


def _even(value: float) -> int:
    return 2 * max(1, math.ceil(value / 2))
