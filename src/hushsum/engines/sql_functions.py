"""``hush_query``: a released function as a scalar function of SQL, a batch of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np

from hushsum._types import Floats
from hushsum.errors import UsageError
from hushsum.records.arrow import pyarrow
from hushsum.releases.base import ReleasedFunction
from hushsum.releases.load import load_function

Of = Literal["mean", "sum"]
_FUNCTIONS: Final = 16


def answers(files: Any, columns: Sequence[Any], *, of: Of = "mean") -> Floats:
    """The answers for rows of a query.

    Parameters
    ----------
    files : Arrow column of str, shape (n,)
        The ``.hush`` file that each row is queried in; usually one and the same.
    columns : sequence of Arrow columns
        The coordinates, in the order of the function's columns; for kernels of sets one column of lists.
    of : {"mean", "sum"}
        Mean kernel values f(q)/N, or kernel sums f(q).
    """
    paths = files.to_pylist() if hasattr(files, "to_pylist") else list(files)
    result = np.empty(len(paths))
    for path in dict.fromkeys(paths):
        chosen = np.array([each == path for each in paths])
        whole = bool(chosen.all())
        mask = None if whole else pyarrow().array(chosen)
        function = _function(path)
        points = _points(function, [each if mask is None else each.filter(mask) for each in columns])
        result[chosen] = function(points) if of == "mean" else function.sum(points)
    return result


def _points(function: ReleasedFunction, columns: Sequence[Any]) -> Any:
    if function.dim is None:
        if len(columns) != 1:
            raise UsageError(
                parameter="columns", rule="must be one column of sets for this function", got=len(columns)
            )
        return columns[0]
    if len(columns) != function.dim:
        names = "" if function.columns is None else f": {', '.join(function.columns)}"
        raise UsageError(
            parameter="columns", rule=f"must be the {function.dim} of this function{names}", got=len(columns)
        )
    return np.column_stack([np.asarray(each.cast("float64").to_numpy()) for each in columns])


def _function(path: object) -> ReleasedFunction:
    if not isinstance(path, str) or not os.path.exists(path):
        raise UsageError(
            parameter="file",
            rule="must be the path of a .hush file",
            got="another value" if not isinstance(path, str) else "a file that does not exist",
        )
    state = os.stat(path)
    return _loaded(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=_FUNCTIONS)
def _loaded(path: str, size: int, changed: int) -> ReleasedFunction:
    return load_function(path)
