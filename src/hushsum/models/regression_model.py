"""Models of a number whose range is declared."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from hushsum._types import Floats
from hushsum.errors import UsageError, shown
from hushsum.models.base import PrivateModel
from hushsum.models.record_checks import showing_nothing
from hushsum.records.bounds import Bounds
from hushsum.records.data_derived_parameters import TARGETS, ParameterCheck


class RegressionModel(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """A model that learns a number. A subclass has the parameter ``target_bounds`` besides those of every
    model.
    """

    target_bounds: tuple[float, float]

    def check_records(
        self, X: object, y: object = None, *, reset: bool = True
    ) -> tuple[Floats, NDArray[Any] | None]:
        """Records and targets as the model counts them, checked."""
        records, target = self._checked(X, y, reset=reset)
        numbers: NDArray[Any] = showing_nothing(lambda: np.asarray(target, np.float64), y=target)
        return records, numbers

    def _parameter_checks(self) -> list[ParameterCheck]:
        return [
            *super()._parameter_checks(),
            ParameterCheck(declared_target(self.target_bounds), what=TARGETS),
        ]

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
            parameter="target_bounds",
            rule="must be (low, high), finite and with low < high",
            got=shown(value),
            remedy="declare the range that a target may have",
        )
    return box
