"""Models and files: which models there are, fitting them, in exact mode too, and synthetic tables."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum import declaration
from hushsum._types import Floats
from hushsum.declaration import FROM_PUBLIC, OWNER, PAIR, SETTING
from hushsum.errors import (
    AlreadyPublished,
    Argument,
    ClaimError,
    DataRefused,
    FilePath,
    Parameter,
    SecretRefused,
    UsageError,
)
from hushsum.kernels import check_cap, kernel_in_words
from hushsum.models import (
    MODELS,
    NOISE,
    PredictedError,
    PrivateDensity,
    PrivateModel,
    PrivateSynthesizer,
    labels_to_json,
    model_of,
    normalising_constant,
    to_json,
)
from hushsum.privacy import ANALYTIC, Booking, Claim, Promise, Relation, path_scale, spend_json
from hushsum.records import (
    Bounds,
    DeclaredColumn,
    RecordStream,
    bounds_in_words,
    default_bounds_refused,
    names_in_words,
    open_batches,
    pyarrow,
    refuse_repeated,
)
from hushsum.releases import Bundle, Prepared
from hushsum.secret_functions import (
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
    subject_of,
)

from ._answers import features_of, labels_of, read_classes, tried
from ._deliver import Delivered, Destination, LedgerOptions, deliver
from ._files import (
    STANDARD,
    Meter,
    Progress,
    PublicFile,
    RecordFiles,
    TrainingFiles,
    all_paths,
    check_answers_output,
    check_table_output,
    mixed_batches,
    read_public,
    refuse_private_file,
    write_table,
)

# The models that have exact mode, and the most records of each: the last two solve with a full matrix.
EXACT: Final = {"density": 1 << 17, "gaussian-process": 4000, "kernel-svc": 4000}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model's name and the parameters given for it; the others stay at the model's defaults.

    ``public`` are public rows: they decide what may be left to them and is not given.
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    public: Any = field(default=None, repr=False, compare=False)

    def build(self) -> PrivateModel:
        """The estimator, not yet fitted; its parameters are checked.

        Raises
        ------
        UsageError
            if there is no such model, or it has no such parameter.
        """
        kind = model_class(self.name)
        allowed = [
            each.name for each in kind.PARAMETERS if each.group != OWNER or each.name == "random_state"
        ]
        for name in self.parameters:
            if name not in allowed:
                rule = f"must be a parameter of the {self.name} model"
                raise UsageError(name, rule, remedy=f"it has {', '.join(sorted(allowed))}")
        given: dict[str, Any] = dict.fromkeys(self.left_to_public(), FROM_PUBLIC)
        rows = {} if self.public is None else {"public": self.public}
        model = kind(**given, **rows, **self.parameters)
        model.check_parameters()
        return model

    def left_to_public(self) -> list[str]:
        """The parameters that public rows decide because they are not given. A radius is in units of the
        bounds, so where one is given these keep their default.

        >>> ModelChoice("outliers", {"bandwidth": 0.5}, public=[[0.0], [1.0]]).left_to_public()
        ['bounds']

        Raises
        ------
        UsageError
            if the model takes no public rows.
        """
        if self.public is None:
            return []
        declared = model_class(self.name).PARAMETERS
        if all(each.name != "public" for each in declared):
            raise UsageError("public", f"must be left out: the {self.name} model takes no public rows")
        left = [each.name for each in declared if each.from_public and each.name not in self.parameters]
        return [] if self.parameters.get("radius") is not None else left

    def assumed(self) -> list[str]:
        """Parameters of the records and of the claim that were not given and whose default is seldom meant:
        ranges that records are clipped to, δ, and inputs that are taken to be public.
        """
        defaults = inspect.signature(model_class(self.name)).parameters
        seldom = [each for each in ("bounds", "target_bounds", "delta", "inputs") if each in defaults]
        known = {*self.parameters, *self.left_to_public()}
        return [each for each in seldom if each not in known and defaults[each].default]


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A model as a form shows it. ``learns`` is ``"label"``, ``"number"`` or None for one without a
    target; ``takes_public`` says whether public rows may decide some parameters; ``relation`` is that of its
    claim with the defaults. ``modes`` are ``"file"`` and, where it has
    it, ``"exact"``.
    """

    name: str
    estimator: str
    summary: str
    learns: str | None
    needs_delta: bool
    takes_public: bool
    relation: str
    modes: tuple[str, ...]
    settings: tuple[declaration.Parameter, ...]

    def checked(self, given: Mapping[str, object]) -> dict[str, Any]:
        """The settings that were given, each checked by its declaration.

        Raises
        ------
        UsageError
            if there is no such setting, or it is not what its declaration allows.
        """
        known = {each.name: each for each in self.settings}
        for name in given:
            if name not in known:
                rule = f"must be settings of the {self.name} model"
                remedy = f"it has {', '.join(known) or 'none'}"
                raise UsageError("settings", rule, got="another", remedy=remedy)
        return {name: known[name].from_form(value) for name, value in given.items()}


