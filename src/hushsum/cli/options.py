"""Options that several commands share, and the values that are typed after them: numbers, ranges, names."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import typer

from hushsum.errors import Parameter, UsageError, shown
from hushsum.records import DateFormat

N = TypeVar("N", int, float)


def completing(words: Callable[[], Sequence[str]]) -> Callable[[str], list[str]]:
    """What a shell completes a value to; the words are looked up then."""
    return lambda incomplete: [each for each in words() if each.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
EncryptionKeyFile = Annotated[
    str | None,
    typer.Option(
        "--encryption-key-file",
        metavar="PATH",
        help="Key of encrypted tallies: 32 bytes, or 64 hexadecimal digits.",
    ),
]
Threads = Annotated[
    int | None, typer.Option("--threads", help="Default: all cores. The result does not depend on it.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first warning, before anything is spent.")
]
AllowClipping = Annotated[
    bool,
    typer.Option(
        "--allow-clipping",
        help="Continue with a warning where most records lie outside the bounds. [default: stop, before "
        "anything is spent]",
    ),
]
DatasetName = Annotated[str | None, typer.Option("--dataset", help="Name of the dataset in the ledger.")]
Ledger = Annotated[
    str, typer.Option("--ledger", metavar="PATH|URL", help="Ledger: a file, or a PostgreSQL URL.")
]
Dataset = Annotated[str, typer.Option("--dataset", help="Name of the dataset in the ledger.")]

RecordFiles = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="CSV, Parquet or Arrow; - reads CSV from standard input."),
]
ReleasedFile = Annotated[str, typer.Argument(metavar="HUSH", help="The .hush file; - is standard input.")]
ReleaseOutput = Annotated[
    str, typer.Option("--output", "-o", help="The .hush file to write; - is standard output.")
]
TallyOutput = Annotated[str, typer.Option("--output", "-o", help="The .tally file to write.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not request confirmation.")]
Listen = Annotated[
    str,
    typer.Option(
        "--listen", metavar="HOST:PORT", help="Address and port to listen on; port 0: any free port."
    ),
]


def names(text: str | None, parameter: str) -> tuple[str, ...] | None:
    """Names separated by commas, with or without blanks; a name with a comma in it stands in quotes.

    >>> names('R, "a, b"', "columns")
    ('R', 'a, b')
    """
    if text is None:
        return None
    found = tuple(each.strip() for each in next(csv.reader([text], skipinitialspace=True), []))
    if not found or "" in found:
        rule = "must be names separated by commas"
        raise UsageError(parameter, rule, got="an empty one", remedy="such as R,G,B")
    return found


def numbers(text: str, parameter: str) -> tuple[float, ...]:
    """Numbers separated by commas.

    >>> numbers("120,80.5", "at")
    (120.0, 80.5)
    """
    return _listed(text, parameter, float, "numbers", "120,80,60") if text.strip() else ()


def integers(text: str, parameter: str) -> tuple[int, ...]:
    """Integers separated by commas.

    >>> integers("100,200", "rows")
    (100, 200)
    """
    return _listed(text, parameter, int, "integers", "100,200")


def _listed(text: str, parameter: str, kind: Callable[[str], N], what: str, example: str) -> tuple[N, ...]:
    try:
        return tuple(map(kind, text.split(",")))
    except ValueError:
        rule = f"must be {what} separated by commas"
        raise UsageError(parameter, rule, got=shown(text), remedy=f"such as {example}") from None


def point(text: str, parameter: str) -> tuple[float, ...]:
    """The numbers of a point, or the members of a set, which files separate by blanks or semicolons too.

    >>> point("3 17;20", "at")
    (3.0, 17.0, 20.0)
    """
    found = point_with_dates(text, parameter)
    if any(isinstance(each, str) for each in found):
        raise _no_point(text, parameter)
    return tuple(map(float, found))


def point_with_dates(text: str, parameter: str) -> tuple[float | str, ...]:
    """The same for points that may have dates, which stay text.

    >>> point_with_dates("2024-05-31,7", "at")
    ('2024-05-31', 7.0)
    """
    found: list[float | str] = []
    for each in re.split(r"[,;\s]+", text.strip(" ,;")):
        try:
            found += [float(each)] if each else []
        except ValueError:
            if each.count("-") != 2:
                raise _no_point(text, parameter) from None
            found.append(each)
    return tuple(found)


def _no_point(text: str, parameter: str) -> UsageError:
    return UsageError(
        parameter,
        "must be the numbers of a point, or the members of a set, separated by commas",
        got=shown(text),
        remedy="such as 120,80,60",
    )


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
        rule = "must be numbers, unless they are of a column of dates"
        raise UsageError(parameter, rule, got=shown(pair), remedy=("name the column in ", Parameter("dates")))
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
    """Ranges in the form that methods take: one range for all columns, or one for each column.

    >>> box("0:255", "bounds"), box("0:1,0:2", "bounds")
    ((0.0, 255.0), ((0.0, 1.0), (0.0, 2.0)))
    """
    found = ranges(text, parameter, dates)
    return found[0] if found is not None and len(found) == 1 else found
