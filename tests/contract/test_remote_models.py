"""What every model in a service does: the same as the local one."""

from __future__ import annotations

import io
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor

import hushsum as hs
from hushsum.client import RemoteModel, Service
from hushsum.errors import DataRefused, PublicAssumption, SecretRefused, UsageError
from hushsum.models import PrivateModel
from tests.contract.fitted_models import MODELS

NAMES = [kind.__name__ for kind in MODELS]
METHODS = ("predict", "predict_proba", "decision_function", "score_samples")
FRAME = pd.DataFrame(np.random.default_rng(5).uniform(-1.0, 1.0, (400, 2)), columns=["a", "b"])
ASKED = pd.DataFrame(np.random.default_rng(6).uniform(-1.5, 1.5, (9, 2)), columns=["a", "b"])


def made(kind: type[PrivateModel]) -> PrivateModel:
    model: Any = kind(random_state=1)
    target = None
    if is_classifier(model):
        target = np.where(FRAME["a"] > 0.0, "right", "left")
    elif is_regressor(model):
        target = FRAME["a"].to_numpy() / 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicAssumption)
        released: PrivateModel = model.fit(FRAME, target)
    return released


def agree(reported: Any, expected: Any) -> None:
    """Labels are equal; numbers but for the last bits, which depend on how BLAS finds them in memory."""
    if reported.dtype.kind == "f":
        np.testing.assert_allclose(reported, expected, rtol=1e-12, atol=1e-14)
    else:
        np.testing.assert_array_equal(reported, expected)


@pytest.fixture(scope="module")
def local() -> dict[str, PrivateModel]:
    return {kind.__name__: made(kind) for kind in MODELS}


@pytest.fixture(scope="module")
def service(local: dict[str, PrivateModel], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    from tests.in_process_service import Town, listening

    folder = tmp_path_factory.mktemp("service")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSHSUM_STATE", str(folder / "state"))
        town = Town(folder)
        dataset = town.dataset()
        for name, model in local.items():
            town.publish(dataset, name, model)
    with listening(town.app) as url, hs.connect(url, town.tokens["olga"]) as connected:
        yield connected


@pytest.mark.parametrize("name", NAMES)
class TestRemoteModel:
    """The contract; it is run for every model."""

    def test_it_answers_as_the_local_one(self, local: dict[str, Any], service: Service, name: str) -> None:
        remote, own = service.model(name), local[name]
        assert isinstance(remote, RemoteModel)
        assert remote.claim_ == own.claim_
        assert remote.n_features_in_ == own.n_features_in_
        assert remote.feature_names_in_.tolist() == own.feature_names_in_.tolist()
        if hasattr(own, "classes_"):
            assert remote.classes_ is not None
            np.testing.assert_array_equal(remote.classes_, own.classes_)
        answered = 0
        for method in METHODS:
            part = {"predict": "prediction", "predict_proba": "probability"}.get(method)
            part = part or {"decision_function": "decision", "score_samples": "score"}[method]
            if part in remote.facts["answers"]:
                expected = getattr(own, method)(ASKED)
                reported = getattr(remote, method)(ASKED)
                agree(reported, expected)
                assert reported.dtype.kind == np.asarray(expected).dtype.kind
                answered += 1
            else:
                with pytest.raises(UsageError, match=f"gives no {part}"):
                    getattr(remote, method)(ASKED)
        assert answered

    def test_values_have_the_errors_of_the_local_one(
        self, local: dict[str, Any], service: Service, name: str
    ) -> None:
        remote, own = service.model(name), local[name]
        if not hasattr(own, "query"):
            with pytest.raises(UsageError, match="gives no value"):
                remote.query(ASKED)
            return
        expected, reported = own.query(ASKED, level=0.8), remote.query(ASKED, level=0.8)
        for part in ("value", "stderr", "lower", "upper"):
            agree(getattr(reported, part), getattr(expected, part))

    def test_columns_are_found_by_their_names(self, service: Service, name: str) -> None:
        remote = service.model(name)
        method = remote.predict if "prediction" in remote.facts["answers"] else remote.decision_function
        agree(method(ASKED), method(ASKED[["b", "a"]]))
        agree(method(ASKED), method(ASKED.to_numpy()))

    def test_what_are_no_points_is_refused_before_it_is_sent(self, service: Service, name: str) -> None:
        remote = service.model(name)
        method = remote.predict if "prediction" in remote.facts["answers"] else remote.decision_function
        for wrong in ([[np.nan, 0.0]], [[1.0]], [["x", "y"]], np.empty((0, 2))):
            with pytest.raises(DataRefused):
                method(wrong)

    def test_its_file_is_the_one_that_was_released(
        self, local: dict[str, Any], service: Service, name: str
    ) -> None:
        stream, own = io.BytesIO(), io.BytesIO()
        service.model(name).save(stream)
        local[name].save(own)
        assert stream.getvalue() == own.getvalue()
        assert type(service.model(name).local()).__name__ == name
        with pytest.raises(SecretRefused, match="token"):
            pickle.dumps(service.model(name))


def test_models_and_functions_are_reported_apart(service: Service) -> None:
    assert service.functions() == []
    assert [each.name for each in service.models()] == NAMES
    with pytest.raises(UsageError, match="models"):
        service.function(NAMES[0])
    with pytest.raises(UsageError, match="model must be"):
        service.model("nobody's")
