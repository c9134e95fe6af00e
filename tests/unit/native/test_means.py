"""Means without variances, and readers of plain arrays, say what ``read`` says, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum.bases.hash_rows import HashReading, HashRows
from hushsum.kernels.base import Kernel

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
    reader = HashReading(basis, kernel).reader(table, count=9.0, scale=0.5)
    expected = HashReading(basis, kernel).sums(table, basis.prepare(DENSE), count=9.0, scale=0.5, threads=1)
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
