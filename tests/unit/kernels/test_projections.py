"""Projections against explicit matrices, in integers where floats could hide a mistake."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import hadamard

import hushsum as hs
from hushsum.kernels import multiply_shift, normals, padded, row_words, structured_block, uniforms
from hushsum.tables import HashRows
from tests.oracles.hashing import scatter

Integers = NDArray[np.int64]


def signs_of(family: str, seed: int, blocks: int, size: int) -> Integers:
    """Bit k of round t of a block says whether coordinate k is flipped; a round starts on a whole word."""
    words = row_words(f"{family}/signs", seed, blocks, 3 * -(-size // 64)).reshape(blocks, 3, -1)
    k = np.arange(size)
    bits = (words[:, :, k // 64] >> (k % 64).astype(np.uint64)) & np.uint64(1)
    return 1 - 2 * bits.astype(np.int64)


def structured(records: Integers, family: str, seed: int, rows: int, count: int) -> Integers:
    """H S3 H S2 H S1 x with an explicit H, shape (records, rows, count)."""
    size = padded(records.shape[1])
    block = structured_block(records.shape[1], count)
    matrix = hadamard(size).astype(np.int64)
    x = np.pad(records, ((0, 0), (0, size - records.shape[1])))
    parts = []
    for s1, s2, s3 in signs_of(family, seed, -(-rows // block), size):
        y = ((((x * s1) @ matrix * s2) @ matrix) * s3) @ matrix
        parts.append(y[:, : block * count].reshape(len(x), block, count))
    return np.concatenate(parts, axis=1)[:, :rows]


@pytest.mark.parametrize(("dim", "bits"), [(5, 3), (8, 1), (100, 4), (200, 5)])
def test_structured_signs_are_those_of_hadamard_matrices(dim: int, bits: int) -> None:
    kernel = hs.AngularKernel(dim=dim, bits=bits, projection="structured")
    basis = HashRows(kernel, 300, 1000, 17)
    records = np.random.default_rng(dim).integers(-8, 9, (40, dim))
    z = structured(records, "angular", 17, 300, bits)
    expected = ((z >= 0) << np.arange(bits)).sum(axis=2)
    np.testing.assert_array_equal(basis.cells(basis.prepare(records.astype(np.float32))), expected)


def test_structured_floors_are_those_of_hadamard_matrices() -> None:
    dim, power, rows, width = 12, 2, 40, 1000
    kernel = hs.EuclideanKernel(dim=dim, bandwidth=1 / 32, power=power, projection="structured")
    basis = HashRows(kernel, rows, width, 23)
    records = np.random.default_rng(1).integers(-4, 5, (50, dim))
    # Scale 32/128 and integers: z is a multiple of 1/4, and its sum with a 24-bit offset has an exact floor
    # unless the offset is within a rounding of one, which none of these is.
    offsets = uniforms(row_words("euclidean/offsets", 23, rows, power)).astype(np.float32)
    z = structured(records, "euclidean", 23, rows, power) / 4.0 + offsets.astype(np.float64)
    floors = np.floor(z).astype(np.int64)
    multipliers, addends = multiply_shift("euclidean", 23, rows, power)
    words = scatter((floors & 0xFFFFFFFF).astype(np.uint32)).astype(np.uint64)
    hashes = (words * multipliers).sum(axis=2, dtype=np.uint64) + addends
    expected = ((hashes >> np.uint64(32)) * np.uint64(width)) >> np.uint64(32)
    np.testing.assert_array_equal(basis.cells(basis.prepare(records)), expected.astype(np.int64))


def test_structured_projections_have_the_length_of_normal_ones() -> None:
    """Over all coordinates of a block the squares add to D·‖x‖²: orthogonal rounds keep the length."""
    x = np.random.default_rng(2).integers(-9, 10, (5, 64))
    y = structured(x, "euclidean", 3, 128, 1)[:, :, 0] / 128.0
    np.testing.assert_allclose((y**2).mean(axis=1), (x**2).sum(axis=1))


def test_dense_weights_are_normal_numbers_over_the_bandwidth() -> None:
    kernel = hs.EuclideanKernel(dim=1, bandwidth=2.0)
    basis = HashRows(kernel, 500, 1 << 20, 4)
    a = normals(row_words("euclidean/directions", 4, 500, 1))[:, 0]
    b = uniforms(row_words("euclidean/offsets", 4, 500, 1))[:, 0]
    multipliers, addends = multiply_shift("euclidean", 4, 500, 1)
    z = (a / 2.0).astype(np.float32) * np.float64(3.0) + b.astype(np.float32)
    words = scatter((np.floor(z).astype(np.int64) & 0xFFFFFFFF).astype(np.uint32))
    hashes = (words.astype(np.uint64) * multipliers[:, 0]) + addends
    expected = ((hashes >> np.uint64(32)) * np.uint64(1 << 20)) >> np.uint64(32)
    np.testing.assert_array_equal(basis.cells(basis.prepare([[3.0]]))[0], expected.astype(np.int64))


def test_manhattan_weights_are_ratios_of_normal_numbers() -> None:
    kernel = hs.ManhattanKernel(dim=1, bandwidth=1.0)
    basis = HashRows(kernel, 500, 1 << 20, 4)
    pairs = normals(row_words("manhattan/directions", 4, 500, 2))
    a = (pairs[:, 0] / pairs[:, 1]).astype(np.float32)
    b = uniforms(row_words("manhattan/offsets", 4, 500, 1))[:, 0].astype(np.float32)
    multipliers, addends = multiply_shift("manhattan", 4, 500, 1)
    floors = np.floor(a.astype(np.float64) * 2.0 + b).astype(np.int64)
    hashes = scatter((floors & 0xFFFFFFFF).astype(np.uint32)).astype(np.uint64) * multipliers[:, 0] + addends
    expected = ((hashes >> np.uint64(32)) * np.uint64(1 << 20)) >> np.uint64(32)
    np.testing.assert_array_equal(basis.cells(basis.prepare([[2.0]]))[0], expected.astype(np.int64))


@pytest.mark.parametrize(
    ("dim", "count", "size", "block"),
    [
        (1, 1, 128, 128),
        (2, 3, 128, 42),
        (128, 1, 128, 128),
        (129, 2, 256, 128),
        (768, 1, 1024, 128),
        (768, 9, 1024, 113),
    ],
)
def test_blocks(dim: int, count: int, size: int, block: int) -> None:
    assert padded(dim) == size
    assert structured_block(dim, count) == block


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 33])
def test_few_columns_are_padded_until_structured_projections_are_close_to_normal(dim: int) -> None:
    """A unit vector along a column, the hardest case; 500 blocks, 7 standard errors (3e-12) and 1 % of bias.

    Without padding the collision rate of one or two columns is wrong by 0.37, that of eight by 0.09.
    """
    kernel = hs.EuclideanKernel(dim=dim, bandwidth=1.0, projection="structured")
    basis = HashRows(kernel, 500 * 128, 1 << 16, 3)
    points = np.zeros((3, dim))
    points[1, 0], points[2, -1] = 1.0, 3.0
    cells = basis.cells(basis.prepare(points))
    similarity = kernel.similarity(points, points)
    for other in (1, 2):
        means = (cells[0] == cells[other]).reshape(500, 128).mean(axis=1)
        reach = 7 * means.std(ddof=1) / np.sqrt(500) + 0.01
        assert abs(means.mean() - similarity[0, other]) <= reach


def test_weights_that_leave_single_precision_are_cut() -> None:
    kernel = hs.ManhattanKernel(dim=1, bandwidth=1e-30)
    basis = HashRows(kernel, 20_000, 16, 4)
    assert basis.cells(basis.prepare([[0.0], [1.0]])).shape == (2, 20_000)
