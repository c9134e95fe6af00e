"""Private records that are given as public rows: refused, before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused, UsageError
from hushsum.records.arrow import in_memory
from hushsum.records.mixed_columns import column_names_of
from hushsum.records.native_batch import as_dense
from hushsum.records.repeated_rows import are_copies
from hushsum.records.transform import Transform


def refuse_private_rows(public: object, X: object, *, parameter: str = "public") -> None:
    """Refuse private records in place of public ones: the same object, or a view of its memory.

    Raises
    ------
    UsageError
        without a look at a value.
    """
    both = isinstance(public, np.ndarray) and isinstance(X, np.ndarray)
    if public is not None and (public is X or (both and np.may_share_memory(public, X))):
        raise _private(parameter, "memory of the records")


def refuse_copied_rows(
    public: object,
    records: object,
    dim: int | None,
    columns: Sequence[str] | None = None,
    *,
    parameter: str = "public",
) -> None:
    """Refuse copies of private records in place of public ones; see `hushsum.records.repeated_rows`.

    Copies with other values, and a part that is less than half of the public rows, are not noticed: whoever
    declares a sample public answers for it.

    Parameters
    ----------
    public, records : arrays, frames or Arrow data
        Public rows and private records, of numbers; others are not compared.
    dim : int or None
        How many columns the records have; None where they are sets.
    columns : sequence of str, optional
        Which columns the records have, where both are named.
    parameter : str
        What the public rows were given as.

    Raises
    ------
    UsageError
        for the owner of the records alone, before anything is spent.
    """
    if public is None or dim is None or isinstance(public, Transform):
        return
    try:
        found = are_copies(_compared(public, dim, columns), _compared(records, dim, columns))
    except DataRefused:
        return  # anything but a table of numbers is refused, or read otherwise, where it is counted
    if found:
        raise _private(parameter, "copies of the records")


def _compared(data: object, dim: int, columns: Sequence[str] | None) -> NDArray[np.float32]:
    named = columns if column_names_of(data) is not None else None
    return as_dense(in_memory(data), dim=dim, columns=named)


def _private(parameter: str, got: str) -> UsageError:
    return UsageError(
        parameter=parameter,
        rule="must be public rows, and no part of the private records",
        got=got,
        remedy="give rows that anybody may see, or leave it out",
    )
