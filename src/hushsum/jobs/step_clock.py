"""When the steps of a watched stream are due: on a clock that does not depend on the records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hushsum.errors import UsageError, shown

_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_SHORT: Final = {name[0]: name for name in _UNITS}
_PERIOD: Final = re.compile(r"(?:([1-9][0-9]{0,5})\s*)?([a-z]+?)s?", re.ASCII)
_MONDAY: Final = 4 * 86400
"""The first Monday of the epoch, which began on a Thursday."""


def seconds_of(period: str) -> int:
    """The length of a period: ``day``, ``6h``, ``15 minutes``.

    Raises
    ------
    UsageError
        if it is none.

    >>> seconds_of("day"), seconds_of("15 minutes"), seconds_of("6h")
    (86400, 900, 21600)
    """
    found = _PERIOD.fullmatch(period.strip().lower())
    unit = None if found is None else _SHORT.get(found[2], found[2])
    if found is None or unit not in _UNITS:
        raise UsageError(
            parameter="every",
            rule="must be a length of time",
            got=shown(period),
            remedy="day, week, hour, 6h, 15 minutes",
        )
    return int(found[1] or 1) * _UNITS[unit]


@dataclass(frozen=True, slots=True)
class StepClock:
    """Periods of equal length; step k is due when period k has ended.

    ``start`` is when the first period began, in seconds since 1970 (UTC). Days end at midnight UTC, weeks on
    Monday, hours on the hour.

    Examples
    --------
    >>> clock = StepClock.starting("day", 1.7e9)
    >>> clock.due(1.7e9), clock.due(1.7e9 + 3 * 86400)
    (0, 3)
    """

    seconds: int
    start: int

    @classmethod
    def starting(cls, period: str, now: float) -> StepClock:
        """A clock whose first period is the one that contains ``now``."""
        seconds = seconds_of(period)
        offset = _MONDAY if seconds % _UNITS["week"] == 0 else 0
        return cls(seconds, int(now - offset) // seconds * seconds + offset)

    def due(self, now: float) -> int:
        """How many periods have ended."""
        return max(0, int(now - self.start) // self.seconds)

    def ends(self, step: int) -> int:
        """When the period of a step ends."""
        return self.start + step * self.seconds

    def in_words(self, step: int) -> str:
        """The end of a step's period, for people."""
        return datetime.fromtimestamp(self.ends(step), UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
