"""The paper's error bounds, against its formulas as printed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hushsum as hs
from hushsum.bases.hash_rows import (
    corollary_3_5,
    corollary_3_5_rows,
    groups_for,
    median_of_means_bound,
    rows_for_laplace,
    theorem_3_4,
)
from hushsum.errors import UsageError

CASES = [(1000.0, 500, 1.0, 0.05), (20.0, 64, 0.1, 0.01), (3e5, 5000, 2.0, 1e-6)]


@pytest.mark.parametrize("failure", [0.5, 0.05, 0.01, 1e-9])
def test_lemma_3_3_groups(failure: float) -> None:
    assert groups_for(failure) == math.ceil(8 * math.log(1 / failure))


@pytest.mark.parametrize(("root_sum", "rows", "epsilon", "failure"), CASES)
def test_lemma_3_3(root_sum: float, rows: int, epsilon: float, failure: float) -> None:
    sigma = 7.0 + root_sum
    expected = math.sqrt(32 * sigma**2 * math.log(1 / failure) / rows)
    assert median_of_means_bound(sigma**2, rows, failure) == pytest.approx(expected)


@pytest.mark.parametrize(("root_sum", "rows", "epsilon", "failure"), CASES)
def test_theorem_3_4(root_sum: float, rows: int, epsilon: float, failure: float) -> None:
    expected = math.sqrt(root_sum**2 / rows + 2 / epsilon**2 * rows) * math.sqrt(32 * math.log(1 / failure))
    assert theorem_3_4(root_sum, rows, epsilon, failure) == pytest.approx(expected)


@pytest.mark.parametrize(("root_sum", "rows", "epsilon", "failure"), CASES)
def test_corollary_3_5(root_sum: float, rows: int, epsilon: float, failure: float) -> None:
    assert corollary_3_5_rows(root_sum, epsilon) == math.ceil(root_sum * epsilon / math.sqrt(2))
    expected = 16 * math.sqrt(root_sum / epsilon * math.log(1 / failure))
    assert corollary_3_5(root_sum, epsilon, failure) == pytest.approx(expected)


def test_corollary_3_5_rows_minimise_theorem_3_4_and_its_bound_holds_there() -> None:
    root_sum, epsilon, failure = 5000.0, 0.5, 0.05
    best = corollary_3_5_rows(root_sum, epsilon)
    bounds = [theorem_3_4(root_sum, rows, epsilon, failure) for rows in range(24, 4 * best)]
    assert abs(24 + int(np.argmin(bounds)) - best) <= 1
    assert min(bounds) <= corollary_3_5(root_sum, epsilon, failure)


def test_the_lemma_needs_enough_rows() -> None:
    with pytest.raises(UsageError, match="rows must be at least"):
        median_of_means_bound(1.0, 23, 0.05)
    assert median_of_means_bound(1.0, 24, 0.05) > 0


@pytest.mark.parametrize("failure", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_failure_probabilities_must_be_proper(failure: float) -> None:
    with pytest.raises(UsageError, match="failure must be between 0 and 1"):
        groups_for(failure)
    with pytest.raises(UsageError, match="failure must be between 0 and 1"):
        corollary_3_5(10.0, 1.0, failure)


def test_rows_for_laplace_minimise_the_typical_error() -> None:
    records, epsilon = 100_000.0, 0.3
    rows = np.arange(1, 5000)
    for variance in (3e-3, 1e-5):
        error = variance * records**2 / rows + 2 * rows / epsilon**2
        assert abs(rows_for_laplace(records, epsilon, variance, 10**6) - int(rows[np.argmin(error)])) <= 1


def test_sets_are_published_in_fewer_rows_than_columns() -> None:
    columns = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=2000).basis
    sets = hs.race(hs.JaccardKernel(), rows=2000).basis
    assert sets.rows_for(20_000, 1.0, 1) == 45
    assert columns.rows_for(20_000, 1.0, 1) == 775


@pytest.mark.parametrize(
    ("records", "epsilon", "capacity", "expected"), [(1, 1e-9, 100, 1), (1e9, 10.0, 100, 100), (1, 1.0, 1, 1)]
)
def test_rows_for_laplace_stay_within_the_capacity(
    records: float, epsilon: float, capacity: int, expected: int
) -> None:
    assert rows_for_laplace(records, epsilon, 3e-3, capacity) == expected
