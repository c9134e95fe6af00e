"""Private Gaussian process regression."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.bases.moments import Moments
from hushsum.errors import Argument, UsageError
from hushsum.kernels.base import Kernel
from hushsum.methods.feature_functions import TARGET_BITS, perturbed_posterior, smoother
from hushsum.methods.sufficient_statistics import NoisyMoments, solve_adaptive
from hushsum.models.feature_space import (
    KERNEL_PARAMETERS,
    KeptPairs,
    declared_kernel,
    feature_kernel,
    feature_space,
    public_median_bandwidth,
    vectors_within,
)
from hushsum.models.parameters import INTEGER, NUMBER, TARGET_BOUNDS, TEXT, Parameter
from hushsum.models.regression_model import RegressionModel, declared_target
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.functional_perturbation import ANALYTIC, CALIBRATIONS, LATTICE_GAUSSIAN, path_scale
from hushsum.privacy.mechanism import Mechanism
from hushsum.records.bounds import Bounds
from hushsum.records.norm_clipping import UnitBall
from hushsum.releases.answers import Answers, normal_answers
from hushsum.releases.bundle import Bundle
from hushsum.tally.tally import Tally

PUBLIC, PRIVATE = "public", "private"
_PUBLIC_INPUTS = "the inputs X are public, and only the targets y are private"
_AUTO_FEATURES = {PUBLIC: 128, PRIVATE: 24}
_STANDARD_ERRORS = 20.0
_LOUDEST = 0.25
"""With noise above this part of half the targets' range the model falls back."""


@dataclass(frozen=True, slots=True, eq=False)
class _Posterior:
    """f(q) = middle + half·(w·φ(q)), and a matrix V for which the variance of f(q) is half²·φᵀVφ."""

    space: FourierFeatures
    weights: Floats
    spread: Floats
    middle: float
    half: float

    def mean(self, points: Floats) -> Floats:
        """At points within the box, shape (n,)."""
        values: Floats = self.middle + self.half * (vectors_within(self.space, points) @ self.weights)
        return values

    def deviation(self, points: Floats) -> Floats:
        """The standard deviation, of posterior and noise together, shape (n,)."""
        vectors = vectors_within(self.space, points)
        variance = np.maximum(((vectors @ self.spread) * vectors).sum(axis=1), 0.0)
        deviation: Floats = self.half * np.sqrt(variance)
        return deviation


