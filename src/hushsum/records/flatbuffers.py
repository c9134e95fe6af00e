"""Tables of flatbuffers from outside, every access checked against the end of the buffer.

Arrow describes its streams in them: https://flatbuffers.dev/internals/.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

_LONGEST_NAME: Final = 1 << 12


class Damaged(Exception):
    """The bytes are not a stream that this module reads; the reason is for people."""

    def __init__(self, reason: str = "it is damaged") -> None:
        super().__init__(reason)
        self.reason = reason


class FlatTable:
    """A table of a flatbuffer; every access is checked against the buffer's end."""

    __slots__ = ("_at", "_data", "_size", "_vtable")

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        self._vtable = at - self._number("<i", at)
        self._size = self._number("<H", self._vtable)
        if self._size < 4 or self._size % 2 or self._vtable + self._size > len(data):
            raise Damaged

    @classmethod
    def root(cls, data: memoryview) -> FlatTable:
        """The table at the start of a buffer."""
        return cls(data, struct.unpack_from("<I", data)[0])

    def _number(self, code: str, at: int) -> int:
        if at < 0:
            raise Damaged
        value: int = struct.unpack_from(code, self._data, at)[0]
        return value

    def _place(self, number: int) -> int | None:
        entry = 4 + 2 * number
        if entry + 2 > self._size:
            return None
        offset = self._number("<H", self._vtable + entry)
        return self._at + offset if offset else None

    def has(self, number: int) -> bool:
        """Whether a field is present."""
        return self._place(number) is not None

    def number(self, number: int, code: str, default: int = 0) -> int:
        """An integer field; ``code`` as in :mod:`struct`."""
        place = self._place(number)
        return default if place is None else self._number(code, place)

    def table(self, number: int) -> FlatTable:
        """A field that is a table."""
        place = self._place(number)
        if place is None:
            raise Damaged
        return FlatTable(self._data, place + self._number("<I", place))

    def _vector(self, number: int, size: int) -> tuple[int, int]:
        """Where a vector's elements stand and how many there are."""
        place = self._place(number)
        if place is None:
            return 0, 0
        start = place + self._number("<I", place)
        count = self._number("<I", start)
        if start + 4 + count * size > len(self._data):
            raise Damaged
        return start + 4, count

    def tables(self, number: int) -> Iterator[FlatTable]:
        """A vector of tables."""
        start, count = self._vector(number, 4)
        for at in range(start, start + 4 * count, 4):
            yield FlatTable(self._data, at + self._number("<I", at))

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """A vector of structs of two 64-bit integers."""
        start, count = self._vector(number, 16)
        return list(struct.iter_unpack("<qq", self._data[start : start + 16 * count]))

    def text(self, number: int) -> str:
        """A field that is text."""
        start, size = self._vector(number, 1)
        if size > _LONGEST_NAME:
            raise Damaged("a column's name is too long")
        return str(self._data[start : start + size], "utf-8")
