"""The program that decodes Parquet files, Arrow files and workbooks for another process, and may die of it.

A damaged or hostile file can make the libraries below abort, read beyond their buffers or allocate gigabytes.
They run here instead: :mod:`hushsum.records` starts this program, which imports PyArrow once
and forks a process for every file, under a memory limit and without the environment of its parent. Each batch
is validated in full and sent back as a plain Arrow stream, which `hushsum.records` checks again.

A workbook is a zip archive of XML, which can be made to unfold to terabytes, or to expand entities: the sizes
that the archive states are checked first, of which ``zipfile`` reads no more, and every part that declares a
document type is refused. The rest is bounded by the memory limit of the process.

The program imports nothing of Hushsum, which would take longer than PyArrow.

A message has the header ``<cQd``: kind, length, progress. This program sends ``r`` (ready), ``j`` (JSON),
``b`` (a batch) and ``e`` (the end), and receives ``j``.
"""

from __future__ import annotations

import datetime
import errno
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import zipfile
from collections.abc import Iterator
from importlib import import_module
from itertools import chain, islice, repeat
from typing import Any, Final
from xml.parsers import expat

__all__ = ["receive_exactly"]

MOST_PARTS: Final = 10_000
MOST_RATIO: Final = 200
ALWAYS_ALLOWED: Final = 64 << 20
MOST_BYTES: Final = 4 << 30
_PIECE: Final = 1 << 16
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_CELL_BYTES: Final = 64

# A cell is a number, a moment in microseconds, or text; all three are None where it is empty.
Cell = tuple[float | None, int | None, str | None]


class Refused(Exception):
    """A workbook that is not read; no message quotes it."""


class NoSuchSheet(Exception):
    """A workbook without the requested sheet; ``names`` are those of the sheets it has."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names


def cell_of(value: object) -> Cell:
    """What a cell contains.

    >>> cell_of(3), cell_of("a"), cell_of(datetime.date(1970, 1, 2))
    ((3.0, None, None), (None, None, 'a'), (None, 86400000000, None))
    """
    if value is None:
        return None, None, None
    if isinstance(value, datetime.datetime):
        return None, (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND, None
    if isinstance(value, datetime.date):
        return None, (datetime.datetime(value.year, value.month, value.day) - _EPOCH) // _MICROSECOND, None
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value), None, None
    return None, None, str(value)


def check_archive(path: str) -> None:
    """Refuse an archive that unfolds to much more than its size, or a part that declares a document type."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        stored = sum(each.compress_size for each in parts)
        unfolded = sum(each.file_size for each in parts)
        most = min(MOST_BYTES, ALWAYS_ALLOWED + MOST_RATIO * stored)
        encrypted = any(each.flag_bits & 1 for each in parts)
        if len(parts) > MOST_PARTS or unfolded > most or encrypted:
            raise Refused
        for each in parts:
            if each.filename.lower().endswith((".xml", ".rels", ".vml")):
                _check_prolog(archive, each)


