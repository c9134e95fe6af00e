"""Private kernel support vector machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.fourier_features import FourierFeatures
from hushsum.errors import Argument, UsageError
from hushsum.kernels.base import Kernel
from hushsum.methods.feature_functions import (
    GAP_REACHED,
    Machines,
    allowed_gap,
    fit_machines,
    perturbed_machines,
    svm_sensitivity,
)
from hushsum.models.classification_model import ClassificationModel
from hushsum.models.feature_space import (
    KERNEL_PARAMETERS,
    KeptPairs,
    declared_kernel,
    feature_kernel,
    feature_space,
    public_median_bandwidth,
    vectors_within,
)
from hushsum.models.parameters import CLASSES, INTEGER, NUMBER, TEXT, Parameter
from hushsum.models.predicted_error import NOISE, PredictedError
from hushsum.privacy.claim import Claim, Promise, Relation
from hushsum.privacy.functional_perturbation import ANALYTIC, CALIBRATIONS, LATTICE_GAUSSIAN, path_scale
from hushsum.privacy.mechanism import Mechanism
from hushsum.releases.bundle import Bundle

_LOUDEST = 1.0
"""With more noise than the margin of the hinge loss the model falls back."""


@dataclass(frozen=True, slots=True, eq=False)
class _Machines:
    """Released weights, one row for each machine, the intercept last."""

    space: FourierFeatures
    weights: Floats

    def values(self, points: Floats) -> Floats:
        """f(q) of each machine at points within the box, shape (n, machines)."""
        vectors = vectors_within(self.space, points)
        values: Floats = vectors @ self.weights[:, :-1].T + self.weights[:, -1]
        return values


class PrivateKernelSVC(ClassificationModel):
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
    as well: κ = sup k + 1. One record moves a machine by Δ = 2C√κ/n, and by 2√(2g) for a solution whose
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
    NEEDS_DELTA = True
    PARAMETERS = (
        Parameter(
            "C",
            NUMBER,
            "Of ½‖w‖² + (C/n)·Σ max(0, 1 − y·f(x)): how far the function may follow the records. "
            "scikit-learn's C is this one divided by n. The noise grows in proportion to it. Public.",
            above=0,
        ),
        CLASSES,
        *KERNEL_PARAMETERS,
        Parameter(
            "features",
            INTEGER,
            "Pairs of a cosine and a sine in which functions live. Fitting costs n·features².",
            at_least=1,
        ),
        Parameter(
            "calibration",
            TEXT,
            "The published scale, to reproduce it; for ε up to 1.",
            choices=tuple(CALIBRATIONS),
        ),
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-6,
        C: float = 30.0,
        classes: Sequence[Any] | None = None,
        kernel: Any = "gaussian",
        bandwidth: float | str | None = None,
        scale: str | None = None,
        smoothness: float = 1.5,
        features: int = 128,
        bounds: Any = (-1, 1),
        public: Any = None,
        calibration: str = ANALYTIC,
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.classes = classes
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.scale = scale
        self.smoothness = smoothness
        self.features = features
        self.bounds = bounds
        self.public = public
        self.calibration = calibration
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def _space(self, seed: int, read: Any) -> FourierFeatures:
        kernel = feature_kernel(
            read("kernel"),
            dim=self.n_features_in_,
            bandwidth=read("bandwidth"),
            smoothness=read("smoothness"),
            scale=read("scale"),
            box=self._box(read("bounds")),
        )
        box = self._box(read("bounds"))
        return feature_space(kernel, features=read("features"), seed=seed, box=box)

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernel of the feature space."""
        return [declared_kernel(self, n_features)]

    def _public_bandwidth(self, rows: Floats, promise: Promise) -> float:
        box = self.column_bounds(rows.shape[1])
        return public_median_bandwidth(
            self.kernel, rows, smoothness=self.smoothness, scale=self.scale, box=box
        )

    def _check_together(self, promise: Promise) -> None:
        if promise.pure:
            raise UsageError(
                parameter="delta",
                rule="must be above 0 for this model",
                got="none",
                remedy=("give ", Argument("delta", 1e-6)),
            )

    def _kept_per_record(self, n_features: int) -> int:
        return 2 * self.features

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        classes = len(self.declared_classes())
        machines = 1 if classes == 2 else classes
        c, square = float(self.C), 2.0
        moved = svm_sensitivity(c, records, square, allowed_gap(c, records, square))
        scale = path_scale(math.sqrt(machines) * moved, promise, calibration=self.calibration)
        return PredictedError("decision", math.sqrt(square) * scale, records, f"{NOISE}; the margin is 1")

    def _start(self, seed: int) -> KeptPairs:
        return KeptPairs(self._space(seed, self.effective))

    def _count(self, secret: KeptPairs, X: Floats, y: NDArray[Any] | None) -> None:
        assert y is not None
        secret.add(X, y.astype(np.int64))

    def _ready(self, secret: KeptPairs) -> Machines:
        return fit_machines(*secret.all(), len(self.classes_), float(self.C))

    def _draw(self, secret: Machines, promise: Promise) -> Bundle:
        noisy = perturbed_machines(secret, promise, calibration=self.calibration)
        arrays = {
            "weights": noisy.weights,
            "step": np.array([noisy.step]),
            "sigma": np.array([noisy.sigma]),
        }
        return self._bundle(promise, arrays=arrays)

    def _claim(self, promise: Promise, n_features: int | None) -> Claim:
        claim = super()._claim(promise, n_features)
        # Refused here rather than after the debit: a published scale that is not proven for this promise.
        path_scale(1.0, promise, calibration=self.calibration)
        return replace(claim, relation=Relation.REPLACE, mechanism=Mechanism.of(LATTICE_GAUSSIAN))

    def _assumptions(self) -> list[str]:
        return [*super()._assumptions(), GAP_REACHED]

    def _open(self, bundle: Bundle) -> _Machines:
        space = self._space(bundle.about["seed"], self._fitted)
        weights = bundle.arrays["weights"]
        machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        if weights.shape != (machines, 2 * space.features + 1):
            raise ValueError("weights")
        if _noise(bundle) > _LOUDEST:
            return _Machines(space, np.zeros(weights.shape))
        return _Machines(space, float(bundle.arrays["step"][0]) * weights.astype(np.float64))

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
        labels: NDArray[Any] = self.classes_[codes]
        return labels


def _noise(bundle: Bundle) -> float:
    """The standard deviation of the noise at any point, where ‖(φ, 1)‖² = 2."""
    return math.sqrt(2.0) * float(bundle.arrays["sigma"][0])
