"""Draw stream-noise.svg: the standard deviation of a cell at every step, in units of one release."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import hushsum as hs

STEPS = 365


def main() -> None:
    """Plan with declared quantities only, and draw."""
    mpl.rcParams["svg.hashsalt"] = "hushsum"
    mpl.rcParams["svg.fonttype"] = "none"
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    tally = hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0), rows=100)
    steps = np.arange(1, STEPS + 1)
    views: list[tuple[str, dict[str, int | float], str]] = [
        ("all steps so far", {}, "#2f6db0"),
        ("the last 30 steps", {"window": 30}, "#2f9d6b"),
        ("decay 0.97", {"decay": 0.97}, "#b08a2f"),
    ]
    for label, view, colour in views:
        plan = hs.streams.plan_stream(tally, horizon=STEPS, epsilon=1.0, delta=1e-6, **view)  # type: ignore[arg-type]
        axes.plot(steps, plan.deviations / plan.one_release, color=colour, label=label)
    ones = np.array([int(step).bit_count() for step in steps])
    axes.plot(steps, np.sqrt(STEPS.bit_length() * ones), color="#b04a2f", linewidth=0.6, label="binary tree")
    axes.axhline(STEPS**0.5, color="#777777", linestyle=":", label="a fresh release at every step")
    axes.set_ylim(0, 20)
    axes.set_xlabel("step")
    axes.set_ylabel("deviation, in units of one release")
    axes.legend(frameon=False, fontsize=8, loc="center right")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("stream-noise.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
