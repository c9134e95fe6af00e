"""What a record becomes depends on that record alone, whatever holds it and however batches are cut."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hushsum.records import Bounds, Sets, UnitCap, as_codes, as_dense, as_sets

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
sparse = pytest.importorskip("scipy.sparse")

DIM = 3
NAMES = ["a", "b", "c"]
FLOAT32_MAX = float(np.finfo(np.float32).max)

rows = st.one_of(
    hnp.arrays(np.float64, (5, DIM), elements=st.floats(-FLOAT32_MAX, FLOAT32_MAX)),
    hnp.arrays(np.float32, (5, DIM), elements=st.floats(-FLOAT32_MAX, FLOAT32_MAX, width=32)),
    hnp.arrays(np.int64, (5, DIM)),
    hnp.arrays(np.uint64, (5, DIM)),
    hnp.arrays(np.bool_, (5, DIM)),
)
boxes = st.none() | st.lists(
    st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)), min_size=DIM, max_size=DIM
).map(lambda sides: Bounds.of([(low, low + width) for low, width in sides], DIM))

FRAMES: list[Callable[[Any], object]] = [
    lambda x: np.asfortranarray(x),
    lambda x: x.tolist(),
    lambda x: pd.DataFrame(x, columns=NAMES),
    lambda x: pl.DataFrame(dict(zip(NAMES, x.T.copy(), strict=True))),
    lambda x: pa.table({name: x[:, i].copy() for i, name in enumerate(NAMES)}),
    lambda x: pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), DIM),
]


def oracle(x: Any, box: Bounds | None) -> Any:
    """One number at a time."""
    out = np.empty(x.shape, dtype=np.float32)
    for i, j in np.ndindex(*x.shape):
        value = float(x[i, j])
        if box is not None:
            value = min(max(value, box.low[j]), box.high[j]) - float(box.centre[j])
        out[i, j] = np.float32(value)
    return out


@settings(max_examples=60)
@given(x=rows, box=boxes)
def test_every_container_agrees_with_the_oracle(x: Any, box: Bounds | None) -> None:
    expected = oracle(x, box)
    np.testing.assert_array_equal(as_dense(x, dim=DIM, bounds=box), expected)
    for frame in FRAMES:
        np.testing.assert_array_equal(as_dense(frame(x), dim=DIM, bounds=box), expected)


@settings(max_examples=60)
@given(x=rows, box=boxes, cut=st.integers(1, 4), which=st.integers(0, len(FRAMES) - 1))
def test_a_batch_may_be_cut_anywhere(x: Any, box: Bounds | None, cut: int, which: int) -> None:
    frame = FRAMES[which]
    whole = as_dense(frame(x), dim=DIM, bounds=box)
    parts = [as_dense(frame(part), dim=DIM, bounds=box) for part in (x[:cut], x[cut:])]
    assert whole.tobytes() == np.concatenate(parts).tobytes()


@settings(max_examples=60)
@given(x=hnp.arrays(np.int32, (5, DIM)))
def test_codes_are_themselves(x: Any) -> None:
    np.testing.assert_array_equal(as_codes(x, dim=DIM), x)
    for frame in FRAMES:
        np.testing.assert_array_equal(as_codes(frame(x), dim=DIM), x)
    np.testing.assert_array_equal(as_codes(x.astype(np.float64), dim=DIM), x)


records = st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6), min_size=1, max_size=8)


def unpack(sets: Sets) -> list[list[int]]:
    return [sets.values[i:j].tolist() for i, j in zip(sets.indptr[:-1], sets.indptr[1:], strict=True)]


@settings(max_examples=60)
@given(lists=records)
def test_sets_come_back_from_every_container(lists: list[list[int]]) -> None:
    kind = pa.list_(pa.int64())
    for data in (
        lists,
        pd.Series(lists, dtype=object),
        pa.array(lists, kind),
        pa.array(lists, pa.large_list(pa.int64())),
        pl.Series(lists, dtype=pl.List(pl.Int64)),
        pa.table({"s": pa.array(lists, kind)}),
        [np.array(record, dtype=np.int64) for record in lists],
    ):
        assert unpack(as_sets(data)) == lists


@settings(max_examples=60)
@given(table=hnp.arrays(np.int8, (4, 9), elements=st.integers(-1, 1)))
def test_sparse_rows_are_their_non_zeros(table: Any) -> None:
    expected = [np.flatnonzero(row).tolist() for row in table]
    for kind in ("csr", "csc", "coo", "lil"):
        assert [
            sorted(record) for record in unpack(as_sets(sparse.coo_array(table).asformat(kind)))
        ] == expected


ids = st.lists(st.integers(0, 5) | st.sampled_from(["0", "1", "x"]), max_size=40)


@settings(max_examples=100)
@given(units=ids, cuts=st.lists(st.integers(0, 40), max_size=4), limit=st.integers(1, 4))
def test_caps_do_not_see_batches_and_keep_the_first_records(
    units: list[Any], cuts: list[int], limit: int
) -> None:
    cap = UnitCap(limit)
    kept: list[bool] = []
    edges = [0, *sorted(min(cut, len(units)) for cut in cuts), len(units)]
    for start, stop in pairwise(edges):
        mask, pending = cap.plan(units[start:stop])
        cap.commit(pending)
        kept += mask.tolist()
    names = [str(unit) for unit in units]
    assert kept == [names[:i].count(name) < limit for i, name in enumerate(names)]
    assert cap.state()[1].sum() == sum(kept)


@settings(max_examples=100)
@given(units=ids, person=st.sampled_from([0, 3, "0", "x"]), limit=st.integers(1, 3))
def test_one_person_less_changes_nobody_else(units: list[Any], person: Any, limit: int) -> None:
    others = [unit for unit in units if unit != person]
    whole, _ = UnitCap(limit).plan(units)
    without, _ = UnitCap(limit).plan(others)
    assert [kept for kept, unit in zip(whole, units, strict=True) if unit != person] == without.tolist()


@settings(max_examples=60)
@given(first=ids, second=ids, limits=st.tuples(st.integers(1, 3), st.integers(1, 3)))
def test_merging_commutes_and_survives_a_file(
    first: list[Any], second: list[Any], limits: tuple[int, int]
) -> None:
    def cap(units: list[Any], limit: int) -> UnitCap:
        made = UnitCap(limit)
        made.commit(made.plan(units)[1])
        return UnitCap.from_state(made.limit, *made.state())

    ab, ba = cap(first, limits[0]), cap(second, limits[1])
    ab.merge(cap(second, limits[1]))
    ba.merge(cap(first, limits[0]))
    assert ab.limit == ba.limit == sum(limits)
    for one, other in zip(ab.state(), ba.state(), strict=True):
        np.testing.assert_array_equal(one, other)
