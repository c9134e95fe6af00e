"""Columns of numbers out of whatever container holds them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import DataRefused, UsageError
from hushsum.records import arrow

_MOST_COLUMNS_SHOWN: Final = 64
_LEAST_OF_A_NAME: Final = 4
"""Letters that must be typed of a name before a message completes it."""

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

ENCODE: Final = (
    "encode it with a public list of categories (hushsum.models.PublicEncoder), or leave the column out"
)
DAYS: Final = (
    "convert them to numbers, such as days since a public date: "
    "(column - pandas.Timestamp('2024-01-01')) / pandas.Timedelta(days=1)"
)
"""What to do about dates in Python. Files have declared dates instead."""


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
        Lazy data are evaluated: see `hushsum.records.arrow.in_memory`.
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
    data = arrow.in_memory(data)
    if isinstance(data, np.ndarray):
        parts = [Numbers(_matrix(data, dim))]
    elif isinstance(data, list | tuple):
        parts = [Numbers(_matrix(_array(data), dim))]
    elif arrow.from_package(data, "scipy.sparse"):
        raise DataRefused(
            rule="data must be dense",
            got="a sparse matrix",
            remedy="use a kernel on sets, such as Jaccard, or pass data.toarray()",
        )
    elif arrow.from_package(data, "pandas"):
        parts = _from_pandas(data, dim, columns)
    elif arrow.has_arrow_interface(data):
        names, found = arrow.as_columns(data)
        parts = _from_columns(names, found, dim, columns)
    elif hasattr(data, "__array__"):
        parts = [Numbers(_matrix(_array(data), dim))]
    else:
        raise DataRefused(
            rule="data must be an array, a frame, Arrow data or a list of records", got=type(data).__name__
        )
    if not len(parts[0].values):
        refuse_empty()
    return parts


def columns_of(data: object, dim: int, columns: Sequence[str] | None) -> Floats:
    """The same as one array in double precision."""
    parts = numbers_of(data, dim=dim, columns=columns)
    return np.concatenate([part.values.astype(np.float64) for part in parts], axis=1)


def refuse_path(data: object) -> None:
    """Refuse the name of a file where records are expected.

    Raises
    ------
    DataRefused
        A string or a path.
    """
    if isinstance(data, str | os.PathLike):
        raise DataRefused(
            rule="data must be records",
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
    try:
        table: Any = arrow.in_memory(data)
        if arrow.from_package(table, "pandas"):
            columns = [(repr(str(name)), table.iloc[:, i]) for i, name in enumerate(table.columns)]
        elif arrow.has_arrow_interface(table):
            names, found = arrow.as_columns(table)
            columns = [(repr(name), each) for name, each in zip(names or (), found, strict=True)]
        else:
            array = table if isinstance(table, np.ndarray) else np.asarray(table, object)
            columns = [(str(i), each) for i, each in enumerate(array.T)] if array.ndim == 2 else []
        for name, values in columns:
            with suppress(Exception):
                if test(np.asarray(values)):
                    return f"column {name}"
    except Exception:
        return None
    return None


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
        rule="data must have at least one record", got="none", remedy="check that the source is not empty"
    )


def _array(data: object) -> NDArray[Any]:
    try:
        return np.asarray(data)
    except Exception:
        # NumPy and the objects that convert themselves may quote values.
        raise DataRefused(
            rule="data must be a rectangle of numbers",
            got=f"a {type(data).__name__} that is none",
            remedy="give every record the same number of numbers",
        ) from None


def _matrix(array: NDArray[Any], dim: int) -> NDArray[Any]:
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise DataRefused(
                rule="data must not have missing values",
                got="a masked array",
                remedy="fill the masked entries with a public constant",
            )
        array = array.data
    if array.dtype.kind not in "biuf":
        raise _not_numbers(
            first_column(array, is_not_numeric) or "data", _KINDS.get(array.dtype.kind, "objects")
        )
    if array.ndim == 1:
        if dim not in (1, len(array)):
            refuse_length(dim)
        array = array.reshape(-1, 1) if dim == 1 else array.reshape(1, -1)
    elif array.ndim != 2:
        raise DataRefused(
            rule=f"data must have the two dimensions (records, {dim})",
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
        rule=f"data must have {columns_in_words(dim)}, {shown}",
        remedy="choose the columns, or make a kernel with that dim",
    )


def refuse_length(dim: int) -> NoReturn:
    """Raise the refusal of one-dimensional data that are not one record; their length may be private."""
    raise DataRefused(
        rule=f"data must have {columns_in_words(dim)}",
        got="one dimension of another length",
        remedy=f"pass data.reshape(-1, {dim})",
    )


def choose_columns(available: Sequence[str], columns: Sequence[str], parameter: str = "columns") -> list[int]:
    """The positions of columns by name; raises UsageError naming the first that is missing or ambiguous."""
    if len(set(columns)) != len(columns):
        raise UsageError(
            parameter=parameter, rule="must name each column once", remedy="leave the repetitions out"
        )
    positions = []
    for name in columns:
        hits = [i for i, other in enumerate(available) if other == name]
        if not hits:
            raise UsageError(
                parameter=parameter,
                rule="must name columns of the data",
                got=f"{name!r}",
                remedy=_remedy(available, columns, name),
            )
        if len(hits) > 1:
            raise UsageError(
                parameter=parameter,
                rule="must be unique names in the data",
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
        # Shown because it is what was asked for.
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
    names: list[str] | None, found: list[Any], dim: int, columns: Sequence[str] | None
) -> list[Numbers]:
    """Arrow columns; a lone column without a name follows the rule of one-dimensional data."""
    if names is not None and columns is not None:
        positions = choose_columns(names, columns)
        names, found = [names[i] for i in positions], [found[i] for i in positions]
    if len(found) == 1:
        name = None if names is None else names[0]
        values = _from_arrow(found[0], "data" if name is None else f"column {name!r}", dim)
        if values.ndim == 1 and name is not None:
            values = values.reshape(-1, 1)
        return [Numbers(_matrix(values, dim), 0, () if name is None else (name,))]
    if len(found) != dim:
        refuse_width(dim, len(found))
    parts = []
    for i, (name, column) in enumerate(zip(names or [], found, strict=True)):
        values = _from_arrow(column, f"column {name!r}", 1)
        parts.append(Numbers(values.reshape(-1, 1), i, (name,)))
    return parts


def _from_arrow(chunks: Any, where: str, width: int) -> NDArray[Any]:
    """An Arrow column of numbers, shape (n,), or of lists of ``width`` numbers, shape (n, width)."""
    chunks = arrow.storage_of(chunks)
    arrow.refuse_nulls(chunks, where)
    types = arrow.pyarrow().types
    if arrow.is_any_list(chunks.type):
        lengths = arrow.pyarrow("compute").list_value_length(chunks)
        if np.any(np.asarray(lengths) != width):
            raise DataRefused(
                rule=f"{where} must have lists of {width} numbers",
                got="another length",
                remedy="cut the lists to one length, or use a kernel on sets",
            )
        inner = arrow.pyarrow().chunked_array(
            [chunk.flatten() for chunk in chunks.chunks], type=chunks.type.value_type
        )
        if arrow.is_any_list(inner.type):
            raise DataRefused(
                rule=f"{where} must have lists of numbers", got="lists of lists", remedy="flatten them"
            )
        return _from_arrow(inner, where, width).reshape(-1, width)
    if types.is_dictionary(chunks.type):
        raise DataRefused(rule=f"{where} must be of numbers", got="categories", remedy=f"{ENCODE}")
    if types.is_decimal(chunks.type):
        raise DataRefused(
            rule=f"{where} must be of integers or floats", got="decimals", remedy="cast them to float64"
        )
    if not arrow.is_number(chunks.type):
        raise _not_numbers(where, arrow.in_words(chunks.type))
    values: NDArray[Any] = chunks.to_numpy()
    return values


def _not_numbers(where: str, kind: str) -> DataRefused:
    remedy = DAYS if kind == "dates" else ENCODE
    return DataRefused(rule=f"{where} must be of numbers", got=kind, remedy=remedy)


def _from_pandas(data: Any, dim: int, columns: Sequence[str] | None) -> list[Numbers]:
    if data.ndim == 1:
        return [Numbers(_matrix(_pandas_column(data, "data", dim), dim))]
    if columns is not None:
        data = data.iloc[:, choose_columns(list(data.columns), columns)]
    names = tuple(str(name) for name in data.columns)
    kinds = set(data.dtypes)
    if len(kinds) == 1 and _is_plain_number(next(iter(kinds))):
        return [Numbers(_matrix(data.to_numpy(), dim), 0, names)]
    if len(names) == 1:
        column = _pandas_column(data.iloc[:, 0], f"column {names[0]!r}", dim)
        return [Numbers(_matrix(column if column.ndim == 2 else column.reshape(-1, 1), dim), 0, names)]
    if len(names) != dim:
        refuse_width(dim, len(names))
    return [
        Numbers(_pandas_column(data.iloc[:, i], f"column {name!r}", 1).reshape(-1, 1), i, (name,))
        for i, name in enumerate(names)
    ]


def _is_plain_number(dtype: object) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def _pandas_column(series: Any, where: str, width: int) -> NDArray[Any]:
    if _is_plain_number(series.dtype):
        values: NDArray[Any] = series.to_numpy()
        return values
    if isinstance(series.dtype, np.dtype) and series.dtype.kind != "O":
        raise _not_numbers(where, _KINDS.get(series.dtype.kind, "objects"))
    pa = arrow.pyarrow()
    try:
        converted = pa.array(series, from_pandas=True)
    except Exception:
        raise DataRefused(
            rule=f"{where} must be of numbers", got="Python objects", remedy=f"{ENCODE}"
        ) from None
    chunks = converted if isinstance(converted, pa.ChunkedArray) else pa.chunked_array([converted])
    # Objects that happen to be numbers now may be something else in the next batch; lists are how pandas
    # holds vectors.
    if series.dtype == np.dtype(object) and len(series) and not arrow.is_any_list(chunks.type):
        raise DataRefused(
            rule=f"{where} must be of numbers", got="Python objects", remedy="convert the column with astype"
        )
    return _from_arrow(chunks, where, width)
