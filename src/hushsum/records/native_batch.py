"""Records in the form that the native loops take: checked float32 rows, and batches of rows or of sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused
from hushsum.records.bounds import Bounds
from hushsum.records.columns_by_name import Numbers, numbers_of, refuse_empty, refuse_length, refuse_width

_FLOAT32: Final = np.dtype(np.float32)
_ROWS_AT_A_TIME: Final = 1 << 14


def as_dense(
    data: object,
    *,
    dim: int,
    bounds: Bounds | None = None,
    columns: Sequence[str] | None = None,
    clip: bool = True,
) -> NDArray[np.float32]:
    """Turn records of numbers into a C-contiguous float32 array of shape (n, dim).

    Every number goes through float64 to float32, elementwise, so a record has the same bits whatever
    container, dtype and batch it came in. A C-contiguous float32 array without bounds is returned as it is,
    without a copy.

    Parameters
    ----------
    data : array-like, frame or Arrow data of shape (n, dim)
        NumPy arrays, pandas and Polars frames and series, Arrow tables, batches and columns, nested lists,
        and whatever offers ``__arrow_c_stream__`` or ``__array__``. One-dimensional data are n records if
        ``dim`` is 1, and one record of length ``dim`` otherwise. A single column of lists of ``dim`` numbers
        (embeddings) is n records.
    dim : int
        The number of columns.
    bounds : Bounds, optional
        Clips to the box and makes the records relative to its centre.
    columns : sequence of str, optional
        Which columns of a named table, in this order.
    clip : bool, default=True
        False keeps queries, which are public, where they are: relative to the centre of ``bounds``, but not
        clipped.

    Raises
    ------
    DataRefused
        NaN, infinity, nulls, values beyond float32, another width, no records, or columns that are not of
        numbers.
    UsageError
        A requested column is missing.

    >>> as_dense([[1, 2], [3, 4]], dim=2)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if type(data) is np.ndarray and bounds is None and data.dtype is _FLOAT32:
        rows = data
        if data.ndim == 1:
            if dim not in (1, len(data)):
                refuse_length(dim)
            rows = data.reshape(1, -1) if dim > 1 else data.reshape(-1, 1)
        if rows.ndim == 2 and rows.flags.c_contiguous:
            if rows.shape[1] != dim:
                refuse_width(dim, rows.shape[1])
            if not rows.size:
                refuse_empty()
            if not _all_finite(rows):
                _refuse_not_finite(Numbers(rows))
            return rows
    parts = numbers_of(data, dim=dim, columns=columns)
    if bounds is not None:
        return _relative(parts, dim, bounds, clip=clip)
    if len(parts) == 1:
        return _cast(parts[0])
    out = np.empty((len(parts[0].values), dim), dtype=np.float32)
    for part in parts:
        out[:, part.start] = _cast(part)[:, 0]
    return out


def _cast(part: Numbers) -> NDArray[np.float32]:
    values = part.values
    with np.errstate(over="ignore", under="ignore"):
        if values.dtype.itemsize > 4:
            # From a wide integer a direct cast rounds once, through float64 twice: one rule for all
            # containers.
            values = values.astype(np.float64, copy=False)
        rows = values.astype(np.float32, order="C", copy=False)
    if not _all_finite(rows):
        _refuse_not_finite(part)
    return rows


def _relative(parts: list[Numbers], dim: int, bounds: Bounds, *, clip: bool) -> NDArray[np.float32]:
    for part in parts:
        if part.values.dtype.kind == "f" and not _all_finite(part.values):
            _refuse_not_finite(part)
    if len(parts) == 1:
        values = parts[0].values
    else:
        values = np.empty((len(parts[0].values), dim), dtype=np.float64)
        for part in parts:
            values[:, part.start] = part.values[:, 0]
    if clip:
        return bounds.clip_and_centre(values)
    rows = bounds.centre_only(values)
    if not _all_finite(rows):
        _refuse_range("a query")
    return rows


