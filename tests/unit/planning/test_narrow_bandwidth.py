"""Advice on bandwidths that are too small for the declared number of records."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import SuspiciousParameter

SMALL: dict[str, Any] = {"bandwidth": 0.1, "bounds": (0, 10), "epsilon": 0.1}
POINTS = np.full((200, 2), 5.0)


def test_it_is_said_before_anything_is_spent_and_a_bandwidth_is_named() -> None:
    # Warnings are errors in tests.
    with pytest.raises(SuspiciousParameter, match="too small for 2,000 records") as told:
        hs.release(POINTS, records=2000, **SMALL)
    assert "too small for 2,000 records" in hs.plan(records=2000, dim=2, **SMALL).note()
    named = re.search(r"a bandwidth of ([0-9.]+) suits", str(told.value))
    assert named is not None
    wider = {**SMALL, "bandwidth": float(named[1])}
    assert "too small" not in hs.plan(records=2000, dim=2, **wider).note()
    assert 0.2 < wider["bandwidth"] < 3.0


def test_maps_say_it_too() -> None:
    points = np.full((200, 2), (2.35, 48.85))
    box = [(2.25, 2.45), (48.80, 48.90)]
    with pytest.warns(SuspiciousParameter, match="times as large suits"):
        hs.heatmap(points, bounds=box, bandwidth=50, epsilon=0.1, records=1000)


@pytest.mark.parametrize(
    "options",
    [
        {**SMALL, "records": 10**8, "dim": 2},
        {**SMALL, "records": 2000, "dim": 2, "bandwidth": 3.0},
        {**SMALL, "records": 2000, "dim": 3},
        {"bandwidth": 1.0, "records": 300, "dim": 500, "epsilon": 0.1},
    ],
)
def test_where_nothing_is_wrong_nothing_is_said(options: dict[str, Any]) -> None:
    assert "too small" not in hs.plan(**options).note()


def test_without_a_declared_number_nothing_is_said() -> None:
    # Warnings are errors in tests.
    hs.release(POINTS, **SMALL)


def test_where_no_bandwidth_suits() -> None:
    assert "no bandwidth suits it" in hs.plan(records=3, dim=2, **SMALL).note()
