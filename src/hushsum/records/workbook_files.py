"""Excel workbooks (.xlsx): one sheet, decoded in a process of its own, some rows at a time."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hushsum.errors import Argument, DataRefused, FilePath, UsageError
from hushsum.records import arrow
from hushsum.records.cell_format import CellFaults, CellFormat, not_of, without_missing
from hushsum.records.columnar_files import ColumnarSource, not_mixed, unreadable
from hushsum.records.csv_files import refuse_numbers_as_names

_KINDS = 3
"""Columns that the process sends for each chosen one: numbers, moments and text."""

_LARGEST_ID = 2.0**53
"""From here on different whole numbers are the same cell."""


class WorkbookSource(ColumnarSource):
    """One sheet of a workbook, whose first row names the columns; see `record_batches.Source`.

    A cell is read by its own type: a number, a date, or text, which is read as in CSV files. What others of
    its column are makes no difference to it.
    """

    def __init__(self, path: Path, name: str, batch_bytes: int, cells: CellFormat) -> None:
        if find_spec("openpyxl") is None:
            raise UsageError(
                rule=(FilePath(name), " needs the package openpyxl to be read"),
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
                rule=("the columns of ", FilePath(name), " must have distinct names"), remedy="rename them"
            )

    def choose(self, columns: Sequence[str], unit_column: str | None, set_column: str | None) -> None:
        """Choose the columns; their cells have types of their own."""
        if set_column is not None:
            self.close()
            raise UsageError(
                parameter="set_column",
                rule="must be a column of a CSV, Parquet or Arrow file",
                got="a workbook",
                remedy="export the sheet as CSV",
            )
        self._ids = [] if unit_column is None else [unit_column]
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
                yield arrow.pyarrow().RecordBatch.from_arrays(read, names=self._columns)
                self.faults.end_batch(batch.num_rows)

    def _column(self, name: str, numbers: Any, moments: Any, text: Any) -> Any:
        compute = arrow.pyarrow("compute")
        if self._mixed and moments.null_count < len(moments):
            raise not_mixed(name, "dates")
        if name in self._ids:
            largest = compute.max(compute.abs(numbers)).as_py()
            if largest is not None and largest >= _LARGEST_ID:
                raise DataRefused(
                    rule=(
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
                numbers.cast(arrow.pyarrow().int64(), safe=False).cast(arrow.pyarrow().string()),
                numbers.cast(arrow.pyarrow().string()),
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
