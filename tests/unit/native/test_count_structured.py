"""Structured projections against the oracle, bit for bit."""

import numpy as np
import pytest

from tests.oracles.hashing import Structured, hadamard, tally


def test_the_oracle_transform_is_the_hadamard_matrix() -> None:
    matrix = np.array([[1.0]])
    for _ in range(4):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    np.testing.assert_array_equal(hadamard(np.eye(16, dtype=np.float32)), matrix)


@pytest.mark.parametrize(
    ("size", "dim", "block_rows", "power"),
    [(1, 1, 1, 1), (2, 2, 1, 1), (4, 3, 2, 2), (8, 5, 8, 1), (16, 16, 4, 3), (64, 40, 16, 2),
     (128, 77, 100, 1), (512, 300, 33, 1), (1024, 768, 128, 1)],
)  # fmt: skip
def test_cells(size: int, dim: int, block_rows: int, power: int) -> None:
    family = Structured.draw(size, rows=70, power=power, dim=dim, width=997, size=size, block_rows=block_rows)
    records = np.random.default_rng(size).standard_normal((37, dim)).astype(np.float32) * 3
    np.testing.assert_array_equal(family.native().cells(records, 70), family.cells(records))


@pytest.mark.parametrize("count", range(1, 21))
def test_cells_of_every_record_tail(count: int) -> None:
    family = Structured.draw(1, rows=50, power=1, dim=20, width=997, size=32, block_rows=16)
    records = np.random.default_rng(count).standard_normal((count, 20)).astype(np.float32) * 3
    np.testing.assert_array_equal(family.native().cells(records, 50), family.cells(records))


@pytest.mark.parametrize(("power", "fold"), [(5, False), (5, True), (33, True), (64, True)])
def test_cells_of_signs(power: int, fold: bool) -> None:
    family = Structured.draw(
        2, rows=9, power=power, dim=50, width=64, size=64, block_rows=1, sign_mode=True, fold=fold
    )
    records = np.random.default_rng(power).standard_normal((25, 50)).astype(np.float32)
    np.testing.assert_array_equal(family.native().cells(records, 9), family.cells(records))


def test_counts_on_any_number_of_threads() -> None:
    family = Structured.draw(3, rows=100, power=1, dim=20, width=30, size=32, block_rows=32)
    records = np.random.default_rng(3).standard_normal((700, 20)).astype(np.float32)
    for threads in (1, 2, 3, 9):
        table = np.zeros((100, 30), np.int64)
        family.native().count(records, table, 1, threads)
        np.testing.assert_array_equal(table, tally(family.cells(records), 30))


def test_properties() -> None:
    native = Structured.draw(1, rows=50, power=1, dim=20, width=997, size=32, block_rows=16).native()
    assert (native.rows, native.dim, native.width) == (50, 20, 997)
