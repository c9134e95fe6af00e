"""The classifier's methods on vectors: class means, discriminant analysis, public rows, and the choice."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import DataRefused, FileRefused, UsageError
from hushsum.models import load_model
from tests.exact_tallies import exact_table

Rows = NDArray[np.float64]


def embeddings(number: int, seed: int = 0, dim: int = 40) -> tuple[Rows, NDArray[np.int64]]:
    """Unit vectors of three classes. The columns in which the means differ vary together with others."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, number)
    scales = 1.0 / np.arange(1, dim + 1)
    means = np.zeros((3, dim))
    means[:, 10:13] = 0.3 * np.eye(3)
    rows = rng.normal(size=(number, dim)) * scales + means[labels] + 0.2
    rows[:, 10:13] += 0.8 * rows[:, 2:5]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), labels


X, Y = embeddings(12_000)
TEST, TRUTH = embeddings(3000, seed=1)
PUBLIC, _ = embeddings(600, seed=2)


def model_of(method: str, **given: Any) -> Any:
    parameters = {"epsilon": 1.0, "delta": 1e-5, "classes": [0, 1, 2], "radius": 1.0, **given}
    return hs.PrivateClassifier(method=method, random_state=0, **parameters)


def test_the_discriminant_sees_what_class_means_do_not() -> None:
    means = model_of("means").fit(X, Y).score(TEST, TRUTH)
    discriminant = model_of("discriminant", epsilon=3.0).fit(X, Y).score(TEST, TRUTH)
    assert discriminant > means + 0.05
    assert means > 0.45


def test_public_rows_help_and_are_stated() -> None:
    plain, helped = model_of("means").fit(X, Y), model_of("means", public=PUBLIC).fit(X, Y)
    assert helped.score(TEST, TRUTH) > plain.score(TEST, TRUTH) + 0.1
    (assumption,) = helped.claim_.assumptions
    assert "public" in assumption
    assert helped.claim_ == helped.claim()
    assert plain.claim_.assumptions == ()


def test_a_transformation_learned_with_public_labels_helps_where_epsilon_is_small() -> None:
    public, labels = embeddings(600, seed=2)
    transform = hs.records.Transform.discriminant(public, labels, input_radius=1.0)
    gains = []
    for _ in range(6):  # each gain is 0.04 with a deviation of 0.02
        learned, rows = (model_of("auto", epsilon=0.02, public=each) for each in (transform, public))
        gains.append(learned.fit(X, Y).score(TEST, TRUTH) - rows.fit(X, Y).score(TEST, TRUTH))
    assert np.mean(gains) > 0.0
    assert learned.claim_.assumptions == rows.claim_.assumptions
    assert learned.predicted_error(len(X), 40).error > 0.0
    with pytest.raises(DataRefused, match="as many columns"):
        model_of("auto", public=hs.records.Transform.centring(public[:, :5], input_radius=1.0)).fit(X, Y)


@pytest.mark.parametrize("method", ["means", "discriminant"])
@pytest.mark.parametrize("public", [None, PUBLIC])
def test_a_model_is_saved_without_the_public_rows(method: str, public: Any) -> None:
    model = model_of(method, public=public).fit(X, Y)
    stream = io.BytesIO()
    model.save(stream)
    stream.seek(0)
    again: Any = load_model(stream)
    np.testing.assert_array_equal(again.predict_proba(TEST[:50]), model.predict_proba(TEST[:50]))
    assert again.method_ == method
    assert again.public is None
    assert again.claim_ == model.claim_
    np.testing.assert_array_equal(again.class_prior_, model.class_prior_)


def test_a_loaded_model_is_fitted_again_without_its_transformation() -> None:
    """Else the second fit would spend and then fail."""
    stream = io.BytesIO()
    model_of("means", public=PUBLIC).fit(X, Y).save(stream)
    stream.seek(0)
    again: Any = load_model(stream)
    again.fit(X[:9000], Y[:9000])
    assert again.claim_.assumptions == ()
    assert again.predict(TEST[:5]).shape == (5,)


def test_a_file_with_another_transformation_is_refused() -> None:
    from dataclasses import replace

    model = model_of("means", public=PUBLIC).fit(X, Y)
    other = model_of("means", public=PUBLIC[:500]).fit(X, Y)
    mixed = replace(model.released_, arrays=other.released_.arrays)
    stream = io.BytesIO()
    mixed.save(stream)
    stream.seek(0)
    read: Any = load_model(stream)
    with pytest.raises(FileRefused):
        read.predict(X)


