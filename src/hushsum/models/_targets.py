"""Models that learn a target: labels of a public list, or numbers of a declared range."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import type_of_target

from hushsum._types import Floats
from hushsum.errors import DataRefused, Parameter, PublicAssumption, UsageError, shown
from hushsum.models._base import PrivateModel, declared, until_released
from hushsum.models._parameters import CLASSES, TARGET_BOUNDS, labels_from_json, labels_to_json
from hushsum.models._record_checks import checked_labels, showing_nothing
from hushsum.records import TARGETS, Bounds, ParameterCheck, level_outside

MOST_FOUND = 100
"""More labels than this are not taken for a public list: to publish them would be to publish the target."""
_PUBLIC_CLASSES = "the list of classes is public"


@declared
class ClassificationModel(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """A model with a list of every class there is, which counts a record by its label's place in that list.

    A subclass has the parameter ``classes`` besides those of every model. Its :meth:`_count` gets whole
    numbers, places in ``classes_``, for ``y``; it says with ``_fewest`` and ``_most`` how many classes it can
    tell apart.

    Privacy
    -------
    Which labels occur is private. With a declared list a label outside of it is refused and the list stays as
    it was; without one the labels found are published as they are, which the claim states as an assumption.
    """

    _fewest: ClassVar[int] = 1
    _most: ClassVar[int | None] = None

    classes: Annotated[Sequence[Any] | None, CLASSES] = None

    @until_released
    def partial_fit(
        self,
        X: object,
        y: object = None,
        classes: object = None,
        *,
        allow_clipping: bool = False,
        **refused: object,
    ) -> Self:
        """Count further records. Spends nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            Every label there is, on the first call, in place of the parameter ``classes``. Without either,
            the labels of the first batch are taken as public, and later batches may have no others.
        allow_clipping : bool
            As for :meth:`fit`.
        """
        self._given_classes = None if classes is None else _distinct(classes)
        try:
            return super().partial_fit(X, y, allow_clipping=allow_clipping, **refused)
        finally:
            del self._given_classes

    def declared_classes(self) -> NDArray[Any]:
        """The labels that are declared, or, after counting, those that the model has.

        Raises
        ------
        UsageError
            if none are declared and nothing has been counted.
        """
        if self.classes is not None:
            return _distinct(self.classes)
        if not hasattr(self, "classes_"):
            raise UsageError(
                "classes",
                "must be declared before records are counted",
                got="none",
                remedy="list every label",
            )
        return self.classes_

    def check_records(
        self, X: object, y: object = None, *, reset: bool = True
    ) -> tuple[Floats, NDArray[Any] | None]:
        """Records, and for each label its place in ``classes_``; checked."""
        records, labels = self._checked(X, y, reset=reset)
        checked_labels(labels)
        given = getattr(self, "_given_classes", None)
        if reset:
            self._settle_classes(labels, given)
        elif given is not None and not np.array_equal(given, self.classes_):
            raise UsageError("classes", "must be those of the first partial_fit", got="others")
        return records, self._codes(labels)

    def _settle_classes(self, labels: NDArray[Any], given: NDArray[Any] | None) -> None:
        declared = given if self.classes is None else _distinct(self.classes)
        classes = showing_nothing(lambda: np.unique(labels), y=labels) if declared is None else declared
        if declared is None and len(classes) > MOST_FOUND:
            raise UsageError(
                "classes",
                f"must be declared where there are more than {MOST_FOUND}",
                got="a target with more: its values, which look like numbers or names, would be published",
                remedy="declare them, or use a regressor",
            )
        self._check_number(classes)
        self._classes_from_labels, self.classes_ = declared is None, classes
        if declared is None:
            warnings.warn(
                "the labels of y are taken as the list of classes, as if everybody knew it, and the claim "
                "says so; declare the classes and nothing is assumed",
                PublicAssumption,
                stacklevel=level_outside(),
            )

    def _check_number(self, classes: NDArray[Any]) -> None:
        if self._most is not None and len(classes) > self._most:
            # scikit-learn's checks look for these words.
            kind = type_of_target(classes)
            raise UsageError(f"Only binary classification is supported. The type of the target is {kind}.")
        if len(classes) < self._fewest:
            rule = "at least one class" if self._fewest == 1 else "two classes or more"
            got = "one class" if len(classes) else "none"
            raise UsageError(
                "classes", f"must name {rule}", got=f"{got}", remedy="declare every label there is"
            )

    def _codes(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Each label's place in ``classes_``."""
        try:
            codes = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
            known = np.array_equal(self.classes_[codes], labels)
        except TypeError:
            known = False
        if not known:
            raise DataRefused(
                "the target must hold declared classes only",
                got="another label",
                remedy=("declare it in ", Parameter("classes"), " too"),
            )
        return codes

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """The share of the points whose class is predicted; as private as the points and labels are."""
        score = super().score
        return float(showing_nothing(lambda: score(X, y, sample_weight), X=X, y=y))

    def _facts(self) -> dict[str, Any]:
        return {"classes": labels_to_json(self.classes_)}

    def _assumptions(self) -> list[str]:
        from_labels = getattr(self, "_classes_from_labels", self.classes is None)
        return [*super()._assumptions(), *([_PUBLIC_CLASSES] if from_labels else [])]

    def _restore(self, facts: dict[str, Any]) -> None:
        self.classes_ = labels_from_json(facts["classes"])
        if not self._fewest <= len(self.classes_) <= (self._most or len(self.classes_)):
            raise ValueError("classes")
        self._classes_from_labels = _PUBLIC_CLASSES in facts["assumptions"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._most is None
        # At ε = 1 the few hundred records of scikit-learn's checks are fewer than privacy can show.
        tags.classifier_tags.poor_score = True
        return tags


def _distinct(classes: object) -> NDArray[Any]:
    """Declared labels, each once and in order."""
    try:
        labels = np.asarray(classes)
        if labels.ndim == 1:
            return np.unique(labels)
    except (ValueError, TypeError):
        pass
    raise UsageError(
        "classes",
        "must be a list of labels of one kind",
        got="something else",
        remedy="declare every label there is",
    )


@declared
class RegressionModel(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """A model that learns a number. A subclass has the parameter ``target_bounds`` besides those of every
    model.
    """

    target_bounds: Annotated[tuple[float, float], TARGET_BOUNDS] = (-1, 1)

    def check_records(
        self, X: object, y: object = None, *, reset: bool = True
    ) -> tuple[Floats, NDArray[Any] | None]:
        """Records and targets as the model counts them, checked."""
        records, target = self._checked(X, y, reset=reset)
        numbers: NDArray[Any] = showing_nothing(lambda: np.asarray(target, np.float64), y=target)
        return records, numbers

    def _parameter_checks(self) -> list[ParameterCheck]:
        box, default = declared_target(self.target_bounds), self._undeclared("target_bounds")
        return [*super()._parameter_checks(), ParameterCheck(box, what=TARGETS, default=default)]

    def _compared(self, X: object, records: Floats, target: NDArray[Any] | None) -> list[Floats]:
        assert target is not None
        return [records, target.reshape(len(records), -1)]

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """R² of the predictions; as private as the points and targets are."""
        score = super().score
        return float(showing_nothing(lambda: score(X, y, sample_weight), X=X, y=y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The few hundred records of scikit-learn's checks lie far outside the default bounds.
        tags.regressor_tags.poor_score = True
        return tags


def declared_target(value: object) -> Bounds:
    """Read a ``target_bounds=`` argument: one (low, high).

    Raises
    ------
    UsageError
        if the value is no such pair.

    >>> declared_target((0, 5000)).high
    (5000.0,)
    """
    try:
        box = Bounds.of(value, 1)
    except UsageError:
        box = None
    if box is None:
        raise UsageError(
            "target_bounds",
            "must be (low, high), finite and with low < high",
            got=shown(value),
            remedy="declare the range that a target may have",
        )
    return box
