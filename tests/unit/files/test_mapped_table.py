"""Packed tables: every cell back, whatever its place, its size and the pieces in which it came."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from hushsum.files import PackedForm, PackedTable, TablePacker, cheapest_form, data_bytes

VALUES = st.one_of(st.integers(-300, 300), st.integers(-(2**40), 2**40))


def packed(values: NDArray[np.int64], cuts: list[int], unit: int = 1, threads: int = 1) -> PackedTable:
    packer = TablePacker((values.shape[0], values.shape[1]), unit=unit, threads=threads)
    edges = sorted({0, values.size, *(cut % (values.size + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        packer.add(values.reshape(-1)[start:stop].copy())
    return packer.finish()


@given(
    values=hnp.arrays(np.int64, st.tuples(st.integers(1, 9), st.integers(1, 90)), elements=VALUES),
    cuts=st.lists(st.integers(0, 10**6), max_size=4),
    unit=st.sampled_from([1, 3, 41]),
)
def test_every_cell_comes_back(values: NDArray[np.int64], cuts: list[int], unit: int) -> None:
    table = packed(values * unit, cuts, unit)
    np.testing.assert_array_equal(table.unpacked(), values * unit)
    assert table.total == int((values * unit).sum())
    assert np.all(np.diff(table.exception_cells) > 0)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_and_pieces_change_no_byte(threads: int) -> None:
    values = np.random.default_rng(1).laplace(5, 900, (40, 5003)).astype(np.int64)
    whole, cut = packed(values, [], threads=threads), packed(values, [100_001, 150_000])
    assert len(whole.exception_cells) > 0
    np.testing.assert_array_equal(whole.unpacked(), values)
    if whole.form == cut.form:
        np.testing.assert_array_equal(whole.data, cut.data)
    cells = np.random.default_rng(2).integers(0, 5003, (7, 40)).astype(np.int32)
    np.testing.assert_array_equal(whole.take(cells), values[np.arange(40), cells])


def test_bits_follow_from_the_spread_and_not_from_outliers() -> None:
    values = np.random.default_rng(3).laplace(0, 2000, 1 << 18).astype(np.int64)
    quiet = cheapest_form(values, 1)
    values[:5] = 10**12
    assert cheapest_form(values, 1) == quiet
    assert quiet.bits == 15


def test_every_page_is_checked_once_and_before_its_cells_are_read() -> None:
    values = np.random.default_rng(4).integers(0, 200, (4, 9000))
    table = packed(values, [])
    asked: list[int] = []
    parts = (table.shape, table.form, table.data, table.exception_cells, table.exception_values, table.total)
    lazy = PackedTable(*parts, check=asked.append)
    lazy.take(np.zeros((1, 4), np.int32))
    first = [row * 9000 * table.form.bits // 8 // 4096 for row in range(4)]
    assert sorted(set(first)) == sorted(asked)
    lazy.take(np.zeros((5, 4), np.int32))
    assert len(asked) == len(set(asked)), "a page was checked twice"
    np.testing.assert_array_equal(lazy.unpacked(), values)
    assert set(asked) >= set(range(values.size * table.form.bits // 8 // 4096 + 1))

    def refuse(page: int) -> None:
        raise ArithmeticError(f"page {page}")

    with pytest.raises(ArithmeticError, match="page 0"):
        PackedTable(*parts, check=refuse).unpacked()
    with pytest.raises(ArithmeticError, match="page"):
        PackedTable(*parts, check=refuse).native.read_cells(0, np.empty(values.size, np.int64), 2)


@pytest.mark.parametrize(
    "change",
    [
        {"bits": 0},
        {"bits": 57},
        {"unit": 0},
        {"base": 2**63 - 1},
        {"unit": 2**40, "base": 2**30},
        {"cells": [3, 3]},
        {"cells": [5, 4]},
        {"cells": [-1, 4]},
        {"cells": [4, 12]},
        {"cells": [4]},
        {"bytes": -1},
        {"bytes": 1},
    ],
    ids=str,
)
def test_parts_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    about = {"bits": 3, "base": 0, "unit": 1, "cells": [4, 5], "bytes": 0, **change}
    data = np.zeros(data_bytes((3, 4), 3) + int(str(about["bytes"])), np.uint8)
    form = PackedForm(*(int(str(about[name])) for name in ("bits", "base", "unit")))
    cells = np.array(about["cells"], np.int64)
    with pytest.raises(ValueError, match="must"):
        PackedTable((3, 4), form, data, cells, np.zeros(2, np.int64), 0)


def test_a_table_is_finished_when_all_cells_arrived() -> None:
    packer = TablePacker((2, 3), unit=1).add(np.zeros(5, np.int64))
    with pytest.raises(ValueError, match="arrived"):
        packer.finish()
