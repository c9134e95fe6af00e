"""CSV files: one line is one record, in any encoding of Python."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from hushsum.errors import Argument, DataRefused, FilePath, UsageError, Words
from hushsum.records._arrow import pyarrow
from hushsum.records._cell_format import PLAIN, CellFaults, CellFormat, without_missing

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


class CsvSource:
    """A CSV file with a header; see `hushsum.records.Source`.

    The header is read here and the rest by Arrow with every type given, so nothing is inferred from the first
    block. Fields are separated by what separates the names in the header. The engine's messages quote the
    line they fail on, and none of them is passed on.
    """

    def __init__(
        self,
        raw: BinaryIO,
        name: str,
        batch_bytes: int,
        size: int | None,
        *,
        compression: str | None,
        cells: CellFormat = PLAIN,
    ) -> None:
        self._raw = raw
        self._cells = cells
        self.faults = CellFaults(name, cells, place="line", first=2)
        self._name = name
        self._size = size
        self._block = max(batch_bytes, _LEAST_BLOCK)
        self._text = self._as_utf_8(raw, compression)
        self._packing = {"gzip": "gzipped ", "zstd": "zstd-compressed "}.get(compression or "", "")
        self._types: dict[str, Any] = {}
        self._set_column: str | None = None
        self._numbers: tuple[str, ...] = ()
        self._mixed = False
        self._separator = ","
        try:
            self.column_names, self._rest = self._read_header()
        except BaseException:
            self.close()
            raise

    @classmethod
    def of_file(cls, path: Path, name: str, batch_bytes: int, cells: CellFormat = PLAIN) -> CsvSource:
        """Open a file, through gzip or zstd if its name says so."""
        size = path.stat().st_size
        compression = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix.lower())
        return cls(path.open("rb"), name, batch_bytes, size, compression=compression, cells=cells)

    @classmethod
    def of_standard_input(cls, batch_bytes: int, cells: CellFormat = PLAIN) -> CsvSource:
        """Read standard input, whose length is unknown."""
        return cls(sys.stdin.buffer, "standard input", batch_bytes, None, compression=None, cells=cells)

    @property
    def progress(self) -> float | None:
        """The fraction of the file's bytes that has been read."""
        if self._size is None:
            return None
        if self._raw.closed or not self._size:
            return 1.0
        return min(1.0, self._raw.tell() / self._size)

    def choose(self, columns: Sequence[str], ids: Sequence[str], set_column: str | None) -> None:
        """Fix the type of every column that will be read."""
        # Numbers are read as text too, and converted here, because people write them in many ways.
        self._types = {column: pyarrow().string() for column in (*columns, *ids)}
        self._numbers = tuple(column for column in columns if column != set_column)
        self._set_column = set_column

    def choose_ids(self, columns: Sequence[str]) -> None:
        """Read these columns as text, and no others."""
        self._types = {column: pyarrow().string() for column in columns}
        self._set_column = None

    def choose_mixed(self, columns: Sequence[str], numbers: Sequence[str]) -> Sequence[str]:
        """Read columns of numbers as numbers, in which text may mean a missing one, and others as text."""
        self.choose_ids(columns)
        self._numbers, self._mixed = tuple(numbers), True
        return [column for column in columns if column not in numbers]

    def batches(self) -> Generator[Any, None, None]:
        """Read block by block."""
        module = pyarrow("csv")
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
                    include_columns=list(self._types),
                    column_types=self._types,
                    null_values=[""],
                    strings_can_be_null=True,
                ),
            )
            with reader:
                for batch in reader:
                    records += batch.num_rows
                    numbers = self._with_numbers(batch)
                    yield numbers if self._set_column is None else self._with_sets(numbers)
                    self.faults.end_batch(batch.num_rows)
        except UnicodeError:
            refusal = self._wrongly_encoded()
        except (pyarrow().ArrowException, OSError, EOFError) as error:
            if str(error).startswith("Empty CSV file"):
                return  # A header alone, with which the stream of records deals.
            refusal = self._refusal(error)
        else:
            lines.check(records, self._name)
            return
        # Raised outside the handler, so that the engine's message is not its context either.
        raise refusal

    def close(self) -> None:
        """Close the file, but never standard input."""
        if self._size is not None:
            self._raw.close()

    def _as_utf_8(self, raw: BinaryIO, compression: str | None) -> Any:
        """The bytes of the file, unpacked and in UTF-8."""
        text: Any = pyarrow().input_stream(raw, compression=compression) if compression else raw
        return text if self._cells.encoding == _UTF_8 else TextInUtf8(text, self._cells.encoding)

    def _read_header(self) -> tuple[list[str], bytes]:
        try:
            start = self._text.read(_HEADER_BYTES)
        except UnicodeError:
            raise self._wrongly_encoded() from None
        except (OSError, EOFError, pyarrow().ArrowException):
            raise DataRefused(
                (FilePath(self._name), f" cannot be read as {self._packing}CSV"), remedy="check what wrote it"
            ) from None
        start = bytes(start).removeprefix(b"\xef\xbb\xbf")
        self._refuse_other_formats(start)
        if not start.strip():
            raise DataRefused(
                (FilePath(self._name), " must have a header and records"),
                got="an empty file",
                remedy="check what wrote it",
            )
        line, ending, rest = _first_line(start)
        if not line.strip():
            raise DataRefused(
                ("the first line of ", FilePath(self._name), " must name the columns"),
                got="an empty line",
                remedy="remove what stands above the header",
            )
        try:
            header = line.decode()
            self._separator = _separator_of(header)
            # Blanks around a name are not seen or typed; those around numbers do not count either.
            read = next(csv.reader([header], strict=True, delimiter=self._separator))
            names = [name.strip() for name in read]
        except (UnicodeDecodeError, csv.Error) as error:
            if isinstance(error, csv.Error) and b"\r" in line and b"\0" not in line:
                raise DataRefused(
                    (FilePath(self._name), " cannot be read as CSV: its lines must end in a line feed"),
                    got="carriage returns alone",
                    remedy="save it with the line ends of Windows or Unix",
                ) from None
            raise DataRefused(
                (
                    FilePath(self._name),
                    " cannot be read as CSV: its first line must be a header in UTF-8",
                ),
                remedy=_DECLARE_ENCODING,
            ) from None
        # A file without a header would have its first record taken for names, and shown in messages.
        refuse_numbers_as_names(names, self._name)
        if len(set(names)) != len(names):
            raise UsageError(
                ("the columns of ", FilePath(self._name), " must have distinct names"),
                remedy="rename them; if titles or notes stand above the header, remove these lines",
            )
        if not ending and len(start) == _HEADER_BYTES:
            raise DataRefused(
                (FilePath(self._name), " cannot be read as CSV: its first line is too long for a header")
            )
        return names, rest

    def _refuse_other_formats(self, start: bytes) -> None:
        for magic, (kind, remedy) in _OTHER_FORMATS.items():
            if start.startswith(magic):
                raise DataRefused((FilePath(self._name), " must be CSV"), got=kind, remedy=f"{remedy}")

    def _with_numbers(self, batch: Any) -> Any:
        """Replace text by the numbers that it writes."""
        for column in self._numbers:
            position = batch.schema.get_field_index(column)
            text = batch.column(position)
            if self._mixed:
                text = without_missing(text, self._cells.markers)
            numbers = self._cells.read(text, column, self.faults, separator=self._separator)
            batch = batch.set_column(position, column, numbers)
        return batch

    def _with_sets(self, batch: Any) -> Any:
        """Replace text by the lists of integers that it writes."""
        pa, compute = pyarrow(), pyarrow("compute")
        position = batch.schema.get_field_index(self._set_column)
        text = compute.fill_null(batch.column(position), "")
        words = compute.split_pattern_regex(text, r"[;\s]+")
        members, owners = words.flatten(), compute.list_parent_indices(words)
        written = compute.not_equal(members, "")
        owners = owners.filter(written).to_numpy()
        try:
            values = members.filter(written).cast(pa.int64())
        except pa.ArrowInvalid:
            values = None
        # Raised outside the handler: Arrow's message quotes a member.
        if values is None:
            raise DataRefused(
                (f"column {self._set_column!r} must have integers separated by spaces or semicolons"),
                got="something else",
                remedy="number the members with a public list of them",
            )
        offsets = np.searchsorted(owners, np.arange(batch.num_rows + 1)).astype(np.int32)
        return batch.set_column(position, self._set_column, pa.ListArray.from_arrays(offsets, values))

    def _wrongly_encoded(self) -> DataRefused:
        """The refusal of bytes that the declared encoding does not have."""
        return DataRefused(
            (FilePath(self._name), f" must be text in {self._cells.encoding}"),
            got="other bytes",
            remedy=("check ", Argument("encoding"), ', or save it as "CSV UTF-8"'),
        )

    def _refusal(self, error: Exception) -> DataRefused:
        fault = _FAULTY_COLUMN.match(str(error))
        if fault is not None:
            column = self.column_names[int(fault.group(1))]
            return DataRefused(
                (f"column {column!r} of ", FilePath(self._name), " must be text in UTF-8"),
                got="other bytes",
                remedy=_DECLARE_ENCODING,
            )
        return DataRefused(
            (
                FilePath(self._name),
                (
                    " cannot be read as CSV: every line must have as many fields as the header, "
                    "separated in the same way, and be shorter than a batch"
                ),
            )
        )


def _first_line(start: bytes) -> tuple[bytes, bytes, bytes]:
    """Split at the first line end that is not inside quotes."""
    end = -1
    while True:
        end = start.find(b"\n", end + 1)
        if end < 0:
            return start, b"", b""
        if start.count(b'"', 0, end) % 2 == 0:
            return start[:end].removesuffix(b"\r"), b"\n", start[end + 1 :]


def _separator_of(header: str) -> str:
    """What separates the names outside of quotes most often; a comma if nothing does."""
    outside = "".join(header.split('"')[::2])
    return max(_SEPARATORS, key=outside.count)


def refuse_numbers_as_names(names: Sequence[str], file: str) -> None:
    """Refuse a first line or row that names no columns: it would be a record.

    Raises
    ------
    DataRefused
        if one of the names is a number.
    """
    if any(_is_number(name) for name in names):
        raise DataRefused(
            ("the first line of ", FilePath(file), " must name the columns"),
            got="numbers",
            remedy="add a header, with names that are not numbers",
        )


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
