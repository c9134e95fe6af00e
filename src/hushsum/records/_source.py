"""A file of records, whatever its format: its columns, and batches of the chosen ones."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from hushsum.errors import DataRefused, FilePath, UsageError

from ._cell_format import CellFaults, CellFormat

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
