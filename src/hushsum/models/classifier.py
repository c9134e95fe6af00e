"""Classification by one released function per class, or by noisy sums of vectors by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.bases.class_moments import ClassMoments
from hushsum.methods.race import race
from hushsum.models.class_moments_rule import (
    TOTAL_SHARE,
    LinearRule,
    TransformedRule,
    discriminant_basis,
    means_basis,
)
from hushsum.models.class_sketches import SketchReading
from hushsum.models.classifier_declaration import UNDECLARED, ClassifierDeclaration
from hushsum.models.classifier_method import (
    BOUNDS,
    COLUMN_SCALING,
    KERNEL,
    MEANS,
    METHOD,
    METHODS,
    QUANTILES,
    RADIUS,
    ROWS,
    RULE,
    SCALINGS,
)
from hushsum.models.column_scaling import ColumnScaling, columns_quantiles, split_promise
from hushsum.models.enough_records import COUNT_SHARE
from hushsum.models.model_state import KeptRecords
from hushsum.models.parameters import CLASSES, INTEGER, PUBLIC, SCALE, Parameter
from hushsum.models.table_model import NEAR, POWER, WIDTH
from hushsum.privacy.claim import Promise
from hushsum.records.transform import Transform
from hushsum.releases.bundle import Bundle
from hushsum.tally.tally import Tally

_PART, _QUANTILES = "moments", "quantiles"


class PrivateClassifier(ClassifierDeclaration):
    """Predicts the class of a point from what was released about the records of each class.

    Three methods. ``kernel`` compares one released sketch per class: it follows classes of any shape, in a
    few columns (up to some tens) scaled to ``bounds``, with a bandwidth that suits the distance between
    classes. ``means`` compares inner products with noisy class means, and ``discriminant`` also releases one
    matrix of second moments: their boundaries are planes, and they work in hundreds of columns, such as
    embeddings. ``auto`` chooses from the declared quantities alone. Vectors of length 1 need ``radius=1``:
    without it noise is as large as the whole box. ``discriminant`` measures few columns in private quantiles,
    which suits skewed columns in wide bounds, and keeps records until its release for that. A rare class far
    away from all others loses by it: ``column_scaling="bounds"`` or ``method="kernel"`` is better there.

    More than about ``1000/ε`` records are needed. Below about ``100/ε`` the private counts cannot be
    distinguished from noise: it then gives every class the same probability, unless one has five
    standard errors more records than any other. A class of fewer than ``40/ε`` records takes no part where
    two others have more.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    method_, column_scaling_ : str
        The method that was chosen, and what columns are measured in.
    class_prior_ : array of shape (n_classes,)
        From the private counts; only after the release.
    claim_, released_
        What was spent, and for what; only after the release.

    Privacy
    -------
    Unit: one record with its label; neighbours: add/remove. A record is in one class of a declared list. The
    kernel rule releases one sketch per class, in parallel composition, each with the whole budget. The other
    rules release one table of whole numbers (`ClassMoments`), whose noise is calibrated to what a record adds
    to its class and to the second moments together. Where columns are measured in quantiles, these are chosen
    first, for a fifth of ε, and the table gets the rest: sequential composition. ``public`` rows are assumed
    to be public, and the claim says so. Everything else is computed from what was released.

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
    DEFAULT_BANDWIDTH = 0.5
    PARAMETERS = (
        CLASSES,
        METHOD,
        RULE,
        replace(
            NEAR,
            help=f"{NEAR.help} In more than 8 columns the default grows with their square root, as "
            "distances do.",
        ),
        SCALE,
        POWER,
        ROWS,
        WIDTH,
        RADIUS,
        COLUMN_SCALING,
        Parameter(
            "records",
            INTEGER,
            "About how many there are, declared, for auto; the true number is private. Default: 10,000.",
            at_least=1,
            optional=True,
        ),
        replace(
            PUBLIC,
            help="Rows like the records that are public, without labels: an array or a frame; or an "
            "hs.Transform that was learned from such rows in units of the bounds, -1 to 1. Methods but "
            "kernel learn from them which directions vary how much; bounds='public' takes the range from "
            "them. What is learned from them is stored with the model, and the claim says that they were "
            "assumed to be public; they are not stored.",
        ),
    )

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = None,
        classes: Sequence[Any] | None = None,
        method: str = "auto",
        rule: str = "likelihood",
        bandwidth: float | None = None,
        scale: str | None = None,
        power: int = 4,
        rows: int | str = "auto",
        width: int = 1000,
        radius: float | None = None,
        column_scaling: str = "auto",
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
        self.scale = scale
        self.power = power
        self.rows = rows
        self.width = width
        self.radius = radius
        self.column_scaling = column_scaling
        self.records = records
        self.public = public
        self.bounds = bounds
        self.random_state = random_state
        self.budget = budget
        self.idempotency_key = idempotency_key

    def _start(self, seed: int) -> list[Tally] | KeptRecords:
        dim = self.n_features_in_
        self._settle_method()
        if self.column_scaling_ == QUANTILES:
            return KeptRecords()
        if self.method_ == KERNEL:
            kernel, rows = self._kernel(dim), self._rows()
            box, names = self.column_bounds(), self._table_columns()
            return [
                race(kernel, rows=rows, width=self.width, seed=seed, bounds=box, columns=names)
                for _ in self.classes_
            ]
        return [Tally(self._moments(Promise.of(epsilon=self.epsilon, delta=self.delta)))]

    def _moments(self, promise: Promise) -> ClassMoments:
        """What is counted for class means and for the discriminant."""
        transform, classes = self._transform, len(self.classes_)
        dim = self.n_features_in_ if transform is None else transform.dim
        radius = self._ball(dim) if transform is None else transform.radius
        digest = None if transform is None else transform.digest
        if self.method_ == MEANS:
            return means_basis(classes, dim, promise, radius, digest)
        return discriminant_basis(classes, dim, self.records or UNDECLARED, promise, radius, digest)

    def _settle_method(self) -> None:
        """Choose the method and learn the transformation, once for each list of records."""
        dim = self.n_features_in_
        self.method_ = self.chosen_method()
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        self.column_scaling_ = QUANTILES if self._scales_by_quantiles(dim, self.method_, promise) else BOUNDS
        self._transform = self._restored_digest = None
        if isinstance(self.public, Transform):
            self._transform = self.public.of_columns(dim)
        elif self.public is not None and self.method_ != KERNEL:
            units = self._units(self._public_rows(), self.effective("bounds"))
            self._transform = Transform.whitening(units, input_radius=self._ball(dim))

    def _units(self, X: Floats, bounds: object) -> Floats:
        """Rows clipped to the bounds, from their middle and in units of their half-width."""
        low, high = np.array(self._box(bounds)).T
        units: Floats = (np.clip(X, low, high) - (low + high) / 2.0) / ((high - low) / 2.0)
        return units

    def _vectors(self, X: Floats, bounds: object, transform: Transform | None) -> Floats:
        units = self._units(X, bounds)
        return units if transform is None else transform.apply(units)

    def _count(self, secret: list[Tally] | KeptRecords, X: Floats, y: NDArray[Any] | None) -> None:
        assert y is not None
        if isinstance(secret, KeptRecords):
            low, high = np.array(self.column_bounds()).T
            secret.add(np.clip(X, low, high), y.copy())
            return
        if self.method_ != KERNEL:
            secret[0].add(np.column_stack((y, self._vectors(X, self.effective("bounds"), self._transform))))
            return
        for code, tally in enumerate(secret):
            members = X[y == code]
            if len(members):
                tally.add(members)

    def _draw(self, secret: list[Tally] | KeptRecords, promise: Promise) -> Bundle:
        if isinstance(secret, KeptRecords):
            return self._draw_scaled(*secret.all(), promise)
        spent: Any = {"epsilon": self.epsilon, "delta": self.delta}
        if self.method_ != KERNEL:
            released = secret[0].release(**spent, count_share=TOTAL_SHARE)
            arrays = {} if self._transform is None else self._transform.arrays()
            return self._bundle(promise, parts={_PART: released}, arrays=arrays)
        parts = {
            f"class {code}": tally.release(**spent, count_share=COUNT_SHARE)
            for code, tally in enumerate(secret)
        }
        return self._bundle(promise, parts=parts)

    def _draw_scaled(self, X: Floats, y: NDArray[Any], promise: Promise) -> Bundle:
        """Quantiles of the columns first, then sums of the records in their units.

        Privacy
        -------
        One record present or absent changes two things. Its values take part in the choice of the quantiles,
        which is pure ε₁ (`columns_quantiles`). Given the quantiles, which are public from then on, its vector
        is computed from the record and the quantiles alone (`ColumnScaling`), so it moves the table as
        `ClassMoments` proves, whatever the quantiles are, and the release of the table is (ε − ε₁, δ). By
        adaptive composition both together are (ε, δ), in exact fractions.
        """
        paid, rest = split_promise(promise)
        box = self.column_bounds()
        quantiles = columns_quantiles(X, box, paid)
        vectors = ColumnScaling.of(box, quantiles).units(X)
        tally = Tally(self._moments(rest)).add(np.column_stack((y, vectors)))
        left: Any = {"epsilon": rest.epsilon, "delta": rest.delta or None}
        released = tally.release(**left, count_share=TOTAL_SHARE)
        return self._bundle(promise, parts={_PART: released}, arrays={_QUANTILES: quantiles})

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
        scaling = None
        if self.column_scaling_ == QUANTILES:
            scaling = ColumnScaling.of(self._box(self._fitted("bounds")), bundle.arrays[_QUANTILES])
        return TransformedRule(LinearRule.of(part, spread), transform, scaling)

    def _part_columns(self) -> dict[str, int] | dict[str, None]:
        if self.method_ != KERNEL:
            return {_PART: None}
        return {f"class {code}": self.n_features_in_ for code in range(len(self.classes_))}

    @property
    def _digest(self) -> str | None:
        transform: Transform | None = getattr(self, "_transform", None)
        return self._restored_digest if transform is None else transform.digest

    def _facts(self) -> dict[str, Any]:
        chosen = {"method": self.method_, "column_scaling": self.column_scaling_, "transform": self._digest}
        return {**super()._facts(), **chosen}

    def _restore(self, facts: dict[str, Any]) -> None:
        super()._restore(facts)
        digest = facts["transform"]
        if facts["method"] not in METHODS[1:] or not (digest is None or isinstance(digest, str)):
            raise ValueError("method")
        if facts["column_scaling"] not in SCALINGS[1:]:
            raise ValueError("scaling")
        self.method_, self._restored_digest = facts["method"], digest
        self.column_scaling_ = facts["column_scaling"]

    def predict_proba(self, X: object) -> Floats:
        """The probability of each class at each point, shape (n_queries, n_classes), by ``rule``.

        They follow the rule as it is stated, not a calibration: where the sums of all classes are below the
        noise they are near to one another.
        """
        queries = self._within_bounds(self._queries(X))
        reading: SketchReading | TransformedRule = self._reading()
        if isinstance(reading, TransformedRule):
            if reading.scaling is not None:
                vectors = reading.scaling.units(queries)
            else:
                vectors = self._vectors(queries, self._fitted("bounds"), reading.transform)
            return reading.rule.probabilities(vectors, self._fitted("rule"))
        masses = reading.masses(queries, self._fitted("rule"))
        return np.asarray(masses / masses.sum(axis=1, keepdims=True))

    def predict(self, X: object) -> NDArray[Any]:
        """The most probable class of each point, shape (n_queries,)."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    @property
    def class_prior_(self) -> Floats:
        """How frequent each class is, by the private counts; only after the release."""
        reading: SketchReading | TransformedRule = self._reading()
        counts = reading.counts if reading.counts.any() else np.ones(len(reading.counts))
        priors: Floats = counts / counts.sum()
        return priors
