"""What spends a model's budget, and that nothing spends it twice."""

from __future__ import annotations

import contextlib
import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hushsum as hs
from hushsum.errors import BudgetExhausted, ClaimError, DataRefused, RepeatedSpending, UsageError
from hushsum.ledger import DatasetTerms
from hushsum.methods import _feature_functions as feature_functions
from hushsum.models import PrivateKernelSVC, PrivateModel
from hushsum.privacy import IntegerNoise
from tests.contract.fitted_models import ask, counted, fitted, records, target_for
from tests.recording_budget import RecordingBudget

NUMBER_IS_PUBLIC = {"PrivateGaussianProcessRegressor", "PrivateKernelSVC"}
"""Models whose proof is about one record replaced by another."""


def test_fit_spends_once_and_predictions_never(model_kind: type[PrivateModel]) -> None:
    budget = RecordingBudget()
    model = fitted(model_kind, epsilon=1.0, budget=budget)
    assert budget.steps == ["debited", "drawn", "staged", "published"]
    ask(model, records(10))
    model.release()
    assert len(budget.steps) == 4
    claim, subject = budget.requested[0]
    assert claim == model.claim_
    assert claim.epsilon == 1.0
    assert claim.unit == "record"
    assert str(claim.relation) == ("replace" if model_kind.__name__ in NUMBER_IS_PUBLIC else "add/remove")
    assert subject["model"] == model_kind.__name__


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_noise_is_of_the_laws_that_the_claim_names(
    model_kind: type[PrivateModel], delta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: set[str] = set()
    draw = IntegerNoise.draw

    def watched(noise: IntegerNoise, *arguments: Any, **options: Any) -> Any:
        drawn.add(noise.mechanism)
        return draw(noise, *arguments, **options)

    monkeypatch.setattr(IntegerNoise, "draw", watched)
    if delta is None and model_kind.__name__ in NUMBER_IS_PUBLIC:
        with pytest.raises(UsageError, match="delta must be above 0"):
            fitted(model_kind, epsilon=1.0, delta=delta)
        return
    model = fitted(model_kind, epsilon=1.0, delta=delta)
    named = {name for each in model.claim_.mechanism.alternatives for name in each}
    assert drawn - {"none"} <= named | ({"discrete laplace"} if delta is None else set())
    if not delta and named <= {"discrete laplace", "gamma radius"}:
        assert drawn & named


@pytest.mark.parametrize("columns", [None, 1, 3, 40])
def test_a_claim_does_not_depend_on_earlier_questions(
    model_kind: type[PrivateModel], columns: int | None
) -> None:
    """Neither on a predicted error nor on a claim for another number of columns."""

    def claim(model: PrivateModel) -> Any:
        try:
            return model.claim(columns)
        except UsageError as refused:
            return str(refused)

    given: dict[str, Any] = {"epsilon": 1.0}
    if model_kind.__name__ in NUMBER_IS_PUBLIC:
        given["delta"] = 1e-6
    if "classes" in model_kind().get_params():
        given["classes"] = [0, 1]
    fresh, asked = (model_kind(**given) for _ in range(2))
    for other in (2, 5):
        with contextlib.suppress(UsageError):
            asked.predicted_error(1000, n_features=other)
        with contextlib.suppress(UsageError):
            asked.claim(other)
    assert claim(asked) == claim(fresh)


def test_partial_fit_spends_nothing_and_predictions_wait_for_the_release(
    model_kind: type[PrivateModel],
) -> None:
    budget = RecordingBudget()
    model = counted(model_kind, epsilon=1.0, budget=budget)
    with pytest.raises(NotFittedError):
        ask(model, records(10))
    assert budget.steps == []
    model.release()
    assert budget.steps == ["debited", "drawn", "staged", "published"]
    ask(model, records(10))


def test_a_dataset_of_persons_refuses_a_model_before_a_record_is_counted(
    model_kind: type[PrivateModel], tmp_path: Path
) -> None:
    ledger = hs.Ledger.create(tmp_path / "ledger.db", state=tmp_path / "state")
    ledger.create_dataset(
        "people", DatasetTerms.of(epsilon=9.0, delta=1e-4, unit="person", relation="replace")
    )
    model: Any = model_kind(random_state=1, epsilon=1.0, budget=ledger.dataset("people"))
    X = records()
    for count in (model.fit, model.partial_fit):
        with pytest.raises(ClaimError, match="max_per_unit"):
            count(X, target_for(model, X))
        assert not hasattr(model, "_state")


def test_the_claim_is_known_before_any_record(model_kind: type[PrivateModel]) -> None:
    beforehand: Any = model_kind(random_state=1)
    if "classes" in beforehand.get_params():
        beforehand.set_params(classes=[0, 1])
    X = records()
    claim = beforehand.claim(X.shape[1])
    predicted = beforehand.predicted_error(1000, X.shape[1])
    assert not hasattr(beforehand, "_state")
    assert beforehand.fit(X, target_for(beforehand, X)).claim_ == claim
    assert predicted is None or 0.0 < predicted.error < np.inf


def test_a_machine_that_cannot_be_solved_is_refused_before_anything_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feature_functions, "certified_gap", lambda *_: np.inf)
    budget = RecordingBudget()
    with pytest.raises(DataRefused, match="smaller C"):
        fitted(PrivateKernelSVC, classes=[0, 1], budget=budget)
    assert budget.steps == []


