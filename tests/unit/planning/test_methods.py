"""Choosing among methods: what is predicted is what is released."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import ClaimError, DataRefused, UsageError
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
    best = hs.plan(
        records=20_000, kernel=GAUSSIAN, bounds=(-1, 1), density=0.06, method="grid", **promise
    ).best
    given = {**promise, "delta": promise.get("delta") if best.delta else None}
    tally = hs.grid(GAUSSIAN, bounds=(-1, 1), **best.settings).add(X)
    given["count_share"] = best.count_share
    truth = GAUSSIAN.exact_sum(X, Q) / len(X)
    errors = [np.abs(tally.release(**given, insecure_noise_seed=i)(Q) - truth).mean() for i in range(60)]
    assert np.mean(errors) == pytest.approx(best.error, rel=0.2)


@pytest.mark.parametrize("kernel", [hs.EuclideanKernel(2, 0.3), hs.ManhattanKernel(1, 0.1)], ids=str)
@pytest.mark.parametrize("epsilon", [0.05, 5.0])
def test_the_error_of_a_grid_for_a_kernel_with_a_cusp_is_as_predicted(
    kernel: hs.EuclideanKernel | hs.ManhattanKernel, epsilon: float
) -> None:
    """With much noise and with little. What the grid itself errs depends on the data, and where the kernel
    spans the box the noise of count and sums partly cancels; the plan allows for heaps, which these
    data do not have: within a factor 4 below.
    """
    X = records(20_000, kernel.dim)
    Q = np.random.default_rng(2).uniform(-0.6, 0.6, (40, kernel.dim))
    truth = kernel.exact_sum(X, Q) / len(X)
    plan = hs.plan(records=20_000, kernel=kernel, bounds=(-1, 1), density=truth.mean(), epsilon=epsilon)
    best = plan.best
    assert best.method == "grid"
    assert 2 * best.error < min(
        option.error for option in plan if option.method == "race" and option.requested
    )
    tally = hs.grid(kernel, bounds=(-1, 1), **best.settings).add(X)
    released = [tally.release(epsilon=epsilon, insecure_noise_seed=i) for i in range(30)]
    errors = [np.abs(f(Q) - truth).mean() for f in released]
    assert best.error / 4 < np.mean(errors) < (1.25 if epsilon < 1 else 2) * best.error


def test_with_few_cells_pure_noise_serves_a_promise_with_delta() -> None:
    best = hs.plan(records=1000, kernel=GAUSSIAN, bounds=(-1, 1), epsilon=0.5, delta=1e-12).best
    assert best.mechanism == "discrete laplace"
    f = hs.release(records(1000), kernel=GAUSSIAN, bounds=(-1, 1), epsilon=0.5, delta=1e-12)
    assert f.claim.delta == 0.0
    assert f.claim.epsilon == 0.5


def test_the_method_follows_the_kernel_and_what_is_declared() -> None:
    X = records(500)
    assert isinstance(hs.release(X, epsilon=1.0, kernel=GAUSSIAN, bounds=(-1, 1)), CoefficientFunction)
    assert isinstance(hs.release(X, epsilon=1.0, bandwidth=1.0, bounds=(-1, 1)), CoefficientFunction)
    hashed = hs.release(X, epsilon=1.0, kernel="euclidean", bandwidth=1.0)
    assert isinstance(hashed, TableFunction)
    # A grid that would take long to ask is not planned.
    fine = hs.plan(records=500, dim=3, kernel="euclidean", bandwidth=0.01, bounds=(-1, 1), epsilon=1.0)
    assert {option.method for option in fine} == {"race"}
    assert hs.plan(records=500, epsilon=1.0, kernel=GAUSSIAN).best.method == "fourier_features"
    assert hs.release(records(900, 6), epsilon=1.0, kernel="gaussian", bandwidth=1.0).claim.delta == 0.0
    with pytest.raises(UsageError, match="declare bounds"):
        hs.plan(records=500, epsilon=1.0, kernel=GAUSSIAN, method="grid")
    with pytest.raises(UsageError, match="collision probability"):
        hs.release(X, epsilon=1.0, kernel=GAUSSIAN, bounds=(-1, 1), method="race")
    with pytest.raises(UsageError, match="method must be"):
        hs.plan(records=500, epsilon=1.0, kernel=GAUSSIAN, method="guess")


def test_every_method_can_be_named() -> None:
    X = records(800)
    for name in ("histogram", "hermite", "lsq_fgt", "privbayes"):
        f = hs.release(X, epsilon=1.0, kernel=GAUSSIAN, bounds=(-1, 1), method=name, records=800)
        assert f.claim.epsilon == 1.0
        assert f([[0.0, 0.0]]).shape == (1,)
    replaced = hs.release(
        X, epsilon=1.0, delta=1e-6, kernel=GAUSSIAN, bounds=(-1, 1), method="kme", relation="replace"
    )
    assert replaced.claim.relation.value == "replace"
    with pytest.raises(UsageError, match="method must be one of adaptive_grid, bernstein"):
        hs.release(X, epsilon=1.0, kernel=GAUSSIAN, bounds=(-1, 1), method="guess")
    with pytest.raises(ClaimError, match="give epsilon"):
        hs.release(X, rho=0.1, kernel=GAUSSIAN, bounds=(-1, 1), method="histogram")


def test_the_typical_density_follows_what_is_declared() -> None:
    def planned(dim: int, bounds: tuple[float, float] | None, **given: Any) -> float:
        kernel = hs.GaussianKernel(dim=dim, bandwidth=1.0)
        return hs.plan(records=1000, kernel=kernel, bounds=bounds, epsilon=1.0, **given).density

    # A record resembles more of the others in a box of fewer bandwidths.
    assert planned(1, (0, 16)) > planned(1, (0, 64)) > planned(1, (0, 640)) == 0.01
    # In several columns records vary along fewer directions than there are columns.
    assert planned(1, (0, 64)) > planned(3, (0, 64)) > planned(1, (0, 64)) ** 3
    assert planned(30, None) == 0.1
    assert planned(1, (0, 64), density=0.3) == 0.3
    hashed = hs.plan(records=1000, dim=30, kernel="euclidean", bandwidth=1.0, epsilon=1.0)
    assert hashed.density == pytest.approx(0.01)


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


def test_the_name_of_a_file_is_no_record() -> None:
    with pytest.raises(DataRefused, match=r"read the file first.* in one step with 'hushsum release'"):
        hs.release("both.csv", epsilon=1.0, bandwidth=1.0)


@pytest.mark.parametrize(("share", "epsilon"), [(0.0, 1.0), (0.1, 0.1), (0.1, 1.0), (1.0, 1.0)])
def test_a_declared_number_of_records_does_not_make_heaped_data_worse(share: float, epsilon: float) -> None:
    """Smooth pay, a tenth of it at one value: 8 releases, whose mean absolute errors of sums are within 30
    % of each other. With one value throughout the plan's heap is smaller than the true one.
    """
    pay = np.random.default_rng(3).lognormal(11.0, 0.4, 20_000).clip(0, 300_000)
    pay[: round(share * len(pay))] = 46_713.0
    kernel, box = hs.GaussianKernel(1, 1000.0), (0.0, 300_000.0)
    Q = np.random.default_rng(4).choice(pay, 100)
    truth = kernel.exact_sum(pay - 150_000.0, Q - 150_000.0)

    def error(records: int | None) -> float:
        released = (
            hs.release(
                pay, kernel=kernel, bounds=box, epsilon=epsilon, records=records, insecure_noise_seed=seed
            )
            for seed in range(8)
        )
        return float(np.mean([np.abs(f.sum(Q) - truth).mean() for f in released]))

    assert error(20_000) < (2.0 if share == 1.0 else 1.3) * error(None)


def test_declared_steps_are_planned_where_they_pay() -> None:
    ages = hs.GaussianKernel(1, 1.5)
    fine = hs.plan(records=10**6, kernel=ages, bounds=(0, 120), epsilon=1.0, steps=1.0).best
    assert fine.settings["steps"] == [1.0]
    assert fine.approximation == 0.0
    wide = hs.plan(records=1000, kernel=hs.GaussianKernel(1, 20.0), bounds=(0, 120), epsilon=0.1, steps=1.0)
    assert "steps" not in wide.best.settings
    X = np.random.default_rng(0).integers(0, 121, 3000).astype(np.float64)
    f = hs.release(X, kernel=ages, bounds=(0, 120), epsilon=1.0, steps=1.0, records=10**6)
    assert isinstance(f, CoefficientFunction)
    assert f.basis.shape == (121, 1)
    with pytest.raises(UsageError, match="steps need the bounds"):
        hs.release(X, kernel=ages, epsilon=1.0, steps=1.0)
