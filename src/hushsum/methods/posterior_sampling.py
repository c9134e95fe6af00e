"""Linear regression by one sample from a posterior: OPS and AdaOPS."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels.parameters import positive_number
from hushsum.privacy.accounting import analytic_gaussian_sigma
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.posterior_sample import largest_leverage, largest_precision
from hushsum.privacy.real_noise import RealNoise, real_noise
from hushsum.privacy.release_noise import rounded, rounded_reach

MECHANISM = Mechanism.of("one posterior sample")
_PROPOSALS = 1 << 22
_FINEST_SPREAD = 2.0**-22
"""Results are rounded to a thousandth of it: post-processing, which leaves no lowest bits of their sums."""


def fit_ops(
    features: Floats,
    target: Floats,
    *,
    epsilon: float,
    theta_bound: float,
    insecure_noise_seed: int | None = None,
) -> Floats:
    """One draw of θ with density ∝ exp(−γ(Σ(v − θ·φ)² + λ‖θ‖²)/2) on ‖θ‖ ≤ ``theta_bound``. Pure ε.

    Parameters
    ----------
    features : array of shape (n, m)
        Rows of length at most 1.
    target : array of shape (n,)
        Between −1 and 1.

    Privacy
    -------
    One record present or absent changes the exponent by γ(v − θ·φ)²/2, which lies between 0 and
    γ(1 + bound)²/2 on the ball; the normalising constant changes by a factor of the same range, in the other
    direction. So γ = 2ε/(1 + bound)² keeps ε (the exponential mechanism with scores that all move one way).
    λ = 2m/(γ·bound²) is public: a prior under which a draw fits the ball. The sampler is exact, up to
    rounding: a Gaussian tilted towards the ball proposes, and what is kept has the law above (see
    `sample_in_ball`).

    Dimitrakakis et al. (2014); Wang, Fienberg and Smola (2015), *Privacy for free*, with the factor of two
    that scores of one sign save.
    """
    positive_number("theta_bound", theta_bound, remedy="try 2")
    precision = 2.0 * epsilon / (1.0 + theta_bound) ** 2 * (1.0 - 1e-14)
    ridge = 2.0 * features.shape[1] / (precision * theta_bound**2)
    posterior = Posterior.of(features, target, ridge, precision)
    with real_noise(insecure_noise_seed) as noise:
        return rounded(sample_in_ball(posterior, theta_bound, noise), _FINEST_SPREAD)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The normal law with density ∝ exp(−γ(θᵀHθ/2 − c·θ)), in the axes of H; secret."""

    values: Floats
    vectors: Floats
    along: Floats
    precision: float

    @classmethod
    def of(cls, features: Floats, target: Floats, ridge: float, precision: float) -> Posterior:
        """Of records and a prior."""
        values, vectors = np.linalg.eigh(features.T @ features)
        along = vectors.T @ (features.T @ target)
        return cls(np.maximum(values, 0.0) + ridge, vectors, along, precision)

    def draw(self, noise: RealNoise, tilt: float = 0.0) -> Floats:
        """A draw in the axes of H, with ``tilt`` more ridge."""
        height = self.values + tilt
        drawn: Floats = self.along / height + noise.normal(len(height)) / np.sqrt(self.precision * height)
        return drawn

    def mean_square(self, tilt: float) -> float:
        """E‖θ‖² under the tilted law."""
        height = self.values + tilt
        return float(np.sum((self.along / height) ** 2 + 1.0 / (self.precision * height)))

    def __repr__(self) -> str:
        return "<Posterior CONFIDENTIAL>"


def sample_in_ball(posterior: Posterior, bound: float, noise: RealNoise) -> Floats:
    """A draw of the law restricted to ‖θ‖ ≤ bound.

    A law with more ridge μ proposes; a proposal inside is kept with probability exp(−γμ(bound² − ‖θ‖²)/2).
    The product of both densities is that of the restricted law, for every μ. With E‖θ‖² = bound² about one
    proposal in (bound·√(γμ)) is kept, wherever the centre of the law lies.
    """
    tilt = _tilt(posterior, bound)
    for _ in range(_PROPOSALS):
        theta = posterior.draw(noise, tilt)
        room = bound**2 - float(theta @ theta)
        if room >= 0.0 and noise.coin(posterior.precision * tilt * room / 2.0):
            drawn: Floats = posterior.vectors @ theta
            return drawn
    raise UsageError(
        parameter="theta_bound", rule="is too small for a posterior sample", remedy="declare a larger one"
    )