def test_batches_and_one_fit_count_the_same() -> None:
    whole = model_of("discriminant", public=PUBLIC).partial_fit(X, Y)
    parts = model_of("discriminant", public=PUBLIC)
    for start in range(0, len(X), 5000):
        parts.partial_fit(X[start : start + 5000], Y[start : start + 5000])
    tables = [exact_table(each._state.secret[1]) for each in (whole, parts)]
    np.testing.assert_array_equal(*tables)


def test_the_choice_depends_on_declared_quantities_alone() -> None:
    chosen = {
        (epsilon, dim, records): model_of("auto", epsilon=epsilon, records=records).chosen_method(dim)
        for epsilon, dim, records in (
            (1.0, 400, 10_000),
            (0.1, 400, 10_000),
            (0.1, 400, 1_000_000),
            (1.0, 5000, 10**6),
        )
    }
    assert chosen == {
        (1.0, 400, 10_000): "discriminant",
        (0.1, 400, 10_000): "means",
        (0.1, 400, 1_000_000): "discriminant",
        (1.0, 5000, 10**6): "means",
    }
    few = hs.PrivateClassifier(epsilon=0.001, classes=[0, 1])
    assert few.chosen_method(4) == "logistic"
    assert few.set_params(column_scaling="bounds").chosen_method(4) == "kernel"
    for number in (50, 12_000):
        assert model_of("auto").partial_fit(X[:number], Y[:number]).method_ == model_of("auto").chosen_method(
            40
        )


@pytest.mark.parametrize("method", ["auto", "kernel", "means", "discriminant"])
def test_every_method_predicts_its_error(method: str) -> None:
    given: dict[str, Any] = {} if method == "kernel" else {"radius": 1.0}
    model = hs.PrivateClassifier(epsilon=1.0, delta=1e-6, classes=[0, 1], method=method, **given)
    few, many = (model.predicted_error(records, 8) for records in (5000, 50_000))
    assert few is not None
    assert many is not None
    assert 0.0 < many.error < few.error


def test_the_predicted_error_of_means_is_that_of_the_noise() -> None:
    """Over 3 classes × 40 columns of 8 releases, 960 numbers: 25 % off would be one run in 10⁹."""
    predicted = model_of("means").predicted_error(len(X), 40).error
    off = []
    for _ in range(8):
        model = model_of("means").partial_fit(X, Y)
        part = model.release().released_.parts["moments"]
        exact = np.stack([X[code == Y].sum(axis=0) for code in range(3)])
        off.append((part.basis.class_sums(part.table) - exact) / (len(X) / 3))
    assert np.std(off) == pytest.approx(predicted, rel=0.25)


def test_pure_epsilon_and_three_classes() -> None:
    model = model_of("means", delta=None, epsilon=4.0, public=PUBLIC).fit(X, Y)
    assert model.claim_.delta == 0
    assert model.score(TEST, TRUTH) > 0.45


@pytest.mark.parametrize("method", ["discriminant", "means"])
def test_too_few_records_give_every_class_the_same_probability(method: str) -> None:
    model = model_of(method, epsilon=0.01).fit(X[:60], Y[:60])
    np.testing.assert_allclose(model.predict_proba(TEST[:5]), 1.0 / 3.0)


def test_a_class_without_records_takes_no_part() -> None:
    model = hs.PrivateClassifier(
        epsilon=1.0, delta=1e-5, classes=[0, 1, 2, 3], radius=1.0, method="means"
    ).fit(X, Y)
    assert not (model.predict(TEST) == 3).any()


def test_frequent_classes_weigh_more_by_the_rule_of_sums() -> None:
    keep = (Y != 0) | (np.arange(len(Y)) % 10 == 0)
    rates = [
        (model_of("discriminant", rule=rule, epsilon=3.0).fit(X[keep], Y[keep]).predict(TEST) == 0).mean()
        for rule in ("map", "likelihood")
    ]
    assert rates[0] < rates[1]


