"""Distributions of Fourier features over arbitrary records: sums, merges and removals agree bit for bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import hushsum as hs
from hushsum.privacy import Relation
from hushsum.tally import Tally
from tests.exact_tallies import exact_table

finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
points = st.integers(1, 30).flatmap(lambda n: arrays(np.float32, (n, 2), elements=finite))
KERNEL = hs.GaussianKernel(dim=2, bandwidth=1.0)


def tally(*parts: NDArray[np.float32], threads: int = 1) -> Tally:
    counted = hs.fourier_features(KERNEL, features=35, seed=3)
    for part in parts:
        counted.add(part, threads=threads)
    return counted


def table(counted: Tally) -> NDArray[np.int64]:
    held: NDArray[np.int64] = exact_table(counted)
    return held


@given(a=points, b=points)
def test_the_sum_of_tallies_is_the_tally_of_the_union(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    union = table(tally(np.concatenate([a, b]), threads=2))
    np.testing.assert_array_equal(table(tally(a).merge(tally(b))), union)
    np.testing.assert_array_equal(table(tally(b).merge(tally(a))), union)
    np.testing.assert_array_equal(table(tally(np.concatenate([b, a])[::-1])), union)


@given(a=points, b=points)
def test_what_is_removed_was_never_there(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    np.testing.assert_array_equal(table(tally(a, b).remove(a)), table(tally(b)))


@given(a=points)
def test_no_record_moves_further_than_declared(a: NDArray[np.float32]) -> None:
    declared = tally(a).basis.sensitivity(Relation.ADD_REMOVE)
    for record in a:
        move = table(tally(record[None]))
        assert np.square(move).sum(axis=1).max() <= declared.largest**2
        assert np.square(move).sum() <= declared.l2_squared
        assert np.abs(move).sum() <= declared.l1