def _tilt(posterior: Posterior, bound: float) -> float:
    if posterior.mean_square(0.0) <= bound**2:
        return 0.0
    low, high = 0.0, 1.0
    while posterior.mean_square(high) > bound**2:
        low, high = high, 2.0 * high
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if posterior.mean_square(middle) > bound**2 else (low, middle)
    return high


def fit_adaops(
    features: Floats,
    target: Floats,
    *,
    epsilon: float,
    delta: float,
    insecure_noise_seed: int | None = None,
) -> Floats:
    """AdaOPS: a posterior sample as precise as the released least eigenvalue and residual bound allow.

    Works well where the least eigenvalue of Σφφᵀ is large; elsewhere the ridge that makes up for it decides.

    Parameters
    ----------
    features, target
        As for `fit_ops`.

    Privacy
    -------
    (ε, δ), in three steps with ε/4, ε/4 and ε/2, in the order of Wang (2018), Algorithm 3, each calibrated
    anew:

    1. The least eigenvalue moves by at most 1 (Weyl). A Gaussian release with δ/6, lowered by 1 and by what
       its noise, drawn and rounded, exceeds with probability at most δ/6 (`rounded_reach`), so that it is
       below the least eigenvalue of both neighbours but for that. With the ridge it gives λ₀: both have
       H ⪰ λ₀.
    2. ln(1 + ‖θ̂‖) moves by at most ln(1 + 1/λ₀), because ‖θ̂' − θ̂‖ = ‖H'⁻¹φ‖·|v − φ·θ̂| ≤ (1 + ‖θ̂‖)/λ₀. A
       Gaussian release with δ/6, raised by its step and by the same reach, bounds every record's residual
       |v − φ·θ̂| ≤ 1 + ‖θ̂‖ in both.
    3. A draw of N(θ̂, (γH)⁻¹) with γ the largest for which no leverage φᵀH⁻¹φ ≤ 1/λ₀ and no residual up to
       the bound spends more than (ε/2, δ/3): computed in `hushsum.privacy.posterior_sample`.

    The δ add up: δ/6 each for two releases and two quantiles, δ/3 for the sample. Real arithmetic.
    """
    quarter, part = epsilon / 4.0, delta / 6.0
    sigma = analytic_gaussian_sigma(quarter, part)
    reach = rounded_reach(part)
    least = 2.0 / largest_leverage(epsilon / 2.0, delta / 3.0)
    number = features.shape[1]
    with real_noise(insecure_noise_seed) as noise:
        lowest = float(np.linalg.eigvalsh(features.T @ features)[0])
        noisy = rounded(lowest + sigma * noise.normal(1), sigma)
        lowest = max(float(noisy[0]) - sigma * reach - 1.0, 0.0)
        half = analytic_gaussian_sigma(epsilon / 2.0, delta / 3.0)
        floor = _best_floor(max(lowest, 0.0), number * half**2, sigma * reach + 1.0, least)
        ridge = floor - lowest
        posterior = Posterior.of(features, target, ridge, 1.0)
        centre = float(np.linalg.norm(posterior.along / posterior.values))
        step = math.log1p(1.0 / floor)
        noisy = rounded(math.log1p(centre) + step * sigma * noise.normal(1), step * sigma)
        size = float(noisy[0]) + step * (sigma * reach + 1.0)
        precision = largest_precision(
            epsilon / 2.0, delta / 3.0, leverage=1.0 / floor, residual=math.exp(size)
        )
        drawn = Posterior(posterior.values, posterior.vectors, posterior.along, precision).draw(noise)
    return rounded(posterior.vectors @ drawn, _FINEST_SPREAD)


def _best_floor(lowest: float, spread: float, raised: float, least: float) -> float:
    """The λ₀ = lowest + ridge of the least expected loss for a θ of length 1; from public numbers.

    At least ``least``, twice where no sample would be private. A sample adds about m·σ²·L²/λ₀ with the
    residual bound L = 2(1 + 1/λ₀)^raised; a ridge adds about itself.
    """
    floors = np.maximum(np.geomspace(0.5, 1e8, 400), max(lowest, least))
    costs = np.log(4.0 * spread / floors) + 2.0 * raised * np.log1p(1.0 / floors)
    return float(floors[np.argmin(np.logaddexp(costs, np.log(np.maximum(floors - lowest, 1e-12))))])
