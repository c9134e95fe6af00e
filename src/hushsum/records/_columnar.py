"""Parquet files, Arrow files and workbooks, decoded in a process of its own."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from hushsum.errors import Argument, DataRefused, FilePath, UsageError, Words, shown
from hushsum.records._arrow import is_any_list, is_number_type, is_text, pyarrow
from hushsum.records._arrow_stream import read_stream
from hushsum.records._cell_format import PLAIN, CellFaults, CellFormat, not_of, without_missing
from hushsum.records._csv import refuse_numbers_as_names
from hushsum.records._decoder_worker import HEADER
from hushsum.records._decoder_worker import __file__ as _WORKER

_MOST_BYTES: Final = 1 << 30
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
"""Environment variables for the process; it has no use for keys and tokens, which others may contain."""

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
        for _ in range(2):
            self._socket = _connect()
            try:
                self.receive()
                return
            except DecoderDied:
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
        kind, size, progress = HEADER.unpack(self._exactly(HEADER.size))
        if size > _MOST_BYTES or not 0.0 <= progress <= 1.0:
            raise DecoderDied
        return kind, self._exactly(size), progress

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view, at = memoryview(data), 0
        while at < size:
            try:
                count = self._socket.recv_into(view[at:])
            except OSError:
                count = 0
            if not count:
                raise DecoderDied
            at += count
        return data

    def close(self) -> None:
        """End the connection and with it the process."""
        self._socket.close()


_lock = threading.Lock()
_running: tuple[int, subprocess.Popen[bytes], socket.socket] | None = None


def _connect() -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        for _ in range(2):
            with _lock:
                control = _control()
                try:
                    socket.send_fds(control, [b"f"], [theirs.fileno()])
                    return ours
                except OSError:
                    pass
            _forget()
    ours.close()
    raise UsageError("no process can be started to decode files in", remedy="check the limits of this system")


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
_MOST_SHEETS: Final = 12
"""Of which a message has the names."""


class ColumnarSource:
    """A Parquet or an Arrow (Feather) file; see `hushsum.records.Source`.

    A file that kills the process which decodes it, needs more memory than that process has, or unfolds to
    more than 10,000 times its size is refused; this process goes on.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        kind: str,
        batch_bytes: int,
        row_groups: range | None = None,
        cells: CellFormat = PLAIN,
    ) -> None:
        self._name = name
        self._cells = cells
        self.faults = CellFaults(name, cells)
        self._dates: list[str] = []
        self._written: list[str] = []
        self._kind = kind
        self._columns: list[str] = []
        self._progress = 0.0
        with path.open("rb") as file:
            self._left = _ALWAYS_ALLOWED + _LARGEST_RATIO * file.seek(0, 2)
        self._decoder = Decoder()
        try:
            chosen = None if row_groups is None else [row_groups.start, row_groups.stop]
            self._decoder.send(
                kind=kind,
                path=str(path.absolute()),
                batch_bytes=batch_bytes,
                row_groups=chosen,
                sheet=cells.sheet,
            )
            described = self._json()
            self.column_names: list[str] = described["columns"]
            self.row_group_sizes: list[int] = described["row_groups"]
            self.row_group_ranges: list[tuple[int, int]] = [(int(a), int(b)) for a, b in described["ranges"]]
        except BaseException:
            self.close()
            raise

    @property
    def progress(self) -> float | None:
        """The fraction of the rows or stored batches that has been read."""
        return self._progress

    def choose(self, columns: Sequence[str], ids: Sequence[str], set_column: str | None) -> None:
        """Check the types that the schema declares."""
        self._columns = [*columns, *ids]
        self._decoder.send(columns=self._columns)
        types = self._json()
        declared = self._cells.dates.columns
        self._dates = [column for column in columns if column in types["dates"] and column in declared]
        undeclared = {column: "dates" for column in types["dates"] if column not in self._dates}
        for column, kind in {**types["other"], **undeclared}.items():
            if column in ids:
                raise DataRefused(
                    f"column {column!r} must be of numbers or text", got=kind, remedy="convert it"
                )
            raise wrong_type(column, kind, sets=column == set_column)
        empty = self._batch()
        if empty is None:
            raise unreadable(self._name, self._kind)
        written = [column for column in columns if column in declared and column not in self._dates]
        for column in written:
            if not is_text(empty.schema.field(column).type):
                raise not_of(column, self._name, "numbers", "leave it out of the dates", dates=True)
        if self._cells.missing:
            # Markers of missing values make text of a column of numbers, which is read as in CSV.
            others = [each for each in columns if each not in (*written, set_column)]
            written += [each for each in others if is_text(empty.schema.field(each).type)]
        refuse_other_types(empty.schema, [each for each in columns if each not in written], set_column)
        self._written = written

    def choose_ids(self, columns: Sequence[str]) -> None:
        """Read these columns, of integers or text, and no others."""
        self._columns = list(columns)
        self._decoder.send(columns=self._columns)
        self._json()
        empty = self._batch()
        if empty is None:
            raise unreadable(self._name, self._kind)
        types = pyarrow().types
        for column in columns:
            kind = empty.schema.field(column).type
            inner = kind.value_type if types.is_dictionary(kind) else kind
            if not (types.is_integer(inner) or types.is_string(inner) or types.is_large_string(inner)):
                raise DataRefused(
                    f"column {column!r} must be of integers or text", got=kind, remedy="convert it"
                )

    def choose_mixed(self, columns: Sequence[str], numbers: Sequence[str]) -> Sequence[str]:
        """Read these columns, of numbers, text or truth values, and no others."""
        self._columns = list(columns)
        self._decoder.send(columns=self._columns)
        types = self._json()
        empty = self._batch()
        if empty is None:
            raise unreadable(self._name, self._kind)
        nested = pyarrow().types.is_nested
        wrong = {**types["other"], **dict.fromkeys(types["dates"], "dates")}
        wrong |= {each.name: str(each.type) for each in empty.schema if nested(each.type)}
        for column, kind in wrong.items():
            raise not_mixed(column, kind)
        return ()

    def batches(self) -> Generator[Any, None, None]:
        """Take the batches that arrive."""
        # Not before: of a file that is elsewhere, row groups are fetched after its columns were checked.
        self._decoder.send(read=True)
        while (table := self._batch()) is not None:
            for batch in table.to_batches():
                yield self._with_dates(batch)
                self.faults.end_batch(batch.num_rows)

    def _with_dates(self, batch: Any) -> Any:
        """Replace declared dates by their numbers."""
        for column in (*self._dates, *self._written):
            position = batch.schema.get_field_index(column)
            found = batch.column(position)
            if column in self._written:
                numbers = self._cells.read(found, column, self.faults)
            else:
                numbers = self._cells.dates.from_microseconds(found)
            batch = batch.set_column(position, column, numbers)
        return batch

    def close(self) -> None:
        """Close the file."""
        self._decoder.close()

    def _json(self) -> dict[str, Any]:
        kind, content, _ = self._message()
        if kind != b"j":
            raise unreadable(self._name, self._kind)
        found: dict[str, Any] = json.loads(content)
        return found

    def _batch(self) -> Any | None:
        """The next table; None at the end."""
        kind, content, self._progress = self._message()
        if kind == b"e":
            return None
        if kind != b"b":
            raise unreadable(self._name, self._kind)
        self._left -= len(content)
        if self._left < 0:
            raise DataRefused(
                (FilePath(self._name), f" must not unfold to more than {_LARGEST_RATIO} times its size"),
                remedy="check what wrote it, or write it without compression",
            )
        try:
            return read_stream(content)
        except DataRefused:
            raise unreadable(self._name, self._kind) from None

    def _message(self) -> tuple[bytes, bytearray, float]:
        try:
            kind, content, progress = self._decoder.receive()
        except DecoderDied:
            raise unreadable(self._name, self._kind) from None
        described = json.loads(content) if kind == b"j" else {}
        refused = described.get("refused")
        if refused == "memory":
            raise DataRefused(
                (FilePath(self._name), " needs more memory to decode than a file may take"),
                remedy="check what wrote it, or write it in smaller pages and batches",
            )
        if refused == "sheet":
            raise _no_such_sheet(self._name, self._cells.sheet, described["sheets"])
        if refused is not None:
            raise unreadable(self._name, self._kind)
        return kind, content, progress


