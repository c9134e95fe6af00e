"""MWEM: integer queries of known sensitivity, budgets that add up, weights that meet what was measured."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.baselines import mwem
from hushsum.baselines._real_functions import SCALE, answers_of, query_table
from hushsum.errors import UsageError
from hushsum.records import Bounds, CellGrid
from tests.recorded_draws import DrawRecord

KERNEL = hs.GaussianKernel(dim=1, bandwidth=0.1)
QUERIES = np.linspace(-0.5, 0.5, 11, dtype=np.float32)[:, None]


def grid_of(dim: int = 1, bins: int = 20) -> CellGrid:
    box = Bounds.of((0, 1), dim)
    assert box is not None
    return CellGrid.of(box, bins)


def test_queries_are_the_kernel_at_the_middles_of_cells_in_integers() -> None:
    grid = grid_of()
    table = query_table(KERNEL, grid, QUERIES)
    for q in range(len(QUERIES)):
        for cell in range(grid.cells):
            distance = (cell + 0.5) / 20 - 0.5 - float(QUERIES[q, 0])
            assert table[q, cell] == pytest.approx(SCALE * np.exp(-50.0 * distance**2), abs=0.51)
    assert np.array_equal(table, np.rint(table))
    assert table.min() >= 0
    assert table.max() <= SCALE


def test_answers_are_exact_integers() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 10**6, 50)
    table = rng.integers(0, SCALE + 1, (7, 50)).astype(np.float64)
    expected = [sum(int(c) * int(k) for c, k in zip(counts, row, strict=True)) for row in table]
    assert answers_of(counts, table).tolist() == expected


def test_a_record_moves_no_answer_further_than_declared_and_one_moves_it_so_far() -> None:
    grid = grid_of(2, 9)
    queries = np.random.default_rng(1).uniform(-0.5, 0.5, (30, 2)).astype(np.float32)
    queries[0] = 0.0
    table = query_table(hs.EuclideanKernel(dim=2, bandwidth=0.3), grid, queries)
    moves = []
    for cell in range(grid.cells):
        one = np.zeros(grid.cells, np.int64)
        one[cell] = 1
        moves.append(np.abs(answers_of(one, table)).max())
    assert max(moves) <= SCALE
    assert max(moves) > 0.8 * SCALE
    replaced = table.max(axis=1) - table.min(axis=1)
    assert replaced.max() <= SCALE


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_every_draw_is_calibrated_and_they_add_up(record: DrawRecord, relation: str) -> None:
    mwem([[0.3]] * 200, KERNEL, bounds=(0, 1), epsilon=0.3, rounds=4, relation=relation)
    total = Fraction(3, 10)
    paid = total / 50 if relation == "add/remove" else Fraction(0)
    share = (total - paid) / 8
    assert [(each.epsilon, each.sensitivity, each.monotone) for each in record.choices] == [
        (share, SCALE, False)
    ] * 4
    measured = [(l1, epsilon) for _, l1, epsilon in record.laplace]
    assert measured == ([(1, paid)] if paid else []) + [(SCALE, share)] * 4
    assert record.spent == total


def test_scores_are_distances_to_public_weights(record: DrawRecord) -> None:
    """Neighbours whose draws agree have scores that differ by at most the declared sensitivity."""
    X = np.random.default_rng(2).uniform(size=(100, 1))
    options: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1.0, "rounds": 1, "relation": "replace"}
    scores = []
    for data in (X, np.concatenate([X[1:], [[0.99]]]), np.concatenate([X[1:], [[0.0]]])):
        mwem(data, KERNEL, insecure_noise_seed=1, **options)
        scores.append(np.array(record.choices[-1].scores))
    assert np.abs(scores[0] - scores[1]).max() <= SCALE
    assert np.abs(scores[1] - scores[2]).max() <= SCALE
    assert np.abs(scores[1] - scores[2]).max() > 0


def test_weights_are_a_histogram_that_meets_what_was_measured() -> None:
    X = np.random.default_rng(3).normal(0.4, 0.1, (5000, 1))
    queries = np.linspace(0.1, 0.9, 6)[:, None]
    f = mwem(X, KERNEL, bounds=(0, 1), epsilon=1e6, rounds=6, queries=queries, insecure_noise_seed=1)
    assert (f.weights >= 0.0).all()
    assert f.weights.sum() == pytest.approx(f.count)
    assert f.count == pytest.approx(5000, abs=1)
    np.testing.assert_allclose(f(queries), KERNEL.exact_sum(X, queries) / 5000, atol=0.01)
    uniform = mwem(X, KERNEL, bounds=(0, 1), epsilon=1e6, rounds=1, queries=[[0.9]], insecure_noise_seed=1)
    worse = np.abs(uniform(queries) - KERNEL.exact_sum(X, queries) / 5000).max()
    assert worse > 0.05


def test_noise_that_drowns_everything_gives_numbers_all_the_same() -> None:
    f = mwem([[0.5]], KERNEL, bounds=(0, 1), epsilon=1e-6, rounds=5)
    assert np.isfinite(f.weights).all()
    assert f.count >= 1.0


def test_refuses_more_rounds_than_queries_and_too_large_tables() -> None:
    with pytest.raises(UsageError, match="rounds"):
        mwem([[0.5]], KERNEL, bounds=(0, 1), epsilon=1.0, rounds=3, queries=[[0.1], [0.2]])
    with pytest.raises(UsageError, match="cells × queries"):
        mwem([[0.5]], KERNEL, bounds=(0, 1), epsilon=1.0, bins=1 << 20)
    with pytest.raises(UsageError, match="queries must be at most"):
        mwem([[0.5]], KERNEL, bounds=(0, 1), epsilon=1.0, queries=np.zeros((1 << 15, 1)))
