"""Choosing among methods: what is predicted is what is released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.releases import CoefficientFunction, TableFunction

GAUSSIAN = hs.GaussianKernel(dim=2, bandwidth=0.2)


def records(number: int, dim: int = 2) -> Any:
    return np.random.default_rng(1).uniform(-1, 1, (number, dim))


@pytest.mark.parametrize(
    "promise",
    [
        {"epsilon": 0.5},
        {"epsilon": 0.5, "delta": 1e-6},
        {"rho": 0.02},
        {"epsilon": 1.0, "relation": "replace"},
    ],
    ids=str,
)
def test_the_error_of_a_grid_is_as_predicted(promise: dict[str, Any]) -> None:
    """60 releases at 40 queries: nearby answers share noise, so about 60 × 15 are independent, and their mean
    absolute error is within 12 % of its expectation but for one run in 10⁶.
    """
    X, Q = records(20_000), np.random.default_rng(2).uniform(-0.6, 0.6, (40, 2))
    best = hs.plan(records=20_000, kernel=GAUSSIAN, bounds=(-1, 1), density=0.06, **promise).best
    assert best.method == "grid"
    given = {**promise, "delta": promise.get("delta") if best.delta else None}
    tally = hs.grid(GAUSSIAN, bounds=(-1, 1), spacing=best.settings["spacing"]).add(X)
    truth = GAUSSIAN.exact_sum(X, Q) / len(X)
    errors = [np.abs(tally.release(**given, insecure_noise_seed=i)(Q) - truth).mean() for i in range(60)]
    assert np.mean(errors) == pytest.approx(best.error, rel=0.2)


def test_with_few_cells_pure_noise_serves_a_promise_with_delta() -> None:
    best = hs.plan(records=1000, kernel=GAUSSIAN, bounds=(-1, 1), epsilon=0.5, delta=1e-6).best
    assert best.mechanism == "discrete laplace"
    f = hs.release(records(1000), kernel=GAUSSIAN, bounds=(-1, 1), epsilon=0.5, delta=1e-6)
    assert f.claim.delta == 0.0
    assert f.claim.epsilon == 0.5


def test_the_method_follows_the_kernel_and_what_is_declared() -> None:
    X = records(500)
    assert isinstance(hs.release(X, epsilon=1.0, kernel=GAUSSIAN, bounds=(-1, 1)), CoefficientFunction)
    assert isinstance(hs.release(X, epsilon=1.0, bandwidth=1.0, bounds=(-1, 1)), TableFunction)
    assert hs.plan(records=500, epsilon=1.0, kernel=GAUSSIAN).best.method == "fourier_features"
    assert hs.release(records(900, 6), epsilon=1.0, kernel="gaussian", bandwidth=1.0).claim.delta == 0.0
    with pytest.raises(UsageError, match="declare bounds"):
        hs.plan(records=500, epsilon=1.0, kernel=GAUSSIAN, method="grid")
    with pytest.raises(UsageError, match="not a collision probability"):
        hs.release(X, epsilon=1.0, kernel=GAUSSIAN, bounds=(-1, 1), method="race")
    with pytest.raises(UsageError, match="method must be"):
        hs.plan(records=500, epsilon=1.0, kernel=GAUSSIAN, method="guess")


def test_files_stay_below_the_limit() -> None:
    plan = hs.plan(records=10_000, kernel=hs.GaussianKernel(3, 0.02), bounds=(-1, 1), epsilon=1.0)
    assert all(option.size <= 64_000_000 for option in plan)
    small = hs.plan(records=10_000, kernel=GAUSSIAN, bounds=(-1, 1), epsilon=1.0, max_bytes=2500)
    assert 0 < len(small) < len(hs.plan(records=10_000, kernel=GAUSSIAN, bounds=(-1, 1), epsilon=1.0))
    quick = hs.plan(records=10**7, dim=20, bandwidth=1.0, epsilon=1.0, delta=1e-6, max_seconds=30)
    assert all(option.seconds <= 30 for option in quick)
    assert len(hs.plan(records=10**12, dim=20, bandwidth=1.0, epsilon=1.0, delta=1e-6)) == 1
    rows = hs.plan(records=10_000, dim=3, bandwidth=1.0, epsilon=1.0, delta=1e-6, max_bytes=2_000_000)
    assert all(option.size <= 2_000_000 for option in rows)


def test_a_declared_number_of_records_decides_the_sizes() -> None:
    few, many = (
        hs.plan(records=number, kernel=GAUSSIAN, bounds=(-1, 1), epsilon=1.0).best.settings["spacing"]
        for number in (1000, 100_000_000)
    )
    assert many < few