def model_names() -> list[str]:
    """The models by the names of the command line, in the order of their classes' names."""
    return [kind.COMMAND for kind in _classes().values()]


def model_class(name: str) -> type[PrivateModel]:
    """The estimator of a name.

    >>> model_class("modes").__name__
    'PrivateModes'

    Raises
    ------
    UsageError
        if there is none.
    """
    found = _classes().get(name)
    if found is None:
        raise UsageError("model", f"must be one of {', '.join(_classes())}", got="another")
    return found


def _classes() -> dict[str, type[PrivateModel]]:
    return {kind.COMMAND: kind for _, kind in sorted(MODELS.items()) if kind.COMMAND}


@cache
def model_kinds() -> tuple[ModelKind, ...]:
    """Every kind of model."""
    return tuple(_kind(name, kind) for name, kind in _classes().items())


def model_kind(name: str) -> ModelKind:
    """The model of a name, as a form shows it.

    >>> kind = model_kind("kernel-svc")
    >>> kind.learns, kind.needs_delta, kind.relation
    ('label', True, 'replace')
    >>> kind.checked({"bandwidth": 0.5, "kernel": "matern"})
    {'bandwidth': 0.5, 'kernel': 'matern'}

    Raises
    ------
    UsageError
        if there is none.
    """
    model_class(name)
    return next(each for each in model_kinds() if each.name == name)


def takes_target(model: PrivateModel) -> bool:
    """Whether the model learns a column from the others."""
    return bool(model.__sklearn_tags__().target_tags.required)


def takes_labels(model: PrivateModel) -> bool:
    """Whether its target is a label, and not a number."""
    return bool(model.__sklearn_tags__().estimator_type == "classifier")


def _kind(name: str, kind: type[PrivateModel]) -> ModelKind:
    made: Any = kind(delta=1e-6)
    return ModelKind(
        name=name,
        estimator=kind.__name__,
        summary=(inspect.getdoc(kind) or "").splitlines()[0],
        learns=("label" if takes_labels(made) else "number") if takes_target(made) else None,
        needs_delta=kind.NEEDS_DELTA,
        takes_public=any(each.name == "public" for each in kind.PARAMETERS),
        relation=str(made.claim(1).relation),
        modes=("file", "exact") if name in EXACT else ("file",),
        settings=tuple(each for each in kind.PARAMETERS if each.group == SETTING),
    )


def setting_as_json(each: declaration.Parameter) -> dict[str, Any]:
    """A parameter for a form."""
    return {
        "name": each.name,
        "type": each.type,
        "default": list(each.default) if each.type == PAIR else each.default,
        "optional": each.optional,
        "listed": each.several,
        "choices": list(each.words()) or None,
        "rule": each.rule(),
        "help": each.help,
    }


