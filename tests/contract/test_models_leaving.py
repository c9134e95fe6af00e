"""What leaves a model: nothing before its release, only what was released after it."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import hushsum as hs
from hushsum.errors import BudgetExhausted, FileRefused, SecretRefused
from hushsum.models import PrivateModel, load_model
from hushsum.releases import load_released
from tests.contract.fitted_models import ask, counted, fitted, records, target_for
from tests.recording_budget import RecordingBudget
from tests.shown_numbers import shows_number


def test_nothing_is_claimed_before_the_release(model_kind: type[PrivateModel]) -> None:
    for model in (model_kind(), counted(model_kind)):
        for name in ("claim_", "released_"):
            with pytest.raises(AttributeError, match="released nothing yet"):
                getattr(model, name)
        with pytest.raises(NotFittedError):
            model.save(io.BytesIO())
        with pytest.raises(NotFittedError, match="released nothing yet"):
            ask(model, records(5))
    with pytest.raises(NotFittedError):
        model_kind().release()


def test_an_unreleased_model_refuses_to_be_pickled_or_copied(model_kind: type[PrivateModel]) -> None:
    failed: Any = model_kind(random_state=1, budget=RecordingBudget(left=0.5))
    X = records()
    with pytest.raises(BudgetExhausted):
        failed.fit(X, target_for(failed, X))
    for model in (counted(model_kind), failed):
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(SecretRefused, match="release"):
                leave(model)


def test_a_released_model_forgets_the_records_and_travels(
    model_kind: type[PrivateModel], tmp_path: Path
) -> None:
    model = fitted(model_kind)
    Q = records(20)
    answers = ask(model, Q)
    assert model._state.secret is None
    model.save(tmp_path / "model.hush")
    for again in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        load_model(tmp_path / "model.hush"),
        hs.load(tmp_path / "model.hush"),
    ):
        assert type(again) is model_kind
        assert np.array_equal(ask(again, Q), answers)
        assert again.claim_ == model.claim_
        assert again.n_features_in_ == 2
    bundle = load_released(tmp_path / "model.hush")
    assert bundle.claim == model.claim_


def test_the_number_of_records_is_nowhere(model_kind: type[PrivateModel]) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(1237, 2))
    model: Any = model_kind(random_state=1)
    model.partial_fit(X, target_for(model, X))
    for shown in (repr(model), str(vars(model)), repr(model._state)):
        assert not shows_number(shown, 1237)
    model.release()
    shown = str(dict(model.released_.about)) + str(vars(model)) + repr(model.released_)
    assert not shows_number(shown, 1237)


def test_the_file_of_another_model_is_refused(model_kind: type[PrivateModel]) -> None:
    bundle = fitted(model_kind).released_
    for changes in (
        {"model": "PrivateNothing"},
        {"features": 0},
        {"features": "2"},
        {"seed": None},
        {"parameters": {"budget": 1}},
        {"parameters": {"nonsense": 1}},
        {"parameters": 5},
        {"feature_names": ["one"]},
    ):
        buffer = io.BytesIO()
        type(bundle)(bundle.claim, {**bundle.about, **changes}, bundle.parts, bundle.arrays).save(buffer)
        buffer.seek(0)
        with pytest.raises(FileRefused):
            load_model(buffer)


def test_a_function_alone_is_no_model() -> None:
    buffer = io.BytesIO()
    hs.race(hs.EuclideanKernel(1, 1.0), rows=5).add([[0.0]]).release(epsilon=1.0).save(buffer)
    buffer.seek(0)
    with pytest.raises(FileRefused, match="not a model"):
        load_model(buffer)


@pytest.mark.filterwarnings("error")
def test_a_notebook_shows_the_parameters_and_after_the_release_the_claim() -> None:
    model = hs.PrivateClassifier(epsilon=1.0, bounds=(0, 1), classes=[0, 1])
    assert "Privacy claim" not in model._repr_html_()
    rows = np.linspace(0.0, 1.0, 200).reshape(-1, 1)
    model.fit(rows, (rows[:, 0] > 0.5).astype(int))
    assert "Privacy claim" in model._repr_html_()
