"""Parquet files, Arrow files and workbooks, decoded in a process of its own."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from hushsum.errors import Argument, DataRefused, FilePath, UsageError, Words, shown

from ._arrow import is_any_list, is_number_type, is_text, pyarrow
from ._arrow_stream import read_stream
from ._cell_format import PLAIN, CellFormat, with_column, without_missing
from ._decoder_worker import HEADER, receive_exactly
from ._decoder_worker import __file__ as _WORKER
from ._source import Source

_MOST_BYTES: Final = 1 << 30
# Environment variables for the process; it has no use for keys and tokens, which others may contain.
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")

_LIMITS: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class DecoderDied(Exception):
    """The process that read a file died, or sent what it should not."""


class Decoder:
    """A connection to a process that reads one file; see `hushsum.records`."""

    def __init__(self) -> None:
        for _ in range(3):
            self._socket, theirs = socket.socketpair()
            try:
                with theirs, _lock:
                    socket.send_fds(_control(), [b"f"], [theirs.fileno()])
                self.receive()
                return
            except (OSError, DecoderDied):
                # The program that forks had ended, being idle, when the connection reached it.
                self.close()
                _forget()
        raise UsageError(
            "no process can be started to decode files in", remedy="check the limits of this system"
        )

    def send(self, **content: object) -> None:
        """Send JSON."""
        data = json.dumps(content).encode()
        # If it has died, receiving finds that out.
        with suppress(OSError):
            self._socket.sendall(HEADER.pack(b"j", len(data), 0.0) + data)

    def receive(self) -> tuple[bytes, bytearray, float]:
        """The kind of the next message, its content and the progress; DecoderDied if there is none."""
        head = receive_exactly(self._socket, HEADER.size)
        if head is None:
            raise DecoderDied
        kind, size, progress = HEADER.unpack(head)
        expected = size <= _MOST_BYTES and 0.0 <= progress <= 1.0
        content = receive_exactly(self._socket, size) if expected else None
        if content is None:
            raise DecoderDied
        return kind, content, progress

    def close(self) -> None:
        """End the connection and with it the process."""
        self._socket.close()


_lock = threading.Lock()
_running: tuple[int, subprocess.Popen[bytes], socket.socket] | None = None


def _control() -> socket.socket:
    """The socket of the program that forks, which is started if it does not run."""
    global _running
    if _running is not None and _running[0] == os.getpid() and _running[1].poll() is None:
        return _running[2]
    if _running is not None:
        # It ended, being idle, or belongs to a parent, which has its own copy of the socket.
        _running[2].close()
        _running = None
    if not sys.executable:
        raise UsageError(
            "Parquet and Arrow files need a Python program to decode them in", remedy="give CSV instead"
        )
    control, theirs = socket.socketpair()
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", str(Path(_WORKER)), json.dumps(sys.path)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**environment, **_LIMITS},
            start_new_session=True,
        )
    _running = (os.getpid(), process, control)
    return control


@atexit.register
def _forget() -> None:
    """End the program that forks, unless it belongs to a parent of this process."""
    global _running
    with _lock:
        if _running is not None and _running[0] == os.getpid():
            _running[1].kill()
            _running[1].wait()
        if _running is not None:
            _running[2].close()
        _running = None


_LARGEST_RATIO: Final = 10_000
_ALWAYS_ALLOWED: Final = 64 << 20
# Of which a message has the names.
_MOST_SHEETS: Final = 12


class ColumnarSource(Source):
    """A Parquet or an Arrow (Feather) file.

    A file that kills the process which decodes it, needs more memory than that process has, or unfolds to
    more than 10,000 times its size is refused; this process continues. ``fetch`` copies bytes of a file that
    is elsewhere, of which only the end is here before.
    """

    typed = True

    def __init__(
        self,
        path: Path,
        name: str,
        kind: str,
        batch_bytes: int,
        row_groups: range | None = None,
        cells: CellFormat = PLAIN,
        fetch: Callable[[int, int], None] | None = None,
        first: int = 1,
    ) -> None:
        super().__init__(name, cells, first=first)
        self._kind = kind
        self._fetch = fetch
        self._dates: list[str] = []
        self._written: list[str] = []
        self._left = _ALWAYS_ALLOWED + _LARGEST_RATIO * path.stat().st_size
        self._decoder = Decoder()
        self.closing.callback(self._decoder.close)
        try:
            self._decoder.send(
                kind=kind,
                path=str(path.absolute()),
                batch_bytes=batch_bytes,
                row_groups=None if row_groups is None else [row_groups.start, row_groups.stop],
                sheet=cells.sheet,
            )
            described = self._json()
        except BaseException:
            self.close()
            raise
        self.column_names = described["columns"]
        self.row_group_sizes: list[int] = described["row_groups"]
        self._ranges: list[tuple[int, int]] = described["ranges"]

    def check_types(self) -> None:
        """Check the types that the schema declares."""
        types, schema = self._described()
        numbers, set_column = self.numbers, self.set_column
        other, dates = types["other"], types["dates"]
        if self.mixed:
            nested = pyarrow().types.is_nested
            wrong = {**other, **dict.fromkeys(dates, "dates")}
            wrong |= {each.name: each.type for each in schema if nested(each.type)}
            for column, kind in wrong.items():
                raise self._wrong_type(column, _MIXED, kind)
            return
        declared = self.cells.dates.columns
        self._dates = [column for column in numbers if column in dates and column in declared]
        undeclared = {column: "dates" for column in dates if column not in self._dates}
        for column, kind in {**other, **undeclared}.items():
            if column not in (*numbers, set_column):
                raise self._wrong_type(column, "numbers or text", kind)
            raise self._wrong_kind(column, kind)
        text = [column for column in numbers if is_text(schema.field(column).type)]
        for column in numbers:
            if column in declared and column not in (*self._dates, *text):
                raise self._wrong_type(column, "dates", "numbers", "leave it out of the dates")
        # Markers of missing values make text of a column of numbers, which is read as in CSV.
        self._written = [column for column in text if column in declared or self.cells.missing]
        for column in (*numbers, *([] if set_column is None else [set_column])):
            kind = schema.field(column).type
            listed = is_any_list(kind)
            inner = kind.value_type if listed else kind
            sets = listed and pyarrow().types.is_integer(inner)
            if column not in self._written and not (sets if column == set_column else is_number_type(inner)):
                categories = pyarrow().types.is_dictionary(kind) and column != set_column
                raise self._wrong_kind(column, "categories" if categories else kind)

    def batches(self) -> Generator[Any, None, None]:
        """Take the batches that arrive."""
        # Not before: row groups are fetched after the columns were checked.
        if self._fetch is not None:
            for start, end in self._ranges:
                self._fetch(start, end)
        self._decoder.send(read=True)
        while (table := self._batch()) is not None:
            for batch in table.to_batches():
                yield self._converted(batch)
                self.faults.end_batch(batch.num_rows)

    def _converted(self, batch: Any) -> Any:
        """The batch with numbers in place of declared dates, and of text that writes numbers."""
        for column in (*self._dates, *self._written):
            found = batch.column(column)
            if column in self._written:
                numbers = self.cells.read(found, column, self.faults)
            else:
                numbers = self.cells.dates.from_microseconds(found)
            batch = with_column(batch, column, numbers)
        return batch

    def _described(self) -> tuple[dict[str, Any], Any]:
        """The types of the chosen columns that need care, and the schema of the batches."""
        self._decoder.send(columns=self.columns)
        types = self._json()
        empty = self._batch()
        if empty is None:
            raise self._unreadable()
        return types, empty.schema

    def _json(self) -> dict[str, Any]:
        kind, content = self._receive()
        if kind != b"j":
            raise self._unreadable()
        found: dict[str, Any] = json.loads(content)
        return found

    def _batch(self) -> Any | None:
        """The next table; None at the end."""
        kind, content = self._receive()
        if kind == b"e":
            return None
        if kind != b"b":
            raise self._unreadable()
        self._left -= len(content)
        if self._left < 0:
            raise DataRefused(
                (FilePath(self.name), f" must not unfold to more than {_LARGEST_RATIO} times its size"),
                remedy="check what wrote it, or write it without compression",
            )
        try:
            return read_stream(content)
        except DataRefused:
            raise self._unreadable() from None

    def _receive(self) -> tuple[bytes, bytearray]:
        try:
            kind, content, self.progress = self._decoder.receive()
        except DecoderDied:
            raise self._unreadable() from None
        described = json.loads(content) if kind == b"j" else {}
        match described.get("refused"):
            case None:
                return kind, content
            case "memory":
                raise DataRefused(
                    (FilePath(self.name), " needs more memory to decode than a file may take"),
                    remedy="check what wrote it, or write it in smaller pages and batches",
                )
            case "sheet":
                # Names of sheets are shown as those of columns are: they belong to whoever owns the file.
                sheets = [*map(repr, described["sheets"])]
                listed = sheets if len(sheets) <= _MOST_SHEETS else [*sheets[:_MOST_SHEETS], "…"]
                raise UsageError(
                    "sheet",
                    ("must name a sheet of ", FilePath(self.name)),
                    got=shown(self.cells.sheet),
                    remedy=f"the sheets are {', '.join(listed)}",
                )
            case _:
                raise self._unreadable()

    def _unreadable(self) -> DataRefused:
        """The refusal of the file, without the engine's own words, which may quote data."""
        return DataRefused(
            (FilePath(self.name), f" cannot be read as {self._kind}"),
            remedy="it is damaged, or of another kind than its name states",
        )

    def _wrong_kind(self, column: str, kind: object) -> DataRefused:
        """The refusal of a column that is neither of numbers nor of sets, whichever was chosen."""
        if column == self.set_column:
            remedy = "number the members with a public list of them"
            return self._wrong_type(column, "lists of integers", kind, remedy)
        dates = kind == "dates"
        return self._wrong_type(column, "numbers", kind, _DECLARE_DATES if dates else _ENCODE)

    def _wrong_type(
        self, column: str, wanted: str, kind: object, remedy: Words = "convert it"
    ) -> DataRefused:
        """The refusal of a column by its type, or by that of one of its cells."""
        return DataRefused(
            (f"column {column!r} of ", FilePath(self.name), f" must be of {wanted}"),
            got=str(kind),
            remedy=remedy,
        )