def test_fit_again_spends_again_and_warns(model_kind: type[PrivateModel]) -> None:
    budget = RecordingBudget()
    model: Any = model_kind(random_state=1, budget=budget)
    X = records()
    y = target_for(model, X)
    bundle = model.fit(X, y).released_
    with pytest.warns(RepeatedSpending) as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__, "the warning points at the call"
    assert model.released_ is not bundle
    assert budget.left == 8.0


def test_a_search_warns_that_it_spends_at_every_fit(model_kind: type[PrivateModel]) -> None:
    base: Any = model_kind(random_state=1)
    X = records()
    y = target_for(base, X)
    clone(base).fit(X, y)
    with pytest.warns(RepeatedSpending, match="adds up"):
        clone(base).fit(X, y)


def test_a_key_is_for_one_model_of_a_lineage(model_kind: type[PrivateModel]) -> None:
    budget = RecordingBudget()
    base: Any = model_kind(random_state=1, budget=budget, idempotency_key="once")
    X = records()
    y = target_for(base, X)
    clone(base).fit(X, y)
    with pytest.raises(UsageError, match="idempotency_key names one release"):
        clone(base).fit(X, y)


def test_a_clone_keeps_the_book_itself(model_kind: type[PrivateModel]) -> None:
    budget = RecordingBudget()
    assert clone(model_kind(budget=budget)).budget is budget


@pytest.mark.parametrize("step", ["drawn", "staged", "published"])
def test_a_retry_after_a_crash_does_not_spend_twice(model_kind: type[PrivateModel], step: str) -> None:
    budget = RecordingBudget()
    model: Any = model_kind(random_state=1, budget=budget)
    X = records()
    y = target_for(model, X)
    budget.fail_at = step
    with pytest.raises(OSError, match="crash"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        ask(model, X)
    budget.fail_at = ""
    model.release()
    assert budget.left == 9.0
    assert len(budget.entries) == 1


def test_another_fit_after_a_crash_spends_again_and_warns(model_kind: type[PrivateModel]) -> None:
    budget = RecordingBudget()
    model: Any = model_kind(random_state=1, budget=budget)
    X = records()
    budget.fail_at = "drawn"
    with pytest.raises(OSError, match="crash"):
        model.fit(X, target_for(model, X))
    budget.fail_at = ""
    with pytest.warns(RepeatedSpending):
        model.fit(X, target_for(model, X))
    assert budget.left == 8.0


def test_another_process_with_the_same_key_gets_the_staged_model(model_kind: type[PrivateModel]) -> None:
    budget = RecordingBudget()
    budget.fail_at = "published"
    with pytest.raises(OSError, match="crash"):
        fitted(model_kind, budget=budget, idempotency_key="k")
    budget.fail_at = ""
    again = fitted(model_kind, budget=budget, idempotency_key="k")
    assert budget.left == 9.0
    buffer = io.BytesIO()
    again.save(buffer)
    assert buffer.getvalue() == budget.entries["k"].staged


def test_an_empty_book_releases_nothing(model_kind: type[PrivateModel]) -> None:
    model = counted(model_kind, budget=RecordingBudget(left=0.5))
    with pytest.raises(BudgetExhausted):
        model.release()
    with pytest.raises(NotFittedError):
        _ = model.claim_


def test_a_budget_is_that_of_a_dataset(model_kind: type[PrivateModel]) -> None:
    with pytest.raises(UsageError, match="budget of a dataset"):
        fitted(model_kind, budget="ledger.db")
    with pytest.raises(UsageError, match="got no budget"):
        fitted(model_kind, idempotency_key="people")


def test_threads_that_release_at_once_spend_once(model_kind: type[PrivateModel]) -> None:
    budget = RecordingBudget()
    model = counted(model_kind, budget=budget)
    threads = [threading.Thread(target=model.release) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert budget.left == 9.0
