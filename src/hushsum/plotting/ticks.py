"""Numbers along an axis, all written alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axis import Axis

_MINUS: Final = "\N{MINUS SIGN}"
_MOST_DECIMALS: Final = 5
_APART: Final = 10_000


def label_ticks(axis: Axis) -> None:
    """Label an axis with numbers that share their decimals."""
    from matplotlib.ticker import ScalarFormatter

    class Alike(ScalarFormatter):
        def format_ticks(self, values: Sequence[float]) -> list[str]:
            return written_alike(values)

    axis.set_major_formatter(Alike())


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
