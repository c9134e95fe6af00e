"""Records that mostly lie outside the declared bounds are refused before anything is spent; the owner is
warned of parameters that are statistics of the records, and of records scaled by something fitted to them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import hushsum as hs
from hushsum.errors import DataRefused, SuspiciousParameter, UsageError
from hushsum.models import MODELS, NumberColumn, PublicEncoder
from tests.exact_tallies import exact_count
from tests.recording_budget import RecordingBudget

RNG = np.random.default_rng(7)
RECORDS = pd.DataFrame({"age": RNG.uniform(20.0, 60.0, 200), "share": RNG.uniform(0.1, 0.9, 200)})
LABELS = np.tile([0, 1], 100)
BOX = {"age": (0.0, 1.0), "share": (0.0, 1.0)}
NAMED = sorted(name for name, kind in MODELS.items() if kind.COMMAND and name != "PrivateSynthesizer")


def model_of(name: str, **given: Any) -> Any:
    kind = MODELS[name]
    known = {each.name for each in kind.PARAMETERS}
    declared = {"classes": [0, 1], "delta": 1e-6 if kind.NEEDS_DELTA else None}
    return kind(random_state=0, **{k: v for k, v in {**declared, **given}.items() if k in known})


@pytest.mark.parametrize("name", NAMED)
def test_no_model_spends_on_clipped_records(name: str) -> None:
    spent = RecordingBudget()
    model = model_of(name, bounds=BOX, budget=spent)
    with pytest.raises(
        DataRefused, match=r"foremost in column 'age'.*allow_clipping=True.*nothing was spent"
    ):
        model.fit(RECORDS, LABELS)
    assert not spent.steps
    with pytest.raises(DataRefused, match="most records"):
        model.partial_fit(RECORDS, LABELS)
    with pytest.warns(SuspiciousParameter, match="most records of this batch lie outside the") as warned:
        model.partial_fit(RECORDS, LABELS, allow_clipping=True)
    assert len([each for each in warned if "most records" in str(each.message)]) == 1


def test_default_bounds_that_do_not_fit_are_warned_of() -> None:
    """Nobody declared them; scikit-learn's conventions ask that a model as it comes fits."""
    with pytest.warns(
        SuspiciousParameter, match="most records .* outside the default bounds.*declare bounds"
    ):
        hs.PrivateDensity().fit(RNG.uniform(18.0, 90.0, (500, 1)))
    model = hs.PrivateRegressor(bounds=(0.0, 100.0))
    with pytest.warns(SuspiciousParameter, match="most targets of this batch lie outside the default bounds"):
        model.fit(RECORDS, RECORDS["age"])


def test_bounds_that_differ_from_the_default_were_declared() -> None:
    model = hs.PrivateDensity(bounds=(-1.0, 1.5))
    with pytest.raises(DataRefused, match="nothing was spent"):
        model.fit(RNG.uniform(18.0, 90.0, (500, 1)))


def test_targets_outside_of_their_bounds_are_refused() -> None:
    model = hs.PrivateRegressor(bounds=(0.0, 100.0), target_bounds=(0.0, 1.0))
    with pytest.raises(DataRefused, match="target_bounds must contain most targets"):
        model.fit(RECORDS, RECORDS["age"])


@pytest.mark.parametrize("method", ["auto", "race", "histogram", "privbayes"])
def test_no_method_spends_on_clipped_records(method: str) -> None:
    kernel = "euclidean" if method == "race" else "gaussian"
    spent = RecordingBudget()
    given: dict[str, Any] = {"kernel": kernel, "bandwidth": 0.1, "bounds": BOX, "method": method}
    with pytest.raises(DataRefused, match="most records"):
        hs.release(RECORDS, epsilon=1.0, budget=spent, **given)
    assert not spent.steps
    with pytest.warns(SuspiciousParameter, match="most records"):
        hs.release(RECORDS, epsilon=1.0, budget=spent, allow_clipping=True, **given)
    assert spent.steps.count("debited") == 1


@pytest.mark.parametrize("name", NAMED)
def test_suitable_bounds_are_not_warned_of(name: str) -> None:
    model = model_of(name, bounds={"age": (0.0, 100.0), "share": (0.0, 1.0)}, target_bounds=(0.0, 1.0))
    model.partial_fit(RECORDS, LABELS)


@pytest.mark.parametrize("name", NAMED)
def test_a_refusal_of_bounds_names_the_column(name: str) -> None:
    reversed_bounds = {"age": (0.0, 100.0), "share": (1.0, 0.0)}
    with pytest.raises(UsageError, match="bounds of column 'share' must be finite with low < high"):
        model_of(name, bounds=reversed_bounds).partial_fit(RECORDS, LABELS)


def test_columns_without_a_name_are_taken_by_position() -> None:
    unnamed = RECORDS.set_axis(["age", ""], axis=1)
    model_of("PrivateHistogram", bounds=[(0.0, 100.0), (0.0, 1.0)]).fit(unnamed)


def test_a_tally_refuses_them_and_is_unchanged() -> None:
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.1), bounds=BOX, columns=["age", "share"])
    with pytest.raises(DataRefused, match="foremost in column 'age'"):
        tally.add(RECORDS)
    assert exact_count(tally) == 0
    with pytest.warns(SuspiciousParameter, match="foremost in column 'age'"):
        tally.add(RECORDS, allow_clipping=True)


def test_a_stream_that_is_paid_warns() -> None:
    """Which steps are released must not depend on the records."""
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.1), bounds=BOX, columns=["age", "share"])
    stream = hs.stream(tally, horizon=3, epsilon=1.0, delta=1e-6)
    with pytest.warns(SuspiciousParameter, match="most records"):
        stream.add(RECORDS)


