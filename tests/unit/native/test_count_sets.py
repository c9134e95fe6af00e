"""Min-wise hashes of sets and sampled codes against the oracle."""

import numpy as np
import numpy.typing as npt
import pytest

from tests.oracles.hashing import Codes, Minima, tally


def sets(seed: int, sizes: list[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return rng.integers(-(2**62), 2**62, int(indptr[-1])), indptr


@pytest.mark.parametrize("rows", [1, 16, 33, 70])
@pytest.mark.parametrize("power", [1, 2, 5])
def test_cells_of_sets(rows: int, power: int) -> None:
    family = Minima.draw(rows, rows=rows, power=power, width=1000)
    values, indptr = sets(rows, [0, 1, 2, 3, 0, 0, 17, 40, 1, 0])
    np.testing.assert_array_equal(family.native().cells(values, indptr, rows), family.cells(values, indptr))


def test_no_sets_and_only_empty_sets() -> None:
    family = Minima.draw(1, rows=20, power=1, width=1000)
    values = np.zeros(0, np.int64)
    assert family.native().cells(values, np.zeros(1, np.int64), 20).shape == (0, 20)
    cells = family.native().cells(values, np.zeros(4, np.int64), 20)
    np.testing.assert_array_equal(cells, family.cells(values, np.zeros(4, np.int64)))


def test_a_set_has_no_order_and_no_repetitions() -> None:
    native = Minima.draw(2, rows=20, power=2, width=1000).native()
    values = np.array([5, -3, 2**50, 5, 5, -3, 2**50, 5], np.int64)
    cells = native.cells(values, np.array([0, 3, 8], np.int64), 20)
    np.testing.assert_array_equal(cells[0], cells[1])


def test_similar_sets_collide_as_often_as_their_jaccard_similarity() -> None:
    rows = 20_000
    native = Minima.draw(4, rows=rows, power=1, width=2**20).native()
    values = np.concatenate([np.arange(0, 60), np.arange(30, 90)]).astype(np.int64)
    cells = native.cells(values, np.array([0, 60, 120], np.int64), rows)
    # Linear mixers are only approximately min-wise; 1/3 ± 0.03 is nine standard errors.
    assert abs((cells[0] == cells[1]).mean() - 1 / 3) < 0.03


def test_counts_of_sets() -> None:
    family = Minima.draw(5, rows=45, power=1, width=60)
    values, indptr = sets(5, [3, 0, 9] * 200)
    for threads in (1, 2, 5):
        table = np.zeros((45, 60), np.int64)
        family.native().count(values, indptr, table, 1, threads)
        np.testing.assert_array_equal(table, tally(family.cells(values, indptr), 60))


@pytest.mark.parametrize("rows", [1, 16, 33, 70])
@pytest.mark.parametrize("power", [1, 2, 9])
def test_cells_of_codes(rows: int, power: int) -> None:
    family = Codes.draw(rows, rows=rows, power=power, dim=11, width=1000)
    records = np.random.default_rng(rows).integers(-(2**31), 2**31, (30, 11), dtype=np.int32)
    np.testing.assert_array_equal(family.native().cells(records, rows), family.cells(records))


def test_counts_of_codes() -> None:
    family = Codes.draw(5, rows=45, power=3, dim=11, width=60)
    records = np.random.default_rng(5).integers(0, 4, (600, 11), dtype=np.int32)
    table = np.zeros((45, 60), np.int64)
    family.native().count(records, table, 1, 2)
    np.testing.assert_array_equal(table, tally(family.cells(records), 60))
