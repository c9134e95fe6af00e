"""How answers of one table depend on each other, for readings that have no formula for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.kernels.base import Batch
from hushsum.records.native_batch import part_of

if TYPE_CHECKING:
    from hushsum.bases.base import LinearReading

_MOST_CELLS: Final = 1 << 12
"""Of larger tables coefficients are not found cell by cell."""

_PROBES: Final = 1 << 10
_UNIT: Final = 1 << 20
"""What tables of whole numbers have for 1, so that fractions are kept."""


def probed_covariance(reading: LinearReading, batch: Batch) -> Floats:
    """Σ_j r_j(q)·r_j(q') for all pairs of queries, from answers of made-up tables.

    Coefficients are found cell by cell, or for a large table their products from 1024 random tables, which is
    exact up to 5 %.
    """
    shape = reading.basis.shape
    cells = shape[0] * shape[1]
    drawn = cells > _MOST_CELLS
    rng = np.random.default_rng(0)
    read = np.empty((_PROBES if drawn else cells, len(batch)))
    for i in range(len(read)):
        table = np.zeros(shape, np.int64)
        if drawn:
            table[:] = np.rint(rng.standard_normal(shape) * _UNIT)
        else:
            table.reshape(-1)[i] = _UNIT
        read[i] = reading.evaluate(table, batch, threads=1) / _UNIT
    return np.asarray(read.T @ read) / (_PROBES if drawn else 1.0)


def counted_alone(reading: LinearReading, records: Batch, queries: Batch) -> Floats:
    """What each record adds to the answer at each query: each is counted in a table of its own and read."""
    answers = np.empty((len(records), len(queries)))
    for i in range(len(records)):
        table = reading.basis.new_table()
        reading.basis.accumulate(table, part_of(records, i, i + 1), step=1, threads=1)
        answers[i] = reading.evaluate(table, queries, threads=1)
    return answers


def shared_rows(one: NDArray[np.int32], other: NDArray[np.int32]) -> Floats:
    """The part of the rows in which two records have the same cell, for all pairs; cells by record and row.

    >>> shared_rows(np.array([[1, 2]], np.int32), np.array([[1, 2], [1, 3]], np.int32))
    array([[1. , 0.5]])
    """
    shared = np.empty((len(one), len(other)))
    for i, cells in enumerate(one):
        shared[i] = np.count_nonzero(other == cells, axis=1)
    return np.asarray(shared / one.shape[1])
