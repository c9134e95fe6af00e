"""Functional perturbation in a finite feature space: Gaussian processes and support vector machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum import methods, privacy
from hushsum._types import Box, Floats
from hushsum.declaration import FROM_PUBLIC, INTEGER, TEXT, setting
from hushsum.errors import UsageError
from hushsum.kernels import SPECTRAL, ColumnKernel, Kernel
from hushsum.methods import Machines, NoisyMoments
from hushsum.privacy import Mechanism, Promise, Relation
from hushsum.records import Bounds, UnitBall
from hushsum.releases import Answers, Bundle, normal_answers
from hushsum.tables import FourierFeatures, Moments
from hushsum.tally import Tally

from ._accuracy import NOISE, PredictedError, terms_of
from ._base import (
    DELTA,
    SCALE,
    ClassificationModel,
    Drawn,
    KeptRecords,
    PrivateModel,
    RegressionModel,
    declared,
    refuse_pure,
    require,
)
from ._public_rows import median_distance
from ._table_model import kernel_of


def feature_space(kernel: Kernel, *, features: int, seed: int, box: Box) -> FourierFeatures:
    """Features for a kernel; refuses one without a spectral measure."""
    return FourierFeatures(kernel, features, seed, True, Bounds.of(box, len(box)))


def vectors_within(space: FourierFeatures, points: Floats) -> Floats:
    """φ of points moved to the nearest one of the box, shape (n, 2·features)."""
    return space.vectors(space.prepare(points))


@declared
class FeatureSpaceModel(PrivateModel):
    """A function in the finite feature space of a kernel, released with noise in that space."""

    NEEDS_DELTA = True
    delta: float | None = setting(1e-6, DELTA)
    kernel: Any = setting(
        "gaussian", "Of the feature space.", choices=tuple(SPECTRAL.kernels()), kernel=True, type=TEXT
    )
    bandwidth: float | str | None = setting(
        None,
        "How near inputs must be to have similar targets. Public: chosen by the subject or on public data, "
        "never fitted to y. See scale. 'public': the median distance between the public rows.",
        above=0,
        choices=(FROM_PUBLIC,),
    )
    scale: str | None = setting(None, SCALE)
    smoothness: float = setting(1.5, "Of the Matérn kernel alone.", above=0)
    features: Any = setting(128, "Pairs of a cosine and a sine.", at_least=1, type=INTEGER)
    calibration: str = setting(
        privacy.ANALYTIC,
        "Of functional perturbation: the published scale, to reproduce it; for ε up to 1.",
        choices=tuple(privacy.CALIBRATIONS),
    )

    def _features(self) -> int:
        return int(self.features)

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernel of the feature space."""
        return [kernel_of(self, n_features)]

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        """The median distance between public rows, in what the bandwidth is measured in."""
        one = kernel_of(self, rows.shape[1], 1.0)
        units = one.column_bandwidths() if isinstance(one, ColumnKernel) else (1.0,)
        return median_distance(rows / np.array(units))

    def kept_per_record(self, n_features: int) -> int:
        return 2 * self._features()

    def _space(self, seed: int) -> FourierFeatures:
        return feature_space(kernel_of(self), features=self._features(), seed=seed, box=self.column_bounds())

    def _start(self, seed: int) -> tuple[FourierFeatures, Any]:
        return self._space(seed), KeptRecords()

    def _relation(self) -> Relation:
        return Relation.REPLACE

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        # Refused here rather than after the debit: a published scale that is not proven for this promise.
        privacy.path_scale(1.0, promise, calibration=self.calibration)
        return Mechanism.of(privacy.LATTICE_GAUSSIAN)


PUBLIC, PRIVATE = "public", "private"
_PUBLIC_INPUTS = "the inputs X are public, and only the targets y are private"
_PUBLIC_PERSONS = "the inputs X, and whose records they are, are public, and only the targets y are private"
_AUTO_FEATURES = {PUBLIC: 128, PRIVATE: 24}
_STANDARD_ERRORS = 20.0
# With noise above this part of half the targets' range the model falls back.
_LOUDEST = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class _Posterior:
    """f(q) = middle + half·(w·φ(q)), and a matrix V for which the variance of f(q) is half²·φᵀVφ."""

    space: FourierFeatures
    weights: Floats
    spread: Floats
    middle: float
    half: float

    def mean(self, points: Floats) -> Floats:
        """The posterior mean at points within the box, shape (n,)."""
        return np.asarray(self.middle + self.half * (vectors_within(self.space, points) @ self.weights))

    def deviation(self, points: Floats) -> Floats:
        """The standard deviation, of posterior and noise together, shape (n,)."""
        vectors = vectors_within(self.space, points)
        variance = np.maximum(((vectors @ self.spread) * vectors).sum(axis=1), 0.0)
        return np.asarray(self.half * np.sqrt(variance))


