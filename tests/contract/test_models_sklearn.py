"""scikit-learn's own checks, for every model as it comes."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from hushsum._native import StreamKey
from hushsum.privacy.noise import NoiseSource
from tests.contract.fitted_models import MODELS

OF_TWO_FITS = {"check_classifier_data_not_an_array", "check_supervised_y_2d"}
"""Checks that compare the predictions of two fits to some dozen records, which at ε = 1 noise decides: here
both fits draw the same.
"""


@pytest.mark.filterwarnings("ignore::hushsum.errors.RepeatedSpending")
@pytest.mark.filterwarnings("ignore::hushsum.errors.PublicAssumption")
@pytest.mark.filterwarnings("ignore:most (records|targets):hushsum.errors.SuspiciousParameter")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([model() for model in MODELS])  # type: ignore[untyped-decorator]
def test_every_model_passes_the_checks_of_scikit_learn(
    estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_classifier(estimator) and getattr(check, "func", check).__name__ in OF_TWO_FITS:
        monkeypatch.setattr(NoiseSource, "fresh", lambda: NoiseSource(StreamKey(bytes(32)), secure=True))
    check(estimator)
