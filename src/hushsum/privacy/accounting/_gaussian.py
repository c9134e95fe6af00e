"""Gaussian noise, real and discrete: from (ε, δ) to its variance and back, with proofs.

The module has four parts. `gaussian_delta` and `analytic_gaussian_sigma` are about normal noise on real
numbers. `DiscreteGaussian` and `discrete_gaussian_delta` bound δ for integer tables in which one unit moves
each cell by at most 1. `vector_delta` does so for tables that one unit moves by a vector of bounded length.
`promise_for_sum` is about noise that several sites add in shares. The proofs of the last three follow.

Moves by 1: the divergence of a shifted discrete Gaussian
---------------------------------------------------------
The losses of many cells add up to the loss of one shifted discrete Gaussian (`discrete_gaussian_delta`),
which is bounded here. Write ``f(x) = exp(−x²/2V)``, ``F(k) = Σ_{s ≥ k} f(s)`` over integers s, and ``Θ = Σ_s
f(s)``, so that X ~ N_Z(0, V) has ``P[X ≥ k] = F(k)/Θ``. Computed is an upper bound on the hockey-stick
divergence

    δ(ε) = Σ_s max(0, P[X = s] − e^ε P[X = s + R])                                                       (1)

between X and X shifted by an integer R > 0. (X ↦ −X swaps the pair up to a translation, so both orders give
the same number.)

**One threshold.** ``log P[X = s]/P[X = s + R] = R(R + 2s)/2V`` grows with s and exceeds ε exactly for
``s > t = εV/R − R/2``. With ``m = ⌊t⌋ + 1``

    δ(ε) = (F(m) − e^ε F(m + R)) / Θ.                                                                    (2)

**Small V: direct summation.** F(k) is a cumulative sum of f from the far end.

**Large V: Euler–Maclaurin with a signed kernel.** For the half-integer ``a = m − ½``

    F(m) = ∫_a^∞ f + f'(a)/24 + ∫_a^∞ f''''(x) K(x) dx,      0 ≤ K ≤ 1/384.                              (3)

This is the Euler–Maclaurin formula of order four started at a, where B₁(½) = B₃(½) = 0, with its last
boundary term drawn into the integral: K = (B₄(½) − B₄({x + ½}))/4!, and B₄ on [0, 1] runs from −1/30 to its
maximum B₄(½) = 7/240, a range of 1/16. With ``u = a/√V``, the fourth derivative is ``V⁻² He₄(u) f`` and
``|He₄(w)| ≤ w⁴ + 6w² + 3``; integrating by parts,

    ∫_a^∞ |f''''| ≤ V^(−3/2) f(a) (u³ + 9u + 12 M(u)),       M(u) = e^(u²/2) ∫_u^∞ e^(−w²/2) dw,           (4)

where M is the Mills ratio, ``√(π/2)·erfcx(u/√2)``. So F(m) = f(a)·(√V M(u) − u/(24√V) ± r(u)) with the
remainder r equal to (4) divided by 384 f(a), and the same holds at ``a + R``, where ``e^ε f(a + R) = f(a)
e^κ`` with ``κ = (t − a)R/V``. The factor f(a) is common to both terms of (2), so (2) keeps its relative
precision where δ is 1e−100. By Poisson summation ``Θ = √(2πV)·ϑ(V)``, ``ϑ(v) = 1 + 2 Σ_{k ≥ 1}
exp(−2π²vk²)``, hence Θ ≥ √(2πV): a valid divisor.

**Floating point.** Every F is enlarged or reduced by ``SLACK = 2⁻³⁵`` ≈ 3e−11 of itself, in the direction
that enlarges δ. It covers, with ε ≤ 600 and u ≥ −30 (outside, ε is lowered to 600 and δ is set to 1, both
valid):

- the running sum of at most 2·10⁴ positive terms: 2·10⁴·2⁻⁵³ < 3e−12;
- exponents up to 745 in size, each a few rounded operations: 745·6·2⁻⁵³ < 6e−13;
- erfcx, whose implementation states 1e−13, and its argument, four roundings magnified by at most u² ≤ 900:
  5e−13;
- t and κ, four roundings of quantities whose effect on the exponent is ε + R²/V ≤ 7·10³ (t/√V ≥ −30 bounds
  R/√V by 80, and below −30 the terms at stake weigh less than e^−450): 7e3·4·2⁻⁵³ < 4e−12. A threshold m
  that is too low keeps terms whose factor 1 − e^(ε−L) is of this same size, beside F(m) ≥ f(m), which the
  slack covers. One that is too high would drop such a term, which no slack of the much smaller F(m) covers
  (f(m)/f(m + 1) may be e^ε); so t is lowered by THRESHOLD_SLACK, more than its rounding, before m is taken;
- V itself, given as a float or rounded to one: part of the roundings counted above.

Underflow is covered by adding TINY = 1e−300 to what is enlarged and taking 1e−310 from what is reduced.

Moves by a vector
-----------------
`vector_delta` and `vector_variances` need only a bound on the length of the move. A unit moves a table of n
integers by some integer vector v with ‖v‖₂ ≤ Δ, and perhaps a count by c at most. The table gets independent
discrete Gaussian noise N_Z(0, σ²), the count N_Z(0, σ_c²).

**Rounded noise.** For a table t of integers, rounding t + N(0, σ²I) gives t plus rounded noise. So rounded
noise is a post-processing of the Gaussian mechanism over the reals: at every real ε its hockey-stick
divergence ``sup_S P(S) − e^ε P'(S)`` is at most that of two normal distributions ‖v‖/σ apart, which grows
with ‖v‖ (Balle & Wang 2018).

**Discrete noise is near it.** In one cell, let r(z) be the probability that N(0, σ²) rounds to z, and p(z) =
e^{−z²/2σ²}/Z the discrete distribution. Then ``r(z)·√(2π)σ = e^{−z²/2σ²}·E[cosh(zu/σ²)·e^{−u²/2σ²}]`` for u
uniform in ±½, which is at least ``e^{−z²/2σ²}·(1 − 1/(24σ²))``; and Z ≥ √(2π)σ by Poisson's summation
formula. So r ≥ p·(1 − 1/(24σ²)) everywhere, and the total variation Σ max(0, p − r) is at most 1/(24σ²); over
n independent cells at most τ = n/(24σ²).

**Together.** For every S and real ε, P_p(S) ≤ P_r(S) + τ and P'_r(S) ≤ P'_p(S) + τ, hence

    δ_v(ε) ≤ δ_Gauss(ε; Δ/σ) + (1 + e^ε)·τ.                                                              (5)

**The count** has too little noise for (5), so its loss is taken exactly. The two are independent, and δ(ε) =
E[δ_v(ε − L)] over the loss L of the count, as for unit moves (`discrete_gaussian_delta`). That argument needs
of δ_v only that it is a hockey-stick divergence, for each v; the upper bound (5) at its nodes holds for all
v. A count that moves by less than c loses less: δ is the largest ``P[X ≥ k] − e^ε P[X ≥ k + c]``, which grows
with c.

The lattice must be fine, τ far below δ: grids and features, which count in units of 2¹⁰ and more to a record.
Elsewhere the variance comes from ρ, which needs no fine lattice (Canonne, Kamath & Steinke 2020).

Sums of shares
--------------
Each of h sites draws a discrete Gaussian of variance v, and their sum takes the place of one discrete
Gaussian of variance hv. `sum_distance`, `rho_of_sum` and `promise_for_sum` bound what that costs. Write N for
N_Z(0, hv), Q for the distribution of the sum, and ``|ln Q(s)/N(s)| ≤ τ`` for all integers s.

**τ.** As in ``log_sum_excess``: adding N_Z(0, b) to N_Z(0, a) gives N_Z(0, a + b) times
``ϑ(a+b)/(ϑ(a)ϑ(b))·Σ_k e^(−2π²gk²) cos(2πkc)`` with ``g = ab/(a+b)`` and some real c. The last factor lies
between 2 − ϑ(g) and ϑ(g). With a = kv and b = v, g ≥ v/2; so each of the h − 1 steps moves the logarithm by
at most ``−ln(2 − ϑ(v/2)) + 2·ln ϑ(v) ≤ 2.1·e^(−π²v)`` where v ≥ 4.

**(ε, δ).** Of d cells (and a count) P and P' are the distributions under neighbours, G and G' those with N in
place of Q, and T = dτ. Cell by cell P ≤ e^T·G and P' ≥ e^(−T)·G', so

    Σ max(0, P − e^ε·P') ≤ e^T·Σ max(0, G − e^(ε−2T)·G'):

noise that is (ε − 2T, e^(−T)·δ)-private with N is (ε, δ)-private with Q.

**ρ.** Let ``K(α) = ln Σ P^α·P'^(1−α)``; ρ-zCDP is K(α) ≤ ρ·α(α − 1) for α > 1. For α > 2 the quotients give
``K(α) ≤ α(α − 1)·ρ_G + (2α − 1)·T``, at most ``α(α − 1)·(ρ_G + 3T/2)``. For α ≤ 2: K(0) = K(1) = 0, and K''
is the variance of the loss ln P/P' under the distribution ∝ P^α·P'^(1−α). In each cell that loss is a line of
slope ``r/hv`` plus at most 2τ, and that distribution is a discrete Gaussian of variance hv with a real
centre, times factors between e^(−3τ) and e^(3τ). Such a Gaussian has a variance of at most hv·(1 + 10⁻¹²) for
hv ≥ 4 (Poisson summation; the terms left out are below 4π²hv·e^(−2π²hv)). So the deviation is at most
``e^(3τ)·(1 + 10⁻¹²)·r/√(hv) + 2τ``, and over all cells, by the triangle inequality,

    K'' ≤ (e^(3τ)·(1 + 10⁻¹²)·√(2ρ_G) + 2τ√d)²,       K(α) ≤ α(α − 1)·K''/2.

Compare Kairouz, Liu & Steinke (2021), Theorem 1, which has ``Δ/σ + τ√d`` for the same reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from hushsum._types import Floats
from hushsum.errors import ClaimError
from hushsum.privacy._claim import Promise

from ._parameters import (
    Real,
    at_least_one,
    cell_count,
    float_above,
    float_below,
    narrowed,
    positive,
    positive_epsilon,
    positive_variance,
    proper_delta,
    proper_share,
    zcdp_rho,
)


def gaussian_delta(epsilon: float, separation: float) -> float:
    """Return δ(ε) of two unit-variance normal distributions whose means are ``separation`` = Δ/σ apart.

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
    return scale / math.exp(_log_separation(target, bound)) * (1 + 1e-13)


