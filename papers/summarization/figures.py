"""The figure of a setting: MMD² and accuracy by the summary's size, means over repetitions.

Accuracy is shown as the difference to uniform sampling's in the same repetition: not all sizes have the same
repetitions, whose test sets differ.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from papers.summarization.tables import UNIFORM, Results, error, label

COLOURS = {
    "greedy_exact": "#000000",
    "greedy": "#777777",
    "uniform": "#bbbbbb",
    "threshold": "#0b6e99",
    "fresh": "#6aa84f",
    "h2": "#cc7722",
    "published": "#aa3355",
    "published_batches": "#cc8899",
}


_FEW = 3
"""Points of fewer repetitions are drawn hollow."""


def _repetitions(results: Results, size: int) -> str:
    """How many there are at a size: the fewest and the most of a method."""
    counts = [len(results.by_seed(method, size, "mmd2")) for method in results.methods]
    found = [count for count in counts if count]
    few, many = min(found), max(found)
    return f"({few})" if few == many else f"({few} to {many})"


def draw(results: Results, title: str, path: Path) -> None:
    """Means with their standard errors; an SVG file that is the same for the same results."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "hushsum"
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for method in results.methods:
        style = "--" if method[1] == 1.0 else "-"
        marker = "s" if method[1] == 1.0 else "o"
        for axes in (left, right):
            points = []
            for size in results.sizes:
                if axes is left:
                    values = np.array(list(results.by_seed(method, size, "mmd2").values()))
                else:
                    mine, uniform = results.together(size, "accuracy", method, UNIFORM)
                    values = 100.0 * (mine - uniform)
                if len(values):
                    spread = 0.0 if len(values) < 2 else error(values)
                    points.append((size, values.mean(), spread, len(values)))
            if not points:
                continue
            place, mean, spreads, numbers = zip(*points, strict=True)
            color = COLOURS[method[0]]
            axes.errorbar(
                place,
                mean,
                spreads,
                fmt=style,
                marker=marker,
                markersize=4,
                capsize=2,
                color=color,
                label=label(method) if axes is left else None,
            )
            thin = [(x, y) for x, y, runs in zip(place, mean, numbers, strict=True) if runs < _FEW]
            if thin:
                hollow = {"color": color, "markerfacecolor": "white", "markersize": 5, "zorder": 5}
                axes.plot(*zip(*thin, strict=True), marker, **hollow)
    left.set(
        title=f"{title}: MMD² to the validation set",
        xlabel="summary size, and repetitions",
        ylabel="MMD²",
        yscale="log",
    )
    right.set(
        title=f"{title}: accuracy minus uniform sampling's",
        xlabel="summary size, and repetitions",
        ylabel="points",
    )
    for axes in (left, right):
        axes.title.set_fontsize(10)
        axes.set_xscale("log", base=2)
        ticks = [size for size in results.sizes if size in (1000, 1500, 2000, 3000, 4000, 6000, 8000)]
        axes.set_xticks(ticks, [f"{size:,}\n{_repetitions(results, size)}" for size in ticks], fontsize=8)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
