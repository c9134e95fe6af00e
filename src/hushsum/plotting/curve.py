"""A function of one column: its curve with an error band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushsum._types import Floats
from hushsum.plotting.figure import BLUE, INK, VERMILION
from hushsum.plotting.ticks import label_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE = 0.015
"""Room left and right of a curve, as a part of its length, so that it ends inside the picture."""

_LINE = 0.008
"""The width of a line, as a part of the height of a picture."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values and intervals along one column, shape (n,); ``truth`` only for data one may look at.

    Intervals are NaN where they are not known; ``stderr`` is the median standard error.
    """

    HEIGHT: ClassVar[float] = 4.8
    """Inches, of a figure of its own."""

    x: Floats
    value: Floats
    lower: Floats
    upper: Floats
    level: float
    truth: tuple[Floats, Floats] | None = None
    simultaneous: bool = False
    stderr: float | None = None


def _is_narrow(curve: Curve, known: NDArray[np.bool_]) -> bool:
    """Whether the line of the values hides the band."""
    extent = max(0.0, float(curve.upper[known].max())) - min(0.0, float(curve.lower[known].min()))
    return bool((curve.upper - curve.lower)[known].max() < _LINE * extent)


def draw_curve(axes: Axes, curve: Curve, *, x_label: str, y_label: str, legend: bool = True) -> None:
    """Draw a curve and its error band."""
    known = np.isfinite(curve.lower) & np.isfinite(curve.upper)
    if known.any():
        where = "at all points together" if curve.simultaneous else "at each point"
        narrow = "\n(narrower than the line)" if _is_narrow(curve, known) else ""
        band = f"{curve.level:.0%} interval, {where}{narrow}"
        axes.fill_between(curve.x, curve.lower, curve.upper, color=BLUE, alpha=0.22, linewidth=0, label=band)
    axes.plot(curve.x, curve.value, color=BLUE, linewidth=1.8, label="released")
    if curve.truth is not None:
        axes.plot(*curve.truth, color=VERMILION, linewidth=1.4, linestyle=(0, (4, 2)), label="true")
    axes.axhline(0.0, color=INK, linewidth=0.6)
    first, last = float(curve.x[0]), float(curve.x[-1])
    axes.set_xlim(first - _SIDE * (last - first), last + _SIDE * (last - first))
    lower, upper = (np.where(known, side, curve.value) for side in (curve.lower, curve.upper))
    lowest, highest = min(0.0, float(lower.min())), max(0.0, float(upper.max()))
    margin = 0.04 * (highest - lowest) or 1.0
    axes.set_ylim(lowest - (margin if lowest < 0 else 0.0), highest + margin)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    label_ticks(axes.xaxis)
    label_ticks(axes.yaxis)
    if legend:
        axes.legend(frameon=False, fontsize=9, labelcolor=INK)
