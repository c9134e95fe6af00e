"""Classification by one released function per class, or by noisy sums of vectors by class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.class_moments import ClassMoments
from hushsum.bases.monomials import MOST_SQUARED, PUBLIC_ROWS
from hushsum.errors import UsageError
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.methods.race import race
from hushsum.models.class_model import ClassModel
from hushsum.models.class_moments_rule import (
    TOTAL_SHARE,
    LinearRule,
    TransformedRule,
    discriminant_basis,
    largest_edge,
    mean_noise,
    means_basis,
    noise_of,
    spectral_edge,
)
from hushsum.models.class_sketches import SketchReading
from hushsum.models.enough_records import COUNT_SHARE
from hushsum.models.parameters import CLASSES, INTEGER, NUMBER, PUBLIC, TEXT, Parameter
from hushsum.models.predicted_error import (
    NOISE,
    PLANNED,
    PredictedError,
    error_of_hash_rows,
)
from hushsum.models.table_model import NEAR, POWER, WIDTH
from hushsum.privacy.claim import Promise
from hushsum.records.transform import Transform
from hushsum.releases.bundle import Bundle
from hushsum.tally.tally import Tally

RULES = ("likelihood", "map")
AUTO, KERNEL, MEANS, DISCRIMINANT = "auto", "kernel", "means", "discriminant"
METHODS = (AUTO, KERNEL, MEANS, DISCRIMINANT)
_UNDECLARED = 10_000
"""The number of records that a method is chosen for where none is declared."""
_MOST_KERNEL_COLUMNS = 32
_PART = "moments"
MOST_ROWS = 1000
_ROWS_AT_ONE = 150
"""Rows of a class at ε = 1. Decisions fall where the sums of the classes are alike and small beside the
noise, so fewer rows serve than elsewhere. Measured on pulsars, occupancy and RNA at ε from 0.1 to 10: the
best number grows about as √ε, and the optimum is flat.
"""


class PrivateClassifier(ClassModel):
    """Predicts the class of a point from what was released about the records of each class.

    Three methods. ``kernel`` compares one released sketch per class: it follows classes of any shape, in a
    few columns (up to some tens) scaled to ``bounds``, with a bandwidth that suits the distance between
    classes. ``means`` compares inner products with noisy class means, and ``discriminant`` also releases one
    matrix of second moments: their boundaries are planes, and they work in hundreds of columns, such as
    embeddings. ``auto`` chooses from the declared quantities alone. Vectors of length 1 need ``radius=1``:
    without it noise is as large as the whole box.

    More than about ``1000/ε`` records are needed. Below about ``100/ε`` the private counts cannot be
    distinguished from noise: it then gives every class the same probability. A class of fewer than ``40/ε``
    records takes no part where two others have more.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    method_ : str
        The method that was chosen.
    class_prior_ : array of shape (n_classes,)
        From the private counts; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record with its label; neighbours: add/remove. A record is in one class of a declared list. The
    kernel rule releases one sketch per class, in parallel composition, each with the whole budget. The other
    rules release one table of whole numbers (`ClassMoments`), whose noise is calibrated to what a record adds
    to its class and to the second moments together. ``public`` rows are assumed to be public, and the claim
    says so. Everything else is computed from what was released.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.repeat([[-0.5, 0.0], [0.5, 0.0]], 3000, axis=0)
    >>> labels = np.repeat(["left", "right"], 3000)
    >>> model = PrivateClassifier(epsilon=1.0, classes=["left", "right"], random_state=0).fit(points, labels)
    >>> model.predict([[-0.6, 0.1], [0.6, 0.1]]).tolist()
    ['left', 'right']
    >>> model.claim_.epsilon
    1.0

    Notes
    -----
    Coleman and Shrivastava, CCS 2021, section 4: maximum likelihood and maximum a posteriori from one sketch
    per class; section 7.2 for public data.
    """

    COMMAND = "classifier"
    PARAMETERS = (
        CLASSES,
        Parameter(
            "method",
            TEXT,
            "What is released of each class: a sketch (kernel), the sum of its vectors (means), or that and "
            "second moments (discriminant). auto: discriminant where the predicted noise in second moments "
            "is below 1/√columns of the squared radius; else kernel in up to 32 columns, and means in more "
            "or where a radius or public rows are given.",
            choices=METHODS,
        ),
        Parameter(
            "rule",
            TEXT,
            "Compare the means f_c(q)/N_c, as if all classes were as frequent (likelihood), or the sums "
            "f_c(q), so that frequent classes weigh more (map). The tails of the kernel are long, so that "
            "the sums of a frequent class outweigh a rare one: the first is usually better even where "
            "frequencies differ.",
            choices=RULES,
        ),
        NEAR,
        POWER,
        Parameter(
            "rows",
            INTEGER,
            "Rows of each class's sketch; a release with pure ε publishes no more of them than suit the "
            "class. 'auto': 150·√ε, or 1000 with delta, whose noise does not grow with rows.",
            choices=("auto",),
            at_least=1,
        ),
        WIDTH,
        Parameter(
            "radius",
            NUMBER,
            "For means and discriminant: the length that no record exceeds, from the middle of bounds and in "
            "units of their half-width; declared, longer records are shortened to it. 1 for vectors of "
            "length 1 and bounds from -1 to 1. Default: half of that of the box.",
            above=0,
            optional=True,
        ),
        Parameter(
            "records",
            INTEGER,
            "About how many there are, declared, for auto; the true number is private. Default: 10,000.",
            at_least=1,
            optional=True,
        ),
        PUBLIC,
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        classes: Sequence[Any] | None = None,
        method: str = "auto",
        rule: str = "likelihood",
        bandwidth: float = 1.0,
        power: int = 4,
        rows: int | str = "auto",
        width: int = 1000,
        radius: float | None = None,
        records: int | None = None,
        public: Any = None,
        bounds: Any = (-1, 1),
        random_state: Any = None,
        budget: Any = None,
        idempotency_key: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.method = method
        self.rule = rule
        self.bandwidth = bandwidth
        self.power = power
        self.rows = rows
        self.width = width
        self.radius = radius
        self.records = records
        self.public = public
        self.bounds = bounds
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    _restored_digest: str | None = None

    def chosen_method(self, n_features: int | None = None, records: int | None = None) -> str:
        """The method for so many columns and a declared number of records; looks at no data."""
        promise = self.check_parameters()
        return self._choose(self._width(n_features), records or self.records or _UNDECLARED, promise)

    def _check_together(self, promise: Promise) -> None:
        if self.method == KERNEL:
            for name in ("radius", "public"):
                if getattr(self, name) is not None:
                    raise UsageError(
                        parameter=name,
                        rule="must be left out for the method kernel",
                        remedy="leave it out, or choose another method",
                    )

    def _choose(self, dim: int, records: int, promise: Promise) -> str:
        if self.method != AUTO:
            return self.method
        if isinstance(self.public, Transform):
            dim = self.public.dim
        if dim <= MOST_SQUARED:
            basis = discriminant_basis(len(self.declared_classes()), dim, records, promise)
            if spectral_edge(basis, promise, records) <= largest_edge(dim):
                return DISCRIMINANT
        if dim <= _MOST_KERNEL_COLUMNS and self.radius is None and self.public is None:
            return KERNEL
        return MEANS

    def _kernel(self, dim: int) -> EuclideanKernel:
        return EuclideanKernel(dim=dim, bandwidth=self.bandwidth, power=self.power)

    def _ball(self, dim: int) -> float:
        """The declared radius, or half of that of the box; with public rows the box itself suffices."""
        if self.radius is not None:
            return float(self.radius)
        return math.sqrt(dim) if self.public is not None else max(1.0, math.sqrt(dim) / 2.0)

    def _start(self, seed: int) -> list[Tally]:
        dim = self.n_features_in_
        self._settle_method()
        if self.method_ == KERNEL:
            kernel = self._kernel(dim)
            return [
                race(kernel, rows=self._rows(), width=self.width, seed=seed, bounds=self.column_bounds())
                for _ in self.classes_
            ]
        return [Tally(self._moments())]

    def _moments(self) -> ClassMoments:
        """What is counted for class means and for the discriminant."""
        transform, classes = self._transform, len(self.classes_)
        dim = self.n_features_in_ if transform is None else transform.dim
        radius = self._ball(dim) if transform is None else transform.radius
        digest = None if transform is None else transform.digest
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        if self.method_ == MEANS:
            return means_basis(classes, dim, promise, radius, digest)
        return discriminant_basis(classes, dim, self.records or _UNDECLARED, promise, radius, digest)

    def _settle_method(self) -> None:
        """Choose the method and learn the transformation, once for each list of records."""
        dim = self.n_features_in_
        self.method_ = self.chosen_method()
        self._transform = self._restored_digest = None
        if isinstance(self.public, Transform):
            self._transform = self.public.of_columns(dim)
        elif self.public is not None:
            rows = self._checked(self.public, reset=False)
            self._transform = Transform.whitening(self._units(rows), input_radius=self._ball(dim))

    def _units(self, X: Floats) -> Floats:
        """Rows clipped to the bounds, from their middle and in units of their half-width."""
        low, high = np.array(self.column_bounds()).T
        units: Floats = (np.clip(X, low, high) - (low + high) / 2.0) / ((high - low) / 2.0)
        return units

    def _vectors(self, X: Floats, transform: Transform | None) -> Floats:
        units = self._units(X)
        return units if transform is None else transform.apply(units)

    def _rows(self) -> int:
        if isinstance(self.rows, str):
            promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
            if not promise.pure or promise.epsilon is None:
                return MOST_ROWS
            return min(MOST_ROWS, max(1, math.ceil(_ROWS_AT_ONE * math.sqrt(promise.epsilon))))
        return self.rows

    def _count(self, secret: list[Tally], X: Floats, y: NDArray[Any] | None) -> None:
        assert y is not None
        if self.method_ != KERNEL:
            secret[0].add(np.column_stack((y, self._vectors(X, self._transform))))
            return
        for code, tally in enumerate(secret):
            members = X[y == code]
            if len(members):
                tally.add(members)

    def _draw(self, secret: list[Tally], promise: Promise) -> Bundle:
        if self.method_ != KERNEL:
            released = secret[0].release(epsilon=self.epsilon, delta=self.delta, count_share=TOTAL_SHARE)
            arrays = {} if self._transform is None else self._transform.arrays()
            return self._bundle(promise, parts={_PART: released}, arrays=arrays)
        parts = {
            f"class {code}": tally.release(epsilon=self.epsilon, delta=self.delta, count_share=COUNT_SHARE)
            for code, tally in enumerate(secret)
        }
        return self._bundle(promise, parts=parts)

    def _open(self, bundle: Bundle) -> SketchReading | TransformedRule:
        if self.method_ == KERNEL:
            functions: list[Any] = [bundle.parts[f"class {code}"] for code in range(len(self.classes_))]
            return SketchReading.of(functions)
        digest = self._digest
        transform = None if digest is None else Transform.from_arrays(bundle.arrays)
        part: Any = bundle.parts[_PART]
        dim = self.n_features_in_ if transform is None else transform.dim
        if (None if transform is None else transform.digest) != digest or part.basis.transform != digest:
            raise ValueError("transformation")
        if (part.basis.classes, part.basis.dim) != (len(self.classes_), dim):
            raise ValueError("classes")
        if transform is not None and transform.columns != self.n_features_in_:
            raise ValueError("columns")
        spread = None if transform is None else transform.variances
        return TransformedRule(LinearRule.of(part, spread), transform)

    def _columns_of_part(self, name: str) -> int:
        if name != _PART:
            return self.n_features_in_
        return int(self._state.bundle.parts[name].basis.dim) + 1  # type: ignore[union-attr]

    @property
    def _digest(self) -> str | None:
        transform: Transform | None = getattr(self, "_transform", None)
        return self._restored_digest if transform is None else transform.digest

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "method": self.method_, "transform": self._digest}

    def _restore(self, facts: dict[str, Any]) -> None:
        super()._restore(facts)
        digest = facts["transform"]
        if facts["method"] not in METHODS[1:] or not (digest is None or isinstance(digest, str)):
            raise ValueError("method")
        self.method_, self._restored_digest = facts["method"], digest

    def _assumptions(self) -> list[str]:
        uses = getattr(self, "_restored_digest", None) is not None or self.public is not None
        return [*super()._assumptions(), *([PUBLIC_ROWS] if uses else [])]

    def _kernel_error(self, dim: int, records: int, promise: Promise) -> float:
        return error_of_hash_rows(
            self._kernel(dim),
            max(1, records // len(self.declared_classes())),
            promise,
            bounds=self.column_bounds(dim),
            rows=self._rows(),
            width=self.width,
        )

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        method = self._choose(n_features, self.records or records, promise)
        if method == KERNEL:
            error = self._kernel_error(n_features, records, promise)
            return PredictedError("mean kernel value of a class", error, records, PLANNED)
        classes = len(self.declared_classes())
        dim = self.public.dim if isinstance(self.public, Transform) else n_features
        basis = means_basis(classes, dim, promise)
        if method == DISCRIMINANT:
            basis = discriminant_basis(classes, dim, records, promise)
        error = mean_noise(basis, noise_of(basis, promise).variance, records / classes)
        note = f"{NOISE}, for vectors of the length of the radius"
        return PredictedError("inner product with the mean of a class", error, records, note)

    def predict_proba(self, X: object) -> Floats:
        """The probability of each class at each point, shape (n_queries, n_classes), by ``rule``.

        They follow the rule as it is stated, not a calibration: where the sums of all classes are below the
        noise they are near to one another.
        """
        queries = self._within_bounds(self._queries(X))
        reading: SketchReading | TransformedRule = self._reading()
        if isinstance(reading, TransformedRule):
            return reading.rule.probabilities(self._vectors(queries, reading.transform), self._fitted("rule"))
        masses = reading.masses(queries, self._fitted("rule"))
        probabilities: Floats = masses / masses.sum(axis=1, keepdims=True)
        return probabilities

    def predict(self, X: object) -> NDArray[Any]:
        """The most probable class of each point, shape (n_queries,)."""
        best = np.argmax(self.predict_proba(X), axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @property
    def class_prior_(self) -> Floats:
        """How frequent each class is, by the private counts; only after the release."""
        reading: SketchReading | TransformedRule = self._open(self.released_)
        counts = reading.counts if reading.counts.any() else np.ones(len(reading.counts))
        priors: Floats = counts / counts.sum()
        return priors
