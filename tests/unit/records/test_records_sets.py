from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hushsum.errors import DataRefused, UsageError
from hushsum.records import Sets, as_sets

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
sparse = pytest.importorskip("scipy.sparse")

RECORDS = [[3, 5], [], [7], [0, 1, 2]]


def unpack(sets: Sets) -> list[list[int]]:
    return [
        sorted(set(sets.values[i:j].tolist())) for i, j in zip(sets.indptr[:-1], sets.indptr[1:], strict=True)
    ]


def ragged() -> Any:
    array = np.empty(len(RECORDS), dtype=object)
    array[:] = [np.array(record, dtype=np.int64) for record in RECORDS]
    return array


def flags() -> Any:
    table = np.zeros((4, 8), dtype=np.int8)
    for i, record in enumerate(RECORDS):
        table[i, record] = 1
    return table


CONTAINERS: dict[str, Callable[[], object]] = {
    "lists": lambda: RECORDS,
    "sets": lambda: [set(record) for record in RECORDS],
    "tuples": lambda: tuple(tuple(record) for record in RECORDS),
    "generators": lambda: [iter(record) for record in RECORDS],
    "arrays": lambda: [np.array(record, dtype=np.uint16) for record in RECORDS],
    "NumPy scalars": lambda: [[np.int8(member) for member in record] for record in RECORDS],
    "ragged": ragged,
    "duplicates": lambda: [record + record for record in RECORDS],
    "arrow": lambda: pa.array(RECORDS, pa.list_(pa.int32())),
    "large arrow": lambda: pa.array(RECORDS, pa.large_list(pa.uint64())),
    "sliced": lambda: pa.array([[9, 9], *RECORDS, [8]])[1:5],
    "chunked": lambda: pa.chunked_array([RECORDS[:1], RECORDS[1:]]),
    "table": lambda: pa.table({"members": RECORDS}),
    "pandas": lambda: pd.Series(RECORDS),
    "pandas frame": lambda: pd.DataFrame({"members": RECORDS}),
    "pandas arrow": lambda: pd.Series(RECORDS, dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "polars": lambda: pl.Series(RECORDS),
    "polars frame": lambda: pl.DataFrame({"members": RECORDS}),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container(container: str) -> None:
    sets = as_sets(CONTAINERS[container]())
    assert len(sets) == 4
    assert sets.values.dtype == sets.indptr.dtype == np.int64
    assert unpack(sets) == RECORDS


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "dok", "lil"])
@pytest.mark.parametrize("dtype", [bool, np.int8, np.float64])
def test_every_sparse_format(kind: str, dtype: type) -> None:
    assert unpack(as_sets(sparse.coo_array(flags().astype(dtype)).asformat(kind))) == RECORDS
    assert unpack(as_sets(sparse.coo_matrix(flags().astype(dtype)).asformat(kind))) == RECORDS


def test_zeros_that_are_stored_are_no_members() -> None:
    stored = sparse.csr_array(([1.0, 0.0, 0.0, -2.5], [0, 1, 2, 3], [0, 2, 3, 4]), shape=(3, 4))
    assert unpack(as_sets(stored)) == [[0], [], [3]]
    assert stored.nnz == 4


def test_entries_given_twice_add_up_and_the_input_stays() -> None:
    twice = sparse.csr_array(([1, -1, 2, 3], [1, 1, 0, 0], [0, 4]), shape=(1, 2))
    assert unpack(as_sets(twice)) == [[0]]
    assert len(twice.data) == 4


def test_members_reach_over_all_of_int64() -> None:
    members = [-(2**63), -1, 0, 2**63 - 1]
    assert unpack(as_sets([members])) == [members]


def test_only_empty_sets() -> None:
    assert unpack(as_sets([[], set()])) == [[], []]
    assert unpack(as_sets(pa.array([[], []]))) == [[], []]
    assert unpack(as_sets(sparse.csr_array((2, 5)))) == [[], []]


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "floats": (lambda: [[1, 98765.4321]], "set of integers"),
    "integral floats": (lambda: [[98765.0]], "set of integers"),
    "flags": (lambda: [[True, False]], "set of integers"),
    "text": (lambda: ["98765"], "set of integers"),
    "words": (lambda: [["98765"]], "set of integers"),
    "none inside": (lambda: [[1, None]], "set of integers"),
    "none": (lambda: [[98765], None], "set of integers"),
    "numbers": (lambda: [98765, 2], "set of integers"),
    "float arrays": (lambda: [np.array([98765.4321])], "set of integers"),
    "matrix": (lambda: [np.array([[98765]])], "set of integers"),
    "beyond": (lambda: [[98765 * 10**30]], "fit int64"),
    "unsigned beyond": (lambda: [np.array([2**63 + 98765], dtype=np.uint64)], "fit int64"),
    "unsigned beyond in arrow": (lambda: pa.array([[2**63]], pa.list_(pa.uint64())), "fit int64"),
    "unsigned scalar beyond": (lambda: [[np.uint64(2**63)]], "fit int64"),
    "null list": (lambda: pa.array([[98765], None]), "missing"),
    "null member": (lambda: pa.array([[98765, None]]), "missing"),
    "null in polars": (lambda: pl.Series([[98765], None]), "missing"),
    "nan in pandas": (lambda: pd.Series([[98765], np.nan]), "set of integers"),
    "numbers in arrow": (lambda: pa.array([98765]), "set of integers"),
    "floats in arrow": (lambda: pa.array([[98765.4321]]), "set of integers"),
    "numbers in pandas": (lambda: pd.Series([98765]), "set of integers"),
    "categories": (lambda: pd.Series(["98765"], dtype="category"), "set of integers"),
    "dense": (flags, "scipy.sparse.csr_array"),
    "flat": (lambda: np.array([98765]), "dense array"),
    "two columns": (lambda: pa.table({"a": [[1]], "b": [[2]]}), "got 2 columns"),
    "two columns in pandas": (
        lambda: pd.DataFrame({"a": [[1]], "b": [[2]]}),
        "a list of sets, got 2 columns",
    ),
    "no records": (list, "at least one record"),
    "no rows": (lambda: sparse.csr_array((0, 5)), "at least one record"),
    "no lists": (lambda: pa.array([], pa.list_(pa.int64())), "at least one record"),
    "sparse vector": (lambda: sparse.coo_array(np.array([98765, 0])), "two dimensions, got 1"),
    "sparse nan": (lambda: sparse.csr_array(np.array([[np.nan, 98765.4321]])), "NaN"),
    "sparse complex": (lambda: sparse.csr_array(np.array([[1j]])), "numbers or flags"),
    "string": (lambda: "98765", "must be a sparse matrix"),
    "iterator": (lambda: iter([[98765]]), "must be a sparse matrix"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_rule_and_no_value(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(DataRefused, match=message) as caught:
        as_sets(make())
    assert "98765" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "indptr"), [([1], [0]), ([1], [1]), ([1, 2], [0, 2, 1, 2]), ([], []), ([[1]], [0, 1])]
)
def test_arrays_that_are_no_sets(values: list[int], indptr: list[int]) -> None:
    with pytest.raises(UsageError):
        Sets(np.array(values, dtype=np.int64), np.array(indptr, dtype=np.int64))


def test_the_repr_shows_no_member() -> None:
    assert repr(as_sets([[98765]])) == "Sets(…)"
