"""Gaussian noise, from (ε, δ) to its scale and back: over the reals, and proven for integer tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from hushsum._types import Floats
from hushsum.errors import ClaimError
from hushsum.privacy.accounting.discrete_gaussian import DiscreteGaussian, log_sum_excess
from hushsum.privacy.accounting.parameters import (
    Real,
    cell_count,
    float_above,
    float_below,
    positive,
    positive_epsilon,
    positive_variance,
    proper_delta,
)


def gaussian_delta(epsilon: float, separation: float) -> float:
    """Return δ(ε) of two unit-variance normal laws whose means are ``separation`` = Δ/σ apart.

    Balle & Wang's ``Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)`` equals ``φ(u)·(M(u) − M(u + μ))`` with ``u = ε/μ −
    μ/2`` and M the Mills ratio, which neither overflows nor loses its digits for small δ. Accurate to a
    relative 1e−9 where Δ/σ ≥ 1e−5.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    from scipy.special import erfcx, ndtr

    u = epsilon / separation - separation / 2
    root, peak = math.sqrt(2), 0.5 * math.exp(-u * u / 2)
    if u < -5:  # where erfcx(u) would grow until it overflows
        return float(ndtr(-u) - peak * erfcx((u + separation) / root))
    return peak * float(erfcx(u / root) - erfcx((u + separation) / root))


def gaussian_delta_above(epsilon: float, separation: float) -> float:
    """`gaussian_delta` with its rounding errors added, so that it is never below δ(ε).

    Both terms are right to 1e−13 of the larger, Φ(−u), and to what a rounding of u = ε/μ − μ/2 does to
    e^(−u²/2): |u| times a few units in the last place of ε/μ + μ/2.
    """
    from scipy.special import ndtr

    u, size = epsilon / separation - separation / 2, epsilon / separation + separation / 2
    rounding = 4e-13 + 2.0**-51 * abs(u) * size
    return gaussian_delta(epsilon, separation) + rounding * float(ndtr(-u)) + 1e-300


def analytic_gaussian_sigma(epsilon: Real, delta: Real, sensitivity: Real = 1.0) -> float:
    """Return the smallest σ for which N(0, σ²I) noise on a query of this L2 sensitivity is (ε, δ)-private.

    Valid for every ε, unlike ``Δ√(2 ln(1.25/δ))/ε``, and optimal over the real numbers. Noise drawn in
    floating point does not keep this claim to the letter; for integer tables use ``gaussian_variances``.

    Args:
        epsilon: above 0; the result is accurate from 1e−3 to 50 and beyond.
        delta: strictly between 0 and 1.
        sensitivity: the largest L2 norm by which one unit moves the query.

    Returns:
        σ, rounded up: above the exact solution by a relative 1e−8 at most where ε ≥ 1e−3.

    Raises:
        ClaimError: a parameter is outside its range.

    Balle & Wang (2018), "Improving the Gaussian mechanism for differential privacy", Theorem 8.

    >>> [round(analytic_gaussian_sigma(epsilon, 1e-6), 2) for epsilon in (0.1, 1.0, 2.0)]
    [36.3, 4.22, 2.23]
    """
    target, bound = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
    scale = float_above(positive("sensitivity", sensitivity, "it is the norm of what one unit adds"))

    def private(log_separation: float) -> bool:
        return gaussian_delta_above(target, math.exp(log_separation)) <= bound

    low = high = math.log(target) / 2 if target > 1 else math.log(target)
    while not private(low):
        low -= 1.0
    while private(high):
        high += 1.0
    while high - low > 1e-13:
        middle = (low + high) / 2
        if private(middle):
            low = middle
        else:
            high = middle
    return scale / math.exp(low) * (1 + 1e-13)


COUNT_NODES = 2**11
SEARCH_WIDTH = 8e-5
"""The search stops when log-variances that meet and miss the claim are this close."""


class GaussianVariances(NamedTuple):
    """The variance of each cell's noise and of the count's noise, if a count is released too."""

    variance: Fraction
    count_variance: Fraction | None


