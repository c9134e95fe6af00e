"""Hash functions must never change: what a seed means is fixed here, digit by digit."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import cauchy, qmc

import hushsum as hs
from hushsum.kernels import Kernel, multiply_shift, normals, row_words, sobol_points, uniforms
from hushsum.kernels._public_randomness import _directions, cauchy_quantiles
from hushsum.tables import HashRows
from tests.oracles.hashing import Words, fold, scatter

POINTS = np.arange(60).reshape(20, 3) * 0.37 - 3
CODES = (np.arange(60).reshape(20, 3) * 7) % 5
SETS = [[i, i * i, 3 * i + 1] for i in range(19)] + [[]]


def test_words_are_shake_128_of_the_documented_label() -> None:
    words = row_words("golden", 7, 3, 4)
    stream = hashlib.shake_128(b"hushsum/1/golden/7/0").digest(8 * 3 * 4)
    assert words.ravel().tolist() == [int.from_bytes(stream[i : i + 8], "little") for i in range(0, 96, 8)]
    later = hashlib.shake_128(b"hushsum/1/golden/7/1").digest(32)
    assert row_words("golden", 7, 65, 4)[64].astype("<u8").tobytes() == later
    assert [hex(int(word)) for word in words[0]] == [
        "0x601c4bac90d28dc4",
        "0xe256320c9e44b622",
        "0x38ff414f775a2f69",
        "0x5cb354dc5e666ff7",
    ]


def test_normal_numbers_are_the_same_for_ever() -> None:
    numbers = normals(row_words("golden", 7, 1000, 100))
    assert numbers[0, :4].tolist() == [
        -0.3175009572478376,
        1.195877102209302,
        -0.76329116818257,
        -0.35282083534750197,
    ]
    digest = hashlib.sha256(numbers.astype("<f8").tobytes()).hexdigest()
    assert digest == "2be2be76bfb0b1680f1452dccfc44dfa1914e6d28a27f69bba533b0e81f1e51d"


KERNELS: list[tuple[Kernel, object, str, str]] = [
    (hs.EuclideanKernel(3, 1.5), POINTS, "a79c5101be15f618", "c48bee7a54f6e793"),
    (
        hs.EuclideanKernel(3, 1.5, power=2, projection="structured"),
        POINTS,
        "b2e4b1091dd96416",
        "07490125d40b4b20",
    ),
    (hs.ManhattanKernel(3, 1.5), POINTS, "f23bdf03f3cb3d17", "d1d231b8f33801c3"),
    (hs.AngularKernel(3, bits=40), POINTS, "dc72d27b2b198149", "e593b8ec6a258bbc"),
    (hs.AngularKernel(3, bits=4), POINTS, "26c6e335ba44d742", "385b46eea43170d1"),
    (hs.AngularKernel(3, bits=3, projection="structured"), POINTS, "a5969d43b26fe561", "03970d4da8fa661c"),
    (hs.HammingKernel(3), CODES, "ff799e84a2e40a6d", "42f4723455d6121f"),
    (hs.HammingKernel(3, power=2), CODES, "93f6e8800ea58dd6", "1eb564d5fe74a48e"),
    (hs.JaccardKernel(), SETS, "816c604f1ce563c2", "f75419ae05eb5a26"),
    (hs.JaccardKernel(power=2), SETS, "2a54939e5ef5dece", "b0b90a60e1d5f256"),
]


@pytest.mark.parametrize(
    ("kernel", "records", "cells", "fingerprint"),
    KERNELS,
    ids=lambda value: repr(value)[:40] if isinstance(value, Kernel) else "",
)
def test_hash_functions_and_fingerprints_are_the_same_for_ever(
    kernel: Kernel, records: object, cells: str, fingerprint: str
) -> None:
    basis = HashRows(kernel, 64, 1000, 11)
    found = basis.cells(basis.prepare(records)).astype("<i4").tobytes()
    assert hashlib.sha256(found).hexdigest()[:16] == cells
    assert basis.fingerprint[:16] == fingerprint


def test_scattered_values_in_progression_share_cells_like_strangers() -> None:
    """Over rows, the share of m values in progression in the cell of one of them has the variance 1/(W·m).

    That of 30,000 shares is within 10 % of its mean with probability 1 − 1e-9; without scattering it is four
    times that.
    """
    m, width, rows = 300, 250, 30_000
    multipliers, addends = (
        numbers.astype(np.uint64) for numbers in multiply_shift("progression", 1, rows, 1)
    )
    words = np.arange(-m // 2, m // 2).astype(np.int32).view(np.uint32)

    def variance(keys: Words) -> float:
        cells = fold(keys[:, None, None], multipliers, addends, width)
        return float((cells == cells[m // 3]).mean(axis=0).var()) * width * m

    assert variance(scatter(words)) == pytest.approx(1.0, rel=0.1)
    assert variance(words) > 2.0


@pytest.mark.parametrize("rows", [1, 4, 63, 64, 65, 129])
def test_rows_do_not_depend_on_their_number(rows: int) -> None:
    np.testing.assert_array_equal(row_words("x", 3, rows, 6), row_words("x", 3, 200, 6)[:rows])


@pytest.mark.parametrize(("purpose", "seed"), [("y", 3), ("x", 4), ("x/3", 3), ("x", -3), ("x", 1 << 80)])
def test_streams_of_other_purposes_and_seeds_differ(purpose: str, seed: int) -> None:
    assert not np.intersect1d(row_words("x", 3, 50, 20), row_words(purpose, seed, 50, 20)).size


def test_uniforms_are_midpoints_strictly_inside() -> None:
    words = np.array([0, 4095, 4096, 2**64 - 1], np.uint64)
    np.testing.assert_array_equal(uniforms(words), [2.0**-53, 2.0**-53, 3 * 2.0**-53, 1 - 2.0**-53])


def test_normals_agree_with_scipy_over_all_branches() -> None:
    smooth = row_words("normals", 1, 100, 200).ravel()
    steep = np.uint64(1) << np.arange(64, dtype=np.uint64)
    edges = np.concatenate([smooth, steep, ~steep, np.array([0, 2**64 - 1], np.uint64)])
    found, expected = normals(edges), ndtri(uniforms(edges))
    assert np.abs(found).max() > 8.0, "the far tail was not reached"
    np.testing.assert_allclose(found, expected, rtol=4e-15, atol=4e-16)


def test_cauchy_quantiles_agree_with_scipy() -> None:
    p = np.concatenate([uniforms(row_words("cauchy", 1, 100, 20)).ravel(), [2.0**-33, 0.25, 0.5, 0.75]])
    np.testing.assert_allclose(cauchy_quantiles(p), cauchy.ppf(p), rtol=1e-9, atol=1e-15)
    assert cauchy_quantiles(np.array([0.5])) == 0.0


def test_sobol_points_are_the_same_for_ever() -> None:
    points = sobol_points("golden", 7, 1000, 32)
    digest = hashlib.sha256(points.astype("<f8").tobytes()).hexdigest()
    assert digest == "0d495d1e4f0fab119fbfebf54f6eb0b2dd08e432d4e45786e426f4999feee1a1"
    np.testing.assert_array_equal(sobol_points("golden", 7, 77, 5), points[:77, :5])
    np.testing.assert_array_equal(sobol_points("golden", 7, 50, 32, first=192), points[192:242])
    assert not np.intersect1d(points, sobol_points("golden", 8, 1000, 32)).size


def test_sobol_points_are_scrambled_direction_numbers_of_joe_and_kuo() -> None:
    """Every coordinate of 2^k consecutive points has one in each of 2^k intervals, and every pair of the
    first two coordinates one in each box of 2^-k area. Without scrambling they are scipy's.
    """
    expected: Any = qmc.Sobol(32, scramble=False, bits=32)
    np.testing.assert_array_equal(_directions(32), expected._sv)
    points = sobol_points("nets", 1, 4096, 32)[2048:]
    for column in points.T:
        assert len(set((column * 2048).astype(int))) == 2048
    for power in range(12):
        boxes = (points[:, 0] * 2**power).astype(int) * 2 ** (11 - power)
        assert len(set(boxes + (points[:, 1] * 2 ** (11 - power)).astype(int))) == 2048


def test_normals_are_odd() -> None:
    words = row_words("odd", 1, 10, 100)
    np.testing.assert_array_equal(normals(~words), -normals(words))


def test_rehash_numbers_are_distinct_words_of_one_stream() -> None:
    multipliers, addends = multiply_shift("euclidean", 5, 20, 3)
    words = row_words("euclidean/rehash", 5, 20, 4)
    np.testing.assert_array_equal(np.column_stack([multipliers, addends]), words)
    assert multipliers.flags.c_contiguous
    assert addends.flags.c_contiguous
