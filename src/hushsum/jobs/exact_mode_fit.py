"""Models in exact mode: the function of the kernel itself, answered where the records are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import (
    AlreadyPublished,
    Argument,
    DataRefused,
    HushsumError,
    Parameter,
    SecretRefused,
    UsageError,
)
from hushsum.jobs.deliver_release import LedgerOptions
from hushsum.jobs.fit_model import TrainingFiles, training_batches
from hushsum.jobs.model_catalogue import EXACT, ModelChoice, takes_labels
from hushsum.jobs.model_claim import check_target, made_up
from hushsum.jobs.model_records import read_classes
from hushsum.jobs.progress import Progress
from hushsum.kernels.base import Kernel
from hushsum.models.base import PrivateModel
from hushsum.models.feature_space import declared_kernel
from hushsum.models.parameters import labels_to_json, to_json
from hushsum.privacy.claim import Claim, Promise
from hushsum.privacy.functional_perturbation import ANALYTIC
from hushsum.privacy.spending import Booking, spend_json
from hushsum.served import (
    SecretFunction,
    ServedFunction,
    SqliteStore,
    density_function,
    gaussian_process_function,
    kernel_svm_functions,
    load_secret_functions,
    path_claim,
    save_secret_functions,
    serve,
)
from hushsum.served.function import subject_of

_NO_FEATURES: Final = "which answers from the kernel itself"
_OF_FILES: Final = {
    "density": {"method": _NO_FEATURES},
    "gaussian-process": {"inputs": "which protects targets alone", "features": _NO_FEATURES},
    "kernel-svc": {"features": _NO_FEATURES},
}
"""The settings of each model that mean something for a released file alone, and why."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SecretModel:
    """Functions of private records, their public description, and where they are kept; secret.

    Everything is under one folder and name: ``NAME.secret`` holds the functions, ``NAME.0.answers`` and so on
    the queries that each has answered. They belong together, and are as secret as the records.
    """

    functions: list[SecretFunction]
    about: dict[str, Any]

    @property
    def claim(self) -> Claim:
        """What all answers of all functions together promise."""
        return path_claim(self._promise, self.functions[0], calibration=self.about["calibration"])

    @property
    def _promise(self) -> Promise:
        stated = self.about["promise"]
        return Promise.of(epsilon=stated["epsilon"], delta=stated["delta"])

    def save(self, place: Path, *, encryption_key: bytes | None) -> None:
        """Write it down, for the owner of the process alone."""
        save_secret_functions(
            self.functions, place.with_suffix(".secret"), about=self.about, encryption_key=encryption_key
        )

    @classmethod
    def load(cls, place: Path, *, encryption_key: bytes | None) -> SecretModel:
        """What :meth:`save` wrote."""
        return cls(*load_secret_functions(place.with_suffix(".secret"), encryption_key=encryption_key))

    def open(self, place: Path, ledger: LedgerOptions) -> None:
        """Pay once, and open the functions for questions. Resumes wherever an earlier attempt ended."""
        booking = Booking.of(ledger.budget(), ledger.idempotency_key)
        assert booking is not None
        promise: Any = self.about["promise"]
        serving = {"most_questions": self.about["most_questions"], "calibration": self.about["calibration"]}
        recorded: dict[str, Any] = {
            "budget": booking.budget,
            "idempotency_key": booking.idempotency_key,
        }
        first: ServedFunction | None = None
        # The last one pays: what is paid for is there.
        for number, function in reversed(list(enumerate(self.functions))):
            store = SqliteStore(answers_file(place, number))
            first = serve(function, **promise, store=store, **serving, **({} if number else recorded))
        assert first is not None
        with suppress(AlreadyPublished):
            spend_json(booking, first.claim, subject_of(first), lambda: {"opened": True})

    def __repr__(self) -> str:
        return "<SecretModel CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            rule="a function of private data must not be pickled or copied", remedy="serve or release it"
        )


def exact_claim(
    choice: ModelChoice,
    *,
    columns: Sequence[str],
    target: str | None = None,
    classes: Sequence[str] | None = None,
    most_questions: int,
) -> Claim:
    """What serving a model will claim, from made-up records; see `claim_beforehand`.

    Raises
    ------
    UsageError
        for a model without this mode, and for parameters that do not suit it.
    """
    model = _built(choice, columns, target, classes)
    X, y = made_up(model, columns, target, classes)
    return _secret_model(choice, model, [(X, y)], columns, target, most_questions).claim


