"""Arrow streams from outside, read without trust: every length and offset is checked before it is used.

PyArrow's reader trusts the lengths that a stream states: a batch of ten values that states five thousand is
read beyond its end, and wrong offsets abort the process. This module therefore reads a stream's metadata
itself, which Arrow stores as flatbuffers (https://arrow.apache.org/docs/format/Columnar.html,
https://flatbuffers.dev/internals/). It checks that every buffer lies within
the bytes received and is as long as its column needs, and only then hands the buffers to PyArrow, which
validates in full what depends on values: offsets, dictionary indices, UTF-8.

The module reads numbers, booleans, text, lists and dictionaries of them, which records and queries consist
of. It reads no compressed streams. It copies only buffers that are not aligned.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from hushsum.errors import DataRefused

from ._arrow import pyarrow

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
_NULL, _INT, _FLOAT, _UTF8, _BOOL = 1, 2, 3, 5, 6
_LIST, _FIXED_LIST, _LARGE_UTF8, _LARGE_LIST = 12, 16, 20, 21
_VERSIONS: Final = (3, 4)
_DEEPEST: Final = 4
# Bytes. A field of a schema takes more; fewer means that fields share bytes, and small bodies grow.
_LEAST_FIELD: Final = 16

_MOST_BATCHES: Final = 4096
_MOST_ARRAYS: Final = 1 << 16
_OTHER_TYPE: Final = "it has columns that are neither numbers, text nor lists"


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
        return _Reader(memoryview(body).cast("B"), most_rows).table()
    except Damaged as error:
        reason = error.reason
    except (struct.error, UnicodeDecodeError, OverflowError, ValueError, TypeError, pyarrow().ArrowException):
        # PyArrow's own words may quote data.
        reason = "it is damaged"
    raise DataRefused(
        f"{name} cannot be read as an Arrow stream: {reason}", remedy="write one with pyarrow.ipc"
    ) from None


@dataclass(frozen=True, slots=True)
class _Field:
    """A column of the schema; ``kind`` is the type of its values, ``index`` is a dictionary's indices."""

    name: str
    kind: Any
    code: int
    width: int
    children: tuple[_Field, ...] = ()
    dictionary: int | None = None
    index: _Field | None = None


@dataclass(slots=True)
class _Batch:
    """The nodes and buffers of one batch, taken in the order of the schema."""

    length: int
    nodes: list[tuple[int, int]]
    buffers: list[tuple[int, int]]
    body: Any
    longest: int
    _node: int = field(default=0, init=False)
    _buffer: int = field(default=0, init=False)

    def next_node(self) -> tuple[int, bool]:
        """A column's length and whether it has missing values."""
        if self._node >= len(self.nodes):
            raise Damaged
        length, missing = self.nodes[self._node]
        self._node += 1
        if not 0 <= missing <= length <= self.longest:
            raise Damaged("a column is longer than its bytes")
        return length, missing > 0

    def next_buffer(self, least: int) -> Any:
        """The next buffer, aligned, which must have at least that many bytes."""
        if self._buffer >= len(self.buffers):
            raise Damaged
        start, size = self.buffers[self._buffer]
        self._buffer += 1
        if start < 0 or size < 0 or start + size > self.body.size:
            raise Damaged("a buffer lies beyond the bytes received")
        if size < least:
            raise Damaged("a column is longer than its bytes")
        buffer = self.body.slice(start, size)
        return buffer if buffer.address % 8 == 0 else pyarrow().py_buffer(buffer.to_pybytes())

    def finish(self) -> None:
        if self._node != len(self.nodes) or self._buffer != len(self.buffers):
            raise Damaged