@lru_cache(maxsize=512)
def _log_separation(target: float, bound: float) -> float:
    """Cached, because a plan needs it for the tables of many options at the same ε and δ."""

    def private(log_separation: float) -> bool:
        return gaussian_delta_above(target, math.exp(log_separation)) <= bound

    low = high = math.log(target) / 2 if target > 1 else math.log(target)
    while not private(low):
        low -= 1.0
    while private(high):
        high += 1.0
    return narrowed(high, low, private, width=1e-13)


COUNT_NODES = 2**11


@dataclass(frozen=True, slots=True)
class Divergence:
    """An upper bound on δ at every real ε, and about how many deviations apart the two distributions are.

    ``above_zero`` is the bound for ε ≥ 0. Where the pair and its mirror image are alike, ``δ(−ε) = 1 − e^(−ε)
    + e^(−ε)·δ(ε)``.
    """

    separation: float
    above_zero: Callable[[Floats], Floats]

    def delta(self, epsilon: Floats) -> Floats:
        """δ(ε) for each ε, of any sign."""
        size = np.abs(epsilon)
        bound = self.above_zero(size)
        mirrored = (bound * np.exp(-size) - np.expm1(-size)) * (1 + 1e-12)
        return np.minimum(np.where(epsilon >= 0, bound, mirrored), 1.0)


