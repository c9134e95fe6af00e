"""Distributions of tallies over arbitrary records: sums, merges and removals agree bit for bit."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import hushsum as hs
from hushsum.kernels import Kernel
from hushsum.tally import Tally
from tests.exact_tallies import exact_count, exact_table

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
points = st.integers(1, 12).flatmap(lambda n: arrays(np.float32, (n, 2), elements=finite))
codes = st.integers(1, 12).flatmap(
    lambda n: arrays(np.int32, (n, 3), elements=st.integers(-(2**31), 2**31 - 1))
)
sets = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6), min_size=1, max_size=12)

EUCLIDEAN = hs.EuclideanKernel(dim=2, bandwidth=1.0)


def tally(*parts: object, kernel: Kernel = EUCLIDEAN) -> Tally:
    counted = hs.race(kernel, rows=9, width=7, seed=3)
    for part in parts:
        counted.add(part, threads=1)
    return counted


def table(counted: Tally) -> NDArray[np.int64]:
    held: NDArray[np.int64] = exact_table(counted)
    return held


def assert_same(left: Tally, right: Tally) -> None:
    np.testing.assert_array_equal(table(left), table(right))
    assert exact_count(left) == exact_count(right)


@given(a=points, b=points)
def test_the_sum_of_tallies_is_the_tally_of_the_union(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    union = tally(np.concatenate([a, b]))
    assert_same(tally(a).merge(tally(b)), union)
    assert_same(tally(b, a), union)
    assert_same(tally(np.concatenate([b, a])[::-1]), union)


@given(a=sets, b=sets)
def test_so_it_is_for_sets(a: list[list[int]], b: list[list[int]]) -> None:
    kernel = hs.JaccardKernel(power=2)
    assert_same(tally(a, kernel=kernel).merge(tally(b, kernel=kernel)), tally(b + a, kernel=kernel))


@given(a=codes, b=codes)
def test_so_it_is_for_codes(a: NDArray[np.int32], b: NDArray[np.int32]) -> None:
    kernel = hs.HammingKernel(dim=3)
    both = np.concatenate([a, b])
    assert_same(tally(a, kernel=kernel).merge(tally(b, kernel=kernel)), tally(both, kernel=kernel))


@given(a=points, b=points, c=points)
def test_merging_is_associative_and_commutative_with_the_empty_tally_as_identity(
    a: NDArray[np.float32], b: NDArray[np.float32], c: NDArray[np.float32]
) -> None:
    left = tally(a).merge(tally(b)).merge(tally(c))
    assert_same(left, tally(a).merge(tally(b).merge(tally(c))))
    assert_same(left, tally(c).merge(tally(a)).merge(tally(b)))
    assert_same(left, tally().merge(tally(a, b, c)))
    assert_same(left, tally(a, b, c).merge(tally()))


@given(a=points, b=points)
def test_adding_then_removing_is_nothing(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    assert_same(tally(a, b).remove(b), tally(a))
    assert_same(tally(a).remove(a), tally())


@given(
    names=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=30),
    limit=st.integers(1, 4),
    cut=st.integers(0, 30),
)
def test_caps_keep_the_first_records_of_each_person_however_they_are_split(
    names: list[str], limit: int, cut: int
) -> None:
    rows = np.arange(2.0 * len(names)).reshape(-1, 2)
    capped = hs.race(EUCLIDEAN, rows=9, width=7, seed=3, max_per_unit=limit)
    for part in (slice(0, cut), slice(cut, None)):
        if names[part]:
            capped.add(rows[part], units=names[part])
    kept = [i for i, name in enumerate(names) if names[:i].count(name) < limit]
    assert_same(capped, tally(rows[kept]))


@settings(max_examples=25)
@given(a=points, key=st.none() | st.binary(min_size=32, max_size=32))
def test_a_file_brings_a_tally_back(a: NDArray[np.float32], key: bytes | None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tally"
        tally(a).save(path, encryption_key=key)
        assert_same(hs.load_tally(path, encryption_key=key), tally(a))