def unreadable(name: str, kind: str) -> DataRefused:
    """The refusal of a file, without the engine's own words, which may quote data."""
    return DataRefused(
        (FilePath(name), f" cannot be read as {kind}"),
        remedy="it is damaged, or of another kind than its name says",
    )


def _no_such_sheet(name: str, sheet: str | None, sheets: Sequence[str]) -> UsageError:
    """Names of sheets are shown as those of columns are: they belong to whoever owns the file."""
    return UsageError(
        "sheet",
        ("must name a sheet of ", FilePath(name)),
        got=shown(sheet),
        remedy=f"the sheets are {', '.join(map(repr, sheets[:_MOST_SHEETS]))}"
        + (", …" if len(sheets) > _MOST_SHEETS else ""),
    )


def not_mixed(column: str, kind: str) -> DataRefused:
    """The refusal of a column of a table of numbers, text and truth values."""
    return DataRefused(
        f"column {column!r} must be of numbers, text or truth values", got=kind, remedy="convert it"
    )


def refuse_other_types(schema: Any, columns: Sequence[str], set_column: str | None) -> None:
    """Raise DataRefused for the first chosen column that is neither numbers nor lists of numbers."""
    for column in columns:
        kind = schema.field(column).type
        listed = is_any_list(kind)
        inner = kind.value_type if listed else kind
        if column == set_column:
            if not (listed and pyarrow().types.is_integer(inner)):
                raise wrong_type(column, kind, sets=True)
        elif not is_number_type(inner):
            categories = pyarrow().types.is_dictionary(kind)
            raise wrong_type(column, "categories" if categories else kind, sets=False)