@declared
class PrivateGaussianProcessRegressor(FeatureSpaceModel, RegressionModel):
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
    range of width B changes them by at most B·max_i‖A_i‖, and ‖A_i‖² = [C⁻¹KC⁻¹]_ii with C = K + σ²I. A is
    rounded to integers and the length of its columns taken from those, so the claim is exact.
    Neighbours: replace; the number of records is public. Of a person up to m targets are replaced; whose
    records they are is public, and the claim states this. Private inputs: `Moments`, add/remove.

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
    inputs: str = setting(
        PUBLIC,
        "public: only targets are private, one of which is replaced (the setting of the literature); the "
        "claim states this. private: whole records are private, present or absent; the sums of products of "
        "features and targets are released with noise and solved with a ridge that suits the noise, which "
        "needs some thousands of records.",
        choices=(PUBLIC, PRIVATE),
    )
    noise: float = setting(
        4.0,
        "σ of C = K + σ²I: the standard deviation of the targets about the function, in units of half their "
        "range. Public. Larger ones than the truth smooth more and need less noise for privacy, which pays "
        "up to some ten thousand records.",
        above=0,
    )
    features: int | str = setting(
        "auto",
        "Pairs of a cosine and a sine. 'auto': 128, or 24 where inputs are private.",
        choices=("auto",),
        at_least=1,
    )

    def _check_together(self, promise: Promise) -> None:
        if self.inputs == PUBLIC:
            refuse_pure(promise, "where inputs are public")

    def _part_columns(self) -> dict[str, int]:
        # The moments of cosines and sines, of a constant and of the target.
        return {"moments": 2 * self._features() + 2}

    def _features(self) -> int:
        return self.features if isinstance(self.features, int) else _AUTO_FEATURES[self.inputs]

    def kept_per_record(self, n_features: int) -> int:
        return 0 if self.inputs == PRIVATE else super().kept_per_record(n_features)

    def _start(self, seed: int) -> tuple[FourierFeatures, Any]:
        if self.inputs == PUBLIC:
            return super()._start(seed)
        space, (low, high) = self._space(seed), self._target()
        width = 2 * space.features
        box = Bounds((-1.0,) * width + (low,), (1.0,) * width + (high,))
        # ‖φ‖ = 1, so with the constant the radius is √2.
        return space, Tally(Moments(UnitBall(box, math.sqrt(2.0))))

    def _count(self, secret: tuple[FourierFeatures, Any], X: Floats, y: Any) -> None:
        space, counted = secret
        vectors, (low, high) = vectors_within(space, X), self._target()
        if self.inputs == PRIVATE:
            counted.add(np.column_stack((vectors, y)))
            return
        unit = (np.clip(y, low, high) - (low + high) / 2.0) / ((high - low) / 2.0)
        counted.add(vectors, np.rint(np.clip(unit, -1.0, 1.0) * (1 << methods.TARGET_BITS)).astype(np.int64))

    def _draw(self, secret: tuple[FourierFeatures, Any], promise: Promise) -> Drawn:
        _, counted = secret
        if self.inputs == PRIVATE:
            return Drawn({"moments": counted.release(**terms_of(promise))})
        vectors, targets = counted.all()
        noisy = methods.perturbed_posterior(
            methods.smoother(vectors, self.noise**2), targets, promise, calibration=self.calibration
        )
        inner = vectors.T @ vectors
        inner[np.diag_indices_from(inner)] += self.noise**2
        # Of public inputs alone, as the claim assumes.
        spread = self.noise**2 * np.linalg.inv(inner)
        step, sigma = np.array([noisy.step]), np.array([noisy.sigma])
        return Drawn(arrays={"weights": noisy.weights[0], "step": step, "sigma": sigma, "spread": spread})

    def _assumptions(self) -> list[str]:
        if self.inputs != PUBLIC:
            return super()._assumptions()
        return [*super()._assumptions(), _PUBLIC_INPUTS if self.max_per_unit is None else _PUBLIC_PERSONS]

    def _relation(self) -> Relation:
        return Relation.REPLACE if self.inputs == PUBLIC else Relation.ADD_REMOVE

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        return (
            privacy.table_noise(promise)
            if self.inputs == PRIVATE
            else super()._mechanism(promise, n_features)
        )

    def _open(self, bundle: Bundle) -> _Posterior:
        space, (low, high) = self._space(bundle.about["seed"]), self._target()
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        width = 2 * space.features
        if "moments" in bundle.parts:
            return _Posterior(space, *_ridge(bundle.parts["moments"], width), middle, half)
        arrays = bundle.arrays
        require(arrays["weights"].shape == (width,) and arrays["spread"].shape == (width, width), "weights")
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
        low, high = self._as_counted()._target()
        return float(self.released_.arrays["sigma"][0]) * (high - low) / 2.0

    def predict(self, X: object, return_std: bool = False) -> Any:
        """The target at each point, shape (n_queries,), within ``target_bounds``.

        With ``return_std`` also the standard deviation of the function there: of what the records leave open,
        and of the noise.
        """
        queries = self._queries(X)
        values, posterior = self._means(queries), self._reading()
        return (values, posterior.deviation(queries)) if return_std else values

    def query(self, X: object, *, level: float = 0.95) -> Answers:
        """The target's mean at each point with its standard deviation, as of :meth:`predict`, and an
        interval for it.
        """
        queries = self._queries(X)
        return normal_answers(self._means(queries), self._reading().deviation(queries), level, queries)

    def _means(self, queries: Floats) -> Floats:
        low, high = self._as_counted()._target()
        return np.asarray(np.clip(self._reading().mean(queries), low, high))


