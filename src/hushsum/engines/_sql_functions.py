"""``hush_query``: a released function as a scalar function of SQL, a batch of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.records import pyarrow
from hushsum.releases import ReleasedFunction, load_function

Of = Literal["mean", "sum"]
_FUNCTIONS: Final = 16


def answers(files: Any, columns: Sequence[Any], *, of: Of = "mean") -> Any:
    """The answers for rows of a query, an Arrow column of float64; NULL where a value of the row is NULL.

    Parameters
    ----------
    files : Arrow column of str, shape (n,)
        The ``.hush`` file that each row is queried in; usually one and the same.
    columns : sequence of Arrow columns
        The coordinates, in the order of the function's columns; for kernels of sets one column of lists.
    of : {"mean", "sum"}
        Mean kernel values f(q)/N, or kernel sums f(q).
    """
    paths = np.array(files.to_pylist() if hasattr(files, "to_pylist") else list(files), object)
    known = np.array([each is not None for each in paths], np.bool_)
    for column in columns:
        if column.null_count:
            known &= np.asarray(column.is_valid())
    result = np.zeros(len(paths))
    for path in dict.fromkeys(paths[known]):
        chosen = known & (paths == path)
        mask = None if chosen.all() else pyarrow().array(chosen)
        function = _function(path)
        points = _points(function, [each if mask is None else each.filter(mask) for each in columns])
        result[chosen] = function(points) if of == "mean" else function.sum(points)
    return pyarrow().array(result, mask=~known)


def _points(function: ReleasedFunction, columns: Sequence[Any]) -> Any:
    if function.dim is None:
        if len(columns) != 1:
            raise UsageError("columns", "must be one column of sets for this function", got=len(columns))
        return columns[0]
    if len(columns) != function.dim:
        names = "" if function.columns is None else f": {', '.join(function.columns)}"
        raise UsageError("columns", f"must be the {function.dim} of this function{names}", got=len(columns))
    return np.column_stack([_numbers(each) for each in columns])


def _numbers(column: Any) -> Floats:
    types = pyarrow().types
    if not any(kind(column.type) for kind in (types.is_integer, types.is_floating, types.is_decimal)):
        raise UsageError(
            "columns", "must be numbers for this function", got=str(column.type), remedy="cast them"
        )
    return np.asarray(column.cast("float64").to_numpy())


def _function(path: object) -> ReleasedFunction:
    if not isinstance(path, str) or not os.path.exists(path):
        raise UsageError(
            "file",
            "must be the path of a .hush file",
            got="another value" if not isinstance(path, str) else "a file that does not exist",
        )
    state = os.stat(path)
    return _loaded(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=_FUNCTIONS)
def _loaded(path: str, size: int, changed: int) -> ReleasedFunction:
    return load_function(path)
