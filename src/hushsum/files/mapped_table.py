"""Tables of integers in a fixed number of bits per cell, read cell by cell without unpacking the others.

The form of large noisy tables in memory and in files, which can be memory-mapped. Cell ``c``, counted row by
row, has the code in bits ``c·bits`` to ``(c + 1)·bits − 1`` of little-endian bytes. Its value is ``(base +
code)·unit``, except for the cells in a sorted list of exceptions, whose code is all ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushsum import _native

PAGE: int = _native.PACKED_PAGE
"""Bytes that are checked together when a file is read."""

_EXCEPTION_BITS = 128
_CELLS_AT_A_TIME = 1 << 22


class PackedForm(NamedTuple):
    """How cells are coded."""

    bits: int
    base: int
    unit: int


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

    __slots__ = ("check", "data", "exception_cells", "exception_values", "form", "native", "shape", "total")

    def __init__(
        self,
        shape: tuple[int, int],
        form: PackedForm,
        data: NDArray[np.uint8],
        exception_cells: NDArray[np.int64],
        exception_values: NDArray[np.int64],
        total: int,
        *,
        check: Callable[[int], None] | None = None,
    ) -> None:
        self.native = _native.PackedTable(data, *shape, *form, exception_cells, exception_values, check)
        self.shape, self.form, self.data, self.total, self.check = shape, form, data, total, check
        self.exception_cells, self.exception_values = exception_cells, exception_values

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

    def unpacked(self) -> NDArray[np.int32] | NDArray[np.int64]:
        """All values as an array of 32 bits per cell, or of 64 where those are needed."""
        low = self.form.base * self.form.unit
        high = (self.form.base + (1 << self.form.bits)) * self.form.unit
        limits = np.iinfo(np.int32)
        lowest, highest = self.exception_values.min(initial=low), self.exception_values.max(initial=high)
        narrow = limits.min <= int(lowest) and int(highest) <= limits.max
        table: NDArray[np.int32] | NDArray[np.int64]
        table = np.empty(self.size, np.int32) if narrow else np.empty(self.size, np.int64)
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
