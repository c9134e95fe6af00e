"""Arrow streams from outside, read without trust: what they state is checked before it is used.

PyArrow's reader trusts the lengths that a stream states: a batch of ten values that states five thousand is
read beyond its end, and wrong offsets abort the process. This module therefore first reads a stream's
metadata itself, which Arrow stores as flatbuffers (https://arrow.apache.org/docs/format/Columnar.html,
https://flatbuffers.dev/internals/): how many columns and batches there are, and that every buffer lies within
the bytes received. Then PyArrow takes the buffers as they are, looks at none of the values, and validates
each batch in full, before anything else sees it: that buffers are as long as their columns need, offsets,
dictionary indices, UTF-8.

The module reads numbers, booleans, text, lists and dictionaries of them, which records and queries consist
of. It reads no compressed streams, and copies only bytes that are not aligned.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from hushsum.errors import DataRefused

from ._arrow import is_any_list, is_number_type, pyarrow

__all__ = ["read_stream"]

_LONGEST_NAME: Final = 1 << 12


class Damaged(Exception):
    """The bytes are not a stream that this module reads; the reason, if there is one, is for people."""


class FlatTable:
    """A table of a flatbuffer; every access is checked against the buffer's end."""

    __slots__ = ("_at", "_data", "_size", "_vtable")

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        self._vtable = at - self._number("<i", at)
        self._size = self._number("<H", self._vtable)
        if self._size < 4 or self._size % 2 or self._vtable + self._size > len(data):
            raise Damaged

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


_CONTINUATION: Final = 0xFFFFFFFF
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_VERSIONS: Final = (3, 4)
_DEEPEST: Final = 4
_ALIGNED: Final = 8
# Bytes. A field of a schema takes more; fewer means that fields share bytes, and small bodies grow.
_LEAST_FIELD: Final = 16

_MOST_BATCHES: Final = 4096
_MOST_ARRAYS: Final = 1 << 16


def read_stream(
    body: bytes | bytearray | memoryview, *, most_rows: int | None = None, name: str = "the body"
) -> Any:
    """The table of an Arrow stream.

    Parameters
    ----------
    body : bytes-like
        The whole stream; the table refers to it.
    most_rows : int, optional
        More are refused before they are decoded.
    name : str
        What the bytes are, for messages.

    Raises
    ------
    DataRefused
        The bytes are not an Arrow stream, state lengths that they do not have, are compressed, have types
        other than numbers, booleans, text, and lists or dictionaries of them, or have more than ``most_rows``
        rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sink = pa.BufferOutputStream()
    >>> with pa.ipc.new_stream(sink, pa.schema({"x": pa.int64()})) as stream:
    ...     stream.write_batch(pa.record_batch({"x": [1, 2]}))
    >>> read_stream(sink.getvalue().to_pybytes()).column("x").to_pylist()
    [1, 2]
    """
    try:
        whole = pyarrow().py_buffer(body)
        if whole.address % _ALIGNED:
            whole = pyarrow().py_buffer(bytes(body))
        _check(memoryview(whole).cast("B"), most_rows)
        return _table(whole)
    except Exception as error:
        # PyArrow's own words may quote data.
        reason = str(error) if isinstance(error, Damaged) else ""
    rule = f"{name} cannot be read as an Arrow stream: {reason or 'it is damaged'}"
    raise DataRefused(rule, remedy="write one with pyarrow.ipc")


def _table(whole: Any) -> Any:
    """The batches of a stream whose metadata were checked, each validated in full."""
    with pyarrow("ipc").open_stream(whole) as reader:
        if not all(map(_is_plain, reader.schema.types)):
            raise Damaged("it has columns that are neither numbers, text nor lists")
        batches = []
        for batch in reader:
            try:
                batch.validate(full=True)
            except pyarrow().ArrowInvalid:
                # Its own words may quote data.
                raise Damaged("a column does not agree with its bytes") from None
            batches.append(batch)
        return pyarrow().Table.from_batches(batches, schema=reader.schema).replace_schema_metadata(None)


def _is_plain(kind: Any, inside: bool = False) -> bool:
    """Whether a type is of numbers or text, or lists or dictionaries of them."""
    types = pyarrow().types
    if isinstance(kind, pyarrow().BaseExtensionType):
        return _is_plain(kind.storage_type, inside)
    if types.is_dictionary(kind):
        return not inside and _is_plain(kind.value_type, True)
    if is_any_list(kind):
        return getattr(kind, "list_size", 1) > 0 and _is_plain(kind.value_type, True)
    text = types.is_string(kind) or types.is_large_string(kind)
    return bool(text or is_number_type(kind) or types.is_null(kind))


def _check(data: memoryview, most_rows: int | None) -> None:
    """Compare what the metadata of a stream state with its bytes; raises Damaged."""
    rows, batches, fields = 0, 0, None
    # No column has more values than bits were received; only columns of nulls take no bytes at all.
    longest = max(8 * len(data), most_rows or 0)
    for message, metadata, body in _messages(data):
        kind, described = message.number(1, "<B"), message.table(2)
        if fields is None:
            if kind != _SCHEMA or described.number(0, "<h"):
                raise Damaged("it has no schema, or its numbers are big-endian")
            fields = _fields(described.tables(1), 1, min(metadata // _LEAST_FIELD, _MOST_ARRAYS))
            continue
        batches += 1
        if batches > _MOST_BATCHES or batches * fields > _MOST_ARRAYS:
            raise Damaged("it has too many small batches")
        if kind == _DICTIONARY:
            if described.number(2, "<B"):
                raise Damaged("its dictionaries change on the way")
            described = described.table(1)
        elif kind != _BATCH:
            raise Damaged
        if described.has(3):
            raise Damaged("it is compressed, and must be plain")
        length = described.number(0, "<q")
        for values, missing in ((length, 0), *described.pairs(1)):
            if not 0 <= missing <= values <= longest:
                raise Damaged("a column is longer than its bytes")
        for start, size in described.pairs(2):
            if start < 0 or size < 0 or start + size > body or start % _ALIGNED:
                raise Damaged("a buffer lies beyond the bytes received")
        rows += length if kind == _BATCH else 0
        if most_rows is not None and rows > most_rows:
            raise Damaged(f"it has more than {most_rows} rows")
    if fields is None:
        raise Damaged("it has no schema")


def _fields(described: Iterator[FlatTable], depth: int, most: int) -> int:
    """How many columns there are, with those inside of lists."""
    number = 0
    for each in described:
        each.text(0)
        number += 1
        if number > most or depth > _DEEPEST:
            raise Damaged("it has too many columns")
        number += _fields(each.tables(5), depth + 1, most - number)
    return number


def _messages(data: memoryview) -> Iterator[tuple[FlatTable, int, int]]:
    """The metadata of every message, their size, and that of its body."""
    at, end = 0, len(data)
    while at < end:
        if end - at < 8:
            raise Damaged("it ends too early")
        marker, size = struct.unpack_from("<II", data, at)
        if marker != _CONTINUATION:
            raise Damaged
        at += 8
        if not size:
            if at != end:
                raise Damaged("something follows its end")
            return
        if size > end - at:
            raise Damaged("it ends too early")
        metadata = data[at : at + size]
        message = FlatTable(metadata, struct.unpack_from("<I", metadata)[0])
        at += size
        length = message.number(3, "<q")
        if message.number(0, "<h") not in _VERSIONS or not 0 <= length <= end - at or at % _ALIGNED:
            raise Damaged("it ends too early, or is of a version that is not read here")
        yield message, size, length
        at += length