def claim_beforehand(choice: ModelChoice, records: TrainingFiles) -> Claim:
    """The claim of a model whose columns, and classes if it has any, are declared.

    The model computes its claim, and rehearses its release on made-up records, one in the middle of the
    bounds for each class, which are nobody's; that spends nothing. So every parameter is checked as it will
    be, nothing private comes near, and what cannot be drawn is reported before a budget is debited for it.

    >>> choice = ModelChoice("kernel-svc", {"epsilon": 1.0, "delta": 1e-6})
    >>> records = TrainingFiles(columns=("age",), target="ill", classes=("no", "yes"))
    >>> claim_beforehand(choice, records).relation.value
    'replace'

    Raises
    ------
    UsageError
        for a parameter, a target or classes that do not suit the model.
    ClaimError
        if the promise cannot be claimed.
    """
    model: Any = choice.build()
    check_target(model, records)
    X, y = made_up(model, records)
    claim: Claim = model.claim(X.shape[1])
    units = None if model.max_per_unit is None else np.arange(len(X))
    # On made-up records: whatever the model does not like are settings.
    rule = "must have the types that the model declares"
    wrong = UsageError("settings", rule, got="others", remedy="see the list of models")
    tried(lambda: model.partial_fit(X, y, units=units, allow_clipping=True).release(), wrong)
    return claim


def predicted_error(
    choice: ModelChoice, records: TrainingFiles, *, number: int, exact: bool = False
) -> PredictedError | None:
    """The predicted error of a model; None where it depends on more than what is declared, as that of a
    regression does.

    ``number`` is that of the records, declared or guessed, not the length of private data; ``exact`` is for
    the mode of that name.

    >>> choice = ModelChoice("density", {"epsilon": 1.0, "bandwidth": 0.1})
    >>> predicted = predicted_error(choice, TrainingFiles(columns=("x",)), number=10_000)
    >>> predicted.of, 0.0 < predicted.error < 0.01
    ('density', True)
    """
    model: Any = choice.build()
    check_target(model, records)
    dim = len(records.columns or ())
    if records.classes is not None:
        model.set_params(classes=list(records.classes))
    if exact and isinstance(model, PrivateDensity):
        kernel = model.compared_by(dim)[0]
        scale = path_scale(math.sqrt(2.0), model.check_parameters()) / number
        return PredictedError("density", scale / (normalising_constant(kernel) or 1.0), number, NOISE)
    predicted: PredictedError | None = model.predicted_error(number, dim)
    return predicted


def made_up(model: PrivateModel, records: TrainingFiles) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """Synthetic records: one in the middle of the bounds, for each declared class if there are any.

    Raises
    ------
    UsageError
        if bounds or classes are not declared.
    """
    columns, classes = records.columns or (), records.classes
    if takes_labels(model):
        if classes is None:
            rule = "must be declared before the claim is shown"
            raise UsageError("classes", rule, got="none", remedy="list every label there is")
        model.set_params(classes=list(classes))
    box = Bounds.of(model.effective("bounds", len(columns)), len(columns), columns)
    if box is None:
        rule = "must be declared"
        raise UsageError("bounds", rule, got="none", remedy="give [low, high], or one pair for each column")
    labels = None if records.target is None else np.array(classes or [0.0])
    middle = (np.array(box.low) + np.array(box.high)) / 2.0
    return np.tile(middle, (1 if labels is None else len(labels), 1)), labels


def check_target(model: PrivateModel, records: TrainingFiles) -> None:
    """Refuse a target for a model that learns no target, and a missing target for a model that does; the same
    for classes. Refuse columns or classes that are named twice.
    """
    columns, target, classes = records.columns or (), records.target, records.classes
    if takes_target(model) and target is None:
        rule = f"must be given for the {model.COMMAND} model"
        raise UsageError("target", rule, remedy="name the column that is to be predicted")
    if target is not None and not takes_target(model):
        raise UsageError("target", f"must be left out: the {model.COMMAND} model predicts no column")
    if classes is not None and not takes_labels(model):
        raise UsageError("classes", f"must be left out: {type(model).__name__} has none")
    for name, listed in (("columns", columns), ("classes", classes or ())):
        if len(set(listed)) != len(listed):
            raise UsageError(name, "must be named once each", got="one twice")
    if target in columns:
        raise UsageError("columns", f"must not contain the target {target!r}")


