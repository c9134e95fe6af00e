r"""Noise scales for integer tables that one unit moves by a vector of bounded length; proven for integers.

A unit moves a table of n integers by some integer vector v with ‖v‖₂ ≤ Δ, and perhaps a count by c at most.
The table gets independent discrete Gaussian noise N_Z(0, σ²), the count N_Z(0, σ_c²).

**Rounded noise.** For a table t of integers, rounding t + N(0, σ²I) gives t plus rounded noise. So rounded
noise is a post-processing of the Gaussian mechanism over the reals: at every real ε its hockey-stick
divergence ``sup_S P(S) − e^ε P'(S)`` is at most that of two normal laws ‖v‖/σ apart, which grows with ‖v‖
(Balle & Wang 2018).

**Discrete noise is near it.** Of one cell, let r(z) be the chance that N(0, σ²) rounds to z, and p(z) =
e^{−z²/2σ²}/Z the discrete law. Then ``r(z)·√(2π)σ = e^{−z²/2σ²}·E[cosh(zu/σ²)·e^{−u²/2σ²}]`` for u uniform
in ±½, which is at least ``e^{−z²/2σ²}·(1 − 1/(24σ²))``; and Z ≥ √(2π)σ by Poisson's summation formula. So
r ≥ p·(1 − 1/(24σ²)) everywhere, and the total variation Σ max(0, p − r) is at most 1/(24σ²); over n
independent cells at most τ = n/(24σ²).

**Together.** For every S and real ε, P_p(S) ≤ P_r(S) + τ and P'_r(S) ≤ P'_p(S) + τ, hence

    δ_v(ε) ≤ δ_Gauss(ε; Δ/σ) + (1 + e^ε)·τ.                                                              (1)

**The count** has too little noise for (1), so its loss is taken exactly. The two are independent, and δ(ε) =
E[δ_v(ε − L)] over the loss L of the count, as for unit moves (``discrete_gaussian``). That argument needs of
δ_v only that it is a hockey-stick divergence, for each v; the upper bound (1) at its nodes holds for all v. A
count that moves by less than c loses less: δ is the largest ``P[X ≥ k] − e^ε P[X ≥ k + c]``, which grows with
c.

The lattice must be fine, τ far below δ: grids and features, which count in units of 2¹⁰ and more to a record.
Elsewhere the variance comes from ρ, which needs no fine lattice (Canonne, Kamath & Steinke 2020).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hushsum._types import Floats
from hushsum.privacy.accounting.continuous_gaussian import analytic_gaussian_sigma, mixed_delta
from hushsum.privacy.accounting.discrete_gaussian import DiscreteGaussian, GaussianVariances, short_above
from hushsum.privacy.accounting.parameters import (
    Real,
    cell_count,
    float_below,
    positive_epsilon,
    positive_variance,
    proper_delta,
)
from hushsum.privacy.accounting.zcdp import zcdp_rho

_WIDTH = 1e-4
_ROUNDING = 1e-9
"""Relative error of the Gaussian δ, with ample room: its terms are right to 1e−13, and their difference is
above a thousandth of them for separations above 1e−2.
"""

_LARGEST_EXPONENT = 700.0


def rounding_gap(cells: int, variance: Fraction) -> float:
    """τ of the module's text: the total variation between discrete and rounded Gaussian noise in so many
    cells.
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
    ``count`` at most. Proof in the module's text.

    Raises
    ------
    ClaimError
        if a parameter is not finite and above 0.

    >>> f"{vector_delta(1.0, l2_squared=1 << 40, cells=1000, variance=18 << 40):.2e}"
    '9.16e-07'
    """
    target = float_below(positive_epsilon(epsilon))
    table = _Vector(l2_squared, cell_count(cells), Fraction(positive_variance("variance", variance)))
    if not count:
        return float(table.delta(np.array([target]))[0])
    if count_variance is None:
        raise ValueError("a count that moves needs noise")
    spread = float(positive_variance("count_variance", count_variance))
    return mixed_delta(target, table, _Count(count, spread))


class _Vector:
    """δ as a function of ε, of any sign, of a moved vector; by (1)."""

    def __init__(self, l2_squared: int, cells: int, variance: Fraction) -> None:
        self.separation = math.sqrt(float(Fraction(l2_squared) / variance)) * (1.0 + 1e-15)
        # No total variation is above 1; e^ε times more would overflow.
        self._gap = min(rounding_gap(cells, variance), 1.0)

    def delta(self, epsilon: Floats) -> Floats:
        size = np.minimum(np.abs(epsilon), _LARGEST_EXPONENT)
        bound = np.minimum(_normal_delta(size, self.separation) + (1.0 + np.exp(size)) * self._gap, 1.0)
        bound = bound * (1.0 + 1e-12)
        # For ε < 0 the pair and its mirror image: δ(ε) = 1 − e^ε + e^ε·δ(−ε).
        mirrored = (bound * np.exp(-size) - np.expm1(-size)) * (1.0 + 1e-12)
        return np.minimum(np.where(epsilon >= 0, bound, mirrored), 1.0)


class _Count:
    """The same of one integer that moves by ``shift``, exactly."""

    def __init__(self, shift: int, variance: float) -> None:
        self.shift, self.variance = shift, variance
        self.separation = shift / math.sqrt(variance)
        self._law = DiscreteGaussian(variance)

    def delta(self, epsilon: Floats) -> Floats:
        size = np.abs(epsilon)
        bound = np.minimum(self._law.divergence(size, self.shift), 1.0) * (1.0 + 1e-12)
        mirrored = (bound * np.exp(-size) - np.expm1(-size)) * (1.0 + 1e-12)
        return np.minimum(np.where(epsilon >= 0, bound, mirrored), 1.0)


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


def vector_variances(
    *,
    epsilon: Real,
    delta: Real,
    l2_squared: int,
    cells: int,
    count: int = 0,
    count_share: Fraction = Fraction(0),
) -> GaussianVariances:
    """The smallest proven variances of discrete Gaussian noise for a table, and for a count if one moves.

    Where the lattice is fine they are within 1e−3 of those of the Gaussian mechanism over the reals; else
    those of ρ. Of the cost the count takes ``count_share``. The δ of exactly these rationals has been checked
    with ``vector_delta``, or follows from ρ.

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
    safe = GaussianVariances(
        Fraction(l2_squared) / (2 * rho * (1 - share)),
        Fraction(count**2) / (2 * rho * share) if count else None,
    )

    def variances(log_scale: float) -> GaussianVariances:
        scale = math.exp(log_scale)
        table = short_above(l2_squared * scale / float(1 - share))
        return GaussianVariances(table, short_above(count**2 * scale / float(share)) if count else None)

    def keeps(log_scale: float) -> bool:
        table, of_count = variances(log_scale)
        spent = vector_delta(
            target,
            l2_squared=l2_squared,
            cells=cells,
            variance=table,
            count=count,
            count_variance=of_count,
        )
        return spent <= bound

    misses, meets = 2.0 * math.log(analytic_gaussian_sigma(epsilon, delta)), -math.log(2.0 * float(rho))
    if not keeps(meets):
        return safe
    while meets - misses > _WIDTH:
        middle = (misses + meets) / 2.0
        if keeps(middle):
            meets = middle
        else:
            misses = middle
    return variances(meets)
