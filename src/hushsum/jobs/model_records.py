"""Batches of files in the form that models take: tables of named numbers, and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, UsageError
from hushsum.records.arrow import pyarrow
from hushsum.records.columns_by_name import numbers_of
from hushsum.records.mixed_columns import mixed_columns


def features_of(batch: Any, columns: Sequence[str]) -> Any:
    """The columns of a batch as an Arrow table of float64, from which models learn the names too.

    Raises
    ------
    DataRefused
        Nulls, NaN or infinity, or a column of lists.
    """
    values = values_of(batch, columns, len(columns))
    return pyarrow().table({name: values[:, i] for i, name in enumerate(columns)})


def values_of(batch: object, columns: Sequence[str] | None, dim: int) -> NDArray[np.float64]:
    """The same as an array of shape (n, dim), of any container of numbers, also one without names."""
    parts = numbers_of(batch, dim=dim, columns=columns)
    values = np.concatenate([part.values.astype(np.float64) for part in parts], axis=1)
    finite = np.isfinite(values).all(axis=0)
    if not finite.all():
        first = int(np.argmin(finite))
        name = f"column {first}" if columns is None else f"column {columns[first]!r}"
        raise DataRefused(
            rule=f"{name} must be finite",
            got="NaN or infinity",
            remedy="fill it with a public constant or drop those records",
        )
    return values


def labels_of(column: Any, name: str) -> NDArray[Any]:
    """A column of labels: text, whole numbers or booleans.

    Raises
    ------
    DataRefused
        Missing labels, or numbers with a fraction.
    """
    pa = pyarrow()
    (chunks,) = mixed_columns(pa.table({name: column}), count=1, names=[name])
    if chunks.null_count:
        raise DataRefused(
            rule=f"column {name!r} must have a label in every record", got="missing ones", remedy="drop those"
        )
    if pa.types.is_large_string(chunks.type):
        texts = np.array(chunks.to_pylist(), dtype=np.str_)
        if _has_fractions(_numbers_in(texts)):
            raise _fractions_refused(name)
        return texts
    values: NDArray[Any] = chunks.to_numpy()
    if values.dtype.kind == "f":
        if _has_fractions(values):
            raise _fractions_refused(name)
        values = values.astype(np.int64)
    return values


def _fractions_refused(name: str) -> DataRefused:
    return DataRefused(
        rule=f"column {name!r} must have labels", got="numbers with a fraction", remedy="use a regressor"
    )


def _has_fractions(values: NDArray[np.float64]) -> bool:
    return not np.array_equal(values, np.trunc(values))


def _numbers_in(texts: NDArray[np.str_]) -> NDArray[np.float64]:
    """The numbers that all of the texts are; none where one is something else: CSV has no types."""
    try:
        values = texts.astype(np.float64)
    except ValueError:
        return np.empty(0)
    return values[np.isfinite(values)]


def read_classes(classes: Sequence[str], labels: NDArray[Any]) -> list[Any]:
    """Declared classes as the kind of thing that the labels are: text, numbers or booleans.

    >>> read_classes(["0", "1"], np.array([1, 0]))
    [0, 1]
    """
    kind = labels.dtype.kind
    if kind == "U":
        return list(classes)
    if kind == "b":
        flags = {"false": False, "0": False, "true": True, "1": True}
        if any(each.lower() not in flags for each in classes):
            raise UsageError(
                parameter="classes",
                rule="must be true or false for a column of booleans",
                got="something else",
            )
        return [flags[each.lower()] for each in classes]
    try:
        return [int(each) for each in classes]
    except ValueError:
        raise UsageError(
            parameter="classes",
            rule="must be whole numbers for a column of numbers",
            got="something else",
            remedy="write them alike",
        ) from None
