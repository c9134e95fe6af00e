"""Classes are declared, in every model that has them: what is refused, what is assumed, what comes back."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import DataRefused, PublicAssumption, UsageError
from hushsum.models import ClassificationModel, PrivateKernelSVC, load_model

X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 2))
SECOND = X[:, 0] > 0.0


@pytest.fixture(
    params=[hs.PrivateClassifier, hs.PrivateLinearSVC, PrivateKernelSVC], ids=lambda kind: kind.__name__
)
def kind(request: pytest.FixtureRequest) -> Any:
    assert issubclass(request.param, ClassificationModel)
    return request.param


def labels(first: object, second: object) -> NDArray[Any]:
    return np.where(SECOND, np.array(second), np.array(first))


def test_classes_found_in_y_are_taken_as_public_and_the_claim_says_so(kind: Any) -> None:
    with pytest.warns(PublicAssumption, match="declare the classes") as caught:
        model = kind(random_state=0).fit(X, labels("no", "yes"))
    assert caught[0].filename == __file__, "the warning points at the call"
    claim = model.release().claim_
    assert claim.assumptions[0] == "the list of classes is public"
    assert "This assumes that the list of classes is public" in claim.sentence()
    assert "assumptions=('the list of classes is public'," in repr(claim)
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    again = load_model(buffer)
    assert again.claim_ == claim
    assert again.classes_.tolist() == ["no", "yes"]


def test_nothing_is_assumed_of_declared_classes(kind: Any) -> None:
    declared = kind(classes=["no", "yes"]).fit(X, labels("no", "yes")).claim_
    assert not any("classes" in each for each in declared.assumptions)
    by_hand = kind().partial_fit(X, labels("no", "yes"), classes=["no", "yes"])
    assert by_hand.release().claim_.assumptions == declared.assumptions


@pytest.mark.parametrize("declared", [["no", "yes"], [1, 2], [0.5, 1.5]], ids=str)
def test_other_labels_are_refused_without_being_shown(kind: Any, declared: list[Any]) -> None:
    with pytest.raises(DataRefused, match="declared classes") as caught:
        kind(classes=declared).fit(X, labels("no", "Mrs Example"))
    assert "Example" not in str(caught.value)


def test_later_batches_bring_no_other_classes(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublicAssumption)
        model = kind().partial_fit(X, labels("no", "yes"))
    with pytest.raises(DataRefused, match="declared classes"):
        model.partial_fit(X, labels("no", "perhaps"))
    with pytest.raises(UsageError, match="first partial_fit"):
        model.partial_fit(X, labels("no", "yes"), classes=["no", "perhaps"])


@pytest.mark.parametrize("pair", [(False, True), (3, 7), (1.0, 2.0), ("no", "yes")], ids=str)
def test_answers_are_labels_of_the_kind_that_was_declared(kind: Any, pair: tuple[Any, Any]) -> None:
    model = kind(classes=list(reversed(pair))).fit(X, labels(*pair))
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    for each in (model, load_model(buffer)):
        answers = each.predict(X)
        assert answers.dtype.kind == np.array(pair).dtype.kind
        assert set(answers.tolist()) <= set(pair)


def test_a_list_without_a_class_is_refused(kind: Any) -> None:
    with pytest.raises(UsageError, match="got none; declare"):
        kind(classes=[]).fit(X, labels(0, 1))


def test_a_target_of_many_values_is_not_published_as_a_list_of_classes(kind: Any) -> None:
    names = np.array([f"person {i % 101}" for i in range(3 * len(X))])
    with pytest.raises(UsageError, match="must be declared") as caught:
        kind().fit(np.tile(X, (3, 1)), names)
    assert "person" not in str(caught.value)