Target = NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class ModelReleased(Delivered[Bundle]):
    """A public model and where it was written."""

    def _described(self) -> dict[str, Any]:
        about = self.function.about
        shown = {name: about[name] for name in ("model", "parameters", "assumptions")}
        return {**shown, "columns": about["feature_names"], "claim": self.claim.in_numbers()}


@dataclass(frozen=True, slots=True, repr=False)
class CountedModel:
    """A model that has counted its records and released nothing; secret until it is."""

    model: PrivateModel
    choice: ModelChoice
    records: TrainingFiles
    to: Destination


def count_model(
    choice: ModelChoice,
    records: TrainingFiles,
    to: Destination,
    *,
    progress: Progress | None = None,
    most_numbers: int | None = None,
) -> CountedModel:
    """Count files into a model, in one pass and bounded memory; `release_model` then makes it public.

    A classifier whose labels are not declared must see them all before it counts: its records are held in
    memory then. The output is checked first, so that no work is lost for a typing error. ``most_numbers`` is
    how many numbers a model may hold that keeps its records until the release; by default as many as there
    are.

    Raises
    ------
    UsageError
        a model, parameter, file or column that is not there; an output that is not replaced.
    DataRefused
        records that break a rule.
    """
    if records.public is not None:
        refuse_private_file(records.public, records.paths)
        choice = replace(choice, public=public_features(records.public, records.target))
    model = choice.build()
    records = replace(records, paths=all_paths(records.paths))
    _check(records, model, to)
    to.check(records.paths)
    with default_bounds_refused():
        counted = _counted(model, records, progress, most_numbers)
    return CountedModel(counted, choice, records, to)


def public_features(public: PublicFile, target: str | None) -> Any:
    """The rows of a public file as an Arrow table, without the target if it has one."""
    if public.columns is None and target is not None:
        with suppress(UsageError):
            return read_public(replace(public, left_out=target))
    return read_public(public)


def release_model(counted: CountedModel) -> ModelReleased:
    """Release a counted model to its destination.

    Raises
    ------
    BudgetExhausted
        if the remaining budget is too small; nothing is released.
    """
    model, records = counted.model, counted.records
    persons = [] if records.unit_column is None else [records.unit_column]
    parameters = to_json("parameters", counted.choice.parameters)
    subject = {"model": type(model).__name__, "output": counted.to.name, **_described(model)}
    return deliver(
        Prepared(model.claim(), subject, lambda: model.release().released_),
        counted.to,
        ModelReleased,
        sources=[*records.paths, *([] if records.public is None else [records.public.path])],
        settings=[parameters, records.columns, records.target, *persons],
    )


def _described(model: PrivateModel) -> dict[str, object]:
    """The public entries of a model in the ledger and its disclosure report, known before the release."""
    dim = model.n_features_in_
    names = getattr(model, "feature_names_in_", None)
    found: dict[str, object] = {"bounds": bounds_in_words(Bounds.of(model.column_bounds(), dim))}
    if names is not None:
        found["columns"] = names_in_words([str(name) for name in names])
    kernels = model.compared_by(dim)
    if kernels:
        found["kernel"] = "; ".join(kernel_in_words(each) for each in kernels)
    return found


def check_ledger(ledger: LedgerOptions | None, claim: Claim) -> None:
    """Refuse a model whose claim the dataset can never take, before any record is read: neither a model's
    unit nor its relation can be chosen.
    """
    if ledger is None:
        return
    budget = ledger.budget()
    if claim.relation is Relation.REPLACE and budget.account.terms.relation is not Relation.REPLACE:
        rule = "this model claims 'replace', which leaves the number of records unprotected, "
        rule += "and the dataset is kept under 'add/remove'"
        remedy = "keep it in a dataset made with 'hushsum ledger init --relation replace --delta ...'"
        raise ClaimError(rule, remedy=remedy)
    budget.cost(claim)


def _check(records: TrainingFiles, model: PrivateModel, to: Destination) -> None:
    if not records.paths:
        raise UsageError("files", "must be at least one file of records", got="none", remedy="'-' reads CSV")
    refuse_repeated(records.paths)
    check_target(model, records)
    check_cap(records.unit_column, model.max_per_unit, parameter="unit_column")
    if to.ledger is not None or records.cells.drop_missing:
        claim = model.claim(None if records.columns is None else len(records.columns))
        records.cells.check_relation(str(claim.relation))
        check_ledger(to.ledger, claim)
    to.check_named(records.paths)
    for path in records.paths:
        if path != STANDARD:
            _check_columns(records, path, labels=takes_labels(model))


