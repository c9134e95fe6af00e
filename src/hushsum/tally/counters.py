"""Large tables of exact counts: one byte per cell, and more for the cells that need it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hushsum._native import CounterTable

Counters = NDArray[np.int64] | CounterTable
"""A table of exact counts: an array, or counters that start at one byte."""

CELLS_AT_A_TIME = 1 << 22


def row_blocks(table: Counters, rows: int, *, threads: int = 1) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The first rows, some at a time, each time with the number of the first one; not to be written to."""
    width = table.shape[1]
    step = max(1, CELLS_AT_A_TIME // width)
    for start in range(0, rows, step):
        many = min(step, rows - start)
        if isinstance(table, np.ndarray):
            yield start, table[start : start + many]
            continue
        values = np.empty((many, width), np.int64)
        table.read_rows(start, values, threads)
        yield start, values


def value_range(table: Counters) -> tuple[int, int]:
    """The smallest and the largest count."""
    low = high = 0
    for _, values in row_blocks(table, table.shape[0]):
        low, high = min(low, int(values.min())), max(high, int(values.max()))
    return low, high
