"""Records of categories, already encoded, as int32 rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import DataRefused
from hushsum.records.columns_by_name import Numbers, numbers_of

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
    parts = numbers_of(data, dim=dim, columns=columns)
    for part in parts:
        _refuse_non_codes(part)
    if len(parts) == 1:
        return parts[0].values.astype(np.int32, order="C", copy=False)
    out = np.empty((len(parts[0].values), dim), dtype=np.int32)
    for part in parts:
        out[:, part.start] = part.values[:, 0]
    return out


def _refuse_non_codes(part: Numbers) -> None:
    for column in range(part.values.shape[1]):
        values = part.values[:, column]
        where = part.where(column)
        if values.dtype.kind == "f":
            # False for NaN and infinity too, since the difference is NaN.
            with np.errstate(invalid="ignore"):
                integral = bool((values - np.trunc(values) == 0).all())
            if not integral:
                raise DataRefused(
                    rule=f"{where} must be of integer codes",
                    got="numbers with a fraction, NaN or infinity",
                    remedy=(
                        "encode the column with a public list of categories, or use a kernel on real numbers"
                    ),
                )
        if values.dtype.kind != "b" and (values.min() < _INT32.min or values.max() > _INT32.max):
            raise DataRefused(
                rule=f"{where} must be of integer codes within int32",
                got="a code beyond it",
                remedy="number the categories from 0 with a public list of them",
            )
