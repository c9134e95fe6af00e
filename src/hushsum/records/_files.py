"""Batches of records from files, on this machine or addressed by URLs.

In a CSV file, of any encoding of Python, one line is one record. Parquet files, Arrow files and workbooks are
decoded in a process of its own.

``s3://``, ``gs://`` and ``gcs://`` go through Arrow's filesystems, and everything else (``https://``,
``abfs://``, …) through fsspec. Credentials come from the environment of the process, as the vendors define
it. A file is decoded by the same limited process as a local one, which is given no credentials: what is
needed of the file is copied into a temporary file first. Of a Parquet file these are its footer and the row
groups that are read.

URLs may contain credentials, so that messages show them without user, query and fragment, and no message of
a filesystem is passed on.
"""

from __future__ import annotations

import atexit
import codecs
import csv
import fnmatch
import glob
import io
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ClassVar, Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.errors import Argument, DataRefused, FilePath, Parameter, UsageError, Words, shown

from ._arrow import choose_columns, is_any_list, is_number_type, is_text, numbers_of, pyarrow, quietly
from ._arrow_stream import read_stream
from ._cell_format import PLAIN, CellFaults, CellFormat, with_column, without_missing
from ._decoder_worker import HEADER, receive_exactly
from ._decoder_worker import __file__ as _WORKER

__all__ = [
    "DEFAULT_BATCH_BYTES", "ColumnBlocks", "FileState", "LocalCopy", "RecordStream", "expanded", "file_state",
    "is_url", "open_batches", "open_source", "read_columns", "refuse_repeated", "row_group_sizes",
    "shown_path",
]  # fmt: skip

Names = Sequence[str]


class Source:
    """A file of one format, which is read once.

    Attributes
    ----------
    column_names : list of str
        Every column of the file.
    faults : CellFaults
        What was refused of the batches so far; a batch is counted when the next one is requested.
    progress : float or None
        The fraction that has been read; None if the length is unknown.
    typed : bool
        Whether columns have types of their own. Otherwise a cell that is not read as a number comes as text
        that somebody wrote.
    """

    typed: ClassVar[bool] = False
    column_names: list[str]

    def __init__(self, name: str, cells: CellFormat, *, place: str = "row", first: int = 1) -> None:
        self.name, self.cells = name, cells
        self.faults = CellFaults(name, cells, place=place, first=first)
        self.progress: float | None = 0.0
        self.closing = ExitStack()
        self.columns: list[str] = []
        self.numbers: Names = ()
        self.set_column: str | None = None
        self.mixed = False
        self.days: Mapping[str, str | None] = {}

    def choose(
        self,
        columns: Names,
        numbers: Names = (),
        set_column: str | None = None,
        *,
        mixed: bool = False,
        days: Mapping[str, str | None] | None = None,
    ) -> None:
        """Choose what is read, and check the types of columns where the format states them before reading.

        Parameters
        ----------
        columns : sequence of str
            All of them: of ``numbers``, of sets, and of others, such as ids, labels and text.
        numbers : sequence of str
            Those that become numbers.
        set_column : str, optional
            The one that becomes lists of integers.
        mixed : bool
            Whether text in a column of numbers may stand for a missing one, and columns have numbers, text
            or truth values alone, or dates where they are in ``days``.
        days : mapping of str to str, optional
            The columns of mixed ones that hold dates, with the pattern that their text has, None for ISO.
        """
        self.columns, self.numbers = list(columns), numbers
        self.set_column, self.mixed, self.days = set_column, mixed, days or {}
        self.check_types()

    def check_types(self) -> None:
        """Refuse chosen columns that cannot be read as they were chosen."""

    def batches(self) -> Generator[Any, None, None]:
        """Batches that have the chosen columns at least; raises DataRefused for what cannot be read."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the file."""
        self.closing.close()

    def check_names(self, names: Names) -> None:
        """Refuse a first line or row that does not name the columns: it would be a record.

        Raises
        ------
        DataRefused
            if one of the names is a number.
        UsageError
            if a name occurs twice.
        """
        if any(map(_is_number, names)):
            raise DataRefused(
                ("the first line of ", FilePath(self.name), " must name the columns"),
                got="numbers",
                remedy="add a header, with names that are not numbers",
            )
        if len(set(names)) != len(names):
            raise UsageError(
                ("the columns of ", FilePath(self.name), " must have distinct names"),
                remedy="rename them; if titles or notes stand above the header, remove these lines",
            )


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


_BLOCK: Final = 1 << 16