def _check_columns(records: TrainingFiles, path: str, *, labels: bool) -> None:
    """Open a file once, to refuse columns that the file does not have."""
    try:
        _open(records, path, records.columns, labels=labels).close()
    except UsageError as error:
        if records.target is None or error.got != repr(records.target):
            raise
        rule = "must name a column of the data"
        raise UsageError("target", rule, got=error.got, remedy=error.remedy) from None


def _open(records: TrainingFiles, path: str, columns: Sequence[str] | None, *, labels: bool) -> RecordStream:
    """The batches of one file; a target of labels is read as it is, one of numbers beside the columns."""
    given: Any = {"unit_column": records.unit_column, "name": records.name, "cells": records.cells}
    if records.target is None or labels:
        return open_batches(path, columns=columns, label_column=records.target, **given)
    if columns is None:
        with open_batches(path, columns=[records.target], **given):
            pass
        return open_batches(path, **given)
    return open_batches(path, columns=[*columns, records.target], **given)


def training_batches(
    records: TrainingFiles, *, labels: bool, progress: Progress | None
) -> Iterator[tuple[Any, Target, Any]]:
    """Every batch as a table of columns, its target, and whose records they are."""
    columns: Sequence[str] | None = records.columns
    meter = Meter(records.paths, progress)
    for path in records.paths:
        with _open(records, path, columns, labels=labels) as stream:
            columns = [name for name in stream.column_names if name != records.target]
            if not columns:
                raise UsageError((FilePath(records.name or path), " must have a column besides the target"))
            for batch, units in stream:
                target: Target = None
                if records.target is not None and labels:
                    target = labels_of(batch.column(records.target), records.target)
                elif records.target is not None:
                    target = features_of(batch, [records.target]).column(0).to_numpy()
                yield features_of(batch, columns), target, units
                meter.at(stream.progress)
        meter.finish(path)


def _counted(
    model: PrivateModel, records: TrainingFiles, progress: Progress | None, most_numbers: int | None
) -> PrivateModel:
    labels = takes_labels(model)
    batches = training_batches(records, labels=labels, progress=progress)
    if labels and records.classes is None:
        tables, targets, ids = zip(*batches, strict=True)
        units = None if model.max_per_unit is None else pyarrow().chunked_array(ids)
        every = pyarrow().concat_tables(tables), np.concatenate(targets)
        tried(partial(model.partial_fit, *every, units=units), _not_learned())
        return model
    number = 0
    classes = records.classes
    for table, target, units in batches:
        number += table.num_rows
        if most_numbers is not None and number * model.kept_per_record(table.num_columns) > most_numbers:
            rule = "this model keeps its records until the release, and got more than there is room for"
            raise DataRefused(rule, remedy="take fewer features or records, or another model")
        if classes is not None and target is not None:
            model.set_params(classes=read_classes(classes, target))
            classes = None
        tried(partial(model.partial_fit, table, target, units=units), _not_learned())
    return model


def _not_learned() -> DataRefused:
    return DataRefused("the records must be numbers, and the target what the model learns", got="others")


