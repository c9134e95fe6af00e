"""PrivBayes: a score whose sensitivity is proven, tables that are paid for, and points that keep them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hushsum as hs
from hushsum.baselines import privbayes
from hushsum.baselines._real_functions import (
    MOST_CANDIDATES,
    Family,
    Network,
    dependence_score,
    next_families,
    sample,
    useful_degree,
)
from hushsum.errors import UsageError
from hushsum.methods import FINENESS, SCORE_SENSITIVITY
from hushsum.records import Bounds, CellGrid
from hushsum.releases import PointsFunction
from tests.recorded_draws import DrawRecord

Codes = NDArray[np.int64]
BINS = (2, 3, 4)
FAMILY = Family(2, (0, 1))
ROWS = st.tuples(*(st.integers(0, number - 1) for number in BINS))


def slow_score(codes: Codes, family: Family, bins: tuple[int, ...]) -> int:
    """½·Σ|c − a·b/n| with fractions, cell by cell."""
    records = len(codes)
    if not records:
        return 0
    total = Fraction(0)
    for own in range(bins[family.column]):
        for parents in product(*(range(bins[each]) for each in family.parents)):
            with_parents = (codes[:, list(family.parents)] == parents).all(axis=1)
            with_own = codes[:, family.column] == own
            joint = int((with_parents & with_own).sum())
            total += abs(joint - Fraction(int(with_own.sum()) * int(with_parents.sum()), records))
    return int(total / 2 * FINENESS // 1)


@given(st.lists(ROWS, min_size=1, max_size=40))
def test_the_score_is_its_formula(rows: list[tuple[int, ...]]) -> None:
    codes = np.array(rows, np.int64)
    assert dependence_score(codes, FAMILY, BINS) == slow_score(codes, FAMILY, BINS)


@given(st.lists(ROWS, max_size=40), ROWS, ROWS)
def test_a_record_moves_the_score_no_further_than_declared(
    rows: list[tuple[int, ...]], one: tuple[int, ...], another: tuple[int, ...]
) -> None:
    codes = [np.array([*rows, *extra], np.int64).reshape(-1, 3) for extra in ([], [one], [another])]
    without, first, second = (dependence_score(each, FAMILY, BINS) for each in codes)
    assert abs(first - without) <= SCORE_SENSITIVITY
    assert abs(first - second) <= 2 * SCORE_SENSITIVITY


def test_the_declared_sensitivity_is_nearly_reached() -> None:
    """Equal records, and one that differs in everything: a fifth less would be wrong."""
    same = np.zeros((999, 2), np.int64)
    other = np.concatenate([same, [[1, 1]]])
    family = Family(0, (1,))
    move = dependence_score(other, family, (2, 2)) - dependence_score(same, family, (2, 2))
    assert 0.99 * SCORE_SENSITIVITY < move <= SCORE_SENSITIVITY


def test_scores_of_many_records_stay_exact() -> None:
    codes = np.repeat(np.array([[0, 0], [1, 1]]), 1_500_000, axis=0)
    assert dependence_score(codes, Family(0, (1,)), (2, 2)) == 1_500_000 * FINENESS


def test_a_family_counts_its_cells() -> None:
    codes = np.random.default_rng(0).integers(0, BINS, (300, 3))
    counts = FAMILY.counts(codes, BINS).reshape(2, 3, 4)
    for cell in product(range(2), range(3), range(4)):
        assert counts[cell] == (codes == cell).all(axis=1).sum()


def test_candidates_are_all_columns_with_all_parents_or_a_sample_of_them() -> None:
    rng = np.random.default_rng(0)
    assert set(next_families([3, 1], 4, 1, rng)) == {
        Family(0, (1,)),
        Family(0, (3,)),
        Family(2, (1,)),
        Family(2, (3,)),
    }
    assert next_families([2], 3, 2, rng) == [Family(0, (2,)), Family(1, (2,))]
    many = next_families(list(range(30)), 60, 4, rng)
    assert len(set(many)) == MOST_CANDIDATES
    assert all(each.column >= 30 and len(set(each.parents)) == 4 for each in many)


def test_points_are_drawn_from_the_tables() -> None:
    """A chain 0 → 1 → 2 with 200,000 points: every frequency within six standard deviations, 1e-8 a cell."""
    network = Network((Family(0, ()), Family(1, (0,)), Family(2, (1,))), BINS, 1)
    first = np.array([[5.0, 0.0, 5.0], [20.0, 10.0, 0.0]])
    second = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 3.0, 1.0, 0.0]])
    drawn = sample(network, [first.ravel(), second.ravel()], 200_000, np.random.default_rng(1))
    for a, b, c in product(range(2), range(3), range(4)):
        row = second[b] if second[b].sum() else np.ones(4)
        expected = first[a, b] / first.sum() * row[c] / row.sum()
        found = ((drawn == (a, b, c)).all(axis=1)).mean()
        assert abs(found - expected) <= 6.0 * np.sqrt(expected * (1 - expected) / 200_000)


def records(number: int) -> NDArray[np.float64]:
    """Column 2 follows column 0; columns 1 and 3 are by themselves."""
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(number, 4))
    X[:, 2] = np.clip(X[:, 0] + rng.normal(0.0, 0.05, number), 0.0, 1.0)
    return X


KERNEL = hs.GaussianKernel(dim=4, bandwidth=0.2)


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("degree", [1, 2])
def test_every_draw_is_calibrated_and_they_add_up(record: DrawRecord, relation: str, degree: int) -> None:
    X = records(500)
    privbayes(X, KERNEL, bounds=(0, 1), epsilon=0.5, bins=4, degree=degree, relation=relation)
    moved = 1 if relation == "add/remove" else 2
    left = Fraction(1, 2) * (Fraction(49, 50) if moved == 1 else 1)
    assert {(each.epsilon, each.sensitivity) for each in record.choices} == {
        (left * Fraction(3, 10) / 3, moved * SCORE_SENSITIVITY)
    }
    assert len(record.choices) == 3
    tables = record.laplace[1:] if moved == 1 else record.laplace
    assert len(tables) == 4 - degree
    for counts, l1, epsilon in tables:
        assert counts.sum() == 500
        assert (l1, epsilon) == (moved * (4 - degree), left * Fraction(7, 10))
    # The tables are one vector of sensitivity l1: they share their ε.
    assert sum((each.epsilon for each in record.choices), Fraction(0)) + tables[0][2] == left


@pytest.mark.parametrize("degree", [0, 3])
def test_nothing_is_paid_for_a_network_without_alternatives(record: DrawRecord, degree: int) -> None:
    privbayes(records(300), KERNEL, bounds=(0, 1), epsilon=1.0, bins=3, degree=degree, relation="replace")
    assert record.choices == []
    assert {epsilon for _, _, epsilon in record.laplace} == {Fraction(1)}
    assert len(record.laplace) == 4 - degree


def correlation(f: PointsFunction, column: int) -> float:
    """Of the first column with another."""
    matrix: Any = np.corrcoef(f.points[:, 0], f.points[:, column])
    return float(matrix[0, 1])


def test_the_strongest_dependence_is_kept() -> None:
    f = privbayes(
        records(20_000), KERNEL, bounds=(0, 1), epsilon=2.0, bins=8, degree=1, insecure_noise_seed=2
    )
    assert correlation(f, 2) > 0.9
    assert abs(correlation(f, 1)) < 0.1
    alone = privbayes(
        records(20_000), KERNEL, bounds=(0, 1), epsilon=2.0, bins=8, degree=0, insecure_noise_seed=2
    )
    assert abs(correlation(alone, 2)) < 0.1


def test_the_useful_degree_grows_with_records_and_budget() -> None:
    box = Bounds.of((0, 1), 3)
    assert box is not None
    grid = CellGrid.of(box, 16)
    degrees = [useful_degree(grid, count, 1.0, 1) for count in (10.0, 4_000.0, 1e6)]
    assert degrees == [0, 1, 2]
    assert useful_degree(grid, 4000.0, 0.01, 1) == 0
    # By hand: three tables of 16 cells with noise of scale 3/ε, two of 256 with 2/ε, one of 4096 with 1/ε.
    assert useful_degree(grid, 256 * 4 * 2.0, 1.0, 1) == 1
    assert useful_degree(grid, 256 * 4 * 2.0 - 1, 1.0, 1) == 0
    assert useful_degree(grid, 256 * 4 * 2.0, 1.0, 2) == 0


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"degree": 4}, "degree"),
        ({"degree": True}, "degree"),
        ({"degree": "best"}, "degree"),
        ({"size": 0}, "size"),
        ({"network_share": 1.0}, "network_share"),
        ({"bins": 0}, "bins"),
        ({"bins": [2, 2]}, "bins"),
        ({"bins": 1000, "degree": 3}, "cells"),
    ],
)
def test_refuses_parameters_that_break_a_rule(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        privbayes(records(10), KERNEL, bounds=(0, 1), epsilon=1.0, **options)