def wrong_type(column: str, kind: object, *, sets: bool) -> DataRefused:
    """The refusal of a column by its type."""
    if sets:
        return DataRefused(
            f"column {column!r} must have lists of integers",
            got=kind,
            remedy="number the members with a public list of them",
        )
    remedy: Words = "encode it with a public list of categories, or leave the column out"
    if kind == "dates":
        remedy = ("name the column in ", Argument("dates"))
    return DataRefused(f"column {column!r} must be of numbers", got=kind, remedy=remedy)


_KINDS = 3
"""Columns that the process sends for each chosen one: numbers, moments and text."""

_LARGEST_ID = 2.0**53
"""From here on different integers are the same cell."""


class WorkbookSource(ColumnarSource):
    """One sheet of a workbook, whose first row names the columns; see `record_batches.Source`.

    A cell is read by its own type: a number, a date, or text, which is read as in CSV files. What others of
    its column are makes no difference to it.
    """

    def __init__(self, path: Path, name: str, batch_bytes: int, cells: CellFormat) -> None:
        if find_spec("openpyxl") is None:
            raise UsageError(
                (FilePath(name), " needs the package openpyxl to be read"),
                remedy="install hushsum[excel], or export the sheet as CSV",
            )
        self._ids: list[str] = []
        self._mixed = False
        self._set_column: str | None = None
        super().__init__(path, name, "Excel", batch_bytes, cells=cells)
        self.faults = CellFaults(name, cells, first=2)
        try:
            refuse_numbers_as_names(self.column_names, name)
        except DataRefused:
            self.close()
            raise
        if len(set(self.column_names)) != len(self.column_names):
            self.close()
            raise UsageError(
                ("the columns of ", FilePath(name), " must have distinct names"), remedy="rename them"
            )

    def choose(self, columns: Sequence[str], ids: Sequence[str], set_column: str | None) -> None:
        """Choose the columns; their cells have types of their own."""
        if set_column is not None:
            self.close()
            raise UsageError(
                "set_column",
                "must be a column of a CSV, Parquet or Arrow file",
                got="a workbook",
                remedy="export the sheet as CSV",
            )
        self._ids = list(ids)
        self._begin([*columns, *self._ids])

    def choose_ids(self, columns: Sequence[str]) -> None:
        """Read these columns as text, and no others."""
        self._ids = list(columns)
        self._begin(self._ids)

    def choose_mixed(self, columns: Sequence[str], numbers: Sequence[str]) -> Sequence[str]:
        """Read columns of numbers as numbers, in which text may mean a missing one, and others as text."""
        self._ids = [column for column in columns if column not in numbers]
        self._mixed = True
        self._begin(list(columns))
        return self._ids

    def _begin(self, columns: list[str]) -> None:
        self._columns = columns
        self._decoder.send(columns=columns)
        self._json()
        if self._batch() is None:
            raise unreadable(self._name, self._kind)

    def batches(self) -> Generator[Any, None, None]:
        """Take the batches that arrive."""
        self._decoder.send(read=True)
        while (table := self._batch()) is not None:
            for batch in table.to_batches():
                if batch.num_columns != _KINDS * len(self._columns):
                    raise unreadable(self._name, self._kind)
                read = [
                    self._column(name, *batch.columns[_KINDS * place : _KINDS * (place + 1)])
                    for place, name in enumerate(self._columns)
                ]
                yield pyarrow().RecordBatch.from_arrays(read, names=self._columns)
                self.faults.end_batch(batch.num_rows)

    def _column(self, name: str, numbers: Any, moments: Any, text: Any) -> Any:
        compute = pyarrow("compute")
        if self._mixed and moments.null_count < len(moments):
            raise not_mixed(name, "dates")
        if name in self._ids:
            largest = compute.max(compute.abs(numbers)).as_py()
            if largest is not None and largest >= _LARGEST_ID:
                raise DataRefused(
                    (
                        f"numbers in column {name!r} of ",
                        FilePath(self._name),
                        " must be less than 2**53",
                    ),
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
        dates = name in self._cells.dates.columns
        unfit, kind = (numbers, "numbers") if dates else (moments, "dates")
        if unfit.null_count < len(unfit):
            remedy = "leave it out of the dates" if dates else ("name the column in ", Argument("dates"))
            raise not_of(name, self._name, kind, remedy, dates=dates)
        if self._mixed:
            text = without_missing(text, self._cells.markers)
        own = self._cells.dates.from_microseconds(moments) if dates else numbers
        return compute.coalesce(own, self._cells.read(text, name, self.faults))
