"""PyArrow, imported when it is first needed, and what its columns are made of."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from hushsum.errors import Argument, DataRefused


def pyarrow(part: str = "") -> Any:
    """PyArrow, or one of its modules such as ``"csv"``; importing it costs more than all of Hushsum."""
    return import_module(f"pyarrow.{part}" if part else "pyarrow")


def from_package(data: object, package: str) -> bool:
    """Whether the class of ``data``, or one that it inherits, comes from a package; imports nothing."""
    prefix = package + "."
    return any(
        cls.__module__ == package or cls.__module__.startswith(prefix) for cls in type(data).__mro__[:-1]
    )


def has_arrow_interface(data: object) -> bool:
    """Whether data is Arrow's own, or offers itself through the Arrow C interface (Polars, DuckDB, ...)."""
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or from_package(data, "pyarrow")
    )


def in_memory(data: object) -> object:
    """Lazy and one-pass data, evaluated once; everything else as it is.

    A Polars lazy frame is collected. A DuckDB relation, an Arrow stream and whatever else offers
    ``__arrow_c_stream__`` or ``arrow()`` and is not a frame in memory becomes an Arrow table. Call this first
    if data are read more than once: a lazy query may give other rows the second time, and a stream none.

    Raises
    ------
    DataRefused
        The data cannot be evaluated.
    """
    if isinstance(data, np.ndarray | list | tuple) or from_package(data, "pandas"):
        return data
    try:
        if from_package(data, "polars"):
            return data.collect() if hasattr(data, "collect") else data
        if from_package(data, "pyarrow"):
            return data.read_all() if hasattr(data, "read_all") else data
        if hasattr(data, "__arrow_c_stream__"):
            return _table_of(data)
        if callable(getattr(data, "arrow", None)):
            return in_memory(data.arrow())  # type: ignore[attr-defined]
    except DataRefused:
        raise
    except Exception:
        # Messages of the engine below may quote values.
        raise DataRefused(
            rule="data must be readable",
            got=f"a {type(data).__name__} that could not be evaluated",
            remedy="evaluate it yourself and pass the table",
        ) from None
    return data


def is_frame(data: object) -> bool:
    """Whether data is a table with named columns: of pandas, Polars, PyArrow, DuckDB and the like."""
    if from_package(data, "pandas"):
        return hasattr(data, "columns")
    return has_arrow_interface(data) or (
        from_package(data, "polars") or callable(getattr(data, "arrow", None))
    )


def as_table(data: object) -> Any:
    """A frame as an Arrow table of its columns; an index is not a column, and is left out.

    Raises
    ------
    DataRefused
        The frame has a column of mixed types, or cannot be evaluated.
    """
    found: Any = in_memory(data)
    pa = pyarrow()
    try:
        if from_package(found, "pandas"):
            table = pa.Table.from_pandas(found, preserve_index=False)
        elif isinstance(found, pa.Table):
            table = found
        elif isinstance(found, pa.RecordBatch):
            table = pa.Table.from_batches([found])
        else:
            table = _table_of(found)
    except Exception:
        # Messages of the engine below may quote values.
        table = None
    if not isinstance(table, pa.Table):
        raise DataRefused(
            rule="data must be a frame whose columns have one type each",
            got=f"a {type(data).__name__} that is none",
            remedy="convert its columns to numbers or text",
        )
    return table.replace_schema_metadata(None)


def _table_of(data: object) -> Any:
    """What offers an Arrow stream, as a table if it has columns, else as one column."""
    pa = pyarrow()
    chunks = as_chunks(data)
    return pa.Table.from_struct_array(chunks) if pa.types.is_struct(chunks.type) else chunks


def as_chunks(data: object) -> Any:
    """An Arrow column or stream as one ChunkedArray, zero-copy; a stream of batches becomes structs.

    Raises
    ------
    DataRefused
        The data cannot be read through the Arrow interface.
    """
    pa = pyarrow()
    try:
        if isinstance(data, pa.ChunkedArray):
            return data
        if isinstance(data, pa.Array):
            return pa.chunked_array([data])
        if hasattr(data, "__arrow_c_stream__"):
            return pa.chunked_array(data)
        return pa.chunked_array([pa.array(data)])
    except Exception:
        # Messages of the engine below may quote values.
        raise DataRefused(
            rule="data must be readable as Arrow columns",
            got=type(data).__name__,
            remedy="pass numbers in a NumPy array or a table",
        ) from None


def as_columns(data: object) -> tuple[list[str] | None, list[Any]]:
    """Arrow data as its named columns, or as one column without a name."""
    pa = pyarrow()
    if isinstance(data, pa.Table):
        return list(data.column_names), list(data.columns)
    if isinstance(data, pa.RecordBatch):
        return list(data.schema.names), [pa.chunked_array([column]) for column in data.columns]
    chunks = as_chunks(data)
    if not pa.types.is_struct(chunks.type):
        return None, [chunks]
    refuse_nulls(chunks, "data")
    names = [chunks.type.field(i).name for i in range(chunks.type.num_fields)]
    columns = [
        pa.chunked_array([chunk.field(i) for chunk in chunks.chunks], type=chunks.type.field(i).type)
        for i in range(chunks.type.num_fields)
    ]
    return names, columns


def storage_of(chunks: Any) -> Any:
    """The plain column under an extension type, such as a tensor's fixed-size lists."""
    pa = pyarrow()
    while isinstance(chunks.type, pa.BaseExtensionType):
        plain = chunks.type.storage_type
        chunks = pa.chunked_array([chunk.storage for chunk in chunks.chunks], type=plain)
    return chunks


def refuse_nulls(chunks: Any, where: str) -> None:
    """Raise DataRefused if a ChunkedArray has nulls."""
    if chunks.null_count:
        raise DataRefused(
            rule=f"{where} must not have missing values",
            got="nulls",
            remedy=(
                "fill them with a public constant, or leave those records out (of files with ",
                Argument("drop_missing"),
                ")",
            ),
        )


def in_words(kind: Any) -> str:
    """What an Arrow type is called in messages."""
    types = pyarrow().types
    if is_text(kind):
        return "text"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "dates"
    return str(kind)


def is_any_list(kind: Any) -> bool:
    """Whether an Arrow type is a list of any layout with offsets or a fixed size."""
    types = pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text."""
    types = pyarrow().types
    # PyArrow's own name: it has no test for views before version 16.
    return bool(types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view")


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers that a record may be made of: integers, floats, booleans."""
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))
