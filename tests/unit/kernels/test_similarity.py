"""Each similarity against a slow formula that shares nothing with it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import hushsum as hs
from hushsum.kernels import Kernel, euclidean_collision, manhattan_collision
from tests.kernel_cases import CASES, Case

RATIOS = [1e-6, 1e-3, 0.05, 0.3, 1.0, 2.5, 10.0, 300.0, 1e5]


def integrated(ratio: float, density: Any) -> float:
    """The chance of one floor for projections that differ by |z|·ratio cells: E[max(0, 1 − |z|·ratio)]."""
    value, _ = quad(lambda z: 2 * density(z) * (1 - z * ratio), 0.0, min(1 / ratio, 40.0), epsabs=1e-14)
    if 1 / ratio > 40.0:
        rest, _ = quad(
            lambda u: 2 * density(math.exp(u)) * (1 - math.exp(u) * ratio) * math.exp(u),
            math.log(40.0),
            -math.log(ratio),
            limit=500,
        )
        value += rest
    return value


@pytest.mark.parametrize("ratio", RATIOS)
def test_euclidean_is_the_integral_over_normal_projections(ratio: float) -> None:
    expected = integrated(ratio, lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi))
    assert euclidean_collision(np.array([ratio]))[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("ratio", RATIOS)
def test_manhattan_is_the_integral_over_cauchy_projections(ratio: float) -> None:
    expected = integrated(ratio, lambda z: 1 / (math.pi * (1 + z * z)))
    assert manhattan_collision(np.array([ratio]))[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("collision", [euclidean_collision, manhattan_collision])
def test_collisions_fall_from_one_to_zero_at_any_scale(collision: Any) -> None:
    ratios = np.concatenate([[0.0], np.logspace(-30, 30, 2001)])
    values = collision(ratios)
    assert values[0] == 1.0
    assert values[-1] < 1e-29
    assert np.all((values >= 0) & (values <= 1 + 1e-15))
    assert np.all(np.diff(values) <= 1e-12)


def slow(kernel: Kernel, x: Any, q: Any) -> float:
    """One similarity, by the definition of the kernel."""
    if isinstance(kernel, hs.JaccardKernel):
        a, b = set(x), set(q)
        return float((len(a & b) / len(a | b) if a | b else 1.0) ** kernel.power)
    if isinstance(kernel, hs.HammingKernel):
        return float((sum(i == j for i, j in zip(x, q, strict=True)) / kernel.dim) ** kernel.power)
    x, q = [float(v) for v in x], [float(v) for v in q]
    if isinstance(kernel, hs.AngularKernel):
        dot = sum(i * j for i, j in zip(x, q, strict=True))
        cosine = dot / (math.hypot(*x) * math.hypot(*q))
        angle = math.acos(max(-1.0, min(1.0, cosine)))
        return float((1.0 - angle / math.pi) ** (kernel.bits * kernel.power))
    if isinstance(kernel, hs.kernels.AsymmetricAngularKernel):
        length = max(math.hypot(*x), kernel.radius)
        dot = sum(i * j for i, j in zip(x, q, strict=True))
        cosine = dot / (length * max(math.hypot(*q), kernel.query_radius or 0.0))
        angle = math.acos(max(-1.0, min(1.0, cosine)))
        return float((1.0 - angle / math.pi) ** (kernel.bits * kernel.power))
    if isinstance(kernel, hs.GaussianKernel):
        return math.exp(-(math.dist(x, q) ** 2) / (2 * kernel.bandwidth**2)) ** kernel.power
    if isinstance(kernel, hs.MaternKernel):
        r = math.sqrt(2 * kernel.smoothness) * math.dist(x, q) / kernel.bandwidth
        steps = {0.5: 1.0, 1.5: 1.0 + r, 2.5: 1.0 + r + r**2 / 3.0}
        return steps[kernel.smoothness] * math.exp(-r)
    if isinstance(kernel, hs.LaplacianKernel):
        return (
            math.exp(-sum(abs(i - j) for i, j in zip(x, q, strict=True)) / kernel.bandwidth) ** kernel.power
        )
    if isinstance(kernel, hs.ManhattanKernel):
        t = kernel.bandwidth / max(sum(abs(i - j) for i, j in zip(x, q, strict=True)), 1e-9)
        return float(((2 * math.atan(t) - math.log(1 + t * t) / t) / math.pi) ** kernel.power)
    assert isinstance(kernel, hs.EuclideanKernel)
    t = kernel.bandwidth / max(math.dist(x, q), 1e-9)
    normal = math.erf(t / math.sqrt(2))
    return (normal - math.sqrt(2 / math.pi) * (1 - math.exp(-t * t / 2)) / t) ** kernel.power


ALL = [
    *CASES,
    Case("gaussian", hs.GaussianKernel(dim=3, bandwidth=0.7, power=2)),
    Case("laplacian", hs.LaplacianKernel(dim=3, bandwidth=0.7, power=2)),
    *(Case(f"matern-{nu}", hs.MaternKernel(dim=3, bandwidth=0.7, smoothness=nu)) for nu in (0.5, 1.5, 2.5)),
]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_similarity_is_the_slow_formula_pair_by_pair(case: Case) -> None:
    records, queries = case.records(25, seed=1), case.records(9, seed=2)
    expected = [[slow(case.kernel, x, q) for q in queries] for x in records]
    found = case.kernel.similarity(records, queries)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=2e-7)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_exact_sum_adds_the_similarities(case: Case) -> None:
    records, queries = case.records(40, seed=1), case.records(9, seed=2)
    np.testing.assert_allclose(
        case.kernel.exact_sum(records, queries), case.kernel.similarity(records, queries).sum(axis=0)
    )


def test_exact_sum_goes_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushsum.kernels._kernels._BLOCK_CELLS", 64)
    for case in (CASES[0], next(case for case in CASES if case.name == "jaccard")):
        records, queries = case.records(41, seed=1), case.records(5, seed=2)
        np.testing.assert_allclose(
            case.kernel.exact_sum(records, queries), case.kernel.similarity(records, queries).sum(axis=0)
        )


def test_the_zero_vector_agrees_with_half_of_the_signs() -> None:
    kernel = hs.AngularKernel(dim=2, bits=2)
    found = kernel.similarity([[0.0, 0.0]], [[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_array_equal(found, [[1.0, 0.25]])


def test_the_empty_set_is_similar_to_itself_only() -> None:
    found = hs.JaccardKernel(power=3).similarity([[], [7]], [[], [7, 7], [8]])
    np.testing.assert_array_equal(found, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
