"""From a claim to exact noise scales: what (ε, δ) or ρ a noise keeps, and the least noise that keeps it.

Its parts follow each other in this order: privacy parameters, and conversions between claims; normal and
discrete Gaussian noise, on tables that move by units or by vectors, and in shares; binomial and Skellam
noise; lists of releases that are fixed beforehand; local reports that are shuffled.

Conversions
===========
From one relation or unit to another: groups of records, and replace from add/remove.

=================  ======  =====  ==========================
from               ε       ρ      δ
=================  ======  =====  ==========================
one unit           ε       ρ      δ
m units            m·ε     m²·ρ   δ·(e^(mε) − 1)/(e^ε − 1)
replace one unit   2·ε     4·ρ    δ·(1 + e^ε)
=================  ======  =====  ==========================

Replacing a unit is removing one and adding one, so the last row is m = 2. The way back does not exist: a
mechanism that publishes the exact number of records is perfectly private under replace and not private at all
under add/remove.

ε and ρ are exact: a float is the rational number it stands for. δ is rounded up.

Gaussian noise
==============
Real and discrete, from (ε, δ) to its variance and back. `gaussian_delta` and `analytic_gaussian_sigma` are
about normal noise on real numbers. `DiscreteGaussian` and `discrete_gaussian_delta` bound δ for integer
tables in which one unit moves each cell by at most 1. `vector_delta` does so for tables that one unit moves
by a vector of bounded length. `promise_for_sum` is about noise that several sites add in shares. The proofs
of the last three follow.

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

Moments of the privacy loss
===========================
They bound what binomial and Skellam noise on integer tables cost. One unit moves ``cells`` cells by 1 each,
up or down, and each cell has independent noise; a count moves by 1 under noise of its own. For such vectors,
summing the moments of the loss proves less noise sufficient than the published bounds for any vector: the
concentration inequalities of cpSGD for binomial noise (Agarwal et al. 2018), and the bound on the Rényi
divergence of Skellam noise by a Gaussian's and a remainder in Δ1 (Agarwal, Kairouz & Liu 2021).

Gamma-radius noise
==================
Under (ε, δ): a bound of δ, and the least scale.

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
its last place; ``_MOMENTS_SLACK`` = 2⁻³⁰ of the size of what is summed is more than all of that, and added.

Composition
===========
Lists of releases that are fixed beforehand are composed as tightly as is proven. δ = 0: the ε are added,
exactly. δ > 0: privacy loss distributions (Google's ``dp-accounting``), which know the shape of each
mechanism's loss and not only its two numbers.

The list, and every parameter in it, must not depend on any of its results. A ledger decides release by
release, with parameters that may; it adds only what is proven for that (``hushsum.ledger``), and does not use
this.

Shuffling
=========
It amplifies privacy: nobody knows who sent which of the reports of the local model. For every
ε₀-differentially private randomiser and n reports, the shuffled reports of two neighbouring groups of persons
(one person's value replaced) are at least as hard to tell apart as

    P = (A + Δ, C − A + 1 − Δ)  and  Q = (A + 1 − Δ, C − A + Δ),

where C is binomial with n − 1 trials of probability e^(−ε₀), A binomial with C trials of probability 1/2, and
Δ is 1 with probability e^ε₀/(1 + e^ε₀): Theorem 3.1 of Feldman, McMillan and Talwar, *Hiding among the
clones*, FOCS 2021. Given C = c the first number has the likelihood ratio

    (q·a + (1 − q)·(c + 1 − a)) / ((1 − q)·a + q·(c + 1 − a)),    q = e^ε₀/(1 + e^ε₀),

which grows with a, so δ(ε) is a sum of binomial tails, evaluated here in place of the closed form of the
theorem, which is about three times as large.

With r = 1 − q, b the distribution of A given C = c, and a₀ the least a whose ratio is at least e^ε, the part
of c is the sum over a ≥ a₀ of ``(q·b(a − 1) + r·b(a)) − e^ε·(r·b(a − 1) + q·b(a))``, which is

    (q − e^ε·r)·b(a₀ − 1) − (e^ε − 1)·P[A ≥ a₀].

Rounding is on the safe side: tails of C are added to δ whole; in that difference the first term is raised and
the second lowered by a relative 1e-9, far above the errors of the special functions (1e-11 for 10¹⁰ reports,
against 50 digits), and so are the weights of c; and the ε of a bisection is its upper end.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hushsum._types import Floats, is_number
from hushsum.errors import Argument, ClaimError, UsageError
from hushsum.privacy._claim import Claim, Promise, Relation, check_mechanism

__all__ = [
    "GAMMA_MOST_CELLS", "SMALLEST_SHARE", "DiscreteGaussian", "GaussianTable", "LaplaceTable",
    "analytic_gaussian_sigma", "at_least_one", "binomial_delta", "binomial_trials", "check_delta", "compose",
    "declared_population", "discrete_gaussian_delta", "float_above", "float_below", "gamma_radius_delta",
    "gamma_radius_scale", "gaussian_delta", "gaussian_delta_above", "gaussian_variances", "group_delta",
    "group_epsilon", "group_rho", "local_epsilon_for", "noise_allowed", "promise_for_sum", "promise_of_one",
    "proper_share", "relation_steps", "rho_of_sum", "rounding_gap", "short_above", "shuffled_delta",
    "shuffled_epsilon", "skellam_delta", "skellam_rho", "skellam_variances", "sum_distance", "vector_delta",
    "vector_variances", "zcdp_delta", "zcdp_epsilon", "zcdp_rho",
]  # fmt: skip


Real = float | Fraction
"""A number given by the user: a float, an int or an exact fraction."""

SMALLEST_DELTA = 1e-200
"""No δ below it is accepted: the bounds are computed with floats, which end near 1e−308."""

DELTA_MARGIN = 10
"""δ·population stays below 1/10: a δ near 1/population allows publishing one whole record at random."""


def _refusal(name: str, rule: str, value: object, remedy: str) -> ClaimError:
    """The refusal of a parameter, which shows numbers alone: any other object may be one of the records."""
    plain = is_number(value) or isinstance(value, bool)
    return ClaimError(name, rule, got=f"{value}" if plain else type(value).__name__, remedy=remedy)


def positive(name: str, value: Real, remedy: str) -> Real:
    """Return ``value`` if it is a finite number above zero, else raise ClaimError."""
    if not is_number(value) or not math.isfinite(value) or value <= 0:
        raise _refusal(name, "must be a finite number above 0", value, remedy)
    return value


def positive_epsilon(epsilon: Real) -> Real:
    """Return ε if it is finite and above 0."""
    return positive("epsilon", epsilon, "typical values lie between 0.1 and 10")


def positive_rho(rho: Real) -> Real:
    """Return ρ if it is finite and above 0."""
    return positive("rho", rho, "typical values lie between 0.001 and 2")


def positive_variance(name: str, variance: Real) -> Real:
    """Return a noise variance if it is finite, above 0 and representable as a float."""
    remedy = "take it from gaussian_variances(...)"
    if not 1e-100 < float(positive(name, variance, remedy)) < 1e100:
        raise _refusal(name, "must lie between 1e-100 and 1e100", float(variance), remedy)
    return variance


def proper_delta(delta: Real) -> Real:
    """Return δ if it lies strictly between 0 and 1, and not so near 0 that floats cannot tell."""
    if not is_number(delta) or not SMALLEST_DELTA <= delta < 1:  # also refuses nan
        rule = f"must be a number from {SMALLEST_DELTA:g} to below 1"
        raise _refusal("delta", rule, delta, "take 1e-6 or less, or request a pure epsilon claim")
    return delta


def at_least_one(name: str, value: int, remedy: str, *, at_most: float = math.inf) -> int:
    """Return ``value`` as an int if it is an integer, NumPy's included, of at least 1."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= at_most:
        reach = "of at least 1" if at_most == math.inf else f"from 1 to {at_most}"
        raise _refusal(name, f"must be an integer {reach}", value, remedy)
    return number


