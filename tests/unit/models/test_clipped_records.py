"""Every model warns its owner if most records lie outside the declared bounds, before anything is spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import hushsum as hs
from hushsum.errors import SuspiciousParameter
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


def test_the_warning_names_the_column() -> None:
    with pytest.warns(SuspiciousParameter, match="foremost in column 'age'"):
        hs.PrivateKMeans(2, bounds=BOX).partial_fit(RECORDS)
    tally = hs.grid(hs.GaussianKernel(dim=2, bandwidth=0.1), bounds=BOX, columns=["age", "share"])
    with pytest.warns(SuspiciousParameter, match="foremost in column 'age'"):
        tally.add(RECORDS)
