"""The figure of a setting: MMD² and accuracy by the summary's size, means over repetitions.

Accuracy is shown as the difference to uniform sampling's in the same repetition: not all sizes have the same
repetitions, whose test sets differ.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from papers.summarization.tables import UNIFORM, Results, error, label

COLOURS = {
    "greedy": "#444444",
    "uniform": "#bbbbbb",
    "threshold": "#0b6e99",
    "fresh": "#6aa84f",
    "h2": "#cc7722",
    "published": "#aa3355",
}


def draw(results: Results, title: str, path: Path) -> None:
    """Means with their standard errors; an SVG file that is the same for the same results."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "hushsum"
    import matplotlib.pyplot as plt

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
                    points.append((size, values.mean(), 0.0 if len(values) < 2 else error(values)))
            if not points:
                continue
            place, mean, spread = zip(*points, strict=True)
            axes.errorbar(
                place,
                mean,
                spread,
                fmt=style,
                marker=marker,
                markersize=4,
                capsize=2,
                color=COLOURS[method[0]],
                label=label(method) if axes is left else None,
            )
    left.set(title=f"{title}: MMD² to the validation set", xlabel="summary size", ylabel="MMD²", yscale="log")
    right.set(title=f"{title}: accuracy minus uniform sampling's", xlabel="summary size", ylabel="points")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks([1000, 2000, 4000, 8000], ["1,000", "2,000", "4,000", "8,000"])
        axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
