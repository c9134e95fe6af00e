"""What every model promises beyond scikit-learn's checks: what spends, what leaves, what is refused."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor  # type: ignore[import-untyped]
from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import FunctionTransformer  # type: ignore[import-untyped]

import hushsum as hs
from hushsum.errors import (
    AlreadyReleased,
    BudgetExhausted,
    DataRefused,
    FileRefused,
    PublicAssumption,
    RepeatedSpending,
    SecretRefused,
    UsageError,
)
from hushsum.models import load_model
from hushsum.models.base import PrivateModel
from tests.budget_book import Book
from tests.contract.test_models_sklearn import MODELS

NUMBER_IS_PUBLIC = {"PrivateGaussianProcessRegressor", "PrivateKernelSVC"}
"""Models whose proof is about one record replaced by another."""

SECRET = "0.123456789"
"""A number of the records, which must turn up nowhere."""


@pytest.fixture(autouse=True)
def _assumptions_are_known() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicAssumption)
        yield


@pytest.fixture(params=MODELS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[PrivateModel]:
    found: type[PrivateModel] = request.param
    return found


def records(number: int = 400) -> NDArray[np.float64]:
    X = np.random.default_rng(5).uniform(-1.0, 1.0, size=(number, 2))
    X[0] = float(SECRET)
    return X


def target_for(model: Any, X: NDArray[np.float64]) -> NDArray[Any] | None:
    if is_classifier(model):
        return np.where(X[:, 0] > 0.0, 1, 0)
    return X[:, 0] / 2.0 if is_regressor(model) else None


def ask(model: Any, Q: Any) -> Any:
    """What the model says, by the method it has for that."""
    name = next(name for name in ("predict", "decision_function") if hasattr(model, name))
    return getattr(model, name)(Q)


def fitted(kind: type[PrivateModel], **parameters: Any) -> Any:
    model: Any = kind(random_state=1, **parameters)
    X = records()
    return model.fit(X, target_for(model, X))


def test_fit_spends_nothing_and_the_first_answer_spends_once(kind: type[PrivateModel]) -> None:
    book = Book()
    model = fitted(kind, epsilon=1.0, ledger=book, dataset="people")
    assert book.steps == []
    ask(model, records(10))
    assert book.steps == ["debited", "drawn", "staged", "published"]
    ask(model, records(10))
    model.release()
    assert len(book.steps) == 4
    dataset, claim, subject = book.asked[0]
    assert (dataset, claim) == ("people", model.claim_)
    assert claim.epsilon == 1.0
    assert claim.unit == "record"
    assert str(claim.relation) == ("replace" if kind.__name__ in NUMBER_IS_PUBLIC else "add/remove")
    assert subject["model"] == kind.__name__


def test_queries_are_checked_before_anything_is_spent(kind: type[PrivateModel]) -> None:
    book = Book()
    model = fitted(kind, ledger=book, dataset="people")
    with pytest.raises(ValueError, match="features"):
        ask(model, np.zeros((3, 5)))
    assert book.steps == []


def test_partial_fit_counts_until_the_release_and_is_gone_from_then_on(kind: type[PrivateModel]) -> None:
    X = records()
    model: Any = kind(random_state=1)
    y = target_for(model, X)
    if not hasattr(model, "partial_fit"):
        pytest.skip("has no partial_fit")
    for part in (slice(0, 100), slice(100, 400)):
        model.partial_fit(X[part], None if y is None else y[part])
    model.release()
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AlreadyReleased, match="fit again"):
        model.partial_fit(X, y)
    with pytest.raises(UsageError):
        model.partial_fit(X, y)


def test_nothing_is_claimed_before_the_release(kind: type[PrivateModel]) -> None:
    for model in (kind(), fitted(kind)):
        for name in ("claim_", "released_"):
            with pytest.raises(AttributeError, match="released nothing yet"):
                getattr(model, name)
        with pytest.raises(NotFittedError):
            model.save(io.BytesIO())
    with pytest.raises(NotFittedError):
        kind().release()


def test_a_growing_model_refuses_to_be_pickled_or_copied(kind: type[PrivateModel]) -> None:
    X = records()
    model: Any = kind(random_state=1)
    if not hasattr(model, "partial_fit"):
        pytest.skip("has no partial_fit")
    model.partial_fit(X, target_for(model, X))
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretRefused, match="release"):
            leave(model)


def test_a_pickle_of_an_unreleased_model_is_a_handle_that_only_this_process_opens(
    kind: type[PrivateModel], tmp_path: Path
) -> None:
    book = Book()
    model = fitted(kind)
    payload = pickle.dumps(model)
    assert len(payload) < 2000, "a handle, no sums"
    again = pickle.loads(payload)
    model.set_params(ledger=book, dataset="people")
    Q = records(10)
    assert np.array_equal(ask(model, Q), ask(again, Q)), "one model, released once"
    assert again.claim_ is model.claim_
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(fitted(kind)))
    script = f"import pickle; pickle.loads(open({str(path)!r}, 'rb').read())"
    source = str(Path(hs.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": source, "PATH": ""},
    )
    assert done.returncode != 0
    assert "SecretRefused" in done.stderr


def test_the_handle_dies_with_the_model(kind: type[PrivateModel]) -> None:
    payload = pickle.dumps(fitted(kind))
    with pytest.raises(SecretRefused, match="had not been released"):
        pickle.loads(payload)


def test_a_released_model_forgets_the_records_and_travels(kind: type[PrivateModel], tmp_path: Path) -> None:
    model = fitted(kind)
    Q = records(20)
    answers = ask(model, Q)
    assert model._state.secret is None
    model.save(tmp_path / "model.hush")
    for again in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        load_model(tmp_path / "model.hush"),
    ):
        assert type(again) is kind
        assert np.array_equal(ask(again, Q), answers)
        assert again.claim_ == model.claim_
        assert again.n_features_in_ == 2
    saved = hs.load(tmp_path / "model.hush")
    assert saved.claim == model.claim_


def test_the_number_of_records_is_nowhere(kind: type[PrivateModel]) -> None:
    X = np.random.default_rng(0).uniform(-1, 1, size=(1237, 2))
    model: Any = kind(random_state=1)
    model.fit(X, target_for(model, X))
    for shown in (repr(model), str(vars(model)), repr(model._state)):
        assert "1237" not in shown
    model.release()
    assert "1237" not in str(dict(model.released_.about)) + str(vars(model)) + repr(model.released_)


def test_fit_again_on_the_same_arrays_stays_the_model_that_was_paid_for(kind: type[PrivateModel]) -> None:
    book = Book()
    model: Any = kind(random_state=1, ledger=book, dataset="people")
    X = records()
    y = target_for(model, X)
    first = ask(model.fit(X, y), X)
    assert np.array_equal(ask(model.fit(X, y), X), first)
    assert book.left == 9.0
    with pytest.warns(RepeatedSpending):
        ask(model.fit(X.copy(), y), X)
    assert book.left == 8.0


def test_an_array_that_was_changed_in_place_is_neither_the_same_nor_another(kind: type[PrivateModel]) -> None:
    model: Any = kind(random_state=1)
    X = records()
    y = target_for(model, X)
    model.fit(X, y).release()
    X[7] = 0.5
    with pytest.raises(UsageError, match="in place"):
        model.fit(X, y)


def test_the_same_arrays_with_other_parameters_are_another_model(kind: type[PrivateModel]) -> None:
    model: Any = kind(random_state=1)
    X = records()
    y = target_for(model, X)
    bundle = model.fit(X, y).release().released_
    model.set_params(epsilon=2.0).fit(X, y)
    with pytest.warns(RepeatedSpending):
        model.release()
    assert model.released_ is not bundle
    assert model.claim_.epsilon == 2.0


def test_a_search_warns_that_it_spends_at_every_fit(kind: type[PrivateModel]) -> None:
    base: Any = kind(random_state=1)
    X = records()
    y = target_for(base, X)
    clone(base).fit(X, y).release()
    with pytest.warns(RepeatedSpending, match="adds up"):
        clone(base).fit(X, y).release()


def test_a_key_is_for_one_model_of_a_lineage(kind: type[PrivateModel]) -> None:
    book = Book()
    base: Any = kind(random_state=1, ledger=book, dataset="people", key="once")
    X = records()
    y = target_for(base, X)
    clone(base).fit(X, y).release()
    with pytest.raises(UsageError, match="key names one release"):
        clone(base).fit(X, y).release()


def test_a_clone_keeps_the_book_itself(kind: type[PrivateModel]) -> None:
    book = Book()
    assert clone(kind(ledger=book, dataset="people")).ledger is book


@pytest.mark.parametrize("step", ["drawn", "staged", "published"])
def test_a_retry_after_a_crash_does_not_spend_twice(kind: type[PrivateModel], step: str) -> None:
    book = Book()
    model = fitted(kind, ledger=book, dataset="people")
    book.fail_at = step
    with pytest.raises(OSError, match="crash"):
        model.release()
    book.fail_at = ""
    model.release()
    assert book.left == 9.0
    assert len(book.entries) == 1


def test_another_process_with_the_same_key_gets_the_staged_model(kind: type[PrivateModel]) -> None:
    book = Book()
    book.fail_at = "published"
    with pytest.raises(OSError, match="crash"):
        fitted(kind, ledger=book, dataset="people", key="k").release()
    book.fail_at = ""
    again = fitted(kind, ledger=book, dataset="people", key="k").release()
    assert book.left == 9.0
    buffer = io.BytesIO()
    again.save(buffer)
    assert buffer.getvalue() == book.entries["k"].staged


def test_an_empty_book_releases_nothing(kind: type[PrivateModel]) -> None:
    model = fitted(kind, ledger=Book(left=0.5), dataset="people")
    with pytest.raises(BudgetExhausted):
        ask(model, records(5))
    with pytest.raises(NotFittedError):
        _ = model.claim_


def test_a_ledger_needs_the_name_of_the_data(kind: type[PrivateModel]) -> None:
    with pytest.raises(UsageError, match="dataset"):
        fitted(kind, ledger=Book()).release()
    with pytest.raises(UsageError, match="ledger"):
        fitted(kind, dataset="people").release()


def test_threads_that_ask_at_once_spend_once(kind: type[PrivateModel]) -> None:
    book = Book()
    model = fitted(kind, ledger=book, dataset="people")
    threads = [threading.Thread(target=ask, args=(model, records(5))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert book.left == 9.0


def test_parameters_may_not_change_between_counting_and_release(kind: type[PrivateModel]) -> None:
    model = fitted(kind).set_params(bounds=(-2, 2))
    with pytest.raises(UsageError, match="fit again"):
        model.release()


def test_weights_are_refused_with_a_reason(kind: type[PrivateModel]) -> None:
    model: Any = kind()
    X = records()
    with pytest.raises(UsageError, match="moves the sums"):
        model.fit(X, target_for(model, X), sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match="unexpected"):
        model.fit(X, target_for(model, X), weights=np.ones(len(X)))


def test_text_is_refused_without_being_quoted(kind: type[PrivateModel]) -> None:
    X = records().astype(object)
    X[3, 1] = "Mrs Example"
    model: Any = kind()
    with pytest.raises(DataRefused, match="numbers") as caught:
        model.fit(X, target_for(model, records()))
    assert "Example" not in str(caught.value)
    assert caught.value.__context__ is None


def test_models_are_at_home_in_pipelines_and_keep_column_names(kind: type[PrivateModel]) -> None:
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(records(), columns=["left", "right"])
    model: Any = kind(random_state=1)
    y = target_for(model, X.to_numpy())
    pipeline = make_pipeline(FunctionTransformer(lambda frame: frame / 2.0), model)
    assert len(ask(pipeline.fit(X, y), X[:7])) == 7
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    assert load_model(buffer).feature_names_in_.tolist() == ["left", "right"]


def test_the_file_of_another_model_is_refused(kind: type[PrivateModel]) -> None:
    bundle = fitted(kind).release().released_
    for changes in (
        {"model": "PrivateNothing"},
        {"features": 0},
        {"features": "2"},
        {"seed": None},
        {"parameters": {"ledger": 1}},
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


def test_a_batch_that_was_interrupted_is_not_counted_again(
    kind: type[PrivateModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = kind(random_state=1)
    X = records()
    y = target_for(model, X)
    if not hasattr(model, "partial_fit"):
        pytest.skip("takes all records at once")

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kind, "_count", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, y)
    with pytest.raises(NotFittedError):
        model.release()
    model.partial_fit(X, y)
    with monkeypatch.context() as patch:
        patch.setattr(kind, "_count", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, y)
    for further in (lambda: model.partial_fit(X, y), model.release):
        with pytest.raises(UsageError, match="interrupted while counting"):
            further()
