"""What one sample from the posterior of a linear model tells about one record; exactly.

Let H be the regularised Gram matrix of the smaller of two neighbours, θ̂ its solution, and (φ, v) the record
that the larger one has more. A draw θ of N(θ̂, (γH)⁻¹) and one of the neighbour's law differ in density by
γ(v − φ·θ)²/2 and a constant, so only φ·θ tells them apart. With the leverage h = φᵀH⁻¹φ and the residual r =
v − φ·θ̂, and in units of its standard deviation √(h/γ), φ·θ has the laws

    N(0, 1)      and      N(μ, 1/(1 + h)),      μ = r·√(γh)/(1 + h).

The privacy loss is a quadratic function of one normal variable, so δ(ε) is a difference of normal
probabilities in both directions.

*All leverages at once.* A pair of leverage h and residual r is nowhere easier to tell apart than the pair
of leverage k ≥ h and residual r·√(1 + k). Multiply the variable of the latter by a, a² = h(1 + k)/(k(1 +
h)) ≤ 1, and add independent normal noise of variance 1 − a²: N(0, 1) stays, the other variance becomes 1
− a²k/(1 + k) = 1/(1 + h), and its mean a·r·√(1 + k)·√(γk)/(1 + k) = r·√(γh)/√(1 + h) is at least that of
the former. Processing tells nothing more, and δ grows with the distance of the means: it is 1 − ∫ min(p,
e^ε q), and the sets {p > t} and {e^ε q > t} are intervals, whose intersection shrinks as one moves away
from the other's centre.
"""

from __future__ import annotations

import math

from hushsum.errors import UsageError


def sample_delta(epsilon: float, *, precision: float, leverage: float, residual: float) -> float:
    """The δ at ε that a record of this leverage and residual spends, in the worse of both directions.

    >>> sample_delta(1.0, precision=1e-3, leverage=0.01, residual=1.0) < 1e-12
    True
    >>> sample_delta(1.0, precision=1e3, leverage=0.1, residual=1.0) > 0.9
    True
    """
    from scipy.special import ndtr

    h = leverage
    root = math.sqrt(1.0 + h)
    mean = residual * math.sqrt(precision * h) / (1.0 + h)
    # ln of the ratio of N(0, 1) to N(μ, 1/(1 + h)) at x: h·x²/2 − (1 + h)·μ·x + (1 + h)·μ²/2 − ln(1 + h)/2.
    slope, level = (1.0 + h) * mean, (1.0 + h) * mean**2 / 2.0 - math.log1p(h) / 2.0

    def between(threshold: float) -> tuple[float, float]:
        """Probabilities of a log ratio below the threshold, under both laws."""
        square = slope**2 - 2.0 * h * (level - threshold)
        if square <= 0.0:
            return 0.0, 0.0
        ends = ((slope - math.sqrt(square)) / h, (slope + math.sqrt(square)) / h)
        first = float(ndtr(ends[1]) - ndtr(ends[0]))
        second = float(ndtr((ends[1] - mean) * root) - ndtr((ends[0] - mean) * root))
        return first, second

    first, second = between(epsilon)
    forwards = (1.0 - first) - math.exp(epsilon) * (1.0 - second)
    first, second = between(-epsilon)
    backwards = second - math.exp(epsilon) * first
    return max(forwards, backwards, 0.0)


def largest_precision(epsilon: float, delta: float, *, leverage: float, residual: float) -> float:
    """The largest γ that keeps (ε, δ) for every leverage up to the given one and every residual.

    By the argument above, the largest leverage with the residual times √(1 + leverage) stands for all.

    Raises
    ------
    UsageError
        if even no weight on the data keeps the claim: the leverage is too large, a larger ridge is needed.
    """
    worst = residual * math.sqrt(1.0 + leverage)

    def private(log_precision: float) -> bool:
        gamma = math.exp(log_precision)
        return sample_delta(epsilon, precision=gamma, leverage=leverage, residual=worst) <= delta

    low = high = 2.0 * math.log(epsilon) - math.log(leverage) - 2.0 * math.log(residual)
    while not private(low):
        low -= 1.0
        if low < -200.0:
            raise UsageError("a posterior sample cannot keep this epsilon and delta; use a larger ridge")
    while private(high):
        high += 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        low, high = (middle, high) if private(middle) else (low, middle)
    return math.exp(low)


def largest_leverage(epsilon: float, delta: float) -> float:
    """The largest leverage at which a sample can keep (ε, δ) at all: with no weight on the data, γ → 0, the
    neighbours' laws still differ in their spread by 1 + h.
    """
    low, high = 0.0, 1.0
    while sample_delta(epsilon, precision=1e-300, leverage=high, residual=1.0) <= delta:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = (low + high) / 2.0
        fits = sample_delta(epsilon, precision=1e-300, leverage=middle, residual=1.0) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return low
