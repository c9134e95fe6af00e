"""Means without variances, and readers of plain arrays, say what ``read`` says, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum.files import TablePacker
from hushsum.kernels import Kernel
from hushsum.tables import HashRows, RowReading

RNG = np.random.default_rng(4)
DENSE = RNG.normal(size=(700, 5)).astype(np.float32)
CASES: list[tuple[Kernel, object]] = [
    (hs.EuclideanKernel(5, 1.0), DENSE),
    (hs.EuclideanKernel(5, 1.0, power=2, projection="structured"), DENSE),
    (hs.AngularKernel(5, bits=40), DENSE),
    (hs.HammingKernel(5), RNG.integers(0, 3, (700, 5))),
    (hs.JaccardKernel(), [RNG.integers(0, 9, i % 7).tolist() for i in range(700)]),
]


@pytest.mark.parametrize(("kernel", "queries"), CASES, ids=lambda case: getattr(case, "name", ""))
@pytest.mark.parametrize("rows", [1, 31, 64, 77])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("threads", [1, 3])
def test_means_are_those_of_read(
    kernel: Kernel, queries: object, rows: int, dtype: type[np.int32] | type[np.int64], threads: int
) -> None:
    basis = HashRows(kernel, 77, 50, 2)
    table = RNG.integers(-(10**6), 10**6, (rows, basis.width)).astype(dtype)
    batch = basis.prepare(queries)
    mean, _ = basis.hasher.read(*batch.arrays, table, 1, 1)
    found = basis.hasher.means(*batch.arrays, table, 0.37, -11.0, threads)
    np.testing.assert_array_equal(found, mean * 0.37 + -11.0)
    values = table[np.arange(rows), basis.prefix(rows).cells(batch)]
    np.testing.assert_array_equal(mean, values.sum(axis=1, dtype=np.int64) / rows)


@pytest.mark.parametrize("kernel", [CASES[0][0], CASES[1][0]], ids=["dense", "structured"])
def test_readers_answer_plain_arrays_only(kernel: Kernel) -> None:
    basis = HashRows(kernel, 20, 50, 2)
    table = RNG.integers(-100, 100, (20, 50)).astype(np.int32)
    reader = RowReading(basis, kernel).reader(table, count=9.0, scale=0.5)
    expected = RowReading(basis, kernel).sums(table, basis.prepare(DENSE), count=9.0, scale=0.5, threads=1)
    for queries in (DENSE, DENSE.astype(np.float64)):
        np.testing.assert_array_equal(reader(queries), expected)
    np.testing.assert_array_equal(reader(DENSE[3]), expected[3:4])
    strange: list[object] = [
        DENSE[:, :4].copy(),
        DENSE.T,
        DENSE[:0],
        DENSE[None],
        DENSE.astype(np.int64),
        np.full((1, 5), np.nan),
        np.full((1, 5), 1e300),
        DENSE.tolist(),
        "points",
        None,
    ]
    assert [reader(each) for each in strange] == [None] * len(strange)


@pytest.mark.parametrize("packed", [False, True])
def test_readers_of_sets_answer_a_few_arrays_of_integers(packed: bool) -> None:
    kernel = hs.JaccardKernel()
    basis = HashRows(kernel, 300, 50, 2)
    table = RNG.integers(-100, 100, (300, 50))
    cells = TablePacker((300, 50), unit=1).add(table.reshape(-1)).finish() if packed else table
    reading = RowReading(basis, kernel)
    reader = reading.reader(cells, count=9.0, scale=0.5)
    sets = [RNG.integers(-(2**60), 2**60, size) for size in (3, 0, 40, 1)]
    expected = reading.sums(table, basis.prepare(sets), count=9.0, scale=0.5, threads=1)
    np.testing.assert_array_equal(reader(sets), expected)
    np.testing.assert_array_equal(reader(sets[2:3]), expected[2:3])
    strange: list[object] = [
        [],
        sets * 3,
        tuple(sets),
        [sets[0].tolist()],
        [sets[2][::2]],
        [sets[0].astype(np.uint64)],
        [sets[0].astype(np.float64)],
        [np.ma.masked_array(sets[0])],
        [sets[0][None]],
        np.array([[1, 2]]),
        None,
    ]
    assert [reader(each) for each in strange] == [None] * len(strange)


def test_a_table_of_another_shape_has_no_reader() -> None:
    kernel = hs.JaccardKernel()
    reading = RowReading(HashRows(kernel, 4, 50, 2), kernel)
    for shape in ((5, 50), (4, 49)):
        table = np.zeros(shape, np.int64)
        for cells in (table, TablePacker(shape, unit=1).add(table.reshape(-1)).finish()):
            with pytest.raises(ValueError, match="table must"):
                reading.reader(cells, count=1.0, scale=1.0)
