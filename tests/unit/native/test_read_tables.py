"""Reading a table against NumPy."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.oracles.hashing import Codes, Minima, Projections, Structured, mean_and_variance

ROWS, WIDTH = 150, 64
PROJECTIONS = Projections.draw(seed=1, rows=ROWS, power=1, dim=4, width=WIDTH)
QUERIES = np.random.default_rng(2).standard_normal((50, 4)).astype(np.float32) * 4


def noisy_table(rows: int, dtype: npt.DTypeLike, offset: int = 0) -> npt.NDArray[Any]:
    return (np.random.default_rng(3).integers(-500, 500, (rows, WIDTH)) + offset).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 33, 100, 150])
@pytest.mark.parametrize("block", [1, 2, 7, 16, 40, 150, 1000])
def test_mean_and_variance(dtype: npt.DTypeLike, rows: int, block: int) -> None:
    table = noisy_table(rows, dtype)
    values = table[np.arange(rows), PROJECTIONS.cells(QUERIES)[:, :rows]]
    mean, variance = PROJECTIONS.native().read(QUERIES, table, block, 1)
    wanted_mean, wanted_variance = mean_and_variance(values, block)
    np.testing.assert_allclose(mean, wanted_mean, rtol=1e-14, atol=1e-12)
    np.testing.assert_allclose(variance, wanted_variance, rtol=1e-11, atol=1e-11)


def test_one_row_per_block_is_the_sample_variance() -> None:
    table = noisy_table(ROWS, np.int64)
    values = table[np.arange(ROWS), PROJECTIONS.cells(QUERIES)]
    _, variance = PROJECTIONS.native().read(QUERIES, table, 1, 1)
    np.testing.assert_allclose(variance, values.var(axis=1, ddof=1) / ROWS, rtol=1e-12)


@pytest.mark.parametrize("block", [1, 16])
def test_a_large_common_value_costs_no_digits(block: int) -> None:
    native = PROJECTIONS.native()
    mean, variance = native.read(QUERIES, noisy_table(ROWS, np.int64), block, 1)
    shifted_mean, shifted_variance = native.read(QUERIES, noisy_table(ROWS, np.int64, offset=2**50), block, 1)
    np.testing.assert_allclose(shifted_mean - 2.0**50, mean, atol=0.51)
    np.testing.assert_array_equal(shifted_variance, variance)


@pytest.mark.parametrize("block", [1, 32, 40])
def test_answers_do_not_depend_on_the_batch(block: int) -> None:
    native, table = PROJECTIONS.native(), noisy_table(ROWS, np.int64)
    whole = np.stack(native.read(QUERIES, table, block, 1))
    for size in (1, 3, 8, 9, 13, 49):
        for threads in (1, 2, 7):
            parts = [native.read(QUERIES[s : s + size], table, block, threads) for s in range(0, 50, size)]
            np.testing.assert_array_equal(np.concatenate([np.stack(part) for part in parts], axis=1), whole)


def test_answers_do_not_depend_on_the_threads() -> None:
    queries = np.tile(QUERIES, (40, 1))
    native, table = PROJECTIONS.native(), noisy_table(ROWS, np.int64)
    alone = np.tile(np.stack(native.read(QUERIES, table, 1, 1)), 40)
    for threads in (1, 2, 3, 7):
        np.testing.assert_array_equal(np.stack(native.read(queries, table, 1, threads)), alone)


def test_more_queries_than_are_held_at_once() -> None:
    queries = np.random.default_rng(4).standard_normal((10_001, 4)).astype(np.float32)
    native, table = PROJECTIONS.native(), noisy_table(ROWS, np.int32)
    mean, variance = native.read(queries, table, 1, 2)
    expected = mean_and_variance(table[np.arange(ROWS), native.cells(queries, ROWS)], 1)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-14, atol=1e-12)
    np.testing.assert_allclose(variance, expected[1], rtol=1e-11)


def test_no_queries() -> None:
    mean, variance = PROJECTIONS.native().read(QUERIES[:0], noisy_table(ROWS, np.int64), 1, 2)
    assert mean.shape == variance.shape == (0,)


@pytest.mark.parametrize("count", [1, 30])
def test_the_other_families_read_the_same_way(count: int) -> None:
    rng = np.random.default_rng(5)
    table = noisy_table(ROWS, np.int64)
    structured = Structured.draw(1, rows=ROWS, power=1, dim=12, width=WIDTH, size=16, block_rows=16)
    records = rng.standard_normal((count, 12)).astype(np.float32)
    codes = Codes.draw(1, rows=ROWS, power=2, dim=12, width=WIDTH)
    code_records = rng.integers(0, 5, (count, 12), dtype=np.int32)
    minima = Minima.draw(1, rows=ROWS, power=1, width=WIDTH)
    values, indptr = rng.integers(0, 99, 4 * count), np.arange(0, 4 * count + 1, 4)
    for (mean, variance), cells in [
        (structured.native().read(records, table, 16, 1), structured.cells(records)),
        (codes.native().read(code_records, table, 16, 1), codes.cells(code_records)),
        (minima.native().read(values, indptr, table, 16, 1), minima.cells(values, indptr)),
    ]:
        expected = mean_and_variance(table[np.arange(ROWS), cells], 16)
        np.testing.assert_allclose(mean, expected[0], rtol=1e-13)
        np.testing.assert_allclose(variance, expected[1], rtol=1e-11)