def secret_model(
    choice: ModelChoice, records: TrainingFiles, *, most_questions: int, progress: Progress | None = None
) -> SecretModel:
    """Fit a model in exact mode. Nothing is spent before it is opened.

    Raises
    ------
    UsageError
        for a model without this mode, and for parameters that do not suit it.
    DataRefused
        for records that break a rule, or too many of them.
    """
    columns = records.columns or ()
    model: Any = _built(choice, columns, records.target, records.classes)
    kept: list[tuple[Any, Any]] = []
    number = 0
    for table, target in training_batches(records, labels=takes_labels(model), progress=progress):
        if records.classes is not None and target is not None and not kept:
            model.set_params(classes=read_classes(records.classes, target))
        number += table.num_rows
        if number > EXACT[choice.name]:
            raise DataRefused(
                rule=f"a {choice.name} model in exact mode takes at most {EXACT[choice.name]} records",
                got="more",
                remedy="release it as a file",
            )
        kept.append((table, target))
    return _secret_model(choice, model, kept, columns, records.target, most_questions)


def _built(
    choice: ModelChoice, columns: Sequence[str], target: str | None, classes: Sequence[str] | None
) -> PrivateModel:
    if choice.name not in EXACT:
        raise UsageError(
            parameter="model",
            rule=("must be ".__add__(" or ".join(EXACT))),
            got=repr(choice.name),
            remedy="release this model as a file",
        )
    if choice.public is not None:
        raise UsageError(
            parameter="public",
            rule="must be left out in exact mode",
            remedy="declare bounds and bandwidth, or release the model as a file",
        )
    model = choice.build()
    _check_settings(choice.name, model)
    check_target(model, columns, target, classes)
    if takes_labels(model) and classes is None:
        # The labels of the records would be shown as the list of classes, and decide the number of functions.
        raise UsageError(
            parameter="classes",
            rule="must be declared in exact mode",
            got="none",
            remedy="list every label there is",
        )
    if model.check_parameters().pure:
        raise UsageError(
            parameter="delta",
            rule="must be above 0 in exact mode",
            got="none",
            remedy=("give ", Argument("delta", 1e-6)),
        )
    return model


def _check_settings(name: str, model: PrivateModel) -> None:
    """Refuse what the owner set and exact mode would not do."""
    given, usual = model.get_params(deep=False), type(model)().get_params(deep=False)
    for setting, reason in _OF_FILES[name].items():
        # Functional perturbation is what exact mode does.
        if given[setting] not in (usual[setting], "functional"):
            raise UsageError(
                parameter=setting,
                rule=f"must be {usual[setting]!r} in exact mode, {reason}",
                remedy="leave it out, or release the model as a file",
            )


def _secret_model(
    choice: ModelChoice,
    model: Any,
    batches: Sequence[tuple[Any, Any]],
    columns: Sequence[str],
    target: str | None,
    most_questions: int,
) -> SecretModel:
    try:
        checked = [model.check_records(X, y, reset=i == 0) for i, (X, y) in enumerate(batches)]
        X = np.concatenate([part for part, _ in checked])
        y = None if target is None else np.concatenate([part for _, part in checked])
        functions = _functions(choice.name, model, X, y)
    except HushsumError:
        raise
    except (ValueError, TypeError, ArithmeticError):
        functions = []
    if not functions:
        raise DataRefused(
            rule="the records must be numbers, and the target what the model learns",
            got="others",
            remedy="check the columns",
        )
    parameters = {name: value for name, value in choice.parameters.items() if name != "random_state"}
    about = {
        "kind": choice.name,
        "estimator": type(model).__name__,
        "mode": "exact",
        "features": list(columns),
        "bounds": [list(pair) for pair in model.column_bounds()],
        "target": target,
        "target_bounds": to_json("target_bounds", getattr(model, "target_bounds", None)),
        "classes": labels_to_json(model.classes_) if takes_labels(model) else None,
        "parameters": to_json("parameters", parameters),
        "promise": {"epsilon": model.epsilon, "delta": model.delta},
        "calibration": getattr(model, "calibration", ANALYTIC),
        "most_questions": most_questions,
    }
    return SecretModel(functions, about)


def _functions(name: str, model: Any, X: Floats, y: NDArray[Any] | None) -> list[SecretFunction]:
    box = model.column_bounds()
    if name == "density":
        kernels = model.kernels()
        if len(kernels) != 1:
            raise UsageError(
                parameter="bandwidth",
                rule=("and ", Parameter("kernel"), " must be one of each in exact mode"),
                got="several",
                remedy="give one of each",
            )
        return [density_function(X, kernels[0], bounds=box, relation="replace")]
    kernel: Kernel = declared_kernel(model, model.n_features_in_)
    if name == "kernel-svc":
        return kernel_svm_functions(X, y, len(model.classes_), kernel, bounds=box, C=float(model.C))
    pair: Any = tuple(model.target_bounds)
    noise = float(model.noise)
    return [gaussian_process_function(X, y, kernel, bounds=box, target_bounds=pair, noise=noise)]


def answers_file(place: Path, number: int) -> Path:
    """Where the answers of a function are kept; secret."""
    return place.with_suffix(f".{number}.answers")
