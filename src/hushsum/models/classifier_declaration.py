"""What a classifier's declared quantities decide: the method, units of the columns, and predicted errors."""

from __future__ import annotations

import math
from typing import Any

from hushsum.bases.monomials import PUBLIC_ROWS
from hushsum.errors import Argument, UsageError
from hushsum.kernels.bandwidth_scale import in_scale
from hushsum.kernels.base import Kernel
from hushsum.kernels.euclidean import EuclideanKernel
from hushsum.models.class_moments_rule import discriminant_basis, mean_noise, means_basis, noise_of
from hushsum.models.classification_model import ClassificationModel
from hushsum.models.classifier_method import (
    AUTO,
    DISCRIMINANT,
    KERNEL,
    QUANTILES,
    bandwidth_growth,
    chosen_class_method,
    class_advice,
    default_rows,
    scales_by_quantiles,
)
from hushsum.models.column_scaling import split_promise
from hushsum.models.predicted_error import (
    NOISE,
    PLANNED,
    PredictedError,
    error_of_hash_rows,
)
from hushsum.privacy.claim import Promise
from hushsum.privacy.integer_noise import LAPLACE
from hushsum.privacy.mechanism import Mechanism
from hushsum.privacy.private_choice import PERMUTE_AND_FLIP
from hushsum.records.transform import Transform

UNDECLARED = 10_000
"""The number of records that a method is chosen for where none is declared."""


