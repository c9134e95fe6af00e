"""How the cells of files are read: numbers as people and spreadsheets write them (``$1,234.50``,
``1.234,50 €``, ``(1 234)``), dates, and records with missing values.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import Any, Final

from hushsum.errors import Argument, DataRefused, FilePath, UsageError, Words, shown
from hushsum.records.arrow import pyarrow
from hushsum.records.dates import NO_DATES, DateFormat


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
    encoding : str
        Of CSV files: one of ``ENCODINGS``, by any name that Python has for it.

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
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        check_decimal(self.decimal)
        object.__setattr__(self, "encoding", checked_encoding(self.encoding))

    def check_relation(self, relation: str) -> None:
        """Refuse to drop records for a claim under replace; a tally remembers it until its release instead.

        Raises
        ------
        UsageError
            in this case.
        """
        if self.drop_missing and relation != "add/remove":
            raise UsageError(
                parameter="drop_missing",
                rule="is for releases under add/remove, because it changes the number of records",
                got="replace",
                remedy="write a file without those records first",
            )

    def numbers(self, text: Any, column: str, file: str, *, separator: str = ",") -> Any:
        """The numbers that a ``pyarrow`` array of text writes, or the dates, as float64.

        ``separator`` is what separates the fields of the file. Programs that write semicolons do so because
        commas are decimal signs: there ``13,412`` is refused until the sign is declared.

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
            if separator == ";" and self.decimal == "." and not dates and _has_ambiguous_commas(text):
                raise not_of(
                    column,
                    file,
                    "commas that may be decimal signs, in a file with semicolons",
                    (
                        "write thousands without commas, or if they are decimals give ",
                        Argument("decimal", ","),
                    ),
                )
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


MISSING: Final = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "none", "-", "?", ".")
"""Cells that stand for a value that is not there."""

_CURRENCY: Final = "[$€£¥]"
_SPACES: Final = (" ", "\u00a0", "\u202f", "'", "’")
"""What separates groups of three digits whatever the decimal sign is."""

_KINDS: Final = (
    (
        "dates",
        r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?$",
        (
            "name the column in ",
            Argument("dates"),
            ", and give ",
            Argument("date_format"),
            " if they are not like 2024-05-31",
        ),
    ),
    (
        "decimal commas",
        r"^[^\pL]*(\d,\d{1,2}|\b0,\d+|\d,\d{4,}|\d,\d+[eE][+-]?\d+)[^\d\pL]*$",
        ("give ", Argument("decimal", ",")),
    ),
    (
        "decimal points",
        r"^[^\pL]*(\d\.\d{1,2}|\b0\.\d+|\d\.\d{4,}|\d\.\d+[eE][+-]?\d+)[^\d\pL]*$",
        ("give ", Argument("decimal", ".")),
    ),
    ("percentages", r"^[^\pL]*\d\s*%$", "write them as plain numbers"),
)
"""What cells that are not numbers may look like, and what to do about them."""


def check_decimal(decimal: str) -> str:
    """The decimal sign, if it is one.

    Raises
    ------
    UsageError
        It is neither a point nor a comma.
    """
    if decimal not in (".", ","):
        raise UsageError(parameter="decimal", rule="must be . or ,", got=shown(decimal))
    return decimal


ENCODINGS: Final = (
    "utf-8",
    "utf-16",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "iso-8859-1",
    "iso-8859-2",
    "iso-8859-15",
    "gb18030",
    "big5",
    "shift_jis",
    "euc-kr",
)
"""Encodings of CSV files. What bytes of a record mean in them does not depend on the records before it, as it
would in an encoding with escape sequences."""

_ENCODING_NAMES: Final = {codecs.lookup(each).name: each for each in ENCODINGS}


def checked_encoding(encoding: str) -> str:
    """The name of an encoding as `ENCODINGS` has it.

    >>> checked_encoding("CP1252"), checked_encoding("latin-1")
    ('windows-1252', 'iso-8859-1')

    Raises
    ------
    UsageError
        It is none of them.
    """
    try:
        return _ENCODING_NAMES[codecs.lookup(encoding).name]
    except (LookupError, TypeError, ValueError):
        raise UsageError(
            parameter="encoding", rule=f"must be one of {', '.join(ENCODINGS)}", got=shown(encoding)
        ) from None


