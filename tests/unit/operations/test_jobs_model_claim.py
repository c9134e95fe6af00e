"""What is reported of a model before its records are read: settings, claim, predicted error."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushsum.declaration import ANY, FROM_PUBLIC, PAIR
from hushsum.errors import ClaimError, DataRefused, UsageError
from hushsum.models import (
    PrivateClassifier,
    PrivateDensity,
    PrivateGaussianProcessRegressor,
    PrivateKernelSVC,
    PrivateOutlierDetector,
    PrivateRegressor,
)
from hushsum.operations import AnsweringModel, TrainingFiles, describe_model
from hushsum.operations.models import (
    ModelChoice,
    claim_beforehand,
    model_kind,
    model_kinds,
    model_names,
    predicted_error,
)
from hushsum.privacy import check_mechanism

X = np.random.default_rng(1).uniform(-1.0, 1.0, (3000, 2))
LABELS = np.where(X[:, 0] > 0.0, "a", "b")
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "random_state": 1}


ONE_COLUMN = TrainingFiles(columns=("u",))


def declared(name: str) -> TrainingFiles:
    """What of a model's data is declared."""
    learns = model_kind(name).learns
    classes = ("a", "b") if learns == "label" else None
    return TrainingFiles(columns=("u", "v"), target=None if learns is None else "y", classes=classes)


def counted(name: str) -> Any:
    model: Any = ModelChoice(name, PROMISE).build()
    if declared(name).classes:
        model.set_params(classes=["a", "b"])
    return model.partial_fit(X, LABELS if declared(name).classes else X[:, 0] / 2.0)


@pytest.mark.parametrize("name", model_names())
def test_the_claim_reported_beforehand_is_the_one_of_the_fitted_model_and_can_be_booked(name: str) -> None:
    reported = claim_beforehand(ModelChoice(name, PROMISE), declared(name))
    assert reported == counted(name).claim()
    check_mechanism(reported)


@pytest.mark.parametrize("method", ["adassp", "ssp", "sketch", "objective", "ops", "adaops"])
def test_every_way_to_a_line_can_be_booked(method: str) -> None:
    choice = ModelChoice("regressor", {**PROMISE, "method": method})
    check_mechanism(claim_beforehand(choice, replace(ONE_COLUMN, target="y")))


def test_what_must_be_declared() -> None:
    svc = ModelChoice("kernel-svc", PROMISE)
    with pytest.raises(UsageError, match="classes must be declared"):
        claim_beforehand(svc, replace(ONE_COLUMN, target="y"))
    with pytest.raises(UsageError, match="target must be given"):
        claim_beforehand(svc, replace(ONE_COLUMN, classes=("a", "b")))
    with pytest.raises(UsageError, match="bounds must be"):
        claim_beforehand(ModelChoice("density", {**PROMISE, "bounds": None}), ONE_COLUMN)
    with pytest.raises(ClaimError, match="delta"):
        claim_beforehand(ModelChoice("density", {"delta": 0.5}), ONE_COLUMN)


@pytest.mark.parametrize("kind", model_kinds(), ids=lambda kind: kind.name)
def test_settings_are_the_parameters_with_their_defaults(kind: Any) -> None:
    parameters = ModelChoice(kind.name).build().get_params()
    for each in kind.settings:
        assert each.default == parameters[each.name]
        each.check(each.default)
        if each.choices and each.type == "text":
            assert each.default in each.choices or (each.optional and each.default is None)
        if each.type == ANY:
            continue  # objects, such as declarations of columns, which the model itself checks
        wrongs: list[Any] = [{}, [[]], float("nan"), True, "no such word"]
        for wrong in wrongs:
            if wrong == "no such word" and each.type == "text" and not each.choices:
                continue
            with pytest.raises(UsageError, match=each.name):
                each.check(wrong)
    assert kind.summary.endswith(".")


def test_choices_are_all_accepted() -> None:
    """What a form offers is not refused."""
    for kind in model_kinds():
        for each in kind.settings:
            for word in each.words():
                if (kind.name, word) == ("density", "race"):
                    # For the kernels that hash, which the default does not.
                    continue
                given = {**PROMISE, each.name: word}
                rows = X[:50] if each.from_public and word == FROM_PUBLIC else None
                claim_beforehand(ModelChoice(kind.name, given, public=rows), declared(kind.name))
            if each.type == PAIR:
                assert each.from_form([0, 2.5]) == (0, 2.5)


def test_predicted_errors_are_those_that_come() -> None:
    """Within a factor of three of what the released models say of themselves, at typical points."""

    def predicted(name: str, **settings: Any) -> float:
        choice = ModelChoice(name, {**PROMISE, **settings})
        reported = predicted_error(choice, declared(name), number=len(X))
        assert reported is not None
        return reported.error

    Q = np.random.default_rng(2).uniform(-0.8, 0.8, (200, 2))
    for method in ("grid", "fourier_features", "functional"):
        density = PrivateDensity(**PROMISE, method=method).fit(X)
        stderr = float(density.query(Q).stderr.mean())
        assert 1 / 3 < predicted("density", method=method) / stderr < 3, method
    machine = PrivateKernelSVC(**PROMISE, classes=["a", "b"]).fit(X, LABELS)
    assert predicted("kernel-svc") == pytest.approx(machine.noise_stderr_, rel=0.05)
    outliers = PrivateOutlierDetector(**PROMISE).fit(X)
    # A bound for any data, so it may be larger.
    assert 1 / 3 < predicted("outliers") / float(outliers.query(Q).stderr.mean()) < 9
    line = replace(ONE_COLUMN, target="y")
    assert predicted_error(ModelChoice("regressor", PROMISE), line, number=10) is None


def test_numbers_kept_of_each_record() -> None:
    assert PrivateDensity(method="auto").kept_per_record(3) == 0
    assert PrivateGaussianProcessRegressor().kept_per_record(3) == 256
    assert PrivateGaussianProcessRegressor(inputs="private").kept_per_record(3) == 0
    assert PrivateOutlierDetector(contamination=0.1).kept_per_record(3) == 3
    assert PrivateRegressor(method="objective").kept_per_record(3) == 4
    assert PrivateRegressor(method="adassp").kept_per_record(3) == 4
    assert PrivateRegressor(method="adassp", column_scaling="bounds").kept_per_record(3) == 0
    assert PrivateClassifier().kept_per_record(3) == 4
    assert PrivateClassifier(records=10**8).kept_per_record(60) == 0
    assert PrivateClassifier(column_scaling="bounds").kept_per_record(3) == 0
    assert PrivateClassifier(method="kernel").kept_per_record(3) == 0
    assert PrivateKernelSVC().keeps_records
    assert not PrivateClassifier(radius=1.0).keeps_records


def test_an_answering_model_finds_columns_by_name_and_is_described() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["u", "v"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PrivateClassifier(**PROMISE, classes=["a", "b"]).fit(frame, LABELS)
    requested = AnsweringModel.of(model.released_)
    assert requested.columns == ("u", "v")
    plain = requested.answers(X[:5])
    turned = requested.answers(frame[:5][["v", "u"]])
    assert plain["prediction"].tolist() == turned["prediction"].tolist() == model.predict(frame[:5]).tolist()
    for wrong in (X[:, :1], [[np.inf, 0.0]], frame[["u"]]):
        with pytest.raises((DataRefused, UsageError)):
            requested.answers(wrong)
    reported = describe_model(model.released_, target="y", size=5)
    assert reported["model"]["answers"] == ["prediction", "probability"]
    assert reported["model"]["target"] == "y"
    assert reported["model"]["classes"] == ["a", "b"]