_NO_FEATURES: Final = "which answers from the kernel itself"
# The settings of each model that mean something for a released file alone, and why.
_OF_FILES: Final = {
    "density": {"method": _NO_FEATURES},
    "gaussian-process": {"inputs": "which protects targets alone", "features": _NO_FEATURES},
    "kernel-svc": {"features": _NO_FEATURES},
}


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
        """The claim of all answers of all functions together."""
        promise = Promise.of(**self.about["promise"])
        return path_claim(promise, self.functions[0], calibration=self.about["calibration"])

    def save(self, place: Path, *, encryption_key: bytes | None) -> None:
        """Write it down, for the owner of the process alone."""
        path = place.with_suffix(".secret")
        save_secret_functions(self.functions, path, about=self.about, encryption_key=encryption_key)

    @classmethod
    def load(cls, place: Path, *, encryption_key: bytes | None) -> SecretModel:
        """What :meth:`save` wrote."""
        return cls(*load_secret_functions(place.with_suffix(".secret"), encryption_key=encryption_key))

    def open(self, place: Path, ledger: LedgerOptions) -> None:
        """Pay once, and open the functions for questions. Resumes wherever an earlier attempt ended."""
        booking = Booking.of(ledger.budget(), ledger.idempotency_key)
        assert booking is not None
        serving: dict[str, Any] = {name: self.about[name] for name in ("most_questions", "calibration")}
        serving |= self.about["promise"]
        first: ServedFunction | None = None
        # The last one pays: what is paid for is there.
        for number, function in reversed(list(enumerate(self.functions))):
            if not number:
                serving |= {"budget": booking.budget, "idempotency_key": booking.idempotency_key}
            first = serve(function, store=SqliteStore(answers_file(place, number)), **serving)
        assert first is not None
        with suppress(AlreadyPublished):
            spend_json(booking, first.claim, subject_of(first), lambda: {"opened": True})

    def __repr__(self) -> str:
        return "<SecretModel CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        rule = "a function of private data must not be pickled or copied"
        raise SecretRefused(rule, remedy="serve or release it")


def exact_claim(choice: ModelChoice, records: TrainingFiles, *, most_questions: int) -> Claim:
    """What serving a model will claim, from made-up records; see `claim_beforehand`.

    Raises
    ------
    UsageError
        for a model without this mode, and for parameters that do not suit it.
    """
    model = _built(choice, records)
    return _secret_model(choice, model, [made_up(model, records)], records, most_questions).claim


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
    model: Any = _built(choice, records)
    kept: list[tuple[Any, Any]] = []
    number = 0
    for table, target, _ in training_batches(records, labels=takes_labels(model), progress=progress):
        if records.classes is not None and target is not None and not kept:
            model.set_params(classes=read_classes(records.classes, target))
        number += table.num_rows
        if number > EXACT[choice.name]:
            rule = f"a {choice.name} model in exact mode takes at most {EXACT[choice.name]} records"
            raise DataRefused(rule, got="more", remedy="release it as a file")
        kept.append((table, target))
    return _secret_model(choice, model, kept, records, most_questions)


def _built(choice: ModelChoice, records: TrainingFiles) -> PrivateModel:
    as_file = "release the model as a file"
    if choice.name not in EXACT:
        raise UsageError("model", f"must be {' or '.join(EXACT)}", got=repr(choice.name), remedy=as_file)
    if choice.parameters.get("max_per_unit") is not None:
        rule = "must be left out in exact mode, whose proof is about records"
        raise UsageError("max_per_unit", rule, remedy=as_file)
    if choice.public is not None:
        remedy = f"declare bounds and bandwidth, or {as_file}"
        raise UsageError("public", "must be left out in exact mode", remedy=remedy)
    model = choice.build()
    given, usual = model.get_params(deep=False), type(model)().get_params(deep=False)
    for setting, reason in _OF_FILES[choice.name].items():
        # Functional perturbation is what exact mode does; what it would not do is refused.
        if given[setting] not in (usual[setting], "functional"):
            rule = f"must be {usual[setting]!r} in exact mode, {reason}"
            raise UsageError(setting, rule, remedy=f"leave it out, or {as_file}")
    check_target(model, records)
    if takes_labels(model) and records.classes is None:
        # The labels of the records would be shown as the list of classes, and decide the number of functions.
        rule = "must be declared in exact mode"
        raise UsageError("classes", rule, got="none", remedy="list every label there is")
    if model.check_parameters().pure:
        rule = "must be above 0 in exact mode"
        raise UsageError("delta", rule, got="none", remedy=("give ", Argument("delta", 1e-6)))
    return model


