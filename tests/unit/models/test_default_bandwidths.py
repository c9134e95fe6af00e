"""A bandwidth that is not given suits the declared bounds, whatever the units of the columns are."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.models import MODELS

RNG = np.random.default_rng(11)
KINDS = sorted(name for name, kind in MODELS.items() if kind.DEFAULT_BANDWIDTH)


def model_of(name: str, **given: Any) -> Any:
    known = {each.name for each in MODELS[name].PARAMETERS}
    choosing = ("PrivateClassifier", "PrivateOutlierDetector")
    declared = {"classes": [0, 1], "method": "kernel" if name in choosing else None, **given}
    return MODELS[name](random_state=0, **{k: v for k, v in declared.items() if k in known and v is not None})


def test_every_model_with_a_bandwidth_has_a_default_for_any_bounds() -> None:
    declared = {
        name for name, kind in MODELS.items() if any(each.name == "bandwidth" for each in kind.PARAMETERS)
    }
    assert declared == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_the_units_of_the_columns_do_not_matter(name: str) -> None:
    part = MODELS[name].DEFAULT_BANDWIDTH
    for box in ([(-1, 1)] * 2, [(0, 500_000)] * 2, [(0, 120), (0, 500_000)], [(0, 120), (0, 100)]):
        (kernel,) = model_of(name, bounds=box).compared_by(2)
        widths = np.array([high - low for low, high in box], float)
        expected = part * (widths if widths.max() > 10 * widths.min() else np.full(2, widths.max()))
        np.testing.assert_allclose(kernel.column_bandwidths(), expected)


def test_a_gaussian_process_of_ages_predicts_something() -> None:
    age = RNG.uniform(18, 90, (4000, 1))
    pay = 20_000 + 1_000 * age[:, 0]
    model = hs.PrivateGaussianProcessRegressor(
        epsilon=2.0, bounds=(0, 120), target_bounds=(0, 200_000), random_state=0
    )
    low, high = model.fit(age, pay).predict([[25.0], [80.0]])
    assert abs(low - 45_000) < 15_000
    assert abs(high - 100_000) < 15_000


def test_what_the_bandwidth_was_is_stored() -> None:
    X = RNG.uniform(0, 120, (500, 1))
    model = hs.PrivateDensity(bounds=(0, 120), random_state=0).fit(X)
    buffer = io.BytesIO()
    model.save(buffer)
    buffer.seek(0)
    loaded: Any = hs.load(buffer)
    assert model.bandwidth is None
    assert loaded.bandwidth == 15.0
    np.testing.assert_array_equal(loaded.predict(X[:5]), model.predict(X[:5]))


def test_a_default_never_warns_of_itself() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SuspiciousParameter)
        hs.PrivateDensity(bounds=(0, 500_000)).fit(RNG.uniform(0, 500_000, (500, 1)))
