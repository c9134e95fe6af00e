"""Parquet and Arrow files, decoded in a process of their own, a slice of a row group at a time."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Final

from hushsum.errors import Argument, DataRefused, FilePath, UsageError, Words, shown
from hushsum.records import arrow
from hushsum.records.arrow_stream import read_stream
from hushsum.records.cell_format import PLAIN, CellFaults, CellFormat, not_of
from hushsum.records.columnar_process import Decoder, DecoderDied

_LARGEST_RATIO: Final = 10_000
_ALWAYS_ALLOWED: Final = 64 << 20
_MOST_SHEETS: Final = 12
"""Of which a message has the names."""


class ColumnarSource:
    """A Parquet or an Arrow (Feather) file; see `hushsum.records.record_batches.Source`.

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

    def choose(self, columns: Sequence[str], unit_column: str | None, set_column: str | None) -> None:
        """Check the types that the schema declares."""
        self._columns = [*columns, *([] if unit_column is None else [unit_column])]
        self._decoder.send(columns=self._columns)
        types = self._json()
        declared = self._cells.dates.columns
        self._dates = [column for column in columns if column in types["dates"] and column in declared]
        undeclared = {column: "dates" for column in types["dates"] if column not in self._dates}
        for column, kind in {**types["other"], **undeclared}.items():
            if column == unit_column:
                raise DataRefused(
                    rule=f"column {column!r} must be of numbers or text", got=kind, remedy="convert it"
                )
            raise wrong_type(column, kind, sets=column == set_column)
        empty = self._batch()
        if empty is None:
            raise unreadable(self._name, self._kind)
        written = [column for column in columns if column in declared and column not in self._dates]
        for column in written:
            if not arrow.is_text(empty.schema.field(column).type):
                raise not_of(column, self._name, "numbers", "leave it out of the dates", dates=True)
        if self._cells.missing:
            # Markers of missing values make text of a column of numbers, which is read as in CSV.
            others = [each for each in columns if each not in (*written, set_column)]
            written += [each for each in others if arrow.is_text(empty.schema.field(each).type)]
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
        types = arrow.pyarrow().types
        for column in columns:
            kind = empty.schema.field(column).type
            inner = kind.value_type if types.is_dictionary(kind) else kind
            if not (types.is_integer(inner) or types.is_string(inner) or types.is_large_string(inner)):
                raise DataRefused(
                    rule=f"column {column!r} must be of integers or text", got=kind, remedy="convert it"
                )

    def choose_mixed(self, columns: Sequence[str], numbers: Sequence[str]) -> Sequence[str]:
        """Read these columns, of numbers, text or truth values, and no others."""
        self._columns = list(columns)
        self._decoder.send(columns=self._columns)
        types = self._json()
        empty = self._batch()
        if empty is None:
            raise unreadable(self._name, self._kind)
        nested = arrow.pyarrow().types.is_nested
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
                rule=(FilePath(self._name), f" must not unfold to more than {_LARGEST_RATIO} times its size"),
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
                rule=(FilePath(self._name), " needs more memory to decode than a file may take"),
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
        rule=(FilePath(name), f" cannot be read as {kind}"),
        remedy="it is damaged, or of another kind than its name says",
    )


def _no_such_sheet(name: str, sheet: str | None, sheets: Sequence[str]) -> UsageError:
    """Names of sheets are shown as those of columns are: they belong to whoever owns the file."""
    return UsageError(
        parameter="sheet",
        rule=("must name a sheet of ", FilePath(name)),
        got=shown(sheet),
        remedy=f"the sheets are {', '.join(map(repr, sheets[:_MOST_SHEETS]))}"
        + (", …" if len(sheets) > _MOST_SHEETS else ""),
    )


def not_mixed(column: str, kind: str) -> DataRefused:
    """The refusal of a column of a table of numbers, text and truth values."""
    return DataRefused(
        rule=f"column {column!r} must be of numbers, text or truth values", got=kind, remedy="convert it"
    )


def refuse_other_types(schema: Any, columns: Sequence[str], set_column: str | None) -> None:
    """Raise DataRefused for the first chosen column that is neither numbers nor lists of numbers."""
    for column in columns:
        kind = schema.field(column).type
        listed = arrow.is_any_list(kind)
        inner = kind.value_type if listed else kind
        if column == set_column:
            if not (listed and arrow.pyarrow().types.is_integer(inner)):
                raise wrong_type(column, kind, sets=True)
        elif not arrow.is_number(inner):
            categories = arrow.pyarrow().types.is_dictionary(kind)
            raise wrong_type(column, "categories" if categories else kind, sets=False)


def wrong_type(column: str, kind: object, *, sets: bool) -> DataRefused:
    """The refusal of a column by its type."""
    if sets:
        return DataRefused(
            rule=f"column {column!r} must have lists of integers",
            got=kind,
            remedy="number the members with a public list of them",
        )
    remedy: Words = "encode it with a public list of categories, or leave the column out"
    if kind == "dates":
        remedy = ("name the column in ", Argument("dates"))
    return DataRefused(rule=f"column {column!r} must be of numbers", got=kind, remedy=remedy)