def cell_count(cells: int) -> int:
    """Return how many cells one unit moves, if it is an integer from 1 to 2⁵⁰."""
    return at_least_one("cells", cells, "it is the number of cells one unit moves by 1", at_most=2**50)


def proper_share(share: Real) -> Fraction:
    """Return the fraction of the budget that pays for the noisy count, if it lies between 0 and 1."""
    if not is_number(share) or not 0 < share < 1:
        raise _refusal("count_share", "must be above 0 and below 1", share, "try 0.02")
    return Fraction(share)


def declared_population(population: int) -> int:
    """Return a declared number of records or persons, if it is an integer of at least 1."""
    return at_least_one("population", population, "declare the number of records or persons, or leave it out")


def check_delta(delta: Real, population: int | None, *, allow_large_delta: bool = False) -> None:
    """Refuse a δ of 1/(10·population) or more: it would allow a release that shows some records as they are.

    Publishing one unit chosen at random is (0, 1/population)-private, so δ means something only well below
    1/population. It is a *public* number: a declared size, or a noisy count already paid for; None skips the
    comparison.

    Args:
        delta: the δ of a claim, strictly between 0 and 1.
        population: how many records or persons the release covers, if known.
        allow_large_delta: accept δ up to 1 all the same.

    Raises:
        ClaimError: δ is not in (0, 1), or is too large for ``population``.

    >>> check_delta(1e-6, 50_000)
    >>> check_delta(1e-6, 500_000)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    hushsum.errors.ClaimError: delta must be below 1/(10 × population) = 2e-07, got 1e-06; lower it, or ...
    """
    proper_delta(delta)
    if population is None or allow_large_delta:
        return
    if Fraction(delta) * DELTA_MARGIN * declared_population(population) >= 1:
        raise ClaimError(
            "delta",
            f"must be below 1/(10 × population) = {1 / (DELTA_MARGIN * population):.3g}",
            got=f"{float(delta):.3g}",
            remedy=("lower it, or give ", Argument("allow_large_delta", True)),
        )


