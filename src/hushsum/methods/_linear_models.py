"""Linear models: from sums of products, by objective perturbation, a posterior sample, or a sketch.

The sums Σ φφᵀ and Σ vφ of records in the unit ball determine every linear model. They are held as a tally of
integers (`moments`), so they stream, merge and take exact noise; what follows is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hushsum._types import Floats
from hushsum.errors import Argument, ClaimError, UsageError
from hushsum.kernels import AsymmetricAngularKernel, BallSignsKernel, positive_number
from hushsum.privacy import (
    Mechanism,
    ReleaseNoise,
    largest_leverage,
    largest_precision,
    release_noise,
    rounded,
    rounded_reach,
)
from hushsum.privacy.accounting import analytic_gaussian_sigma, gaussian_delta_above
from hushsum.records import Bounds, UnitBall
from hushsum.releases import CoefficientFunction, ReleasedFunction, TableFunction
from hushsum.tables import Moments
from hushsum.tally import Tally

from ._hash_rows import race

__all__ = [
    "BITS", "OBJECTIVE_PERTURBATION", "POSTERIOR_SAMPLE", "PUBLISHED_GAUSSIAN", "NoisyMoments",
    "SketchedMoments", "check_published", "descend", "fit_adaops", "fit_as_published", "fit_classifier",
    "fit_logistic", "fit_ops", "fit_regression", "fit_squares", "fit_surrogate", "moments", "perturbation",
    "regression_loss", "regression_records", "rows_for_moments", "solve_adaptive", "solve_plain",
    "surrogate_tally",
]  # fmt: skip

PUBLISHED_GAUSSIAN = "gaussian, as-published"
PUBLISHED_FAILURE = 0.05
"""ϱ of the paper: the probability with which the noise may exceed the ridge that is meant to cover it."""

_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMoments:
    """Noisy sums that determine a linear model; public.

    Attributes
    ----------
    gram : array of shape (features, features)
        Σ φφᵀ.
    cross : array of shape (features,)
        Σ vφ.
    sigma : float
        The standard deviation of the error of an entry.
    count : float
        The number of records, as far as it is known.
    """

    gram: Floats
    cross: Floats
    sigma: float
    count: float

    @classmethod
    def of(cls, function: ReleasedFunction) -> NoisyMoments:
        """The sums in a released function of moments."""
        if not isinstance(function, CoefficientFunction) or not isinstance(function.basis, Moments):
            raise UsageError(
                "moments", "must be released from hushsum.methods.moments", got="another function"
            )
        whole = function.basis.matrix(function.table)
        sigma = math.sqrt(function.noise.variance) / function.basis.unit**2
        return cls(whole[:-1, :-1], whole[:-1, -1], sigma, function.count)


def moments(bounds: object, *, dim: int, radius: float | None = None, bits: int = 12) -> Tally:
    """An empty tally of the sums that determine every linear regression of the last column on the others.

    Works well up to some hundred columns: the noise of an entry does not grow with them under (ε, δ), and
    grows with their number under pure ε, while what one column contributes falls.

    Parameters
    ----------
    bounds : list of (low, high), or one (low, high) for all columns
        Declared, never read off the data; the target's is the last.
    dim : int
        Columns, the target included.
    radius : float, optional
        How far a record may lie from the centre of the box, in units of half its widths and with 1 for the
        constant; longer ones are shortened. Declared. Default: the corner of the box, √dim.
    bits : int
        The bits of the integer that stands for 1.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 100_000)
    >>> tally = moments((-1, 1), dim=2).add(np.column_stack([x, 0.5 * x + 0.1]))
    >>> released = tally.release(epsilon=1.0, delta=1e-6)
    >>> theta = solve_adaptive(NoisyMoments.of(released))
    >>> slopes, intercept = released.basis.ball.model(theta)
    >>> round(float(slopes[0]), 1), round(intercept, 1)
    (0.5, 0.1)
    """
    box = Bounds.of(bounds, dim)
    if box is None:
        raise UsageError(
            "bounds", "must be declared", got="None", remedy="give (low, high), or one pair for each column"
        )
    return Tally(Moments(UnitBall(box, radius), bits))


def solve_plain(noisy: NoisyMoments) -> Floats:
    """SSP: θ = (Σφφᵀ + E)⁻¹ (Σvφ + e), without a ridge.

    Works well where every direction of the features carries far more than noise, and badly elsewhere: a
    small eigenvalue that noise brings near zero makes θ as large as it likes.
    """
    return np.linalg.lstsq(noisy.gram, noisy.cross, rcond=None)[0].astype(np.float64)


def solve_adaptive(noisy: NoisyMoments) -> Floats:
    """A ridge solution whose ridge is chosen from the noisy sums: the least estimated squared error.

    With H = Σφφᵀ + λI and θ = H⁻¹Σvφ, the squared error is θᵀ(Σφφᵀ)θ − 2θ·Σvφ plus a constant; computed from
    the same noisy sums that made θ it is too small by about 2σ²(1 + ‖θ‖²)·tr H⁻¹ in expectation, as in
    Mallows' Cp, since noise of variance σ² in Σvφ and Σφφᵀ moves θ by H⁻¹(e − Eθ). The λ of the least
    corrected error is taken, from σ√m upwards, below which H may be singular; and θ = 0 where even that
    promises nothing. All of it is post-processing.

    Wang (2018) spends a third of the budget on the least eigenvalue to choose λ. The noisy matrix itself
    tells enough of it, and the whole budget goes into the sums.
    """
    values, vectors = np.linalg.eigh(noisy.gram)
    along = vectors.T @ noisy.cross
    floor = noisy.sigma * math.sqrt(len(along))
    best, chosen = 0.0, np.zeros_like(along)
    ceiling = 10.0 * (floor + abs(float(values[-1])) + 1.0)
    for ridge in np.geomspace(max(floor, 1e-12 * ceiling), ceiling, _STEPS):
        height = np.maximum(values, 0.0) + ridge
        theta = along / height
        variance = noisy.sigma**2 * (1.0 + float(theta @ theta))
        error = float(values @ theta**2 - 2.0 * along @ theta) + 2.0 * variance * float((1.0 / height).sum())
        if error < best:
            best, chosen = error, theta
    return np.asarray(vectors @ chosen)


@dataclass(frozen=True, slots=True)
class PublishedNoise:
    """The constants of Wang (2018), Algorithms 1 and 2: three Gaussian releases with ε/3 and δ/3 each."""

    epsilon: float
    delta: float

    @property
    def sigma(self) -> float:
        """√ln(6/δ)/(ε/3), for sums that one record moves by at most 1."""
        return math.sqrt(math.log(6.0 / self.delta)) / (self.epsilon / 3.0)

    def lowest(self, eigenvalue: float, normal: float) -> float:
        """The released least eigenvalue, lowered so that it is too small with high probability."""
        noisy = float(rounded(np.array([eigenvalue + self.sigma * normal]), self.sigma)[0])
        return max(noisy - math.log(6.0 / self.delta) / (self.epsilon / 3.0), 0.0)

    def ridge(self, lowest: float, features: int) -> float:
        """max(0, η − λ̃_min) with η = √(d·ln(6/δ)·ln(2d²/ϱ))/(ε/3)."""
        inner = features * math.log(6.0 / self.delta) * math.log(2.0 * features**2 / PUBLISHED_FAILURE)
        return max(0.0, math.sqrt(inner) / (self.epsilon / 3.0) - lowest)

    def spent_delta(self, releases: int) -> float:
        """The δ that the noise really spends at ε, rounded up; releases of sensitivity 1 are one of
        √releases.

        >>> PublishedNoise(1.0, 1e-6).spent_delta(3) < 1e-6
        True
        """
        return gaussian_delta_above(self.epsilon, math.sqrt(releases) / self.sigma * (1.0 + 1e-14))


def check_published(epsilon: float, delta: float, *, adaptive: bool) -> None:
    """Refuse an ε and δ that the published constants do not keep; from public numbers, before a debit.

    Raises
    ------
    ClaimError
        if the releases together spend more than δ at ε.

    >>> check_published(1.0, 1e-6, adaptive=True)
    """
    if PublishedNoise(epsilon, delta).spent_delta(3 if adaptive else 2) > delta:
        raise ClaimError(
            "calibration",
            (
                "must not be the published constants, "
                f"which do not keep epsilon={epsilon:g} with delta={delta:g}"
            ),
            remedy=("use ", Argument("calibration", "tight")),
        )


def fit_as_published(
    features: Floats,
    target: Floats,
    *,
    epsilon: float,
    delta: float,
    adaptive: bool,
    insecure_noise_seed: int | None = None,
) -> Floats:
    """AdaSSP (``adaptive``) or SSP with the published constants; to reproduce the paper, not to be used.

    Parameters
    ----------
    features : array of shape (n, m)
        Rows of length at most 1.
    target : array of shape (n,)
        Between −1 and 1.

    Privacy
    -------
    One record present or absent moves Σφφᵀ, Σvφ and the least eigenvalue by at most 1 each, in the Frobenius
    norm, the L2 norm and absolutely (Weyl). From ε = 1 on the published σ is not enough for three separate
    claims of (ε/3, δ/3), as the paper argues, but the three together spend less than (ε, δ):
    `PublishedNoise.spent_delta` states how much, and `check_published` compares it. Real arithmetic.
    """
    check_published(epsilon, delta, adaptive=adaptive)
    published = PublishedNoise(epsilon, delta)
    gram, cross = features.T @ features, features.T @ target
    with release_noise(insecure_noise_seed) as noise:
        ridge = 0.0
        if adaptive:
            lowest = published.lowest(float(np.linalg.eigvalsh(gram)[0]), float(noise.normal(1)[0]))
            ridge = published.ridge(lowest, len(gram))
        gram = rounded(gram + published.sigma * noise.symmetric(len(gram)), published.sigma)
        cross = rounded(cross + published.sigma * noise.normal(len(cross)), published.sigma)
    return solve_plain(NoisyMoments(gram + ridge * np.eye(len(gram)), cross, published.sigma, math.nan))


OBJECTIVE_PERTURBATION = Mechanism.of("objective perturbation")
_NEWTON_STEPS = 200
_TOLERANCE = 1e-11
# A minimum is rounded to a thousandth of it: post-processing that takes away the lowest bits of its sums.
_FINEST_SPREAD = 2.0**-22


def perturbation(epsilon: float, *, gradient: float, curvature: float) -> tuple[float, float]:
    """The ridge Δ and the scale of b with which the minimum of Σℓ + Δ‖θ‖²/2 + b·θ is ε-private.

    One record present or absent moves the gradient by at most ``gradient`` and the Hessian by a matrix of
    rank one with an eigenvalue from 0 to ``curvature``. For a given minimum θ the linear terms of two
    neighbours then differ by at most ``gradient`` in length, so their densities ∝ exp(−‖b‖/scale) by at most
    e^(gradient/scale); the Jacobians of b as a function of θ are the Hessians, whose determinants have a
    ratio of at most 1 + curvature/Δ. Half of ε pays for each:

        scale = gradient/(ε/2),      Δ = curvature/(e^(ε/2) − 1).

    Chaudhuri, Monteleoni and Sarwate (2011), with the condition on rank and the bounded domain of Kifer,
    Smith and Thakurta (2012), Theorem 2, whose Δ = 2·curvature/ε is a little larger.

    >>> ridge, scale = perturbation(1.0, gradient=1.0, curvature=0.25)
    >>> round(ridge, 3), round(scale, 3)
    (0.385, 2.0)
    """
    half = epsilon / 2.0 * (1.0 - 1e-14)
    # Beyond 700 e^(ε/2) overflows; a larger ridge keeps the claim as well.
    return curvature / math.expm1(min(half, 700.0)), gradient / half


def fit_squares(
    features: Floats,
    target: Floats,
    *,
    epsilon: float,
    theta_bound: float,
    insecure_noise_seed: int | None = None,
) -> Floats:
    """The minimum of Σ(v − θ·φ)²/2 + Δ‖θ‖²/2 + b·θ over ‖θ‖ ≤ ``theta_bound``. Pure ε.

    Works well with few columns; the length of b grows with their number. A larger bound fits more, and needs
    more noise.

    Parameters
    ----------
    features : array of shape (n, m)
        Rows of length at most 1.
    target : array of shape (n,)
        Between −1 and 1.

    Privacy
    -------
    Within the ball |v − θ·φ| ≤ 1 + bound, which bounds a record's gradient; the curvature is at most
    ‖φ‖² ≤ 1. The minimum over the ball is found exactly, up to rounding: from the eigenvalues of the Hessian.
    """
    positive_number("theta_bound", theta_bound, remedy="try 2")
    ridge, scale = perturbation(epsilon, gradient=1.0 + theta_bound, curvature=1.0)
    with release_noise(insecure_noise_seed) as noise:
        linear = noise.gamma_vector(features.shape[1], scale)
    found = minimum_in_ball(features.T @ features, features.T @ target - linear, ridge, theta_bound)
    return rounded(found, _FINEST_SPREAD)


def minimum_in_ball(gram: Floats, cross: Floats, ridge: float, bound: float) -> Floats:
    """The θ of length at most ``bound`` that minimises θᵀ(gram + ridge·I)θ/2 − cross·θ.

    On the sphere the multiplier μ ≥ 0 solves ‖(gram + (ridge + μ)I)⁻¹cross‖ = bound, which falls in μ.
    """
    values, vectors = np.linalg.eigh(gram)
    along = vectors.T @ cross
    height = np.maximum(values, 0.0) + ridge

    def theta(multiplier: float) -> Floats:
        return np.asarray(along / (height + multiplier))

    least = _least(lambda each: float(np.linalg.norm(theta(each))) <= bound)
    return np.asarray(vectors @ theta(least))


def _least(enough: Callable[[float], bool]) -> float:
    """The least number from 0 on that is enough, up to rounding; every larger one is."""
    if enough(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while high < math.inf and not enough(high):
        low, high = high, 2.0 * high
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def fit_logistic(
    features: Floats,
    sign: Floats,
    *,
    epsilon: float,
    ridge: float = 0.0,
    insecure_noise_seed: int | None = None,
) -> Floats:
    """The minimum of Σ ln(1 + exp(−y·θ·φ)) + (Δ + ridge)‖θ‖²/2 + b·θ, y = ±1. Pure ε.

    Parameters
    ----------
    features : array of shape (n, m)
        Rows of length at most 1.
    sign : array of shape (n,)
        −1 or 1.
    ridge : float
        More regularisation than privacy needs; public.

    Privacy
    -------
    A record's gradient is at most ‖φ‖ ≤ 1 long and its curvature at most 1/4. The proof is about the exact
    minimum; Newton's method ends with a gradient of length below 1e−11 times the number of terms, the size of
    rounding errors.
    """
    needed, scale = perturbation(epsilon, gradient=1.0, curvature=0.25)
    with release_noise(insecure_noise_seed) as noise:
        linear = noise.gamma_vector(features.shape[1], scale)
    return rounded(minimum_logistic(features * sign[:, None], linear, needed + ridge), _FINEST_SPREAD)


def minimum_logistic(signed: Floats, linear: Floats, ridge: float) -> Floats:
    """The θ that minimises Σ ln(1 + exp(−θ·row)) + ridge‖θ‖²/2 + linear·θ, by damped Newton steps."""
    from scipy.special import expit

    theta = np.zeros(signed.shape[1])

    def value(at: Floats) -> float:
        losses = np.logaddexp(0.0, -(signed @ at))
        return float(losses.sum() + ridge * (at @ at) / 2.0 + linear @ at)

    for _ in range(_NEWTON_STEPS):
        probability = expit(-(signed @ theta))
        gradient = ridge * theta + linear - signed.T @ probability
        if float(np.linalg.norm(gradient)) <= _TOLERANCE * (len(signed) + float(np.linalg.norm(linear))):
            break
        hessian = (signed * (probability * (1.0 - probability))[:, None]).T @ signed
        hessian[np.diag_indices(len(theta))] += ridge
        step = np.linalg.solve(hessian, gradient)
        size, before = 1.0, value(theta)
        while size > 1e-12 and value(theta - size * step) > before - 1e-4 * size * float(gradient @ step):
            size /= 2.0
        theta = theta - size * step
    return theta


POSTERIOR_SAMPLE = Mechanism.of("one posterior sample")
_PROPOSALS = 1 << 22


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
    rounding: a Gaussian tilted towards the ball proposes, and what is kept has the distribution above (see
    `sample_in_ball`).

    Dimitrakakis et al. (2014); Wang, Fienberg and Smola (2015), *Privacy for free*, with the factor of two
    that scores of one sign save.
    """
    positive_number("theta_bound", theta_bound, remedy="try 2")
    precision = 2.0 * epsilon / (1.0 + theta_bound) ** 2 * (1.0 - 1e-14)
    ridge = 2.0 * features.shape[1] / (precision * theta_bound**2)
    posterior = Posterior.of(features, target, ridge, precision)
    with release_noise(insecure_noise_seed) as noise:
        return rounded(sample_in_ball(posterior, theta_bound, noise), _FINEST_SPREAD)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """The normal distribution with density ∝ exp(−γ(θᵀHθ/2 − c·θ)), in the axes of H; secret."""

    values: Floats
    vectors: Floats
    along: Floats
    precision: float

    @classmethod
    def of(cls, features: Floats, target: Floats, ridge: float, precision: float) -> Posterior:
        """The posterior of records and a prior."""
        values, vectors = np.linalg.eigh(features.T @ features)
        along = vectors.T @ (features.T @ target)
        return cls(np.maximum(values, 0.0) + ridge, vectors, along, precision)

    def draw(self, noise: ReleaseNoise, tilt: float = 0.0) -> Floats:
        """A draw in the axes of H, with ``tilt`` more ridge."""
        height = self.values + tilt
        drawn: Floats = self.along / height + noise.normal(len(height)) / np.sqrt(self.precision * height)
        return drawn

    def mean_square(self, tilt: float) -> float:
        """E‖θ‖² under the tilted distribution."""
        height = self.values + tilt
        return float(np.sum((self.along / height) ** 2 + 1.0 / (self.precision * height)))

    def __repr__(self) -> str:
        return "<Posterior CONFIDENTIAL>"


