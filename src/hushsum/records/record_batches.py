"""Files of any size as batches of records, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol

from hushsum.errors import DataRefused, FilePath, Parameter, UsageError
from hushsum.records.cell_format import PLAIN, CellFaults, CellFormat
from hushsum.records.columns_by_name import choose_columns
from hushsum.records.remote_files import LocalCopy, file_name, is_url, shown_path

DEFAULT_BATCH_BYTES: Final = 1 << 20

_FORMATS: Final = {
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".csv.zst": "CSV",
    ".tsv": "CSV",
    ".tsv.gz": "CSV",
    ".tsv.zst": "CSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
    ".ipc": "Arrow",
    ".xlsx": "Excel",
    ".xlsm": "Excel",
}


class Source(Protocol):
    """A file of one format: its columns, and batches of the chosen ones."""

    @property
    def column_names(self) -> list[str]:
        """Every column of the file."""

    @property
    def progress(self) -> float | None:
        """The fraction read, or None if the length is unknown."""

    def choose(self, columns: Sequence[str], unit_column: str | None, set_column: str | None) -> None:
        """Check the types of the chosen columns, where the format states them before reading."""

    def choose_mixed(self, columns: Sequence[str], numbers: Sequence[str]) -> Sequence[str]:
        """Choose columns of numbers, text and truth values. Returns those whose cells come as text that
        somebody wrote; the columns of ``numbers`` do not, nor do those of files with types.
        """

    @property
    def faults(self) -> CellFaults:
        """What was refused of the batches so far; a batch is counted when the next one is requested."""

    def batches(self) -> Generator[Any, None, None]:
        """Batches that have the chosen columns at least; raises DataRefused for what cannot be read."""

    def close(self) -> None:
        """Close the file."""


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

    __slots__ = ("_cells", "_columns", "_may_be_empty", "_name", "_opened", "_source", "_unit_column")

    def __init__(
        self,
        name: str,
        source: Source,
        columns: Sequence[str],
        unit_column: str | None,
        cells: CellFormat = PLAIN,
        *,
        may_be_empty: bool = False,
    ) -> None:
        self._name = name
        self._may_be_empty = may_be_empty
        self._cells = cells
        self._source = source
        self._columns = list(columns)
        self._unit_column = unit_column
        self._opened = False

    @property
    def column_names(self) -> list[str]:
        """The columns of the batches, in order."""
        return list(self._columns)

    @property
    def progress(self) -> float | None:
        """The fraction of the file that has been read, between 0 and 1, or None for standard input."""
        return self._source.progress

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        if self._opened:
            raise UsageError(rule=f"{self._name} was read already", remedy="open it again")
        self._opened = True
        empty = True
        with closing(self._source), closing(self._source.batches()) as batches:
            faults = self._source.faults
            for read in batches:
                marked = self._cells.without_numbers(read, self._columns)
                if not self._cells.drop_missing:
                    faults.add_missing(marked, self._columns)
                if faults:
                    # The rest is read for what else is refused, so that one attempt shows everything.
                    continue
                batch = self._cells.kept(marked)
                if not batch.num_rows:
                    continue
                empty = False
                units = None if self._unit_column is None else batch.column(self._unit_column)
                yield batch.select(self._columns), units
            faults.check()
        if empty and not self._may_be_empty:
            raise DataRefused(
                rule=f"{self._name} must have at least one record", got="none", remedy="check what wrote it"
            )

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __enter__(self) -> RecordStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_batches(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    unit_column: str | None = None,
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
    (`hushsum.records.cell_format`), and their ids as strings, so a person who is 5 in a CSV file is also
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
        raise UsageError(parameter="batch_bytes", rule="must be at least 1", got=f"{batch_bytes}")
    if set_column is not None and columns is not None:
        raise UsageError(
            parameter="columns",
            rule=("and ", Parameter("set_column"), " exclude each other"),
            remedy="give one of them",
        )
    if name is None:
        name = "standard input" if path == "-" else shown_path(str(path))
    source = open_source(path, name, batch_bytes, row_groups, cells)
    try:
        if unit_column is not None:
            choose_columns(source.column_names, [unit_column], "unit_column")
        # A misspelt one would leave dates to be read as numbers, where they are written without signs.
        choose_columns(source.column_names, cells.dates.columns, "dates")
        if set_column is not None:
            columns = [set_column]
        elif columns is None:
            columns = [column for column in source.column_names if column != unit_column]
            if "" in columns:
                raise UsageError(
                    rule=(FilePath(name), " has a column without a name"),
                    remedy="say which columns make a record",
                )
        if not columns:
            raise UsageError(
                rule=(FilePath(name), " must have a column besides the one of persons"),
                remedy="choose the columns of a record",
            )
        if unit_column in columns:
            raise UsageError(
                parameter="unit_column",
                rule="must not be a column of records too",
                got=f"{unit_column!r}",
            )
        choose_columns(source.column_names, columns)
        source.choose(columns, unit_column, set_column)
    except BaseException:
        source.close()
        raise
    return RecordStream(name, source, columns, unit_column, cells, may_be_empty=may_be_empty)


def row_group_sizes(path: str | os.PathLike[str]) -> list[int]:
    """The bytes of each row group of a Parquet file, unpacked; 0 for one without rows. Empty for other files.

    Raises
    ------
    UsageError
        No such file.
    DataRefused
        The file cannot be read as Parquet.
    """
    from hushsum.records.columnar_files import ColumnarSource

    if _format_of(os.fspath(path)) != "Parquet":
        return []
    source = open_source(path, shown_path(os.fspath(path)), DEFAULT_BATCH_BYTES, None)
    source.close()
    inner = source.source if isinstance(source, FetchedSource) else source
    return inner.row_group_sizes if isinstance(inner, ColumnarSource) else []


class FetchedSource:
    """A source of a local copy; a Parquet file is fetched where it is read, and the copy deleted then."""

    def __init__(self, source: Source, copy: LocalCopy, ranges: Sequence[tuple[int, int]] = ()) -> None:
        self.source, self._copy, self._ranges = source, copy, ranges

    @property
    def column_names(self) -> list[str]:
        """Every column of the file."""
        return self.source.column_names

    @property
    def faults(self) -> CellFaults:
        """What was refused so far."""
        return self.source.faults

    @property
    def progress(self) -> float | None:
        """The fraction read."""
        return self.source.progress

    def choose(self, columns: Sequence[str], unit_column: str | None, set_column: str | None) -> None:
        """Choose the columns to read."""
        self.source.choose(columns, unit_column, set_column)

    def choose_mixed(self, columns: Sequence[str], numbers: Sequence[str]) -> Sequence[str]:
        """Choose the columns to read."""
        return self.source.choose_mixed(columns, numbers)

    def batches(self) -> Generator[Any, None, None]:
        """Fetch what is read, and read it."""
        for start, end in self._ranges:
            self._copy.fetch(start, end)
        yield from self.source.batches()

    def close(self) -> None:
        """Close and delete the copy."""
        self.source.close()
        self._copy.close()


def _format_of(path: str) -> str | None:
    lowered = file_name(path).lower()
    return next((kind for suffix, kind in _FORMATS.items() if lowered.endswith(suffix)), None)


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
    from hushsum.records import columnar_files, csv_files

    if path == "-":
        return csv_files.CsvSource.of_standard_input(batch_bytes, cells)
    kind = _format_of(os.fspath(path))
    if kind is not None and is_url(path):
        return _fetched(str(path), name, kind, batch_bytes, row_groups, cells)
    file = Path(path)
    if not is_url(path) and not file.exists():
        raise UsageError(rule=(FilePath(name), " does not exist"), remedy="check the path")
    if file.is_dir():
        raise UsageError(
            rule=(FilePath(name), " must be a file"),
            got="a directory",
            remedy="name one file of it at a time",
        )
    if kind is None:
        raise UsageError(
            rule=(FilePath(name), f" must end in one of {', '.join(_FORMATS)}"), remedy="rename or convert it"
        )
    try:
        if kind == "CSV":
            return csv_files.CsvSource.of_file(file, name, batch_bytes, cells)
        if kind == "Excel":
            from hushsum.records.workbook_files import WorkbookSource

            return WorkbookSource(file, name, batch_bytes, cells)
        return columnar_files.ColumnarSource(file, name, kind, batch_bytes, row_groups, cells)
    except PermissionError:
        raise UsageError(
            rule=(FilePath(name), " must be readable by this user"), remedy="check its permissions"
        ) from None


def _fetched(
    url: str, name: str, kind: str, batch_bytes: int, row_groups: range | None, cells: CellFormat
) -> Source:
    """A file that is not on this machine: of Parquet the footer and the row groups that are read."""
    from hushsum.records.columnar_files import ColumnarSource

    copy = LocalCopy(url)
    try:
        if kind != "Parquet":
            copy.fetch_all()
            return FetchedSource(open_source(copy.path, name, batch_bytes, None, cells), copy)
        copy.fetch_footer()
        source = ColumnarSource(copy.path, name, kind, batch_bytes, row_groups, cells)
        return FetchedSource(source, copy, source.row_group_ranges)
    except BaseException:
        copy.close()
        raise