def _secret_model(
    choice: ModelChoice,
    model: Any,
    batches: Sequence[tuple[Any, Any]],
    records: TrainingFiles,
    most_questions: int,
) -> SecretModel:
    def made() -> list[SecretFunction]:
        checked = [model.check_records(X, y, reset=i == 0) for i, (X, y) in enumerate(batches)]
        X = np.concatenate([part for part, _ in checked])
        y = None if records.target is None else np.concatenate([part for _, part in checked])
        return _functions(choice.name, model, X, y)

    functions = tried(made, _not_learned())
    parameters = {name: value for name, value in choice.parameters.items() if name != "random_state"}
    about = {
        "kind": choice.name,
        "estimator": type(model).__name__,
        "mode": "exact",
        "features": list(records.columns or ()),
        "bounds": [list(pair) for pair in model.column_bounds()],
        "target": records.target,
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
        kernels = model.compared_by(model.n_features_in_)
        if len(kernels) != 1:
            rule = ("and ", Parameter("kernel"), " must be one of each in exact mode")
            raise UsageError("bandwidth", rule, got="several", remedy="give one of each")
        return [density_function(X, kernels[0], bounds=box, relation="replace")]
    (kernel,) = model.compared_by(model.n_features_in_)
    if name == "kernel-svc":
        return kernel_svm_functions(X, y, len(model.classes_), kernel, bounds=box, C=float(model.C))
    pair: Any = tuple(model.target_bounds)
    noise = float(model.noise)
    return [gaussian_process_function(X, y, kernel, bounds=box, target_bounds=pair, noise=noise)]


def answers_file(place: Path, number: int) -> Path:
    """Where the answers of a function are kept; secret."""
    return place.with_suffix(f".{number}.answers")


MODEL: Final = ".hush"


@dataclass(frozen=True, slots=True)
class TableWritten:
    """A synthetic table, the model it was drawn from, and the expected error of its marginals; public."""

    output: str
    rows: int
    released: ModelReleased
    errors: Mapping[tuple[str, ...], float]

    @property
    def expected_error(self) -> float:
        """The mean expected total variation of the marginals of two columns; of one, where there are none."""
        pairs = [error for members, error in self.errors.items() if len(members) == 2]
        found = pairs or list(self.errors.values())
        return sum(found) / len(found)

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        listed = [{"columns": list(members), "error": error} for members, error in self.errors.items()]
        shown = {"output": self.output, "rows": self.rows, "expected_errors": listed}
        return {**shown, "release": self.released.as_json()}


def synthesize(
    records: RecordFiles,
    output: str,
    to: Destination,
    columns: Mapping[str, DeclaredColumn],
    parameters: Mapping[str, Any],
    *,
    rows: int | None = None,
    seed: int | None = None,
) -> TableWritten:
    """Release the marginals of files, and write a synthetic table.

    The model is kept in the ``.hush`` file of the destination: further tables are drawn from it by
    ``hushsum sample`` without spending anything. ``rows`` is by default the released number of records.
    """
    sources, cells, unit_column = all_paths(records.paths), records.cells, records.unit_column
    refuse_repeated(sources)
    check_table_output(output)
    check_answers_output(output, inputs=sources)
    to.check(sources)
    choice = ModelChoice("synthesizer", {**parameters, "columns": dict(columns)})
    model = choice.build()
    assert isinstance(model, PrivateSynthesizer)
    check_cap(unit_column, model.max_per_unit, parameter="unit_column")
    check_ledger(to.ledger, model.claim())
    found = False
    for source in sources:
        for table, units in mixed_batches(source, columns, unit_column=unit_column, cells=cells):
            if table.num_rows:
                model.partial_fit(table, units=units)
                found = True
    if not found:
        raise DataRefused("the files must have records", got="none")
    counted = TrainingFiles(sources, tuple(columns), cells=cells, unit_column=unit_column)
    released = release_model(CountedModel(model, choice, counted, to))
    # From the file's content: a resumed release is that of the first run.
    drawn_from = model_of(released.function)
    assert isinstance(drawn_from, PrivateSynthesizer)
    number = max(1, round(drawn_from.function_.count)) if rows is None else rows
    write_table(drawn_from.sample(number, random_state=seed), output)
    return TableWritten(output, number, released, drawn_from.expected_errors())
