"""Records that are sets of integers: neighbours, shingles, items, the non-zeros of a sparse row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, UsageError

from ._arrow import from_package, is_any_list, one_column, pyarrow, refuse_empty, refuse_nulls, storage_of

_INT64_MAX: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """A batch of sets, one after the other: record i is ``values[indptr[i]:indptr[i + 1]]``.

    Order and repetitions within a record mean nothing.

    Parameters
    ----------
    values : int64 array of shape (nnz,)
    indptr : int64 array of shape (n + 1,)
        Starts at 0, never falls, ends at nnz.

    Raises
    ------
    UsageError
        The two arrays do not describe a batch of sets.
    """

    values: NDArray[np.int64]
    indptr: NDArray[np.int64]

    def __post_init__(self) -> None:
        indptr = self.indptr
        fits = self.values.ndim == indptr.ndim == 1 and self.values.dtype == indptr.dtype == np.int64
        if not fits or not len(indptr) or indptr[0] != 0 or indptr[-1] != len(self.values):
            raise UsageError("sets must have int64 values and an int64 indptr from 0 to their number")
        if np.any(indptr[1:] < indptr[:-1]):
            raise UsageError("the indptr of sets must never fall")

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        return "Sets(…)"


def as_sets(data: object) -> Sets:
    """Turn records into sets of int64.

    Parameters
    ----------
    data : Sets, sparse matrix, column of lists, or sequence of iterables of int, n records
        The non-zero positions of each row of any ``scipy.sparse`` format; Arrow, pandas or Polars columns of
        lists (or a table with one such column); sequences or NumPy object arrays of iterables of integers.
        Empty sets are records.

    Raises
    ------
    DataRefused
        Entries that are not integers or do not fit int64, nulls, or no records. A dense table is refused,
        because its rows may be lists of members or flags of membership.

    >>> sets = as_sets([{3, 5}, [], [7]])
    >>> sets.values, sets.indptr
    (array([3, 5, 7]), array([0, 2, 2, 3]))
    """
    if isinstance(data, Sets):
        return data
    if from_package(data, "scipy.sparse"):
        sets = _from_sparse(data)
    elif isinstance(data, np.ndarray) and (data.dtype != object or data.ndim != 1):
        raise DataRefused(
            "data must be records of sets, got a dense array; pass scipy.sparse.csr_array(data) "
            "if it has flags of membership, data.tolist() if each row lists members"
        )
    else:
        found = one_column(data, "data must be a sparse matrix, a column of lists or a list of sets")
        if found is None or (isinstance(found, np.ndarray) and found.dtype != object):
            _refuse_members()
        listed = isinstance(found, np.ndarray | list | tuple)
        sets = _from_iterables(list(found)) if listed else _from_arrow(found)
    if not len(sets):
        refuse_empty()
    return sets


def _from_sparse(data: Any) -> Sets:
    if data.ndim != 2:
        raise DataRefused(
            f"a sparse matrix must have two dimensions, got {data.ndim}; "
            "pass data.reshape(1, -1) for one record"
        )
    rows = data.tocsr()
    if rows.dtype.kind not in "biuf":
        raise DataRefused(
            "a sparse matrix must be of numbers or flags, got another type; pass data.astype(bool)"
        )
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.dtype.kind == "f" and np.isnan(rows.data).any():
        raise DataRefused("a sparse matrix must not have NaN, which is neither zero nor not; replace it")
    values, indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    present = rows.data != 0
    if not present.all():
        before = np.concatenate([[0], np.cumsum(present, dtype=np.int64)])
        values, indptr = values[present], before[indptr]
    return Sets(values, indptr)


def _from_arrow(chunks: Any) -> Sets:
    chunks = storage_of(chunks)
    pa = pyarrow()
    if not is_any_list(chunks.type):
        _refuse_members()
    refuse_nulls(chunks, "data")
    members = pa.chunked_array([chunk.flatten() for chunk in chunks.chunks], type=chunks.type.value_type)
    refuse_nulls(members, "data")
    if not len(members) and pa.types.is_null(members.type):
        members = members.cast(pa.int64())
    if not pa.types.is_integer(members.type):
        _refuse_members()
    lengths = np.asarray(pyarrow("compute").list_value_length(chunks), dtype=np.int64)
    return Sets(_int64(members.to_numpy()), _indptr(lengths))


def _from_iterables(records: Sequence[Any]) -> Sets:
    if records and all(type(record) is np.ndarray and record.dtype.kind in "iu" for record in records):
        return _from_arrays(records)
    parts: list[Sequence[Any]] = []
    for record in records:
        if isinstance(record, np.ndarray):
            if record.ndim != 1 or (record.dtype.kind not in "iu" and record.size):
                _refuse_members()
            parts.append(_int64(record).tolist())
        elif isinstance(record, Iterable) and not isinstance(record, str | bytes):
            parts.append(record if isinstance(record, list | tuple) else list(record))
        else:
            _refuse_members()
    lengths = np.fromiter((len(part) for part in parts), dtype=np.int64, count=len(parts))
    members = list(chain.from_iterable(parts))
    kinds = set(map(type, members))
    if any(kind is bool or not issubclass(kind, int | np.integer) for kind in kinds):
        _refuse_members()
    if kinds - {int}:
        members = [int(member) for member in members]
    try:
        values = np.array(members, dtype=np.int64)
    except OverflowError:
        _refuse_range()
    return Sets(values, _indptr(lengths))


def _from_arrays(records: Sequence[NDArray[Any]]) -> Sets:
    if any(record.ndim != 1 for record in records):
        _refuse_members()
    lengths = np.array([len(record) for record in records], np.int64)
    return Sets(np.concatenate([_int64(record) for record in records]), _indptr(lengths))


def _indptr(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def _int64(values: NDArray[Any]) -> NDArray[np.int64]:
    if values.dtype == np.uint64 and values.size and values.max() > _INT64_MAX:
        _refuse_range()
    return values.astype(np.int64, copy=False)


def _refuse_members() -> NoReturn:
    raise DataRefused(
        "every record must be a set of integers, got something else; "
        "number the members with a public list of them, and give a record without members an empty set"
    )


def _refuse_range() -> NoReturn:
    raise DataRefused(
        "the members of a set must fit int64, got one beyond it; number the members with a public list"
    )