_MIXED: Final = "numbers, text or truth values"
_ENCODE: Final = "encode it with a public list of categories, or leave the column out"
_DECLARE_DATES: Final[Words] = ("name the column in ", Argument("dates"))
# Columns that the process sends for each chosen one: numbers, moments and text.
_KINDS: Final = 3

# From here on different integers are the same cell.
_LARGEST_ID: Final = 2.0**53


class WorkbookSource(ColumnarSource):
    """One sheet of a workbook, whose first row names the columns.

    A cell is read by its own type: a number, a date, or text, which is read as in CSV files. What others of
    its column are makes no difference to it.
    """

    typed = False

    def __init__(self, path: Path, name: str, batch_bytes: int, cells: CellFormat) -> None:
        if find_spec("openpyxl") is None:
            raise UsageError(
                (FilePath(name), " needs the package openpyxl to be read"),
                remedy="install hushsum[excel], or export the sheet as CSV",
            )
        super().__init__(path, name, "Excel", batch_bytes, cells=cells, first=2)
        try:
            self.check_names(self.column_names)
        except (DataRefused, UsageError):
            self.close()
            raise

    def check_types(self) -> None:
        """Cells have types of their own, whatever their column."""
        if self.set_column is not None:
            raise UsageError(
                "set_column",
                "must be a column of a CSV, Parquet or Arrow file",
                got="a workbook",
                remedy="export the sheet as CSV",
            )
        self._described()

    def _converted(self, batch: Any) -> Any:
        if batch.num_columns != _KINDS * len(self.columns):
            raise self._unreadable()
        read = [
            self._column(name, *batch.columns[_KINDS * place : _KINDS * (place + 1)])
            for place, name in enumerate(self.columns)
        ]
        return pyarrow().RecordBatch.from_arrays(read, names=self.columns)

    def _column(self, name: str, numbers: Any, moments: Any, text: Any) -> Any:
        compute = pyarrow("compute")
        if self.mixed and moments.null_count < len(moments):
            raise self._wrong_type(name, _MIXED, "dates")
        if name not in self.numbers:
            largest = compute.max(compute.abs(numbers)).as_py()
            if largest is not None and largest >= _LARGEST_ID:
                raise DataRefused(
                    (f"numbers in column {name!r} of ", FilePath(self.name), " must be less than 2**53"),
                    got="a larger id, which a workbook rounds",
                    remedy="store the ids as text",
                )
            # A person who is 5 here is the person 5 of other files.
            whole = compute.if_else(
                compute.equal(numbers, compute.floor(numbers)),
                numbers.cast(pyarrow().int64(), safe=False).cast(pyarrow().string()),
                numbers.cast(pyarrow().string()),
            )
            return compute.coalesce(text, whole)
        dates = name in self.cells.dates.columns
        if dates and numbers.null_count < len(numbers):
            raise self._wrong_type(name, "dates", "numbers", "leave it out of the dates")
        if not dates and moments.null_count < len(moments):
            raise self._wrong_type(name, "numbers", "dates", _DECLARE_DATES)
        if self.mixed:
            text = without_missing(text, self.cells.markers)
        own = self.cells.dates.from_microseconds(moments) if dates else numbers
        return compute.coalesce(own, self.cells.read(text, name, self.faults))
