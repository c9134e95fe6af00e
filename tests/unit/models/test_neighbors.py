"""Near-neighbour counts against the exact kernel sums.

The noise of a count at ε = 1 is about 30 here; every tolerance is at least six stated errors.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.models import PrivateNeighbors

CANDIDATES = np.array([[-0.8, -0.8], [0.5, 0.5], [0.0, 0.0], [0.45, 0.55]])


@pytest.fixture(scope="module")
def records() -> Any:
    return np.random.default_rng(0).normal(0.5, 0.05, (5000, 2))


@pytest.fixture(scope="module")
def model(records: Any) -> PrivateNeighbors:
    return PrivateNeighbors(bandwidth=0.5, min_records=1000, random_state=0).fit(records)


def test_counts_are_kernel_sums(model: PrivateNeighbors, records: Any) -> None:
    exact = model.function_.kernel.exact_sum(records, CANDIDATES)
    reported = model.query(CANDIDATES)
    assert (np.abs(reported.value - exact) < 6.0 * reported.stderr).all()
    np.testing.assert_allclose(model.decision_function(CANDIDATES), reported.value - 1000)


def test_candidates_are_ranked(model: PrivateNeighbors) -> None:
    counts, order = model.top_candidates(CANDIDATES, n_candidates=3)
    assert set(order[:2].tolist()) == {1, 3}
    assert order[2] == 2
    assert (np.diff(counts) <= 0.0).all()
    with pytest.raises(UsageError, match="n_candidates"):
        model.top_candidates(CANDIDATES, n_candidates=0)


def test_decisions_leave_open_what_the_interval_leaves_open(model: PrivateNeighbors) -> None:
    assert model.predict(CANDIDATES[:2]).tolist() == [0, 1]
    assert model.decide(CANDIDATES[:2]).tolist() == [-1, 1]
    middle = float(model.query(CANDIDATES[1:2]).value[0])
    undecided = copy(model)
    undecided.min_records = middle
    assert undecided.decide(CANDIDATES[1:2]).tolist() == [0]


def test_the_number_within_a_radius_is_bounded(model: PrivateNeighbors, records: Any) -> None:
    for radius in (0.05, 0.2):
        within = (np.linalg.norm(records[:, None] - CANDIDATES, axis=2) <= radius).sum(axis=0)
        assert (model.at_most_within(CANDIDATES, radius) >= within).all()
    assert (model.at_most_within(CANDIDATES, 0.2) >= model.at_most_within(CANDIDATES, 0.1)).all()
    with pytest.raises(UsageError, match="radius"):
        model.at_most_within(CANDIDATES, -1.0)


def test_codes_of_categories_with_the_hamming_kernel() -> None:
    codes = np.repeat([[1, 2, 3, 4]], 3000, axis=0)
    model = PrivateNeighbors(kernel="hamming", power=1, min_records=500, random_state=0).fit(codes)
    counts = model.query([[1, 2, 3, 4], [1, 2, 0, 0], [0, 0, 0, 0]])
    assert (np.abs(counts.value - [3000, 1500, 0]) < 6.0 * counts.stderr + 1.0).all()
    with pytest.raises(UsageError, match="radius"):
        model.at_most_within([[1, 2, 3, 4]], 1.0)


def test_a_kernel_may_be_given_itself() -> None:
    X = np.random.default_rng(0).normal(0.0, 0.1, (500, 3))
    model = PrivateNeighbors(kernel=hs.AngularKernel(dim=3, bits=2), random_state=0).fit(X)
    assert model.decision_function(X[:5]).shape == (5,)
    with pytest.raises(UsageError, match="level"):
        PrivateNeighbors(level=1.0).fit(X)


def unit_vectors(number: int, seed: int) -> Any:
    """Three quarters around one direction, the others anywhere."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(number, 60))
    rows[: 3 * number // 4, 0] += 12.0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("epsilon", "delta", "kernel"), [(1.0, 1e-5, "polynomial"), (0.1, None, "dot-product")]
)
def test_vectors_of_a_model_are_counted_by_inner_products(
    epsilon: float, delta: float | None, kernel: str
) -> None:
    private, candidates = unit_vectors(4000, 1), unit_vectors(40, 2)
    model = PrivateNeighbors(epsilon=epsilon, delta=delta, radius=1.0).fit(private)
    assert model.function_.kernel.name == kernel
    exact = model.function_.kernel.exact_sum(private, candidates)
    reported = model.query(candidates)
    # 40 normal errors: beyond six standard deviations in one of 1e7 runs.
    assert (np.abs(reported.value - exact) < 6.0 * reported.stderr).all()
    # A long vector is not like more records than its direction is.
    np.testing.assert_allclose(model.query(9.0 * candidates).value, reported.value)
    predicted = model.predicted_error(4000)
    assert predicted is not None
    assert 0.3 < predicted.error / reported.stderr.mean() < 3.0
    with pytest.raises(UsageError, match="kernel must have a radius"):
        model.at_most_within(candidates, 0.5)


def test_advice_names_the_radius_in_many_columns() -> None:
    assert PrivateNeighbors().advice(5) == []
    assert PrivateNeighbors(radius=1.0).advice(384) == []
    many = PrivateNeighbors().advice(384)
    assert "radius" in many[0]
    assert "delta" in many[1]
    assert len(PrivateNeighbors(delta=1e-6).advice(384)) == 1
