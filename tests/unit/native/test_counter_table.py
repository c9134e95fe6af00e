"""Counters of bytes against the oracle: the same counts as 64-bit tables, whatever is carried."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from hushsum._native import CounterTable
from tests.oracles.hashing import Minima, tally

ROWS, WIDTH = 45, 60


def sets(seed: int, sizes: list[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return rng.integers(-(2**62), 2**62, int(indptr[-1])), indptr


def contents(table: CounterTable, threads: int = 1) -> npt.NDArray[np.int64]:
    values = np.empty(table.shape, np.int64)
    table.read_rows(0, values, threads)
    return values


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("records", [1, 503, 505, 3000])
def test_counts_equal_those_of_the_oracle(records: int, threads: int) -> None:
    family = Minima.draw(5, rows=ROWS, power=1, width=WIDTH)
    values, indptr = sets(5, [index % 7 for index in range(records)])
    table = CounterTable(ROWS, WIDTH)
    family.native().count(values, indptr, table, 1, threads)
    expected = tally(family.cells(values, indptr), WIDTH)
    assert records < 3000 or expected.max() > 255, "no counter was carried"
    np.testing.assert_array_equal(contents(table, threads), expected)


def test_what_was_added_is_removed_through_every_carry() -> None:
    family = Minima.draw(6, rows=ROWS, power=1, width=WIDTH)
    values, indptr = sets(6, [0] * 2000 + [2] * 300)
    once = tally(family.cells(values, indptr), WIDTH)
    table = CounterTable(ROWS, WIDTH)
    for step, passes in ((1, 3), (-1, 5), (1, 2)):
        for _ in range(passes):
            family.native().count(values, indptr, table, step, 2)
    np.testing.assert_array_equal(contents(table), 0 * once)
    family.native().count(values, indptr, table, -1, 1)
    np.testing.assert_array_equal(contents(table), -once)


@pytest.mark.parametrize("start", [250, 2**16 - 1, 2**24 - 3, 2**40 - 1, -1, -(2**24), -(2**40)])
def test_counters_pass_every_border_in_both_directions(start: int) -> None:
    family = Minima.draw(7, rows=3, power=1, width=4)
    values, indptr = sets(7, [1] * 40)
    once = tally(family.cells(values, indptr), 4)
    table = CounterTable(3, 4)
    table.add_rows(0, np.full((3, 4), start, np.int64), 1)
    family.native().count(values, indptr, table, 1, 1)
    np.testing.assert_array_equal(contents(table), start + once)
    for _ in range(2):
        family.native().count(values, indptr, table, -1, 1)
    np.testing.assert_array_equal(contents(table), start - once)


def test_tables_add_up() -> None:
    rng = np.random.default_rng(8)
    sizes = np.array([1, 300, 2**17, 2**30, -(2**30)])
    parts = [rng.integers(-2, 3, (6, 50)) * sizes[rng.integers(0, 5, (6, 50))] for _ in range(2)]
    tables = []
    for part in parts:
        tables.append(CounterTable(6, 50))
        tables[-1].add_rows(0, part[:2].copy(), 1)
        tables[-1].add_rows(2, part[2:].copy(), 2)
    merged = tables[0]
    merged += tables[1]
    assert merged is tables[0]
    np.testing.assert_array_equal(contents(merged), parts[0] + parts[1])
    np.testing.assert_array_equal(contents(tables[1]), parts[1])


def test_other_shapes_are_refused() -> None:
    table = CounterTable(3, 4)
    assert table.shape == (3, 4)
    for rows, width in ((0, 4), (3, 0), (-1, 4), (2**31, 2**31 - 1), (2**31 - 1, 2**31 - 1)):
        with pytest.raises(ValueError, match="must be"):
            CounterTable(rows, width)
    with pytest.raises(ValueError, match="rows of the table"):
        table.read_rows(2, np.empty((2, 4), np.int64), 1)
    with pytest.raises(ValueError, match="values must be"):
        table.add_rows(0, np.empty((2, 5), np.int64), 1)
    with pytest.raises(ValueError, match="one shape"):
        table += CounterTable(4, 3)
    family = Minima.draw(7, rows=3, power=1, width=5)
    with pytest.raises(ValueError, match="rows and width of the hasher"):
        family.native().count(*sets(7, [1]), table, 1, 1)