def float_below(value: Real) -> float:
    """Return the largest float not above ``value``; a smaller ε or δ is the stricter claim.

    >>> float_below(Fraction(1, 10)) <= Fraction(1, 10) < 0.1
    True
    """
    nearest = float(value)
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > Fraction(value) else nearest


def float_above(value: Real) -> float:
    """Return the smallest float not below ``value``; a larger ρ or δ is the weaker claim."""
    nearest = float(value)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < Fraction(value) else nearest


SMALLEST = math.nextafter(0.0, 1.0)


def zcdp_delta(rho: Real, epsilon: Real) -> float:
    """Return a δ for which every ρ-zCDP mechanism is (ε, δ)-private.

    ``δ = min over α > 1 of exp((α−1)(αρ−ε)) / (α−1) · (1 − 1/α)^α``. Its logarithm is convex in α, with the
    derivative ``(2α−1)ρ − ε + log(1 − 1/α)``, whose root is bracketed and bisected. Every α > 1 gives a valid
    δ, so an inaccurate root costs tightness, never truth; the rounding of the exponent is added to it.

    Raises:
        ClaimError: ρ or ε is not finite and above 0.

    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy", Proposition 12.

    >>> f"{zcdp_delta(0.02, 1.0):.2e}"
    '8.83e-08'
    """
    return _delta(float_above(positive_rho(rho)), float_below(positive_epsilon(epsilon)))


def zcdp_epsilon(rho: Real, delta: Real) -> float:
    """Return the least ε for which ``zcdp_delta(rho, ε) ≤ delta``, rounded up.

    Raises:
        ClaimError: ρ is not finite and above 0, or δ not in (0, 1).

    >>> round(zcdp_epsilon(0.02, 1e-6), 4)
    0.8999
    """
    spent, bound = float_above(positive_rho(rho)), float_below(proper_delta(delta))
    # Bun & Steinke's simpler conversion, from which the optimal one can only descend.
    meets = (spent + 2 * math.sqrt(-spent * math.log(bound))) * (1 + 1e-9)
    return narrowed(0.0, meets, lambda epsilon: _delta(spent, epsilon) <= bound, relative=1e-12)


def zcdp_rho(epsilon: Real, delta: Real) -> float:
    """Return the largest ρ for which ``zcdp_delta(ρ, epsilon) ≤ delta``, rounded down.

    A table whose one unit moves it by Δ₂ then takes discrete Gaussian noise of variance ``Δ₂²/(2ρ)``.

    Raises:
        ClaimError: ε is not finite and above 0, or δ not in (0, 1).

    >>> round(zcdp_rho(1.0, 1e-6), 5)
    0.02436
    """
    return _rho(float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta)))


@lru_cache(maxsize=512)
def _rho(target: float, bound: float) -> float:
    """Cached, because a plan needs it for the tables of many options at the same ε and δ."""
    logarithm = -math.log(bound)
    meets = (target / (math.sqrt(logarithm + target) + math.sqrt(logarithm))) ** 2 * (1 - 1e-9)
    fails = 2 * meets
    while _delta(fails, target) <= bound:
        meets, fails = fails, 2 * fails
    return narrowed(fails, meets, lambda rho: _delta(rho, target) <= bound, relative=1e-12)