def mixed_delta(
    epsilon: float, table: Divergence, count: Divergence, *, shift: int, variance: float
) -> float:
    """The table's δ averaged over the loss of a count that moves by ``shift`` under discrete Gaussian noise
    of this variance, by the piecewise linear H that ``discrete_gaussian_delta`` describes.

    The nodes decide how tight the bound is, not whether it holds.
    """
    deviation = math.sqrt(variance)
    separation = math.hypot(table.separation, count.separation)
    # Beyond `highest` lies a share e^−20 of the δ to be expected, below `lowest` far less.
    expected = max(gaussian_delta(epsilon, separation), 1e-290)
    highest = math.ceil(deviation * math.sqrt(2 * math.log(1 / expected) + 40)) + 1
    lowest = -math.ceil(8 * deviation) - 1
    stride = -(-(highest - lowest) // COUNT_NODES)
    steps = np.arange(-(-(highest - lowest) // stride) + 1, dtype=np.float64)
    losses = (lowest + shift / 2 + steps * stride) * (shift / variance)
    # δ falls with ε, so a lower ε covers the rounding of its arguments
    margin = 8 * 2.0**-53 * np.abs(losses)
    heights = table.delta(epsilon - losses - margin - 8 * 2.0**-53 * epsilon)
    gap = stride * shift / variance
    slopes = np.diff(heights, append=1.0)
    slopes[:-1] /= -math.expm1(-gap)
    before = np.append(0.0, slopes[:-1]) * math.exp(-gap)
    rounding = 2.0**-50 * (np.abs(slopes) + (1 + gap) * np.abs(before))
    coefficients = np.maximum(slopes - before + rounding, 0.0)
    mixed = heights[0] + np.dot(coefficients, count.delta(losses - margin))
    return min(1.0, float(mixed) * (1 + 1e-12))


SLACK = 2.0**-35
TINY = 1e-300
LARGEST_EPSILON = 600.0
LOWEST_START = -30.0
THRESHOLD_SLACK = 2.0**-48
SEARCH_WIDTH = 8e-5
"""The search stops when log-variances that meet and miss the claim are this close."""
DIRECT_BELOW = 2.0**18
"""Up to this V the 39·√V ≤ 20,000 terms above the smallest float are summed one by one."""


class DiscreteGaussian:
    """N_Z(0, V): upper bounds on the divergence between it and its shifts.

    The proof is at the top of the module. The bounds are above the true values by a relative
    1e−10 for V ≤ 2¹⁸ and, for a shift of R, by about u⁵/(190·R·V^1.5) beyond: 1e−6 and less.
    """

    __slots__ = ("_sums", "deviation", "total", "variance")

    def __init__(self, variance: float) -> None:
        self.variance = variance
        self.deviation = math.sqrt(variance)
        self._sums: Floats | None = None
        self.total = math.sqrt(2 * math.pi * variance)
        if variance <= DIRECT_BELOW:
            support = np.arange(math.ceil(39 * self.deviation) + 2, dtype=np.float64)
            weights = np.exp(support * support / (-2 * variance))
            self._sums = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
            self.total = 2 * float(self._sums[0]) - 1

    def divergence(self, epsilon: Floats, shift: int) -> Floats:
        """Return an upper bound on (1) with R = ``shift``, for every ε ≥ 0 of ``epsilon``."""
        epsilon = np.minimum(epsilon, LARGEST_EPSILON)
        threshold = epsilon * (self.variance / shift) - shift / 2
        margin = THRESHOLD_SLACK * (epsilon * (self.variance / shift) + shift / 2)
        first = np.floor(threshold - margin) + 1
        start = (first - 0.5) / self.deviation
        if self._sums is not None:
            kept = self._direct(first) * (1 + SLACK)
            paid = np.exp(epsilon) * np.maximum(self._direct(first + shift) * (1 - SLACK) - 1e-310, 0)
            bound = (kept - paid) / (self.total * (1 - SLACK))
        else:
            inner = np.maximum(start, LOWEST_START)
            kept_sum, kept_error = self._expansion(inner)
            paid_sum, paid_error = self._expansion(inner + shift / self.deviation)
            factor = np.exp((threshold - first + 0.5) * (shift / self.variance))
            kept = kept_sum * (1 + SLACK) + kept_error
            paid = np.maximum(paid_sum * (1 - SLACK) - paid_error, 0) * factor
            bound = np.exp(inner * inner / -2) * (kept - paid) * (1 + SLACK) / self.total
        return np.where(start < LOWEST_START, 1.0, np.clip(bound + TINY, TINY, 1.0))

    def _direct(self, first: Floats) -> Floats:
        """F(k) from the table; below 0 it is Θ − F(1 − k), which loses no digits since it is above Θ/2."""
        assert self._sums is not None
        last = len(self._sums) - 1
        upper = self._sums[np.clip(first, 0, last).astype(np.intp)]
        lower = self.total - self._sums[np.clip(1 - first, 0, last).astype(np.intp)]
        return np.where(first >= 0, upper, lower)

    def _expansion(self, start: Floats) -> tuple[Floats, Floats]:
        """F(m)/f(a) by (3) without its last term, and the bound (4) on that term, at u = ``start``."""
        from scipy.special import erfcx

        mills: Floats = math.sqrt(math.pi / 2) * erfcx(start / math.sqrt(2))
        sums = self.deviation * mills - start / (24 * self.deviation)
        remainder = (start**3 + 9 * start + 12 * mills) / (384 * self.deviation**3)
        return sums, remainder


def log_theta(variance: Floats) -> Floats:
    """Return log Σ_k exp(−2π²vk²) by the side of Poisson's summation formula that converges fast."""
    nome = np.where(variance * 2 * math.pi >= 1, 2 * math.pi**2 * variance, 1 / (2 * variance))
    series = np.zeros(len(variance))
    for k in range(1, 8):
        series += 2 * np.exp(-nome * k * k)
    result: Floats = np.log1p(series)
    return result - np.where(variance * 2 * math.pi >= 1, 0.0, 0.5 * np.log(2 * math.pi * variance))


def log_sum_excess(cells: int, variance: float) -> float:
    r"""Return τ with ``P[X₁ + … + X_R = s] ≤ e^τ · P[N_Z(0, R·v) = s]`` for all s, X_r independent N_Z(0, v).

    τ = 0 for one cell, and about 2·exp(−π²v) for more: 0.015 at v = ½, 1e−4 at v = 1, 3e−13 at v = 3.

    *Proof.* For independent N_Z(0, a) and N_Z(0, b), completing the square leaves ``P[X + Y = s]·Θ_a Θ_b =
    exp(−s²/2(a+b)) · Σ_x exp(−(x − c)²/2h)`` with ``h = ab/(a+b)`` and some real c. By Poisson summation the
    sum is ``√(2πh) Σ_k exp(−2π²hk²) cos(2πkc) ≤ √(2πh) ϑ(h)``. Since Θ_v = √(2πv) ϑ(v) and (a+b)·h = ab, the
    probability is at most that of N_Z(0, a+b) times ``ϑ(a+b) ϑ(h) / (ϑ(a) ϑ(b))``. Adding one cell after
    another (a = kv, b = v) and multiplying, the ϑ(kv) telescope:

        e^τ = ϑ(Rv)/ϑ(v) · Π_{k=1}^{R−1} ϑ(kv/(k+1)) / ϑ(v).

    ϑ falls with its argument, so the factors fall with k and stay above 1: those beyond the 4096th are
    replaced by the 4096th. This sharpens Kairouz, Liu & Steinke (2021), "The distributed discrete Gaussian
    mechanism", whose ``10 Σ_k exp(−2π²v·k/(k+1))`` bounds this τ for v ≥ ½ and grows linearly in R where this
    grows like the logarithm.
    """
    if cells == 1:
        return 0.0
    crude = (cells - 1) * float(log_theta(np.array([variance / 2]))[0])
    if crude < 1e-12:
        return crude * (1 + SLACK)
    k = np.arange(1.0, min(cells - 1, 4096) + 1)
    base, whole = log_theta(np.array([variance, cells * variance]))
    rounding = 1e-15 * (1 + abs(base))
    factors = np.maximum(log_theta(variance * (k / (k + 1))) - base, 0) + rounding
    rest = cells - 1 - len(k)
    product = (np.sum(factors) + rest * factors[-1]) * (1 + SLACK)
    return float(product + min(whole - base, 0) * (1 - SLACK) + rounding)


class Variances(NamedTuple):
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
        the loss depends on S alone and is that of shifting N_Z(0, V) by R. The distribution of S is at most
        e^τ times N_Z(0, V) at every integer (``log_sum_excess``), and δ(ε) = E[max(0, 1 − e^(ε − loss))] is a
        sum of non-negative terms over that distribution, so δ_S(ε) ≤ e^τ·δ(N_Z(0, V), shift R), which
        ``DiscreteGaussian`` bounds. For ε < 0 the symmetry of the pair gives ``δ_S(ε) = 1 − e^ε + e^ε
        δ_S(−ε)``.

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
    table = _unit_moves(cells, float(positive_variance("variance", variance)))
    if count_variance is None:
        return float(table.delta(np.array([target]))[0])
    spread = float(positive_variance("count_variance", count_variance))
    return mixed_delta(target, table, _unit_moves(1, spread), shift=1, variance=spread)


def _unit_moves(cells: int, variance: float) -> Divergence:
    """``cells`` unit shifts of discrete Gaussians of one variance."""
    total, log_excess = DiscreteGaussian(cells * variance), log_sum_excess(cells, variance)

    def above_zero(epsilon: Floats) -> Floats:
        divergence = total.divergence(epsilon, cells)
        # min(·, log 1) first: the excess of many cells with next to no noise would overflow
        bound: Floats = np.exp(np.minimum(np.log(divergence) + log_excess, 0.0)) * (1 + 1e-12)
        return bound

    return Divergence(math.sqrt(cells / variance), above_zero)


# A release is calibrated twice, for its claim and for its noise, and audits release thousands of times.
@lru_cache(maxsize=256)
def gaussian_variances(
    *, epsilon: Real, delta: Real, cells: int, count_share: Real | None = None
) -> Variances:
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
    Variances(variance=Fraction(142789, 8), count_variance=None)
    >>> table, count = gaussian_variances(epsilon=1.0, delta=1e-6, cells=1000, count_share=0.02)
    >>> round(float(table)), round(float(count))
    (18212, 892)
    """
    target, bound = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
    cells = cell_count(cells)
    share = None if count_share is None else float(proper_share(count_share))

    def variances(log_scale: float) -> Variances:
        return Variances(*divided(cells, math.exp(log_scale), share, short_above))

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
    return narrowed(misses, meets, lambda log_scale: excess(log_scale) <= 0, width=SEARCH_WIDTH)


def short_above(value: float) -> Fraction:
    """Return a rational of few digits, as exact samplers like them, above ``value`` by 2⁻²⁰ of it at most."""
    bits = max(0, 20 - math.floor(math.log2(value)))
    return Fraction(math.ceil(Fraction(value) * 2**bits), 2**bits)


Parameter = TypeVar("Parameter", int, Fraction)


def divided(
    cells: int, scale: float, share: float | None, exactly: Callable[[float], Parameter]
) -> tuple[Parameter, Parameter | None]:
    """The parameters of the noise of the cells and of the count, which takes its share of the cost;
    one moved cell alone would take noise of the parameter ``scale``.
    """
    if share is None:
        return exactly(cells * scale), None
    return exactly(cells * scale / (1 - share)), exactly(scale / share)


def least_scale(start: float, keeps: Callable[[float], bool]) -> float:
    """The least scale, to a relative 1e−4, at which noise keeps a promise, searched from ``start``."""
    high = start
    while not keeps(high):
        high *= 1.25
    low = high / 2
    while keeps(low):
        low, high = low / 2, low
    while high / low > 1 + _WIDTH:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


_WIDTH = 1e-4
# Relative error of the Gaussian δ, with ample room: its terms are right to 1e−13, and their difference is
# above a thousandth of them for separations above 1e−2.
_ROUNDING = 1e-9

_LARGEST_EXPONENT = 700.0


def rounding_gap(cells: int, variance: Fraction) -> float:
    """τ of "Moves by a vector" above: the total variation between discrete and rounded Gaussian noise in
    ``cells`` cells.
    """
    return cells / (24.0 * float(variance)) * (1.0 + 1e-12)


def vector_delta(
    epsilon: Real,
    *,
    l2_squared: int,
    cells: int,
    variance: Real,
    count: int = 0,
    count_variance: Real | None = None,
) -> float:
    """A proven upper bound on δ(ε) of a table of ``cells`` integers with discrete Gaussian noise.

    One unit moves it by an integer vector of squared length at most ``l2_squared``, and a noisy count by
    ``count`` at most. The proof is in "Moves by a vector" at the top of the module.

    Raises
    ------
    ClaimError
        if a parameter is not finite and above 0.

    >>> f"{vector_delta(1.0, l2_squared=1 << 40, cells=1000, variance=18 << 40):.2e}"
    '9.16e-07'
    """
    target = float_below(positive_epsilon(epsilon))
    moved = at_least_one("cells", cells, "it is the number of cells one unit moves")
    table = _moved_vector(l2_squared, moved, Fraction(positive_variance("variance", variance)))
    if not count:
        return float(table.delta(np.array([target]))[0])
    if count_variance is None:
        raise ValueError("a count that moves needs noise")
    spread = float(positive_variance("count_variance", count_variance))
    return mixed_delta(target, table, _moved_count(count, spread), shift=count, variance=spread)


def _moved_vector(l2_squared: int, cells: int, variance: Fraction) -> Divergence:
    """The divergence of a moved vector, by (5)."""
    separation = math.sqrt(float(Fraction(l2_squared) / variance)) * (1.0 + 1e-15)
    # No total variation is above 1; e^ε times more would overflow.
    gap = min(rounding_gap(cells, variance), 1.0)

    def above_zero(epsilon: Floats) -> Floats:
        size = np.minimum(epsilon, _LARGEST_EXPONENT)
        bound: Floats = np.minimum(_normal_delta(size, separation) + (1.0 + np.exp(size)) * gap, 1.0)
        return bound * (1.0 + 1e-12)

    return Divergence(separation, above_zero)


def _moved_count(shift: int, variance: float) -> Divergence:
    """One integer that moves by ``shift``, exactly."""
    noise = DiscreteGaussian(variance)

    def above_zero(epsilon: Floats) -> Floats:
        return np.minimum(noise.divergence(epsilon, shift), 1.0) * (1.0 + 1e-12)

    return Divergence(shift / math.sqrt(variance), above_zero)


def _normal_delta(epsilon: Floats, separation: float) -> Floats:
    """An upper bound of ``gaussian_delta`` for ε ≥ 0, with its rounding errors added."""
    from scipy.special import erfcx, ndtr

    u = epsilon / separation - separation / 2.0
    root, peak = math.sqrt(2.0), 0.5 * np.exp(-u * u / 2.0)
    # Below −5 erfcx(u) would grow until it overflows.
    first = np.where(u < -5.0, ndtr(-u), peak * erfcx(np.maximum(u, -5.0) / root))
    second = peak * erfcx((u + separation) / root)
    bound: Floats = np.maximum(first - second, 0.0) * (1.0 + _ROUNDING) + 4e-13 * first + 1e-300
    return bound


@lru_cache(maxsize=512)
def vector_variances(
    *,
    epsilon: Real,
    delta: Real,
    l2_squared: int,
    cells: int,
    count: int = 0,
    count_share: Fraction = Fraction(0),
) -> Variances:
    """The smallest proven variances of discrete Gaussian noise for a table, and for a count if one moves.

    Where the lattice is fine they are within 1e−3 of those of the Gaussian mechanism over the reals; else
    those of ρ. Of the cost the count takes ``count_share``. The δ of exactly these rationals has been checked
    with ``vector_delta``, or follows from ρ. Cached, because a plan and the release that follows need the
    same values.

    >>> table, _ = vector_variances(epsilon=1.0, delta=1e-6, l2_squared=1 << 40, cells=1000)
    >>> round(float(table) ** 0.5 / (1 << 20), 3)
    4.225
    >>> coarse, _ = vector_variances(epsilon=1.0, delta=1e-6, l2_squared=9, cells=1000)
    >>> round(float(coarse) ** 0.5 / 3, 3)
    4.531
    """
    target, bound = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
    share = count_share if count else Fraction(0)
    rho = Fraction(zcdp_rho(epsilon, delta))
    safe = Variances(
        Fraction(l2_squared) / (2 * rho * (1 - share)),
        Fraction(count**2) / (2 * rho * share) if count else None,
    )

    def at(log_scale: float) -> Variances:
        return _of_scale(log_scale, l2_squared, count, share)

    def keeps(log_scale: float) -> bool:
        return _keeps(target, bound, at(log_scale), l2_squared=l2_squared, cells=cells, count=count)

    misses, meets = 2.0 * math.log(analytic_gaussian_sigma(epsilon, delta)), -math.log(2.0 * float(rho))
    # On a finer lattice δ is less, so that no smaller scale of the same search keeps the promise here.
    finest = _finest_scale(target, bound, misses, meets, count, share)
    if keeps(finest):
        return at(finest)
    if not keeps(meets):
        return safe
    return at(narrowed(misses, meets, keeps, width=_WIDTH))


_FINEST_LATTICE = 1 << 80


@lru_cache(maxsize=512)
def _finest_scale(
    epsilon: float, delta: float, misses: float, meets: float, count: int, share: Fraction
) -> float:
    """The logarithm of the scale that the search finds for one cell of a lattice without rounding; the same
    for all tables of one promise.
    """

    def keeps(log_scale: float) -> bool:
        found = _of_scale(log_scale, _FINEST_LATTICE, count, share)
        return _keeps(epsilon, delta, found, l2_squared=_FINEST_LATTICE, cells=1, count=count)

    return narrowed(misses, meets, keeps, width=_WIDTH)


def _of_scale(log_scale: float, l2_squared: int, count: int, share: Fraction) -> Variances:
    scale = math.exp(log_scale)
    table = short_above(l2_squared * scale / float(1 - share))
    return Variances(table, short_above(count**2 * scale / float(share)) if count else None)


def _keeps(
    epsilon: float, delta: float, found: Variances, *, l2_squared: int, cells: int, count: int
) -> bool:
    """Whether noise of exactly these variances is proven to keep the promise."""
    moved = {"l2_squared": l2_squared, "cells": cells, "count": count}
    return vector_delta(epsilon, **moved, variance=found[0], count_variance=found[1]) <= delta


SMALLEST_SHARE = Fraction(4)
"""The smallest variance of a share: the sum of smaller ones is further from a discrete Gaussian."""
_FIRST_MARGIN = Fraction(1, 1 << 20)
_UP = 1.0 + 1e-9


def sum_distance(shares: int, variance: Fraction = SMALLEST_SHARE) -> float:
    """τ of "Sums of shares" above: how far the sum is from one discrete Gaussian, in logarithms.

    >>> sum_distance(20) < 1e-15
    True
    """
    if variance < SMALLEST_SHARE:
        raise ValueError("variance")
    return (shares - 1) * 2.1 * math.exp(-(math.pi**2) * float(variance)) * _UP


def rho_of_sum(rho: Fraction, tau: float, cells: int) -> float:
    """ρ of sums of shares whose distance is ``tau``, where one discrete Gaussian per cell has ``rho``."""
    slope = math.exp(3 * tau) * (1 + 1e-12) * math.sqrt(2 * float(rho)) + 2 * tau * math.sqrt(cells)
    return max(slope**2 / 2, float(rho) + 1.5 * cells * tau * _UP) * (1 + 1e-12)


def promise_for_sum(promise: Promise, *, shares: int, cells: int) -> Promise:
    """A promise that one discrete Gaussian per cell must keep, so that the sum of shares keeps ``promise``.

    It is smaller by a millionth, and by more only for promises so small that the distance counts. ``cells``
    are all that are released, the count among them.

    >>> from hushsum.privacy import Promise
    >>> kept = promise_for_sum(Promise.of(rho=0.5), shares=20, cells=10**6)
    >>> 0 < 1 - kept.rho / Fraction(1, 2) < 1e-5
    True
    """
    tau, margin = sum_distance(shares), _FIRST_MARGIN
    while margin <= Fraction(1, 2):
        smaller = _reduced(promise, margin)
        if _kept(promise, smaller, tau, cells):
            return smaller
        margin *= 2
    rule = f"the promise is too small for noise in shares on {cells} cells"
    raise ClaimError(rule, got="too small", remedy="use a larger one, or fewer rows")


def _reduced(promise: Promise, margin: Fraction) -> Promise:
    if promise.rho is not None:
        return replace(promise, rho=promise.rho * (1 - margin))
    assert promise.epsilon is not None
    return replace(promise, epsilon=promise.epsilon * (1 - margin), delta=promise.delta * (1 - margin))


def _kept(promise: Promise, smaller: Promise, tau: float, cells: int) -> bool:
    total = cells * tau * _UP
    if promise.rho is not None:
        assert smaller.rho is not None
        return rho_of_sum(smaller.rho, tau, cells) <= float(promise.rho)
    assert promise.epsilon is not None
    assert smaller.epsilon is not None
    less = float(promise.epsilon - smaller.epsilon)
    return 2 * total <= less and math.exp(total) * _UP * float(smaller.delta) <= float(promise.delta)