def _check_prolog(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
    """Read up to the first element, before which a document type would have to be."""
    done: list[bool] = []

    def refuse(*_: object) -> None:
        raise Refused

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = lambda *_: done.append(True)
    with archive.open(part) as stream:
        while not done and (piece := stream.read(_PIECE)):
            parser.Parse(piece, False)


HEADER: Final = struct.Struct("<cQd")
IDLE_SECONDS: Final = 60.0
MEMORY_BYTES: Final = 512 << 20
# What each chosen column may need in addition: a page as it is stored, and as it is unpacked.
COLUMN_BYTES: Final = 4 << 20

MOST_MEMORY_BYTES: Final = 4 << 30
MOST_SHEETS: Final = 100
_NUMBER_BYTES: Final = 8


def serve(control: socket.socket) -> None:
    """Fork a process for every connection that arrives; end when none came for a while."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while select.select([control], [], [], IDLE_SECONDS)[0]:
        data, connections, _, _ = socket.recv_fds(control, 1, 1)
        if not data or not connections:
            return
        if os.fork() == 0:
            control.close()
            try:
                _Decoder(socket.socket(fileno=connections[0])).run()
            finally:
                os._exit(0)
        os.close(connections[0])


class _Decoder:
    """Sends the columns of one file, the types of the chosen ones, then batch after batch."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer

    def run(self) -> None:
        self._send(b"r")
        request = self._receive()
        _limit_memory(MEMORY_BYTES)
        try:
            self._answer(request)
        except (MemoryError, OSError) as error:
            short = isinstance(error, MemoryError) or error.errno == errno.ENOMEM
            self._send_json({"refused": "memory" if short else "damaged"})
        except Exception:
            # The libraries' own messages may quote data, so none of them leaves this process.
            self._send_json({"refused": "damaged"})

    def _answer(self, request: dict[str, Any]) -> None:
        readers: dict[str, type[_Workbook | _Parquet | _Arrow]] = {"Excel": _Workbook, "Parquet": _Parquet}
        try:
            source = readers.get(request["kind"], _Arrow)(request)
        except NoSuchSheet as error:
            self._send_json({"refused": "sheet", "sheets": error.names[:MOST_SHEETS]})
            return
        self._send_json(
            {"columns": source.names, "row_groups": source.row_group_sizes, "ranges": source.row_group_ranges}
        )
        chosen = self._receive()["columns"]
        _limit_memory(min(MOST_MEMORY_BYTES, MEMORY_BYTES + COLUMN_BYTES * len(chosen)))
        types, schema = source.described(chosen)
        self._send_json(types)
        self._send(b"b", _stream(schema, []))
        self._receive()
        # From here on the peer sends nothing, so the end of its connection is the end of the work.
        threading.Thread(target=self._end_with_peer, daemon=True).start()
        for columns, progress in source.batches(chosen):
            batch = _pyarrow().RecordBatch.from_arrays(columns, schema=schema)
            self._send(b"b", _stream(schema, [batch]), min(max(progress, 0.0), 1.0))
        self._send(b"e", progress=1.0)

    def _end_with_peer(self) -> None:
        self._peer.recv(1)
        os._exit(0)

    def _send_json(self, content: dict[str, Any]) -> None:
        self._send(b"j", json.dumps(content).encode())

    def _send(self, kind: bytes, content: Any = b"", progress: float = 0.0) -> None:
        view = memoryview(content)
        self._peer.sendall(HEADER.pack(kind, view.nbytes, progress))
        self._peer.sendall(view)

    def _receive(self) -> dict[str, Any]:
        head = receive_exactly(self._peer, HEADER.size)
        content = None if head is None else receive_exactly(self._peer, HEADER.unpack(head)[1])
        if content is None:
            os._exit(0)
        found: dict[str, Any] = json.loads(content)
        return found


def receive_exactly(peer: socket.socket, size: int) -> bytearray | None:
    """The next bytes; None if the other side is gone."""
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        try:
            count = peer.recv_into(view[at:])
        except OSError:
            count = 0
        if not count:
            return None
        at += count
    return data


class _Workbook:
    """The rows of one sheet; the first row names the columns.

    Each chosen column is sent as three: its numbers, its dates and times, and its texts.
    """

    row_group_sizes: Final[list[int]] = []
    row_group_ranges: Final[list[list[int]]] = []

    def __init__(self, request: dict[str, Any]) -> None:
        path, sheet = request["path"], request["sheet"]
        check_archive(path)
        openpyxl: Any = import_module("openpyxl")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        if sheet is not None and sheet not in book.sheetnames:
            raise NoSuchSheet([str(each) for each in book.sheetnames])
        self._sheet = book[sheet] if sheet is not None else book.worksheets[0]
        # The stated size may be wrong, and would be allocated.
        self._sheet.reset_dimensions()
        self._rows: Iterator[tuple[Any, ...]] = self._sheet.iter_rows(values_only=True)
        self._batch_bytes: int = request["batch_bytes"]
        header = next(self._rows, ())
        self.names = ["" if each is None else str(each).strip() for each in header]
        while self.names and not self.names[-1]:
            self.names.pop()

    def described(self, columns: list[str]) -> tuple[dict[str, Any], Any]:
        kinds = _kinds_of_cells()
        schema = [(f"{i} {j}", kind) for i in range(len(columns)) for j, kind in enumerate(kinds)]
        return {"other": {}, "dates": []}, _pyarrow().schema(schema)

    def batches(self, columns: list[str]) -> Iterator[tuple[list[Any], float]]:
        """The cells of the chosen columns, some rows at a time.

        Rows without any cell are left out. In a sheet of one column such a row is a record without a value,
        unless it is after the last one: left out, it would change the number of records, which is public
        where a record is replaced.
        """
        places = [self.names.index(name) for name in columns]
        number = max(1, self._batch_bytes // (_CELL_BYTES * max(1, len(places))))
        filled = self._filled_rows()
        for first in filled:
            rows = list(chain([first], islice(filled, number - 1)))
            cells = [[cell_of(row[place] if place < len(row) else None) for row in rows] for place in places]
            yield (
                [
                    _pyarrow().array([cell[j] for cell in column], kind, from_pandas=False)
                    for column in cells
                    for j, kind in enumerate(_kinds_of_cells())
                ],
                0.0,
            )

    def _filled_rows(self) -> Iterator[tuple[Any, ...]]:
        skipped = 0
        for row in self._rows:
            if all(each is None for each in row):
                skipped += 1
                continue
            if len(self.names) == 1:
                yield from repeat((), skipped)
            skipped = 0
            yield row


def _kinds_of_cells() -> tuple[Any, Any, Any]:
    """The types of the three columns of a `Cell`."""
    pa = _pyarrow()
    return pa.float64(), pa.int64(), pa.string()


class _Typed:
    """A file whose columns have types."""

    row_group_sizes: list[int]
    row_group_ranges: list[list[int]]

    def __init__(self, schema: Any, request: dict[str, Any]) -> None:
        self._schema, self.names = schema, schema.names
        self._batch_bytes: int = request["batch_bytes"]

    def described(self, columns: list[str]) -> tuple[dict[str, Any], Any]:
        """Columns of dates, and the types of those that cannot be read; the schema of the batches."""
        kinds = {name: self._schema.field(name).type for name in columns}
        plain = {name: _plain_type(kind) for name, kind in kinds.items()}
        types = {
            "other": {name: str(kinds[name]) for name in columns if plain[name] is None},
            "dates": [name for name in columns if _is_date(kinds[name])],
        }
        return types, _pyarrow().schema({name: kind or _pyarrow().null() for name, kind in plain.items()})

    def batches(self, columns: list[str]) -> Iterator[tuple[list[Any], float]]:
        """The chosen columns, some rows at a time, and the fraction of all that was read with them."""
        for batch, progress in self._stored(columns):
            batch.validate(full=True)
            yield [_plain(batch.column(name)) for name in columns], progress

    def _stored(self, columns: list[str]) -> Iterator[tuple[Any, float]]:
        raise NotImplementedError


class _Parquet(_Typed):
    """A Parquet file, read in batches of about the requested size."""

    def __init__(self, request: dict[str, Any]) -> None:
        # A buffer of its own makes the reader take pages as they come, instead of whole row groups.
        # Pages that have a checksum are compared with it.
        self._file = _pyarrow("parquet").ParquetFile(
            request["path"], pre_buffer=False, buffer_size=1 << 18, page_checksum_verification=True
        )
        super().__init__(self._file.schema_arrow, request)
        groups = [self._file.metadata.row_group(i) for i in range(self._file.num_row_groups)]
        # The bytes of each row group, unpacked; 0 for one without rows.
        self.row_group_sizes = [max(1, each.total_byte_size) if each.num_rows else 0 for each in groups]
        chosen = request["row_groups"]
        self._chosen = list(range(len(groups)) if chosen is None else range(*chosen))
        # First and last byte of each row group that will be read.
        self.row_group_ranges = [
            [min(start for start, _ in chunks), max(end for _, end in chunks)]
            for number in self._chosen
            if (chunks := [_extent(groups[number].column(i)) for i in range(groups[number].num_columns)])
        ]

    def _stored(self, columns: list[str]) -> Iterator[tuple[Any, float]]:
        stated, read = sum(self._file.metadata.row_group(i).num_rows for i in self._chosen), 0
        for batch in self._file.iter_batches(
            self._rows_at_a_time(columns), row_groups=self._chosen, columns=columns, use_threads=False
        ):
            read += batch.num_rows
            yield batch, read / stated if stated else 1.0

    def _rows_at_a_time(self, columns: list[str]) -> int:
        """How many rows fill a batch: a value counts in full, however well it is compressed."""
        metadata = self._file.metadata
        widest = float(_NUMBER_BYTES)
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            leaves = [group.column(j) for j in range(group.num_columns)]
            size = sum(
                max(leaf.num_values * _NUMBER_BYTES, leaf.total_uncompressed_size)
                for leaf in leaves
                if any(leaf.path_in_schema.startswith(column) for column in columns)
            )
            widest = max(widest, size / max(1, group.num_rows))
        return max(1, int(self._batch_bytes / widest))


def _extent(chunk: Any) -> tuple[int, int]:
    """The first and the last byte of a column of a row group."""
    start = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
    return start, start + chunk.total_compressed_size


class _Arrow(_Typed):
    """An Arrow IPC file, which is Feather version 2; its batches, the large ones in slices."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._map = _pyarrow().memory_map(request["path"])
        super().__init__(_pyarrow("ipc").open_file(self._map).schema, request)
        self.row_group_sizes, self.row_group_ranges = [], []

    def _stored(self, columns: list[str]) -> Iterator[tuple[Any, float]]:
        ipc = _pyarrow("ipc")
        places = sorted(self._schema.get_field_index(name) for name in columns)
        file = ipc.open_file(self._map, options=ipc.IpcReadOptions(included_fields=places, use_threads=False))
        for i in range(file.num_record_batches):
            stored = file.get_batch(i)
            stored.validate(full=True)
            width = max(_NUMBER_BYTES, stored.nbytes / max(1, stored.num_rows))
            rows = max(1, int(self._batch_bytes / width))
            for start in range(0, stored.num_rows, rows):
                yield stored.slice(start, rows), (i + 1) / file.num_record_batches


def _is_date(kind: Any) -> bool:
    types = _pyarrow().types
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _of_dates(kind: Any) -> bool:
    """Whether a type is one of lists or categories of dates, which have no plain form."""
    inner = getattr(kind, "value_type", None)
    return inner is not None and (_is_date(inner) or _of_dates(inner))


def _plain_type(kind: Any) -> Any | None:
    """The type in which a column is sent, which `hushsum.records` reads; None if there is no such type.

    Dates are sent as microseconds.
    """
    pa = _pyarrow()
    types = pa.types
    if _is_date(kind):
        return pa.int64()
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(kind.storage_type)
    if _of_dates(kind):
        return None
    if types.is_dictionary(kind):
        values = _plain_type(kind.value_type)
        simple = values is not None and not types.is_nested(values) and not types.is_dictionary(values)
        return pa.dictionary(pa.int32(), values) if simple else None
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        values = _plain_type(kind.value_type)
        if values is None or types.is_dictionary(values):
            return None
        if types.is_fixed_size_list(kind):
            return pa.list_(values, kind.list_size)
        return pa.list_(values) if types.is_list(kind) else pa.large_list(values)
    if types.is_string_view(kind):
        return pa.large_string()
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    text = types.is_string(kind) or types.is_large_string(kind)
    return kind if number or text or types.is_null(kind) else None


def _plain(array: Any) -> Any:
    """An array in its plain type; a dictionary has the values of this batch alone."""
    pa = _pyarrow()
    while isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if _is_date(array.type):
        zone = getattr(array.type, "tz", None)
        return array.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
    kind: Any = _plain_type(array.type)
    if pa.types.is_dictionary(array.type):
        return array.dictionary.cast(kind.value_type).take(array.indices).dictionary_encode()
    return array if array.type == kind else array.cast(kind)


def _stream(schema: Any, batches: list[Any]) -> Any:
    sink = _pyarrow().BufferOutputStream()
    with _pyarrow("ipc").new_stream(sink, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    return sink.getvalue()


def _limit_memory(most: int) -> None:
    """Limit what this process allocates; files that are mapped do not count, so they may be of any size."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limits = [each for each in (most, hard, _INHERITED) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


_INHERITED: Final = resource.getrlimit(resource.RLIMIT_DATA)[0]


def _pyarrow(part: str = "") -> Any:
    return import_module(f"pyarrow.{part}" if part else "pyarrow")


def main() -> None:
    """Serve the connections that arrive on standard input, which is a socket."""
    sys.path[:] = json.loads(sys.argv[1])
    for part in ("", "ipc", "parquet"):
        _pyarrow(part)
    serve(socket.socket(fileno=0))


if __name__ == "__main__":
    main()
