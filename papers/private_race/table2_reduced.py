"""Figure 7's baselines: Bernstein and KME on a sample of the forest data, reduced to three columns.

The paper samples 100,000 records and reduces their columns without saying how. Here the columns are the first
principal components, the box is that of the reduced data, and the kernel is as wide as the mean density
needs: all by oracle, from the data, at no cost. Errors are against the exact sums of all records with all
columns.
"""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from papers.private_race.oracle import Grid, best_values
from papers.private_race.table2 import DELTA, EPSILONS, Part, Say, about, cell
from papers.private_race.table2_data import HeldOut

import hushsum as hs
from hushsum.baselines import bernstein, kme
from hushsum.errors import SuspiciousParameter

SAMPLE: Final = 100_000
COLUMNS: Final = 3
GRIDS: Final = {"bernstein": Grid("degree", (9, 18), 2, 40), "kme": Grid("lattice", (12, 24), 4, 48)}


def reduced_part(case: HeldOut, name: str, say: Say, *, releases: int = 2) -> Part:
    """One of the two baselines."""
    start = time.process_time()
    records, queries = _components(case)
    kernel = _matched(records, queries, float(case.gaussian_truth.mean()))
    box = [(float(low), float(high)) for low, high in zip(records.min(0), records.max(0), strict=True)]
    scores: dict[float, dict[float, list[float]]] = {}

    def evaluate(value: float) -> dict[float, float]:
        found: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousParameter)
            release = _releasing(name, records, kernel, box, int(value))
            for epsilon in EPSILONS:
                for _ in range(releases):
                    away = np.abs(release(epsilon)(queries) - case.gaussian_truth)
                    found[epsilon].append(float((away / case.gaussian_truth).mean()))
        scores[value] = found
        say(f"{case.name} reduced {name} {value:g}")
        return {epsilon: float(np.mean(each)) for epsilon, each in found.items()}

    exact = kernel.exact_sum(records, queries) / len(records)
    floor = float((np.abs(exact - case.gaussian_truth) / case.gaussian_truth).mean())
    best, tried = best_values(GRIDS[name], evaluate)
    delta = DELTA if name == "kme" else 0.0
    cells: list[dict[str, Any]] = [
        {**cell(epsilon, delta, scores[found.value][epsilon]), "value": found.value, "inside": found.inside}
        for epsilon, found in best.items()
    ]
    return {
        **about(case, name, start),
        "parameter": GRIDS[name].parameter,
        "tried": sorted(tried),
        "seeds": 1,
        "reduced": {"records": len(records), "columns": COLUMNS, "exact_error": floor},
        "cells": cells,
    }


def _components(case: HeldOut) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A sample of the records, and the queries, on the first principal components."""
    number = min(SAMPLE, len(case.records))
    some = case.records[np.random.default_rng(4).choice(len(case.records), number, replace=False)]
    middle = some.mean(axis=0)
    directions = np.linalg.svd((some - middle)[:20_000], full_matrices=False)[2][:COLUMNS].T
    low = ((some - middle) @ directions).astype(np.float32)
    return low, ((case.queries - middle) @ directions).astype(np.float32)


def _matched(records: NDArray[np.float32], queries: NDArray[np.float32], density: float) -> hs.GaussianKernel:
    some = records[:4000]
    low, high = 1e-4, 10.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        kernel = hs.GaussianKernel(dim=COLUMNS, bandwidth=middle)
        low, high = (
            (low, middle)
            if kernel.exact_sum(some, queries[:500]).mean() / len(some) > density
            else (middle, high)
        )
    return hs.GaussianKernel(dim=COLUMNS, bandwidth=float(f"{middle:.3g}"))


def _releasing(
    name: str,
    records: NDArray[np.float32],
    kernel: hs.GaussianKernel,
    box: list[tuple[float, float]],
    value: int,
) -> Any:
    if name == "kme":
        return lambda epsilon: kme(records, kernel, bounds=box, epsilon=epsilon, delta=DELTA, lattice=value)
    tally = bernstein(kernel, bounds=box, degree=value).add(records)
    return lambda epsilon: tally.release(epsilon=epsilon)
