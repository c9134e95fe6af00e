"""Arrays and rational numbers as they stand in files and messages.

Arrays are little-endian bytes: tables of integers in the narrowest type that holds them, or packed. Rational
numbers are text, read in bounded time and memory: ``Fraction("1e9999999")`` takes minutes and gigabytes, so
whatever reads a number from a file, a message, a request or a database uses this module instead.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from fractions import Fraction
from functools import cache
from math import prod
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, Self, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from hushsum import _native
from hushsum.errors import FileRefused

__all__ = [
    "MOST_DIGITS", "REAL", "PackedForm", "PackedTable", "Stored", "TablePacker", "canonical_json",
    "cheapest_form", "check_packed", "data_bytes", "declared_fields", "decode_array", "encode_array",
    "encoded_size", "narrowest_type", "pack_integers", "padded_json", "padded_size", "stored_rational",
    "unpack_integers",
]  # fmt: skip

_LEAST_PADDED = 1 << 12
_MOST_PADDED = 1 << 28


def canonical_json(value: object) -> bytes:
    """The one JSON spelling of a value: sorted keys, no spaces, UTF-8, no NaN.

    >>> canonical_json({"b": 1, "a": [1.5, "é"]}).decode()
    '{"a":[1.5,"é"],"b":1}'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def padded_json(value: object) -> bytes:
    """JSON with spaces after it, for a secret section whose length is public: a power of two, so that it
    shows no digits of a number of records.
    """
    data = json.dumps(value).encode()
    return data.ljust(max(_LEAST_PADDED, 1 << (len(data) - 1).bit_length()))


def padded_size(size: object) -> int:
    """A length that `padded_json` may have; ValueError for any other."""
    if type(size) is not int or not _LEAST_PADDED <= size <= _MOST_PADDED:
        raise ValueError("size")
    return size


