"""Columns in units of private quantiles: the map, its part of the budget, and what the classifier gains."""

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
from hushsum.methods import private_quantiles
from hushsum.models import _classifier as column_scaling
from hushsum.models import load_model
from hushsum.models._classifier import (
    SHARE,
    ColumnScaling,
    columns_quantiles,
    quantiles_are_useful,
    split_promise,
)
from hushsum.privacy import Mechanism, Promise, table_noise
from hushsum.releases import Bundle, PublicFacts
from hushsum.tables import ClassMoments
from hushsum.tally import Tally

BOUNDS = [(-60.0, 2880.0), (0.0, 1e6), (0.0, 10.0)]
QUANTILES = [[-8.0, 25.0], [0.0, 0.0], [2.0, 8.0]]

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
    scaling = ColumnScaling.of(BOUNDS, QUANTILES)

    def test_rises_from_minus_one_to_one(self) -> None:
        low, high = np.array(BOUNDS).T
        rows = low + np.linspace(0.0, 1.0, 20_001)[:, None] * (high - low)
        units = self.scaling.units(rows)
        assert (np.diff(units, axis=0) > 0.0).all()
        assert units[0].tolist() == [-1.0] * 3
        assert units[-1].tolist() == [1.0] * 3

    def test_is_straight_between_the_quantiles_and_slower_beyond(self) -> None:
        slopes = np.diff(
            self.scaling.units(np.repeat([[-8.0], [8.5], [25.0], [41.5], [58.0]], 3, axis=1)), axis=0
        )
        assert slopes[0, 0] == pytest.approx(slopes[1, 0])
        assert slopes[1, 0] > slopes[2, 0] > slopes[3, 0] > 0.0

    def test_clips_what_is_outside_of_the_bounds(self) -> None:
        assert self.scaling.units(np.array([[-1e9, 1e9, 11.0]])).tolist() == [[-1.0, 1.0, 1.0]]

    def test_a_record_depends_on_no_other_bit_for_bit(self) -> None:
        rows, _ = skewed(1001)
        together = self.scaling.units(rows)
        alone = np.concatenate([self.scaling.units(row[None]) for row in rows])
        assert np.array_equal(together, alone)
        assert np.array_equal(self.scaling.units(np.asfortranarray(rows[::-1])), together[::-1])

    @pytest.mark.parametrize(
        "quantiles",
        [
            QUANTILES[:2],
            [[-61.0, 25.0], *QUANTILES[1:]],
            [[25.0, -8.0], *QUANTILES[1:]],
            [[np.nan, 25.0], *QUANTILES[1:]],
        ],
    )
    def test_refuses_what_are_no_quantiles(self, quantiles: Any) -> None:
        with pytest.raises(ValueError, match="quantiles"):
            ColumnScaling.of(BOUNDS, quantiles)


