"""The paper's error bounds, against its formulas as printed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.tables import groups_for, median_of_means_bound, rows_for_laplace

CASES = [(1000.0, 500, 1.0, 0.05), (20.0, 64, 0.1, 0.01), (3e5, 5000, 2.0, 1e-6)]


@pytest.mark.parametrize("failure", [0.5, 0.05, 0.01, 1e-9])
def test_lemma_3_3_groups(failure: float) -> None:
    assert groups_for(failure) == math.ceil(8 * math.log(1 / failure))


@pytest.mark.parametrize(("root_sum", "rows", "epsilon", "failure"), CASES)
def test_lemma_3_3(root_sum: float, rows: int, epsilon: float, failure: float) -> None:
    sigma = 7.0 + root_sum
    expected = math.sqrt(32 * sigma**2 * math.log(1 / failure) / rows)
    assert median_of_means_bound(sigma**2, rows, failure) == pytest.approx(expected)


def test_the_lemma_needs_enough_rows() -> None:
    with pytest.raises(UsageError, match="rows must be at least"):
        median_of_means_bound(1.0, 23, 0.05)
    assert median_of_means_bound(1.0, 24, 0.05) > 0


@pytest.mark.parametrize("failure", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_failure_probabilities_must_be_proper(failure: float) -> None:
    with pytest.raises(UsageError, match="failure must be between 0 and 1"):
        groups_for(failure)


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
