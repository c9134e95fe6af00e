"""Errors against ε, and against the size of a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.accuracy_targets import FLOORS

from hushsum.plotting.figure import BLUE, FAINT, GRID, INK, VERMILION, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GREEN, ORANGE, SKY, PURPLE, YELLOW = "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#B8A800"
LINES = {
    "auto": ("auto", BLUE, "-", "o", 2.4),
    "grid": ("grid", SKY, "-", ".", 1.2),
    "landmarks": ("landmarks", SKY, "--", "*", 1.2),
    "fourier_features": ("Fourier features", SKY, ":", "p", 1.2),
    "lsq_fgt": ("LSQ-FGT *", VERMILION, "-", "^", 1.4),
    "lsq_rff": ("LSQ-RFF *", VERMILION, "--", "v", 1.4),
    "histogram": ("histogram *", GREEN, "-", "s", 1.2),
    "fourier_series": ("Fourier series *", ORANGE, "-", "D", 1.2),
    "bernstein": ("Bernstein *", PURPLE, "-", "P", 1.2),
    "trigonometric": ("trigonometric *", ORANGE, "--", "d", 1.2),
    "privbayes": ("PrivBayes *", FAINT, "-", "x", 1.2),
    "mwem": ("MWEM *", FAINT, "--", "+", 1.2),
    "pfda": ("PFDA *", YELLOW, "-", "<", 1.2),
    "kme": ("KME *", YELLOW, "--", ">", 1.2),
}


_ACROSS = 6
"""Data sets side by side."""


def draw_race(results: dict[str, Any], path: Path) -> None:
    """A column of panels for each data set: pure ε above, with δ below."""
    from matplotlib.figure import Figure

    shared = {cell["data"] for cell in results["cells"] if "own kernel" not in cell["note"]}
    names = [name for name in results["data"] if name in shared]
    across = min(_ACROSS, len(names))
    down = -(-len(names) // across)
    inches = 2.9 * across + 0.6
    figure = Figure(figsize=(inches, 6.4 * down + 0.8), dpi=90, facecolor="white")
    axes = figure.subplots(2 * down, across, squeeze=False)
    for one in axes.flat:
        one.set_visible(False)
    handles: dict[str, Any] = {}
    for number, name in enumerate(names):
        for row, delta in enumerate((False, True)):
            one = axes[2 * (number // across) + row][number % across]
            one.set_visible(True)
            _bare(one)
            for method, (label, color, style, marker, width) in LINES.items():
                cells = sorted(
                    (c["epsilon"], c["error"])
                    for c in results["cells"]
                    if c["data"] == name
                    and c["method"] == method
                    and (c["delta"] > 0) is delta
                    and "own kernel" not in c["note"]
                )
                if cells:
                    (line,) = one.plot(
                        *zip(*cells, strict=True), style, color=color, marker=marker, markersize=4,
                        linewidth=width, label=label, zorder=3 if method == "auto" else 2,
                    )  # fmt: skip
                    handles.setdefault(label, line)
            one.set_xscale("log")
            one.set_yscale("log")
            one.set_xticks([0.1, 0.5, 1], ["0.1", "0.5", "1"])
            one.minorticks_off()
            if row == 0:
                facts = results["data"][name]
                title = f"{name}\n{facts['records']:,} × {facts['columns']}"
                one.set_title(title, fontsize=10, color=INK, fontweight="bold", loc="left")
            else:
                one.set_xlabel("ε", color=INK)
    for row in range(2 * down):
        words = ("pure ε", "δ = 1e-6")[row % 2]
        axes[row][0].set_ylabel(f"mean absolute error, {words}", color=INK, fontsize=9.5)
    order = [label for label, *_ in LINES.values() if label in handles]
    figure.legend(
        [handles[label] for label in order], order, loc="lower center", ncols=min(6, len(order)),
        frameon=False, fontsize=9, labelcolor=INK,
    )  # fmt: skip
    figure.text(
        0.01, 0.995, "Error of released kernel means", fontsize=13, color=INK, fontweight="bold", va="top"
    )
    figure.text(0.99, 0.995, "* parameters by oracle", fontsize=9, color=FAINT, va="top", ha="right")
    tall = 6.4 * down + 0.8
    figure.subplots_adjust(
        left=0.7 / inches, right=0.99, top=1 - 0.85 / tall, bottom=1.05 / tall, wspace=0.28, hspace=0.3
    )
    save_figure(figure, path)


def draw_scaling(results: dict[str, Any], path: Path) -> None:
    """Own error and error with noise against rows and features, and the floor of the noise."""
    from matplotlib.figure import Figure

    titles = {
        "race": "hash rows, Euclidean kernel",
        "race_broad": "hash rows, broad Euclidean kernel",
        "fourier_features": "Fourier features, Gaussian kernel",
    }
    measured = {row["method"] for row in results["scaling"]}
    titles = {method: title for method, title in titles.items() if method in measured}
    figure = Figure(figsize=(4.4 * len(titles) + 0.6, 4.3), dpi=110, facecolor="white")
    axes = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    colors = {"0.1": ORANGE, "1": SKY}
    records = results["scaling"][0]["records"]
    for one, (method, title) in zip(axes, titles.items(), strict=True):
        _bare(one)
        rows = [row for row in results["scaling"] if row["method"] == method]
        rows.sort(key=lambda row: int(row["size"]))
        sizes = [row["size"] for row in rows]
        one.plot(sizes, [row["own"] for row in rows], "--", color=INK, linewidth=1.2, label="without noise")
        for epsilon, color in colors.items():
            one.plot(
                sizes, [row[epsilon] for row in rows], "-o", color=color, markersize=4, label=f"ε = {epsilon}"
            )
            floor = 0.798 * FLOORS[float(epsilon)] / records
            one.axhline(floor, color=color, linewidth=0.8, linestyle=":")
        one.set_xscale("log")
        one.set_yscale("log")
        one.set_title(title, fontsize=10, color=INK, fontweight="bold", loc="left")
        one.set_xlabel("features" if method == "fourier_features" else "rows", color=INK)
    axes[0].set_ylabel("mean absolute error, δ = 1e-6", color=INK)
    axes[-1].legend(frameon=False, fontsize=8.5, labelcolor=INK)
    figure.text(
        0.01, 0.02,
        f"{records:,} forest records of 54 columns; dotted: what the noise alone leaves, at each ε",
        fontsize=8.5, color=FAINT,
    )  # fmt: skip
    figure.subplots_adjust(left=0.06, right=0.99, top=0.92, bottom=0.17, wspace=0.08)
    save_figure(figure, path)


def _bare(one: Axes) -> None:
    one.set_axisbelow(True)
    one.grid(color=GRID, linewidth=0.8)
    for side in ("top", "right"):
        one.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        one.spines[side].set_color(FAINT)
    one.tick_params(colors=INK, labelsize=8.5, length=3, color=FAINT)