def discrete_gaussian_delta(
    epsilon: Real, *, cells: int, variance: Real, count_variance: Real | None = None
) -> float:
    r"""Return a proven upper bound on δ(ε) of a table with discrete Gaussian noise.

    One unit moves ``cells`` cells by 1 each, up or down, and each cell has independent N_Z(0, ``variance``)
    noise; if ``count_variance`` is given, it also moves a count by 1, whose noise is N_Z(0,
    ``count_variance``). For R rows this is R cells and the count under add/remove, 2R cells and no noisy
    count under replace. A unit that moves fewer cells loses less: its table is a marginal of the one
    described.

    The bound exceeds the true δ by a factor of e^(3τ) at most for variances of ¼ and more, τ of
    ``log_sum_excess``: 1 + 1e−11 above 3 (1 + 1e−9 for a million cells), 1.05 at ½. It is loose below ¼,
    except for a single cell, where τ = 0. With a count of deviation above 120 there are chords on top, a
    relative 1e−4 or less.

    Args:
        epsilon: above 0.
        cells: how many cells one unit moves by 1.
        variance: of each cell's noise: the parameter σ² of N_Z(0, σ²).
        count_variance: of the count's noise, or None without a noisy count.

    Returns:
        δ, between 1e−300 and 1. Rounding errors are on the safe side.

    Raises:
        ClaimError: a parameter is not finite and above 0, or ``cells`` is below 1.

    Privacy:
        Write the noise of the moved cells as z, signed so that the unit moves every cell by +1 (the noise is
        symmetric). The losses ``(1 + 2 z_r)/(2σ²)`` add up to ``R(R + 2S)/(2V)`` with S = Σ z_r and V = Rσ²:
        the loss depends on S alone and is that of shifting N_Z(0, V) by R. The law of S is at most e^τ times
        N_Z(0, V) at every integer (``log_sum_excess``), and δ(ε) = E[max(0, 1 − e^(ε − loss))] is a sum of
        non-negative terms over that law, so δ_S(ε) ≤ e^τ·δ(N_Z(0, V), shift R), which ``DiscreteGaussian``
        bounds. For
        ε < 0 the symmetry of the pair gives ``δ_S(ε) = 1 − e^ε + e^ε δ_S(−ε)``.

        The count's loss ``L(z) = (1 + 2z)/(2σ_c²)`` is independent, so δ(ε) = E[h(e^(−L(z)))] with ``h(y) =
        δ_S(ε + log y)``: convex and falling in y > 0, as every hockey-stick divergence is in e^ε, and h(0) =
        1. Choose nodes ``y_0 > … > y_n > y_{n+1} = 0``. The function H that is linear between the points
        (y_i, h(y_i)) and constant above y_0 lies above h, and with a_i = y_i·(h(y_{i+1}) − h(y_i))/(y_i −
        y_{i+1}) it is

            H(y) = h(y_0) + Σ_i (a_i/y_i − a_{i−1}/y_{i−1})·max(0, y_i − y),        a_{−1} = 0.

        E[max(0, y_i − y)] = y_i·δ_count(−log y_i) by the definition of the count's own δ, whence

            δ(ε) ≤ h(y_0) + Σ_i (a_i − a_{i−1}·y_i/y_{i−1})·δ_count(−log y_i).

        A coefficient that rounding made negative is replaced by 0, which raises H; upper bounds in place of
        h(y_i) and δ_count keep it an upper bound. Where the nodes are all losses of the count, H = h and
        nothing is lost; a count of deviation above 120 has every second, third, … of its losses as a node.

    Kairouz, Liu & Steinke (2021), "The distributed discrete Gaussian mechanism for federated learning with
    secure aggregation"; Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy",
    Theorem 7.

    >>> f"{discrete_gaussian_delta(1.0, cells=100, variance=1800):.3e}"
    '9.161e-07'
    >>> f"{discrete_gaussian_delta(1.0, cells=100, variance=1800, count_variance=900):.3e}"
    '1.123e-06'
    """
    target = float_below(positive_epsilon(epsilon))
    cells = cell_count(cells)
    table = _Table(cells, float(positive_variance("variance", variance)))
    if count_variance is None:
        return float(table.delta(np.array([target]))[0])
    count = _Table(1, float(positive_variance("count_variance", count_variance)))
    return mixed_delta(target, table, count)