@pytest.mark.parametrize("method", ["means", "discriminant"])
@pytest.mark.parametrize("given", [{}, {"column_scaling": "bounds"}, {"radius": 3.0}], ids=str)
def test_probabilities_by_the_rule_map_are_those_of_classes(method: str, given: dict[str, Any]) -> None:
    """One record of twelve is in the rare class: scores shrunk by noise, or without a known spread, beside
    the logarithms of the shares would predict the other class always.
    """
    rng = np.random.default_rng(4)
    labels = (rng.random(12_000) < 1 / 12).astype(np.int64)
    common = rng.normal(size=(12_000, 1))
    rows = 0.35 * (rng.normal(size=(12_000, 6)) + common) + 1.3 * labels[:, None] * [1, -1, 1, -1, 0, 0]
    model = hs.PrivateClassifier(
        epsilon=1.0, delta=1e-6, classes=[0, 1], bounds=(-4, 4), method=method, rule="map", **given
    ).fit(rows[:9000], labels[:9000])
    test, truth = rows[9000:], labels[9000:]
    chances = model.predict_proba(test)
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    loaded: Any = hs.load(buffer)
    np.testing.assert_array_equal(loaded.predict_proba(test), chances)
    found = chances.argmax(axis=1) == truth
    assert min(found[truth == 1].mean(), found[truth == 0].mean()) > 0.7
    # As frequent as they are probable, and not more sure than right.
    assert chances[:, 1].mean() == pytest.approx(truth.mean(), abs=0.04)
    sure = chances[:, 1] > 0.5
    assert chances[sure, 1].mean() < truth[sure].mean() + 0.1
    loss = -np.log(chances[np.arange(len(truth)), truth]).mean()
    assert loss < 0.6 * -(truth.mean() * np.log(truth.mean()) + (1 - truth.mean()) * np.log(1 - truth.mean()))


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(UsageError, match="radius must be left out"):
        model_of("kernel").fit(X, Y)
    with pytest.raises(UsageError, match="public must decide a parameter"):
        model_of("kernel", radius=None, public=PUBLIC).fit(X, Y)
    with pytest.raises(UsageError, match="radius must be a number above 0"):
        model_of("means", radius=0.0).fit(X, Y)
    with pytest.raises(DataRefused, match="at least 10 rows"):
        model_of("means", public=PUBLIC[:5]).fit(X, Y)
    with pytest.raises(DataRefused):
        model_of("means", public=PUBLIC[:, :5]).fit(X, Y)
    with pytest.raises(DataRefused):
        model_of("means", public=np.full((20, 40), np.nan)).fit(X, Y)


def test_advice_names_what_is_often_better_before_anything_is_spent() -> None:
    two = hs.PrivateClassifier(classes=[0, 1], epsilon=1.0, column_scaling="bounds")
    assert ["PrivateLinearSVC" in each for each in two.advice(10)] == [True]
    assert hs.PrivateClassifier(classes=[0, 1], epsilon=1.0, delta=1e-6).advice(10) == []
    assert hs.PrivateClassifier(epsilon=1.0).advice(10) == []
    little = hs.PrivateClassifier(classes=[0, 1, 2], epsilon=0.01, records=1000, column_scaling="bounds")
    assert little.chosen_method(10) == "kernel"
    assert "method='logistic'" in little.advice(10)[0]
    assert "radius" in hs.PrivateClassifier(classes=[0, 1, 2], epsilon=1.0).advice(384)[0]
    assert hs.PrivateClassifier(classes=[0, 1, 2], epsilon=1.0, records=10**6, delta=1e-8).advice(20) == []
    assert "PrivateClassifier" in hs.PrivateLinearSVC(classes=[0, 1]).advice(10)[0]
    assert hs.PrivateLinearSVC(classes=[0, 1], method="objective").advice(10) == []
    kernel = hs.PrivateClassifier(classes=[0, 1, 2], method="kernel", epsilon=1.0)
    assert "leave method out" in kernel.advice(384)[0], "the kernel rule takes no radius"


def test_the_bandwidth_grows_with_the_columns_unless_it_is_given() -> None:
    model = hs.PrivateClassifier(classes=[0, 1], method="kernel")
    found = [model.compared_by(columns)[0].parameters()["bandwidth"] for columns in (1, 8, 32, 512)]
    assert found == [1.0, 1.0, 2.0, 8.0]
    given = hs.PrivateClassifier(classes=[0, 1], method="kernel", bandwidth=0.3)
    assert given.compared_by(512)[0].parameters()["bandwidth"] == 0.3


def test_sketches_tell_classes_apart_in_many_columns() -> None:
    """At a bandwidth of 1 their sums lie below the noise there."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 8000)
    X = rng.uniform(-1.0, 1.0, (8000, 200)) * 0.7 + np.where(y, 0.25, -0.25)[:, None]
    scores = []
    for bandwidth in (None, 1.0):
        model = hs.PrivateClassifier(
            epsilon=1.0,
            delta=1e-5,
            classes=[0, 1],
            method="kernel",
            bandwidth=bandwidth,
            rows=100,
            random_state=0,
        )
        scores.append(model.fit(X[:7000], y[:7000]).score(X[7000:], y[7000:]))
    assert scores[0] > 0.9 > 0.7 > scores[1], scores
