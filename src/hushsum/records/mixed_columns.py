"""Columns of any kind, with missing values, out of whatever container holds them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused
from hushsum.records import arrow
from hushsum.records.columns_by_name import DAYS, choose_columns, refuse_empty, refuse_width

_PLAIN: Final = "biuf"


def mixed_columns(data: object, *, count: int, names: Sequence[str] | None = None) -> list[Any]:
    """The columns of a table as Arrow columns of text, numbers or booleans, missing values as nulls.

    A NaN, None, ``pandas.NA`` or null is a missing value. Dictionaries (categories) are decoded, so the codes
    that a container happens to use have no effect.

    Parameters
    ----------
    data : array, frame, Arrow data or nested lists, of shape (n, count)
    count : int
        The number of columns.
    names : sequence of str, optional
        Which columns of a named table, in this order; data without names are taken by position.

    Raises
    ------
    DataRefused
        No records, another number of columns, or a column of mixed kinds, dates, lists or objects.
    UsageError
        A requested column is missing.

    >>> [column.to_pylist() for column in mixed_columns([["a", 1.5], [None, 2.5]], count=2)]
    [['a', None], [1.5, 2.5]]
    """
    found, columns = choose_mixed(data, count=count, names=names)
    read = [
        _arrow_column(column, f"column {i}" if found is None else f"column {found[i]!r}")
        for i, column in enumerate(columns)
    ]
    if not len(read[0]):
        refuse_empty()
    return read


def choose_mixed(
    data: object, *, count: int, names: Sequence[str] | None = None
) -> tuple[list[str] | None, list[Any]]:
    """The chosen columns as their container holds them, and their names if it has any; looks at no value."""
    found, columns = _named(data)
    if names is not None and found is not None:
        columns = [columns[i] for i in choose_columns(found, names)]
        found = list(names)
    if len(columns) != count:
        refuse_width(count, len(columns))
    return found, columns


def column_names_of(data: object) -> list[str] | None:
    """The names of a table's columns; None for arrays and lists, and where they are not all text."""
    if arrow.from_package(data, "pandas") and getattr(data, "ndim", 0) == 2:
        names = list(data.columns)  # type: ignore[attr-defined]
    elif arrow.from_package(data, "polars") or arrow.from_package(data, "pyarrow"):
        listed = getattr(data, "column_names", getattr(data, "columns", None))
        if listed is None and hasattr(data, "schema"):
            listed = data.schema.names
        names = list(listed) if listed is not None else []
    else:
        names = []
    return names if names and all(isinstance(name, str) for name in names) else None


def numbers_with_missing(chunks: Any, where: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A column of numbers or booleans as float64 and where it is missing; a missing number is NaN.

    Raises
    ------
    DataRefused
        The column is of text, or has an infinity.
    """
    pa = arrow.pyarrow()
    if pa.types.is_null(chunks.type):
        return np.full(len(chunks), np.nan), np.ones(len(chunks), bool)
    if not arrow.is_number(chunks.type):
        raise DataRefused(
            rule=f"{where} is declared as numbers", got="text", remedy="declare its categories, or convert it"
        )
    missing = np.asarray(chunks.is_null(), bool)
    plain = chunks.cast(pa.int8()) if pa.types.is_boolean(chunks.type) else chunks
    values = np.asarray(plain.to_numpy(), np.float64)
    missing = missing | np.isnan(values)
    if np.isinf(values).any():
        raise DataRefused(
            rule=f"{where} must be finite", got="infinity", remedy="replace it with a public constant"
        )
    return values, missing


def _named(data: object) -> tuple[list[str] | None, list[Any]]:
    """Names, if the container has any, and its columns as they are."""
    data = arrow.in_memory(data)
    if arrow.from_package(data, "scipy.sparse"):
        raise DataRefused(rule="data must be dense", got="a sparse matrix", remedy="pass data.toarray()")
    if arrow.from_package(data, "pandas"):
        frame: Any = data if getattr(data, "ndim", 0) == 2 else data.to_frame()  # type: ignore[attr-defined]
        return column_names_of(frame), [frame.iloc[:, i] for i in range(frame.shape[1])]
    if arrow.has_arrow_interface(data):
        return arrow.as_columns(data)
    if isinstance(data, np.ma.MaskedArray):
        raise DataRefused(rule="data must not be a masked array", remedy="give a table with nulls instead")
    if isinstance(data, np.ndarray):
        table = data
    elif isinstance(data, list | tuple):
        table = _rectangle(data)
    elif hasattr(data, "__array__"):
        table = np.asarray(data)
    else:
        raise DataRefused(
            rule="data must be an array, a frame, Arrow data or a list of records", got=type(data).__name__
        )
    if table.ndim != 2:
        raise DataRefused(
            rule="data must have the two dimensions (records, columns)",
            got=table.ndim,
            remedy="reshape your data with data.reshape(-1, 1) for one column",
        )
    return None, [table[:, i] for i in range(table.shape[1])]


def _rectangle(rows: Sequence[Any]) -> NDArray[Any]:
    """Nested lists as they are: NumPy would turn the numbers beside a text into text."""
    if not rows or not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        raise DataRefused(
            rule="data must be a list of records", got="something else", remedy="give every record as a list"
        )
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise DataRefused(
            rule="every record must have as many values as the first", remedy="fill what is missing with None"
        )
    table = np.empty((len(rows), width), object)
    for i, row in enumerate(rows):
        table[i, :] = list(row)
    return table


def _arrow_column(column: Any, where: str) -> Any:
    pa = arrow.pyarrow()
    if isinstance(column, np.ndarray) and column.dtype.kind not in _PLAIN + "OUT":
        _refuse_kind(where, dates=column.dtype.kind == "M")
    try:
        converted = (
            column if isinstance(column, pa.ChunkedArray) else pa.array(_plain(column), from_pandas=True)
        )
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        converted = None
    # Refused out here: the engine's own message, which shows a value, must not stand above ours.
    if converted is None:
        raise DataRefused(
            rule=f"{where} must be of one kind (text, numbers or booleans) besides missing values",
            got="a mixture",
            remedy="convert the column to one of them",
        )
    chunks = converted if isinstance(converted, pa.ChunkedArray) else pa.chunked_array([converted])
    chunks = arrow.storage_of(chunks)
    if pa.types.is_dictionary(chunks.type):
        chunks = _decoded(chunks)
    if _is_text(chunks.type):
        return chunks.cast(pa.large_string())
    if not (arrow.is_number(chunks.type) or pa.types.is_null(chunks.type)):
        _refuse_kind(where, dates=arrow.in_words(chunks.type) == "dates")
    return chunks


def _decoded(chunks: Any) -> Any:
    """Categories as their values; text first becomes a kind that every version of Arrow can take from."""
    pa = arrow.pyarrow()
    kind = pa.large_string() if _is_text(chunks.type.value_type) else chunks.type.value_type
    plain = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks.chunks]
    return pa.chunked_array(plain, type=kind)


def _is_text(kind: Any) -> bool:
    types = arrow.pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _plain(column: Any) -> Any:
    """A NumPy column in a form whose text and objects Arrow reads one by one."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in _PLAIN:
        return [value.item() if isinstance(value, np.generic) else value for value in column.tolist()]
    return column


def _refuse_kind(where: str, *, dates: bool) -> NoReturn:
    raise DataRefused(
        rule=f"{where} must be of text, numbers or booleans",
        got="dates" if dates else "another kind",
        remedy=DAYS if dates else "convert it, or leave it out",
    )