def _ridge(moments: Any, width: int) -> tuple[Floats, Floats]:
    """w of v ≈ w·φ and the spread of w, from noisy sums: post-processing.

    Zero where the number of records is within the noise. The constant of the moments' unit ball is the same
    for all, and is folded into the weights only where it helps: cosines of small frequencies do its work.
    """
    noisy = NoisyMoments.of(moments)
    require(len(noisy.cross) == width + 1, "moments")
    gram, cross = 2.0 * noisy.gram[1:, 1:], math.sqrt(2.0) * noisy.cross[1:]
    sigma = 2.0 * noisy.sigma
    if moments.count < _STANDARD_ERRORS * moments.count_stderr:
        return np.zeros(width), np.eye(width)
    inner = NoisyMoments(gram, cross, sigma, noisy.count)
    weights = methods.solve_adaptive(inner)
    values, vectors = np.linalg.eigh(gram)
    height = np.maximum(values, 0.0) + sigma * math.sqrt(width)
    variance = sigma**2 * (1.0 + float(weights @ weights)) / height**2
    return weights, (vectors * variance) @ vectors.T


# With more noise than the margin of the hinge loss the model falls back.
_LOUDEST_MACHINE = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Machines:
    """Released weights, one row for each machine, the intercept last."""

    space: FourierFeatures
    weights: Floats

    def values(self, points: Floats) -> Floats:
        """f(q) of each machine at points within the box, shape (n, machines)."""
        vectors = vectors_within(self.space, points)
        return np.asarray(vectors @ self.weights[:, :-1].T + self.weights[:, -1])


