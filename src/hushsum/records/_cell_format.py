"""What a cell of a file means: numbers, missing values, and dates as units since a declared origin."""

from __future__ import annotations

import codecs
import datetime
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, Final

import numpy as np

from hushsum.declaration import setting
from hushsum.errors import Argument, DataRefused, FilePath, Part, UsageError, Words, parts_of, shown

from ._arrow import pyarrow

__all__ = [
    "ENCODINGS", "NO_DATES", "PLAIN", "UNITS", "CellFaults", "CellFormat", "DateFormat", "as_numbers",
    "without_missing",
]  # fmt: skip

_SECOND: Final = 1_000_000
UNITS: Final = {
    "seconds": _SECOND,
    "minutes": 60 * _SECOND,
    "hours": 3600 * _SECOND,
    "days": 86_400 * _SECOND,
    "weeks": 7 * 86_400 * _SECOND,
    "years": 31_556_952 * _SECOND,
}
"""Microseconds; a year is the mean one of the Gregorian calendar, 365.2425 days."""

EPOCH: Final = "1970-01-01"
# The heading of help for everything about cells.
FILE_FORMAT: Final = "File format"
_option = partial(setting, group=FILE_FORMAT)
_LONGEST_FORMAT: Final = 64
_ISO: Final = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}(:\d{2}){1,2}(\.\d+)?)?$"


@dataclass(frozen=True, slots=True)
class DateFormat:
    """How dates are written in files, and what numbers they become; declared, and public.

    Parameters
    ----------
    columns : tuple of str
        Those that contain dates. Others must be of numbers.
    pattern : str, optional
        As of ``strptime``, such as ``%d.%m.%Y``; by default ISO dates: ``2024-05-31``, with or without a time
        of day.
    unit : {"seconds", "minutes", "hours", "days", "weeks", "years"}
    origin : str
        The ISO date that is 0.

    Privacy
    -------
    The number of a date depends on its cell and on what is declared here, never on other cells: no format is
    guessed.
    """

    columns: tuple[str, ...] = _option(
        (), "Columns of dates, which become numbers; ranges may be dates too.", name="dates", metavar="NAMES"
    )
    pattern: str | None = _option(
        None,
        "How dates are written, such as %d.%m.%Y. [default: as 2024-05-31]",
        name="date_format",
        metavar="FORMAT",
    )
    unit: str = _option(
        "days",
        "Dates are seconds, minutes, hours, days, weeks or years since the origin.",
        name="date_unit",
        choices=tuple(UNITS),
        metavar="UNIT",
    )
    origin: str = _option(EPOCH, "The date that is 0.", name="date_origin", metavar="DATE")
    _zero: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise UsageError("date_unit", f"must be one of {', '.join(UNITS)}", got=shown(self.unit))
        if self.pattern is not None and ("%" not in self.pattern or len(self.pattern) > _LONGEST_FORMAT):
            raise UsageError(
                "date_format",
                "must be made of %d, %m, %Y and the like",
                got=shown(self.pattern),
                remedy="such as %d.%m.%Y",
            )
        object.__setattr__(self, "_zero", _microseconds(self.origin, "date_origin"))

    def number(self, text: str, parameter: str) -> float:
        """The number of a date that was typed, such as a bound: in the ISO form, which may have a time of
        day, or else in that of files.

        >>> january = DateFormat(pattern="%d.%m.%Y", origin="2024-01-01")
        >>> january.number("2024-01-31", "bounds"), january.number("2024-01-02T12:00", "at")
        (30.0, 1.5)
        >>> january.number("31.01.2024", "bounds")
        30.0
        """
        if self.pattern is not None:
            try:
                datetime.datetime.fromisoformat(text.strip())
            except ValueError:
                with suppress(ValueError):
                    text = datetime.datetime.strptime(text.strip(), self.pattern).isoformat()
        return (_microseconds(text, parameter) - self._zero) / UNITS[self.unit]

    def days(self, number: float) -> float:
        """Days since 1970 of a number.

        >>> DateFormat(unit="hours", origin="1970-01-03").days(12.0)
        2.5
        """
        return (number * UNITS[self.unit] + self._zero) / UNITS["days"]

    def of_days(self, days: float) -> float:
        """The inverse of :meth:`days`."""
        return (days * UNITS["days"] - self._zero) / UNITS[self.unit]

    def numbers(self, text: Any) -> Any | None:
        """The numbers of a ``pyarrow`` array of text, as float64; None if one of the cells is not a date.
        Missing cells stay missing.

        >>> import pyarrow as pa
        >>> cells = pa.array(["2024-01-02", "2024-01-02 12:00", None])
        >>> DateFormat(origin="2024-01-01").numbers(cells).to_pylist()
        [1.0, 1.5, None]
        >>> DateFormat(pattern="%d.%m.%Y", unit="years").numbers(pa.array(["01.01.1970"])).to_pylist()
        [0.0]
        """
        pa, compute = pyarrow(), pyarrow("compute")
        cells = compute.utf8_trim_whitespace(text)
        if self.pattern is None:
            try:
                moments = cells.cast(pa.timestamp("us"))
            except pa.ArrowInvalid:
                return None
        else:
            moments = compute.strptime(cells, format=self.pattern, unit="us", error_is_null=True)
            if moments.null_count != cells.null_count:
                return None
        return self.from_microseconds(moments.cast(pa.int64()))

    def recognised(self, cells: Any) -> Any:
        """Which cells of text, without spaces around them, are dates; null where they are missing."""
        compute = pyarrow("compute")
        if self.pattern is None:
            return compute.match_substring_regex(cells, _ISO)
        return compute.is_valid(compute.strptime(cells, format=self.pattern, unit="us", error_is_null=True))

    def text(self, numbers: Any) -> Any:
        """ISO dates of a ``pyarrow`` array of numbers, to the second; the time of day only where there is
        one.

        >>> import pyarrow as pa
        >>> DateFormat(unit="hours").text(pa.array([24.0, 36.5])).to_pylist()
        ['1970-01-02', '1970-01-02T12:30:00']
        """
        since = np.asarray(numbers, np.float64) * UNITS[self.unit] + self._zero
        seconds = np.rint(since / _SECOND).astype("datetime64[s]")
        text = [str(each).removesuffix("T00:00:00") for each in seconds]
        return pyarrow().array(text)

    def from_microseconds(self, moments: Any) -> Any:
        """The numbers of microseconds since 1970, as float64."""
        pa, compute = pyarrow(), pyarrow("compute")
        since = compute.subtract(moments, pa.scalar(self._zero, pa.int64()))
        return compute.divide(since.cast(pa.float64(), safe=False), float(UNITS[self.unit]))


