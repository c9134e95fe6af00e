"""Records from arrays, frames and Arrow data: columns of numbers by name and by position, and sets of
integers (neighbours, shingles, items, the non-zeros of a sparse row).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, DataRefused, HushsumError, UsageError

if TYPE_CHECKING:
    from ._bounds import Bounds

__all__ = [
    "DAYS", "ENCODE", "Batch", "Sets", "as_codes", "as_columns", "as_dense", "as_sets", "as_table",
    "choose_columns", "choose_mixed", "column_groups", "column_names_of", "columns_in_words", "columns_of",
    "dense_batch", "distances", "first_column", "from_package", "has_arrow_interface", "in_memory",
    "is_frame", "is_not_numeric", "mixed_columns", "numbers_of", "numbers_with_missing", "part_of", "pyarrow",
    "quietly", "refuse_path",
]  # fmt: skip


Result = TypeVar("Result")
Number = TypeVar("Number", np.float32, np.float64, np.int32)


def pyarrow(part: str = "") -> Any:
    """PyArrow, or one of its modules such as ``"csv"``; importing it costs more than all of Hushsum."""
    return import_module(f"pyarrow.{part}" if part else "pyarrow")


def from_package(data: object, package: str) -> bool:
    """Whether the class of ``data``, or one that it inherits, comes from a package; imports nothing."""
    prefix = package + "."
    return any(
        cls.__module__ == package or cls.__module__.startswith(prefix) for cls in type(data).__mro__[:-1]
    )


def quietly(
    call: Callable[[], Result],
    refused: Callable[[str], HushsumError],
    kinds: type[Exception] | tuple[type[Exception], ...] = Exception,
) -> Result:
    """The result of a call to a library, whose errors may quote records or credentials.

    ``refused`` makes a refusal of the name of the error's type. It is raised outside the handler, so that the
    library's own message is not its context.
    """
    try:
        return call()
    except kinds as error:
        failed = type(error).__name__
    raise refused(failed)


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
            chunks, pa = as_chunks(data), pyarrow()
            return pa.Table.from_struct_array(chunks) if pa.types.is_struct(chunks.type) else chunks
        if callable(getattr(data, "arrow", None)):
            return in_memory(data.arrow())  # type: ignore[attr-defined]
    except DataRefused:
        raise
    except Exception:
        # Messages of the engine below may quote values.
        raise DataRefused(
            "data must be readable",
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
    found, table = in_memory(data), pyarrow().Table
    # Messages of the engine below may quote values.
    with suppress(Exception):
        if from_package(found, "pandas"):
            return table.from_pandas(found, preserve_index=False).replace_schema_metadata(None)
        names, columns = as_columns(found)
        return table.from_arrays(columns, names=names)
    raise DataRefused(
        "data must be a frame whose columns have one type each",
        got=f"a {type(data).__name__} that is none",
        remedy="convert its columns to numbers or text",
    )


def as_chunks(data: object) -> Any:
    """An Arrow column or stream as one ChunkedArray, zero-copy; a stream of batches becomes structs.

    Raises
    ------
    DataRefused
        The data cannot be read through the Arrow interface.
    """
    pa = pyarrow()
    # Messages of the engine below may quote values.
    with suppress(Exception):
        if isinstance(data, pa.ChunkedArray):
            return data
        if hasattr(data, "__arrow_c_stream__"):
            return pa.chunked_array(data)
        return pa.chunked_array([data if isinstance(data, pa.Array) else pa.array(data)])
    rule, remedy = "data must be readable as Arrow columns", "pass numbers in a NumPy array or a table"
    raise DataRefused(rule, got=type(data).__name__, remedy=remedy)


def as_columns(data: object) -> tuple[list[str] | None, list[Any]]:
    """Arrow data as its named columns, or as one column without a name."""
    pa = pyarrow()
    table: Any = data
    if isinstance(data, pa.RecordBatch):
        table = pa.Table.from_batches([data])
    elif not isinstance(data, pa.Table):
        chunks = as_chunks(data)
        if not pa.types.is_struct(chunks.type):
            return None, [chunks]
        refuse_nulls(chunks, "data")
        table = pa.Table.from_struct_array(chunks)
    return list(table.column_names), list(table.columns)


def one_column(data: object, rule: str) -> Any:
    """The one column of data: an array of NumPy, a list, an Arrow column, or None if Arrow cannot read it.

    Raises
    ------
    DataRefused
        Several columns; data that are neither a list nor a column of any library. The message has the rule.
    """
    data = in_memory(data)
    if isinstance(data, np.ndarray | list | tuple):
        return data
    if from_package(data, "pandas"):
        frame: Any = data
        columns = [frame] if frame.ndim == 1 else [frame.iloc[:, i] for i in range(frame.shape[1])]
    elif has_arrow_interface(data):
        columns = as_columns(data)[1]
    elif isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return list(data)
    elif hasattr(data, "__array__"):
        return np.asarray(data)
    else:
        raise DataRefused(rule, got=type(data).__name__)
    if len(columns) != 1:
        raise DataRefused(rule, got=f"{len(columns)} columns", remedy="choose one of them")
    plain = isinstance(getattr(columns[0], "dtype", None), np.dtype)
    return columns[0].to_numpy() if plain else arrow_column(columns[0])


def arrow_column(column: Any) -> Any | None:
    """A column as a ChunkedArray, missing values of pandas as nulls; None where Arrow cannot read it.

    Its own message, which may quote a value, must not stand above ours: so the caller refuses the column.
    """
    pa = pyarrow()
    try:
        found = column if isinstance(column, pa.ChunkedArray) else pa.array(column, from_pandas=True)
    except Exception:
        return None
    return found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])


def storage_of(chunks: Any) -> Any:
    """The plain column under an extension type, such as a tensor's fixed-size lists."""
    pa = pyarrow()
    while isinstance(chunks.type, pa.BaseExtensionType):
        plain = chunks.type.storage_type
        chunks = pa.chunked_array([chunk.storage for chunk in chunks.chunks], type=plain)
    return chunks


