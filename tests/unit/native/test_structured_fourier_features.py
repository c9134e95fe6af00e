"""Native structured Fourier features against the oracle, bit for bit; error bars of all features."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from hushsum import _native
from tests.oracles import features as oracle
from tests.oracles.hashing import uniform
from tests.unit.native.clones import CLONES, digest_of

Floats = npt.NDArray[np.float32]


def made(
    seed: int, *, rows: int, dim: int, size: int, count: int
) -> tuple[npt.NDArray[np.int8], Floats, Floats]:
    rng = np.random.default_rng(seed)
    signs = rng.choice(np.array([-1, 1], np.int8), (-(-rows // size), 3, size))
    return signs, rng.random(rows, dtype=np.float32) * np.float32(0.02), uniform(rng, count, dim)


@pytest.mark.parametrize("count", [*range(1, 20), 31, 63, 64, 65, 130])
def test_every_record_tail(count: int) -> None:
    signs, scales, records = made(count, rows=150, dim=54, size=64, count=count)
    native = _native.StructuredFeatureMap(signs, scales, 54)
    expected = oracle.structured_integers(signs, scales, records)
    np.testing.assert_array_equal(native.integers(records), expected)
    table = np.full((150, 2), 5, np.int64)
    native.add(records, table, 1, 1)
    np.testing.assert_array_equal(table, 5 + expected.sum(axis=0))


@pytest.mark.parametrize(
    ("dim", "size"), [(1, 1), (2, 2), (3, 4), (5, 8), (1, 64), (64, 64), (65, 128), (200, 256)]
)
def test_every_size(dim: int, size: int) -> None:
    signs, scales, records = made(dim, rows=2 * size + 1, dim=dim, size=size, count=23)
    native = _native.StructuredFeatureMap(signs, scales, dim)
    np.testing.assert_array_equal(
        native.integers(records), oracle.structured_integers(signs, scales, records)
    )


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 640])
def test_every_row_tail_and_number_of_threads(rows: int) -> None:
    signs, scales, records = made(rows, rows=rows, dim=40, size=64, count=5000)
    native = _native.StructuredFeatureMap(signs, scales, 40)
    expected = oracle.structured_integers(signs, scales, records).sum(axis=0)
    for threads in (1, 2, 5):
        table = np.zeros((rows, 2), np.int64)
        native.add(records, table, -1, threads)
        np.testing.assert_array_equal(table, -expected)


def test_huge_values_stay_within_the_length() -> None:
    largest = np.finfo(np.float32).max
    records = np.array([[largest, largest], [largest, -largest], [1e30, -1e30], [1e-45, -0.0]], np.float32)
    signs, scales, _ = made(1, rows=64, dim=2, size=64, count=1)
    found = _native.StructuredFeatureMap(signs, scales, 2).integers(records)
    np.testing.assert_array_equal(found, oracle.structured_integers(signs, scales, records))
    assert (np.square(found.astype(np.int64)).sum(axis=-1) <= _native.WAVE_LENGTH**2).all()


@pytest.mark.parametrize("count", [1, 15, 33, 700])
@pytest.mark.parametrize("rows", [64, 100, 640])
def test_reading_and_its_spread(count: int, rows: int) -> None:
    signs, scales, queries = made(rows, rows=rows, dim=54, size=64, count=count)
    native = _native.StructuredFeatureMap(signs, scales, 54)
    angle = 2 * np.pi * oracle.structured_phases(signs, scales, queries).astype(np.float64)
    table = np.random.default_rng(1).integers(-(10**6), 10**6, (rows, 2))
    products = 0.5 * (np.cos(angle) * table[:, 0] + np.sin(angle) * table[:, 1])
    for cells in (table, table.astype(np.int32)):
        for threads in (1, 3):
            answers = native.read(queries, cells, 0.5, threads)
            np.testing.assert_allclose(answers, products.sum(axis=1), atol=40 * np.sqrt(rows))
            for block in (1, 64) if rows > 64 else (1,):
                mean, variance = native.spread(queries, cells, block, 0.5, threads)
                expected = oracle.row_spread(products, block)
                np.testing.assert_allclose(mean, expected[0], atol=40)
                np.testing.assert_allclose(variance, expected[1], rtol=2e-3)


@pytest.mark.parametrize("block", [1, 3, 15, 16, 54, 100])
@pytest.mark.parametrize("count", [1, 13, 600])
def test_the_spread_of_dense_features(block: int, count: int) -> None:
    rng = np.random.default_rng(block)
    frequencies, queries = uniform(rng, 301, 4), uniform(rng, count, 4)
    native = _native.FeatureMap(frequencies)
    table = rng.integers(-(10**6), 10**6, (301, 2))
    angle = 2 * np.pi * (queries.astype(np.float64) @ frequencies.astype(np.float64).T)
    for rows in (150, 301):
        products = (np.cos(angle) * table[:, 0] + np.sin(angle) * table[:, 1])[:, :rows]
        mean, variance = native.spread(queries, table[:rows].copy(), block, 1.0, 2)
        expected = oracle.row_spread(products, block)
        np.testing.assert_allclose(mean, expected[0], atol=40)
        np.testing.assert_allclose(variance, expected[1], rtol=2e-3)


def test_a_single_block_has_no_spread() -> None:
    native = _native.FeatureMap(np.ones((4, 1), np.float32))
    assert np.isnan(native.spread(np.ones((1, 1), np.float32), np.ones((4, 2), np.int64), 4, 1.0, 1)[1]).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dim": 65}, "dim must be from 1 to 64"),
        ({"dim": 0}, "dim must be at least 1"),
        ({"signs": np.ones((2, 3, 48), np.int8)}, "signs must have the axes"),
        ({"signs": np.zeros((2, 3, 64), np.int8)}, "signs must be"),
        ({"scales": np.ones(64, np.float32)}, "scales must fill"),
        ({"scales": np.ones(129, np.float32)}, "scales must fill"),
    ],
)
def test_misuse_is_refused(change: dict[str, object], sentence: str) -> None:
    given = {"signs": np.ones((2, 3, 64), np.int8), "scales": np.ones(100, np.float32), "dim": 5, **change}
    with pytest.raises(ValueError, match=sentence):
        _native.StructuredFeatureMap(given["signs"], given["scales"], given["dim"])  # type: ignore[arg-type]


PROGRAM = """
import hashlib
import numpy as np
import hushsum as hs
from hushsum import _native

digest = hashlib.sha256()
rng = np.random.default_rng(0)
for kernel in (hs.GaussianKernel(54, 3.0), hs.MaternKernel(70, 3.0), hs.GaussianKernel(3, 1.0)):
    records = rng.random((47, kernel.dim), dtype=np.float32)
    tally = hs.fourier_features(kernel, features=1024, groups=2, structured=True, seed=3)
    digest.update(tally.add(records, threads=2)._table.tobytes())
print(_native.clone(), digest.hexdigest())
"""


def test_clones_agree() -> None:
    # Every processor has the first clone.
    assert {digest_of(clone, PROGRAM) for clone in CLONES} == {digest_of("baseline", PROGRAM)}