def declared_fields(value: Any) -> Any:
    """A frozen dataclass of public settings as JSON: its fields by name, without those that have their
    default, so that a field which a later version adds does not change what is written today.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Size:
    ...     rows: int
    ...     width: int | None = None
    >>> declared_fields([Size(5), Size(5, 3)])
    [{'rows': 5}, {'rows': 5, 'width': 3}]
    """
    if dataclasses.is_dataclass(value):
        stated = {each.name: (getattr(value, each.name), each) for each in dataclasses.fields(value)}
        return {
            name: declared_fields(given) for name, (given, each) in stated.items() if given != _default(each)
        }
    if isinstance(value, Mapping):
        return {str(name): declared_fields(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [declared_fields(each) for each in value]
    return str(value) if isinstance(value, Fraction | Path) else value


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


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
            "the header names an unknown number type or a negative size", remedy="get a fresh copy"
        )
    return prod(shape) * _TYPES[type_name].itemsize


def decode_array(payload: memoryview, shape: tuple[int, ...], type_name: str) -> NDArray[Any]:
    """The array back, in the machine's own byte order."""
    dtype = _TYPES[type_name]
    return np.frombuffer(payload, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


Integers = NDArray[np.int32] | NDArray[np.int64]
# A packed integer takes at least this many bits, which bounds what a short file can claim to hold.
_LEAST_BITS = 1

_CENTRE_FROM = 1 << 16


def pack_integers(values: Integers, unit: int) -> tuple[bytes, int]:
    """Multiples of ``unit`` in about as many bits as their noise has entropy, and the centre of the code.

    Rice codes (``src/native/rice_code.cpp``) of the distances from a central value. Noisy cells of deviation
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
    """Refuse a shape that this number of bytes cannot hold, before anything of that size is allocated."""
    if prod(shape) * _LEAST_BITS > 8 * size:
        raise ValueError("a packed table shorter than its shape")


def unpack_integers(
    payload: bytes | memoryview, shape: tuple[int, ...], type_name: str, *, unit: int, centre: int
) -> Integers:
    """The integers back; ValueError where the bytes are no code of that many values of that type."""
    check_packed(shape, len(payload))
    cells = prod(shape)
    values: Integers = np.empty(cells, np.int64) if type_name == "int64" else np.empty(cells, np.int32)
    if not _native.unpack_integers(bytes(payload), values, centre):
        raise ValueError("not a packed table")
    if values.size and unit > 1:
        largest = np.iinfo(values.dtype).max // unit
        if int(values.max()) > largest or int(values.min()) < -largest:
            raise ValueError("cells beyond their type")
        values *= unit
    return values.reshape(shape)


# The most digits of a numerator or denominator in a file. The smallest double has a denominator of 324
# digits.
MOST_DIGITS = 2000

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


class Stored:
    """A dataclass as JSON values: fields by name, rationals as text, exactly, and tuples as lists.

    >>> @dataclasses.dataclass
    ... class Share(Stored):
    ...     part: Fraction
    ...     of: tuple[str, ...] = ()
    >>> Share(Fraction(1, 3), ("a",)).as_json(), Share.from_json({"part": "1/3", "of": []})
    ({'part': '1/3', 'of': ['a']}, Share(part=Fraction(1, 3), of=()))
    """

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """The fields by name, for an event or a machine."""
        value: Any = self
        return {each.name: _written(getattr(value, each.name)) for each in dataclasses.fields(value)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """What ``as_json`` wrote; TypeError or ValueError for anything else."""
        kind: Any = cls
        if not isinstance(data, dict) or set(data) != {each.name for each in dataclasses.fields(kind)}:
            raise ValueError("names")
        return cls(**{name: _read(_hints(kind)[name], value) for name, value in data.items()})


_hints = cache(get_type_hints)


def _written(value: Any) -> Any:
    if hasattr(value, "as_json"):
        return value.as_json()
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    return str(value) if isinstance(value, Fraction | StrEnum) else value


def _read(hint: Any, value: Any) -> Any:
    kind, *others = get_args(hint) or (hint,)
    if NoneType in others:
        return None if value is None else _read(kind, value)
    if others:
        return tuple(_read(kind, each) for each in value)
    if hasattr(kind, "from_json"):
        return kind.from_json(value)
    if issubclass(kind, StrEnum):
        return kind(value)
    if kind is Fraction:
        return stored_rational(value)
    if type(value) not in ((float, int) if kind is float else (kind,)):
        raise ValueError(kind.__name__)
    return value


# Bytes that are checked together when a file is read.
PAGE: int = _native.PACKED_PAGE

_EXCEPTION_BITS = 128
_CELLS_AT_A_TIME = 1 << 22


class PackedForm(NamedTuple):
    """How cells are coded."""

    bits: int
    base: int
    unit: int


@dataclasses.dataclass(eq=False, repr=False, slots=True)
class PackedTable:
    """An immutable table of integers of shape (rows, width), packed.

    Parameters
    ----------
    shape : (int, int)
    form : PackedForm
    data : uint8 array of shape (data_bytes(shape, form.bits),)
    exception_cells, exception_values : int64 arrays
        The exceptions, by rising cell.
    total : int
        The sum of all cells.
    check : callable, optional
        Called with the number of each page of ``data`` before a cell of it is read for the first time; raises
        if the page is damaged.

    Raises
    ------
    ValueError
        if the parts do not fit together.
    """

    shape: tuple[int, int]
    form: PackedForm
    data: NDArray[np.uint8]
    exception_cells: NDArray[np.int64]
    exception_values: NDArray[np.int64]
    total: int
    check: Callable[[int], None] | None = None
    native: _native.PackedTable = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        exceptions = self.exception_cells, self.exception_values
        self.native = _native.PackedTable(self.data, *self.shape, *self.form, *exceptions, self.check)

    @property
    def size(self) -> int:
        """The number of cells."""
        return prod(self.shape)

    def verify(self) -> None:
        """Check every page now; raises what ``check`` raises for the first damaged one."""
        if self.check is not None:
            for page in range(-(-len(self.data) // PAGE)):
                self.check(page)

    def take(self, cells: NDArray[np.int32]) -> NDArray[np.int64]:
        """The values in ``cells[j, row]`` of every row, shape (len(cells), rows)."""
        return self.native.take(np.ascontiguousarray(cells))

    def blocks(self) -> Iterator[NDArray[np.int64]]:
        """The values of consecutive cells, a few million at a time."""
        for first in range(0, self.size, _CELLS_AT_A_TIME):
            values = np.empty(min(_CELLS_AT_A_TIME, self.size - first), np.int64)
            self.native.read_cells(first, values, 1)
            yield values

    def unpacked(self) -> Integers:
        """All values as an array of 32 bits per cell, or of 64 where those are needed."""
        low = self.form.base * self.form.unit
        high = (self.form.base + (1 << self.form.bits)) * self.form.unit
        limits = np.iinfo(np.int32)
        lowest, highest = self.exception_values.min(initial=low), self.exception_values.max(initial=high)
        narrow = limits.min <= int(lowest) and int(highest) <= limits.max
        table: Integers = np.empty(self.size, np.int32) if narrow else np.empty(self.size, np.int64)
        first = 0
        for values in self.blocks():
            table[first : first + len(values)] = values
            first += len(values)
        return table.reshape(self.shape)


class TablePacker:
    """Packs a table that arrives some cells at a time; the first cells decide the number of bits.

    >>> packer = TablePacker((2, 3), unit=1)
    >>> packer.add(np.array([5, 6, 4, 5])).add(np.array([900, 5]))  # doctest: +ELLIPSIS
    <...TablePacker object at ...>
    >>> packer.finish().unpacked()
    array([[  5,   6,   4],
           [  5, 900,   5]], dtype=int32)
    """

    def __init__(self, shape: tuple[int, int], *, unit: int, threads: int = 1) -> None:
        self._shape, self._unit, self._threads = shape, unit, threads
        self._form: PackedForm | None = None
        self._data: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._exceptions: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._total = self._next = 0

    def add(self, values: NDArray[np.int64]) -> TablePacker:
        """Pack the next cells; multiples of the unit."""
        if self._form is None:
            self._form = cheapest_form(values, self._unit)
            self._data = np.zeros(data_bytes(self._shape, self._form.bits), np.uint8)
        cells, outliers, total = _native.pack_cells(
            values, self._next, self._data, *self._shape, *self._form, self._threads
        )
        self._exceptions.append((cells, outliers))
        self._total += total
        self._next += len(values)
        return self

    def finish(self) -> PackedTable:
        """The table, when all cells have been added."""
        if self._form is None or self._next != prod(self._shape):
            raise ValueError("a table is packed when all its cells have arrived")
        cells, values = (np.concatenate(parts) for parts in zip(*self._exceptions, strict=True))
        return PackedTable(self._shape, self._form, self._data, cells, values, self._total)


def data_bytes(shape: tuple[int, int], bits: int) -> int:
    """How many bytes the codes of a table take: whole words of 64 bits, and one word of zeros."""
    return (-(-prod(shape) * bits // 64) + 1) * 8


def cheapest_form(values: NDArray[np.int64], unit: int) -> PackedForm:
    """The number of bits with the least memory for these values, exceptions included.

    >>> cheapest_form(np.array([-3, 2, 5, 7, 1 << 20] * 100 + [3] * 10**5), 1).bits
    2
    """
    multiples = values if unit == 1 else values // unit
    centre = int(np.median(multiples[: 1 << 16])) if len(values) else 0
    reach = np.maximum(multiples - centre + 2, centre - multiples)
    best, least = 1, float("inf")
    for bits in range(1, _native.MOST_PACKED_BITS - 1):
        outside = int(np.count_nonzero(reach > 1 << (bits - 1)))
        cost = bits * len(values) + _EXCEPTION_BITS * outside
        if cost < least:
            best, least = bits, cost
        if not outside:
            break
    return PackedForm(best, centre - (1 << (best - 1)), unit)