TENTHS = RECORDS.round(1).clip(0.3, 55.7)
READ_OFF = {name: (float(TENTHS[name].min()), float(TENTHS[name].max())) for name in TENTHS}


@pytest.mark.parametrize("name", [*NAMED, "PrivateSynthesizer"])
@pytest.mark.parametrize("batches", [1, 4])
def test_bounds_that_were_read_off_the_records_are_noticed_once(name: str, batches: int) -> None:
    bounds = {"age": READ_OFF["age"], "share": (0.0, 1.0)}
    model = model_of(name, bounds=bounds, target_bounds=(0.0, 1.0))
    size = len(TENTHS) // batches
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for start in range(0, len(TENTHS), size):
            model.partial_fit(TENTHS[start : start + size], LABELS[start : start + size])
    found = [each for each in caught if each.category is SuspiciousParameter]
    assert [str(each.message).partition(":")[0] for each in found] == [
        "the bounds of column 'age' are the smallest and the largest value of the records"
    ]
    assert found[0].filename == __file__


def test_target_bounds_that_were_read_off_are_noticed() -> None:
    model = hs.PrivateRegressor(bounds=(0.0, 1.0), target_bounds=READ_OFF["age"])
    with pytest.warns(SuspiciousParameter, match="the bounds of the target are the smallest"):
        model.fit(TENTHS[["share"]].to_numpy(), TENTHS["age"].to_numpy())


NOISY = RNG.normal(50.0, 9.0, (200, 2))


def wide() -> hs.PrivateHistogram:
    return hs.PrivateHistogram(bounds=(-100.0, 100.0))


LEARNING = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    MinMaxScaler(),
    MinMaxScaler((-1, 1)),
    MaxAbsScaler(),
    RobustScaler(),
    PowerTransformer(),
    PCA(2),
]
RECORD_BY_RECORD = [
    FunctionTransformer(lambda X: X / 100.0),
    Normalizer(),
    PolynomialFeatures(1, include_bias=False),
    PublicEncoder([NumberColumn(0, 100), NumberColumn(0, 100)]),
    FrozenEstimator(StandardScaler().fit(RNG.normal(50.0, 10.0, (50, 2)))),
    "passthrough",
]


@pytest.mark.parametrize(
    "step", LEARNING, ids=lambda step: step if isinstance(step, str) else type(step).__name__
)
def test_a_step_that_learns_from_the_records_is_noticed(step: Any) -> None:
    for pipeline in (
        make_pipeline(clone(step), wide()),
        make_pipeline(make_pipeline(clone(step)), wide()),
        make_pipeline(ColumnTransformer([("all", clone(step), [0, 1])]), wide()),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pipeline.fit(NOISY)
        (warning,) = [each for each in caught if each.category is SuspiciousParameter]
        assert warning.filename == __file__
        assert f"{type(step).__name__} before PrivateHistogram in the pipeline" in str(warning.message)
        assert "PublicEncoder" in str(warning.message)
        assert "FrozenEstimator" in str(warning.message)
    outside = clone(step).fit_transform(NOISY)
    with pytest.warns(SuspiciousParameter, match="as if a scaler had been fitted.*keep it to yourself"):
        wide().fit(outside)


def test_a_scaled_target_is_noticed() -> None:
    target = NOISY[:, 1]
    scaled = (target - target.mean()) / target.std(ddof=1)
    with pytest.warns(SuspiciousParameter, match="these targets have a standard deviation of 1"):
        hs.PrivateRegressor(bounds=(0, 100), target_bounds=(-5, 5)).fit(NOISY[:, :1], scaled)


@pytest.mark.parametrize(
    "step", RECORD_BY_RECORD, ids=lambda step: step if isinstance(step, str) else type(step).__name__
)
def test_a_step_that_learns_nothing_of_the_records_is_left_in_peace(step: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(step, hs.PrivateHistogram(bounds=(-100.0, 100.0))).fit(NOISY)


@pytest.mark.parametrize(
    "records",
    [
        RNG.uniform(0.0, 1.0, (300, 2)),
        np.clip(RNG.uniform(-0.1, 1.1, (300, 1)), 0.0, 1.0),
        RNG.integers(0, 256, (300, 3)) / 255.0,
        np.tile([-1.0, 1.0], 150)[:, np.newaxis],
        np.column_stack([np.tile([0.0, 1.0], 150), RNG.normal(0.0, 1.0, 300)]),
    ],
    ids=["uniform", "shares", "pixels", "signs", "flags"],
)
def test_records_that_nothing_was_fitted_to_are_left_in_peace(records: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hs.PrivateHistogram(bounds=(-5.0, 5.0)).fit(records)


@pytest.mark.parametrize(
    "records",
    [
        np.linspace(0.0, 1.0, 500)[:, None],
        np.linspace(-1.0, 1.0, 501)[:, None],
        np.repeat([[-0.5, 0.0], [0.5, 0.0]], 300, axis=0),
    ],
    ids=["from 0 to 1", "from -1 to 1", "two places"],
)
def test_evenly_spaced_records_were_not_scaled(records: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hs.PrivateHistogram(bounds=(-1, 1)).fit(records)


def test_an_evenly_spaced_column_does_not_hide_a_scaled_one() -> None:
    measured = np.random.default_rng(0).normal(size=500)
    scaled = (measured - measured.min()) / np.ptp(measured)
    with pytest.warns(SuspiciousParameter, match="extremes at 0 or ±1"):
        hs.PrivateHistogram(bounds=(-1, 1)).fit(np.column_stack([np.linspace(0.0, 1.0, 500), scaled]))
