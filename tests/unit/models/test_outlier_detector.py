"""Outliers: densities, bins and hash rows, a declared threshold, a paid one, and silence."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import FileRefused, UsageError
from hushsum.ledger import DatasetTerms, Ledger
from hushsum.models import load_model, part_of
from hushsum.models._outlier_scores import (
    COUNT_SHARE,
    BinScores,
    FunctionScores,
    ScaledDensity,
    average_score,
    density_share,
)
from hushsum.models._outliers import QUANTILE_SHARE
from hushsum.privacy import Promise
from hushsum.releases import Bundle, PublicFacts
from hushsum.tally import Tally


def cluster(number: int = 20_000) -> NDArray[np.float64]:
    return np.random.default_rng(4).normal(0.0, 0.15, size=(number, 3))


def test_points_far_from_the_records_are_outliers() -> None:
    points = [[0.0, 0.0, 0.0], [0.9, -0.9, 0.9], [5.0, 5.0, 5.0]]
    model = hs.PrivateOutlierDetector(epsilon=1.0, random_state=0).fit(cluster())
    assert model.method_ == "density"
    assert model.predict(points).tolist() == [1, -1, -1]
    assert str(model.claim_.mechanism) == "discrete laplace or gamma radius"
    hashed = hs.PrivateOutlierDetector(epsilon=1.0, method="kernel", random_state=0).fit(cluster())
    assert hashed.predict(points).tolist() == [1, -1, -1]
    assert hashed.offset_ == 0.01
    assert str(hashed.claim_.mechanism) == "discrete laplace"


def test_scores_are_shares_of_similar_records() -> None:
    X = cluster()
    model = hs.PrivateOutlierDetector(epsilon=10.0, bandwidth=0.5, random_state=0).fit(X)
    assert model.method_ == "kernel"
    exact = hs.EuclideanKernel(3, 0.5, power=4).exact_sum(X, X[:50]) / len(X)
    # 1000 rows at ε = 10: a standard error of about 0.01.
    np.testing.assert_allclose(model.score_samples(X[:50]), exact, atol=0.08)
    decision = model.decision_function(X[:50])
    assert np.array_equal(model.predict(X[:50]), np.where(decision >= 0.0, 1, -1))


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_a_paid_threshold_leaves_about_the_asked_share_below_it(share: float) -> None:
    X = cluster()[:, :2]
    model = hs.PrivateOutlierDetector(epsilon=1.0, contamination=share, random_state=0).fit(X)
    # A private quantile at ε/4 is off by about 100 ranks of 20,000, and a step of the grid is 2 % of it.
    assert (model.predict(X) == -1).mean() == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_threshold_and_the_sketch_share_the_budget_exactly(delta: float | None) -> None:
    model = hs.PrivateOutlierDetector(epsilon=1.0, delta=delta, contamination=0.1, method="kernel").fit(
        cluster(2000)
    )
    sketch = model.released_.parts["similarity"].claim.promise
    assert sketch.epsilon == 1 - QUANTILE_SHARE == Fraction(3, 4)
    assert (model.claim_.epsilon, model.claim_.delta) == (1.0, delta or 0.0)
    kind = "laplace" if delta is None else "gaussian"
    assert str(model.claim_.mechanism) == f"discrete {kind} + permute and flip"


def test_the_records_are_kept_only_where_they_are_needed_and_only_until_the_release() -> None:
    declared = hs.PrivateOutlierDetector(method="kernel").partial_fit(cluster(100))
    assert declared._state.secret[1]._features == []
    assert declared.kept_per_record(3) == 0
    both: tuple[dict[str, Any], ...] = ({"method": "kernel", "contamination": 0.1}, {})
    for needed in both:
        model = hs.PrivateOutlierDetector(**needed).partial_fit(cluster(100)).partial_fit(cluster(50))
        assert len(model._state.secret[1].all()[0]) == 150
        assert model.kept_per_record(3) == 3
        assert repr(model._state.secret[1]) == "<KeptRecords CONFIDENTIAL>"
        model.release()
        assert model._state.secret is None


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        (3, {"method": "kernel"}),
        (3, {}),
        (8, {"delta": 1e-6}),
        (70, {"delta": 1e-6, "method": "density"}),
        (3, {"method": "histograms"}),
    ],
    ids=str,
)
def test_a_records_score_depends_on_that_record_alone(columns: int, given: dict[str, Any]) -> None:
    X = np.random.default_rng(4).normal(0.0, 0.15, size=(2000, columns))
    model = hs.PrivateOutlierDetector(epsilon=3.0, random_state=0, **given).fit(X)
    scores = model._reading().scores
    X = X[:60]
    together = scores.alone(X)
    # Of up to three columns they are interpolated.
    np.testing.assert_allclose(together, scores(X), rtol=0.01, atol=0.002)
    for size in (1, 2, 7):
        for start in range(0, 30, size):
            assert np.array_equal(scores.alone(X[start : start + size]), together[start : start + size])
    assert np.array_equal(scores.alone(X[::-1])[::-1], together)


def test_a_book_takes_the_claim_of_both_steps(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path))
    ledger = Ledger.create(tmp_path / "book.db")
    ledger.create_dataset("people", DatasetTerms.of(epsilon=1.0))
    model = hs.PrivateOutlierDetector(
        epsilon=0.75, contamination=0.1, budget=ledger.dataset("people"), idempotency_key="first"
    )
    model.fit(cluster(2000))
    assert ledger.account("people").remaining.in_words() == "ε 0.25"


def test_below_the_noise_of_its_count_only_the_bounds_speak() -> None:
    """Twenty records at ε = 1 pass for many with a probability below 1e-6."""
    model = hs.PrivateOutlierDetector(epsilon=1.0).fit(cluster(20))
    assert model.predict([[0.9, 0.9, 0.9], [1.0, 1.0, 1.0], [1.1, 0.0, 0.0]]).tolist() == [1, 1, -1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"threshold": -0.1}, "threshold must be"),
        ({"threshold": "low"}, "threshold must be"),
        ({"contamination": 0.0}, "contamination must be"),
        ({"contamination": 0.6}, "contamination must be"),
        ({"method": "density", "bandwidth": 0.5}, "bandwidth must be left out"),
        ({"method": "histograms", "radius": 1.0}, "radius must be left out"),
        ({"method": "rows"}, "method must be"),
    ],
    ids=str,
)
def test_parameters_that_cannot_be_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hs.PrivateOutlierDetector(**parameters).fit(cluster(50))


def vectors(number: int, seed: int, spread: int) -> NDArray[np.float64]:
    """Unit vectors of 100 columns, of which the first ``spread`` vary much."""
    rows = np.random.default_rng(seed).normal(size=(number, 100)) * np.where(
        np.arange(100) < spread, 1.0, 0.2
    )
    unit: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


@pytest.mark.parametrize(("epsilon", "kernel"), [(1.0, "polynomial"), (0.02, "dot-product")])
def test_vectors_of_a_model_are_scored_by_inner_products(epsilon: float, kernel: str) -> None:
    X = vectors(3000, 1, 10)
    model = hs.PrivateOutlierDetector(epsilon=epsilon, delta=1e-6, radius=1.0, contamination=0.05).fit(X)
    function = model.released_.parts["similarity"]
    assert function.kernel.name == kernel
    predicted = model.predicted_error(3000, 100)
    assert predicted is not None
    assert predicted.error > 0.0
    if kernel == "polynomial":
        like, unlike = model.predict(vectors(500, 2, 10)), model.predict(vectors(500, 3, 100))
        assert (like == -1).mean() == pytest.approx(0.05, abs=0.05)
        assert (unlike == -1).mean() > 0.9
        # A long vector is not like more records than a short one.
        np.testing.assert_allclose(model.score_samples(100.0 * X[:5]), model.score_samples(X[:5]), rtol=1e-5)


def test_the_score_behind_a_paid_threshold_is_that_of_the_record_alone() -> None:
    X = vectors(200, 1, 10)
    for epsilon in (1.0, 0.02):
        model = hs.PrivateOutlierDetector(epsilon=epsilon, delta=1e-6, radius=1.0).fit(X)
        function = model.released_.parts["similarity"]
        alone = model._reading().scores.alone
        scores = alone(X)
        expected = function(X)
        # Sums of products of single precision: their rounding follows the largest of them, which is noise.
        np.testing.assert_allclose(scores, expected, atol=1e-5 + 1e-6 * float(np.abs(expected).max()))
        np.testing.assert_array_equal(alone(X[::-1])[::-1], scores)
        np.testing.assert_array_equal(alone(X[7:8]), scores[7:8])


def curve(number: int, columns: int, seed: int) -> NDArray[np.float64]:
    """Records along a curve in many columns, on scales that differ."""
    rng = np.random.default_rng(seed)
    time = rng.uniform(0.0, 3.0, number)
    phases = np.random.default_rng(9).uniform(0.0, 6.0, columns)
    scales = np.geomspace(0.01, 1.0, columns)
    waves: NDArray[np.float64] = np.sin(time[:, None] * 2.0 + phases) + 0.1 * rng.normal(
        size=(number, columns)
    )
    return waves * scales


def area(usual: NDArray[np.float64], strange: NDArray[np.float64]) -> float:
    """Under the ROC curve."""
    return float((usual[:, None] > strange).mean())


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("top", [2.0, 20.0])
def test_a_density_sees_how_columns_depend_on_each_other(delta: float | None, top: float) -> None:
    """Each column of the strange points is that of a record, another one for each column."""
    X, new = curve(6000, 20, 0), curve(800, 20, 1)
    strange = np.column_stack(
        [np.random.default_rng(i).permutation(column) for i, column in enumerate(new.T)]
    )
    bounds = [(-top * each, top * each) for each in np.geomspace(0.01, 1.0, 20)]
    found = {}
    for method in ("auto", "histograms"):
        model = hs.PrivateOutlierDetector(
            epsilon=1.0, delta=delta, method=method, bounds=bounds, random_state=0
        )
        model.fit(X)
        found[model.method_] = area(model.score_samples(new), model.score_samples(strange))
    assert found["density"] > 0.9
    assert found["histograms"] < 0.6


def test_few_records_of_many_columns_are_scored_by_their_bins() -> None:
    X = np.random.default_rng(3).normal(0.0, 0.1, size=(300, 30))
    strange = np.random.default_rng(4).normal(0.0, 0.4, size=(300, 30))
    new = np.random.default_rng(5).normal(0.0, 0.1, size=(300, 30))
    model = hs.PrivateOutlierDetector(epsilon=1.0, bounds=(-2, 2), random_state=0).fit(X)
    assert model.method_ == "histograms"
    assert area(model.score_samples(new), model.score_samples(strange)) > 0.9
    assert (model.predict(new) == 1).mean() > 0.8
    reported = model.query(new)
    assert (reported.stderr > 0.0).all()
    assert hs.PrivateOutlierDetector(epsilon=30.0, random_state=0).fit(X).method_ == "density"
    many = hs.PrivateOutlierDetector(epsilon=30.0, random_state=0).fit(np.tile(X, 2))
    assert many.method_ == "histograms"


def test_the_bandwidth_is_narrower_where_there_is_less_noise() -> None:
    X = curve(3000, 8, 0)
    widths = []
    for epsilon in (0.05, 5.0):
        model = hs.PrivateOutlierDetector(epsilon=epsilon, delta=1e-6, method="density", random_state=0)
        kernel: Any = model.fit(X).released_.parts["similarity"].kernel
        widths.append(kernel.bandwidth)
    assert widths[1] < widths[0] / 1.4


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize(("columns", "method"), [(2, "density"), (6, "density"), (6, "histograms")])
def test_each_step_gets_its_part_and_together_they_are_the_promise(
    columns: int, method: str, delta: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[Fraction] = []
    release = Tally.release

    def watched(tally: Tally, **given: Any) -> Any:
        spent.append(Fraction(given["epsilon"] if delta is None else given["rho"]))
        return release(tally, **given)

    monkeypatch.setattr(Tally, "release", watched)
    model = hs.PrivateOutlierDetector(
        epsilon=0.5, delta=delta, contamination=0.2, method=method, random_state=0
    ).fit(cluster(2000)[:, :1] * np.ones(columns))
    scores = Promise.of(epsilon=Fraction(3, 8), delta=delta)
    nearly = part_of(scores, Fraction(999_999_999, 10**9))
    whole = scores.epsilon if delta is None else nearly.rho
    assert whole is not None
    assert 0 <= sum(spent) / whole - 1 <= (0 if delta is None else Fraction(1, 10**8))
    assert spent[0] == sum(spent) * COUNT_SHARE
    assert len(spent) == (2 if method == "histograms" else 3 if columns == 2 else 6)
    if method == "density":
        rest = sum(spent) * (1 - COUNT_SHARE)
        assert spent[-1] == rest * density_share(columns, scores)
    assert model.claim_ == model.claim()
    assert model.claim_.epsilon == 0.5


@pytest.mark.parametrize("method", ["density", "histograms", "kernel"])
def test_a_saved_detector_answers_as_before(method: str) -> None:
    X = cluster(3000)
    model = hs.PrivateOutlierDetector(epsilon=2.0, method=method, contamination=0.1, random_state=0).fit(X)
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    read: Any = load_model(file)
    assert read.method_ == method
    assert np.array_equal(read.score_samples(X[:20]), model.score_samples(X[:20]))
    assert read.claim() == model.claim_


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("histograms", "shares", [-1.0]),
        ("histograms", "bins", [5.0, 0.1]),
        ("density", "scaling", [[0.0, -1.0, 0.0, 1.0]]),
    ],
)
def test_a_file_whose_arrays_make_no_sense_is_refused(method: str, name: str, value: Any) -> None:
    model = hs.PrivateOutlierDetector(epsilon=5.0, method=method, random_state=0).fit(cluster(1000)[:, :1])
    bundle = model.released_
    arrays = {**bundle.arrays, name: np.array(value)}
    file = io.BytesIO()
    Bundle(PublicFacts(bundle.claim), bundle.about, bundle.parts, arrays).save(file)
    file.seek(0)
    with pytest.raises(FileRefused):
        load_model(file).score_samples([[0.0]])


def test_the_average_score_is_that_of_the_records() -> None:
    """The default threshold is a tenth of it."""
    for columns, delta in ((2, None), (6, 1e-6)):
        X = np.random.default_rng(4).normal(0.0, 0.15, size=(20_000, columns))
        model = hs.PrivateOutlierDetector(epsilon=3.0, delta=delta, random_state=0).fit(X)
        average = float(model.score_samples(X).mean())
        assert 10.0 * model.offset_ == pytest.approx(average, rel=0.15)
        function: Any = model.released_.parts["similarity"]
        assert average_score(function) == pytest.approx(10.0 * model.offset_)


def test_what_is_released_follows_the_claim_and_the_columns_alone() -> None:
    """The order of the records changes nothing but noise: a bandwidth follows from released numbers."""
    density = ScaledDensity([(-1.0, 1.0)] * 6, Promise.of(epsilon=1.0), 5000.0, 0)
    # Independent normal columns are less alike in more columns, at the same part of √columns.
    assert density.of_normal(0.5) > density.of_normal(0.2)
    assert density.error(0.5, 0.3) > ScaledDensity(density.box, density.promise, 50_000.0, 0).error(0.5, 0.3)
    assert (
        density.bandwidth(lambda _: 1.0)
        < density.bandwidth(density.of_normal)
        < density.bandwidth(lambda _: 0.0)
    )


def test_scores_of_bins_are_geometric_means_of_their_shares() -> None:
    box = [(0.0, 1.0), (0.0, 1.0)]
    edges = [0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 7 / 8, 15 / 16, 1.0]
    shares = np.array([0.0, 0.0, 0.0, 0.8, 0.2, 0.0, 0.0, 0.0])
    scores = BinScores(box, 4, np.concatenate((shares, shares[::-1])), 0.0)
    raised = (shares + 1e-4) / (1.0 + 8e-4)
    points = np.array([[0.3, 0.6], [0.6, 0.3], [0.95, 0.99], [2.0, -1.0]])
    places = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, 7)
    expected = np.sqrt(raised[places[:, 0]] * raised[::-1][places[:, 1]])
    np.testing.assert_allclose(scores(points), expected, rtol=1e-2)
    assert scores.usual(0.0) > scores.usual(2.0) > 0.0


def test_advice_and_predictions_before_a_release() -> None:
    few = hs.PrivateOutlierDetector(epsilon=0.1, records=300)
    assert "noise is predicted to hide" in few.advice(40)[0]
    assert hs.PrivateOutlierDetector(delta=1e-6).advice(40) == []
    assert "leave method and bandwidth out" in hs.PrivateOutlierDetector(method="kernel").advice(40)[0]
    for columns in (1, 5, 40):
        model = hs.PrivateOutlierDetector(delta=1e-6)
        errors = [model.predicted_error(records, columns) for records in (1000, 100_000)]
        assert errors[0] is not None
        assert errors[1] is not None
        assert errors[1].error < errors[0].error
    large = hs.PrivateOutlierDetector(records=10**8)
    assert (large.kept_per_record(3), large.kept_per_record(1)) == (0, 1)
    assert [large.effective("bandwidth", columns) for columns in (3, 16, 100)] == [0.5, 2.0, 10.0]


def test_persons_have_their_records_capped() -> None:
    X = cluster(4000)
    units = np.repeat(np.arange(2000), 2)
    model = hs.PrivateOutlierDetector(epsilon=4.0, delta=1e-6, max_per_unit=2, random_state=0).fit(
        X, units=units
    )
    assert (model.claim_.unit, model.claim_.records_per_unit) == ("person", 2)
    assert model.predict([[0.0, 0.0, 0.0], [0.9, -0.9, 0.9]]).tolist() == [1, -1]


def test_functions_are_read_in_the_units_they_were_counted_in() -> None:
    X = cluster(3000)
    model = hs.PrivateOutlierDetector(epsilon=1.0, random_state=0).fit(X)
    scores: Any = model._reading().scores
    assert isinstance(scores, FunctionScores)
    reported = model.query(X[:5], level=0.9)
    assert np.array_equal(reported.points, X[:5])
    assert np.array_equal(reported.value, scores.function(scores.prepared(X[:5])))
