"""Records that mostly lie outside the declared bounds are refused before anything is spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, SuspiciousParameter, UsageError
from hushsum.models.base import MODELS
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


def test_the_default_bounds_of_a_model_are_not_paid_for() -> None:
    with pytest.raises(DataRefused, match="nothing was spent"):
        hs.PrivateDensity().fit(RNG.uniform(18.0, 90.0, (500, 1)))


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
    assert tally._state()["count"] == 0
    with pytest.warns(SuspiciousParameter, match="foremost in column 'age'"):
        tally.add(RECORDS, allow_clipping=True)


def test_a_stream_that_is_paid_warns() -> None:
    """Which steps are released must not depend on the records."""
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.1), bounds=BOX, columns=["age", "share"])
    stream = hs.stream(tally, steps=3, epsilon=1.0, delta=1e-6)
    with pytest.warns(SuspiciousParameter, match="most records"):
        stream.add(RECORDS)