def _all_finite(values: NDArray[Any]) -> bool:
    """Whether a matrix of floats has neither NaN nor infinity."""
    # A sum of squares is finite only if every term is: one pass, no temporary. It may overflow for finite
    # values (silently: vdot looks at no floating-point flag), and then the exact test decides.
    if values.flags.c_contiguous and math.isfinite(np.vdot(values, values)):
        return True
    return all(
        bool(np.isfinite(values[start : start + _ROWS_AT_A_TIME]).all())
        for start in range(0, len(values), _ROWS_AT_A_TIME)
    )


def _refuse_not_finite(part: Numbers) -> NoReturn:
    """Raise for the first column at fault, with what it has."""
    for column in range(part.values.shape[1]):
        values = part.values[:, column]
        where = part.where(column)
        if np.isnan(values).any():
            raise DataRefused(
                rule=f"{where} must be finite",
                got="NaN",
                remedy="fill it with a public constant or drop those records",
            )
        if np.isinf(values).any():
            raise DataRefused(
                rule=f"{where} must be finite",
                got="infinity",
                remedy="replace it with a public constant or drop those records",
            )
        with np.errstate(over="ignore", under="ignore"):
            if not np.isfinite(values.astype(np.float32)).all():
                _refuse_range(where)
    raise AssertionError("a column at fault was announced, and there is none")


def _refuse_range(where: str) -> NoReturn:
    raise DataRefused(
        rule=f"{where} must be within float32's range",
        got="a value beyond it",
        remedy="rescale the column or declare bounds",
    )


Metric = Literal["euclidean", "sqeuclidean", "cityblock"]


# Not frozen: one is made for every query, and a frozen one takes three times as long.
@dataclass(slots=True, eq=False)
class Batch:
    """Checked records in the form the native loops take: one array of rows, or the two arrays of a list of
    sets.

    Records whose columns are of several kinds have the arrays of each kind one after the other; ``layout``
    is how many arrays each has.
    """

    arrays: tuple[NDArray[Any], ...]
    length: int
    layout: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return self.length

    def parts(self) -> list[Batch]:
        """The records by kind of columns: of one kind, unless there is a layout."""
        if self.layout is None:
            return [self]
        found, start = [], 0
        for number in self.layout:
            found.append(Batch(self.arrays[start : start + number], self.length))
            start += number
        return found

    @classmethod
    def joined(cls, parts: Sequence[Batch]) -> Batch:
        """Records whose columns are these parts, of one length."""
        arrays = tuple(array for part in parts for array in part.arrays)
        return cls(arrays, len(parts[0]), tuple(len(part.arrays) for part in parts))

    def select(self, keep: NDArray[np.bool_]) -> Batch:
        """Only the records where ``keep`` is true."""
        if self.layout is not None:
            return Batch.joined([part.select(keep) for part in self.parts()])
        kept = int(np.count_nonzero(keep))
        if len(self.arrays) == 1:
            return Batch((np.ascontiguousarray(self.arrays[0][keep]),), kept)
        values, starts = self.arrays
        sizes = np.diff(starts)
        ends = np.concatenate(([0], np.cumsum(sizes[keep], dtype=np.int64)))
        return Batch((values[np.repeat(keep, sizes)], ends), kept)


def dense_batch(
    data: object, dim: int, bounds: Bounds | None, *, clip: bool, columns: Sequence[str] | None
) -> Batch:
    """Checked single-precision rows; with bounds centred on their box, and clipped to it unless they are
    queries.
    """
    rows = as_dense(data, dim=dim, bounds=bounds, clip=clip, columns=columns)
    return Batch((rows,), len(rows))


def distances(records: Batch, queries: Batch, metric: Metric = "euclidean") -> Floats:
    """Distances between rows in double precision, shape (records, queries); ``metric`` is SciPy's name."""
    from scipy.spatial.distance import cdist

    return cdist(records.arrays[0].astype(np.float64), queries.arrays[0].astype(np.float64), metric)


def part_of(batch: Batch, start: int, stop: int) -> Batch:
    """The records from ``start`` to before ``stop``."""
    stop = min(stop, len(batch))
    if batch.layout is not None:
        return Batch.joined([part_of(part, start, stop) for part in batch.parts()])
    if len(batch.arrays) == 1:
        return Batch((batch.arrays[0][start:stop],), stop - start)
    values, starts = batch.arrays
    first, last = int(starts[start]), int(starts[stop])
    return Batch((values[first:last], starts[start : stop + 1] - first), stop - start)
