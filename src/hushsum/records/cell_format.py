"""How the cells of files are read: the decimal sign, dates, and records with missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hushsum.errors import DataRefused, FilePath, UsageError, Words
from hushsum.records.arrow import pyarrow
from hushsum.records.dates import NO_DATES, DateFormat
from hushsum.records.number_parsing import as_numbers, check_decimal, kind_of_others, without_missing


@dataclass(frozen=True, slots=True)
class CellFormat:
    """What is declared about the cells of files; all of it is public.

    Parameters
    ----------
    decimal : {".", ","}
        Of numbers in CSV files.
    drop_missing : bool
        Leave out records in which a chosen cell is missing: a null or NaN, and in CSV an empty cell or one
        such as ``NA``. Otherwise such files are refused.
    dates : DateFormat
        Which columns contain dates, and what numbers these become.
    sheet : str, optional
        Of a workbook; by default its first.

    Privacy
    -------
    Whether a record is left out depends on that record alone. How many were is private, and nothing counts
    them. A record that is replaced by one with a missing cell changes the number of records that are counted,
    which is public and exact under replace: so records are dropped for claims under add/remove alone.
    """

    decimal: str = "."
    drop_missing: bool = False
    dates: DateFormat = NO_DATES
    sheet: str | None = None

    def __post_init__(self) -> None:
        check_decimal(self.decimal)

    def check_relation(self, relation: str | None) -> None:
        """Refuse to drop records for a claim under replace, or for a tally (None), whose claim is not known.

        Raises
        ------
        UsageError
            in these cases.
        """
        if self.drop_missing and relation != "add/remove":
            raise UsageError(
                parameter="drop_missing",
                rule="is for releases under add/remove, because it changes the number of records",
                got="a tally" if relation is None else "replace",
                remedy="write a file without those records first",
            )

    def numbers(self, text: Any, column: str, file: str) -> Any:
        """The numbers that a ``pyarrow`` array of text writes, or the dates, as float64.

        Raises
        ------
        DataRefused
            if a cell is neither, with the kind of cell that it is and never the cell.
        """
        if self.drop_missing:
            text = without_missing(text)
        dates = column in self.dates.columns
        found = self.dates.numbers(text) if dates else as_numbers(text, self.decimal)
        if found is not None:
            return found
        compute = pyarrow("compute")
        if compute.any(compute.equal(compute.utf8_trim_whitespace(text), column.strip())).as_py():
            raise not_of(column, file, "its own name", "remove lines that repeat the header", dates=dates)
        others = self.dates.others(text) if dates else text
        kind, remedy = kind_of_others(others, self.decimal, dates=dates)
        raise not_of(column, file, kind, remedy, dates=dates)

    def kept(self, batch: Any) -> Any:
        """The batch without records that have a missing cell, where they are dropped."""
        if not self.drop_missing:
            return batch
        compute, types = pyarrow("compute"), pyarrow().types
        mask = None
        for column in batch.columns:
            present = compute.is_valid(column)
            if types.is_floating(column.type):
                absent = compute.fill_null(compute.is_nan(column), True)
                present = compute.and_(present, compute.invert(absent))
            mask = present if mask is None else compute.and_(mask, present)
        return batch if mask is None else batch.filter(mask)


def not_of(column: str, file: str, kind: str, remedy: Words, *, dates: bool = False) -> DataRefused:
    """The refusal of a column for the kind of its cells."""
    return DataRefused(
        rule=(f"column {column!r} of ", FilePath(file), f" must be of {'dates' if dates else 'numbers'}"),
        got=kind,
        remedy=remedy,
    )


PLAIN: Final = CellFormat()
"""Decimal points, and every cell present."""
