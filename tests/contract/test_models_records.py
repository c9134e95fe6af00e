"""Which records a model takes, until when, and what it refuses."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from hushsum.errors import AlreadyReleased, DataRefused, UsageError
from hushsum.models import PrivateModel, PrivateRegressor, load_model
from tests.contract.fitted_models import ask, counted, records, target_for


def test_partial_fit_counts_until_the_release_and_is_gone_from_then_on(
    model_kind: type[PrivateModel],
) -> None:
    X = records()
    model: Any = model_kind(random_state=1)
    y = target_for(model, X)
    for part in (slice(0, 100), slice(100, 400)):
        model.partial_fit(X[part], None if y is None else y[part])
    model.release()
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AlreadyReleased, match="fit again"):
        model.partial_fit(X, y)
    with pytest.raises(UsageError):
        model.partial_fit(X, y)


def test_bounds_are_a_pair_a_list_of_pairs_or_a_dict_by_column_name(model_kind: type[PrivateModel]) -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(records(), columns=["left", "right"])
    boxes = []
    for bounds in ((-1, 1), [(-1, 1), (-1, 1)], {"right": (-1, 1), "left": (-1, 1)}):
        model: Any = model_kind(random_state=1, bounds=bounds)
        model.partial_fit(X, target_for(model, X.to_numpy()))
        boxes.append(model.column_bounds())
        model.release()
        buffer = io.BytesIO()
        model.save(buffer)
        buffer.seek(0)
        assert len(ask(load_model(buffer), X[:3])) == 3
    assert boxes == [[(-1.0, 1.0), (-1.0, 1.0)]] * 3
    nameless: Any = model_kind(bounds={"left": (-1, 1), "right": (-1, 1)})
    with pytest.raises(UsageError, match="names"):
        nameless.partial_fit(records(), target_for(nameless, records()))


def test_parameters_may_not_change_between_counting_and_release(model_kind: type[PrivateModel]) -> None:
    model = counted(model_kind).set_params(bounds=(-2, 2))
    with pytest.raises(UsageError, match="fit again"):
        model.release()


def test_weights_are_refused_with_a_reason(model_kind: type[PrivateModel]) -> None:
    model: Any = model_kind()
    X = records()
    with pytest.raises(UsageError, match="sample_weight must be left out"):
        model.fit(X, target_for(model, X), sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match="unexpected"):
        model.fit(X, target_for(model, X), weights=np.ones(len(X)))


def test_text_is_refused_without_being_quoted(model_kind: type[PrivateModel]) -> None:
    X = records().astype(object)
    X[3, 1] = "Mrs Example"
    model: Any = model_kind()
    with pytest.raises(DataRefused, match="numbers") as caught:
        model.fit(X, target_for(model, records()))
    assert "Example" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("named", [True, False])
def test_a_refusal_names_the_column_and_what_to_do(model_kind: type[PrivateModel], named: bool) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(records(), columns=["left", "right"])
    text = frame.assign(right=["Mrs Example", *["b"] * (len(frame) - 1)])
    missing = frame.assign(right=[float("nan"), *[0.5] * (len(frame) - 1)])
    infinite = frame.assign(right=[float("inf"), *[0.5] * (len(frame) - 1)])
    column = "column 'right'" if named else "column 1"
    for wrong, rule in (
        (text, "must hold numbers, got text; .*PublicEncoder"),
        (missing, "must be finite.*NaN"),
        (infinite, "must be finite.*infinity"),
    ):
        model: Any = model_kind()
        given = wrong if named else wrong.to_numpy()
        with pytest.raises(DataRefused, match=f"^{column} {rule}") as caught:
            model.fit(given, target_for(model, records()))
        assert "Example" not in str(caught.value)


def test_a_refused_target_is_called_y() -> None:
    X = records()
    for wrong in ([float("nan")] * len(X), ["Mrs Example"] * len(X)):
        with pytest.raises(DataRefused, match=r"^y must ") as caught:
            PrivateRegressor().fit(X, wrong)
        assert "Example" not in str(caught.value)


def test_models_are_at_home_in_pipelines_and_keep_column_names(model_kind: type[PrivateModel]) -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(records(), columns=["left", "right"])
    model: Any = model_kind(random_state=1)
    y = target_for(model, X.to_numpy())
    pipeline = make_pipeline(FunctionTransformer(lambda frame: frame / 2.0), model)
    assert len(ask(pipeline.fit(X, y), X[:7])) == 7
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    assert load_model(buffer).feature_names_in_.tolist() == ["left", "right"]


def test_a_batch_that_was_interrupted_is_not_counted_again(
    model_kind: type[PrivateModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = model_kind(random_state=1)
    X = records()
    y = target_for(model, X)

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model_kind, "_count", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, y)
    with pytest.raises(NotFittedError):
        model.release()
    model.partial_fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(model_kind, "_count", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, y)
    for further in (lambda: model.partial_fit(X, y), model.release):
        with pytest.raises(UsageError, match="interrupted while counting"):
            further()
