"""Arrays as bytes: little-endian, tables of integers in the narrowest type that holds them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum.errors import FileRefused

_INTEGERS: dict[str, np.dtype[Any]] = {
    name: np.dtype(f"<{code}")
    for name, code in {"int8": "i1", "int16": "i2", "int32": "i4", "int64": "i8"}.items()
}

REAL = "float64"
"""The type of real numbers, which coefficients have and tables never."""

_TYPES: dict[str, np.dtype[Any]] = {**_INTEGERS, REAL: np.dtype("<f8")}


def narrowest_type(values: NDArray[np.integer[Any]]) -> str:
    """The name of the smallest signed type that holds every value.

    >>> narrowest_type(np.array([-129, 5]))
    'int16'
    """
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for name, dtype in _INTEGERS.items():
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return name
    raise OverflowError("values do not fit 64 bits")


def encode_array(values: NDArray[Any], type_name: str) -> memoryview:
    """The bytes of an array in the named type."""
    array = np.ascontiguousarray(values, dtype=_TYPES[type_name])
    # A view with no elements cannot be cast.
    return array.data.cast("B") if array.size else memoryview(b"")


def encoded_size(shape: tuple[int, ...], type_name: str, *, reals: bool = False) -> int:
    """How many bytes an array of this shape takes; refuses unknown types and negative shapes."""
    known = _TYPES if reals else _INTEGERS
    if type_name not in known or any(not isinstance(n, int) or n < 0 for n in shape):
        raise FileRefused("the header names an unknown number type or a negative size; get a fresh copy")
    return prod(shape) * _TYPES[type_name].itemsize


def decode_array(payload: memoryview, shape: tuple[int, ...], type_name: str) -> NDArray[Any]:
    """The array back, in the machine's own byte order."""
    dtype = _TYPES[type_name]
    return np.frombuffer(payload, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