def _delta(rho: float, epsilon: float) -> float:
    """The optimised bound for floats, by bisection over the logarithm of x = α − 1."""

    def rises(logarithm: float) -> bool:
        x = math.exp(logarithm)
        return (1 + 2 * x) * rho - epsilon > math.log1p(1 / x)

    highest = math.log(epsilon / (2 * rho) + 1 / math.sqrt(2 * rho))
    x = math.exp(narrowed(math.log(1e-12), highest, rises, width=1e-9))
    terms = (x * (1 + x) * rho, -x * epsilon, -x * math.log1p(1 / x), -math.log1p(x))
    rounding = 8 * 2.0**-52 * (1 + sum(map(abs, terms)))
    exponent = math.fsum(terms) + rounding
    return 1.0 if exponent >= 0 else max(math.exp(exponent), SMALLEST)


def narrowed(
    fails: float, meets: float, holds: Callable[[float], bool], *, width: float = 0.0, relative: float = 0.0
) -> float:
    """Bisect [fails, meets] to a width, or to one relative to the larger end, and return the end at which
    ``holds`` is true.
    """
    for _ in range(200):
        if abs(meets - fails) <= max(width, relative * max(abs(meets), abs(fails))):
            break
        middle = (fails + meets) / 2
        fails, meets = (fails, middle) if holds(middle) else (middle, meets)
    return meets


def group_epsilon(epsilon: Real, size: int) -> Fraction:
    """Return the ε for groups of ``size`` units, exactly: size·ε.

    Raises:
        ClaimError: ε is not finite and above 0, or ``size`` is below 1.

    >>> group_epsilon(Fraction(1, 10), 3)
    Fraction(3, 10)
    """
    return Fraction(positive_epsilon(epsilon)) * _group(size)


def group_rho(rho: Real, size: int) -> Fraction:
    """Return the ρ for groups of ``size`` units, exactly: size²·ρ.

    Raises:
        ClaimError: ρ is not finite and above 0, or ``size`` is below 1.

    Bun & Steinke (2016), "Concentrated differential privacy", Proposition 1.9.

    >>> group_rho(Fraction(1, 50), 3)
    Fraction(9, 50)
    """
    return Fraction(positive_rho(rho)) * _group(size) ** 2


def group_delta(epsilon: Real, delta: Real, size: int) -> float:
    """Return the δ that goes with ``group_epsilon``: δ·(1 + e^ε + … + e^((size−1)ε)), rounded up.

    Raises:
        ClaimError: a parameter is outside its range, or the result is 1 or more and promises nothing.

    Vadhan (2017), "The complexity of differential privacy", Lemma 2.2.

    >>> f"{group_delta(1.0, 1e-6, 3):.3e}"
    '1.111e-05'
    """
    step, size = float_above(positive_epsilon(epsilon)), _group(size)
    start = float_above(proper_delta(delta))
    if size == 1:
        return start
    growth = _log_growth(step, size)
    exponent = math.log(start) + growth
    rounding = 16 * 2.0**-53 * (1 + abs(math.log(start)) + size * step + abs(growth))
    if exponent + rounding >= 0:
        rule = f"must stay below 1 for a group of {size}"
        raise ClaimError("delta", rule, got="a bound of 1 or more", remedy="lower delta or epsilon")
    return math.exp(exponent + rounding)


def _log_growth(step: float, size: int) -> float:
    """ln (e^(mε) − 1)/(e^ε − 1), by terms that do not overflow."""
    return (size - 1) * step + math.log(math.expm1(-size * step) / math.expm1(-step))


def promise_of_one(promise: Promise, size: int) -> Promise:
    """The promise for one unit that gives ``promise`` for groups of ``size`` units: the way back of
    ``group_epsilon``, ``group_rho`` and ``group_delta``, with δ rounded down.

    >>> promise_of_one(Promise.of(epsilon=1.0), 4)
    Promise(epsilon=Fraction(1, 4), delta=Fraction(0, 1), rho=None)
    >>> one = promise_of_one(Promise.of(epsilon=1.0, delta=1e-6), 4)
    >>> assert one.epsilon is not None
    >>> group_epsilon(one.epsilon, 4) == 1, 0.999999e-6 < group_delta(one.epsilon, one.delta, 4) <= 1e-6
    (True, True)
    """
    size = _group(size)
    if promise.epsilon is None:
        assert promise.rho is not None
        return Promise.of(rho=promise.rho / size**2)
    epsilon = promise.epsilon / size
    if promise.pure or size == 1:
        return Promise.of(epsilon=epsilon, delta=promise.delta or None)
    step = float_above(epsilon)
    growth = _log_growth(step, size)
    # group_delta rounds up, twice at most: once here, and once where it is computed.
    rounding = 64 * 2.0**-53 * (1 + abs(math.log(float(promise.delta))) + size * step + abs(growth))
    return Promise.of(epsilon=epsilon, delta=promise.delta * Fraction(math.exp(-growth - rounding)))


