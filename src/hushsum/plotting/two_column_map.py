"""A function of two columns: a heat map, with a line around what stands out of the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hushsum._types import Floats
from hushsum.plotting.figure import FAINT, INK
from hushsum.plotting.ticks import label_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize


_DECADES = 1e4
"""What a logarithmic scale spans at most."""
_NOISE = 3.0
"""Standard errors below which a logarithmic scale shows nothing."""


@dataclass(frozen=True, slots=True)
class TwoColumnMap:
    """Values on a grid, shape (len(y), len(x)), the lower ends of their intervals, and the median standard
    error; NaN and None where these are not known. ``signed`` values may be below 0 by themselves, not only by
    noise; of a ``decision`` the sign is what counts.
    """

    HEIGHT: ClassVar[float] = 6.6
    """Inches, of a figure of its own."""

    x: Floats
    y: Floats
    value: Floats
    lower: Floats
    level: float
    stderr: float | None
    simultaneous: bool = True
    log: bool = False
    signed: bool = False
    decision: bool = False

    @property
    def has_edge(self) -> bool:
        """Whether the interval lies above 0 in some places and not in others."""
        return bool(self.lower.min() < 0.0 < self.lower.max())


def _norm(heat: TwoColumnMap, highest: float) -> Normalize:
    from matplotlib.colors import Normalize

    lowest = float(heat.value.min())
    if heat.decision:
        most = max(abs(lowest), highest)
        return Normalize(-most, most)
    return Normalize(min(0.0, lowest) if heat.signed else 0.0, highest)


def draw_heat_map(axes: Axes, heat: TwoColumnMap, *, x_label: str, y_label: str, value_label: str) -> None:
    """Draw a grid of values with its colour bar.

    The dashed line encloses where the interval lies above 0. Values below 0, which are noise unless they are
    signed, have the colour of 0; so have, on a logarithmic scale, those below three median standard errors.
    """
    from matplotlib.colors import LogNorm

    axes.grid(visible=False)
    highest = max(float(heat.value.max()), np.finfo(float).tiny)
    # On a logarithmic scale whatever is within the noise has the colour of its least value.
    floor = max(highest / _DECADES, _NOISE * (heat.stderr or 0.0)) if heat.log else 0.0
    norm = LogNorm(min(floor, highest / 2.0), highest) if heat.log else _norm(heat, highest)
    mesh = axes.pcolormesh(
        heat.x,
        heat.y,
        np.maximum(heat.value, floor) if heat.log else heat.value,
        cmap="RdBu_r" if heat.decision and not heat.log else "viridis",
        norm=norm,
        shading="gouraud",
        rasterized=True,
    )
    if heat.has_edge:
        axes.contour(
            heat.x, heat.y, heat.lower, levels=[0.0], colors="white", linewidths=0.9, linestyles="dashed"
        )
    figure = axes.get_figure()
    assert figure is not None
    bar = figure.colorbar(mesh, ax=axes, pad=0.025, fraction=0.12, aspect=22)
    if value_label:
        bar.set_label(value_label, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=9, length=3, color=FAINT)
    for axis in (axes.xaxis, axes.yaxis) if heat.log else (axes.xaxis, axes.yaxis, bar.ax.yaxis):
        label_ticks(axis)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