class TestTheBudget:
    @pytest.mark.parametrize("delta", [None, 1e-6])
    def test_parts_add_up_to_the_promise_exactly(self, delta: float | None) -> None:
        promise = Promise.of(epsilon=0.3, delta=delta)
        paid, rest = split_promise(promise)
        assert rest.epsilon is not None
        assert paid + rest.epsilon == promise.epsilon == Fraction(3, 10)
        assert rest.delta == promise.delta

    @pytest.mark.parametrize("delta", [None, 1e-6])
    def test_each_step_gets_its_part_and_nothing_else_is_released(
        self, delta: float | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[tuple[str, Any, Any]] = []
        quantiles, release = private_quantiles, Tally.release

        def watched_quantiles(X: Any, q: Any, **given: Any) -> Any:
            asked.append(("quantiles", given["epsilon"], None))
            return quantiles(X, q, **given)

        def watched_release(tally: Tally, **given: Any) -> Any:
            asked.append(("table", given["epsilon"], given["delta"]))
            return release(tally, **given)

        monkeypatch.setattr(column_scaling, "private_quantiles", watched_quantiles)
        monkeypatch.setattr(Tally, "release", watched_release)
        X, y = skewed(5000)
        model = model_of(epsilon=0.7, delta=delta, column_scaling="quantiles", method="discriminant").fit(
            X, y
        )
        spent = None if delta is None else Fraction(1, 10**6)
        assert asked == [("quantiles", Fraction(7, 50), None), ("table", Fraction(28, 50), spent)]
        assert model.claim_.epsilon == 0.7
        assert model.claim_.promise.delta == (spent or 0)
        assert model.claim_.mechanism == Mechanism.of("permute and flip") + table_noise(model.claim_.promise)
        assert model.claim_ == model.claim()
        assert (
            model.claim_
            == model_of(epsilon=0.7, delta=delta, column_scaling="quantiles", method="discriminant").claim()
        )

    def test_a_record_moves_the_table_by_what_it_adds_alone(self) -> None:
        """In the units of any quantiles, so that the sensitivity of the table is that of class moments."""
        X, y = skewed(500)
        for quantiles in (QUANTILES, [[-60.0, 2880.0], [0.0, 1e6], [5.0, 5.0]]):
            scaling = ColumnScaling.of(BOUNDS, quantiles)
            basis = ClassMoments(2, 3, radius=1.0, moments=1, mean_weight=4096)
            tables = [
                counted(basis, np.column_stack((y[part], scaling.units(X[part]))))
                for part in (slice(0, 500), slice(0, 499), slice(499, 500))
            ]
            assert np.array_equal(tables[0] - tables[1], tables[2])

    def test_quantiles_are_near_and_cost_no_labels(self) -> None:
        X, _ = skewed(40_000)
        found = columns_quantiles(X, BOUNDS, SHARE)
        ranks = [(X[:, j] <= found[j, i]).mean() for j in range(3) for i in range(2)]
        # A step of the grid of amounts holds nearly all of them.
        assert np.allclose(np.array(ranks)[[0, 1, 4, 5]], [0.15, 0.85, 0.15, 0.85], atol=0.05)


class TestTheClassifier:
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.3, None), (0.2, 1e-6)])
    def test_skewed_columns_in_wide_bounds(self, epsilon: float, delta: float | None) -> None:
        X, y = skewed(20_000)
        test, truth = skewed(5000, seed=1)
        scores: dict[str, list[float]] = {"auto": [], "bounds": []}
        for each in [*scores] * 6:
            model = model_of(epsilon=epsilon, delta=delta, column_scaling=each).fit(X, y)
            assert model.method_ == "discriminant"
            assert model.column_scaling_ == {"auto": "quantiles"}.get(each, each)
            scores[each].append(model.score(test, truth))
        assert np.median(scores["auto"]) > 0.91
        assert np.mean(scores["auto"]) > np.mean(scores["bounds"]) + 0.05

    def test_it_is_read_from_a_file_as_it_was(self) -> None:
        X, y = skewed(5000)
        model = model_of().fit(X, y)
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        again = load_model(file)
        assert again.column_scaling_ == "quantiles"
        assert np.array_equal(again.predict_proba(X[:50]), model.predict_proba(X[:50]))

    @pytest.mark.parametrize(
        "arrays", [{}, {"quantiles": np.zeros((2, 2))}, {"quantiles": np.full((3, 2), -100.0)}]
    )
    def test_a_file_without_its_quantiles_is_refused(self, arrays: dict[str, Any]) -> None:
        X, y = skewed(2000)
        found = model_of().fit(X, y).released_
        read = hs.models.model_of(
            Bundle(PublicFacts(found.claim), dict(found.about), dict(found.parts), arrays)
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
        def scaling(dim: int = 3, **given: Any) -> bool:
            return bool(model_of(bounds=(0, 1), **given).kept_per_record(dim))

        assert scaling()
        assert scaling(epsilon=0.1)
        assert not scaling(epsilon=0.02, method="discriminant")
        assert scaling(epsilon=0.02, method="discriminant", records=100_000)
        assert not scaling(method="kernel")
        assert not scaling(method="means")
        assert scaling(method="means", column_scaling="quantiles")
        assert not scaling(radius=1.0)
        assert not scaling(dim=33, records=10**9)
        assert not quantiles_are_useful(33, 10**9, Promise.of(epsilon=1.0))

    def test_quantiles_by_choice_take_class_means_where_second_moments_are_noise(self) -> None:
        model = model_of(epsilon=0.01, column_scaling="quantiles", records=1000)
        assert model.chosen_method(3) == "means"
        assert model_of(epsilon=0.01, records=1000).chosen_method(3) == "kernel"

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
        assert left.error == pytest.approx(wide.error / (1.0 - float(SHARE)), rel=0.01)