def relation_steps(have: str, want: str) -> int:
    """Return how many steps of the relation ``have`` lead to any neighbour under ``want``: 1 or 2.

    Raises:
        ClaimError: a relation is unknown, or add/remove is requested from replace, whose steps never change
        the size.
    """
    known, requested = Relation.of(have), Relation.of(want)
    if known is requested:
        return 1
    if requested is Relation.REPLACE:
        return 2
    rule = (
        "relation 'add/remove' cannot be had from 'replace', which leaves the number of records unprotected"
    )
    raise ClaimError(rule, remedy="release under 'add/remove'")


def _group(size: int) -> int:
    return at_least_one("group size", size, "it is the number of records one unit may have")


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
        return np.exp(np.minimum(np.log(divergence) + log_excess, 0.0)) * (1 + 1e-12)

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
    return np.maximum(first - second, 0.0) * (1.0 + _ROUNDING) + 4e-13 * first + 1e-300


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


GAMMA_MOST_CELLS = 1024
"""With more, the least scale has at most a hundredth less variance than Gaussian noise."""
_GAMMA_NODES = 1 << 12
_GAMMA_NUDGE, _GAMMA_SLACK = 1e-12, 1e-9


def gamma_radius_delta(epsilon: Real, *, cells: int, separation: Real) -> float:
    """An upper bound on δ(ε) of the noise of ``cells`` cells, 2 to `GAMMA_MOST_CELLS`, where one unit moves
    the table by ``separation`` scales.

    Above the true δ by about a hundredth, and by a few where cells are few.

    >>> round(gamma_radius_delta(1.0, cells=3, separation=2.0), 3)
    0.166
    """
    if not 2 <= cells <= GAMMA_MOST_CELLS:
        rule = f"noise with delta is for 2 to {GAMMA_MOST_CELLS} cells"
        raise ClaimError("mechanism", rule, got=cells, remedy="leave it out")
    # The bound holds at every lower ε, too.
    target = min(float_below(positive_epsilon(epsilon)), LARGEST_EPSILON)
    scale = 1.0 / float_above(separation)
    return 0.0 if target * scale >= 1.0 else _gamma_radius_delta(target, cells, scale)


def _gamma_radius_delta(epsilon: float, cells: int, scale: float) -> float:
    from scipy.special import betainc, gammainc, gammaincc, gammainccinv, gammaincinv

    a, half = epsilon * scale, (cells - 1) / 2.0
    # Closer together where r is small, which in few cells decides.
    lowest, highest = gammaincinv(cells, 1e-13), gammainccinv(cells, 1e-13)
    ends = lowest + (highest - lowest) * np.linspace(0.0, 1.0, _GAMMA_NODES) ** 2
    below = np.concatenate([[0.0], gammainc(cells, ends), [1.0]])
    above = np.concatenate([[1.0], gammaincc(cells, ends), [0.0]])
    within = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    middle = np.asarray((1.0 - a * a) / (2.0 * scale * ends), np.float64)

    def cap(cosine: Floats) -> Floats:
        """The probability that u is below."""
        found: Floats = betainc(half, half, np.clip((1.0 + cosine) / 2.0, 0.0, 1.0))
        return found

    # Below the first end nothing is known of either.
    kept = np.append(1.0, cap(middle - a + _GAMMA_NUDGE)) * (1.0 + _GAMMA_SLACK)
    paid = np.append(0.0, cap(-middle - a - _GAMMA_NUDGE)) * (1.0 - _GAMMA_SLACK)
    grown = math.exp(epsilon) * paid
    total = math.fsum(within * (kept - grown)) + _GAMMA_SLACK * math.fsum(within * (kept + grown))
    return min(1.0, max(total, 0.0) + 1e-300)


def gamma_radius_scale(epsilon: Real, delta: Real, *, cells: int) -> float:
    """The least scale, for a move of length 1, at which the bound of δ is kept; at most 1/ε, which is pure ε.

    >>> scale = gamma_radius_scale(1.0, 1e-6, cells=20)
    >>> round(scale**2 * 21, 1)
    12.6
    """
    target, bound = float_below(positive_epsilon(epsilon)), float_below(proper_delta(delta))
    return _gamma_radius_scale(target, bound, cells)


