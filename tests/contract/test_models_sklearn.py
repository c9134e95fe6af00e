"""scikit-learn's own checks, for every model as it comes."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_fit_idempotent, parametrize_with_checks

from tests.contract.fitted_models import MODELS


@pytest.mark.filterwarnings("ignore::hushsum.errors.RepeatedSpending")
@pytest.mark.filterwarnings("ignore::hushsum.errors.PublicAssumption")
# Their records lie far outside the default bounds.
@pytest.mark.filterwarnings("ignore:most .* outside the default bounds:hushsum.errors.SuspiciousParameter")
# Some checks fit scalers to their records.
@pytest.mark.filterwarnings("ignore:.*as if a scaler had been fitted:hushsum.errors.SuspiciousParameter")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([model() for model in MODELS])  # type: ignore[untyped-decorator]
def test_every_model_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    if check.func is check_fit_idempotent:
        return  # Every fit draws new noise.
    check(estimator)