def as_numbers(text: Any, decimal: str = ".") -> Any | None:
    """The numbers that a ``pyarrow`` array of text writes, as float64; None if one of them is not a number.

    A number may have a sign, a currency sign before or after it, groups of three digits separated by spaces,
    apostrophes or the other one of point and comma, and parentheses for a negative amount. With a decimal
    comma ``1.5`` is not a number, nor is ``0.500``, and ``1.500`` is fifteen hundred. Missing cells stay
    missing.

    Privacy
    -------
    What a cell means depends on that cell and on the declared decimal sign, never on other cells.

    >>> import pyarrow as pa
    >>> as_numbers(pa.array(["$1,234.50", "(12)", " 7e-2 ", None])).to_pylist()
    [1234.5, -12.0, 0.07, None]
    >>> as_numbers(pa.array(["1.234,50 €", "0,5"]), decimal=",").to_pylist()
    [1234.5, 0.5]
    """
    compute = pyarrow("compute")
    cells = compute.utf8_trim_whitespace(text)
    if decimal == ".":
        numbers = _cast(cells)
        if numbers is not None:
            return numbers
    return _cast(_plain(cells, decimal))


def _has_ambiguous_commas(text: Any) -> bool:
    """Whether a cell has one comma with three digits after it, and no point."""
    compute = pyarrow("compute")
    found = compute.match_substring_regex(text, r"^[^\pL\d.,]*[1-9]\d{0,2},\d{3}[^\pL\d.,]*$")
    return bool(compute.any(found).as_py())


def without_missing(text: Any) -> Any:
    """The text with nulls for cells that stand for a missing value."""
    pa, compute = pyarrow(), pyarrow("compute")
    missing = compute.is_in(compute.utf8_trim_whitespace(text), value_set=pa.array(MISSING))
    return compute.if_else(missing, pa.scalar(None, text.type), text)


def kind_of_others(text: Any, decimal: str = ".", *, dates: bool = False) -> tuple[str, Words]:
    """What the first cells that are no numbers look like, in words, and what to do about them.

    The cells themselves are not shown: they are private.
    """
    pa, compute = pyarrow(), pyarrow("compute")
    cells = compute.drop_null(compute.utf8_trim_whitespace(text))
    if compute.any(compute.is_in(cells, value_set=pa.array(MISSING))).as_py():
        return "missing values", ("correct those records, or leave them out with ", Argument("drop_missing"))
    if dates:
        return _kind_of_no_dates(cells)
    for kind, pattern, remedy in _KINDS:
        if kind == ("decimal commas" if decimal == "," else "decimal points"):
            continue
        if compute.any(compute.match_substring_regex(cells, pattern)).as_py():
            return kind, remedy
    return (
        "text",
        "correct or drop such records, or if it is a column of text, encode it with a public list of "
        "categories or leave it out",
    )


def _kind_of_no_dates(cells: Any) -> tuple[str, Words]:
    compute = pyarrow("compute")
    if compute.any(compute.match_substring_regex(cells, r"\d(Z|[+-]\d{2}:?\d{2})$")).as_py():
        return "dates with a time zone", "write them in one time zone, without it"
    if compute.any(compute.match_substring_regex(cells, _KINDS[0][1])).as_py():
        return "dates that are written in another way", (
            "give ",
            Argument("date_format"),
            ", such as %d.%m.%Y, in which all of them are written",
        )
    return "other text", (
        "give ",
        Argument("date_format"),
        " if they are dates, such as %Y%m%d or %d %B %Y; otherwise correct or drop such records, or leave "
        "the column out",
    )


def _cast(cells: Any) -> Any | None:
    try:
        return cells.cast(pyarrow().float64())
    except pyarrow().ArrowInvalid:
        return None


def _plain(cells: Any, decimal: str) -> Any:
    """The cells without what stands around a number, with a decimal point."""
    compute = pyarrow("compute")

    def replaced(pattern: str, by: str) -> Any:
        return compute.replace_substring_regex(cells, pattern, by)

    cells = replaced(r"^\(\s*([^-+()]*?)\s*\)$", r"-\1")
    cells = replaced(rf"^([-+]?)\s*{_CURRENCY}\s*", r"\1")
    cells = replaced(rf"\s*{_CURRENCY}$", "")
    point = r"\." if decimal == "." else ","
    for group in (*_SPACES, "," if decimal == "." else "."):
        # No group begins with a zero: 0,345 is a decimal comma, and not 345.
        written = rf"^[-+]?[1-9]\d{{0,2}}(?:[{group}]\d{{3}})+(?:{point}\d*)?$"
        grouped = compute.match_substring_regex(cells, written)
        cells = compute.if_else(grouped, compute.replace_substring(cells, group, ""), cells)
    if decimal == ",":
        # A point that is left is not one of a group, and no decimal sign either.
        cells = compute.replace_substring(cells, ".", "no number")
        cells = compute.replace_substring(cells, ",", ".")
    return cells


PLAIN: Final = CellFormat()
"""Decimal points, and every cell present."""