@lru_cache(maxsize=512)
def _gamma_radius_scale(target: float, bound: float, cells: int) -> float:
    def keeps(log_scale: float) -> bool:
        separation = math.exp(-log_scale)
        return gamma_radius_delta(target, cells=cells, separation=separation) <= bound

    # At a scale of 1.01/ε the bound is 0.
    high = math.log(1.01 / target)
    low = high - 1.0
    while keeps(low):
        high, low = low, low - 1.0
    return min(math.exp(narrowed(low, high, keeps, width=1e-5)) * (1.0 + 1e-12), float_above(1.01 / target))


MOST_TRIALS = 1 << 22
ORDERS = np.geomspace(0.25, 4096.0, 160)
_MOMENTS_SLACK = 2.0**-30


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
    return min(moments_delta(target, logs) + infinite * (1 + _MOMENTS_SLACK) + 1e-300, 1.0)


def moments_delta(epsilon: float, logs: Floats) -> float:
    """``s^s/(s+1)^(s+1)·e^(−sε)·M(s)`` at the best of the orders, from ln M at each of them."""
    s = ORDERS
    constant = s * np.log(s) - (s + 1) * np.log1p(s)
    exponents = constant - s * epsilon + logs + _MOMENTS_SLACK * (1 + s * epsilon + np.abs(logs))
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
    return result + off


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
    return max(largest, beyond) * (1 + _MOMENTS_SLACK)


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
    return logs * (1 + _MOMENTS_SLACK) / (order * (order + 1))


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
        result[i] = peak + math.log(terms) + _MOMENTS_SLACK / 8 * (1.0 + s)
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


MOST_L1 = 10**6
"""The largest Δ₁ that is laid out: the work grows with it."""

_STEP = 1e-4


@dataclass(frozen=True, slots=True)
class LaplaceTable:
    """Discrete Laplace noise of one ``scale`` on a table that one unit moves by at most ``l1`` in L1.

    It enters as a single cell that moves by ``l1``: among all ways to spread the move over cells this one
    is the easiest to distinguish, since the losses of cells that move less partly cancel.
    """

    scale: Fraction
    l1: int

    @property
    def epsilon(self) -> Fraction:
        """The pure ε of the table."""
        return Fraction(self.l1) / Fraction(self.scale)


@dataclass(frozen=True, slots=True)
class GaussianTable:
    """Discrete Gaussian noise of one ``variance`` on a table of which one unit moves ``cells`` cells by 1."""

    variance: Fraction
    cells: int


Release = Claim | LaplaceTable | GaussianTable


def compose(releases: Sequence[Release], *, delta: float | Fraction = 0) -> Fraction | float:
    """The ε that all releases of a fixed list have together, at the given δ; exact for δ = 0, else rounded
    up.

    Parameters
    ----------
    releases : sequence of Claim, LaplaceTable or GaussianTable
        A claim enters by its ε and δ alone, as the worst mechanism that has them; tables are tighter. All
        must be about one unit and one relation; convert them first.
    delta : float
        0, or the δ of the whole list.

    Raises
    ------
    ClaimError
        if a mechanism is unknown, claims differ in unit or relation, δ = 0 is requested of a mechanism
        without it, or no ε holds at this δ.
    UsageError
        if ``dp-accounting`` is needed and not installed.

    >>> compose([LaplaceTable(Fraction(1000), 100)] * 3)
    Fraction(3, 10)
    """
    if not releases:
        return Fraction(0)
    for each in releases:
        if isinstance(each, Claim):
            if not each.secure:
                raise ClaimError(
                    "a release with a noise seed protects nobody", remedy="it composes to nothing"
                )
            check_mechanism(each)
    claims = [each for each in releases if isinstance(each, Claim)]
    if len({(each.unit, each.records_per_unit, each.relation) for each in claims}) > 1:
        rule = "must be about one unit and one relation to compose"
        raise ClaimError("claims", rule, got="several", remedy="convert them first")
    pure = [own for each in releases if (own := _pure_epsilon(each)) is not None]
    if delta == 0:
        if len(pure) < len(releases):
            rule = "must be above 0 for a list with Gaussian noise or a delta, which has no pure epsilon"
            raise ClaimError("delta", rule, got=0)
        return sum(pure, Fraction(0))
    proper_delta(delta)
    total = None
    # Equal releases together, because one of them composed n times costs less than n.
    for each, times in Counter(releases).items():
        loss = _loss(each)
        loss = loss.self_compose(times) if times > 1 else loss
        total = loss if total is None else total.compose(loss)
    assert total is not None
    epsilon = float(total.get_epsilon_for_delta(float_below(delta)))
    if epsilon == math.inf:
        rule = "must be above what the releases use up themselves"
        raise ClaimError("delta", rule, got=f"{float(delta):.3g}", remedy="give a larger one")
    if len(pure) == len(releases):
        # The sum holds at every δ; with few releases the grid of the distributions may be coarser than it.
        epsilon = min(epsilon, float_above(sum(pure, Fraction(0))))
    return epsilon