class _Table:
    """δ as a function of ε, of any sign, for ``cells`` unit shifts of discrete Gaussians of one variance."""

    def __init__(self, cells: int, variance: float) -> None:
        self.cells = cells
        self.variance = variance
        self.shift = 1
        self.separation = math.sqrt(cells / variance)
        self._sum = DiscreteGaussian(cells * variance)
        self._log_excess = log_sum_excess(cells, variance)

    def delta(self, epsilon: Floats) -> Floats:
        divergence = self._sum.divergence(np.abs(epsilon), self.cells)
        # min(·, log 1) first: the excess of many cells with next to no noise would overflow
        bound = np.exp(np.minimum(np.log(divergence) + self._log_excess, 0.0)) * (1 + 1e-12)
        mirrored = (bound * np.exp(-np.abs(epsilon)) - np.expm1(-np.abs(epsilon))) * (1 + 1e-12)
        return np.minimum(np.where(epsilon >= 0, bound, mirrored), 1.0)


def gaussian_variances(
    *, epsilon: Real, delta: Real, cells: int, count_share: Real | None = None
) -> GaussianVariances:
    """Return the smallest variances, to a relative 1e−4, whose discrete Gaussian noise is (ε, δ)-private.

    With ``count_share`` = s, the count takes that share of the zCDP cost: ``ρ_table = cells/(2σ²)``,
    ``ρ_count = 1/(2σ_c²)`` and ``ρ_count = s·(ρ_table + ρ_count)``. The variances are rationals with a power
    of two below the line, rounded up by a relative 2⁻²⁰ at most, and the δ of exactly these rationals has
    been checked with ``discrete_gaussian_delta``: the search decides how small they are, not whether they are
    private.

    Use them as they are. With one or two cells and little noise, more variance is not always more private
    (the losses of a lattice lie on a lattice, and δ has ripples): a variance changed in either direction is
    to be checked again.

    Args:
        epsilon: above 0.
        delta: strictly between 0 and 1.
        cells: how many cells one unit moves by 1: R for add/remove, 2R for replace.
        count_share: strictly between 0 and 1, or None without a noisy count.

    Raises:
        ClaimError: a parameter is outside its range.

    >>> gaussian_variances(epsilon=1.0, delta=1e-6, cells=1000)
    GaussianVariances(variance=Fraction(142789, 8), count_variance=None)
    >>> table, count = gaussian_variances(epsilon=1.0, delta=1e-6, cells=1000, count_share=0.02)
    >>> round(float(table)), round(float(count))
    (18212, 892)
    """
    target, bound = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
    cells = cell_count(cells)
    return _smallest_variances(
        target, bound, cells, None if count_share is None else _proper_share(count_share)
    )


# A release is calibrated twice, for its claim and for its noise, and audits release thousands of times.
@lru_cache(maxsize=256)
def _smallest_variances(target: float, bound: float, cells: int, share: float | None) -> GaussianVariances:
    def variances(log_scale: float) -> GaussianVariances:
        scale = math.exp(log_scale)
        if share is None:
            return GaussianVariances(short_above(cells * scale), None)
        return GaussianVariances(short_above(cells * scale / (1 - share)), short_above(scale / share))

    def excess(log_scale: float) -> float:
        table, count = variances(log_scale)
        spent = discrete_gaussian_delta(target, cells=cells, variance=table, count_variance=count)
        ratio = math.log(spent) - math.log(bound)
        return min(ratio, 0.0) if spent <= bound else max(ratio, 1e-300)

    return variances(_smallest_scale(target, bound, excess))


