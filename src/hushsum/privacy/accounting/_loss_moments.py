r"""Binomial and Skellam noise on integer tables: what they cost, bounded by the moments of the privacy loss.

One unit moves ``cells`` cells by 1 each, up or down, and each cell has independent noise; a count moves by 1
under noise of its own. For such vectors, summing the moments of the loss proves less noise sufficient than
the published bounds for any vector: the concentration inequalities of cpSGD for binomial noise (Agarwal et
al. 2018), and the bound on the Rényi divergence of Skellam noise by a Gaussian's and a remainder in Δ1
(Agarwal, Kairouz & Liu 2021).

Binomial noise
--------------
The noise of a cell is B − n/2, B ~ Bin(n, ½).

**Proof.** Between P, the distribution of B, and Q, that of B + 1, the loss at b ≥ 1 is ``ln P(b)/Q(b) = ln((n
− b + 1)/b)``, and at b = 0 it is infinite, which has probability 2⁻ⁿ. (Reflection and translation swap the
pair, so up and down are alike.) For s > 0 let ``M_n(s) = Σ_{b ≥ 1} P(b)·((n − b + 1)/b)^s``. Losses of
independent cells add, so for the sum L of those that are finite ``E[e^(sL)] = M_n(s)^cells·M_m(s)``, m the
trials of the count. Since ``max(0, 1 − e^(ε−x)) ≤ s^s/(s+1)^(s+1)·e^(s(x−ε))`` for all x,

    δ(ε) ≤ cells·2⁻ⁿ + 2⁻ᵐ + s^s/(s+1)^(s+1)·e^(−sε)·M_n(s)^cells·M_m(s),

for every s; the smallest of a grid is taken. Sums are enlarged by 2⁻³⁰ of their logarithm's scale, more than
the rounding errors of up to 2²² positive terms.

Skellam noise
-------------
The noise of a cell is Z = A − B, A and B Poisson of mean v/2.

**Distribution.** ``P(k) = e^(−v)·I_|k|(v)``. The ratios ``r_k = I_k(v)/I_(k−1)(v)``, k ≥ 1, satisfy ``r_k =
1/(2k/v + r_(k+1))`` and lie between 0 and ``v/(2k)``; the recurrence downwards shrinks errors, and every P(k)
is a product of ratios divided by a sum of such products, all of them positive.

**Moments.** Between P and P shifted by 1 the loss at k is ``ln P(k)/P(k − 1)``: ``ln r_k`` for k ≥ 1 and
``−ln r_(|k|+1)`` for k ≤ 0. (Reflection and translation swap the pair, so up and down are alike.) For s > 0
let ``M_v(s) = Σ_k P(k)·(P(k)/P(k − 1))^s``, which is ``exp(s·D_(s+1))``, D the Rényi divergence. Computed
are the terms with −K < k ≤ K. Those above K add up to less than 3·P(K) where K ≥ v. Those at −j ≤ −K are at
most ``t_j = P(j)·(1 + 2(j + 1)/v)^s``, since ``1/r_(j+1) = 2(j+1)/v + r_(j+2) ≤ 2(j+1)/v + 1``; and
``t_(j+1)/t_j ≤ v/(2(j+1))·e^(s/(j+1)) ≤ 1/2`` for ``j + 1 ≥ max(s, e·v)``, so they add up to at most 2·t_K.

**(ε, δ).** Losses of independent cells add, and ``max(0, 1 − e^(ε−x)) ≤ s^s/(s+1)^(s+1)·e^(s(x−ε))`` for
all x. So, w the variance of the count's noise, for every s

    δ(ε) ≤ s^s/(s+1)^(s+1)·e^(−sε)·M_v(s)^cells·M_w(s),

and the smallest over a grid of s is taken.

**ρ.** ρ-zCDP is ``G(s) = (cells·ln M_v(s) + ln M_w(s))/(s(s+1)) ≤ ρ`` for all s > 0. ``ln M`` is convex in
s and 0 at 0, so ``ln M(s)/s`` does not fall, and between two points a < b of a grid ``G(s) ≤ (b + 1)/(a +
1)·G(b)``; below the first point a = 0. Above the last point S: with N = A + B ≥ |Z|, Poisson of mean v,
``M(s) ≤ E[(1 + 2(N + 1)/v)^s]``, and ``y^s ≤ (2s/(e·v))^s·e^(v·y/2)`` gives

    ln M_v(s) ≤ s·ln(2s/(e·v)) + 1 + v/2 + (e − 1)·v,

whose quotient by s(s + 1) falls in s for s ≥ 12·max(v, 1): its value at S bounds the rest.

**Floating point.** Logarithms of P are sums of at most K logarithms of ratios, each within a few units of
its last place; ``_SLACK`` = 2⁻³⁰ of the size of what is summed is more than all of that, and is added.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from hushsum._types import Floats
from hushsum.errors import ClaimError

from ._gaussian import Variances, analytic_gaussian_sigma, divided, least_scale, short_above
from ._parameters import (
    Real,
    cell_count,
    float_below,
    positive_epsilon,
    positive_rho,
    positive_variance,
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
    logs = cells * _binomial_moments(trials)
    infinite = cells * 2.0**-trials
    if count_trials is not None:
        logs = logs + _binomial_moments(count_trials)
        infinite += 2.0**-count_trials
    return min(moments_delta(target, logs) + infinite * (1 + _SLACK) + 1e-300, 1.0)


def moments_delta(epsilon: float, logs: Floats) -> float:
    """``s^s/(s+1)^(s+1)·e^(−sε)·M(s)`` at the best of the orders, from ln M at each of them."""
    s = ORDERS
    constant = s * np.log(s) - (s + 1) * np.log1p(s)
    exponents = constant - s * epsilon + logs + _SLACK * (1 + s * epsilon + np.abs(logs))
    return math.exp(min(float(np.min(exponents)), 0.0))


@lru_cache(maxsize=64)
def _binomial_moments(trials: int) -> Floats:
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


@lru_cache(maxsize=256)
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
    share, cells = None if count_share is None else float(Fraction(count_share)), cell_count(cells)

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


LARGEST_VARIANCE = 1 << 15
"""The largest variance of the sum of all shares. For a larger one, Gaussian shares are large enough."""
# Steps of the grid of s + 1 up to parts of its last point: G falls by 3 % up to a third of the variance.
_STEPS = ((1 / 36, 1.005), (1 / 12, 1.02), (1 / 6, 1.05), (math.inf, 1.2))


def skellam_delta(epsilon: Real, *, cells: int, variance: Real, count_variance: Real | None = None) -> float:
    """Return a proven upper bound on δ(ε) of a table with Skellam noise; see the top of the module.

    >>> f"{skellam_delta(1.0, cells=1, variance=25):.1e}"
    '2.3e-09'
    """
    target, cells = float_below(positive_epsilon(epsilon)), cell_count(cells)
    orders = tuple(ORDERS.tolist())
    logs = cells * _skellam_moments(_checked(variance), orders)
    if count_variance is not None:
        logs = logs + _skellam_moments(_checked(count_variance), orders)
    return min(moments_delta(target, logs) + 1e-300, 1.0)


def skellam_rho(*, cells: int, variance: Real, count_variance: Real | None = None) -> float:
    """Return a proven upper bound on ρ of a table with Skellam noise; see the top of the module.

    >>> 0.02 < skellam_rho(cells=1, variance=25) < 0.0206
    True
    """
    table, cells = _checked(variance), cell_count(cells)
    counted = None if count_variance is None else _checked(count_variance)
    last = 12 * max(table, counted or 0.0, 16.0)
    points = _rho_orders(last)
    logs, beyond = cells * _skellam_moments(table, points), cells * _beyond(table, points[-1])
    if counted is not None:
        logs = logs + _skellam_moments(counted, points)
        beyond += _beyond(counted, points[-1])
    upper = np.array(points)
    lower = np.append(0.0, upper[:-1])
    largest = float(np.max(logs / (upper * (lower + 1.0))))
    return max(largest, beyond) * (1 + _SLACK)


@lru_cache(maxsize=256)
def skellam_variances(
    *,
    cells: int,
    epsilon: Real | None = None,
    delta: Real | None = None,
    rho: Real | None = None,
    count_share: Real | None = None,
) -> Variances:
    """Return the smallest variances, to a relative 1e−4, whose Skellam noise keeps (ε, δ) or ρ.

    With ``count_share`` = s the count takes that share of the cost, as with Gaussian noise. What exactly
    these variances spend has been checked. Cached, because terms that are read again need the same values.

    Raises
    ------
    ClaimError
        if a variance above 2¹⁵ is needed.

    >>> float(skellam_variances(epsilon=1.0, delta=1e-6, cells=1).variance) < 23.0
    True
    """
    share, cells = None if count_share is None else float(Fraction(count_share)), cell_count(cells)
    if rho is not None:
        target, most = 0.0, float_below(positive_rho(rho))
        start = 1.0 / (2.0 * most)
    else:
        assert epsilon is not None
        assert delta is not None
        target, most = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
        start = analytic_gaussian_sigma(target, most) ** 2

    def keeps(scale: float) -> bool:
        variance, of_count = divided(cells, scale, share, short_above)
        if max(variance, of_count or 0) > LARGEST_VARIANCE:
            raise ClaimError(
                f"Skellam noise must have a variance of at most {LARGEST_VARIANCE}",
                got="more",
                remedy="use discrete Gaussian noise",
            )
        noise: dict[str, Any] = {"cells": cells, "variance": variance, "count_variance": of_count}
        spent = skellam_delta(target, **noise) if rho is None else skellam_rho(**noise)
        return spent <= most

    return Variances(*divided(cells, least_scale(start, keeps), share, short_above))


def _checked(variance: Real) -> float:
    value = float(positive_variance("variance", variance))
    if not 2.0**-20 <= value <= LARGEST_VARIANCE:
        raise ClaimError(
            "variance",
            f"of Skellam noise must be from 2**-20 to {LARGEST_VARIANCE}",
            got=f"{value:g}",
            remedy="use discrete Gaussian noise",
        )
    return value


@lru_cache(maxsize=32)
def _rho_orders(last: float) -> tuple[float, ...]:
    """A geometric grid of s + 1 that begins at 1.001, with wider steps where G has fallen."""
    found = [1.001]
    while found[-1] < 1 + last:
        step = next(step for part, step in _STEPS if found[-1] <= 1 + last * part)
        found.append(found[-1] * step)
    return tuple(each - 1.0 for each in found)


def _beyond(variance: float, order: float) -> float:
    logs = order * math.log(2 * order / (math.e * variance)) + 1 + variance / 2 + (math.e - 1) * variance
    return logs * (1 + _SLACK) / (order * (order + 1))


@lru_cache(maxsize=64)
def _skellam_moments(variance: float, orders: tuple[float, ...]) -> Floats:
    """An upper bound on ln M(s) at the orders."""
    result = np.empty(len(orders))
    for i, s in enumerate(orders):
        # Larger orders feel more of the tail.
        log_ratios, log_law = _log_law(variance, 4.0 ** math.ceil(math.log(max(s, 16.0), 4.0)))
        reach = len(log_ratios) - 1
        # At 0, −1, …, 1 − reach the loss is −ln r, at 1, …, reach it is ln r.
        below, above = log_law[:reach] - s * log_ratios[1:], log_law[1:] + s * log_ratios[1:]
        last = log_law[reach] + s * math.log1p(2 * (reach + 1) / variance)
        peak = max(float(below.max()), float(above.max()), last)
        terms = float(np.exp(below - peak).sum() + np.exp(above - peak).sum())
        terms += 2.0 * math.exp(last - peak) + 3.0 * math.exp(log_law[reach] - peak)
        result[i] = peak + math.log(terms) + _SLACK / 8 * (1.0 + s)
    return result


@lru_cache(maxsize=16)
def _log_law(variance: float, order: float) -> tuple[Floats, Floats]:
    """ln r_k (the first is not used) and ln P(k), for k from 0 to a number that no moment feels."""
    reach = math.ceil(max(order, math.e * variance, 40.0 + 12.0 * math.sqrt(variance))) + 8
    ratios = np.empty(reach + 1)
    # Between 0 and its upper bound; 40 steps further out the doubt is gone.
    ratio = 0.0
    for k in range(reach + 40, 0, -1):
        ratio = 1.0 / (2.0 * k / variance + ratio)
        if k <= reach:
            ratios[k] = ratio
    ratios[0] = 1.0
    log_ratios = np.log(ratios)
    logs = np.cumsum(log_ratios)
    total = 2.0 * float(np.exp(logs[1:]).sum()) + 1.0
    return log_ratios, logs - math.log(total)