def noise_allowed(
    done: Sequence[Release], *, epsilon: float | Fraction, delta: float | Fraction = 0, l1: int = 1
) -> Fraction | None:
    """The least Laplace scale that a further release may have, if it is fixed together with those ``done``.

    ``l1`` is how far one unit moves it. None if the others use up (ε, δ) themselves. The scale is exact for
    δ = 0, and within 0.1 % of the least one, never below it, otherwise.

    >>> noise_allowed([LaplaceTable(Fraction(1000), 500)], epsilon=1, l1=100)
    Fraction(200, 1)
    """
    whole = Fraction(positive("epsilon", epsilon, "give the total"))
    at_least_one("l1", l1, "it is how far one unit moves the table")
    if delta == 0:
        left = whole - Fraction(compose(done))
        return Fraction(l1) / left if left > 0 else None

    def fits(scale: Fraction) -> bool:
        return compose([*done, LaplaceTable(scale, l1)], delta=delta) <= whole

    # Beyond this scale the release has hardly an ε of its own.
    high = Fraction(l1) / whole * 1000
    if not fits(high):
        return None
    low = Fraction(l1) / whole / 1000
    while high > low * Fraction(1001, 1000):
        middle = Fraction(float(low * high) ** 0.5)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _pure_epsilon(release: Release) -> Fraction | None:
    """The pure ε of a release; None where it has none."""
    if isinstance(release, Claim):
        return release.promise.epsilon if release.promise.pure else None
    return release.epsilon if isinstance(release, LaplaceTable) else None


def _loss(release: Release) -> Any:
    """The privacy loss distribution of one release, never better than it is."""
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as distributions
    except ImportError:
        rule = "composition at a delta needs dp-accounting"
        raise UsageError(rule, remedy="install hushsum[ledger]") from None
    lattice = {"value_discretization_interval": _STEP, "use_connect_dots": True}
    if isinstance(release, LaplaceTable):
        if at_least_one("l1", release.l1, "it is how far one unit moves the table") > MOST_L1:
            rule = f"must be at most {MOST_L1} to be composed"
            raise ClaimError("l1", rule, got="more", remedy="compose at delta = 0")
        scale = Fraction(positive("scale", release.scale, "take that of the release"))
        return distributions.from_discrete_laplace_mechanism(
            float_above(1 / scale), sensitivity=release.l1, **lattice
        )
    if isinstance(release, GaussianTable):
        variance = float_below(positive("variance", release.variance, "take that of the release"))
        loss = distributions.from_discrete_gaussian_mechanism(variance**0.5 * (1 - 1e-15), **lattice)
        cells = at_least_one("cells", release.cells, "it is how many cells one unit moves")
        return loss.self_compose(cells) if cells > 1 else loss
    if release.promise.epsilon is None:
        rule = "a claim in rho has no loss distribution of its own"
        raise ClaimError(rule, remedy="give its GaussianTable instead")
    parameters = common.DifferentialPrivacyParameters(
        float_above(release.promise.epsilon), float_above(release.promise.delta)
    )
    return distributions.from_privacy_parameters(parameters, value_discretization_interval=_STEP)


_SHUFFLED_ROUNDING = 1e-9
# The part of δ, on each side, for the numbers of clones that are not evaluated.
_TAIL = 1e-3

_SHUFFLED_WIDTH = 1e-6
_MOST_REPORTS = 1 << 40
_MOST_LOCAL = 60.0


