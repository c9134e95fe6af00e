"""Numeric parameters are numbers: texts and truth values are refused everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.declaration import INTEGER, NUMBER
from hushsum.errors import UsageError
from hushsum.models import MODELS
from tests.recording_budget import RecordingBudget

RNG = np.random.default_rng(0)
POINTS = RNG.uniform(0.0, 1.0, (200, 2))
KERNEL = hs.GaussianKernel(dim=2, bandwidth=0.2)
HASHED = hs.EuclideanKernel(dim=2, bandwidth=0.2)
BOX = (0.0, 1.0)
NEIGHBOURS = hs.release(POINTS, kernel=KERNEL, bounds=BOX, epsilon=1.0, method="grid")

Call = Callable[..., Any]

CALLS: dict[str, tuple[Call, dict[str, Any]]] = {
    "EuclideanKernel": (hs.EuclideanKernel, {"dim": 2, "bandwidth": 0.2, "power": 1}),
    "MaternKernel": (hs.MaternKernel, {"dim": 2, "bandwidth": 0.2, "smoothness": 1.5}),
    "PolynomialKernel": (hs.kernels.PolynomialKernel, {"dim": 2, "radius": 1.0, "degree": 2}),
    "a weight of a kernel": (lambda weight: weight * KERNEL, {"weight": 2.0}),
    "release": (
        lambda **given: hs.release(POINTS, kernel=KERNEL, bounds=BOX, **given),
        {"epsilon": 1.0, "delta": 1e-6, "records": 200, "population": 200, "max_seconds": 60.0},
    ),
    "release in rho": (
        lambda **given: hs.release(POINTS, kernel=KERNEL, **given),
        {"rho": 0.1, "count_share": 0.1, "bounds": BOX},
    ),
    "plan": (
        lambda **given: hs.plan(kernel=KERNEL, bounds=BOX, **given),
        {"epsilon": 1.0, "records": 200, "density": 0.1, "max_seconds": 60.0, "max_bytes": 10**6},
    ),
    "plan of an error": (
        lambda **given: hs.plan(kernel=KERNEL, bounds=BOX, **given),
        {"records": 200, "error": 0.1, "max_per_unit": 2},
    ),
    "race": (lambda **given: hs.race(HASHED, **given), {"rows": 10, "width": 100, "seed": 3, "bounds": BOX}),
    "grid": (lambda **given: hs.grid(KERNEL, bounds=BOX, **given), {"spacing": 0.75, "degree": 4}),
    "cells of a grid": (lambda **given: hs.grid(KERNEL, bounds=BOX, **given), {"cells": 20}),
    "steps of a grid": (lambda **given: hs.grid(KERNEL, bounds=BOX, **given), {"steps": 0.1}),
    "fourier_features": (
        lambda **given: hs.fourier_features(KERNEL, **given),
        {"features": 10, "seed": 1, "groups": 1, "bounds": BOX},
    ),
    "a tally's release": (
        lambda **given: hs.grid(KERNEL, bounds=BOX).add(POINTS).release(**given),
        {"epsilon": 1.0, "delta": 1e-6, "count_share": 0.1},
    ),
    "query": (lambda **given: NEIGHBOURS.query(POINTS[:2], **given), {"level": 0.9}),
    "plot": (lambda **given: NEIGHBOURS.plot(**given), {"level": 0.9, "range": BOX}),
    "private_bounds": (
        lambda **given: hs.private_bounds(POINTS, **given),
        {"epsilon": 1.0, "within": BOX, "grid": 100, "tail": 0.01},
    ),
    "private_quantiles": (
        lambda **given: hs.private_quantiles(POINTS[:, 0], **given),
        {"q": 0.5, "epsilon": 1.0, "bounds": BOX},
    ),
    "heatmap": (
        lambda **given: hs.heatmap(POINTS, bounds=BOX, **given),
        {"epsilon": 1.0, "bandwidth": 10_000.0, "level": 0.9, "records": 200},
    ),
    "choose_kernel": (
        lambda **given: hs.methods.choose_kernel(
            POINTS, [KERNEL, hs.GaussianKernel(dim=2, bandwidth=0.4)], **given
        ),
        {"epsilon": 1.0, "density": 0.1},
    ),
    "plan_stream": (
        lambda **given: hs.streams.plan_stream(hs.grid(KERNEL, bounds=BOX), **given),
        {"rho": 1.0, "horizon": 10, "window": 2, "count_share": 0.02},
    ),
    "neighbour_density": (
        lambda **given: hs.releases.neighbour_density(NEIGHBOURS, POINTS[:2], **given),
        {"neighbours": 5.0},
    ),
    "compare": (
        lambda **given: hs.compare(
            NEIGHBOURS, hs.release(POINTS, kernel=KERNEL, bounds=BOX, epsilon=1.0), **given
        ),
        {"significance": 0.05, "cluster_size": 1.0},
    ),
}


def mistaken(value: object) -> list[object]:
    """The same as text and as truth values; of a pair each end."""
    if isinstance(value, tuple):
        return [tuple(map(str, value)), (False, True)]
    return [str(value), True, np.True_]


@pytest.mark.parametrize("name", CALLS)
def test_texts_and_truth_values_are_refused(name: str) -> None:
    call, valid = CALLS[name]
    call(**valid)
    for parameter, value in valid.items():
        for wrong in mistaken(value):
            with pytest.raises(UsageError) as refused:
                call(**{**valid, parameter: wrong})
            named = "bounds" if parameter == "within" else parameter
            assert refused.value.parameter == named, (parameter, wrong)


@pytest.mark.parametrize("model", sorted(MODELS))
def test_texts_and_truth_values_are_refused_by_models(model: str) -> None:
    numeric = [each for each in MODELS[model].PARAMETERS if each.type in (NUMBER, INTEGER)]
    assert numeric
    for each in numeric:
        for wrong in ("1", "0.5", True, np.True_):
            with pytest.raises(UsageError, match=each.name):
                each.check(wrong)


def test_a_wrong_level_of_a_heat_map_spends_nothing() -> None:
    budget = RecordingBudget()
    with pytest.raises(UsageError, match="level"):
        hs.heatmap(POINTS, bounds=BOX, bandwidth=10_000.0, epsilon=1.0, level=95.0, budget=budget)
    assert budget.steps == []
