"""CSV files: one line is one record, in any encoding of Python."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from hushsum.errors import Argument, DataRefused, FilePath, Words

from ._arrow import pyarrow, quietly
from ._cell_format import PLAIN, CellFormat, with_column, without_missing
from ._source import Source

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