def _smallest_scale(epsilon: float, delta: float, excess: Callable[[float], float]) -> float:
    """Return log(1/2ρ) where ``excess``, the logarithm of the δ spent over the δ allowed, was seen to be ≤ 0.

    Starts from the Gaussian mechanism over the reals, of which the lattice differs little unless σ is below
    1; two Newton steps with its slope, then a bracket and bisection, which do not rely on excess being
    monotone.
    """
    scale = 2 * math.log(analytic_gaussian_sigma(epsilon, delta))
    ahead = math.log(gaussian_delta(epsilon, math.exp(-(scale + 1e-4) / 2)) / delta)
    slope = max(-ahead / 1e-4, 0.1)
    for _ in range(2):
        step = min(max(excess(scale) / slope, -1.0), 1.0)
        scale += step
        if abs(step) < SEARCH_WIDTH / 4:
            break
    width = SEARCH_WIDTH / 2
    meets = misses = scale
    while excess(meets) > 0:
        misses, meets, width = meets, meets + width, 2 * width
    while misses == meets or excess(misses) <= 0:
        meets, misses, width = misses, misses - width, 2 * width
    while meets - misses > SEARCH_WIDTH:
        middle = (misses + meets) / 2
        if excess(middle) <= 0:
            meets = middle
        else:
            misses = middle
    return meets


def short_above(value: float) -> Fraction:
    """Return a rational of few digits, as exact samplers like them, above ``value`` by 2⁻²⁰ of it at most."""
    bits = max(0, 20 - math.floor(math.log2(value)))
    return Fraction(math.ceil(Fraction(value) * 2**bits), 2**bits)


def _proper_share(share: Real) -> float:
    if isinstance(share, bool) or not isinstance(share, (int, float, Fraction)) or not 0 < share < 1:
        raise ClaimError(
            parameter="count_share",
            rule="must lie strictly between 0 and 1",
            got=f"{share}",
            remedy="0.02 suits most tables, None releases no count",
        )
    return float(share)


class Divergence(Protocol):
    """An upper bound on δ at every real ε, and about how many deviations apart the two laws are."""

    separation: float

    def delta(self, epsilon: Floats) -> Floats:
        """δ(ε) for each ε, of any sign."""


class ShiftedCount(Divergence, Protocol):
    """The same of one integer with discrete Gaussian noise of this variance, moved by ``shift``."""

    shift: int
    variance: float


def mixed_delta(epsilon: float, table: Divergence, count: ShiftedCount) -> float:
    """The table's δ averaged over the loss of the count, by the piecewise linear H that
    ``discrete_gaussian_delta`` describes.

    The nodes decide how tight the bound is, not whether it holds.
    """
    deviation = math.sqrt(count.variance)
    separation = math.hypot(table.separation, count.separation)
    # Beyond `highest` lies a share e^−20 of the δ to be expected, below `lowest` far less.
    expected = max(gaussian_delta(epsilon, separation), 1e-290)
    highest = math.ceil(deviation * math.sqrt(2 * math.log(1 / expected) + 40)) + 1
    lowest = -math.ceil(8 * deviation) - 1
    stride = -(-(highest - lowest) // COUNT_NODES)
    steps = np.arange(-(-(highest - lowest) // stride) + 1, dtype=np.float64)
    losses = (lowest + count.shift / 2 + steps * stride) * (count.shift / count.variance)
    # δ falls with ε, so a lower ε covers the rounding of its arguments
    margin = 8 * 2.0**-53 * np.abs(losses)
    heights = table.delta(epsilon - losses - margin - 8 * 2.0**-53 * epsilon)
    gap = stride * count.shift / count.variance
    slopes = np.diff(heights, append=1.0)
    slopes[:-1] /= -math.expm1(-gap)
    before = np.append(0.0, slopes[:-1]) * math.exp(-gap)
    rounding = 2.0**-50 * (np.abs(slopes) + (1 + gap) * np.abs(before))
    coefficients = np.maximum(slopes - before + rounding, 0.0)
    mixed = heights[0] + np.dot(coefficients, count.delta(losses - margin))
    return min(1.0, float(mixed) * (1 + 1e-12))
