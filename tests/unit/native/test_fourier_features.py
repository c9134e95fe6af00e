"""Native Fourier features against the oracle, bit for bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from hushsum import _native
from tests.oracles import features as oracle
from tests.oracles.hashing import uniform
from tests.unit.native.clones import CLONES, digest_of

Floats = npt.NDArray[np.float32]


def made(seed: int, rows: int, dim: int, count: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return uniform(rng, rows, dim), uniform(rng, count, dim)


@pytest.mark.parametrize("count", [*range(1, 27), 61])
def test_every_record_tail(count: int) -> None:
    frequencies, records = made(count, rows=37, dim=5, count=count)
    native = _native.FeatureMap(frequencies)
    expected = oracle.integers(frequencies, records)
    np.testing.assert_array_equal(native.integers(records), expected)
    table = np.full((37, 2), 5, np.int64)
    native.add(records, table, 1, 1)
    np.testing.assert_array_equal(table, 5 + expected.sum(axis=0))


@pytest.mark.parametrize("dim", [*range(1, 20), 54])
def test_every_dimension(dim: int) -> None:
    frequencies, records = made(dim, rows=40, dim=dim, count=15)
    np.testing.assert_array_equal(
        _native.FeatureMap(frequencies).integers(records), oracle.integers(frequencies, records)
    )


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 31, 32, 33, 64, 100, 129])
def test_every_row_tail_and_number_of_threads(rows: int) -> None:
    frequencies, records = made(rows, rows=rows, dim=3, count=2100)
    native = _native.FeatureMap(frequencies)
    expected = oracle.integers(frequencies, records).sum(axis=0)
    for threads in (1, 2, 5):
        table = np.zeros((rows, 2), np.int64)
        native.add(records, table, -1, threads)
        np.testing.assert_array_equal(table, -expected)


def test_long_batches_are_flushed_without_loss() -> None:
    # More records than one chunk holds, all of them at the largest value.
    native = _native.FeatureMap(np.ones((3, 1), np.float32))
    table = np.zeros((3, 2), np.int64)
    count = (1 << 21) + 5
    native.add(np.zeros((count, 1), np.float32), table, 1, 1)
    np.testing.assert_array_equal(table, [[1023 * count, 0]] * 3)


def test_huge_values_and_overflow_stay_within_the_length() -> None:
    largest = np.finfo(np.float32).max
    records = np.array(
        [[largest, largest], [largest, -largest], [1e30, -1e30], [2.0**22, 1], [2.0**23, 0.5], [1e-45, -0.0]],
        np.float32,
    )
    frequencies = np.array([[1, 1], [largest, largest], [0.3, 7e5], [-3, 1e-30]], np.float32)
    found = _native.FeatureMap(frequencies).integers(records)
    np.testing.assert_array_equal(found, oracle.integers(frequencies, records))
    assert (np.square(found.astype(np.int64)).sum(axis=-1) <= _native.WAVE_LENGTH**2).all()


def test_integers_are_near_the_wave_and_never_longer_than_declared() -> None:
    # Every multiple of 2^-20 of a turn, and the floats next to the ends, where polynomials are worst.
    near = np.float32(0.5) * (1 - np.arange(1000, dtype=np.float32) * np.float32(2.0**-23))
    turns = np.concatenate([np.arange(-(2**19), 2**19 + 1) / 2**20, near, -near, 2.0 ** np.arange(-149.0, 0)])
    native = _native.FeatureMap(np.ones((1, 1), np.float32))
    found = native.integers(turns.astype(np.float32)[:, None])[:, 0].astype(np.float64)
    angle = 2 * np.pi * turns.astype(np.float32).astype(np.float64)
    waves = _native.WAVE_AMPLITUDE * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert np.abs(found - waves).max() <= 0.51
    assert np.square(found).sum(axis=1).max() <= 1023.75**2 < _native.WAVE_LENGTH**2


@pytest.mark.parametrize("count", [1, 7, 12, 600])
def test_reading_is_the_sum_over_rows(count: int) -> None:
    frequencies, queries = made(3, rows=301, dim=4, count=count)
    native = _native.FeatureMap(frequencies)
    table = np.random.default_rng(1).integers(-(10**6), 10**6, (301, 2))
    angle = 2 * np.pi * (queries.astype(np.float64) @ frequencies.astype(np.float64).T)
    for rows in (1, 33, 301):
        expected = np.cos(angle[:, :rows]) @ table[:rows, 0] + np.sin(angle[:, :rows]) @ table[:rows, 1]
        for cells in (table[:rows].copy(), table[:rows].astype(np.int32)):
            for threads in (1, 3):
                answers = native.read(queries, cells, 0.5, threads)
                np.testing.assert_allclose(answers, 0.5 * expected, atol=40 * np.sqrt(rows))
    waves = native.waves(queries)
    np.testing.assert_allclose(waves[..., 0], np.cos(angle), atol=2e-5)
    np.testing.assert_allclose(waves[..., 1], np.sin(angle), atol=2e-5)


@pytest.mark.parametrize(("rows", "dim"), [(1, 1), (3, 3), (7, 3), (40, 17), (130, 60)])
def test_rows_become_orthogonal_in_blocks_and_keep_their_length(rows: int, dim: int) -> None:
    given = np.random.default_rng(dim).standard_normal((rows, dim))
    turned = given.copy()
    _native.orthogonalise(turned)
    np.testing.assert_allclose(turned, oracle.orthogonal(given), atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), np.linalg.norm(given, axis=1))
    for start in range(0, rows, dim):
        block = turned[start : start + dim]
        products = block @ block.T
        np.testing.assert_allclose(products - np.diag(np.diag(products)), 0, atol=1e-9)
    np.testing.assert_allclose(turned[0], given[0], rtol=1e-15)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda f: f.add(np.zeros((2, 3), np.float32), np.zeros((4, 2), np.int64), 1, 1), "records must be"),
        (lambda f: f.add(np.zeros((2, 2), np.float32), np.zeros((4, 3), np.int64), 1, 1), "table must be"),
        (lambda f: f.add(np.zeros((2, 2), np.float32), np.zeros((4, 2), np.int64), 2, 1), "step must be"),
        (lambda f: f.add(np.zeros((2, 2), np.float32), np.zeros((4, 2), np.int64), 1, 0), "threads must be"),
        (
            lambda f: f.read(np.zeros((2, 2), np.float32), np.zeros((5, 2), np.int64), 1.0, 1),
            "between 1 and 4",
        ),
        (lambda f: f.integers(np.zeros((2, 2), np.float64)), "records must be"),
        (lambda f: _native.FeatureMap(np.zeros((0, 2), np.float32)), "must be a matrix"),
    ],
)
def test_misuse_is_refused(call: object, sentence: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=sentence):
        call(_native.FeatureMap(np.ones((4, 2), np.float32)))


PROGRAM = """
import hashlib
import numpy as np
import hushsum as hs
from hushsum import _native
from tests.oracles.hashing import uniform