class _Reader:
    def __init__(self, body: memoryview, most_rows: int | None) -> None:
        self._body = body
        self._whole = pyarrow().py_buffer(body)
        self._most_rows = most_rows
        self._fields: list[_Field] = []
        self._counted = 0
        self._dictionaries: dict[int, Any] = {}
        self._fields_left = 0

    def table(self) -> Any:
        pa = pyarrow()
        columns: list[list[Any]] = []
        rows, batches, started = 0, 0, False
        for message, body in self._messages():
            kind = message.number(1, "<B")
            if (kind == _SCHEMA) == started:
                raise Damaged
            if kind == _SCHEMA:
                self._read_schema(message.table(2))
                columns = [[] for _ in self._fields]
                started = True
                continue
            batches += 1
            if batches > _MOST_BATCHES or batches * self._counted > _MOST_ARRAYS:
                raise Damaged("it has too many small batches")
            if kind == _DICTIONARY:
                self._read_dictionary(message.table(2), body)
            elif kind == _BATCH:
                batch = self._batch(message.table(2), body)
                rows += batch.length
                if self._most_rows is not None and rows > self._most_rows:
                    raise Damaged(f"it has more than {self._most_rows} rows")
                for column, each in zip(columns, self._fields, strict=True):
                    array = self._array(each, batch, batch.length)
                    array.validate(full=True)
                    if batch.length:
                        column.append(array)
                batch.finish()
            else:
                raise Damaged
        if not started:
            raise Damaged("it has no schema")
        kinds = [
            each.kind if each.index is None else pa.dictionary(each.index.kind, each.kind)
            for each in self._fields
        ]
        chunks = [pa.chunked_array(column, type=kind) for column, kind in zip(columns, kinds, strict=True)]
        names = [pa.field(each.name, kind) for each, kind in zip(self._fields, kinds, strict=True)]
        return pa.Table.from_arrays(chunks, schema=pa.schema(names))

    def _messages(self) -> Iterator[tuple[FlatTable, Any]]:
        """Every message's metadata and body."""
        at, end = 0, len(self._body)
        while at < end:
            if end - at < 8:
                raise Damaged("it ends too early")
            marker, size = struct.unpack_from("<II", self._body, at)
            if marker != _CONTINUATION:
                raise Damaged
            at += 8
            if not size:
                if at != end:
                    raise Damaged("something follows its end")
                return
            if size > end - at:
                raise Damaged("it ends too early")
            metadata = self._body[at : at + size]
            message = FlatTable(metadata, struct.unpack_from("<I", metadata)[0])
            self._fields_left = size // _LEAST_FIELD
            at += size
            length = message.number(3, "<q")
            if message.number(0, "<h") not in _VERSIONS or not 0 <= length <= end - at:
                raise Damaged("it ends too early, or is of a version that is not read here")
            yield message, self._whole.slice(at, length)
            at += length

    def _read_schema(self, schema: FlatTable) -> None:
        if schema.number(0, "<h"):
            raise Damaged("its numbers are big-endian")
        self._fields = [self._field(each, 1) for each in schema.tables(1)]

    def _field(self, described: FlatTable, depth: int) -> _Field:
        self._fields_left -= 1
        self._counted += 1
        if self._fields_left < 0 or self._counted > _MOST_ARRAYS or depth > _DEEPEST:
            raise Damaged("it has too many columns")
        name = described.text(0)
        children = tuple(self._field(each, depth + 1) for each in described.tables(5))
        code = described.number(2, "<B")
        kind, width = _kind_of(code, described, children)
        if not described.has(4):
            return _Field(name, kind, code, width, children)
        encoding = described.table(4)
        if encoding.number(3, "<h") or depth > 1:
            raise Damaged("it has dictionaries inside of lists")
        index, index_width = _integer(encoding.table(1)) if encoding.has(1) else (pyarrow().int32(), 32)
        return _Field(
            name, kind, code, width, children, encoding.number(0, "<q"), _Field("", index, _INT, index_width)
        )

    def _batch(self, described: FlatTable, body: Any) -> _Batch:
        if described.has(3):
            raise Damaged("it is compressed, and must be plain")
        length = described.number(0, "<q")
        # No column has more values than bits were received; only columns of nulls take no bytes at all.
        longest = max(8 * len(self._body), self._most_rows or 0)
        if not 0 <= length <= longest:
            raise Damaged("a column is longer than its bytes")
        return _Batch(length, described.pairs(1), described.pairs(2), body, longest)

    def _read_dictionary(self, described: FlatTable, body: Any) -> None:
        id = described.number(0, "<q")
        found = next((each for each in self._fields if each.dictionary == id), None)
        if found is None or described.number(2, "<B"):
            raise Damaged("its dictionaries change on the way")
        batch = self._batch(described.table(1), body)
        values = _Field(found.name, found.kind, found.code, found.width, found.children)
        array = self._array(values, batch, batch.length)
        array.validate(full=True)
        batch.finish()
        self._dictionaries[id] = array

    def _array(self, each: _Field, batch: _Batch, rows: int | None) -> Any:
        """The next column of a batch; its length must be ``rows`` where that is known."""
        pa = pyarrow()
        if each.dictionary is not None and each.index is not None:
            indices = self._array(each.index, batch, rows)
            indices.validate(full=True)
            values = self._dictionaries.get(each.dictionary)
            if values is None or values.type != each.kind:
                raise Damaged("a dictionary is missing")
            # safe=True compares every index with the dictionary's length.
            return pa.DictionaryArray.from_arrays(indices, values, safe=True)
        length, missing = batch.next_node()
        if rows is not None and length != rows:
            raise Damaged("its columns differ in length")
        if each.code == _NULL:
            return pa.nulls(length)
        validity = batch.next_buffer(-(-length // 8) if missing else 0)
        buffers = [validity if missing else None]
        if each.code in (_UTF8, _LARGE_UTF8, _LIST, _LARGE_LIST):
            buffers.append(batch.next_buffer((length + 1) * each.width // 8 if length else 0))
        if each.code in (_UTF8, _LARGE_UTF8):
            buffers.append(batch.next_buffer(0))
        elif each.code in (_INT, _FLOAT, _BOOL):
            buffers.append(batch.next_buffer(-(-length * each.width // 8)))
        children = [self._array(child, batch, None) for child in each.children]
        if each.code == _FIXED_LIST and len(children[0]) != length * each.width:
            raise Damaged("a column is longer than its bytes")
        if not length:
            # Without rows a column may come without offsets, which PyArrow does not take.
            return pa.array([], type=each.kind)
        return pa.Array.from_buffers(each.kind, length, buffers, children=children or None)


def _kind_of(code: int, described: FlatTable, children: tuple[_Field, ...]) -> tuple[Any, int]:
    """The Arrow type, and the bits of a value, of an offset, or the values of a fixed-size list."""
    if len(children) != (code in (_LIST, _LARGE_LIST, _FIXED_LIST)):
        raise Damaged(_OTHER_TYPE)
    about = described.table(3)
    if code == _INT:
        return _integer(about)
    if code == _FLOAT:
        return _simple(_FLOAT, about.number(0, "<h"))
    if not children:
        return _simple(code)
    pa = pyarrow()
    child = pa.field(children[0].name, children[0].kind)
    if code == _FIXED_LIST:
        size = about.number(0, "<i")
        if size < 1:
            raise Damaged("it has lists without a size")
        return pa.list_(child, size), size
    return (pa.list_(child), 32) if code == _LIST else (pa.large_list(child), 64)


def _integer(about: FlatTable) -> tuple[Any, int]:
    return _simple(_INT, about.number(0, "<i"), about.number(1, "<B"))


def _simple(code: int, *detail: int) -> tuple[Any, int]:
    kind = _simple_kinds().get((code, *detail))
    if kind is None:
        raise Damaged(_OTHER_TYPE)
    return kind


@cache
def _simple_kinds() -> dict[tuple[int, ...], tuple[Any, int]]:
    """Types without children, and the bits of a value or an offset."""
    pa = pyarrow()
    integers: dict[tuple[int, ...], tuple[Any, int]] = {
        (_INT, bits, signed): (getattr(pa, f"{'' if signed else 'u'}int{bits}")(), bits)
        for bits in (8, 16, 32, 64)
        for signed in (0, 1)
    }
    return {
        **integers,
        (_FLOAT, 0): (pa.float16(), 16),
        (_FLOAT, 1): (pa.float32(), 32),
        (_FLOAT, 2): (pa.float64(), 64),
        (_NULL,): (pa.null(), 0),
        (_BOOL,): (pa.bool_(), 1),
        (_UTF8,): (pa.string(), 32),
        (_LARGE_UTF8,): (pa.large_string(), 64),
    }
