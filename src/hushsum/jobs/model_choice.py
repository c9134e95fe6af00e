"""A model as a person names it: by a word and the parameters given for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from hushsum.errors import UsageError
from hushsum.models.base import MODELS, PARAMETERS_OF_THE_OWNER, PrivateModel
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.request import check_declared_delta

NAMES: Final = {
    "density": "PrivateDensity",
    "classifier": "PrivateClassifier",
    "outliers": "PrivateOutlierDetector",
    "modes": "PrivateModes",
    "regressor": "PrivateRegressor",
    "linear-svc": "PrivateLinearSVC",
    "neighbors": "PrivateNeighbors",
    "sampler": "PrivateSampler",
    "histogram": "PrivateHistogram",
    "gaussian-process": "PrivateGaussianProcessRegressor",
    "kernel-svc": "PrivateKernelSVC",
}
"""What the command line calls each model."""


_KEEPING: Final = ("auto", "objective", "ops", "adaops")
"""Methods of linear models that keep, or may keep, the clipped records."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model's name and the parameters given for it; the others stay at the model's defaults."""

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def build(self) -> PrivateModel:
        """The estimator, not yet fitted.

        Raises
        ------
        UsageError
            if there is no such model, or it has no such parameter.
        """
        import hushsum.models  # noqa: F401  # the models make themselves known

        known = [name for name, kind in NAMES.items() if kind in MODELS]
        if self.name not in known:
            raise UsageError(f"model must be one of {', '.join(known)}, got {self.name!r}; choose one")
        model = MODELS[NAMES[self.name]]()
        allowed = sorted(set(model.get_params(deep=False)) - PARAMETERS_OF_THE_OWNER | {"random_state"})
        for name in self.parameters:
            if name not in allowed:
                raise UsageError(
                    f"the {self.name} model has no parameter {name!r}; it has {', '.join(allowed)}"
                )
        model.set_params(**self.parameters)
        return model


def takes_target(model: PrivateModel) -> bool:
    """Whether the model learns a column from the others."""
    return bool(model.__sklearn_tags__().target_tags.required)


def takes_labels(model: PrivateModel) -> bool:
    """Whether its target is a label, and not a number."""
    return bool(model.__sklearn_tags__().estimator_type == "classifier")


def kept_numbers(model: PrivateModel, columns: int) -> int:
    """How many numbers the model keeps of each record until its release; 0 where it only counts.

    >>> from hushsum.models import PrivateKernelSVC, PrivateModes
    >>> kept_numbers(PrivateKernelSVC(features=10), 2), kept_numbers(PrivateModes(), 2)
    (20, 0)
    """
    given = model.get_params(deep=False)
    if given.get("inputs") == "private":
        return 0
    features = given.get("features")
    if features is not None:
        return 2 * (features if isinstance(features, int) else 128)
    linear = "ridge" in given or "theta_bound" in given
    keeps = given.get("outlier_share") is not None or (linear and given["method"] in _KEEPING)
    return columns + 1 if keeps else 0


def promise_of(model: PrivateModel) -> Promise:
    """The ε and δ of the model's release, told before a large file is read.

    Raises
    ------
    ClaimError
        if they cannot be claimed.
    """
    promise = Promise.of(epsilon=model.epsilon, delta=model.delta)
    check_declared_delta(promise, None)
    return promise


def claim_of(model: PrivateModel) -> Claim:
    """What the release of a model that has counted its records will claim, told before anything is drawn."""
    return model._claim(promise_of(model))


def name_of(model: PrivateModel) -> str:
    """What the command line calls a model.

    >>> from hushsum.models import PrivateModes
    >>> name_of(PrivateModes())
    'modes'
    """
    kind = type(model).__name__
    return next((name for name, each in NAMES.items() if each == kind), kind)