def decoded(chunks: Any) -> Any:
    """Categories as their values; text first becomes a kind that every version of Arrow can take from."""
    pa = pyarrow()
    kind = pa.large_string() if is_text(chunks.type.value_type) else chunks.type.value_type
    plain = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in chunks.chunks]
    return pa.chunked_array(plain, type=kind)


def refuse_nulls(chunks: Any, where: str) -> None:
    """Raise DataRefused if a ChunkedArray has nulls."""
    if chunks.null_count:
        raise DataRefused(
            f"{where} must not have missing values",
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
    known = (
        ("text", is_text),
        ("dates", types.is_date),
        ("dates", types.is_timestamp),
        ("categories", types.is_dictionary),
        ("decimals", types.is_decimal),
    )
    return next((name for name, test in known if test(kind)), str(kind))


def is_any_list(kind: Any) -> bool:
    """Whether an Arrow type is a list of any layout with offsets or a fixed size."""
    types = pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text."""
    types = pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number_type(kind: Any) -> bool:
    """Whether an Arrow type holds numbers that a record may be made of: integers, floats, booleans."""
    types = pyarrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


_MOST_COLUMNS_SHOWN: Final = 64
# Letters that must be typed of a name before a message completes it.
_LEAST_OF_A_NAME: Final = 4

ENCODE: Final = (
    "encode it with a public list of categories (hushsum.models.PublicEncoder), or leave the column out"
)
DAYS: Final = (
    "convert them to numbers, such as days since a public date: "
    "(column - pandas.Timestamp('2024-01-01')) / pandas.Timedelta(days=1)"
)
"""What to do about dates in Python. Files have declared dates instead."""

_NUMBERS: Final = "biuf"
_KINDS: Final = {
    "U": "text",
    "S": "bytes",
    "T": "text",
    "M": "dates",
    "m": "durations",
    "O": "Python objects",
    "c": "complex numbers",
    "V": "structures",
}
# What to do about a column of another kind than numbers, where that is not to encode it.
_REMEDIES: Final = {"dates": DAYS, "decimals": "cast them to float64"}


@dataclass(frozen=True, slots=True)
class Numbers:
    """Neighbouring columns of a batch as they came: values of shape (n, width), boolean, integer or float.

    ``names`` has a name for each column, one name for a column of lists, or is empty; ``start`` is the
    position of the first column.
    """

    values: NDArray[Any]
    start: int = 0
    names: tuple[str, ...] = ()

    def where(self, column: int) -> str:
        """How a message calls one of the columns."""
        if not self.names:
            return f"column {self.start + column}"
        return f"column {self.names[min(column, len(self.names) - 1)]!r}"


def numbers_of(data: object, *, dim: int, columns: Sequence[str] | None = None) -> list[Numbers]:
    """Take the numbers out of a container, refusing what is not a table of dim columns of numbers.

    Parameters
    ----------
    data : array, frame, Arrow data or nested lists, of shape (n, dim)
        One-dimensional data are n records if ``dim`` is 1, and one record if ``dim`` is greater. A number is
        one record if ``dim`` is 1. A single column of lists of ``dim`` numbers (embeddings) is n records.
        Lazy data are evaluated: see `hushsum.records.in_memory`.
    dim : int
        The number of columns.
    columns : sequence of str, optional
        Which columns of a named table, in this order; without effect on data that have no names.

    Raises
    ------
    DataRefused
        No records, another width, nulls, or a column that is not of numbers.
    UsageError
        A requested column is missing.
    """
    refuse_path(data)
    if dim == 1 and isinstance(data, int | float | np.number):
        data = [data]
    data = in_memory(data)
    if isinstance(data, np.ndarray):
        parts = [Numbers(_matrix(data, dim))]
    elif from_package(data, "pandas"):
        parts = _from_pandas(data, dim, columns)
    elif has_arrow_interface(data):
        parts = _from_columns(*as_columns(data), dim, columns, _from_arrow)
    else:
        parts = [Numbers(_matrix(_array(data), dim))]
    if not len(parts[0].values):
        refuse_empty()
    return parts


def _joined(
    parts: Sequence[Numbers], dtype: type[Number], converted: Callable[[Numbers], NDArray[Any]]
) -> NDArray[Number]:
    """The columns side by side, each converted by itself."""
    if len(parts) == 1:
        return converted(parts[0])
    out = np.empty((len(parts[0].values), len(parts)), dtype=dtype)
    for part in parts:
        out[:, part.start] = converted(part)[:, 0]
    return out


def columns_of(data: object, dim: int, columns: Sequence[str] | None) -> Floats:
    """The columns of a table or frame as one array in double precision."""
    parts = numbers_of(data, dim=dim, columns=columns)
    return _joined(parts, np.float64, lambda part: part.values.astype(np.float64))


def refuse_path(data: object) -> None:
    """Refuse the name of a file where records are expected.

    Raises
    ------
    DataRefused
        A string or a path.
    """
    if isinstance(data, str | os.PathLike):
        raise DataRefused(
            "data must be records",
            got=f"a {type(data).__name__}",
            remedy=(
                "read the file first, such as with pandas.read_csv or "
                "pyarrow.parquet.read_table, or release it in one step with 'hushsum release'"
            ),
        )


def first_column(data: object, test: Callable[[NDArray[Any]], bool]) -> str | None:
    """How a message calls the first column that a test finds; None if there is none, or data are no table.

    The test may raise: then the column is not it. Whatever is raised is dropped, since it may quote values.
    """
    with suppress(Exception):
        names, columns = _named(data)
        for i, values in enumerate(columns):
            with suppress(Exception):
                if test(np.asarray(values)):
                    return _where(names, i)
    return None


def _where(names: Sequence[str] | None, place: int) -> str:
    """How a message calls a column."""
    return f"column {place}" if names is None else f"column {names[place]!r}"


def is_not_numeric(values: NDArray[Any]) -> bool:
    """Whether a column holds something that is not a number."""
    try:
        values.astype(np.float64)
    except (ValueError, TypeError):
        return True
    return False


def refuse_empty() -> NoReturn:
    """Raise the refusal of a batch without records."""
    raise DataRefused(
        "data must have at least one record", got="none", remedy="check that the source is not empty"
    )


def _array(data: object) -> NDArray[Any]:
    _refuse_other_containers(data)
    try:
        return np.asarray(data)
    except Exception:
        # NumPy and the objects that convert themselves may quote values.
        raise DataRefused(
            "data must be a rectangle of numbers",
            got=f"a {type(data).__name__} that is none",
            remedy="give every record the same number of numbers",
        ) from None


def _refuse_other_containers(data: object) -> None:
    """Refuse what is neither a list nor a dense array, and no frame."""
    if from_package(data, "scipy.sparse"):
        raise DataRefused(
            "data must be dense",
            got="a sparse matrix",
            remedy="use a kernel on sets, such as Jaccard, or pass data.toarray()",
        )
    if not isinstance(data, list | tuple) and not hasattr(data, "__array__"):
        rule = "data must be an array, a frame, Arrow data or a list of records"
        raise DataRefused(rule, got=type(data).__name__)


def _matrix(array: NDArray[Any], dim: int) -> NDArray[Any]:
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise DataRefused(
                "data must not have missing values",
                got="a masked array",
                remedy="fill the masked entries with a public constant",
            )
        array = array.data
    if array.dtype.kind not in _NUMBERS:
        raise _not_numbers(
            first_column(array, is_not_numeric) or "data", _KINDS.get(array.dtype.kind, "objects")
        )
    return _two_dimensional(array, dim)


def _two_dimensional(array: NDArray[Any], dim: int) -> NDArray[Any]:
    """Records of ``dim`` numbers; one dimension is many records of one number, or one record of many."""
    if array.ndim == 1:
        if dim not in (1, len(array)):
            raise DataRefused(
                f"data must have {columns_in_words(dim)}",
                # Not how many: that may be the number of records.
                got="one dimension of another length",
                remedy=f"pass data.reshape(-1, {dim})",
            )
        array = array.reshape(-1, 1) if dim == 1 else array.reshape(1, -1)
    elif array.ndim != 2:
        raise DataRefused(
            f"data must have the two dimensions (records, {dim})",
            got=array.ndim,
            remedy=f"pass data.reshape(-1, {dim})",
        )
    if array.shape[1] != dim:
        refuse_width(dim, array.shape[1])
    return array


def columns_in_words(number: int) -> str:
    """A number of columns.

    >>> columns_in_words(1), columns_in_words(2)
    ('1 column', '2 columns')
    """
    return f"{number} column" + ("" if number == 1 else "s")


def refuse_width(dim: int, got: int) -> NoReturn:
    """Raise the refusal of another number of columns than the kernel's.

    A table turned on its side has as many columns as there are records, so a large number is not reported.
    """
    shown = f"got {got}" if got <= _MOST_COLUMNS_SHOWN else "got many more"
    raise DataRefused(
        f"data must have {columns_in_words(dim)}, {shown}",
        remedy="choose the columns, or make a kernel with that dim",
    )


def choose_columns(available: Sequence[str], columns: Sequence[str], parameter: str = "columns") -> list[int]:
    """The positions of columns by name; raises UsageError naming the first that is missing or ambiguous."""
    if len(set(columns)) != len(columns):
        raise UsageError(parameter, "must name each column once")
    positions = []
    for name in columns:
        hits = [i for i, other in enumerate(available) if other == name]
        if not hits:
            raise UsageError(
                parameter,
                "must name columns of the data",
                got=f"{name!r}",
                remedy=_remedy(available, columns, name),
            )
        if len(hits) > 1:
            raise UsageError(
                parameter,
                "must be unique names in the data",
                got=f"{len(hits)} of the name {name!r}",
                remedy="rename one",
            )
        positions.append(hits[0])
    return positions


def _remedy(available: Sequence[str], columns: Sequence[str], missing: str) -> str:
    """What was probably meant; or the columns there are, unless some look like the first record of a file
    without a header.
    """
    names = [str(name) for name in available]
    for joined in (",".join(columns), ", ".join(columns)):
        # Shown because it was requested.
        if len(columns) > 1 and joined in names:
            return f"write a name that contains a comma in quotes: '\"{joined}\"'"
    alike = [name for name in names if _folded(name) == _folded(missing)]
    if len(missing) >= _LEAST_OF_A_NAME:
        alike += [name for name in names if _folded(missing) in _folded(name)]
    if alike:
        return f"did you mean {alike[0]!r}"
    if all(name.isidentifier() for name in names):
        return f"the columns are {', '.join(map(repr, names))}"
    return "check the first line of the file, or the names of the frame's columns"


def _folded(name: str) -> str:
    return "".join(name.casefold().split()).replace("_", "")


def _from_columns(
    names: Sequence[str] | None,
    found: Sequence[Any],
    dim: int,
    columns: Sequence[str] | None,
    read: Callable[[Any, str, int], NDArray[Any]],
) -> list[Numbers]:
    """Columns of a table; a lone column without a name follows the rule of one-dimensional data."""
    if names is not None and columns is not None:
        positions = choose_columns(names, columns)
        names, found = [names[i] for i in positions], [found[i] for i in positions]
    if len(found) == 1:
        values = read(found[0], "data" if names is None else _where(names, 0), dim)
        if values.ndim == 1 and names is not None:
            values = values.reshape(-1, 1)
        return [Numbers(_matrix(values, dim), 0, tuple(names or ()))]
    if len(found) != dim:
        refuse_width(dim, len(found))
    return [
        Numbers(read(column, _where([name], 0), 1).reshape(-1, 1), i, (name,))
        for i, (name, column) in enumerate(zip(names or (), found, strict=True))
    ]


def _from_arrow(chunks: Any, where: str, width: int) -> NDArray[Any]:
    """An Arrow column of numbers, shape (n,), or of lists of ``width`` numbers, shape (n, width)."""
    chunks = storage_of(chunks)
    refuse_nulls(chunks, where)
    if is_any_list(chunks.type):
        lengths = pyarrow("compute").list_value_length(chunks)
        if np.any(np.asarray(lengths) != width):
            raise DataRefused(
                f"{where} must have lists of {width} numbers",
                got="another length",
                remedy="cut the lists to one length, or use a kernel on sets",
            )
        inner = pyarrow().chunked_array(
            [chunk.flatten() for chunk in chunks.chunks], type=chunks.type.value_type
        )
        if is_any_list(inner.type):
            raise DataRefused(
                f"{where} must have lists of numbers", got="lists of lists", remedy="flatten them"
            )
        return _from_arrow(inner, where, width).reshape(-1, width)
    if not is_number_type(chunks.type):
        raise _not_numbers(where, in_words(chunks.type))
    values: NDArray[Any] = chunks.to_numpy()
    return values


def _not_numbers(where: str, kind: str) -> DataRefused:
    return DataRefused(f"{where} must be of numbers", got=kind, remedy=_REMEDIES.get(kind, ENCODE))


def _from_pandas(data: Any, dim: int, columns: Sequence[str] | None) -> list[Numbers]:
    if data.ndim == 1:
        return _from_columns(None, [data], dim, None, _pandas_column)
    if columns is not None:
        data = data.iloc[:, choose_columns(list(data.columns), columns)]
    names = tuple(str(name) for name in data.columns)
    kinds = set(data.dtypes)
    if len(kinds) == 1 and _is_plain_number(next(iter(kinds))):
        return [Numbers(_matrix(data.to_numpy(), dim), 0, names)]
    return _from_columns(names, [data.iloc[:, i] for i in range(data.shape[1])], dim, None, _pandas_column)


def _is_plain_number(dtype: object) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in _NUMBERS


def _pandas_column(series: Any, where: str, width: int) -> NDArray[Any]:
    if _is_plain_number(series.dtype):
        values: NDArray[Any] = series.to_numpy()
        return values
    if isinstance(series.dtype, np.dtype) and series.dtype.kind != "O":
        raise _not_numbers(where, _KINDS.get(series.dtype.kind, "objects"))
    chunks = arrow_column(series)
    if chunks is None:
        raise _not_numbers(where, "Python objects")
    # Objects that happen to be numbers now may be something else in the next batch; lists are how pandas
    # holds vectors.
    if series.dtype == np.dtype(object) and len(series) and not is_any_list(chunks.type):
        raise DataRefused(
            f"{where} must be of numbers", got="Python objects", remedy="convert the column with astype"
        )
    return _from_arrow(chunks, where, width)


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
    data = in_memory(data)
    if from_package(data, "pandas") and getattr(data, "ndim", 0) == 2:
        frame: Any = data
        places = _places([str(name) for name in frame.columns], dim, columns)
        return [frame.iloc[:, [places[i] for i in group]] for group in groups]
    if has_arrow_interface(data):
        names, found = as_columns(data)
        places = _places(names or ["data"], dim, columns)
        return [
            pyarrow().table([found[places[i]] for i in group], names=[str(i) for i in group])
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


def _rectangle(data: object, dim: int) -> NDArray[Any] | list[Sequence[Any]]:
    """Numbers as an array of two dimensions; anything else as a list of records."""
    _refuse_other_containers(data)
    try:
        table: Any = np.asarray(data)
    except Exception:
        # Lists of different lengths, in columns of sets: NumPy may quote values.
        table = None
    if table is not None and table.dtype.kind in _NUMBERS and table.ndim in (1, 2):
        rows = _two_dimensional(table, dim)
        if not len(rows):
            refuse_empty()
        return rows
    records = _records(data.tolist() if isinstance(data, np.ndarray) else data)
    if len(records[0]) != dim:
        refuse_width(dim, len(records[0]))
    return records


def _records(data: object) -> list[Sequence[Any]]:
    """Records as lists of one length."""
    if not isinstance(data, list | tuple) or not all(
        isinstance(row, list | tuple | np.ndarray) for row in data
    ):
        raise DataRefused(
            "data must be a list of records", got="something else", remedy="give every record as a list"
        )
    if not data:
        refuse_empty()
    if any(len(row) != len(data[0]) for row in data):
        raise DataRefused(
            "every record must have as many values as the first", remedy="fill what is missing with None"
        )
    return list(data)


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
    read = [_arrow_column(column, _where(found, i)) for i, column in enumerate(columns)]
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
    if from_package(data, "pandas") and getattr(data, "ndim", 0) == 2:
        names = list(data.columns)  # type: ignore[attr-defined]
    elif from_package(data, "polars") or from_package(data, "pyarrow"):
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
    pa = pyarrow()
    if pa.types.is_null(chunks.type):
        return np.full(len(chunks), np.nan), np.ones(len(chunks), bool)
    if not is_number_type(chunks.type):
        got = in_words(chunks.type)
        remedy = "declare a DateColumn" if got == "dates" else "declare its categories, or convert it"
        raise DataRefused(f"{where} is declared as numbers", got=got, remedy=remedy)
    missing = np.asarray(chunks.is_null(), bool)
    plain = chunks.cast(pa.int8()) if pa.types.is_boolean(chunks.type) else chunks
    values = np.asarray(plain.to_numpy(), np.float64)
    missing = missing | np.isnan(values)
    if np.isinf(values).any():
        raise DataRefused(
            f"{where} must be finite", got="infinity", remedy="replace it with a public constant"
        )
    return values, missing


def _named(data: object) -> tuple[list[str] | None, list[Any]]:
    """Names, if the container has any, and its columns as they are."""
    data = in_memory(data)
    if from_package(data, "pandas"):
        frame: Any = data if getattr(data, "ndim", 0) == 2 else data.to_frame()  # type: ignore[attr-defined]
        return column_names_of(frame), [frame.iloc[:, i] for i in range(frame.shape[1])]
    if has_arrow_interface(data):
        return as_columns(data)
    _refuse_other_containers(data)
    if isinstance(data, np.ma.MaskedArray):
        raise DataRefused("data must not be a masked array", remedy="give a table with nulls instead")
    if isinstance(data, list | tuple):
        # Columns as they are: NumPy would turn the numbers beside a text into text.
        rows = _records(data)
        table = np.empty((len(rows), len(rows[0])), object)
        for i, row in enumerate(rows):
            table[i, :] = list(row)
    else:
        table = np.asarray(data)
    if table.ndim != 2:
        raise DataRefused(
            "data must have the two dimensions (records, columns)",
            got=table.ndim,
            remedy="reshape your data with data.reshape(-1, 1) for one column",
        )
    return None, list(table.T)


def _arrow_column(column: Any, where: str) -> Any:
    """A column of text, numbers, truth values or dates, whatever held it."""
    pa = pyarrow()
    if isinstance(column, np.ndarray) and column.dtype.kind not in _NUMBERS:
        if column.dtype.kind not in "OUTM":
            raise _not_mixed(where)
        # Arrow reads text and objects one by one.
        if column.dtype.kind != "M":
            column = [value.item() if isinstance(value, np.generic) else value for value in column.tolist()]
    chunks = arrow_column(column)
    if chunks is None:
        raise DataRefused(
            f"{where} must be of one kind (text, numbers or booleans) besides missing values",
            got="a mixture",
            remedy="convert the column to one of them",
        )
    chunks = storage_of(chunks)
    if pa.types.is_dictionary(chunks.type):
        chunks = decoded(chunks)
    if is_text(chunks.type):
        return chunks.cast(pa.large_string())
    known = is_number_type(chunks.type) or pa.types.is_null(chunks.type) or in_words(chunks.type) == "dates"
    if not known:
        raise _not_mixed(where)
    return chunks


def _not_mixed(where: str) -> DataRefused:
    rule = f"{where} must be of text, numbers, booleans or dates"
    return DataRefused(rule, got="another kind", remedy="convert it, or leave it out")


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
        rows = _two_dimensional(data, dim)
        if rows.flags.c_contiguous:
            if not rows.size:
                refuse_empty()
            if not _all_finite(rows):
                _refuse_not_finite(Numbers(rows))
            return rows
    parts = numbers_of(data, dim=dim, columns=columns)
    if bounds is None:
        return _joined(parts, np.float32, _cast)
    values = _joined(parts, np.float64, _finite)
    rows = bounds.relative(values, clip=clip)
    if not clip and not _all_finite(rows):
        _refuse_range("a query")
    return rows


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


def _finite(part: Numbers) -> NDArray[Any]:
    if part.values.dtype.kind == "f" and not _all_finite(part.values):
        _refuse_not_finite(part)
    return part.values


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
        for got, test, remedy in (("NaN", np.isnan, "fill"), ("infinity", np.isinf, "replace")):
            if test(values).any():
                remedy = f"{remedy} it with a public constant or drop those records"
                raise DataRefused(f"{where} must be finite", got=got, remedy=remedy)
        with np.errstate(over="ignore", under="ignore"):
            if not np.isfinite(values.astype(np.float32)).all():
                _refuse_range(where)
    raise AssertionError("a column at fault was announced, and there is none")


def _refuse_range(where: str) -> NoReturn:
    raise DataRefused(
        f"{where} must be within float32's range",
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
        ends = pairwise(accumulate(self.layout, initial=0))
        return [Batch(self.arrays[start:end], self.length) for start, end in ends]

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


_INT32: Final = np.iinfo(np.int32)


def as_codes(data: object, *, dim: int, columns: Sequence[str] | None = None) -> NDArray[np.int32]:
    """Turn records of codes into a C-contiguous int32 array of shape (n, dim), for the Hamming kernel.

    Codes are compared for equality only. Booleans, integers within int32 and floats without a fraction are
    codes. Categorical columns are refused: their codes follow the categories that happen to occur, which is
    private, and differ from batch to batch.

    Parameters
    ----------
    data : array-like, frame or Arrow data of shape (n, dim)
        As for `hushsum.records.as_dense`, with the same rule for one-dimensional data.
    dim : int
        The number of columns.
    columns : sequence of str, optional
        Which columns of a named table, in this order.

    Raises
    ------
    DataRefused
        Fractions, NaN, nulls, codes beyond int32, categories or text, another width, or no records.

    >>> as_codes([[True, 7], [False, 2]], dim=2)
    array([[1, 7],
           [0, 2]], dtype=int32)
    """
    return _joined(numbers_of(data, dim=dim, columns=columns), np.int32, _codes)


def _codes(part: Numbers) -> NDArray[np.int32]:
    for column in range(part.values.shape[1]):
        values = part.values[:, column]
        where = part.where(column)
        if values.dtype.kind == "f":
            # False for NaN and infinity too, since the difference is NaN.
            with np.errstate(invalid="ignore"):
                integral = bool((values - np.trunc(values) == 0).all())
            if not integral:
                raise DataRefused(
                    f"{where} must be of integer codes",
                    got="numbers with a fraction, NaN or infinity",
                    remedy="encode it with a public list of categories, or use a kernel on real numbers",
                )
        if values.dtype.kind != "b" and (values.min() < _INT32.min or values.max() > _INT32.max):
            raise DataRefused(
                f"{where} must be of integer codes within int32",
                got="a code beyond it",
                remedy="number the categories from 0 with a public list of them",
            )
    return part.values.astype(np.int32, order="C", copy=False)


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
        sets = _from_iterables(list(found)) if listed else _sets_from_arrow(found)
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


def _sets_from_arrow(chunks: Any) -> Sets:
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
        if any(record.ndim != 1 for record in records):
            _refuse_members()
        sizes = np.array([len(record) for record in records], np.int64)
        return Sets(np.concatenate([_int64(record) for record in records]), _indptr(sizes))
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
        _refuse_members_range()
    return Sets(values, _indptr(lengths))


def _indptr(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def _int64(values: NDArray[Any]) -> NDArray[np.int64]:
    if values.dtype == np.uint64 and values.size and values.max() > _INT64_MAX:
        _refuse_members_range()
    return values.astype(np.int64, copy=False)


def _refuse_members() -> NoReturn:
    raise DataRefused(
        "every record must be a set of integers, got something else; "
        "number the members with a public list of them, and give a record without members an empty set"
    )


def _refuse_members_range() -> NoReturn:
    raise DataRefused(
        "the members of a set must fit int64, got one beyond it; number the members with a public list"
    )
