"""What an audit says of model files without a released table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.operations import audit_file

X = np.random.default_rng(2).uniform(-1.0, 1.0, (300, 1))
BOTH: dict[str, Any] = {"bounds": (-1, 1), "epsilon": 2.0}


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (hs.PrivateKMeans(2, **BOTH), "with 'hushsum audit --thorough' without a file"),
        (hs.PrivateMixture(2, **BOTH), "with 'hushsum audit --thorough' without a file"),
        (hs.PrivateKernelSVC(**BOTH, delta=1e-6, classes=[0, 1]), "with 'hushsum audit' without a file"),
        (
            hs.PrivateRegressor(**BOTH, method="objective", target_bounds=(-1, 1)),
            "is audited by benchmarks/outside_audits",
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_refusal_says_what_audits_the_mechanism(tmp_path: Path, model: Any, remedy: str) -> None:
    model.fit(X, (X[:, 0] > 0.0).astype(int)).save(tmp_path / "model.hush")
    with pytest.raises(UsageError, match=f"needs a released table, got a {type(model).__name__}.*{remedy}"):
        audit_file(str(tmp_path / "model.hush"))
