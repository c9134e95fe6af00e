"""Arrays and rational numbers as they stand in files and messages.

Arrays are little-endian bytes: tables of integers in the narrowest type that holds them, or packed. Rational
numbers are text, read in bounded time and memory: ``Fraction("1e9999999")`` takes minutes and gigabytes, so
whatever reads a number from a file, a message, a request or a database uses this module instead.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
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
    if type_name not in known or any(type(n) is not int or n < 0 for n in shape):
        raise FileRefused(
            rule="the header names an unknown number type or a negative size", remedy="get a fresh copy"
        )
    return prod(shape) * _TYPES[type_name].itemsize


def decode_array(payload: memoryview, shape: tuple[int, ...], type_name: str) -> NDArray[Any]:
    """The array back, in the machine's own byte order."""
    dtype = _TYPES[type_name]
    return np.frombuffer(payload, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


_LEAST_BITS = 1
"""A packed integer takes at least this many bits, which bounds what a short file can claim to hold."""

_CENTRE_FROM = 1 << 16


def pack_integers(values: NDArray[np.int32] | NDArray[np.int64], unit: int) -> tuple[bytes, int]:
    """Multiples of ``unit`` in about as many bits as their noise has entropy, and the centre of the code.

    Rice codes (``src/native/bind_pack.cpp``) of the distances from a central value. Noisy cells of deviation
    σ take about ``log2(4.3·σ/unit)`` bits each.

    >>> packed, centre = pack_integers(np.array([70, 77, 63, 70], np.int32), 7)
    >>> len(packed), centre
    (2, 10)
    >>> unpack_integers(packed, (4,), "int8", unit=7, centre=centre)
    array([70, 77, 63, 70], dtype=int32)
    """
    flat = values.reshape(-1)
    multiples = flat if unit == 1 else flat // unit
    centre = int(np.median(multiples[:_CENTRE_FROM])) if flat.size else 0
    return _native.pack_integers(multiples, centre), centre


def check_packed(shape: tuple[int, ...], size: int) -> None:
    """Refuse a shape that so few bytes cannot hold, before anything of that size is allocated."""
    if prod(shape) * _LEAST_BITS > 8 * size:
        raise ValueError("a packed table shorter than its shape")


def unpack_integers(
    payload: bytes | memoryview, shape: tuple[int, ...], type_name: str, *, unit: int, centre: int
) -> NDArray[np.int32] | NDArray[np.int64]:
    """The integers back; ValueError where the bytes are no code of so many values of that type."""
    check_packed(shape, len(payload))
    wide = type_name == "int64"
    cells = prod(shape)
    values: NDArray[np.int32] | NDArray[np.int64]
    values = np.empty(cells, np.int64) if wide else np.empty(cells, np.int32)
    if not _native.unpack_integers(bytes(payload), values, centre):
        raise ValueError("not a packed table")
    if values.size and unit > 1:
        largest = np.iinfo(values.dtype).max // unit
        if int(values.max()) > largest or int(values.min()) < -largest:
            raise ValueError("cells beyond their type")
        values *= unit
    return values.reshape(shape)


MOST_DIGITS = 2000
"""Of a numerator or denominator in a file. The smallest double has a denominator of 324 digits."""

_STORED = re.compile(
    rf"-?(0|[1-9][0-9]{{0,{MOST_DIGITS - 1}}})(/[1-9][0-9]{{0,{MOST_DIGITS - 1}}})?", re.ASCII
)


def stored_rational(text: object) -> Fraction:
    """A rational as ``str(Fraction)`` writes it: ``"3"``, ``"-1/10"``; nothing else.

    Raises
    ------
    TypeError, ValueError
        It is not text, not in lowest terms, has an exponent or a point, or more than 2,000 digits.

    Examples
    --------
    >>> stored_rational("1/10")
    Fraction(1, 10)
    >>> stored_rational("1e9999999")
    Traceback (most recent call last):
    ...
    ValueError: not a stored rational
    """
    if not isinstance(text, str):
        raise TypeError("a rational is stored as text")
    if not _STORED.fullmatch(text):
        raise ValueError("not a stored rational")
    number = Fraction(text)
    if str(number) != text:
        raise ValueError("not a stored rational")
    return number
