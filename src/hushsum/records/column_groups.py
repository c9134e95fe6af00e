"""Records whose columns are of several kinds, as one container for each group of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hushsum.errors import DataRefused
from hushsum.records import arrow
from hushsum.records.columns_by_name import (
    choose_columns,
    refuse_empty,
    refuse_length,
    refuse_path,
    refuse_width,
)

_NUMBERS = "biuf"


def column_groups(
    data: object, groups: Sequence[Sequence[int]], *, dim: int, columns: Sequence[str] | None = None
) -> list[object]:
    """The columns of each group, in a form that the readers of numbers, codes and sets take.

    Parameters
    ----------
    data : array, frame, Arrow data or list of records, ``dim`` columns
        A column of sets has a list of integers in each record. Arrays of numbers have no such column.
    groups : sequence of sequences of int
        Positions of columns.
    dim : int
        The number of columns.
    columns : sequence of str, optional
        Which columns of a named table, in this order; data without names are taken by position.

    Raises
    ------
    DataRefused
        Another number of columns, or no records.
    UsageError
        A requested column is missing.

    >>> column_groups([[1.5, 2, [7, 9]], [0.5, 3, []]], [(0, 1), (2,)], dim=3)
    [[[1.5, 2], [0.5, 3]], [[7, 9], []]]
    """
    refuse_path(data)
    data = arrow.in_memory(data)
    if arrow.from_package(data, "scipy.sparse"):
        raise DataRefused(rule="data must be dense", got="a sparse matrix", remedy="pass data.toarray()")
    if arrow.from_package(data, "pandas") and getattr(data, "ndim", 0) == 2:
        frame: Any = data
        places = _places([str(name) for name in frame.columns], dim, columns)
        return [frame.iloc[:, [places[i] for i in group]] for group in groups]
    if arrow.has_arrow_interface(data):
        names, found = arrow.as_columns(data)
        places = _places(names or ["data"], dim, columns)
        return [
            arrow.pyarrow().table([found[places[i]] for i in group], names=[str(i) for i in group])
            for group in groups
        ]
    rows = _rectangle(data, dim)
    if isinstance(rows, np.ndarray):
        return [rows[:, list(group)] for group in groups]
    return [
        [row[group[0]] for row in rows] if len(group) == 1 else [[row[i] for i in group] for row in rows]
        for group in groups
    ]


def _places(names: Sequence[str], dim: int, columns: Sequence[str] | None) -> list[int]:
    places = list(range(len(names))) if columns is None else choose_columns(names, columns)
    if len(places) != dim:
        refuse_width(dim, len(places))
    return places


def _rectangle(data: object, dim: int) -> np.ndarray[Any, np.dtype[Any]] | list[Sequence[Any]]:
    """Numbers as an array of two dimensions; anything else as a list of records."""
    try:
        table: Any = np.asarray(data)
    except Exception:
        # Lists of different lengths, in columns of sets: NumPy may quote values.
        table = None
    if table is not None and table.dtype.kind in _NUMBERS and table.ndim in (1, 2):
        if table.ndim == 1:
            if dim not in (1, len(table)):
                refuse_length(dim)
            table = table.reshape(-1, 1) if dim == 1 else table.reshape(1, -1)
        if table.shape[1] != dim:
            refuse_width(dim, table.shape[1])
        if not len(table):
            refuse_empty()
        rows: np.ndarray[Any, np.dtype[Any]] = table
        return rows
    if isinstance(data, np.ndarray):
        data = data.tolist()
    if not isinstance(data, list | tuple):
        raise DataRefused(
            rule="data must be an array, a frame, Arrow data or a list of records", got=type(data).__name__
        )
    if not data:
        refuse_empty()
    if not all(isinstance(row, list | tuple | np.ndarray) for row in data):
        raise DataRefused(
            rule="data must be a list of records", got="something else", remedy="give every record as a list"
        )
    if any(len(row) != dim for row in data):
        raise DataRefused(
            rule=f"every record must have {dim} values",
            got="another number",
            remedy="give one value for each column",
        )
    return list(data)
