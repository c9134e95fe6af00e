"""Points drawn from a density that can be asked for its value, inside a box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state  # type: ignore[import-untyped]

Floats = NDArray[np.float64]
Box = list[tuple[float, float]]

_CANDIDATES = 4096
_STEPS = 60


def walk(
    density: Callable[[Floats], Floats], box: Box, number: int, *, step: float, random_state: Any
) -> Floats:
    """``number`` points, about as dense as ``density`` says; shape (number, columns).

    Even candidates are drawn by their density, then each walks on by itself: a step is taken with the ratio of
    densities (Metropolis), so that points do not repeat and a density much narrower than the candidates'
    spacing is found by those that start near it.
    """
    generator = check_random_state(random_state)
    low, high = np.array(box).T
    candidates = generator.uniform(low, high, size=(max(_CANDIDATES, 4 * number), len(box)))
    weights = density(candidates)
    points: Floats = candidates[generator.choice(len(candidates), size=number, p=weights / weights.sum())]
    values = density(points)
    for _ in range(_STEPS):
        moved = points + step * generator.standard_normal(points.shape)
        inside = ((moved >= low) & (moved <= high)).all(axis=1)
        moved = np.clip(moved, low, high)
        proposed = density(moved)
        taken = inside & (generator.uniform(size=number) * values < proposed)
        points = np.where(taken[:, None], moved, points)
        values = np.where(taken, proposed, values)
    return points
