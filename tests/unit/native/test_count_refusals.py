"""What the native hashers refuse: nothing may be read or written out of bounds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hushsum import _native
from tests.oracles.hashing import Codes, Minima, Projections, Structured

DENSE = Projections.draw(seed=1, rows=20, power=2, dim=3, width=10)
SIGNS = Projections.draw(seed=1, rows=20, power=4, dim=3, width=10, signs=True)
HADAMARD = Structured.draw(1, rows=20, power=1, dim=12, width=10, size=16, block_rows=16)
SETS = Minima.draw(1, rows=20, power=2, width=10)
CODES = Codes.draw(1, rows=20, power=2, dim=6, width=10)
RECORDS = np.zeros((5, 3), np.float32)
TABLE = np.zeros((20, 10), np.int64)


@pytest.mark.parametrize(
    ("family", "change", "word"),
    [
        (DENSE, {"weights": DENSE.weights.astype(np.float64)}, "weights"),
        (DENSE, {"weights": DENSE.weights[..., 0]}, "weights"),
        (DENSE, {"weights": DENSE.weights[:, :, ::-1]}, "weights"),
        (DENSE, {"weights": DENSE.weights[:0]}, "weights"),
        (DENSE, {"offsets": DENSE.offsets[:-1]}, "offsets"),
        (DENSE, {"multipliers": DENSE.multipliers[:, :1]}, "multipliers"),
        (DENSE, {"multipliers": DENSE.multipliers.astype(np.int64)}, "multipliers"),
        (DENSE, {"addends": DENSE.addends[1:]}, "addends"),
        (DENSE, {"width": 0}, "width"),
        (DENSE, {"width": 2**31}, "width"),
        (DENSE, {"fold": False}, "fold"),
        (SIGNS, {"fold": False}, "fold"),
        (HADAMARD, {"signs": HADAMARD.signs[:1]}, "signs"),
        (HADAMARD, {"signs": HADAMARD.signs * np.int8(2)}, "signs"),
        (HADAMARD, {"signs": np.ascontiguousarray(HADAMARD.signs[..., :15])}, "signs"),
        (HADAMARD, {"dim": 17}, "signs"),
        (HADAMARD, {"dim": 0}, "dim"),
        (HADAMARD, {"rows": 0}, "rows"),
        (HADAMARD, {"power": -1}, "power"),
        (HADAMARD, {"block_rows": 17}, "block_rows"),
        (HADAMARD, {"offsets": HADAMARD.offsets[:3]}, "offsets"),
        (SETS, {"mixers": SETS.mixers - np.uint32(1)}, "odd"),
        (SETS, {"shifts": SETS.shifts[:, :1]}, "shifts"),
        (SETS, {"multipliers": SETS.multipliers[:, :2]}, "multipliers"),
        (CODES, {"columns": CODES.columns - np.int32(6)}, "columns"),
        (CODES, {"addends": CODES.addends[:1]}, "addends"),
    ],
)
def test_parameters(family: Any, change: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        replace(family, **change).native()


@pytest.mark.parametrize(
    "records",
    [
        RECORDS.astype(np.float64),
        RECORDS[:, :2],
        np.asfortranarray(RECORDS),
        RECORDS[0],
        RECORDS[:, None],
        RECORDS[::2],
    ],
)
def test_records(records: Any) -> None:
    native = DENSE.native()
    for call in (
        lambda: native.count(records, TABLE.copy(), 1, 1),
        lambda: native.cells(records, 1),
        lambda: native.read(records, TABLE, 1, 1),
    ):
        with pytest.raises(ValueError, match=r"records must be .* float32"):
            call()


@pytest.mark.parametrize(
    "table",
    [
        TABLE[:-1].copy(),
        TABLE.astype(np.int32),
        TABLE[:, :9].copy(),
        np.zeros((20, 20), np.int64)[:, ::2],
        TABLE[0],
    ],
)
def test_tables_of_counters(table: Any) -> None:
    with pytest.raises(ValueError, match="table"):
        DENSE.native().count(RECORDS, table, 1, 1)


def test_a_read_only_table_is_not_counted_into() -> None:
    table = TABLE.copy()
    table.flags.writeable = False
    with pytest.raises(TypeError):
        DENSE.native().count(RECORDS, table, 1, 1)


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((21, 10), np.int64),
        np.zeros((0, 10), np.int64),
        TABLE.astype(np.float64),
        TABLE[:, :9].copy(),
    ],
)
def test_tables_to_read(table: Any) -> None:
    with pytest.raises(ValueError, match="table"):
        DENSE.native().read(RECORDS, table, 1, 1)


def test_scalars() -> None:
    native = DENSE.native()
    for step in (0, 2, -2):
        with pytest.raises(ValueError, match="step"):
            native.count(RECORDS, TABLE.copy(), step, 1)
    with pytest.raises(ValueError, match="threads"):
        native.count(RECORDS, TABLE.copy(), 1, 0)
    with pytest.raises(ValueError, match="threads"):
        native.read(RECORDS, TABLE, 1, -1)
    with pytest.raises(ValueError, match="block"):
        native.read(RECORDS, TABLE, 0, 1)
    for rows in (-1, 21):
        with pytest.raises(ValueError, match="rows"):
            native.cells(RECORDS, rows)


@pytest.mark.parametrize("indptr", [[], [1, 4], [0, 3], [0, 3, 2, 4], [0, -1, 4], [0, 5], [0, 9, 4]])
def test_set_boundaries(indptr: list[int]) -> None:
    with pytest.raises(ValueError, match="indptr"):
        SETS.native().cells(np.arange(4), np.array(indptr, np.int64), 1)


def test_codes_with_too_few_columns() -> None:
    narrow = np.zeros((4, int(CODES.columns.max())), np.int32)
    with pytest.raises(ValueError, match="columns"):
        CODES.native().cells(narrow, 1)


def test_bare_increments_stay_inside_the_table() -> None:
    cells = np.zeros((4, 20), np.uint32)
    cells[3, 19] = 10
    with pytest.raises(ValueError, match="cells"):
        _native.bare_increments(cells, TABLE.copy(), 1)


def test_all_finite_takes_contiguous_float32_only() -> None:
    for values in (np.zeros(3), np.zeros((4, 4), np.float32)[:, ::2]):
        with pytest.raises(ValueError, match="values"):
            _native.all_finite(values)  # type: ignore[arg-type]
