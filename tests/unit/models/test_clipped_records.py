"""Every model warns its owner if most records lie outside the declared bounds, before anything is spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import hushsum as hs
from hushsum.errors import SuspiciousParameter, UsageError
from hushsum.models.base import MODELS

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
def test_every_model_warns_before_it_spends(name: str) -> None:
    model = model_of(name, bounds=BOX)
    with pytest.warns(SuspiciousParameter, match="most records of this batch lie outside the"):
        model.partial_fit(RECORDS, LABELS)


@pytest.mark.parametrize("name", NAMED)
def test_suitable_bounds_are_not_warned_of(name: str) -> None:
    model = model_of(name, bounds={"age": (0.0, 100.0), "share": (0.0, 1.0)}, target_bounds=(0.0, 1.0))
    model.partial_fit(RECORDS, LABELS)


@pytest.mark.parametrize("name", NAMED)
def test_the_warning_names_the_column(name: str) -> None:
    with pytest.warns(SuspiciousParameter, match="foremost in column 'age'"):
        model_of(name, bounds=BOX).partial_fit(RECORDS, LABELS)


@pytest.mark.parametrize("name", NAMED)
def test_a_refusal_of_bounds_names_the_column(name: str) -> None:
    reversed_bounds = {"age": (0.0, 100.0), "share": (1.0, 0.0)}
    with pytest.raises(UsageError, match="bounds of column 'share' must be finite with low < high"):
        model_of(name, bounds=reversed_bounds).partial_fit(RECORDS, LABELS)


def test_columns_without_a_name_are_taken_by_position() -> None:
    unnamed = RECORDS.set_axis(["age", ""], axis=1)
    model_of("PrivateHistogram", bounds=[(0.0, 100.0), (0.0, 1.0)]).fit(unnamed)


def test_the_warning_of_a_tally_names_the_column() -> None:
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.1), bounds=BOX, columns=["age", "share"])
    with pytest.warns(SuspiciousParameter, match="foremost in column 'age'"):
        tally.add(RECORDS)
