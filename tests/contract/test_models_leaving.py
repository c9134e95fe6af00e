"""What leaves a model: nothing before its release, only what was released after it."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import hushsum as hs
from hushsum.errors import FileRefused, SecretRefused
from hushsum.models import load_model
from hushsum.models.base import PrivateModel
from tests.contract.fitted_models import MODELS, ask, fitted, records, target_for
from tests.recording_budget import RecordingBudget

_OPEN_EACH = """
import pickle, sys
for payload in pickle.loads(open(sys.argv[1], "rb").read()):
    try:
        pickle.loads(payload)
        print("opened")
    except Exception as error:
        print(type(error).__name__)
"""


def test_nothing_is_claimed_before_the_release(model_kind: type[PrivateModel]) -> None:
    for model in (model_kind(), fitted(model_kind)):
        for name in ("claim_", "released_"):
            with pytest.raises(AttributeError, match="released nothing yet"):
                getattr(model, name)
        with pytest.raises(NotFittedError):
            model.save(io.BytesIO())
    with pytest.raises(NotFittedError):
        model_kind().release()


def test_a_growing_model_refuses_to_be_pickled_or_copied(model_kind: type[PrivateModel]) -> None:
    X = records()
    model: Any = model_kind(random_state=1)
    if not hasattr(model, "partial_fit"):
        pytest.skip("has no partial_fit")
    model.partial_fit(X, target_for(model, X))
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretRefused, match="release"):
            leave(model)


def test_a_pickle_of_an_unreleased_model_is_a_handle_to_that_very_model(
    model_kind: type[PrivateModel],
) -> None:
    model = fitted(model_kind)
    payload = pickle.dumps(model)
    assert len(payload) < 2000, "a handle, no sums"
    again = pickle.loads(payload)
    model.set_params(budget=RecordingBudget())
    Q = records(10)
    assert np.array_equal(ask(model, Q), ask(again, Q)), "one model, released once"
    assert again.claim_ is model.claim_


@pytest.mark.filterwarnings("ignore::hushsum.errors.PublicAssumption")
def test_no_other_process_opens_the_pickle_of_an_unreleased_model(tmp_path: Path) -> None:
    """All models in one process, which is what takes time; they live as long as it."""
    models = [fitted(each) for each in MODELS]
    (tmp_path / "pickles").write_bytes(pickle.dumps([pickle.dumps(model) for model in models]))
    done = subprocess.run(
        [sys.executable, "-c", _OPEN_EACH, str(tmp_path / "pickles")],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(hs.__file__).parents[1]), "PATH": ""},
    )
    assert done.stdout.split() == ["SecretRefused"] * len(models)


def test_the_handle_dies_with_the_model(model_kind: type[PrivateModel]) -> None:
    payload = pickle.dumps(fitted(model_kind))
    with pytest.raises(SecretRefused, match="had not been released"):
        pickle.loads(payload)


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
    ):
        assert type(again) is model_kind
        assert np.array_equal(ask(again, Q), answers)
        assert again.claim_ == model.claim_
        assert again.n_features_in_ == 2
    saved = hs.load(tmp_path / "model.hush")
    assert saved.claim == model.claim_


def test_the_number_of_records_is_nowhere(model_kind: type[PrivateModel]) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(1237, 2))
    model: Any = model_kind(random_state=1)
    model.fit(X, target_for(model, X))
    for shown in (repr(model), str(vars(model)), repr(model._state)):
        assert "1237" not in shown
    model.release()
    assert "1237" not in str(dict(model.released_.about)) + str(vars(model)) + repr(model.released_)


def test_the_file_of_another_model_is_refused(model_kind: type[PrivateModel]) -> None:
    bundle = fitted(model_kind).release().released_
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
