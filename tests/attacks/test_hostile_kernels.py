"""Kernels that would cost memory, time or sense: nested, absurdly weighted, or of columns nobody has."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import HushsumError, UsageError
from hushsum.kernels import KernelExpression, kernel_as_json, kernel_from_json
from tests.in_process_service import Town

REFUSED = (HushsumError, ValueError, TypeError, KeyError, ArithmeticError)


def plain(bandwidth: float = 1.0) -> Any:
    return hs.EuclideanKernel(dim=2, bandwidth=bandwidth)


def nested(kind: str, depth: int) -> dict[str, Any]:
    data = one = kernel_as_json(plain())
    for _ in range(depth):
        listed = [{"weight": 1.0, "kernel": data}, {"weight": 0.5, "kernel": one}]
        factors = [{"kernel": each["kernel"], "columns": [0, 1]} for each in listed]
        data = {
            "combination": {"name": kind, "parameters": {"components": listed}},
            "product": {"name": kind, "parameters": {"dim": 2, "factors": factors}},
        }[kind]
    return data


@pytest.mark.parametrize("kind", ["combination", "product"])
@pytest.mark.parametrize("depth", [2, 300])
def test_descriptions_are_not_nested(kind: str, depth: int) -> None:
    with pytest.raises(REFUSED):
        kernel_from_json(nested(kind, depth))


@pytest.mark.parametrize("weight", [np.nan, np.inf, 1e13, -1e300, 5e-324, 1e-200, True, "1", None, 10**400])
def test_weights_beyond_sense_are_refused(weight: Any) -> None:
    other = kernel_as_json(plain(2.0))
    parts = [{"weight": weight, "kernel": kernel_as_json(plain())}, {"weight": 1.0, "kernel": other}]
    with pytest.raises(REFUSED):
        kernel_from_json({"name": "combination", "parameters": {"components": parts}})


def test_weights_do_not_grow_or_vanish_by_nesting() -> None:
    with pytest.raises(UsageError, match="weight must be 0, or a finite number"):
        1e12 * (1e12 * plain() + plain(2.0))
    rest = 0.1 * plain() + plain(2.0) + 0.2 * plain() - 0.3 * plain()
    assert rest == plain(2.0)
    small = 1e-12 * plain() + 1e-12 * plain(2.0)
    f = hs.race(small, rows=20, width=50).add(np.zeros((30, 2))).release(epsilon=1.0)
    assert np.isfinite(f.query([[0.0, 0.0]]).stderr).all()


@pytest.mark.parametrize(
    "text",
    [
        "euclidean(99999999999, bandwidth=1)",
        "euclidean(65536, bandwidth=1)",
        "(" * 300 + "euclidean(bandwidth=1)" + ")" * 300,
        "euclidean(bandwidth=9**9**9)",
        "1e400 * euclidean(bandwidth=1)",
        "9" * 400 + " * euclidean(bandwidth=1)",
        "euclidean(bandwidth=1) - " + "9" * 400 + " * euclidean(bandwidth=2)",
        "euclidean(bandwidth=" + "9" * 400 + ")",
        "euclidean(bandwidth=1, bandwidth=2)",
        "(euclidean(bandwidth=1) + euclidean(bandwidth=2)) ** 200",
        "euclidean(bandwidth=1) ** 1000000",
        "euclidean(bandwidth=(lambda: 1)())",
        "__import__('os').getcwd()",
    ],
)
def test_texts_cost_no_memory_and_run_nothing(text: str) -> None:
    with pytest.raises(UsageError):
        KernelExpression(text).build(2)
    with contextlib.suppress(UsageError):
        assert len(KernelExpression(text).example_columns(2) or ()) <= 2


def test_a_plan_of_the_service_names_no_columns_by_the_billion(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "state"))
    town = Town(tmp_path)
    path = f"/datasets/{town.dataset()}/plans"
    body = {"records": 1000, "epsilon": [1.0], "kernel": "euclidean(99999999999, bandwidth=1)"}
    assert "kernel" in town.refused("olga", "POST", path, 422, json=body)["detail"]
