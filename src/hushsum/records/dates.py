"""Dates as numbers: units since an origin, both declared."""

from __future__ import annotations

import datetime
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hushsum.errors import UsageError, shown
from hushsum.records import arrow

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

    columns: tuple[str, ...] = ()
    pattern: str | None = None
    unit: str = "days"
    origin: str = EPOCH
    _zero: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise UsageError(
                parameter="date_unit", rule=f"must be one of {', '.join(UNITS)}", got=shown(self.unit)
            )
        if self.pattern is not None and ("%" not in self.pattern or len(self.pattern) > _LONGEST_FORMAT):
            raise UsageError(
                parameter="date_format",
                rule="must be made of %d, %m, %Y and the like",
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
            text = _iso(text, self.pattern)
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
        pa, compute = arrow.pyarrow(), arrow.pyarrow("compute")
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

    def others(self, text: Any) -> Any:
        """The cells that are not dates, for a description of their kind; missing ones are not among them."""
        compute = arrow.pyarrow("compute")
        cells = compute.drop_null(compute.utf8_trim_whitespace(text))
        if self.pattern is None:
            return cells.filter(compute.invert(compute.match_substring_regex(cells, _ISO)))
        moments = compute.strptime(cells, format=self.pattern, unit="us", error_is_null=True)
        return cells.filter(compute.is_null(moments))

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
        return arrow.pyarrow().array(text)

    def from_microseconds(self, moments: Any) -> Any:
        """The numbers of microseconds since 1970, as float64."""
        pa, compute = arrow.pyarrow(), arrow.pyarrow("compute")
        since = compute.subtract(moments, pa.scalar(self._zero, pa.int64()))
        return compute.divide(since.cast(pa.float64(), safe=False), float(UNITS[self.unit]))


def _iso(text: str, pattern: str) -> str:
    """A date in the ISO form, if it is written so or by the pattern; otherwise the text."""
    with suppress(ValueError):
        datetime.datetime.fromisoformat(text.strip())
        return text
    with suppress(ValueError):
        return datetime.datetime.strptime(text.strip(), pattern).isoformat()
    return text


def _microseconds(text: str, parameter: str) -> int:
    try:
        moment = datetime.datetime.fromisoformat(text.strip())
        since = moment - datetime.datetime.fromisoformat(EPOCH)
    # One with a time zone cannot be subtracted.
    except (ValueError, AttributeError, TypeError):
        raise UsageError(
            parameter=parameter,
            rule="must be a date",
            got=shown(text),
            remedy="such as 2024-05-31",
        ) from None
    return since // datetime.timedelta(microseconds=1)


NO_DATES: Final = DateFormat()
