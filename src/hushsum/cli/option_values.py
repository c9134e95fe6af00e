"""What is typed on a command line: numbers, ranges, names, and how cells of files are read."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hushsum.errors import Parameter, UsageError, shown

if TYPE_CHECKING:
    from hushsum.records import CellFormat, DateFormat


def names(text: str | None, parameter: str) -> tuple[str, ...] | None:
    """Names separated by commas, with or without blanks; a name with a comma in it stands in quotes.

    >>> names('R, "a, b"', "columns")
    ('R', 'a, b')
    """
    if text is None:
        return None
    found = tuple(each.strip() for each in next(csv.reader([text], skipinitialspace=True), []))
    if not found or "" in found:
        raise UsageError(
            parameter, "must be names separated by commas", got="an empty one", remedy="such as R,G,B"
        )
    return found


def numbers(text: str, parameter: str) -> tuple[float, ...]:
    """Numbers separated by commas.

    >>> numbers("120,80.5", "at")
    (120.0, 80.5)
    """
    if not text.strip():
        return ()
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise UsageError(
            parameter, "must be numbers separated by commas", got=shown(text), remedy="such as 120,80,60"
        ) from None


def point(text: str, parameter: str) -> tuple[float, ...]:
    """The numbers of a point, or the members of a set, which files separate by blanks or semicolons too.

    >>> point("3 17;20", "at")
    (3.0, 17.0, 20.0)
    """
    try:
        return tuple(map(float, _separated(text)))
    except ValueError:
        raise _no_point(text, parameter) from None


def point_with_dates(text: str, parameter: str) -> tuple[float | str, ...]:
    """The same for points that may have dates, which stay text.

    >>> point_with_dates("2024-05-31,7", "at")
    ('2024-05-31', 7.0)
    """
    found: list[float | str] = []
    for each in _separated(text):
        try:
            found.append(float(each))
        except ValueError:
            if each.count("-") != 2:
                raise _no_point(text, parameter) from None
            found.append(each)
    return tuple(found)


def _separated(text: str) -> list[str]:
    return [each for each in re.split(r"[,;\s]+", text.strip(" ,;")) if each]


def _no_point(text: str, parameter: str) -> UsageError:
    return UsageError(
        parameter,
        "must be the numbers of a point, or the members of a set, separated by commas",
        got=shown(text),
        remedy="such as 120,80,60",
    )


def integers(text: str | None, parameter: str) -> tuple[int, ...] | None:
    """Integers separated by commas.

    >>> integers("100,200", "rows")
    (100, 200)
    """
    if text is None:
        return None
    try:
        return tuple(int(each) for each in text.split(","))
    except ValueError:
        raise UsageError(
            parameter, "must be integers separated by commas", got=shown(text), remedy="such as 100,200"
        ) from None


def ranges(
    text: str | None, parameter: str, dates: DateFormat | None = None
) -> tuple[tuple[float, float], ...] | None:
    """Ranges ``low:high`` separated by commas; with ``dates`` the ends may be dates.

    >>> ranges("0:255,-1:1", "bounds")
    ((0.0, 255.0), (-1.0, 1.0))
    """
    if text is None:
        return None
    found = []
    for each in text.split(","):
        ends = each.split(":")
        if len(ends) != 2:
            raise _no_range(each, parameter, dates)
        low, high = (_end(end, each, parameter, dates) for end in ends)
        found.append((low, high))
    return tuple(found)


def _end(text: str, pair: str, parameter: str, dates: DateFormat | None) -> float:
    try:
        return float(text)
    except ValueError:
        if dates is None or not (text.count("-") == 2 or dates.pattern):
            raise _no_range(pair, parameter, dates) from None
    if not dates.columns:
        raise UsageError(
            parameter,
            "must be numbers, unless they are of a column of dates",
            got=shown(pair),
            remedy=("name the column in ", Parameter("dates")),
        )
    return dates.number(text, parameter)


def _no_range(text: str, parameter: str, dates: DateFormat | None = None) -> UsageError:
    return UsageError(
        parameter,
        "must be low:high, separated by commas",
        got=shown(text),
        remedy="such as 0:255"
        if dates is None
        else ("such as 0:255, or 2024-01-01:2024-12-31 for a column of ", Parameter("dates")),
    )


def box(
    text: str | None, parameter: str, dates: DateFormat | None = None
) -> tuple[tuple[float, float], ...] | tuple[float, float] | None:
    """Ranges as methods take them: one for all columns, or one for each.

    >>> box("0:255", "bounds"), box("0:1,0:2", "bounds")
    ((0.0, 255.0), ((0.0, 1.0), (0.0, 2.0)))
    """
    found = ranges(text, parameter, dates)
    return found[0] if found is not None and len(found) == 1 else found


def of_public_file(cells: CellFormat) -> CellFormat:
    """The same for a file of public rows: of a workbook the first sheet, since ``sheet`` is of another."""
    return replace(cells, sheet=None)
