"""The pictures of the report: one panel a data set, accuracy against ε, in the form of figures 4 and 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from papers.private_race.curves import Curves, Subject

from hushsum.plotting import FAINT, GRID, INK, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The rest of Okabe and Ito's palette.
GREEN: Final = "#009E73"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
PURPLE: Final = "#CC79A7"


@dataclass(frozen=True, slots=True)
class Line:
    """How a method is drawn."""

    method: str
    label: str
    color: str
    style: str = "-"
    marker: str = "o"
    width: float = 1.6


def panel_figure(
    panels: int, *, columns: int, legend_rows: int, across: float = 3.4
) -> tuple[Figure, list[Axes]]:
    """Rows of empty panels in the look of the library's pictures, with room for a legend below; in inches.

    ``across`` is from one panel's left edge to the next; 0.58 less is its width.
    """
    from matplotlib.figure import Figure

    rows = -(-panels // columns)
    left, down, foot = 0.72, 2.9, 0.15 + 0.24 * legend_rows
    width, height = left + across * columns - 0.4, down * rows + foot
    figure = Figure(figsize=(width, height), dpi=150, facecolor="white")
    axes, panel = [], min(across, 3.4) - 0.58
    for number in range(panels):
        row, column = divmod(number, columns)
        bottom = foot + down * (rows - 1 - row) + 0.52
        place = ((left + across * column) / width, bottom / height, panel / width, (down - 0.86) / height)
        axes.append(_plain_axes(figure, place))
    return figure, axes


def _plain_axes(figure: Figure, place: tuple[float, float, float, float]) -> Axes:
    one = figure.add_axes(place)
    one.set_axisbelow(True)
    one.grid(color=GRID, linewidth=0.8)
    for side in ("top", "right"):
        one.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        one.spines[side].set_color(FAINT)
    one.tick_params(colors=INK, labelsize=8.5, length=3, color=FAINT)
    return one


def draw_subject(
    subject: Subject,
    lines: Sequence[Line],
    path: Path,
    *,
    y_label: str,
    titles: dict[str, str],
    columns: int = 3,
    limits: tuple[float, float] | None = None,
    legend_rows: int = 1,
    logarithmic: bool = False,
) -> None:
    """Write one picture: the mean over repetitions with a band of one standard error either side.

    ``limits`` are those of the values in all panels; what lies beyond is cut off. ``logarithmic`` is about
    the values, not ε.
    """
    figure, axes = panel_figure(len(subject.curves), columns=columns, legend_rows=legend_rows)
    for one, (name, curves) in zip(axes, subject.curves.items(), strict=True):
        for line in lines:
            if line.method in curves.values:
                _draw_line(one, subject.epsilons, curves, line)
        one.set_xscale("log")
        if logarithmic:
            one.set_yscale("log")
            one.yaxis.set_major_formatter("{x:,g}")
        if limits is not None:
            one.set_ylim(*limits)
        _plain_ticks(one, subject.epsilons)
        one.set_xlabel("ε", color=INK, fontsize=10)
        one.set_title(titles[name], fontsize=10, color=INK, fontweight="bold", loc="left")
    for one in axes[::columns]:
        one.set_ylabel(y_label, color=INK, fontsize=9.5)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="lower center",
        ncols=-(-len(labels) // legend_rows),
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        handlelength=2.4,
        columnspacing=1.6,
    )
    save_figure(figure, path)


def _draw_line(one: Axes, epsilons: Sequence[float], curves: Curves, line: Line) -> None:
    mean, error = curves.mean(line.method), curves.stderr(line.method)
    one.fill_between(epsilons, mean - error, mean + error, color=line.color, alpha=0.16, linewidth=0.0)
    one.plot(
        epsilons,
        mean,
        line.style,
        color=line.color,
        marker=line.marker,
        markersize=3.6,
        linewidth=line.width,
        label=line.label,
    )


def _plain_ticks(one: Axes, epsilons: Sequence[float]) -> None:
    """0.01, 0.1, 1, 10 in words a reader reads, not as powers."""
    from matplotlib.ticker import NullFormatter, NullLocator

    decades = [epsilon for epsilon in epsilons if np.isclose(np.log10(epsilon) % 1.0, 0.0)]
    one.set_xticks(decades, [f"{epsilon:g}" for epsilon in decades])
    one.xaxis.set_minor_locator(NullLocator())
    one.xaxis.set_minor_formatter(NullFormatter())


def draw_densities(panels: Sequence[tuple[str, np.ndarray]], extent: Sequence[float], path: Path) -> None:
    """Heat maps side by side on one colour scale, in the form of figure 2."""
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    width, height = 2.55 * len(panels) + 1.6, 3.3
    figure = Figure(figsize=(width, height), dpi=150, facecolor="white")
    # The root of the value, so that thin parts show; noise below 0 has the colour of 0.
    shades = PowerNorm(0.5, vmin=0.0, vmax=float(panels[0][1].max()))
    for number, (title, values) in enumerate(panels):
        one = figure.add_axes(((0.7 + 2.55 * number) / width, 0.55 / height, 2.35 / width, 2.35 / height))
        image = one.imshow(
            np.maximum(values, 0.0),
            origin="lower",
            extent=(extent[0], extent[1], extent[2], extent[3]),
            aspect="auto",
            cmap="viridis",
            norm=shades,
            interpolation="nearest",
        )
        one.set_title(title, fontsize=9.5, color=INK, fontweight="bold", loc="left")
        one.tick_params(colors=INK, labelsize=8, length=3, color=FAINT)
        one.set_xlabel("temperature, °C", fontsize=9, color=INK)
        if number == 0:
            one.set_ylabel("carbon dioxide, ppm", fontsize=9, color=INK)
        else:
            one.set_yticklabels([])
        for side in one.spines.values():
            side.set_visible(False)
    beside = figure.add_axes(((0.7 + 2.55 * len(panels)) / width, 0.55 / height, 0.11 / width, 2.35 / height))
    bar = figure.colorbar(image, cax=beside)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=INK, labelsize=8, length=3, color=FAINT)
    bar.set_label("mean kernel value", fontsize=9, color=INK)
    save_figure(figure, path)