class PrivateGaussianProcessRegressor(RegressionModel):
    """The posterior mean of a Gaussian process, released once by functional perturbation.

    Works well with few columns, a bandwidth of a good part of the box, and hundreds of records near every
    query point: noise is spread as a smooth path, not point by point. A small bandwidth or a
    small ``noise`` makes the mean follow single targets, and the noise grows accordingly. Where it exceeds a
    quarter of half the targets' range the model falls back to the middle of the range.

    Attributes
    ----------
    noise_stderr_ : float
        The standard deviation of the noise of one answer, where inputs are public; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Public inputs: with A the public matrix of which the coefficients are A·y, one target replaced within a
    range of width B moves them by at most B·max_i‖A_i‖, and ‖A_i‖² = [C⁻¹KC⁻¹]_ii with C = K + σ²I. A is
    rounded to whole numbers and the length of its columns taken from those, so the claim is exact.
    Neighbours: replace; the number of records is public. Private inputs: `Moments`, add/remove.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(2000, 1))
    >>> model = PrivateGaussianProcessRegressor(epsilon=1.0, bandwidth=0.5).fit(X, 0.5 * np.sin(3 * X[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - 0.5) < 0.45), model.claim_.assumptions
    (True, ('the inputs X are public, and only the targets y are private',))

    Notes
    -----
    Smith, Zwiessele and Lawrence 2016 bound the sensitivity by ‖C⁻¹‖_∞; Dandekar, Basu and Bressan 2019 add a
    factor d. Neither is needed.
    """

    COMMAND = "gaussian-process"
    DEFAULT_BANDWIDTH = 0.25
    NEEDS_DELTA = True
    PARAMETERS = (
        Parameter(
            "inputs",
            TEXT,
            "public: only targets are private, one of which is replaced (the setting of the literature); "
            "the claim says so. private: whole records are, present or absent; the sums of products of "
            "features and targets are released with noise and solved with a ridge that suits it, which "
            "needs some thousands of records.",
            choices=(PUBLIC, PRIVATE),
        ),
        *KERNEL_PARAMETERS,
        Parameter(
            "noise",
            NUMBER,
            "σ of C = K + σ²I: the standard deviation of the targets about the function, in units of half "
            "their range. Public. Larger ones than the truth smooth more and need less noise for privacy, "
            "which pays up to some ten thousand records.",
            above=0,
        ),
        Parameter(
            "features",
            INTEGER,
            "Pairs of a cosine and a sine. 'auto': 128, or 24 where inputs are private.",
            choices=("auto",),
            at_least=1,
        ),
        TARGET_BOUNDS,
        Parameter(
            "calibration",
            TEXT,
            "Where inputs are public: the published scale, to reproduce it; for ε up to 1.",
            choices=tuple(CALIBRATIONS),
        ),
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-6,
        inputs: str = PUBLIC,
        kernel: Any = "gaussian",
        bandwidth: float | str | None = None,
        scale: str | None = None,
        smoothness: float = 1.5,
        noise: float = 4.0,
        features: int | str = "auto",
        bounds: Any = (-1, 1),
        public: Any = None,
        target_bounds: tuple[float, float] = (-1, 1),
        calibration: str = ANALYTIC,
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.inputs = inputs
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.scale = scale
        self.smoothness = smoothness
        self.noise = noise
        self.features = features
        self.bounds = bounds
        self.public = public
        self.target_bounds = target_bounds
        self.calibration = calibration
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernel of the feature space."""
        return [declared_kernel(self, n_features)]

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        box = self.column_bounds(rows.shape[1])
        return public_median_bandwidth(
            self.kernel, rows, smoothness=self.smoothness, scale=self.scale, box=box
        )

    def _check_together(self, promise: Promise) -> None:
        if self.inputs == PUBLIC and promise.pure:
            raise UsageError(
                parameter="delta",
                rule="must be above 0 where inputs are public",
                got="none",
                remedy=("give ", Argument("delta", 1e-6)),
            )

    def _part_columns(self) -> dict[str, int]:
        # The moments of cosines and sines, of a constant and of the target.
        return {"moments": 2 * self._features() + 2}

    def _features(self) -> int:
        return self.features if isinstance(self.features, int) else _AUTO_FEATURES[self.inputs]

    def _kept_per_record(self, n_features: int) -> int:
        if self.inputs == PRIVATE:
            return 0
        return 2 * self._features()

    def _space(self, seed: int, read: Any) -> FourierFeatures:
        """The features, from parameters as ``read`` gives them: as they are, or as they were."""
        kernel = feature_kernel(
            read("kernel"),
            dim=self.n_features_in_,
            bandwidth=read("bandwidth"),
            smoothness=read("smoothness"),
            scale=read("scale"),
            box=self._box(read("bounds")),
        )
        features = read("features")
        if isinstance(features, str):
            features = _AUTO_FEATURES[read("inputs")]
        return feature_space(kernel, features=features, seed=seed, box=self._box(read("bounds")))

    def _targets(self, read: Any) -> Bounds:
        return declared_target(read("target_bounds"))

    def _start(self, seed: int) -> KeptPairs | tuple[FourierFeatures, Tally]:
        read = self.effective
        space = self._space(seed, read)
        if self.inputs == PUBLIC:
            return KeptPairs(space)
        target = self._targets(read)
        width = 2 * space.features
        box = Bounds((-1.0,) * width + target.low, (1.0,) * width + target.high)
        # ‖φ‖ = 1, so with the constant the radius is √2.
        return space, Tally(Moments(UnitBall(box, math.sqrt(2.0))))

    def _count(self, secret: Any, X: Floats, y: NDArray[Any] | None) -> None:
        assert y is not None
        if not isinstance(secret, KeptPairs):
            space, tally = secret
            tally.add(np.column_stack((vectors_within(space, X), y)))
            return
        target = self._targets(self.effective)
        low, high = target.low[0], target.high[0]
        unit = (np.clip(y, low, high) - (low + high) / 2.0) / ((high - low) / 2.0)
        secret.add(X, np.rint(np.clip(unit, -1.0, 1.0) * (1 << TARGET_BITS)).astype(np.int64))

    def _draw(self, secret: Any, promise: Promise) -> Bundle:
        if not isinstance(secret, KeptPairs):
            return self._bundle(
                promise, parts={"moments": secret[1].release(epsilon=self.epsilon, delta=self.delta)}
            )
        vectors, targets = secret.all()
        matrix = smoother(vectors, self.noise**2)
        noisy = perturbed_posterior(matrix, targets, promise, calibration=self.calibration)
        inner = vectors.T @ vectors
        inner[np.diag_indices_from(inner)] += self.noise**2
        # Of public inputs alone, as the claim assumes.
        spread = self.noise**2 * np.linalg.inv(inner)
        arrays = {
            "weights": noisy.weights[0],
            "step": np.array([noisy.step]),
            "sigma": np.array([noisy.sigma]),
            "spread": spread,
        }
        return self._bundle(promise, arrays=arrays)

    def _assumptions(self) -> list[str]:
        return [*super()._assumptions(), *([_PUBLIC_INPUTS] if self.inputs == PUBLIC else [])]

    def _claim(self, promise: Promise, n_features: int | None) -> Claim:
        claim = super()._claim(promise, n_features)
        if self.inputs != PUBLIC:
            return claim
        # Refused here rather than after the debit: a published scale that is not proven for this promise.
        path_scale(1.0, promise, calibration=self.calibration)
        return replace(claim, relation=Relation.REPLACE, mechanism=Mechanism.of(LATTICE_GAUSSIAN))

    def _open(self, bundle: Bundle) -> _Posterior:
        space = self._space(bundle.about["seed"], self._fitted)
        target = self._targets(self._fitted)
        middle, half = (target.low[0] + target.high[0]) / 2.0, (target.high[0] - target.low[0]) / 2.0
        width = 2 * space.features
        if "moments" in bundle.parts:
            return _Posterior(space, *_ridge(bundle.parts["moments"], width), middle, half)
        arrays = bundle.arrays
        if arrays["weights"].shape != (width,) or arrays["spread"].shape != (width, width):
            raise ValueError("weights")
        if float(arrays["sigma"][0]) > _LOUDEST:
            return _Posterior(space, np.zeros(width), np.eye(width), middle, half)
        weights = float(arrays["step"][0]) * arrays["weights"].astype(np.float64)
        spread = arrays["spread"] + float(arrays["sigma"][0]) ** 2 * np.eye(width)
        return _Posterior(space, weights, spread, middle, half)

    @property
    def noise_stderr_(self) -> float:
        """The standard deviation that privacy adds to an answer; only after the release."""
        if "sigma" not in self.released_.arrays:
            raise AttributeError("noise_stderr_ exists for public inputs; use predict(return_std=True)")
        target = self._targets(self._fitted)
        return float(self.released_.arrays["sigma"][0]) * (target.high[0] - target.low[0]) / 2.0

    def predict(self, X: object, return_std: bool = False) -> Any:
        """The target at each point, shape (n_queries,), within ``target_bounds``.

        With ``return_std`` also the standard deviation of the function there: of what the records leave open,
        and of the noise.
        """
        queries = self._queries(X)
        values = self._means(queries)
        posterior: _Posterior = self._reading()
        return (values, posterior.deviation(queries)) if return_std else values

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """The target's mean at each point with its standard deviation, as of :meth:`predict`, and an
        interval for it.
        """
        queries = self._queries(X)
        posterior: _Posterior = self._reading()
        return normal_answers(self._means(queries), posterior.deviation(queries), level, queries)

    def _means(self, queries: Floats) -> Floats:
        posterior: _Posterior = self._reading()
        target = self._targets(self._fitted)
        return np.clip(posterior.mean(queries), target.low[0], target.high[0])


def _ridge(moments: Any, width: int) -> tuple[Floats, Floats]:
    """w of v ≈ w·φ and the spread of w, from noisy sums: post-processing.

    Zero where the number of records is within the noise. The constant of the moments' unit ball is the same
    for all, and is folded into the weights only where it helps: cosines of small frequencies do its work.
    """
    noisy = NoisyMoments.of(moments)
    if len(noisy.cross) != width + 1:
        raise ValueError("moments")
    gram, cross = 2.0 * noisy.gram[1:, 1:], math.sqrt(2.0) * noisy.cross[1:]
    sigma = 2.0 * noisy.sigma
    if moments.count < _STANDARD_ERRORS * moments.count_stderr:
        return np.zeros(width), np.eye(width)
    inner = NoisyMoments(gram, cross, sigma, noisy.count)
    weights = solve_adaptive(inner)
    values, vectors = np.linalg.eigh(gram)
    height = np.maximum(values, 0.0) + sigma * math.sqrt(width)
    variance = sigma**2 * (1.0 + float(weights @ weights)) / height**2
    return weights, (vectors * variance) @ vectors.T
