"""Draw budgets.png: the same made-up homes, released at five budgets."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import hushsum as hs

BUDGETS = (0.01, 0.03, 0.1, 0.3, 1.0)
HIGHEST = 0.055


def main() -> None:
    """Release at each budget, and draw all on one scale, with a line around what stands out of the noise."""
    town = runpy.run_path(str(Path(__file__).with_name("town.py")))
    records, side, number = town["places"](town["RECORDS"]), town["SIDE"], town["RECORDS"]
    axis = np.linspace(0.0, side, 121)
    mesh = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    figure = Figure(figsize=(11.0, 2.6), layout="constrained")
    panels = figure.subplots(1, len(BUDGETS), sharey=True)
    for panel, epsilon in zip(panels, BUDGETS, strict=True):
        f = hs.release(
            records, kernel="gaussian", bandwidth=0.7, bounds=(0, side), epsilon=epsilon, records=number
        )
        answers = f.query(mesh, simultaneous=True)
        shape = len(axis), len(axis)
        image = panel.pcolormesh(
            axis,
            axis,
            answers.value.reshape(shape),
            cmap="viridis",
            vmin=0.0,
            vmax=HIGHEST,
            shading="gouraud",
        )
        lower = answers.lower.reshape(shape)
        if lower.min() < 0.0 < lower.max():
            panel.contour(
                axis, axis, lower, levels=[0.0], colors="white", linewidths=0.8, linestyles="dashed"
            )
        panel.set_title(f"ε = {epsilon:g}", fontsize=10)
        panel.set_aspect("equal")
        panel.set(xticks=[0, 10, 20], yticks=[0, 10, 20])
        panel.tick_params(labelsize=8)
    figure.colorbar(image, ax=panels, shrink=0.8, label="mean similarity").ax.tick_params(labelsize=8)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=92)


if __name__ == "__main__":
    main()
