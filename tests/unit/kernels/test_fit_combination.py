"""Fits of a target similarity by a combination of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.kernels import CombinationKernel, HashableCombination, Kernel

DISTANCES = np.linspace(0.0, 3.0, 31)
FEW: list[Kernel] = [hs.EuclideanKernel(2, width, power) for width in (1.0, 3.0, 8.0) for power in (1, 4)]


def gaussian(distance: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * distance**2))


def components(fit: hs.kernels.FittedKernel) -> list[tuple[float, Kernel]]:
    if isinstance(fit.kernel, CombinationKernel):
        return [(each.weight, each.kernel) for each in fit.kernel.components]
    return [(1.0, fit.kernel)]


def test_the_gaussian_by_eight_hash_kernels() -> None:
    fit = hs.kernels.fit_kernel(gaussian, distances=np.linspace(0.0, 3.0, 61), dim=3)
    assert isinstance(fit.kernel, HashableCombination)
    assert len(components(fit)) <= 8
    # The target is 0.02; 0.004 was measured.
    assert fit.max_error < 0.006
    assert fit.rms_error <= fit.max_error
    assert fit.weight_sum <= 4.0 + 1e-6
    assert fit.optimal
    points = np.zeros((200, 3))
    points[:, 1] = np.linspace(0.0, 3.0, 200)
    found = fit.kernel.similarity(points[:1], points)[0]
    assert np.abs(found - gaussian(points[:, 1])).max() <= fit.max_error + 1e-6


@pytest.mark.parametrize("most", [1, 2, 3])
def test_methods_agree_on_the_least_maximal_error(most: int) -> None:
    found = {
        method: hs.kernels.fit_kernel(gaussian, components=FEW, distances=DISTANCES, most=most, method=method)
        for method in ("exhaustive", "milp", "auto", "least-squares")
    }
    assert all(len(components(fit)) <= most for fit in found.values())
    assert all(found[method].optimal for method in ("exhaustive", "milp", "auto"))
    best = found["exhaustive"].max_error
    for method in ("milp", "auto"):
        assert found[method].max_error == pytest.approx(best, abs=2e-4)
    assert found["least-squares"].max_error >= best - 2e-4
    assert not found["least-squares"].optimal


def test_without_signs_weights_are_positive() -> None:
    for method in ("auto", "least-squares"):
        fit = hs.kernels.fit_kernel(
            gaussian, components=FEW, distances=DISTANCES, signed=False, method=method
        )
        assert all(weight > 0 for weight, _ in components(fit))
    signed = hs.kernels.fit_kernel(gaussian, components=FEW, distances=DISTANCES)
    assert signed.max_error < fit.max_error


def test_a_smaller_sum_of_weights_costs_accuracy() -> None:
    fits = [
        hs.kernels.fit_kernel(gaussian, components=FEW, distances=DISTANCES, most_weight=limit, method=method)
        for limit in (1.0, 2.0, 4.0)
        for method in ("auto", "least-squares")
    ]
    limits = (1.0, 1.0, 2.0, 2.0, 4.0, 4.0)
    assert all(fit.weight_sum <= limit * (1 + 1e-6) for fit, limit in zip(fits, limits, strict=True))
    assert fits[0].max_error > fits[2].max_error > fits[4].max_error


def test_similarities_of_pairs() -> None:
    """Pairs of records with a number and a category, whose similarity is a mixture that can be recovered."""
    rng = np.random.default_rng(4)
    X, Q = (np.column_stack((rng.normal(size=80), rng.integers(0, 2, 80))) for _ in range(2))
    near = hs.kernels.on_columns(hs.EuclideanKernel(1, 1.0), 0, of=2)
    same = hs.kernels.on_columns(hs.HammingKernel(1), 1, of=2)
    wanted = 0.6 * near * same + 0.4 * near
    target = np.diagonal(wanted.similarity(X, Q))
    fit = hs.kernels.fit_kernel(target, components=[near, same, near * same], pairs=(X, Q))
    assert fit.max_error < 1e-6
    weights = {kernel: weight for weight, kernel in components(fit)}
    assert weights[near] == pytest.approx(0.4, abs=1e-4)
    assert weights[near * same] == pytest.approx(0.6, abs=1e-4)

    def by_rows(x: Floats, q: Floats) -> Any:
        return np.diagonal(wanted.similarity(x, q))

    assert hs.kernels.fit_kernel(by_rows, components=[near, near * same], pairs=(X, Q)).max_error < 1e-6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "distances or pairs"),
        ({"distances": DISTANCES, "pairs": (DISTANCES, DISTANCES), "dim": 1}, "distances or pairs"),
        ({"distances": DISTANCES}, "components must be given"),
        ({"distances": DISTANCES, "components": []}, "from 1 to 1000 kernels"),
        ({"distances": [1.0, -1.0], "dim": 1}, "from 2 to 20000 numbers"),
        ({"distances": DISTANCES, "components": [hs.HammingKernel(1)]}, "columns of numbers"),
        ({"distances": DISTANCES, "dim": 1, "method": "guess"}, "method"),
        ({"distances": DISTANCES, "dim": 1, "method": "exhaustive"}, "subsets"),
        ({"distances": DISTANCES, "dim": 1, "most": 0}, "most"),
        ({"distances": DISTANCES, "dim": 1, "most_weight": -1.0}, "most_weight"),
    ],
)
def test_wrong_parameters_are_refused(options: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        hs.kernels.fit_kernel(gaussian, **options)


def test_targets_of_another_length_are_refused() -> None:
    with pytest.raises(UsageError, match="every distance"):
        hs.kernels.fit_kernel([0.5, 0.2], distances=DISTANCES, dim=1)