digest = hashlib.sha256()
rng = np.random.default_rng(0)
for rows, dim, count in [(100, 54, 47), (33, 3, 29), (1, 1, 1)]:
    native = _native.FeatureMap(uniform(rng, rows, dim))
    records = uniform(rng, count, dim) * 8
    records[0] *= 1e37
    table = np.zeros((rows, 2), np.int64)
    native.add(records, table, 1, 2)
    digest.update(native.integers(records).tobytes())
    digest.update(table.tobytes())
for kernel in (hs.GaussianKernel(7, 0.3), hs.GaussianKernel(70, 3.0, power=2), hs.LaplacianKernel(5, 2.0)):
    for sobol in (False, True)[: 1 + (kernel.dim < 32)]:
        tally = hs.fourier_features(kernel, features=200, seed=3, sobol=sobol)
        digest.update(tally.basis.frequencies.tobytes())
print(_native.clone(), digest.hexdigest())
"""

# What every machine, compiler and build must print: a change here breaks the tallies of earlier versions.
DIGEST = "82a29cab924f517816b80fb59a872989d0b3bc61bc09da1e935215641d8ae8c0"


@pytest.mark.parametrize("clone", CLONES)
def test_clones_agree(clone: str) -> None:
    assert digest_of(clone, PROGRAM) == DIGEST
