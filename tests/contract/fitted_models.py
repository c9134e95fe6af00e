"""Every model, and each of them fitted to the same made-up records."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

import hushsum.models
from hushsum.models import PrivateModel

MODELS: list[type[PrivateModel]] = [
    getattr(hushsum.models, name)
    for name in hushsum.models.__all__
    if name.startswith("Private") and name != "PrivateModel"
]


def records(number: int = 400) -> NDArray[np.float64]:
    return np.random.default_rng(5).uniform(-1.0, 1.0, size=(number, 2))


def target_for(model: Any, X: NDArray[np.float64]) -> NDArray[Any] | None:
    if is_classifier(model):
        return np.where(X[:, 0] > 0.0, 1, 0)
    return X[:, 0] / 2.0 if is_regressor(model) else None


def ask(model: Any, Q: Any) -> Any:
    """Predictions, by the method that the model has for them."""
    name = next(name for name in ("predict", "decision_function") if hasattr(model, name))
    return getattr(model, name)(Q)


def counted(kind: type[PrivateModel], **parameters: Any) -> Any:
    """A model that has counted the records and released nothing."""
    model: Any = kind(random_state=1, **parameters)
    X = records()
    return model.partial_fit(X, target_for(model, X))


def fitted(kind: type[PrivateModel], **parameters: Any) -> Any:
    model: Any = kind(random_state=1, **parameters)
    X = records()
    return model.fit(X, target_for(model, X))
