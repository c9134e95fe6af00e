"""Centres of clusters, moved to the noisy means of their records."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushsum._types import Floats
from hushsum.models.private_cells import MEANS, NARROWEST, REACH, SEEN, Partition, PromiseParts
from hushsum.tasks.cell_kmeans import sizes_and_spread
from hushsum.tasks.cells import Cells


@dataclass(frozen=True, slots=True, eq=False)
class Refined:
    """Centres, the noisy numbers of their records, and the sum of squared distances, estimated; public."""

    centres: Floats
    counts: Floats
    inertia: float


def refined_centres(rows: Floats, cells: Cells, centres: Floats, parts: PromiseParts, steps: int) -> Refined:
    """Centres moved, step by step, to the noisy means of their records.

    Spends what is left of the promise, in equal parts. A mean is moved by less where much of the move may be
    noise (James and Stein 1961), and not at all where the number of records is not distinguished from 0.

    Privacy
    -------
    As `split_cells`: every step is one of `measured`.
    """
    part = parts.left / steps
    _, spread = sizes_and_spread(cells, centres)
    for _ in range(steps):
        partition = Partition(centres, np.clip(REACH * spread, NARROWEST, math.sqrt(rows.shape[1])))
        found = parts.measure(rows, partition, MEANS, part)
        assert found.squares is not None
        squares = np.maximum(np.square(found.means).sum(axis=1), 1e-12)
        kept = np.clip(1.0 - np.square(found.mean_errors) / squares, 0.0, 1.0)
        kept = np.where(found.counts > SEEN * found.count_noise, kept, 0.0)[:, None]
        centres = np.clip(centres + partition.radii[:, None] * kept * found.means, -1.0, 1.0)
        # Of the records from the centre where it is now.
        apart = found.squares[:, 0] - (kept * (2.0 - kept) * np.square(found.means)).sum(axis=1)
        spread = np.where(kept[:, 0] > 0.0, partition.radii * np.sqrt(np.clip(apart, 0.0, 1.0)), spread)
    return Refined(centres, found.counts, float(np.maximum(found.counts, 0.0) @ np.square(spread)))
