"""What one sample from the posterior of a linear model reveals about one record, computed exactly.

Let H be the regularised Gram matrix of the smaller of two neighbours, θ̂ its solution, and (φ, v) the record
that the larger one has more. A draw θ of N(θ̂, (γH)⁻¹) and one of the neighbour's distribution differ in
density by γ(v − φ·θ)²/2 and a constant, so only φ·θ distinguishes them. With the leverage h = φᵀH⁻¹φ and the
residual r = v − φ·θ̂, and in units of its standard deviation √(h/γ), φ·θ has the distributions

    N(0, 1)      and      N(μ, 1/(1 + h)),      μ = r·√(γh)/(1 + h).

The privacy loss is a quadratic function of one normal variable: it exceeds ε outside an interval, and is
below −ε inside one. So δ(ε) is a difference of normal probabilities in both directions, each a tail beyond an
end of such an interval. Tails are computed as logarithms, with e^ε inside, so that they neither overflow nor
lose their digits where δ is 1e−200.

*Rounding.* At an end both densities, one of them times e^ε, are equal, so an end that is off by a few units
in its last place changes δ by the square of that only. What counts is the error of the tails themselves: a
few units in the last place of their logarithms and, through the arguments, of the products in `_Tail`. It is
added, so `sample_delta` is never below δ, and a claim that needs more digits than there are is refused.

*All leverages at once.* A pair of leverage h and residual r is nowhere easier to distinguish than the pair
of leverage k ≥ h and residual r·√(1 + k). Multiply the variable of the latter by a, a² = h(1 + k)/(k(1 +
h)) ≤ 1, and add independent normal noise of variance 1 − a²: N(0, 1) stays, the other variance becomes 1
− a²k/(1 + k) = 1/(1 + h), and its mean a·r·√(1 + k)·√(γk)/(1 + k) = r·√(γh)/√(1 + h) is at least that of
the former. Processing reveals nothing more, and δ grows with the distance of the means: it is 1 − ∫ min(p,
e^ε q), and the sets {p > t} and {e^ε q > t} are intervals, whose intersection shrinks as one moves away
from the other's centre.
"""

from __future__ import annotations

import math

from hushsum.errors import ClaimError, Parameter

__all__ = ["largest_leverage", "largest_precision", "sample_delta"]

_UNIT = 2.0**-53
_TINY = 1e-300
_LEAST_LEVERAGE = 1e-12
_LEAST_LOG_PRECISION = -600.0


def sample_delta(epsilon: float, *, precision: float, leverage: float, residual: float) -> float:
    """An upper bound on the δ at ε that a record of this leverage and residual spends, in both directions.

    It exceeds δ by about 1e−14 of the tails whose difference δ is.

    >>> sample_delta(1.0, precision=1e-3, leverage=0.01, residual=1.0) < 1e-12
    True
    >>> sample_delta(1.0, precision=1e3, leverage=0.1, residual=1.0) > 0.9
    True
    """
    h = leverage
    # δ grows with μ, which may therefore be rounded up.
    mean = residual * math.sqrt(precision * h) / (1.0 + h) * (1.0 + 16.0 * _UNIT)
    pair = _Pair(mean, math.sqrt(1.0 + h))
    # ln of the ratio of N(0, 1) to N(μ, 1/(1 + h)) at x is h·x²/2 − (1 + h)·μ·x + level.
    slope, level = (1.0 + h) * mean, (1.0 + h) * mean**2 / 2.0 - math.log1p(h) / 2.0

    def ends(threshold: float) -> tuple[float, float] | None:
        """Where the log ratio is the threshold; None if it is larger everywhere."""
        square = (1.0 + h) * mean**2 + h * (math.log1p(h) + 2.0 * threshold)
        if square <= 0.0:
            return None
        far = slope + math.sqrt(square)
        return 2.0 * (level - threshold) / far, far / h

    outer, inner = ends(epsilon), ends(-epsilon)
    assert outer is not None
    forwards = pair.beyond(outer[1], epsilon) + pair.beyond(outer[0], epsilon, below=True)
    backwards = 0.0 if inner is None else pair.within(*inner, epsilon)
    return min(max(forwards, backwards, 0.0) + _TINY, 1.0)