def sample_in_ball(posterior: Posterior, bound: float, noise: ReleaseNoise) -> Floats:
    """A draw of the distribution restricted to ‖θ‖ ≤ bound.

    The distribution with more ridge μ proposes; a proposal inside is kept with probability exp(−γμ(bound² −
    ‖θ‖²)/2). The product of both densities is that of the restricted one, for every μ. With E‖θ‖² = bound²
    about one proposal in (bound·√(γμ)) is kept, wherever its centre lies.
    """
    tilt = _least(lambda each: posterior.mean_square(each) <= bound**2)
    for _ in range(_PROPOSALS):
        theta = posterior.draw(noise, tilt)
        room = bound**2 - float(theta @ theta)
        if room >= 0.0 and noise.coin(posterior.precision * tilt * room / 2.0):
            return np.asarray(posterior.vectors @ theta)
    raise UsageError("theta_bound", "is too small for a posterior sample", remedy="declare a larger one")


def fit_adaops(
    features: Floats, target: Floats, *, epsilon: float, delta: float, insecure_noise_seed: int | None = None
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
       the bound spends more than (ε/2, δ/3): computed in `hushsum.privacy`.

    The δ add up: δ/6 each for two releases and two quantiles, δ/3 for the sample. Real arithmetic.
    """
    quarter, part = epsilon / 4.0, delta / 6.0
    sigma = analytic_gaussian_sigma(quarter, part)
    reach = rounded_reach(part)
    least = 2.0 / largest_leverage(epsilon / 2.0, delta / 3.0)
    number = features.shape[1]
    with release_noise(insecure_noise_seed) as noise:
        lowest = float(np.linalg.eigvalsh(features.T @ features)[0])
        noisy = rounded(lowest + sigma * noise.normal(1), sigma)
        lowest = max(float(noisy[0]) - sigma * reach - 1.0, 0.0)
        half = analytic_gaussian_sigma(epsilon / 2.0, delta / 3.0)
        floor = _best_floor(lowest, number * half**2, sigma * reach + 1.0, least)
        posterior = Posterior.of(features, target, floor - lowest, 1.0)
        centre = float(np.linalg.norm(posterior.along / posterior.values))
        step = math.log1p(1.0 / floor)
        noisy = rounded(math.log1p(centre) + step * sigma * noise.normal(1), step * sigma)
        size = float(noisy[0]) + step * (sigma * reach + 1.0)
        precision = largest_precision(
            epsilon / 2.0, delta / 3.0, leverage=1.0 / floor, residual=math.exp(size)
        )
        drawn = replace(posterior, precision=precision).draw(noise)
    return rounded(posterior.vectors @ drawn, _FINEST_SPREAD)


def _best_floor(lowest: float, spread: float, raised: float, least: float) -> float:
    """The λ₀ = lowest + ridge of the least expected loss for a θ of length 1; from public numbers.

    At least ``least``, twice where no sample would be private. A sample adds about m·σ²·L²/λ₀ with the
    residual bound L = 2(1 + 1/λ₀)^raised; a ridge adds about itself.
    """
    floors = np.maximum(np.geomspace(0.5, 1e8, 400), max(lowest, least))
    costs = np.log(4.0 * spread / floors) + 2.0 * raised * np.log1p(1.0 / floors)
    return float(floors[np.argmin(np.logaddexp(costs, np.log(np.maximum(floors - lowest, 1e-12))))])


BITS = 4
"""p of the paper. It is also where noise costs least: a row gives p(p − 1)/2 products of signs from 2^p noisy
cells, and 2^p/(p(p − 1)/2) is least for p = 3 and p = 4.
"""

# The ridge in units of the norm that the sketch's error has, σ√m: measured on public data.
_CAUTION = 4.0


def surrogate_tally(coordinates: int, *, rows: int, seed: int, query_radius: float | None = None) -> Tally:
    """An empty sketch for vectors of ``coordinates`` numbers in the unit ball.

    ``query_radius`` is the length that no (θ, −1) exceeds, for the loss of a regression.
    """
    kernel = AsymmetricAngularKernel(dim=coordinates, bits=BITS, query_radius=query_radius)
    return race(kernel, rows=rows, width=1 << BITS, seed=seed)


def regression_records(features: Floats, target: Floats, length: float) -> Floats:
    """z = (φ, v), scaled so that every coordinate weighs the same, and into the unit ball."""
    scale = math.sqrt(length**2 + 1.0)
    return np.column_stack((features * (length / scale), target / scale))


def rows_for_moments(count: float, epsilon: float, most: int) -> int:
    """The rows of a pure-ε sketch at which noise and hashing add the same error to a moment.

    The error of an entry has the variance (π²/4)·(N² + 2^p·2R²/ε²)/(p(p − 1)R), least at R = Nε/√(2^(p+1)).
    """
    return max(16, min(most, round(count * epsilon / math.sqrt(2.0 ** (BITS + 1)))))


@dataclass(frozen=True, slots=True, eq=False)
class SketchedMoments:
    """Estimates of Σ z zᵀ and Σ z from a released sketch, and the standard deviations of an entry's error."""

    second: Floats
    first: Floats
    sigma: float
    first_sigma: float
    count: float

    @classmethod
    def of(cls, function: ReleasedFunction) -> SketchedMoments:
        """Unbiased, and linear in the noisy table; post-processing.

        For a normal vector w and a unit vector z, E[sign(w·z)·w] = √(2/π)·z. The four hyperplanes of a row
        are independent, so with s_ij = Σ_z sign(wᵢ·z)·sign(wⱼ·z), which the 16 cells give exactly, (π/2)·s_ij
        times wᵢwⱼᵀ estimates Σ z zᵀ, six times per row.
        """
        if not isinstance(function, TableFunction) or not isinstance(function.kernel, BallSignsKernel):
            raise UsageError(
                "moments", "are read from a sketch of the asymmetric angular kernel", got="another function"
            )
        kernel, rows = function.kernel, function.rows
        bits = kernel.signs()
        if function.basis.shape[1] != 1 << bits:
            rule = "need a cell for every pattern of signs"
            raise UsageError("moments", rule, got="folded cells", remedy="widen the rows")
        seed: int = function.basis.parameters()["seed"]
        planes = kernel.directions(rows=rows, seed=seed).astype(np.float64)
        patterns = np.where((np.arange(1 << bits)[:, None] >> np.arange(bits)) & 1, 1.0, -1.0)
        table = function.table.astype(np.float64)
        singles = table @ patterns
        first = np.einsum("rk,rka->a", singles, planes) * math.sqrt(math.pi / 2.0) / (bits * rows)
        second = np.zeros((planes.shape[2], planes.shape[2]))
        squares = 0.0
        for i in range(bits):
            for j in range(i + 1, bits):
                products = table @ (patterns[:, i] * patterns[:, j])
                second += (planes[:, i] * products[:, None]).T @ planes[:, j]
                squares += float(products @ products)
        pairs = rows * bits * (bits - 1) / 2.0
        second = (second + second.T) * (math.pi / 4.0 / pairs)
        sigma = math.pi / 2.0 * math.sqrt(squares / pairs / pairs / 2.0)
        first_sigma = math.sqrt(math.pi / 2.0 * float(np.mean(singles**2)) / (bits * rows))
        dim = kernel.dim
        return cls(second[:dim, :dim], first[:dim], sigma, first_sigma, function.count)


def fit_regression(sketch: ReleasedFunction, level: ReleasedFunction, length: float) -> Floats:
    """θ with v ≈ θ·φ from the sketch of z = (φ, v) and the released moments of the target alone.

    The minimum of the surrogate's second-order part, a quadratic form that `SketchedMoments` reads off the
    whole table at once, with a ridge on the slopes in proportion to the sketch's error. The target's mean is
    released apart: it takes little budget, and without any slope the model is that mean.
    """
    moments = SketchedMoments.of(sketch)
    scale = math.sqrt(length**2 + 1.0)
    target = NoisyMoments.of(level)
    count = max(moments.count, 1.0)
    mean = float(_shrunken(target.cross[:1] / count, target.sigma / count)[0])
    # z = (1, u, v)/scale: second moments of the columns u and v, and their first.
    middle = _shrunken(moments.first[1:-1] * scale / count, moments.first_sigma * scale / count)
    gram = moments.second[1:-1, 1:-1] * scale**2 / count - np.outer(middle, middle)
    cross = moments.second[1:-1, -1] * scale**2 / count - middle * mean
    slopes = _ridge(gram, cross, moments.sigma * scale**2 / count)
    theta: Floats = np.concatenate(([mean - slopes @ middle], slopes)) * length
    return theta


def _ridge(gram: Floats, cross: Floats, sigma: float) -> Floats:
    """The solution with a ridge that covers errors of deviation ``sigma`` in every entry."""
    if not len(gram):
        return cross
    values, vectors = np.linalg.eigh(gram)
    error = sigma * math.sqrt(len(values))
    solution: Floats = vectors @ (vectors.T @ cross / (np.maximum(values, 0.0) + _CAUTION * error))
    return solution


def _shrunken(means: Floats, deviation: float) -> Floats:
    """Noisy means between −1 and 1, or zeros where noise explains half of their length."""
    noise = len(means) * deviation**2
    return np.clip(means, -1.0, 1.0) if float(means @ means) > 2.0 * noise else np.zeros(len(means))


def regression_loss(sketch: ReleasedFunction, thetas: Floats, length: float) -> Floats:
    """The surrogate loss of models θ, shape (n_models,): mean kernel values at both signs of (θ, −1).

    With r = (v − θ·φ)/(scale·radius), radius that of queries, a record's loss is (½ + asin(r)/π)^p +
    (½ − asin(r)/π)^p: convex in θ, and 2^(1−p)·(1 + p(p − 1)/2·(2r/π)² + O(r⁴)). So for residuals that are
    small beside the radius its minimum is that of least squares. For a sketch without a query radius
    ‖(θ, −1)‖ stands in its place, and the minimum is that of total least squares.
    """
    queries = np.column_stack((thetas / length, -np.ones(len(thetas))))
    return np.asarray(sketch(queries) + sketch(-queries))


def fit_surrogate(
    sketch: ReleasedFunction, level: ReleasedFunction, length: float, bound: float, *, seed: int
) -> Floats:
    """θ with v ≈ θ·φ of a low surrogate loss, with ‖θ‖ ≤ bound·length; starts from the mean of the target.

    Coleman and Shrivastava (2021), section 4, with the target's mean from a release apart.
    """
    target = NoisyMoments.of(level)
    count = max(level.count, 1.0)
    assert sketch.kernel.dim is not None
    start = np.zeros(sketch.kernel.dim - 1)
    start[0] = _shrunken(target.cross[:1] / count, target.sigma / count)[0]
    return length * descend(
        lambda models: regression_loss(sketch, models * length, length), start, bound=bound, seed=seed
    )


def descend(
    loss: Callable[[Floats], Floats],
    start: Floats,
    *,
    bound: float,
    seed: int,
    spread: float = 1.0,
    step: float = 0.03,
    rounds: int = 100,
    around: int = 32,
) -> Floats:
    """A point of low loss no longer than ``bound``, by steps against an approximate gradient; no derivatives.

    The gradient is the mean slope along ``around`` random directions, from the losses on both sides of the
    point at about the distance ``spread``. Steps are as long as ``step``/√round, and the mean of the last
    half of the points is returned.
    """
    rng = np.random.default_rng(seed)
    here, kept = start, np.zeros(len(start))
    for turn in range(rounds):
        aside = rng.normal(size=(around, len(here))) * (spread / math.sqrt(len(here)))
        values = loss(np.concatenate((here + aside, here - aside)))
        slope = (values[:around] - values[around:]) @ aside
        size = float(np.linalg.norm(slope))
        if size > 0.0:
            here = here - slope / size * (step / math.sqrt(1.0 + turn))
            here = here * min(1.0, bound / max(float(np.linalg.norm(here)), 1e-300))
        if turn >= rounds // 2:
            kept = kept + here / (rounds - rounds // 2)
    return kept


def fit_classifier(
    first: ReleasedFunction, second: ReleasedFunction, length: float, *, seed: int, rounds: int = 30
) -> Floats:
    """θ of a linear classifier, θ·φ > 0 for the second class, from one sketch of φ for each class.

    Starts half way between the means of the classes, across the direction in which they differ most beside
    the spread within them (Fisher), all read off the sketches' moments. Then it searches for a lower
    surrogate margin loss (`margin_loss`) without derivatives.
    """
    classes = [SketchedMoments.of(each) for each in (first, second)]
    numbers = [max(each.count, 1.0) for each in classes]
    means = [
        _shrunken(each.first[1:] * length / number, each.first_sigma * length / number)
        for each, number in zip(classes, numbers, strict=True)
    ]
    spread = np.zeros((len(means[0]), len(means[0])))
    variance = 0.0
    for each, number, mean in zip(classes, numbers, means, strict=True):
        spread += (each.second[1:, 1:] * length**2 / number - np.outer(mean, mean)) / 2.0
        variance += (each.sigma * length**2 / number / 2.0) ** 2
    slopes = _ridge(spread, means[1] - means[0], math.sqrt(variance))
    start = np.concatenate(([-slopes @ (means[0] + means[1]) / 2.0], slopes))
    if not start.any():
        return start
    return search(lambda thetas: margin_loss(first, second, thetas), start, seed=seed, rounds=rounds)


def margin_loss(first: ReleasedFunction, second: ReleasedFunction, thetas: Floats) -> Floats:
    """The surrogate margin loss of planes θ, shape (n_planes,), each class with the same weight.

    The mean over a class of k(−y·θ·φ/‖θ‖), y = −1 for the first: the probability that a record collides with
    the far side, which falls with its margin.
    """
    return np.asarray(first(thetas) + second(-thetas))


def search(
    loss: Callable[[Floats], Floats],
    start: Floats,
    *,
    seed: int,
    rounds: int,
    batch: int = 64,
    spread: float = 0.1,
) -> Floats:
    """A point of lower loss near ``start``, by sampling around the best so far; no derivatives.

    In every round a batch of unit vectors is queried at once. The mean of its best quarter is the next
    centre, and the spread falls by a tenth. The candidate of the least loss over all rounds is not taken: it
    would be the luckiest, not the best.
    """
    rng = np.random.default_rng(seed)
    centre = start / np.linalg.norm(start)
    for _ in range(rounds):
        steps = rng.normal(size=(batch, len(centre))) * (spread / math.sqrt(len(centre)))
        candidates = centre + np.concatenate((steps, -steps))
        candidates /= np.linalg.norm(candidates, axis=1)[:, None]
        best = np.argsort(loss(candidates), kind="stable")[: batch // 2]
        centre = candidates[best].mean(axis=0)
        centre /= np.linalg.norm(centre)
        spread *= 0.9
    return centre
