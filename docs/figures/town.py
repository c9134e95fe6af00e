"""Draw town.png: made-up private places, and what released functions say about them at three budgets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import hushsum as hs

SIDE = 20.0
RECORDS = 20_000
BUDGETS = (0.01, 0.1, 1.0)
Floats = NDArray[np.float64]


def places(number: int) -> Floats:
    """Homes along a ring road, in an old town and in two villages, in km."""
    random = np.random.default_rng(3)
    parts = random.multinomial(number, [0.45, 0.3, 0.15, 0.1])
    angle = random.uniform(0, 2 * np.pi, parts[0])
    ring = np.c_[np.cos(angle), np.sin(angle)] * random.normal(6.0, 0.5, (parts[0], 1)) + 9.0
    clusters = [
        random.normal(centre, spread, (size, 2))
        for centre, spread, size in zip(
            [(9, 9), (16.5, 16), (17, 4.5)], [1.3, 0.9, 0.6], parts[1:], strict=True
        )
    ]
    homes: Floats = np.clip(np.vstack([ring, *clusters]), 0.0, SIDE)
    return homes


def main() -> None:
    """Release at each budget, and draw all on one scale."""
    records = places(RECORDS)
    axis = np.linspace(0.0, SIDE, 161)
    mesh = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    figure = Figure(figsize=(10.4, 2.9), layout="constrained")
    panels = figure.subplots(1, 1 + len(BUDGETS), sharey=True)
    panels[0].plot(*records[::4].T, ".", color="#34495e", markersize=0.6, alpha=0.5)
    panels[0].set_title("private records", fontsize=9)
    panels[0].set_ylabel("km")
    for panel, epsilon in zip(panels[1:], BUDGETS, strict=True):
        f = hs.release(
            records, kernel="gaussian", bandwidth=0.7, bounds=(0, SIDE), epsilon=epsilon, records=RECORDS
        )
        values = f(mesh).reshape(len(axis), -1)
        image = panel.imshow(
            values, origin="lower", extent=(0, SIDE, 0, SIDE), cmap="cividis", vmin=0.0, vmax=0.055
        )
        panel.set_title(f"public function, ε = {epsilon:g}", fontsize=9)
    for panel in panels:
        panel.set_aspect("equal")
        panel.set(xlim=(0, SIDE), ylim=(0, SIDE), xticks=[0, 10, 20], yticks=[0, 10, 20])
        panel.tick_params(labelsize=8)
    figure.colorbar(image, ax=panels, shrink=0.8, label="mean similarity").ax.tick_params(labelsize=8)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=92)


if __name__ == "__main__":
    main()