def _microseconds(text: str, parameter: str) -> int:
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        since = moment - datetime.datetime.fromisoformat(EPOCH)
    # One with a time zone cannot be subtracted.
    except (ValueError, AttributeError, TypeError):
        raise UsageError(parameter, "must be a date", got=shown(text), remedy="such as 2024-05-31") from None
    return since // datetime.timedelta(microseconds=1)


NO_DATES: Final = DateFormat()


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
    missing : tuple of str
        Cells that stand for a missing value too, beside ``MISSING``, such as ``k.A.`` and ``999``. A number
        is compared as a number, also in columns of numbers.

    Privacy
    -------
    Markers are declared, never found in the records. Whether a record is left out depends on that record
    alone. How many were is private, and nothing counts
    them. A record that is replaced by one with a missing cell changes the number of records that are counted,
    which is public and exact under replace: so records are dropped for claims under add/remove alone.
    """

    decimal: str = _option(
        ".", "Decimal sign of numbers in CSV files: . or a comma.", choices=(".", ","), metavar="SIGN"
    )
    drop_missing: bool = _option(False, "Leave out records with a missing value, instead of refusing them.")
    dates: DateFormat = NO_DATES
    sheet: str | None = _option(None, "Sheet of a workbook. [default: the first]", metavar="NAME")
    encoding: str = _option("utf-8", "Encoding of CSV files, such as windows-1252 or utf-16.", metavar="NAME")
    missing: tuple[str, ...] = _option(
        (),
        "Cells that stand for a missing value, such as k.A.,999, beside empty cells and NA.",
        metavar="MARKERS",
    )

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise UsageError("decimal", "must be . or ,", got=shown(self.decimal))
        markers: Any = self.missing
        if isinstance(markers, str) or not all(isinstance(each, str) and each.strip() for each in markers):
            raise UsageError(
                "missing",
                "must be a list of texts that stand for missing values",
                remedy="such as k.A. and 999; an empty cell is one already",
            )
        try:
            encoding = _ENCODING_NAMES[codecs.lookup(self.encoding).name]
        except (LookupError, TypeError, ValueError):
            rule = f"must be one of {', '.join(ENCODINGS)}"
            raise UsageError("encoding", rule, got=shown(self.encoding)) from None
        object.__setattr__(self, "missing", tuple(each.strip() for each in markers))
        object.__setattr__(self, "encoding", encoding)

    def check_relation(self, relation: str) -> None:
        """Refuse to drop records for a claim under replace; a tally remembers it until its release instead.

        Raises
        ------
        UsageError
            in this case.
        """
        if self.drop_missing and relation != "add/remove":
            raise UsageError(
                "drop_missing",
                "is for releases under add/remove, because it changes the number of records",
                got="replace",
                remedy="write a file without those records first",
            )

    @property
    def markers(self) -> tuple[str, ...]:
        """All cells of text that stand for a missing value."""
        return (*MISSING, *self.missing)

    def read(self, text: Any, column: str, faults: CellFaults, *, separator: str = ",") -> Any:
        """The numbers that a ``pyarrow`` array of text writes, or the dates, as float64.

        Cells that are neither are added to ``faults``, by their kind, and the numbers are missing then.
        ``separator`` is what separates the fields of the file. Programs that write semicolons do so because
        commas are decimal signs: there ``13,412`` is refused until the sign is declared.
        """
        pa, compute = pyarrow(), pyarrow("compute")
        dates = column in self.dates.columns
        if self.drop_missing or self.missing:
            text = without_missing(text, self.markers if self.drop_missing else self.missing)
        found = self.dates.numbers(text) if dates else as_numbers(text, self.decimal)
        if found is None:
            for kind, remedy, mask in self._kinds_of(text, column, dates=dates):
                faults.add(column, kind, remedy, mask)
            return pa.nulls(len(text), pa.float64())
        if separator == ";" and self.decimal == "." and not dates:
            # One comma with three digits after it, and no point.
            comma = compute.match_substring_regex(text, r"^[^\pL\d.,]*[1-9]\d{0,2},\d{3}[^\pL\d.,]*$")
            if compute.any(comma).as_py():
                kind = "commas that may be decimal signs, in a file with semicolons"
                faults.add(column, kind, _AMBIGUOUS_REMEDY, comma)
        return found

    def _kinds_of(self, text: Any, column: str, *, dates: bool) -> Iterator[tuple[str, Words, Any]]:
        """Every kind of cell that is not a number or date, what to do about it, and where it is."""
        pa, compute = pyarrow(), pyarrow("compute")
        cells = compute.utf8_trim_whitespace(text)
        if dates:
            good = self.dates.recognised(cells)
        else:
            good = compute.match_substring_regex(_plain(cells, self.decimal), _NUMBER)
        left = compute.and_(compute.is_valid(cells), compute.invert(compute.fill_null(good, False)))
        kinds: list[tuple[str, Words, Any]] = [
            ("missing values", _MISSING_REMEDY, compute.is_in(cells, value_set=pa.array(self.markers))),
            ("its own name", "remove lines that repeat the header", compute.equal(cells, column.strip())),
        ]
        if not dates:
            skipped = "decimal commas" if self.decimal == "," else "decimal points"
            kinds += [
                (kind, remedy, compute.match_substring_regex(cells, pattern))
                for kind, pattern, remedy in _KINDS
                if kind != skipped
            ]
        for kind, remedy, mask in kinds:
            found = compute.and_(left, compute.fill_null(mask, False))
            if compute.any(found).as_py():
                yield kind, remedy, found
                left = compute.and_(left, compute.invert(found))
        if compute.any(left).as_py():
            kind, remedy = _kind_of_no_dates(cells.filter(left)) if dates else _TEXT
            yield kind, remedy, left

    def without_numbers(self, batch: Any, columns: Sequence[str]) -> Any:
        """The batch with nulls for numbers that are declared to stand for missing values."""
        pa, compute = pyarrow(), pyarrow("compute")
        numbers = [as_numbers(pa.array([each]), self.decimal) for each in self.missing]
        marked = [float(each[0].as_py()) for each in numbers if each is not None]
        for column in columns if marked else ():
            values = batch.column(column)
            if not _is_number(values) or column in self.dates.columns:
                continue
            absent = compute.is_in(values.cast(pa.float64(), safe=False), value_set=pa.array(marked))
            batch = with_column(batch, column, compute.if_else(absent, pa.scalar(None, values.type), values))
        return batch

    def kept(self, batch: Any) -> Any:
        """The batch without records that have a missing cell, where they are dropped."""
        if not self.drop_missing:
            return batch
        compute = pyarrow("compute")
        absent = [compute.is_null(column, nan_is_null=True) for column in batch.columns]
        return batch.filter(compute.invert(reduce(compute.or_, absent)))


def with_column(batch: Any, name: str, values: Any) -> Any:
    """The batch with other values in a column."""
    return batch.set_column(batch.schema.get_field_index(name), name, values)


def _is_number(values: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_integer(values.type) or types.is_floating(values.type))


@dataclass(slots=True, eq=False, repr=False)
class CellFaults:
    """Why the cells of a file are refused: every kind in every column, and where its first cell is.

    It keeps no cell, and no number of them. ``place`` and ``first`` say what a record is counted as, and the
    number of the next: lines of CSV begin at 2, after the header; empty lines are not counted.
    """

    file: str
    cells: CellFormat
    place: str = "row"
    first: int = 1
    found: dict[tuple[str, str], tuple[int, Words]] = field(default_factory=dict, init=False)

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, column: str, kind: str, remedy: Words, mask: Any) -> None:
        """Note cells of the current batch; those before them count."""
        where = self.first + int(pyarrow("compute").index(mask, True).as_py())
        self.found.setdefault((column, kind), (where, remedy))

    def add_missing(self, batch: Any, columns: Sequence[str]) -> None:
        """Note what is missing in columns of numbers, where it is not dropped."""
        refused = {column for column, _ in self.found}
        for column in columns:
            values = batch.column(column)
            if values.null_count and _is_number(values) and column not in refused:
                self.add(column, "missing values", _MISSING_REMEDY, values.is_null())

    def end_batch(self, records: int) -> None:
        """Count the records of a batch, for the places of the next."""
        self.first += records

    def check(self) -> None:
        """Refuse the file for all of its faults at once.

        Raises
        ------
        DataRefused
            if there are any.
        """
        if not self.found:
            return
        columns = list(dict.fromkeys(column for column, _ in self.found))
        dates = self.cells.dates.columns
        kinds = dict.fromkeys("dates" if column in dates else "numbers" for column in columns)
        several = len(columns) > 1
        named = f"column{'s' * several} {', '.join(map(repr, columns))}"
        each = [
            f"{kind} (first in {self.place} {where})" + (f" in {column!r}" if several else "")
            for (column, kind), (where, _) in self.found.items()
        ]
        remedies = list(dict.fromkeys(remedy for _, remedy in self.found.values()))
        words: list[Part] = [part for remedy in remedies for part in ("; ", *parts_of(remedy))][1:]
        if {_MISSING_REMEDY, _TEXT[1]} & set(remedies):
            known = ", ".join(marker or "an empty cell" for marker in self.cells.markers)
            words += [
                f"; known markers of missing values: {known}; declare others with ",
                Argument("missing"),
            ]
        raise DataRefused(
            (f"{named} of ", FilePath(self.file), f" must be of {' or '.join(kinds)}"),
            got=", ".join(each),
            remedy=tuple(words),
        )


MISSING: Final = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "none", "-", "?", ".")
"""Texts of cells that mean a missing value."""

_MISSING_REMEDY: Final[Words] = ("correct those records, or leave them out with ", Argument("drop_missing"))
_AMBIGUOUS_REMEDY: Final[Words] = (
    "write thousands without commas, or if they are decimals give ",
    Argument("decimal", ","),
)
_TEXT: Final[tuple[str, Words]] = (
    "text",
    "correct or drop such records, or if it is a column of text, encode it with a public list of "
    "categories or leave it out",
)
_NUMBER: Final = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$|^[-+]?(?i:inf|infinity|nan)$"
_CURRENCY: Final = "[$€£¥]"
# What separates groups of three digits whatever the decimal sign is.
_SPACES: Final = (" ", "\u00a0", "\u202f", "'", "’")

# What cells that are not numbers may look like, and what to do about them.
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
    cells = pyarrow("compute").utf8_trim_whitespace(text)
    numbers = _cast(cells) if decimal == "." else None
    return _cast(_plain(cells, decimal)) if numbers is None else numbers


def without_missing(text: Any, markers: Sequence[str] = MISSING) -> Any:
    """The text with nulls for cells that stand for a missing value."""
    pa, compute = pyarrow(), pyarrow("compute")
    missing = compute.is_in(compute.utf8_trim_whitespace(text), value_set=pa.array(markers))
    return compute.if_else(missing, pa.scalar(None, text.type), text)


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
