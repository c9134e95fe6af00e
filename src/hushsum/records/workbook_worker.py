"""Rows of an Excel workbook, for the process that decodes files; see `hushsum.records.columnar_worker`.

It imports nothing of Hushsum, as that program. A workbook is a zip archive of XML, which can be made to
unfold to terabytes, or to expand entities: the sizes that the archive states are checked first, of which
``zipfile`` reads no more, and every part that declares a document type is refused. What is left is bounded by
the memory limit of the process.
"""

from __future__ import annotations

import datetime
import math
import zipfile
from collections.abc import Iterator
from importlib import import_module
from itertools import chain, islice, repeat
from typing import Any, Final
from xml.parsers import expat

MOST_PARTS: Final = 10_000
MOST_RATIO: Final = 200
ALWAYS_ALLOWED: Final = 64 << 20
MOST_BYTES: Final = 4 << 30
_PIECE: Final = 1 << 16
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)
_CELL_BYTES: Final = 64

Cell = tuple[float | None, int | None, str | None]
"""A cell is a number, a moment in microseconds, or text; all three are None where it is empty."""


class Refused(Exception):
    """A workbook that is not read; no message quotes it."""


class NoSuchSheet(Exception):
    """A workbook without the requested sheet; ``names`` are those of the sheets it has."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names


class Workbook:
    """The rows of one sheet, of which the first names the columns."""

    def __init__(self, path: str, sheet: str | None) -> None:
        check_archive(path)
        openpyxl: Any = import_module("openpyxl")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        if sheet is not None and sheet not in book.sheetnames:
            raise NoSuchSheet([str(each) for each in book.sheetnames])
        self._sheet = book[sheet] if sheet is not None else book.worksheets[0]
        # The stated size may be wrong, and would be allocated.
        self._sheet.reset_dimensions()
        self._rows: Iterator[tuple[Any, ...]] = self._sheet.iter_rows(values_only=True)
        header = next(self._rows, ())
        self.names = ["" if each is None else str(each).strip() for each in header]
        while self.names and not self.names[-1]:
            self.names.pop()

    def batches(self, columns: list[str], batch_bytes: int) -> Iterator[list[list[Cell]]]:
        """The cells of the chosen columns, some rows at a time.

        Rows without any cell are left out. In a sheet of one column such a row is a record without a value,
        unless it is after the last one: left out, it would change the number of records, which is public
        where a record is replaced.
        """
        places = [self.names.index(name) for name in columns]
        number = max(1, batch_bytes // (_CELL_BYTES * max(1, len(places))))
        filled = self._filled_rows()
        for first in filled:
            rows = chain([first], islice(filled, number - 1))
            yield [[cell_of(row[place] if place < len(row) else None) for place in places] for row in rows]

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