class ClassifierDeclaration(ClassificationModel):
    """What follows from the parameters of a classifier before it sees a record, for `PrivateClassifier`.

    Privacy
    -------
    Nothing here looks at records: the method, the units and the claim are functions of what is declared.
    """

    method: str
    bandwidth: float | None
    scale: str | None
    power: int
    rows: int | str
    width: int
    radius: float | None
    column_scaling: str
    records: int | None
    public: Any

    _restored_digest: str | None = None

    def chosen_method(self, n_features: int | None = None, records: int | None = None) -> str:
        """The method for so many columns and a declared number of records; looks at no data."""
        promise = self.check_parameters()
        return self._choose(self._width(n_features), records or self.records or UNDECLARED, promise)

    def _check_together(self, promise: Promise) -> None:
        if self.method == KERNEL and self.radius is not None:
            raise UsageError(
                parameter="radius",
                rule="must be left out for the method kernel",
                remedy="leave it out, or choose another method",
            )
        if self.column_scaling != QUANTILES:
            return
        for name in ("radius", "public"):
            if getattr(self, name) is not None:
                raise UsageError(
                    parameter=name,
                    rule=("must be left out with ", Argument("column_scaling", QUANTILES)),
                    remedy="leave it out, or measure columns in bounds",
                )
        if self.method == KERNEL:
            raise UsageError(
                parameter="column_scaling",
                rule="must be bounds or auto for the method kernel",
                got=QUANTILES,
                remedy="leave it out, or choose another method",
            )

    def _uses_public(self) -> bool:
        return self.method != KERNEL or super()._uses_public()

    def _choose(self, dim: int, records: int, promise: Promise, classes: int | None = None) -> str:
        given: dict[str, Any] = {
            "radius": self.radius,
            "public": self.public,
            "column_scaling": self.column_scaling,
        }
        number = len(self.declared_classes()) if classes is None else classes
        return chosen_class_method(
            self.method, dim, classes=number, records=records, promise=promise, **given
        )

    def _scales_by_quantiles(self, dim: int, method: str, promise: Promise) -> bool:
        return scales_by_quantiles(
            self.column_scaling,
            method,
            dim,
            records=self.records or UNDECLARED,
            promise=promise,
            radius=self.radius,
            public=self.public,
        )

    def _mechanism(self, promise: Promise, n_features: int | None) -> Mechanism:
        """Quantiles and noise are two mechanisms under one promise. Whether quantiles are used needs the
        number of columns.
        """
        # Hash rows, of which a record moves one cell each, always have less variance by Laplace noise.
        hashed = promise.pure and self.method == KERNEL
        noise = Mechanism.of(LAPLACE) if hashed else super()._mechanism(promise, n_features)
        scaled = Mechanism.of(PERMUTE_AND_FLIP) + noise
        if n_features is not None:
            return scaled if self._keeps(n_features, promise) else noise
        return {QUANTILES: scaled, AUTO: scaled | noise}.get(self.column_scaling, noise)

    def _keeps(self, dim: int, promise: Promise) -> bool:
        """Whether records are kept until quantiles are drawn; two classes where none are declared."""
        if self._restored_digest is not None:
            return False
        known = self.classes is not None or hasattr(self, "classes_")
        classes = len(self.declared_classes()) if known else 2
        method = self._choose(dim, self.records or UNDECLARED, promise, classes)
        return self._scales_by_quantiles(dim, method, promise)

    def _kept_per_record(self, n_features: int) -> int:
        promise = Promise.of(epsilon=self.epsilon, delta=self.delta)
        return n_features + 1 if self._keeps(n_features, promise) else 0

    def compared_by(self, n_features: int) -> list[Kernel]:
        """The kernel of the sketches, where that is the method."""
        return [self._kernel(n_features)] if self.chosen_method(n_features) == KERNEL else []

    def _kernel(self, dim: int) -> Kernel:
        plain = EuclideanKernel(dim=dim, bandwidth=self.effective("bandwidth", dim), power=self.power)
        return in_scale(plain, self.effective("scale", dim), self.column_bounds(dim))

    def _default_bandwidth(self, n_features: int) -> float:
        """Records of many columns are far from each other: at a fixed bandwidth their sums would be noise."""
        return self.DEFAULT_BANDWIDTH * bandwidth_growth(n_features)

    def _ball(self, dim: int) -> float:
        """The declared radius, or half of that of the box; with public rows the box itself suffices."""
        if self.radius is not None:
            return float(self.radius)
        return math.sqrt(dim) if self.public is not None else max(1.0, math.sqrt(dim) / 2.0)

    def _rows(self) -> int:
        if isinstance(self.rows, str):
            return default_rows(Promise.of(epsilon=self.epsilon, delta=self.delta))
        return self.rows

    def _assumptions(self) -> list[str]:
        # Which method is chosen may not be known yet; the kernel rule alone learns no transformation.
        learns = self.public is not None and self.method != KERNEL
        uses = getattr(self, "_restored_digest", None) is not None or learns
        return [*super()._assumptions(), *([PUBLIC_ROWS] if uses else [])]

    def _advice(self, n_features: int, promise: Promise) -> list[str]:
        if self.classes is None:
            return []
        return class_advice(
            self._choose(n_features, self.records or UNDECLARED, promise),
            n_features,
            automatic=self.method == AUTO,
            two_classes=len(self.declared_classes()) == 2,
            pure=promise.pure,
            undeclared=self.radius is None and self.public is None,
        )

    def _predicted_error(self, records: int, n_features: int, promise: Promise) -> PredictedError:
        method = self._choose(n_features, self.records or records, promise)
        if method == KERNEL:
            each = max(1, records // len(self.declared_classes()))
            box, rows = self.column_bounds(n_features), self._rows()
            kernel = self._kernel(n_features)
            error = error_of_hash_rows(kernel, each, promise, bounds=box, rows=rows, width=self.width)
            return PredictedError("mean kernel value of a class", error, records, PLANNED)
        classes = len(self.declared_classes())
        dim = self.public.dim if isinstance(self.public, Transform) else n_features
        if self._scales_by_quantiles(n_features, method, promise):
            _, promise = split_promise(promise)
        basis = means_basis(classes, dim, promise)
        if method == DISCRIMINANT:
            basis = discriminant_basis(classes, dim, records, promise)
        error = mean_noise(basis, noise_of(basis, promise).variance, records / classes)
        note = f"{NOISE}, for vectors of the length of the radius"
        return PredictedError("inner product with the mean of a class", error, records, note)
