"""Figure 2 again: a density of two columns as a sketch, without and with privacy.

Temperature and carbon dioxide of an office (occupancy), exact, as a sketch without noise, and released.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from papers.private_race.data import Dataset, Floats
from papers.private_race.drawing import draw_densities

import hushsum as hs

RANGES: Final = ((18.5, 24.5), (300.0, 2100.0))
"""Declared: what an office thermometer and a carbon dioxide meter show."""

BANDWIDTH: Final = 0.25
POWER: Final = 4
ROWS: Final = 50
EPSILONS: Final = (1.0, 0.1)

_NO_NOISE = 1e6
"""At this ε every cell's noise is 0 but with a probability of exp(−20000)."""

_POINTS = 120


def density_panels(dataset: Dataset, *, seed: int = 7) -> list[tuple[str, Floats]]:
    """Titles and mean kernel values on a grid, shape (n_y, n_x)."""
    low, high = np.array(RANGES).T
    records = np.clip((dataset.X[:, [0, 3]] - low) / (high - low), 0.0, 1.0)
    axis = (np.arange(_POINTS) + 0.5) / _POINTS
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    kernel = hs.EuclideanKernel(dim=2, bandwidth=BANDWIDTH, power=POWER)
    tally = hs.race(kernel, rows=ROWS, seed=seed).add(records)
    distinct, counts = np.unique(records.astype(np.float32), axis=0, return_counts=True)
    exact = np.concatenate([counts @ kernel.similarity(distinct, part) for part in np.array_split(grid, 64)])
    panels = [
        ("exact kernel sums", exact / len(records)),
        (f"sketch, {ROWS} rows, no noise", tally.release(epsilon=_NO_NOISE, rows=ROWS)(grid)),
        *(
            (f"released, ε = {epsilon:g}", tally.release(epsilon=epsilon, rows=ROWS)(grid))
            for epsilon in EPSILONS
        ),
    ]
    return [(title, values.reshape(_POINTS, _POINTS)) for title, values in panels]


def run_densities(dataset: Dataset, figure: Path) -> None:
    """Draw the picture."""
    draw_densities(density_panels(dataset), [*RANGES[0], *RANGES[1]], figure)
