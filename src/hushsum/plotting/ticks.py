"""Numbers along an axis, all written alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_MINUS: Final = "\N{MINUS SIGN}"
_MOST_DECIMALS: Final = 5
_APART: Final = 10_000
_DATES: Final = ((365.0, "%Y"), (28.0, "%Y-%m"), (1.0, "%Y-%m-%d"), (0.0, "%m-%d %H:%M"))
"""How dates are written that are at least so many days apart."""


def label_ticks(axis: Axis) -> None:
    """Label an axis with numbers that share their decimals."""
    from matplotlib.ticker import ScalarFormatter

    class Alike(ScalarFormatter):
        def format_ticks(self, values: Sequence[float]) -> list[str]:
            return written_alike(values)

    axis.set_major_formatter(Alike())


def label_dates(axis: Axis, to_days: Callable[[float], float], of_days: Callable[[float], float]) -> None:
    """Label an axis with dates, for numbers that ``to_days`` makes days since 1970 of.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure().add_subplot()
    >>> _ = axes.set_xlim(19_723, 19_844)
    >>> label_dates(axes.xaxis, lambda day: day, lambda day: day)
    >>> [label.get_text() for label in axes.get_xticklabels()][:2]
    ['2024-01', '2024-02']
    """
    import matplotlib.dates

    untyped: Any = matplotlib.dates
    num2date = untyped.num2date
    low, high = sorted(to_days(float(end)) for end in axis.get_view_interval())
    places = untyped.AutoDateLocator(minticks=3, maxticks=7).tick_values(num2date(low), num2date(high))
    inside = [float(each) for each in places if low <= each <= high]
    step = min((after - before for before, after in pairwise(inside)), default=1.0)
    shape = next(shape for least, shape in _DATES if step >= least)
    axis.set_ticks([of_days(each) for each in inside], [num2date(each).strftime(shape) for each in inside])


def written_alike(values: Sequence[float]) -> list[str]:
    """Numbers with as many decimals as the one that needs most, and a true minus; thousands apart from 10,000
    on, so that years have no comma.

    >>> written_alike([-0.5, 0.0, 0.25])
    ['−0.50', '0.00', '0.25']
    >>> written_alike([0, 5000, 10000])
    ['0', '5,000', '10,000']
    >>> written_alike([1990, 2000])
    ['1990', '2000']
    >>> written_alike([0, 2e-07])
    ['0e+00', '2e−07']
    """
    numbers = [float(value) for value in values]
    largest = max((abs(number) for number in numbers), default=0.0)
    slack = 1e-6 * largest
    for decimals in range(_MOST_DECIMALS + 1):
        if all(abs(round(number, decimals) - number) <= slack for number in numbers):
            apart = "," if largest >= _APART else ""
            return [_text(f"{round(number, decimals) + 0.0:{apart}.{decimals}f}") for number in numbers]
    digits = next((d for d in range(4) if all(abs(float(f"{n:.{d}e}") - n) <= slack for n in numbers)), 4)
    return [_text(f"{number:.{digits}e}") for number in numbers]


def _text(number: str) -> str:
    return number.replace("-", _MINUS)