def shuffled_delta(local_epsilon: float, reports: int, epsilon: float, *, tail: float = 1e-12) -> float:
    """An upper bound of δ at ``epsilon``, for this many shuffled reports of ``local_epsilon`` each.

    ``tail`` is a probability that may be added in place of numbers of clones that are rarer than it.

    >>> shuffled_delta(4.0, 100_000, 0.2) < 1e-6 < shuffled_delta(4.0, 100_000, 0.1)
    True
    """
    from scipy.stats import binom

    _check(local_epsilon, reports)
    clone = math.exp(-local_epsilon)
    low = int(binom.ppf(tail / 2.0, reports - 1, clone))
    high = int(binom.isf(tail / 2.0, reports - 1, clone))
    first, last = max(0, low - 1), min(reports - 1, high + 1)
    clones = np.arange(first, last + 1, dtype=np.float64)
    likely = binom.pmf(clones, reports - 1, clone)
    outside = float(binom.cdf(first - 1, reports - 1, clone) + binom.sf(last, reports - 1, clone))
    # Not by subtraction from 1, which would lose the small one.
    q, r = 1.0 / (1.0 + math.exp(-local_epsilon)), 1.0 / (1.0 + math.exp(local_epsilon))
    ratio = math.exp(epsilon)
    # The likelihood ratio is at least e^ε from this share of the c + 1 reports on; where it never is, δ is 0.
    slope = math.tanh(local_epsilon / 2.0) * (1.0 + ratio)
    share = (ratio * q - r) / slope
    from_here = share * (clones + 1.0)
    # q − e^ε·r, without subtracting.
    excess = ratio * r * math.expm1(local_epsilon - epsilon)

    def part(least: Floats, of: Floats) -> Floats:
        before = np.where(least > of + 1.0, 0.0, binom.pmf(least - 1.0, of, 0.5))
        gained, lost = before * excess, _tails(least, of) * math.expm1(epsilon)
        return gained * (1.0 + _SHUFFLED_ROUNDING) - lost * (1.0 - _SHUFFLED_ROUNDING)

    least = np.ceil(from_here - 1e-9)
    parts = part(least, clones)
    # Where rounding may have moved the first a by one, the larger value is the right one.
    doubtful = np.ceil(from_here + 1e-9) > least
    parts[doubtful] = np.maximum(parts[doubtful], part(least[doubtful] + 1.0, clones[doubtful]))
    delta = float(likely @ np.clip(parts, 0.0, 1.0))
    return min(1.0, delta * (1.0 + _SHUFFLED_ROUNDING) + outside * (1.0 + _SHUFFLED_ROUNDING))


@lru_cache(maxsize=256)
def shuffled_epsilon(local_epsilon: float, reports: int, delta: float) -> float:
    """The smallest ε that is proven at ``delta`` for shuffled reports, from above; at most ``local_epsilon``.

    Parameters
    ----------
    local_epsilon : float
        What every report satisfies by itself.
    reports : int
        How many reports of persons who follow the protocol are shuffled together, this person's among them.
    delta : float

    Examples
    --------
    >>> round(shuffled_epsilon(4.0, 100_000, 1e-6), 2)
    0.17
    """
    _check(local_epsilon, reports)
    if not 0.0 < delta < 1.0:
        raise ClaimError("delta", "must be above 0 and below 1", got=f"{delta:g}", remedy="try 1e-6")

    def kept(epsilon: float) -> bool:
        return shuffled_delta(local_epsilon, reports, epsilon, tail=_TAIL * delta) <= delta

    return narrowed(0.0, local_epsilon, kept, relative=_SHUFFLED_WIDTH)


def local_epsilon_for(epsilon: float, reports: int, delta: float) -> float:
    """The largest ε of single reports whose shuffled reports satisfy (``epsilon``, ``delta``), from below.

    >>> 4.0 < local_epsilon_for(0.2, 100_000, 1e-6) < 5.0
    True
    """

    def kept(local_epsilon: float) -> bool:
        return shuffled_delta(local_epsilon, reports, epsilon, tail=_TAIL * delta) <= delta

    highest = max(epsilon, min(_MOST_LOCAL, math.log(max(reports, 2)) + epsilon))
    return narrowed(highest, epsilon, kept, relative=_SHUFFLED_WIDTH)


def _tails(least: Floats, clones: Floats) -> Floats:
    """P[A ≥ least] of a binomial A with ``clones`` trials of probability 1/2."""
    from scipy.special import betainc

    inside = betainc(np.clip(least, 1.0, None), np.maximum(clones - least, 0.0) + 1.0, 0.5)
    return np.where(least < 1.0, 1.0, np.where(least > clones, 0.0, inside))


def _check(local_epsilon: float, reports: int) -> None:
    if not 0.0 < local_epsilon <= _MOST_LOCAL:
        rule, got = f"must be above 0 and at most {_MOST_LOCAL:g}", f"{local_epsilon:g}"
        raise ClaimError("local_epsilon", rule, got=got, remedy="1.0 is a common choice")
    if not 1 <= reports <= _MOST_REPORTS:
        raise UsageError("reports", "must be at least 1", got=f"{reports}", remedy="collect more reports")
