"""The ε that reaches an error."""

from __future__ import annotations

from typing import Any

import pytest

import hushsum as hs
from hushsum.errors import UsageError

ALONE: dict[str, Any] = {"comparison": False}
"""Without the errors under other trust models, which take longer than the plan itself."""
TOWN: dict[str, Any] = {
    "records": 50_000,
    "kernel": hs.GaussianKernel(dim=2, bandwidth=0.1),
    "bounds": (0, 1),
    **ALONE,
}


@pytest.mark.parametrize(("error", "delta"), [(0.0003, 1e-6), (0.003, None), (0.03, None)])
def test_it_is_the_smallest_of_two_digits(error: float, delta: float | None) -> None:
    best = hs.plan(**TOWN, delta=delta, error=error).best
    assert best.error <= error
    assert best.epsilon is not None
    step = float(f"1e{f'{best.epsilon:.1e}'.split('e')[1]}") / 10.0
    assert hs.plan(**TOWN, delta=delta, epsilon=best.epsilon - step).best.error > error


def test_the_plan_is_that_of_its_epsilon() -> None:
    found = hs.plan(**TOWN, error=0.003)
    assert found.options == hs.plan(**TOWN, epsilon=found.best.epsilon).options


def test_delta_is_taken_where_no_pure_epsilon_suffices() -> None:
    hashed: dict[str, Any] = {"records": 241_000, "kernel": hs.EuclideanKernel(dim=3, bandwidth=5.0), **ALONE}
    best = hs.plan(**hashed, error=0.001).best
    assert best.delta == 1e-6
    assert best.error <= 0.001 < hs.plan(**hashed, epsilon=100.0).best.error


def test_no_epsilon_is_recommended_that_hides_hardly_anything() -> None:
    """Without bounds only features count the kernel, and reach this error with pure ε = 80."""
    town: dict[str, Any] = {"records": 6_000, "kernel": hs.GaussianKernel(dim=4, bandwidth=5.0), **ALONE}
    assert hs.plan(**town, epsilon=80.0).best.error <= 0.001
    best = hs.plan(**town, error=0.001).best
    assert best.epsilon is not None
    assert best.epsilon <= 10.0
    assert best.delta == 1e-6
    town["kernel"] = hs.GaussianKernel(dim=2, bandwidth=5.0)
    rule = (
        r"epsilon of at most 10, at least [\d.e-]+, got 0.0001; declare bounds, which allows better methods"
    )
    with pytest.raises(UsageError, match=rule) as refused:
        hs.plan(**town, error=1e-4)
    least = float(str(refused.value).split("at least ")[1].split(",")[0])
    assert hs.plan(**town, error=least).best.error <= least
    assert hs.plan(**town, bounds=(0, 100), error=1e-4).best.epsilon is not None
    with pytest.raises(UsageError, match="got 1e-09; plan for more records"):
        hs.plan(records=6_000, kernel=hs.JaccardKernel(), error=1e-9)


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (
            {"error": 1e-15},
            r"error must be one that some option reaches with epsilon of at most 10, at least .*; plan for",
        ),
        ({"error": -1.0}, "error must be a finite number above 0"),
        ({"error": 0.1, "epsilon": 1.0}, "error must be given without epsilon and rho"),
        ({"error": 0.1, "rho": 1.0}, "error must be given without epsilon and rho"),
    ],
)
def test_refusals(request_: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        hs.plan(**TOWN, **request_)
