"""Counting does not depend on the batch, the threads or the way cells are added."""

import numpy as np
import pytest

from hushsum import _native
from tests.oracles.hashing import Projections, tally


@pytest.mark.parametrize("width", [1, 2, 50, 1000, 5000, 20_000, 100_000])
@pytest.mark.parametrize("count", [1, 30, 3000, 20_000])
def test_every_way_of_adding_gives_the_same_counters(width: int, count: int) -> None:
    native = Projections.draw(seed=1, rows=35, power=1, dim=2, width=width).native()
    records = np.random.default_rng(count).standard_normal((count, 2)).astype(np.float32) * 5
    table = np.full((35, width), 7, np.int64)
    native.count(records, table, 1, 1)
    np.testing.assert_array_equal(table - 7, tally(native.cells(records, 35), width))
    native.count(records, table, -1, 2)
    assert (table == 7).all()


@pytest.mark.parametrize("rows", [1, 17, 50])
@pytest.mark.parametrize(("width", "count"), [(10, 140_000), (60_000, 300_000)])
def test_popular_cells_overflow_no_narrow_counter(rows: int, width: int, count: int) -> None:
    native = Projections.draw(seed=2, rows=rows, power=1, dim=1, width=width).native()
    records = np.zeros((count, 1), np.float32)
    table = np.zeros((rows, width), np.int64)
    native.count(records, table, -1, 1)
    np.testing.assert_array_equal(
        table[np.arange(rows), native.cells(records[:1], rows)[0]], np.full(rows, -count)
    )
    assert table.sum() == -rows * count


def test_counts_of_split_batches_add_up() -> None:
    native = Projections.draw(seed=3, rows=70, power=2, dim=9, width=300).native()
    records = np.random.default_rng(3).standard_normal((2500, 9)).astype(np.float32)
    whole = np.zeros((70, 300), np.int64)
    native.count(records, whole, 1, 1)
    for size in (1, 7, 12, 13, 600, 2499):
        for threads in (1, 3):
            parts = np.zeros((70, 300), np.int64)
            for start in range(0, len(records), size):
                native.count(records[start : start + size], parts, 1, threads)
            np.testing.assert_array_equal(parts, whole)


def test_a_record_keeps_its_cells_at_every_position() -> None:
    native = Projections.draw(seed=4, rows=100, power=1, dim=55, width=1000).native()
    records = np.random.default_rng(4).standard_normal((40, 55)).astype(np.float32)
    alone = np.concatenate([native.cells(record[None], 100) for record in records])
    for shift in range(len(records)):
        np.testing.assert_array_equal(
            native.cells(np.roll(records, shift, axis=0), 100), np.roll(alone, shift, axis=0)
        )


def test_no_records_change_nothing() -> None:
    native = Projections.draw(seed=4, rows=100, power=1, dim=5, width=10).native()
    table = np.zeros((100, 10), np.int64)
    native.count(np.zeros((0, 5), np.float32), table, 1, 4)
    assert not table.any()
    assert native.cells(np.zeros((0, 5), np.float32), 100).shape == (0, 100)


def test_bare_increments_count_the_given_cells() -> None:
    cells = np.random.default_rng(5).integers(0, 30, (200, 21), dtype=np.uint32)
    table = np.zeros((21, 30), np.int64)
    _native.bare_increments(cells, table, 3)
    np.testing.assert_array_equal(table, 3 * tally(cells.astype(np.int32), 30))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_all_finite_finds_a_bad_value_anywhere(bad: float) -> None:
    values = np.full((3, 33), np.finfo(np.float32).max, np.float32)
    assert _native.all_finite(values)
    assert _native.all_finite(np.zeros((0, 3), np.float32))
    for index in np.ndindex(values.shape):
        spoiled = values.copy()
        spoiled[index] = bad
        assert not _native.all_finite(spoiled)
