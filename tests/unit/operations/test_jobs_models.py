"""How files become what models take, and models what files hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hushsum.errors import DataRefused, UsageError
from hushsum.models import MODELS, PrivateClassifier, PrivateModes
from hushsum.operations import answers_of, features_of, labels_of, read_classes
from hushsum.operations.models import ModelChoice, model_names, takes_labels, takes_target


def test_every_model_has_a_name() -> None:
    assert len(model_names()) == len(MODELS)
    for name in model_names():
        assert name == ModelChoice(name).build().COMMAND


def test_a_choice_sets_the_parameters_that_are_given() -> None:
    model: Any = ModelChoice("modes", {"power": 3, "random_state": 5}).build()
    assert (model.power, model.random_state, model.method) == (3, 5, "search")
    for wrong in ("colour", "ledger"):
        with pytest.raises(UsageError, match="bandwidth, bounds"):
            ModelChoice("modes", {wrong: 1}).build()


def test_who_learns_a_column_and_who_learns_labels() -> None:
    assert (takes_target(PrivateClassifier()), takes_labels(PrivateClassifier())) == (True, True)
    assert (takes_target(PrivateModes()), takes_labels(PrivateModes())) == (False, False)


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (pa.array(["b", "a"]), ["b", "a"]),
        (pa.array(["b", "a"]).dictionary_encode(), ["b", "a"]),
        (pa.array([1, 0], pa.int8()), [1, 0]),
        (pa.array([1.0, 0.0]), [1, 0]),
        (pa.array(["1", "0"]), ["1", "0"]),
        (pa.array(["1.5", "a"]), ["1.5", "a"]),
        (pa.array([True, False]), [True, False]),
    ],
)
def test_labels_of_any_kind(column: Any, labels: list[Any]) -> None:
    assert labels_of(column, "y").tolist() == labels


@pytest.mark.parametrize(
    "column", [pa.array(["b", None]), pa.array([0.5]), pa.array(["0.5", "1"]), pa.array([[1]])]
)
def test_labels_that_are_none(column: Any) -> None:
    with pytest.raises(DataRefused, match="'y'"):
        labels_of(column, "y")


def test_classes_are_read_as_the_labels_are() -> None:
    assert read_classes(["no", "yes"], np.array(["yes"])) == ["no", "yes"]
    assert read_classes(["0", "1"], np.array([1])) == [0, 1]
    assert read_classes(["false", "true"], np.array([True])) == [False, True]
    for labels in (np.array([1]), np.array([True])):
        with pytest.raises(UsageError, match="classes must be"):
            read_classes(["no"], labels)


def test_features_keep_their_names_and_order() -> None:
    batch = pa.record_batch({"a": [1, 2], "b": [0.5, 1.5], "c": ["x", "y"]})
    table = features_of(batch, ["b", "a"])
    assert table.column_names == ["b", "a"]
    assert table.to_pydict() == {"b": [0.5, 1.5], "a": [1.0, 2.0]}
    with pytest.raises(DataRefused, match="'b' must be finite"):
        features_of(pa.record_batch({"b": [float("nan")]}), ["b"])


def test_answers_of_several_decision_values() -> None:
    class Several:
        classes_ = np.array(["x", "y", "z"])

        def decision_function(self, points: Any) -> Any:
            return np.arange(3.0 * len(points)).reshape(-1, 3)

    reported = answers_of(Several(), np.zeros((2, 1)))
    assert {name: values.tolist() for name, values in reported.items()} == {
        "decision_x": [0.0, 3.0],
        "decision_y": [1.0, 4.0],
        "decision_z": [2.0, 5.0],
    }
