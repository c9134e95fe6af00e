"""Columns in units of private histograms: the map, its part of the budget, and what models gain."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.auditing import counted
from hushsum.errors import FileRefused, UsageError
from hushsum.models import load_model, part_of
from hushsum.models._classifier import after_scaling, scaling_share
from hushsum.models._column_scaling import (
    ColumnScaling,
    Histograms,
    bin_edges,
    bin_noise,
    can_be_kept,
    fences,
    histograms_are_useful,
    marginals_of,
    released_scaling,
)
from hushsum.models._linear_rules import LogisticSteps, probabilities
from hushsum.privacy import Promise, Relation, table_noise
from hushsum.releases import Bundle, PublicFacts
from hushsum.tables import ClassMoments
from hushsum.tally import Tally

BOUNDS = [(-60.0, 2880.0), (0.0, 1e6), (0.0, 10.0)]
SCALING = [[8.5, 16.5, 0.1, 0.9], [0.0, 1e-3, 2.0, 2.5], [5.0, 3.0, 0.0, 0.6]]
LARGE = Promise.of(rho=1000)

Rows = NDArray[np.float64]


def skewed(number: int, seed: int = 0) -> tuple[Rows, NDArray[np.int64]]:
    """Delays in wide bounds, a few of them many times as long as others, amounts, and waiting times: all of
    them near one corner of the bounds.
    """
    rng = np.random.default_rng(seed)
    late = (rng.random(number) < 0.3).astype(np.int64)
    delay = np.where(late == 1, 15.0 + rng.exponential(60.0, number), rng.normal(-3.0, 6.0, number))
    return np.column_stack((delay, rng.lognormal(5.0, 1.5, number), rng.exponential(0.5, number))), late


def model_of(**given: Any) -> Any:
    parameters = {"classes": [0, 1], "bounds": BOUNDS, "random_state": 0, **given}
    return hs.PrivateClassifier(**parameters)


class TestTheMap:
    scaling = ColumnScaling.of(BOUNDS, SCALING)

    def test_rises_and_stays_within_three(self) -> None:
        low, high = np.array(BOUNDS).T
        rows = low + np.linspace(0.0, 1.0, 20_001)[:, None] * (high - low)
        units = self.scaling.units(rows)
        assert (np.diff(units, axis=0) >= 0.0).all()
        assert np.abs(units).max() <= 3.0

    def test_is_straight_between_the_quantiles_and_slower_beyond(self) -> None:
        rows = np.repeat([[-8.0], [8.5], [25.0], [41.5], [58.0]], 3, axis=1)
        slopes = np.diff(self.scaling.units(rows), axis=0)
        assert slopes[0, 0] == pytest.approx(slopes[1, 0])
        assert slopes[1, 0] > slopes[2, 0] > slopes[3, 0] > 0.0

    def test_clips_what_is_outside_of_the_bounds(self) -> None:
        ends = self.scaling.units(np.array([[-1e9, 1e9, 11.0], [-60.0, 1e6, 10.0]]))
        assert np.array_equal(ends[0], ends[1])

    def test_a_record_depends_on_no_other_bit_for_bit(self) -> None:
        rows, codes = skewed(1001)
        together = self.scaling.units(rows)
        alone = np.concatenate([self.scaling.units(row[None]) for row in rows])
        assert np.array_equal(together, alone)
        assert np.array_equal(self.scaling.units(np.asfortranarray(rows[::-1])), together[::-1])
        for classes in (2, 3):
            steps = LogisticSteps(classes, 3, LARGE)
            weights = np.random.default_rng(1).normal(size=(classes, 4))
            gradients = steps.gradients(steps.whole(together), codes, weights)
            single = [
                steps.gradients(steps.whole(row[None]), codes[i : i + 1], weights)
                for i, row in enumerate(together)
            ]
            assert np.array_equal(gradients, np.concatenate(single))

    def test_records_are_measured_about_their_middle(self) -> None:
        rows, _ = skewed(40_000)
        units = released_scaling(rows, BOUNDS, LARGE, 40_000).units(rows)
        assert np.abs(units.mean(axis=0)).max() < 0.2
        assert np.all((units.std(axis=0) > 0.7) & (units.std(axis=0) < 1.3))

    @pytest.mark.parametrize("values", [SCALING[:2], [[-61.0, 1, 0, 1], *SCALING[1:]], np.zeros((3, 4))])
    def test_refuses_what_is_no_scaling(self, values: Any) -> None:
        with pytest.raises(ValueError, match="scaling"):
            ColumnScaling.of(BOUNDS, values)


class TestHistograms:
    def test_bins_are_narrow_next_to_zero_and_to_the_ends(self) -> None:
        edges = bin_edges(-8.0, 8.0)
        assert (np.diff(edges) > 0.0).all()
        assert edges[0] == -8.0
        assert edges[-1] == 8.0
        near = edges[np.abs(edges) < 0.5]
        assert len(near) == 35
        assert 0.0 in near

    @pytest.mark.parametrize("relation", list(Relation))
    def test_a_record_moves_one_cell_of_each_column(self, relation: Relation) -> None:
        basis = marginals_of(BOUNDS)
        rows = np.array([[-60.0, 0.0, 0.0], [2880.0, 1e6, 10.0]])
        one, other = (counted(basis, row[None]).astype(np.int64) for row in rows)
        moved = one if relation is Relation.ADD_REMOVE else one - other
        declared = basis.sensitivity(relation)
        assert np.abs(moved).sum() == declared.l1
        assert np.square(moved).sum() == declared.l2_squared

    def test_noise_is_taken_off_before_quantiles_are_read(self) -> None:
        rows, _ = skewed(20_000)
        found = Histograms.released(rows, BOUNDS, Promise.of(epsilon=0.3))
        assert all((each >= 0.0).all() for each in found.shares)
        assert [each.sum() for each in found.shares] == pytest.approx([1.0] * 3)
        ranks = [(rows[:, j] <= found.quantiles(j, (0.3, 0.7))[i]).mean() for j in range(3) for i in (0, 1)]
        np.testing.assert_allclose(ranks, [0.3, 0.7] * 3, atol=0.1)

    def test_the_noise_of_a_bin_is_known_beforehand(self) -> None:
        promise = Promise.of(epsilon=0.2)
        rows, _ = skewed(2000)
        found = Histograms.released(rows, BOUNDS, promise)
        assert found.noise * 2000 == pytest.approx(bin_noise(3, promise), rel=0.1)


class TestTheBudget:
    @pytest.mark.parametrize("delta", [None, 1e-6])
    @pytest.mark.parametrize("method", ["logistic", "discriminant"])
    def test_each_step_gets_its_part_and_together_they_are_the_promise(
        self, method: str, delta: float | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        spent: list[Any] = []
        release = Tally.release

        def watched(tally: Tally, **given: Any) -> Any:
            spent.append(given["epsilon"] if delta is None else given["rho"])
            return release(tally, **given)

        monkeypatch.setattr(Tally, "release", watched)
        X, y = skewed(5000)
        model = model_of(epsilon=0.7, delta=delta, method=method).fit(X, y)
        promise = Promise.of(epsilon=0.7, delta=delta)
        whole = part_of(promise, Fraction(999_999_999, 10**9))
        assert model.column_scaling_ == "quantiles"
        steps = (6, 12, 24) if delta is None else (30,)
        assert len(spent) - 2 in steps if method == "logistic" else len(spent) == 2
        total = Fraction(7, 10) if delta is None else whole.rho
        assert total is not None
        assert sum(spent) <= total * Fraction(10**9, 999_999_999)
        assert sum(spent) >= total
        assert spent[0] == sum(spent) * scaling_share(promise)
        assert model.claim_.epsilon == 0.7
        assert model.claim_.mechanism == table_noise(model.claim_.promise)
        assert model.claim_ == model.claim() == model_of(epsilon=0.7, delta=delta, method=method).claim()

    def test_a_record_moves_the_table_by_what_it_adds_alone(self) -> None:
        """In the units of any scaling, so that the sensitivity of the table is that of class moments."""
        X, y = skewed(500)
        for values in (SCALING, [[0.0, 1e-9, 5.0, 0.15]] * 3):
            scaling = ColumnScaling.of(BOUNDS, values)
            basis = ClassMoments(2, 3, radius=3.0**0.5, moments=1, mean_weight=4096)
            tables = [
                counted(basis, np.column_stack((y[part], scaling.units(X[part]))))
                for part in (slice(0, 500), slice(0, 499), slice(499, 500))
            ]
            assert np.array_equal(tables[0] - tables[1], tables[2])


class TestTheClassifier:
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.3, None), (0.2, 1e-6)])
    def test_skewed_columns_in_wide_bounds(self, epsilon: float, delta: float | None) -> None:
        X, y = skewed(20_000)
        test, truth = skewed(5000, seed=1)
        scores: dict[str, list[float]] = {"auto": [], "bounds": []}
        for each in [*scores] * 4:
            model = model_of(epsilon=epsilon, delta=delta, column_scaling=each).fit(X, y)
            assert model.method_ == {"auto": "logistic", "bounds": "discriminant"}[each]
            assert model.column_scaling_ == {"auto": "quantiles"}.get(each, each)
            scores[each].append(model.score(test, truth))
        assert np.median(scores["auto"]) > 0.93
        assert np.mean(scores["auto"]) > np.mean(scores["bounds"]) + 0.05

    def test_many_skewed_columns_and_indicators(self) -> None:
        """Sixty columns, of which most are zero for most records; in wide bounds all lie in one corner."""
        rng = np.random.default_rng(2)
        y = (rng.random(12_000) < 0.4).astype(np.int64)
        there = rng.random((12_000, 40)) < np.where(y, 0.3, 0.15)[:, None]
        X = np.column_stack(
            (there * rng.lognormal(0.0, 1.0, there.shape), np.eye(20)[rng.integers(0, 20, 12_000)])
        )
        box = [(0.0, 1000.0)] * 40 + [(0.0, 1.0)] * 20
        model = model_of(bounds=box, delta=1e-6).fit(X[:8000], y[:8000])
        assert model.score(X[8000:], y[8000:]) > 0.8
        assert model.advice(60) == []

    def test_probabilities_are_frequencies(self) -> None:
        rng = np.random.default_rng(4)
        X = rng.normal(50.0, 10.0, (40_000, 2))
        chances = 1.0 / (1.0 + np.exp(2.0 - (X - 50.0) @ [0.15, -0.1]))
        y = (rng.random(len(X)) < chances).astype(np.int64)
        model = model_of(bounds=(0, 100), delta=1e-6, epsilon=0.5).fit(X[:20_000], y[:20_000])
        found = model.predict_proba(X[20_000:])[:, 1]
        assert np.abs(found - chances[20_000:]).mean() < 0.03
        assert found.mean() == pytest.approx(chances.mean(), abs=0.01)

    def test_noise_alone_predicts_the_largest_class(self) -> None:
        X, y = skewed(2000)
        model = model_of(epsilon=0.05).fit(X, y)
        assert model.score(X, y) >= 0.7 - 0.05
        (warning,) = model_of(epsilon=0.01, records=2000).advice(3)
        assert "by their shares" in warning

    def test_likelihood_takes_classes_as_equally_frequent(self) -> None:
        X, y = skewed(20_000)
        rare = np.concatenate((np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:800]))
        found = {
            rule: model_of(delta=1e-6, rule=rule).fit(X[rare], y[rare]).predict(X[rare]).mean()
            for rule in ("auto", "map", "likelihood")
        }
        assert found["auto"] == pytest.approx(found["map"], abs=0.02)
        assert found["likelihood"] > found["map"]

    def test_it_is_read_from_a_file_as_it_was(self) -> None:
        X, y = skewed(5000)
        for method in ("logistic", "discriminant"):
            model = model_of(method=method).fit(X, y)
            file = io.BytesIO()
            model.save(file)
            file.seek(0)
            again = load_model(file)
            assert again.column_scaling_ == "quantiles"
            assert np.array_equal(again.predict_proba(X[:50]), model.predict_proba(X[:50]))

    @pytest.mark.parametrize("method", ["logistic", "discriminant"])
    @pytest.mark.parametrize("left_out", ["scaling", "weights", "shares"])
    def test_a_file_without_its_arrays_is_refused(self, method: str, left_out: str) -> None:
        X, y = skewed(2000)
        found = model_of(method=method).fit(X, y).released_
        if left_out not in found.arrays:
            return
        arrays = {name: each for name, each in found.arrays.items() if name != left_out}
        for changed in (arrays, arrays | {left_out: np.zeros((1, 1))}):
            read = hs.models.model_of(
                Bundle(PublicFacts(found.claim), dict(found.about), dict(found.parts), changed)
            )
            with pytest.raises(FileRefused, match="makes no sense"):
                cast(Any, read).predict(X)

    def test_batches_and_columns_by_name(self) -> None:
        import pandas as pd

        X, y = skewed(20_000)
        names = ["delay", "amount", "hour"]
        model = model_of(bounds=dict(zip(names, BOUNDS, strict=True)))
        for part in np.array_split(np.arange(len(X)), 3):
            model.partial_fit(pd.DataFrame(X[part], columns=names), y[part])
        assert model.keeps_records
        assert model.release().score(pd.DataFrame(X, columns=names), y) > 0.9

    def test_what_auto_decides_from_declared_quantities(self) -> None:
        def keeps(dim: int = 3, **given: Any) -> bool:
            return bool(model_of(bounds=(0, 1), **given).kept_per_record(dim))

        assert keeps()
        assert keeps(dim=500, delta=1e-6)
        assert keeps(method="means")
        assert not keeps(method="means", epsilon=0.001)
        assert not keeps(dim=500, epsilon=0.1)
        assert keeps(dim=500, epsilon=0.5, records=100_000)
        assert keeps(method="logistic", column_scaling="bounds")
        assert not keeps(method="kernel")
        assert not keeps(method="means", column_scaling="bounds")
        assert not keeps(column_scaling="bounds")
        assert not keeps(radius=1.0)
        assert not keeps(dim=30, records=10**8)
        assert not keeps(dim=5000)
        assert can_be_kept(4096, 10_000)

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"column_scaling": "ranks"}, "column_scaling must be one of"),
            ({"column_scaling": "quantiles", "method": "kernel"}, "column_scaling must be bounds or auto"),
            ({"column_scaling": "quantiles", "radius": 1.0}, "radius must be left out"),
            ({"column_scaling": "quantiles", "public": np.zeros((9, 3))}, "public must be left out"),
        ],
    )
    def test_parameters_that_do_not_go_together(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises(UsageError, match=message):
            model_of(**given).check_parameters()

    def test_the_predicted_error_is_that_of_what_is_left(self) -> None:
        wide = model_of(column_scaling="bounds", method="discriminant").predicted_error(10_000, 3)
        left = model_of(column_scaling="quantiles", method="discriminant").predicted_error(10_000, 3)
        assert left.error > wide.error / 0.7
        promise = after_scaling(Promise.of(epsilon=1.0))
        logistic = model_of(epsilon=1.0).predicted_error(10_000, 3)
        assert logistic.error == pytest.approx(LogisticSteps(2, 3, promise).slope_noise(10_000))
        assert logistic.error < model_of(epsilon=0.1).predicted_error(10_000, 3).error / 3.0


def test_exponentials_are_near_and_probabilities_add_up() -> None:
    logits = np.random.default_rng(0).normal(0.0, 4.0, (500, 4))
    exact = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(logits), exact, atol=1e-4)
    np.testing.assert_allclose(probabilities(logits - 1e6).sum(axis=1), 1.0)


class TestTheRegressor:
    @staticmethod
    def records(number: int) -> tuple[Rows, Rows]:
        rng = np.random.default_rng(3)
        X = rng.normal(20.0, 3.0, (number, 3))
        return X, X @ [1.0, -2.0, 0.5] + rng.normal(0.0, 1.0, number) + 40.0

    def test_wide_bounds_cost_little(self) -> None:
        X, y = self.records(10_000)
        given: dict[str, Any] = {"epsilon": 0.3, "bounds": (-100, 100), "target_bounds": (-1000, 1000)}
        fits = {
            each: hs.PrivateRegressor(column_scaling=each, **given).fit(X, y) for each in ("auto", "bounds")
        }
        assert fits["auto"].column_scaling_ == "quantiles"
        assert fits["auto"].score(X, y) > 0.85
        assert fits["bounds"].score(X, y) < 0.5
        assert fits["auto"].claim_ == fits["bounds"].claim_

    def test_ranges_are_those_of_the_records_unless_noise_hides_them(self) -> None:
        X, _ = self.records(10_000)
        box = [(-100.0, 100.0)] * 3
        (low, high), radius = fences(X, box, Promise.of(epsilon=1.0))
        assert np.all((low > 0.0) & (low < 17.0) & (high > 23.0) & (high < 40.0))
        assert 1.0 < radius < 2.0
        (low, high), _ = fences(X[:100], box, Promise.of(epsilon=0.01))
        assert low.tolist() == [-100.0] * 3
        assert high.tolist() == [100.0] * 3

    def test_a_file_with_other_ranges_is_refused(self) -> None:
        X, y = self.records(3000)
        model = hs.PrivateRegressor(bounds=(-100, 100), target_bounds=(-1000, 1000)).fit(X, y)
        found = model.released_
        assert model.keeps_records
        for changed in (
            {"fences": np.zeros((2, 4))},
            {"fences": np.full((2, 4), 1e6)},
            {"radius": np.zeros(1)},
        ):
            arrays = dict(found.arrays) | changed
            read = hs.models.model_of(
                Bundle(PublicFacts(found.claim), dict(found.about), dict(found.parts), arrays)
            )
            with pytest.raises(FileRefused, match="makes no sense"):
                cast(Any, read).predict(X)

    def test_which_ranges_are_taken(self) -> None:
        def kept(dim: int = 3, **given: Any) -> bool:
            model = hs.PrivateRegressor(bounds=(0, 1), target_bounds=(0, 1), **given)
            return bool(model.kept_per_record(dim))

        assert not kept(column_scaling="bounds", method="adassp")
        assert not kept(radius=1.5, method="adassp")
        assert kept(column_scaling="quantiles", method="sketch")
        assert kept(method="adassp")
        assert not kept(method="adassp", epsilon=0.001)
        assert histograms_are_useful(3, 10**6, Promise.of(epsilon=0.001))
        for given in ({"method": "ops"}, {"radius": 1.5}, {"calibration": "as-published", "method": "ssp"}):
            with pytest.raises(UsageError, match=r"(column_scaling|radius) must"):
                hs.PrivateRegressor(column_scaling="quantiles", **given).check_parameters()
