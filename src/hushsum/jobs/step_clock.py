"""When the steps of a watched stream are due: on a clock that does not depend on the records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hushsum.errors import UsageError, shown

_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_MOST_MONTHS: Final = 1200
_SHORT: Final = {name[0]: name for name in _UNITS}
_PERIOD: Final = re.compile(r"(?:([1-9][0-9]{0,5})\s*)?([a-z]+?)s?", re.ASCII)
_MONDAY: Final = 4 * 86400
"""The first Monday of the epoch, which began on a Thursday."""


@dataclass(frozen=True, slots=True)
class StepClock:
    """Periods of equal length, or of whole calendar months; step k is due when period k has ended.

    ``start`` is when the first period began, in seconds since 1970 (UTC). Days end at midnight UTC, weeks on
    Monday, hours on the hour, months at midnight UTC before the first day of the next one. ``length`` counts
    seconds, or months if ``calendar`` is true.

    Examples
    --------
    >>> clock = StepClock.starting("day", 1.7e9)
    >>> clock.due(1.7e9), clock.due(1.7e9 + 3 * 86400)
    (0, 3)
    >>> StepClock.starting("month", 1.7e9).in_words(1)  # it is the middle of November 2023
    '2023-12-01 00:00:00 UTC'
    """

    length: int
    start: int
    calendar: bool = False

    @classmethod
    def starting(cls, period: str, now: float) -> StepClock:
        """A clock whose first period is the one that contains ``now``: ``day``, ``6h``, ``15 minutes``.

        Raises
        ------
        UsageError
            The period is not a length of time.
        """
        length, calendar = _length_of(period)
        if calendar:
            # Several months are counted from January of year 0, so that quarters and years begin as usual.
            return cls(length, _first_second(_month_of(now) // length * length), calendar=True)
        offset = _MONDAY if length % _UNITS["week"] == 0 else 0
        return cls(length, int(now - offset) // length * length + offset)

    def due(self, now: float) -> int:
        """How many periods have ended."""
        if self.calendar:
            return max(0, (_month_of(now) - _month_of(self.start)) // self.length)
        return max(0, int(now - self.start) // self.length)

    def ends(self, step: int) -> int:
        """When the period of a step ends."""
        if self.calendar:
            return _first_second(_month_of(self.start) + step * self.length)
        return self.start + step * self.length

    def in_words(self, step: int) -> str:
        """The end of a step's period, for people."""
        return datetime.fromtimestamp(self.ends(step), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _length_of(period: str) -> tuple[int, bool]:
    """The length of a period, and whether it is in calendar months instead of seconds."""
    found = _PERIOD.fullmatch(period.strip().lower())
    unit = "" if found is None else _SHORT.get(found[2], found[2])
    calendar = unit in _MONTHS
    number = int(found[1] or 1) if found is not None else 0
    length = number * {**_UNITS, **_MONTHS}.get(unit, 0)
    if not length or (calendar and length > _MOST_MONTHS):
        raise UsageError(
            parameter="every",
            rule="must be a length of time",
            got=shown(period),
            remedy="give for example day, week, month, quarter, 6h or 15 minutes",
        )
    return length, calendar


def _month_of(moment: float) -> int:
    """The months since January of year 0 until the one that contains a moment."""
    date = datetime.fromtimestamp(moment, UTC)
    return 12 * date.year + date.month - 1


def _first_second(month: int) -> int:
    """When a month begins, in seconds since 1970."""
    return int(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp())
