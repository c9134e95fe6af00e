"""A function of two columns: a heat map, with a line around what stands out of the noise."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hushsum.plotting.figure import FAINT, INK, new_figure, save_figure
from hushsum.plotting.ticks import label_ticks

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Values on a grid, shape (len(y), len(x)), and the lower ends of their intervals."""

    x: Floats
    y: Floats
    value: Floats
    lower: Floats


def draw_heat_map(
    heat: HeatMap,
    path: str | os.PathLike[str],
    *,
    title: str,
    caption: str,
    x_label: str,
    y_label: str,
    value_label: str,
) -> None:
    """Write a picture of a grid of values with its colour bar.

    The dashed line encloses where the interval lies above 0. Values below 0, which are noise, have the colour
    of 0.
    """
    figure, axes = new_figure(title=title, caption=caption, width=8.0, height=6.6)
    axes.grid(visible=False)
    highest = max(float(heat.value.max()), np.finfo(float).tiny)
    mesh = axes.pcolormesh(
        heat.x, heat.y, heat.value, cmap="viridis", vmin=0.0, vmax=highest, shading="gouraud", rasterized=True
    )
    if heat.lower.min() < 0.0 < heat.lower.max():
        axes.contour(
            heat.x, heat.y, heat.lower, levels=[0.0], colors="white", linewidths=0.9, linestyles="dashed"
        )
    place = axes.get_position()
    axes.set_position((place.x0, place.y0, place.width - 0.155, place.height))
    beside = figure.add_axes((place.x1 - 0.135, place.y0, 0.03, place.height))
    bar = figure.colorbar(mesh, cax=beside)
    bar.set_label(value_label, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=9, length=3, color=FAINT)
    for axis in (axes.xaxis, axes.yaxis, bar.ax.yaxis):
        label_ticks(axis)
    axes.set_xlabel(x_label, color=INK)
    axes.set_ylabel(y_label, color=INK)
    save_figure(figure, path)
