"""Figures 3 and 7: errors of released densities against ε, and the functions themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from papers.private_race.drawing import GREEN, ORANGE, PURPLE, SKY, panel_figure

from hushsum.plotting import BLUE, FAINT, INK, VERMILION, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

YELLOW: Final = "#B8A800"
LINES: Final = {
    "auto": ("auto (grid, Fourier features)", BLUE, "-", "o"),
    "sketch, Laplace": ("RACE", INK, "-", "s"),
    "bernstein": ("Bernstein", PURPLE, "-", "P"),
    "fourier_series": ("spectral", ORANGE, "-", "D"),
    "privbayes": ("PrivBayes", FAINT, "-", "x"),
    "histogram": ("histogram", GREEN, "-", "^"),
    "kme": ("KME (δ = 1e-6)", YELLOW, "--", ">"),
    "pfda": ("PFDA (δ = 1e-6)", VERMILION, "--", "<"),
    "auto, δ": ("auto (δ = 1e-6)", SKY, "--", "o"),
}


def draw_errors(
    cells: Sequence[dict[str, Any]], panels: dict[str, tuple[str, str]], path: Path, *, methods: Sequence[str]
) -> None:
    """One panel a data set: ``panels`` maps its name to a title and the measure to draw."""
    columns = min(len(panels), 2)
    rows = 2 if columns > 1 else 3
    figure, axes = panel_figure(len(panels), columns=columns, legend_rows=rows, across=3.7)
    for one, (name, (title, measure)) in zip(axes, panels.items(), strict=True):
        for method in methods:
            points = sorted(_points(cells, name, method, measure))
            if points:
                label, color, style, marker = LINES[method]
                one.plot(
                    *zip(*points, strict=True), style, color=color, marker=marker, markersize=4, label=label,
                    linewidth=2.2 if method.startswith("auto") else 1.3,
                )  # fmt: skip
        one.set_xscale("log")
        one.set_yscale("log")
        one.set_xticks([0.05, 0.1, 0.5, 1, 2], ["0.05", "0.1", "0.5", "1", "2"])
        one.minorticks_off()
        one.set_xlabel("ε", color=INK, fontsize=10)
        one.set_title(title, fontsize=10, color=INK, fontweight="bold", loc="left")
        one.set_ylabel("L2 error of the function" if measure == "rms" else "mean relative error", fontsize=9)
    _legend(figure, axes, rows)
    save_figure(figure, path)


def _points(
    cells: Sequence[dict[str, Any]], name: str, method: str, measure: str
) -> list[tuple[float, float]]:
    with_delta = method in ("kme", "pfda", "auto, δ")
    hashed = method == "sketch, Laplace"
    return [
        (cell["epsilon"], cell[measure])
        for cell in cells
        if cell["data"] == name
        and cell["method"] == method.removesuffix(", δ")
        and (cell["delta"] > 0) is with_delta
        and ("own kernel" in cell["note"]) is hashed
    ]


def _legend(figure: Any, axes: Sequence[Axes], rows: int) -> None:
    found: dict[str, Any] = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(), found.keys(), loc="lower center", ncols=-(-len(found) // rows), frameon=False,
        fontsize=8.5, labelcolor=INK,
    )  # fmt: skip


def draw_curves(curves: dict[str, dict[str, list[float]]], titles: dict[str, str], path: Path) -> None:
    """The released functions of salaries at ε = 1 over the exact one: a row a city, a panel a method."""
    from matplotlib.figure import Figure

    methods = [name for name in next(iter(curves.values())) if name != "exact"]
    figure = Figure(figsize=(2.0 * len(methods) + 0.5, 1.9 * len(curves) + 0.7), dpi=130, facecolor="white")
    axes = figure.subplots(len(curves), len(methods), squeeze=False, sharex=True, sharey="row")
    dollars = np.linspace(10, 250, 200)
    for row, (city, values) in enumerate(curves.items()):
        for one, method in zip(axes[row], methods, strict=True):
            one.plot(dollars, values["exact"], color=FAINT, linewidth=2.4)
            one.plot(dollars, values[method], color=BLUE, linewidth=1.0)
            one.tick_params(colors=INK, labelsize=7.5, length=2, color=FAINT)
            for side in ("top", "right"):
                one.spines[side].set_visible(False)
            if row == 0:
                label = {"race": "RACE", "auto": "auto"}.get(method, LINES.get(method, (method,))[0])
                one.set_title(label.partition(" (")[0], fontsize=9, color=INK, fontweight="bold", loc="left")
        axes[row][0].set_ylabel(titles[city], fontsize=8.5, color=INK)
    for one in axes[-1]:
        one.set_xlabel("salary, thousand $", fontsize=8, color=INK)
    figure.subplots_adjust(left=0.05, right=0.995, top=0.93, bottom=0.13, wspace=0.12, hspace=0.15)
    save_figure(figure, path)
