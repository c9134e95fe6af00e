"""What the release of a model will claim, and how large its error will be, before any record is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import HushsumError, UsageError
from hushsum.jobs.model_catalogue import ModelChoice, takes_labels, takes_target
from hushsum.models.base import PrivateModel
from hushsum.models.density import PrivateDensity
from hushsum.models.density_tables import normalising_constant
from hushsum.models.predicted_error import NOISE, PredictedError
from hushsum.privacy.claim import Claim
from hushsum.privacy.functional_perturbation import path_scale
from hushsum.records.bounds import Bounds


def claim_beforehand(
    choice: ModelChoice,
    *,
    columns: Sequence[str],
    target: str | None = None,
    classes: Sequence[str] | None = None,
) -> Claim:
    """The claim of a model whose columns, and classes if it has any, are declared.

    The model computes its claim, and rehearses its release on made-up records, one in the middle of the
    bounds for each class, which are nobody's; that spends nothing. So every parameter is checked as it will
    be, nothing private comes near, and what cannot be drawn is reported before a budget is debited for it.

    >>> choice = ModelChoice("kernel-svc", {"epsilon": 1.0, "delta": 1e-6})
    >>> claim_beforehand(choice, columns=["age"], target="ill", classes=["no", "yes"]).relation.value
    'replace'

    Raises
    ------
    UsageError
        for a parameter, a target or classes that do not suit the model.
    ClaimError
        if the promise cannot be claimed.
    """
    model: Any = choice.build()
    check_target(model, columns, target, classes)
    X, y = made_up(model, columns, target, classes)
    claim: Claim = model.claim(len(columns))
    _tried(lambda: model.partial_fit(X, y, allow_clipping=True).release())
    return claim


def predicted_error(
    choice: ModelChoice,
    *,
    records: int,
    columns: Sequence[str],
    target: str | None = None,
    classes: Sequence[str] | None = None,
    exact: bool = False,
) -> PredictedError | None:
    """The predicted error of a model; None where it depends on more than what is declared, as that of a
    regression does.

    ``records`` is a declared or guessed number, not the length of private data; ``exact`` is for the mode of
    that name.

    >>> choice = ModelChoice("density", {"epsilon": 1.0, "bandwidth": 0.1})
    >>> predicted = predicted_error(choice, records=10_000, columns=["x"])
    >>> predicted.of, 0.0 < predicted.error < 0.01
    ('density', True)
    """
    model: Any = choice.build()
    check_target(model, columns, target, classes)
    if classes is not None:
        model.set_params(classes=list(classes))
    if exact and isinstance(model, PrivateDensity):
        kernel = model.kernels(len(columns))[0]
        scale = path_scale(math.sqrt(2.0), model.check_parameters()) / records
        return PredictedError("density", scale / (normalising_constant(kernel) or 1.0), records, NOISE)
    predicted: PredictedError | None = model.predicted_error(records, len(columns))
    return predicted


def _tried(step: Callable[[], object]) -> None:
    """A step on made-up records; whatever it does not like are settings."""
    try:
        step()
        return
    except HushsumError:
        raise
    except (ValueError, TypeError, ArithmeticError):
        pass
    raise UsageError(
        parameter="settings",
        rule="must have the types that the model declares",
        got="others",
        remedy="see the list of models",
    )


def made_up(
    model: PrivateModel, columns: Sequence[str], target: str | None, classes: Sequence[str] | None
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """Synthetic records: one in the middle of the bounds, for each declared class if there are any.

    Raises
    ------
    UsageError
        if bounds or classes are not declared.
    """
    if takes_labels(model):
        if classes is None:
            raise UsageError(
                parameter="classes",
                rule="must be declared before the claim is shown",
                got="none",
                remedy="list every label there is",
            )
        model.set_params(classes=list(classes))
    box = Bounds.of(model.effective("bounds", len(columns)), len(columns), columns)
    if box is None:
        raise UsageError(
            parameter="bounds",
            rule="must be declared",
            got="none",
            remedy="give [low, high], or one pair for each column",
        )
    labels = None if target is None else np.array(classes if classes else [0.0])
    middle = (np.array(box.low) + np.array(box.high)) / 2.0
    return np.tile(middle, (1 if labels is None else len(labels), 1)), labels


def check_target(
    model: PrivateModel, columns: Sequence[str] | None, target: str | None, classes: Sequence[str] | None
) -> None:
    """Refuse a target for a model that learns none, or none for one that does; classes alike; and columns or
    classes that are named twice.
    """
    if takes_target(model) and target is None:
        raise UsageError(
            parameter="target",
            rule=f"must be given for the {model.COMMAND} model",
            remedy="name the column that is to be predicted",
        )
    if target is not None and not takes_target(model):
        raise UsageError(
            parameter="target", rule=f"must be left out: the {model.COMMAND} model predicts no column"
        )
    if classes is not None and not takes_labels(model):
        raise UsageError(
            parameter="classes",
            rule=f"must be left out: {type(model).__name__} has none",
        )
    for name, listed in (("columns", columns or ()), ("classes", classes or ())):
        if len(set(listed)) != len(listed):
            raise UsageError(
                parameter=name,
                rule="must be named once each",
                got="one twice",
                remedy="leave it out",
            )
    if target is not None and target in (columns or ()):
        raise UsageError(
            parameter="columns",
            rule=f"must not contain the target {target!r}",
            remedy="leave it out",
        )