@declared
class PrivateKernelSVC(FeatureSpaceModel, ClassificationModel):
    """A support vector machine with a kernel, released once by functional perturbation.

    Works well where records × ε is some hundred times ``C`` and the bandwidth is a good part of the distance
    between classes. The noise of the decision function is about 18·C/(n·ε) at δ = 1e-6, times √K for K > 2
    classes, whatever the number of features. Where it exceeds 1, the margin, the model falls back: its
    functions are zero, and it predicts the first class.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    noise_stderr_ : float
        The standard deviation of the noise of the decision function; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record with its label. Neighbours: replace, so the number of records n is public. The function
    lives in a finite feature space with the constant 1 among the features, so that noise hides the intercept
    as well: κ = sup k + 1. One record changes a machine by Δ = 2C√κ/n, and by 2√(2g) for a solution whose
    duality gap is g, which is fixed beforehand. K machines one against the rest move together by √K·Δ. The
    coefficients are rounded to a lattice and take exact discrete Gaussian noise. The claim assumes that the
    solver reaches g on the records and on all their neighbours: if it does not, the release is refused before
    anything is spent, which reveals one bit about the records that nothing bounds (seen only at C ≥ 3·10⁸).

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    >>> inside = np.where((points**2).sum(axis=1) < 0.5, "in", "out")
    >>> model = PrivateKernelSVC(epsilon=1.0, classes=["in", "out"], random_state=0).fit(points, inside)
    >>> model.predict([[0.0, 0.1], [0.9, 0.9]]).tolist()
    ['in', 'out']

    Notes
    -----
    Hall, Rinaldo and Wasserman, JMLR 2013, section 4.3; Rubinstein et al. 2012; Chaudhuri, Monteleoni and
    Sarwate, JMLR 2011.
    """

    _fewest = 2

    COMMAND = "kernel-svc"
    DEFAULT_BANDWIDTH = 0.35
    C: float = setting(
        30.0,
        "C in ½‖w‖² + (C/n)·Σ max(0, 1 − y·f(x)): how far the function may follow the records. "
        "scikit-learn's C is this number divided by n. The noise grows in proportion to C. Public.",
        above=0,
    )
    features: int = setting(
        128, "Pairs of a cosine and a sine in which functions live. Fitting costs n·features².", at_least=1
    )

    def _check_together(self, promise: Promise) -> None:
        refuse_pure(promise, "for this model")
        if self.max_per_unit is not None:
            raise UsageError(
                "max_per_unit",
                "must be left out for this model: its noise follows from the number of records, "
                "which is taken as public, and persons have different numbers of them",
                remedy="use another classifier",
            )

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        classes = len(self.declared_classes())
        machines = 1 if classes == 2 else classes
        c, square = float(self.C), 2.0
        moved = methods.svm_sensitivity(c, records, square, methods.allowed_gap(c, records, square))
        scale = privacy.path_scale(math.sqrt(machines) * moved, promise, calibration=self.calibration)
        return PredictedError("decision", math.sqrt(square) * scale, records, f"{NOISE}; the margin is 1")

    def _count(self, secret: tuple[FourierFeatures, KeptRecords], X: Floats, y: Any) -> None:
        space, kept = secret
        kept.add(vectors_within(space, X), y.astype(np.int64))

    def _ready(self, secret: tuple[FourierFeatures, KeptRecords]) -> Machines:
        return methods.fit_machines(*secret[1].all(), len(self.classes_), float(self.C))

    def _draw(self, secret: Machines, promise: Promise) -> Drawn:
        noisy = methods.perturbed_machines(secret, promise, calibration=self.calibration)
        step, sigma = np.array([noisy.step]), np.array([noisy.sigma])
        return Drawn(arrays={"weights": noisy.weights, "step": step, "sigma": sigma})

    def _assumptions(self) -> list[str]:
        return [*super()._assumptions(), methods.GAP_REACHED]

    def _open(self, bundle: Bundle) -> _Machines:
        space, weights = self._space(bundle.about["seed"]), bundle.arrays["weights"]
        machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        require(weights.shape == (machines, 2 * space.features + 1), "weights")
        loud = _noise(bundle) > _LOUDEST_MACHINE
        step = 0.0 if loud else float(bundle.arrays["step"][0])
        return _Machines(space, step * weights.astype(np.float64))

    @property
    def noise_stderr_(self) -> float:
        """The standard deviation of the noise of the decision function; only after the release."""
        return _noise(self.released_)

    def decision_function(self, X: object) -> Floats:
        """How far each point lies on which side, shape (n_queries,), or (n_queries, n_classes) for more than
        two classes.
        """
        queries = self._queries(X)
        machines: _Machines = self._reading()
        values = machines.values(queries)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: object) -> NDArray[Any]:
        """The class of each point, shape (n_queries,)."""
        values = self.decision_function(X)
        codes = (values > 0.0).astype(np.int64) if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[codes])


def _noise(bundle: Bundle) -> float:
    """The standard deviation of the noise at any point, where ‖(φ, 1)‖² = 2."""
    return math.sqrt(2.0) * float(bundle.arrays["sigma"][0])
