"""Draw rows.svg: the predicted error of a release against the number of rows, with pure ε and with δ."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import hushsum as hs

ROWS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]


def main() -> None:
    """Plan with declared quantities only, and draw."""
    mpl.rcParams["svg.hashsalt"] = "hushsum"
    mpl.rcParams["svg.fonttype"] = "none"
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    for delta, label, colour in ((None, "pure ε = 0.1", "#b04a2f"), (1e-6, "ε = 0.1, δ = 10⁻⁶", "#2f6db0")):
        options = hs.plan(records=100_000, dim=3, bandwidth=5.0, epsilon=0.1, delta=delta, rows=ROWS)
        curve = sorted((option.rows, option.error, option.noise) for option in options if option.requested)
        rows, error, noise = zip(*curve, strict=True)
        axes.loglog(rows, error, color=colour, marker="o", markersize=3, label=f"{label}: error")
        axes.loglog(rows, noise, color=colour, linestyle=":", label=f"{label}: its noise part")
    axes.set_xlabel("rows")
    axes.set_ylabel("mean absolute error of f(q)/N")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
