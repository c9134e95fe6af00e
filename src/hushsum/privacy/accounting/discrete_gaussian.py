r"""A proven bound on the privacy loss of shifting a discrete Gaussian.

Write ``f(x) = exp(−x²/2V)``, ``F(k) = Σ_{s ≥ k} f(s)`` over integers s, and ``Θ = Σ_s f(s)``, so that X ~
N_Z(0, V) has ``P[X ≥ k] = F(k)/Θ``. Computed is an upper bound on the hockey-stick divergence

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
"""

from __future__ import annotations

import math

import numpy as np

from hushsum._types import Floats

SLACK = 2.0**-35
TINY = 1e-300
LARGEST_EPSILON = 600.0
LOWEST_START = -30.0
THRESHOLD_SLACK = 2.0**-48
DIRECT_BELOW = 2.0**18
"""Up to this V the 39·√V ≤ 20,000 terms above the smallest float are summed one by one."""


class DiscreteGaussian:
    """N_Z(0, V): upper bounds on the divergence between it and its shifts.

    The bounds and their proof stand at the top of this module. They are above the true values by a relative
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