class _Pair:
    """N(0, 1) and N(mean, 1/root²): upper bounds on how their probabilities differ."""

    def __init__(self, mean: float, root: float) -> None:
        self._mean, self._root = mean, root

    def beyond(self, end: float, epsilon: float, *, below: bool = False) -> float:
        """The first distribution's tail minus e^ε times the second's, above an end or below it."""
        sign = -1.0 if below else 1.0
        first = _Tail(sign * end, 0.0, 0.0)
        second = _Tail(sign * (end - self._mean) * self._root, epsilon, self._reach(end))
        return first.above - second.below

    def within(self, low: float, high: float, epsilon: float) -> float:
        """The second distribution's probability of an interval minus e^ε times the first's."""
        reach = self._reach(low), self._reach(high)
        second = [(end - self._mean) * self._root for end in (low, high)]
        return _mass(second[0], second[1], 0.0, reach)[1] - _mass(low, high, epsilon, (0.0, 0.0))[0]

    def _reach(self, end: float) -> float:
        """What a rounding error of the second distribution's argument is a part of."""
        return (abs(end) + self._mean) * self._root


class _Tail:
    """Bounds of e^shift·Φ(−u). The argument u may be off by four units in the last place of ``reach``."""

    def __init__(self, u: float, shift: float, reach: float) -> None:
        from scipy.special import log_ndtr

        logarithm = float(log_ndtr(-u))
        if shift + logarithm < -740.0:
            # Below _TINY, which is added in the end.
            self.below = self.above = 0.0
            return
        # The derivative of ln Φ(−u) is at most |u| + 1 in size; its value is right to a few units.
        error = _UNIT * (64.0 + 8.0 * (abs(shift) + abs(logarithm)) + 8.0 * (abs(u) + 1.0) * reach)
        value = math.exp(shift + logarithm)
        self.below, self.above = value * max(1.0 - error, 0.0), value * (1.0 + error)


def _mass(low: float, high: float, shift: float, reach: tuple[float, float]) -> tuple[float, float]:
    """Bounds of e^shift·(Φ(high) − Φ(low)), from the tails on the side where they are small."""
    if low < 0.0 < high:
        whole = 0.5 * (math.erf(high / math.sqrt(2.0)) + math.erf(-low / math.sqrt(2.0)))
        # An end that moves by d moves the whole by d times the density there, which is 0.4·e^(−u²/2).
        moved = sum(part * math.exp(-end * end / 2.0) for end, part in zip((low, high), reach, strict=True))
        error = _UNIT * ((64.0 + 8.0 * abs(shift)) * whole + 4.0 * moved)
        scale = math.exp(min(shift, 700.0))
        return max(scale * (whole - error), 0.0), scale * (whole + error)
    if high <= 0.0:
        low, high, reach = -high, -low, reach[::-1]
    near, far = _Tail(low, shift, reach[0]), _Tail(high, shift, reach[1])
    return max(near.below - far.above, 0.0), near.above - far.below


def largest_precision(epsilon: float, delta: float, *, leverage: float, residual: float) -> float:
    """The largest γ that keeps (ε, δ) for every leverage up to the given one and every residual.

    By the argument above, the largest leverage with the residual times √(1 + leverage) stands for all.

    Raises
    ------
    ClaimError
        if even no weight on the data keeps the claim: the leverage is too large, a larger ridge is needed.
    """
    worst = residual * math.sqrt(1.0 + leverage) * (1.0 + 16.0 * _UNIT)

    def private(log_precision: float) -> bool:
        gamma = math.exp(log_precision)
        return sample_delta(epsilon, precision=gamma, leverage=leverage, residual=worst) <= delta

    start = 2.0 * math.log(epsilon) - math.log(leverage) - 2.0 * math.log(residual)
    low = high = min(max(start, _LEAST_LOG_PRECISION), -_LEAST_LOG_PRECISION)
    while not private(low):
        low -= 1.0
        if low < _LEAST_LOG_PRECISION:
            rule = ("and ", Parameter("delta"), " must be larger for one posterior sample at this leverage")
            raise ClaimError("epsilon", rule, remedy="use a larger ridge, or a larger delta")
    while private(high):
        high += 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if private(middle) else (low, middle)
    return math.exp(low)


def largest_leverage(epsilon: float, delta: float) -> float:
    """The largest leverage at which a sample can keep (ε, δ) at all: with no weight on the data, γ → 0, the
    neighbours' distributions still differ in their spread by 1 + h.

    Raises
    ------
    ClaimError
        if there is none: rounding errors alone exceed δ.
    """

    def private(leverage: float) -> bool:
        return sample_delta(epsilon, precision=_TINY, leverage=leverage, residual=1.0) <= delta

    low, high = _LEAST_LEVERAGE, 1.0
    if not private(low):
        rule = "must be larger for one posterior sample at this epsilon"
        raise ClaimError("delta", rule, got=f"{delta:.3g}", remedy="use a larger delta")
    while private(high):
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if private(middle) else (low, middle)
    return low