class TextInUtf8:
    """Bytes of a file in another encoding, as UTF-8.

    Arrow has such a stream too, which keeps its buffers where bytes cannot be decoded.

    Examples
    --------
    >>> import io
    >>> text = TextInUtf8(io.BytesIO("größe;1".encode("windows-1252")), "windows-1252")
    >>> text.read(3), text.read()
    (b'gr\\xc3', b'\\xb6\\xc3\\x9fe;1')
    """

    def __init__(self, source: Any, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = b""
        self._ended = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as many as requested unless the file ends.

        Raises
        ------
        UnicodeError
            if bytes are not of the encoding.
        """
        parts = [self._ready]
        length = len(self._ready)
        while not self._ended and (size < 0 or length < size):
            piece = bytes(self._source.read(_BLOCK))
            self._ended = not piece
            parts.append(self._decoder.decode(piece, final=self._ended).encode())
            length += len(parts[-1])
        found = b"".join(parts)
        end = len(found) if size < 0 else size
        self._ready = found[end:]
        return found[:end]


class CountedLines(io.RawIOBase):
    """Bytes that were read already, then those of a file; and how many lines they are so far.

    Parameters
    ----------
    start : bytes
    rest : binary file
    empty : bool
        Whether an empty line is one, too.

    Privacy
    -------
    A quote that is not closed makes a reader of CSV take the lines after it for one cell, up to the next
    quote: one record would remove others, in a column that nobody chose and nobody sees. Cells that contain
    line ends are read or not by where a block of the file ends, which depends on the records before them. So
    a file is refused unless each line is a record (:meth:`check`).

    Examples
    --------
    >>> lines = CountedLines(b"1,a\\n", io.BytesIO(b"\\r\\n2,b\\r\\n3,c"), empty=False)
    >>> lines.read(), lines.read(), lines.lines
    (b'1,a\\n', b'\\r\\n2,b\\r\\n3,c', 3)
    """

    def __init__(self, start: bytes, rest: Any, *, empty: bool) -> None:
        self._start = io.BytesIO(start)
        self._rest = rest
        self._empty = empty
        self._ended = 0
        self._begun = 0
        self._last = b"\n"

    def readable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        found = self._start.read(size) or bytes(self._rest.read(size))
        if found:
            self._count(found)
        return found

    @property
    def lines(self) -> int:
        """How many lines have been read."""
        if not self._empty:
            return self._begun
        return self._ended + (self._last not in b"\r\n")

    def check(self, records: int, name: str) -> None:
        """Refuse a file of which another number of records than lines was read.

        Raises
        ------
        DataRefused
            in that case.
        """
        if self.lines != records:
            raise DataRefused(
                (FilePath(name), " must have one line for each record"),
                got="a quote that is not closed, or a line end inside of a cell",
                remedy="close the quotes, write line ends in cells as spaces, or convert the file to Parquet",
            )

    def _count(self, block: bytes) -> None:
        before, self._last = self._last, block[-1:]
        if b"\r" not in block and b"\n\n" not in block and before != b"\r":
            ends = block.count(b"\n")
            self._ended += ends
            self._begun += ends - block.endswith(b"\n") + (before == b"\n" and block[:1] != b"\n")
            return
        codes = np.frombuffer(before + block, np.uint8)
        feed, back = codes == ord("\n"), codes == ord("\r")
        end = feed | back
        self._begun += int(np.count_nonzero(end[:-1] & ~end[1:]))
        # Both together are one end.
        self._ended += int(np.count_nonzero(end[1:])) - int(np.count_nonzero(back[:-1] & feed[1:]))


_HEADER_BYTES: Final = 1 << 20
_FAULTY_COLUMN: Final = re.compile(r"In CSV column #(\d+)")
_LEAST_BLOCK: Final = 1 << 16
_SEPARATORS: Final = ",;\t|"
_UTF_8: Final = "utf-8"
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}
_PACKED: Final = {"gzip": "gzipped ", "zstd": "zstd-compressed "}
_DECLARE_ENCODING: Final[Words] = (
    "give its encoding, such as ",
    Argument("encoding", "windows-1252"),
    ' (utf-16 for "Unicode text"), or save it as "CSV UTF-8"',
)
_OTHER_FORMATS: Final = {
    b"\x1f\x8b": (
        "gzipped data",
        "unpack it first, as in: zcat FILE | …, or name a file that ends in .csv.gz",
    ),
    b"PAR1": ("Parquet", "give the path of a file that ends in .parquet"),
    b"ARROW1": ("Arrow", "give the path of a file that ends in .arrow"),
    b"PK\x03\x04": (
        "a zip archive or workbook",
        "give the path of a file that ends in .xlsx, or export it as CSV",
    ),
}


class CsvSource(Source):
    """A CSV file with a header, or standard input in place of None.

    The header is read here and the rest by Arrow with every type given, so nothing is inferred from the first
    block. Fields are separated by what separates the names in the header. The engine's messages quote the
    line they fail on, and none of them is passed on.
    """

    def __init__(self, file: Path | None, name: str, batch_bytes: int, cells: CellFormat = PLAIN) -> None:
        super().__init__(name, cells, place="line", first=2)
        self._raw: BinaryIO = sys.stdin.buffer if file is None else file.open("rb")
        self._size = None if file is None else file.stat().st_size
        if file is not None:
            self.closing.callback(self._raw.close)
        compression = None if file is None else COMPRESSIONS.get(file.suffix.lower())
        text: Any = self._raw
        if compression:
            text = pyarrow().input_stream(text, compression=compression)
        self._text = text if cells.encoding == _UTF_8 else TextInUtf8(text, cells.encoding)
        self._block = max(batch_bytes, _LEAST_BLOCK)
        try:
            self._rest = self._read_header("" if compression is None else _PACKED[compression])
        except BaseException:
            self.close()
            raise

    def batches(self) -> Generator[Any, None, None]:
        """Read block by block; all columns as text, since people write numbers in many ways."""
        module, text = pyarrow("csv"), pyarrow().string()
        # An empty line of a file with one column is a record without a value: skipping it would change the
        # number of records, which is public where a record may be replaced.
        empty = len(self.column_names) == 1
        lines, records = CountedLines(self._rest, self._text, empty=empty), 0
        try:
            reader = module.open_csv(
                pyarrow().PythonFile(lines, mode="r"),
                read_options=module.ReadOptions(
                    column_names=self.column_names, block_size=self._block, use_threads=False
                ),
                parse_options=module.ParseOptions(delimiter=self._separator, ignore_empty_lines=not empty),
                convert_options=module.ConvertOptions(
                    include_columns=self.columns,
                    column_types=dict.fromkeys(self.columns, text),
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            with reader:
                for batch in reader:
                    records += batch.num_rows
                    self._note_progress()
                    yield self._converted(batch)
                    self.faults.end_batch(batch.num_rows)
        except UnicodeError:
            refusal = self._wrongly_encoded()
        except (pyarrow().ArrowException, OSError, EOFError) as error:
            if str(error).startswith("Empty CSV file"):
                return  # A header alone, with which the stream of records deals.
            fault = _FAULTY_COLUMN.match(str(error))
            if fault is None:
                refusal = self._unreadable(
                    ": every line must have as many fields as the header, separated in the same way, and be "
                    "shorter than a batch"
                )
            else:
                column = self.column_names[int(fault.group(1))]
                refusal = DataRefused(
                    (f"column {column!r} of ", FilePath(self.name), " must be text in UTF-8"),
                    got="other bytes",
                    remedy=_DECLARE_ENCODING,
                )
        else:
            lines.check(records, self.name)
            return
        # Raised outside the handler, so that the engine's message is not its context either.
        raise refusal

    def _note_progress(self) -> None:
        self.progress = min(1.0, self._raw.tell() / self._size) if self._size else None

    def _read_header(self, packing: str) -> bytes:
        """Read the names of the columns; returns the bytes that were read after their line."""
        try:
            start = bytes(self._text.read(_HEADER_BYTES)).removeprefix(codecs.BOM_UTF8)
        except UnicodeError:
            raise self._wrongly_encoded() from None
        except (OSError, EOFError, pyarrow().ArrowException):
            raise self._unreadable(packing=packing, remedy="check what wrote it") from None
        self._note_progress()
        for magic, (kind, remedy) in _OTHER_FORMATS.items():
            if start.startswith(magic):
                raise DataRefused((FilePath(self.name), " must be CSV"), got=kind, remedy=remedy)
        if not start.strip():
            raise DataRefused(
                (FilePath(self.name), " must have a header and records"),
                got="an empty file",
                remedy="check what wrote it",
            )
        line, ending, rest = _first_line(start)
        if not line.strip():
            raise DataRefused(
                ("the first line of ", FilePath(self.name), " must name the columns"),
                got="an empty line",
                remedy="remove what stands above the header",
            )
        try:
            header = line.decode()
            # What separates the names outside of quotes most often; a comma if nothing does.
            self._separator = max(_SEPARATORS, key="".join(header.split('"')[::2]).count)
            # Blanks around a name are not seen or typed; those around numbers do not count either.
            read = next(csv.reader([header], strict=True, delimiter=self._separator))
            self.column_names = [name.strip() for name in read]
        except (UnicodeDecodeError, csv.Error) as error:
            if isinstance(error, csv.Error) and b"\r" in line and b"\0" not in line:
                raise DataRefused(
                    (FilePath(self.name), " cannot be read as CSV: its lines must end in a line feed"),
                    got="carriage returns alone",
                    remedy="save it with the line ends of Windows or Unix",
                ) from None
            raise self._unreadable(
                ": its first line must be a header in UTF-8", remedy=_DECLARE_ENCODING
            ) from None
        # A file without a header would have its first record taken for names, and shown in messages.
        self.check_names(self.column_names)
        if not ending and len(start) == _HEADER_BYTES:
            raise self._unreadable(": its first line is too long for a header")
        return rest

    def _unreadable(self, why: str = "", *, packing: str = "", remedy: Words | None = None) -> DataRefused:
        return DataRefused((FilePath(self.name), f" cannot be read as {packing}CSV{why}"), remedy=remedy)

    def _wrongly_encoded(self) -> DataRefused:
        """The refusal of bytes that the declared encoding does not have."""
        return DataRefused(
            (FilePath(self.name), f" must be text in {self.cells.encoding}"),
            got="other bytes",
            remedy=("check ", Argument("encoding"), ', or save it as "CSV UTF-8"'),
        )

    def _converted(self, batch: Any) -> Any:
        """The batch with numbers and sets in place of the text that writes them."""
        for column in self.numbers:
            text = batch.column(column)
            if self.mixed:
                text = without_missing(text, self.cells.markers)
            numbers = self.cells.read(text, column, self.faults, separator=self._separator)
            batch = with_column(batch, column, numbers)
        if self.set_column is None:
            return batch
        return with_column(batch, self.set_column, _sets_of(batch.column(self.set_column), self.set_column))


def _sets_of(text: Any, column: str) -> Any:
    """The lists of integers that text writes."""
    pa, compute = pyarrow(), pyarrow("compute")
    words = compute.split_pattern_regex(compute.fill_null(text, ""), r"[;\s]+")
    members, owners = words.flatten(), compute.list_parent_indices(words)
    written = compute.not_equal(members, "")
    refusal = DataRefused(
        f"column {column!r} must have integers separated by spaces or semicolons",
        got="something else",
        remedy="number the members with a public list of them",
    )
    values = quietly(lambda: members.filter(written).cast(pa.int64()), lambda _: refusal, pa.ArrowInvalid)
    owners = owners.filter(written).to_numpy()
    offsets = np.searchsorted(owners, np.arange(len(text) + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, values)


def _first_line(start: bytes) -> tuple[bytes, bytes, bytes]:
    """Split at the first line end that is not inside quotes."""
    end = -1
    while True:
        end = start.find(b"\n", end + 1)
        if end < 0:
            return start, b"", b""
        if start.count(b'"', 0, end) % 2 == 0:
            return start[:end].removesuffix(b"\r"), b"\n", start[end + 1 :]


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
        # The columns of dates that stay dates.
        self._moments: list[str] = []
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
            wrong = {**other, **{name: "dates" for name in dates if name not in self.days}}
            wrong |= {each.name: each.type for each in schema if nested(each.type)}
            for column, kind in wrong.items():
                raise self._wrong_type(column, _MIXED, kind)
            self._moments = list(dates)
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
        """The batch with numbers in place of declared dates and of text that writes numbers; declared days of
        mixed columns stay dates.
        """
        for column in self._moments:
            moments = batch.column(column).cast(pyarrow().timestamp("us"))
            batch = with_column(batch, column, moments)
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
        if name in self.days:
            # As in CSV files: text in the declared form.
            written = moments.cast(pyarrow().timestamp("us"))
            text = compute.coalesce(text, compute.strftime(written, format=self.days[name] or "%Y-%m-%d"))
        elif self.mixed and moments.null_count < len(moments):
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


_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_WILDCARDS: Final = re.compile(r"[*?\[]")
_PIECE: Final = 1 << 22
_TAIL: Final = 1 << 16
_FOOTER: Final = struct.Struct("<I4s")
_ARROW_SCHEMES: Final = ("s3", "gs", "gcs")
MOST_FILES: Final = 1 << 20


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an address, such as ``s3://bucket/file.parquet``.

    >>> is_url("s3://bucket/a.csv"), is_url("C:/a.csv"), is_url("a.csv")
    (True, False, False)
    """
    return isinstance(path, str) and _URL.match(path) is not None


def shown_path(path: str) -> str:
    """A path as messages may show it: an address without user, password, query and fragment.

    >>> shown_path("https://ann:secret@host:8080/a.csv?token=1#x")
    'https://host:8080/a.csv'
    """
    if not is_url(path):
        return path
    scheme, rest = path.split("://", 1)
    rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    place, slash, inner = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{inner}"


def file_name(path: str) -> str:
    """The last part of a path or an address, whose suffix says what the file is."""
    return PurePosixPath(shown_path(path)).name if is_url(path) else Path(path).name


@dataclass(frozen=True, slots=True)
class FileState:
    """The size of a file, and when it was changed, if its filesystem knows; of a local one also which it is,
    since another may take its name.
    """

    size: int
    modified: int | None
    inode: int | None = None


def file_state(path: str) -> FileState:
    """The state of a local file or an address.

    Raises
    ------
    UsageError
        if there is none, or it cannot be reached.
    """
    if not is_url(path):
        try:
            state = os.stat(path)
        except OSError:
            rule = (FilePath(path), " does not exist, or is a folder")
            raise UsageError(rule) from None
        return FileState(state.st_size, state.st_mtime_ns, state.st_ino)
    files, inner = _filesystem(path)
    info = _quietly(path, lambda: files.get_file_info(inner))
    if not info.is_file or info.size is None:
        raise UsageError((FilePath(shown_path(path)), " does not exist"))
    return FileState(int(info.size), info.mtime_ns)


def expanded(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """All files that paths name; a path or an address may have the wildcards ``*``, ``?`` and ``[…]``, which
    do not match a slash. A local file whose own name has them is itself.

    Raises
    ------
    UsageError
        if wildcards match no file.
    """
    found: list[str] = []
    for path in paths:
        each = os.fspath(path)
        # The query of an address is not a pattern.
        if is_url(each) and _WILDCARDS.search(shown_path(each)):
            found += _matching(each)
        elif not is_url(each) and _WILDCARDS.search(each) and not os.path.lexists(each):
            files = sorted(name for name in glob.glob(each) if os.path.isfile(name))
            if not files:
                raise UsageError((FilePath(each), " must match a file"), got="none")
            found += files
        else:
            found.append(each)
    return found


def refuse_repeated(paths: Iterable[str]) -> None:
    """Raise UsageError if a file is named twice, by whatever path: its records would be counted twice."""
    seen: set[object] = set()
    for each in paths:
        place: object = each
        if each != "-" and not is_url(each):
            if not os.path.exists(each):
                continue
            status = os.stat(each)
            place = (status.st_dev, status.st_ino)
        if place in seen:
            named = FilePath(shown_path(each), quoted=True)
            raise UsageError((named, " is named twice, and its records would count twice"))
        seen.add(place)


def _matching(url: str) -> list[str]:
    files, inner = _filesystem(url)
    scheme = url.split("://", 1)[0]
    parts = inner.split("/")
    first = next(i for i, part in enumerate(parts) if _WILDCARDS.search(part))
    base = "/".join(parts[:first])
    if not base:
        rule = " must name a bucket or folder before its first wildcard"
        raise UsageError((FilePath(shown_path(url)), rule), remedy="name it")
    selector = pyarrow("fs").FileSelector(base, recursive=True, allow_not_found=True)
    names = sorted(
        info.path
        for info in _quietly(url, lambda: files.get_file_info(selector))
        if info.is_file
        and len(found := info.path.split("/")) == len(parts)
        and all(map(fnmatch.fnmatchcase, found, parts))
    )
    if not 1 <= len(names) <= MOST_FILES:
        rule = f" must match from 1 to {MOST_FILES} files"
        raise UsageError((FilePath(shown_path(url)), rule), got="more" if names else "none")
    return [f"{scheme}://{name}" for name in names]


class LocalCopy:
    """A temporary file with what was fetched of an address; the rest of it is a hole.

    It is readable by this user only, and deleted by :meth:`close`.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        state = file_state(url)
        self.size = state.size
        files, inner = _filesystem(url)
        self._remote = _quietly(url, lambda: files.open_input_file(inner))
        self._folder = tempfile.mkdtemp(prefix="hushsum-")
        self.path = Path(self._folder) / file_name(url)
        with self.path.open("wb") as file:
            file.truncate(self.size)

    def fetch(self, start: int, end: int) -> None:
        """Copy the bytes from ``start`` to ``end``, as far as the file goes.

        Raises
        ------
        DataRefused
            if the other side returns fewer.
        """
        start, end = max(0, start), min(end, self.size)
        with self.path.open("r+b") as file:
            file.seek(start)
            while start < end:
                wanted = min(_PIECE, end - start)
                place = start
                data = _quietly(self._url, lambda: self._remote.read_at(wanted, place))  # noqa: B023
                if not data or len(data) > wanted:
                    raise DataRefused(
                        (FilePath(shown_path(self._url)), " ended before its stated size"), remedy="try again"
                    )
                file.write(data)
                start += len(data)

    def fetch_footer(self) -> None:
        """Copy the end of a Parquet file, which says where its row groups are."""
        self.fetch(self.size - _TAIL, self.size)
        if self.size < _FOOTER.size:
            return
        with self.path.open("rb") as file:
            file.seek(self.size - _FOOTER.size)
            length, magic = _FOOTER.unpack(file.read(_FOOTER.size))
        # A file that is not Parquet is refused by the reader.
        if magic == b"PAR1" and length + _FOOTER.size > _TAIL:
            self.fetch(self.size - _FOOTER.size - length, self.size - _TAIL)

    def close(self) -> None:
        """Delete the copy."""
        self._remote.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _filesystem(url: str) -> tuple[Any, str]:
    """A filesystem of Arrow, and the path in it."""
    fs = pyarrow("fs")
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme in _ARROW_SCHEMES and (parts.username is not None or parts.password is not None):
        rule = " must be given without credentials"
        raise UsageError((FilePath(shown_path(url)), rule), remedy="set them in the environment")
    inner = url.split("://", 1)[1]
    if scheme == "s3":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return _quietly(url, lambda: fs.S3FileSystem(endpoint_override=endpoint)), inner
    if scheme in _ARROW_SCHEMES:
        return _quietly(url, fs.GcsFileSystem), inner
    try:
        import fsspec
    except ModuleNotFoundError:
        rule = f"addresses of {scheme} need the package fsspec"
        raise UsageError(rule, remedy="install hushsum[remote]") from None
    known = _quietly(url, lambda: fsspec.filesystem(scheme))
    return fs.PyFileSystem(fs.FSSpecHandler(known)), url if scheme in ("http", "https") else inner


def _quietly(url: str, call: Any) -> Any:
    """The result of a call to a filesystem, whose messages may quote credentials."""
    shown, remedy = (
        FilePath(shown_path(url)),
        "check the address, the network, and the credentials in the environment",
    )
    return quietly(call, lambda kind: UsageError((shown, f" could not be read: {kind}"), remedy=remedy))


DEFAULT_BATCH_BYTES: Final = 1 << 20

# The endings of files whose columns have types.
TYPED: Final = {"Parquet": (".parquet", ".pq"), "Arrow": (".arrow", ".feather", ".ipc")}

_FORMATS: Final = {
    "CSV": tuple(text + packed for text in (".csv", ".tsv") for packed in ("", *COMPRESSIONS)),
    **TYPED,
    "Excel": (".xlsx", ".xlsm"),
}


@dataclass(eq=False, repr=False)
class RecordStream:
    """Batches of records out of one file; iterate once.

    Iterating gives ``(batch, units)``: a ``pyarrow.RecordBatch`` of the chosen columns, and the
    ``pyarrow.Array`` of the persons' ids, or None. Batches are never empty. The file is closed when the last
    batch has been read, or at the end of a ``with`` block.

    Raises
    ------
    DataRefused
        While iterating: the file is damaged, a column is not of numbers, or there are no records, unless it
        ``may_be_empty``.
    """

    source: Source
    column_names: list[str]
    """The columns of the batches, in order."""
    unit_column: str | None
    label_column: str | None
    may_be_empty: bool
    opened: bool = field(default=False, init=False)

    @property
    def progress(self) -> float | None:
        """The fraction of the file that has been read, between 0 and 1, or None for standard input."""
        return self.source.progress

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        source, cells = self.source, self.source.cells
        if self.opened:
            raise UsageError(f"{source.name} was read already", remedy="open it again")
        self.opened = empty = True
        selected = [*self.column_names, *([] if self.label_column is None else [self.label_column])]
        with closing(source), closing(source.batches()) as batches:
            for read in batches:
                marked = cells.without_numbers(read, self.column_names)
                if not cells.drop_missing:
                    source.faults.add_missing(marked, self.column_names)
                if source.faults:
                    # The rest is read for what else is refused, so that one attempt shows everything.
                    continue
                batch = cells.kept(marked)
                if batch.num_rows:
                    empty = False
                    units = None if self.unit_column is None else batch.column(self.unit_column)
                    yield batch.select(selected), units
            source.faults.check()
        if empty and not self.may_be_empty:
            raise DataRefused(
                f"{source.name} must have at least one record", got="none", remedy="check what wrote it"
            )

    def close(self) -> None:
        """Close the file."""
        self.source.close()

    def __enter__(self) -> RecordStream:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def open_batches(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    unit_column: str | None = None,
    label_column: str | None = None,
    set_column: str | None = None,
    row_groups: range | None = None,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    name: str | None = None,
    cells: CellFormat = PLAIN,
    may_be_empty: bool = False,
) -> RecordStream:
    """Open a CSV, Parquet or Arrow (Feather) file as a stream of batches.

    Memory depends on ``batch_bytes`` and not on the size of the file. CSV files have a header, fields
    separated by commas, semicolons, tabs or bars, and may be compressed; their numbers are read as float64
    (`hushsum.records`), and their ids as strings, so a person who is 5 in a CSV file is also
    the person 5 of an integer column elsewhere, and 05 is another.

    Parameters
    ----------
    path : path-like
        Ends in .csv or .tsv (also with .gz or .zst), .parquet, .pq, .arrow, .feather or .ipc, or .xlsx (with
        the extra ``excel``); ``"-"`` is CSV on standard input. An address (``s3://``, ``gs://``,
        ``https://``) is copied to a temporary file.
    columns : sequence of str, optional
        The columns of a record, in order; all but ``unit_column`` if not given.
    unit_column : str, optional
        The column of persons' ids.
    label_column : str, optional
        A column of labels that the batches hold as well, after those of the records.
    set_column : str, optional
        Records are the sets in this column: lists of integers, in CSV integers separated by spaces or
        semicolons.
    row_groups : range, optional
        Read these row groups of a Parquet file only; see `row_group_sizes`.
    batch_bytes : int
        About how much is read at a time.
    name : str, optional
        What error messages call the file; by default its path.
    cells : CellFormat
        The decimal sign of CSV files, which columns contain dates, and whether records with missing values
        are left out.
    may_be_empty : bool
        Accept a file of columns without records.

    Raises
    ------
    UsageError
        No such file, a suffix without a reader, or a column that is not there.
    DataRefused
        The file cannot be read as its name suggests, is empty, or a chosen column is not of numbers.
    """
    if batch_bytes < 1:
        raise UsageError("batch_bytes", "must be at least 1", got=f"{batch_bytes}")
    if set_column is not None and columns is not None:
        raise UsageError("columns", ("and ", Parameter("set_column"), " exclude each other"))
    if name is None:
        name = "standard input" if path == "-" else shown_path(str(path))
    source = open_source(path, name, batch_bytes, row_groups, cells)
    try:
        ids = [each for each in (unit_column, label_column) if each is not None]
        for each in ids:
            choose_columns(source.column_names, [each], "unit_column" if each == unit_column else "target")
        # A misspelt one would leave dates to be read as numbers, where they are written without signs.
        choose_columns(source.column_names, cells.dates.columns, "dates")
        if set_column is not None:
            columns = [set_column]
        elif columns is None:
            columns = [column for column in source.column_names if column not in ids]
            if "" in columns:
                raise UsageError(
                    (FilePath(name), " has a column without a name"), remedy="name the columns of a record"
                )
        if not columns:
            raise UsageError(
                (FilePath(name), " must have a column besides the one of persons"),
                remedy="choose the columns of a record",
            )
        if unit_column in columns:
            raise UsageError("unit_column", "must not be a column of records too", got=f"{unit_column!r}")
        choose_columns(source.column_names, columns)
        numbers = () if set_column is not None else columns
        source.choose([*columns, *ids], numbers, set_column)
    except BaseException:
        source.close()
        raise
    return RecordStream(source, list(columns), unit_column, label_column, may_be_empty)


def row_group_sizes(path: str | os.PathLike[str]) -> list[int]:
    """The bytes of each row group of a Parquet file, unpacked; 0 for one without rows. Empty for other files.

    Raises
    ------
    UsageError
        No such file.
    DataRefused
        The file cannot be read as Parquet.
    """
    if _format_of(os.fspath(path)) != "Parquet":
        return []
    with closing(open_source(path, shown_path(os.fspath(path)), DEFAULT_BATCH_BYTES)) as source:
        return source.row_group_sizes if isinstance(source, ColumnarSource) else []


def _format_of(path: str) -> str | None:
    lowered = file_name(path).lower()
    return next((kind for kind, suffixes in _FORMATS.items() if lowered.endswith(suffixes)), None)


def open_source(
    path: str | os.PathLike[str],
    name: str,
    batch_bytes: int,
    row_groups: range | None = None,
    cells: CellFormat = PLAIN,
) -> Source:
    """Open a file by its name, for a reader that chooses its columns; parameters as for `open_batches`.

    Raises
    ------
    UsageError
        No such file, or a suffix without a reader.
    DataRefused
        The file cannot be read as its name suggests.
    """
    if path == "-":
        return CsvSource(None, "standard input", batch_bytes, cells)
    file, url, kind = Path(path), is_url(path), _format_of(os.fspath(path))
    if not url:
        check_file(file, name)
    if kind is None:
        known = ", ".join(chain.from_iterable(_FORMATS.values()))
        raise UsageError((FilePath(name), f" must end in one of {known}"), remedy="rename or convert it")
    with ExitStack() as opened:
        fetch = None
        if url:
            copy = opened.enter_context(closing(LocalCopy(str(path))))
            file = copy.path
            if kind == "Parquet":
                copy.fetch_footer()
                fetch = copy.fetch
            else:
                copy.fetch(0, copy.size)
        source: Source
        try:
            if kind == "CSV":
                source = CsvSource(file, name, batch_bytes, cells)
            elif kind == "Excel":
                source = WorkbookSource(file, name, batch_bytes, cells)
            else:
                source = ColumnarSource(file, name, kind, batch_bytes, row_groups, cells, fetch)
        except PermissionError:
            rule = " must be readable by this user"
            raise UsageError((FilePath(name), rule), remedy="check its permissions") from None
        # The copy lasts as long as the source.
        source.closing.callback(opened.pop_all().close)
    return source


def check_file(file: Path, name: str) -> None:
    """Refuse a path at which there is no file.

    Raises
    ------
    UsageError
        if nothing is there, or a folder.
    """
    if not file.exists():
        raise UsageError((FilePath(name), " does not exist"))
    if file.is_dir():
        raise UsageError(
            (FilePath(name), " must be a file"), got="a directory", remedy="name one file of it at a time"
        )


@dataclass(frozen=True, slots=True, repr=False)
class ColumnBlocks:
    """Columns of records by name, each of shape (records, width); a column of lists is wider than 1."""

    blocks: dict[str, Floats]

    def __repr__(self) -> str:
        return f"<ColumnBlocks CONFIDENTIAL of {', '.join(self.blocks)}>"

    def choose(self, names: Sequence[str]) -> Floats:
        """These columns side by side, shape (records, width).

        Raises
        ------
        UsageError
            for a name that is not among them.
        """
        missing = [name for name in names if name not in self.blocks]
        if missing:
            rule = (f"column {missing[0]!r} is requested, and not among ", Parameter("columns"))
            raise UsageError(rule, remedy="add it there")
        chosen = [self.blocks[name] for name in names]
        return chosen[0] if len(chosen) == 1 else np.concatenate(chosen, axis=1)

    def width(self, names: Sequence[str]) -> int:
        """How many numbers a record has in these columns."""
        return sum(self.blocks[name].shape[1] for name in names)


def read_columns(path: str, columns: Sequence[str] | None, cells: CellFormat = PLAIN) -> ColumnBlocks:
    """Read the columns of a file, whose cells are written as declared; all of them by default.

    Raises
    ------
    UsageError, DataRefused
        as `open_batches` does, and for numbers that are not finite.
    """
    parts: dict[str, list[NDArray[Any]]] = {}
    with open_batches(path, columns=columns, cells=cells) as stream:
        for batch, _ in stream:
            for name in stream.column_names:
                parts.setdefault(name, []).append(_numbers(batch.select([name]), name))
    for name, found in parts.items():
        if len({each.shape[1] for each in found}) > 1:
            rule = f"column {name!r} must have lists of one length"
            raise DataRefused(rule, remedy="pad them, or leave it out")
    # Parts are as narrow as the file's numbers, and are given up column by column.
    blocks = {name: np.concatenate(parts.pop(name), dtype=np.float64) for name in list(parts)}
    pyarrow().default_memory_pool().release_unused()
    return ColumnBlocks(blocks)


def _numbers(batch: Any, name: str) -> NDArray[Any]:
    column = batch.column(0)
    listed = is_any_list(column.type) and column.null_count == 0
    width = len(column[0]) if listed else 1
    (part,) = numbers_of(batch, dim=max(width, 1))
    values = part.values
    if not np.isfinite(values).all():
        raise DataRefused(
            f"column {name!r} must be finite",
            got="NaN or infinity",
            remedy="fill it with a public constant or drop those records",
        )
    # A copy: a view would keep the file's whole batch.
    return values.copy()
