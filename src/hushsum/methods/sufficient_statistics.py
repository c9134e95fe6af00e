"""Linear regression from perturbed sufficient statistics: SSP and AdaSSP.

The sums Σ φφᵀ and Σ vφ of records in the unit ball determine every linear model. They are held as a tally of
whole numbers (`moments`), so they stream, merge and take exact noise; what follows is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.bases.moments import Moments
from hushsum.errors import Argument, ClaimError, UsageError
from hushsum.privacy.accounting import gaussian_delta_above
from hushsum.privacy.real_noise import real_noise
from hushsum.privacy.release_noise import rounded
from hushsum.records.bounds import Bounds
from hushsum.records.norm_clipping import UnitBall
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.coefficients import CoefficientFunction
from hushsum.tally.tally import Tally

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
                parameter="moments",
                rule="must be released from hushsum.methods.moments",
                got="another function",
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
        Of a whole number that stands for 1.

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
            parameter="bounds",
            rule="must be declared",
            got="None",
            remedy="give (low, high), or one pair for each column",
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
    result: Floats = vectors @ chosen
    return result


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
            parameter="calibration",
            rule=(
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
    with real_noise(insecure_noise_seed) as noise:
        ridge = 0.0
        if adaptive:
            lowest = published.lowest(float(np.linalg.eigvalsh(gram)[0]), float(noise.normal(1)[0]))
            ridge = published.ridge(lowest, len(gram))
        gram = rounded(gram + published.sigma * noise.symmetric(len(gram)), published.sigma)
        cross = rounded(cross + published.sigma * noise.normal(len(cross)), published.sigma)
    return solve_plain(NoisyMoments(gram + ridge * np.eye(len(gram)), cross, published.sigma, math.nan))
