"""Figures 3 and 7 at table 2's bandwidths: errors of released densities at held-out queries, against ε.

One part of the results is one method on one data set; a part that has results is not measured again. A method
with a parameter has the best one by oracle, from a grid that is extended until it lies inside.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from papers.private_race.oracle import Grid, best_values
from papers.private_race.table2_data import HeldOut
from papers.provenance import made_by

import hushsum as hs
from hushsum.baselines import bernstein, fourier_series, lsq_rff
from hushsum.errors import SuspiciousParameter
from hushsum.methods import method_named
from hushsum.releases import ReleasedFunction

Say = Callable[[str], None]
Part = dict[str, Any]

EPSILONS: Final = (0.05, 0.1, 0.5, 1.0, 2.0)
DELTA: Final = 1e-6
WIDTH: Final = 1000


@dataclass(frozen=True, slots=True)
class Entrant:
    """A method of the figures: its grid by the number of columns, and how often it is run.

    ``tally`` makes an empty tally, filled once for all ε; ``seeds`` are public ones. ``delta`` is for methods
    that have no pure ε. ``fixed`` are settings that are not searched.
    """

    grid: Callable[[int], Grid | None]
    tally: Callable[..., hs.Tally] | None = None
    seeds: int = 1
    releases: int = 5
    delta: float | None = None
    fixed: tuple[tuple[str, Any], ...] = ()


def _by_dim(**grids: Grid) -> Callable[[int], Grid | None]:
    """``d1`` for one column, ``d3`` for two and three, ``more`` for more."""
    return lambda dim: grids.get("d1" if dim == 1 else "d3" if dim <= 3 else "more")


ENTRANTS: Final[dict[str, Entrant]] = {
    "lsq_rff": Entrant(
        _by_dim(
            d1=Grid("features", (50, 100, 200), 4, 32_000),
            d3=Grid("features", (100, 400), 4, 16_000, factor=4.0),
            more=Grid("features", (400, 1600), 4, 32_000, factor=4.0),
        ),
        tally=lsq_rff,
        seeds=2,
        releases=4,
    ),
    "bernstein": Entrant(
        _by_dim(d1=Grid("degree", (39, 79, 158), 2, 1280), d3=Grid("degree", (9, 18), 2, 40)), tally=bernstein
    ),
    "bernstein, iterated": Entrant(
        _by_dim(d1=Grid("degree", (79, 158), 2, 1280)), tally=bernstein, fixed=(("iterations", 10),)
    ),
    "fourier_series": Entrant(_by_dim(d1=Grid("frequencies", (5, 10, 20), 1, 320)), tally=fourier_series),
    "histogram": Entrant(
        _by_dim(d1=Grid("bins", (32, 64, 128), 2, 2048), d3=Grid("bins", (16, 32), 2, 128)), releases=3
    ),
    "privbayes": Entrant(
        _by_dim(
            d1=Grid("bins", (32, 64, 128), 2, 2048),
            d3=Grid("bins", (16, 32), 2, 128),
            more=Grid("bins", (4, 8, 16), 2, 64),
        ),
        releases=3,
    ),
    "kme": Entrant(
        _by_dim(
            d1=Grid("lattice", (64, 128), 4, 2048),
            d3=Grid("lattice", (12, 24), 4, 48),
            more=Grid("points", (500, 1000), 125, 2000),
        ),
        releases=2,
        delta=DELTA,
    ),
    "pfda": Entrant(
        _by_dim(d1=Grid("penalty", (1e-4, 1e-5), 1e-9, 1.0, factor=10.0, whole=False)),
        releases=2,
        delta=DELTA,
    ),
}
"""Baselines, for at most eight columns; figure 7 has two of them on reduced data."""

MOST_COLUMNS: Final = 8
SLOW: Final = {"kme": 20_000}
"""Records of a sample for methods whose time grows too fast with them beyond three columns."""


def errors_of(function: ReleasedFunction, case: HeldOut, *, hashed: bool = False) -> float:
    """The measure of a data set: mean relative error, or root mean square."""
    truth = case.hashed_truth if hashed else case.gaussian_truth
    away = np.abs(function(case.queries) - truth)
    if case.measure == "rms":
        return float(np.sqrt((away**2).mean()))
    return float((away / truth).mean())


def sketch_part(case: HeldOut, say: Say, *, seeds: int = 3, most_rows: int = 8000) -> Part:
    """RACE as published: W = 1000, pure ε, the best number of rows by oracle from the paper's grid on.

    The first r rows of a tally are a sketch of r rows, so one tally serves all of them.
    """
    tallies: dict[tuple[float, int], hs.Tally] = {}

    def tally(rows: float, seed: int) -> hs.Tally:
        enough = [each for (number, s), each in tallies.items() if s == seed and number >= rows]
        if enough:
            return enough[0]
        made = hs.race(case.hashed, rows=int(rows), width=WIDTH, seed=seed).add(case.records)
        tallies[rows, seed] = made
        return made

    scores: dict[float, dict[float, list[float]]] = {}

    def evaluate(rows: float) -> dict[float, float]:
        found: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
        for seed in range(seeds):
            for epsilon in EPSILONS:
                f = tally(rows, seed).release(epsilon=epsilon, rows=int(rows))
                found[epsilon].append(errors_of(f, case, hashed=True))
        scores[rows] = found
        say(f"{case.name} sketch {rows:g}")
        return {epsilon: float(np.mean(each)) for epsilon, each in found.items()}

    start = time.process_time()
    grid = Grid("rows", (2000, 1000, 500, 200, 100), 10, most_rows)
    return _part(case, "race", grid, evaluate, scores, start, 0.0, seeds)


def entrant_part(case: HeldOut, name: str, say: Say) -> Part | None:
    """One baseline; None where it has no form for that many columns."""
    entrant = ENTRANTS[name]
    grid = entrant.grid(case.dim)
    if grid is None or case.dim > MOST_COLUMNS:
        return None
    records = case.records
    if name in SLOW and case.dim > 3:
        records = records[np.random.default_rng(3).choice(len(records), SLOW[name], replace=False)]
    scores: dict[float, dict[float, list[float]]] = {}

    def evaluate(value: float) -> dict[float, float]:
        own = {grid.parameter: value, **dict(entrant.fixed)}
        found: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousParameter)
            for seed in range(entrant.seeds):
                release = _releasing(case, records, name, entrant, own, seed)
                for epsilon in EPSILONS:
                    for _ in range(-(-entrant.releases // entrant.seeds)):
                        found[epsilon].append(errors_of(release(epsilon), case))
        scores[value] = found
        say(f"{case.name} {name} {own}")
        return {epsilon: float(np.mean(each)) for epsilon, each in found.items()}

    start = time.process_time()
    return _part(case, name, grid, evaluate, scores, start, entrant.delta or 0.0, entrant.seeds)


def _releasing(
    case: HeldOut, records: np.ndarray, name: str, entrant: Entrant, own: dict[str, Any], seed: int
) -> Callable[[float], ReleasedFunction]:
    seeded = {**own, "seed": seed} if entrant.seeds > 1 else own
    if entrant.tally is not None:
        tally = entrant.tally(case.gaussian, bounds=case.bounds, **seeded).add(records)
        return lambda epsilon: tally.release(epsilon=epsilon, delta=entrant.delta)
    method = method_named(name)
    return lambda epsilon: method.release(
        records, case.gaussian, bounds=case.bounds, epsilon=epsilon, delta=entrant.delta, **seeded
    )


def auto_part(
    case: HeldOut, say: Say, *, delta: float | None, seeds: int = 3, epsilons: tuple[float, ...] = EPSILONS
) -> Part:
    """What ``hs.release`` chooses, with nothing but the number of records."""
    start = time.process_time()
    cells = []
    for epsilon in epsilons:
        off = []
        for _ in range(seeds):
            f = hs.release(
                case.records, epsilon=epsilon, delta=delta, kernel=case.gaussian, bounds=case.bounds,
                records=len(case.records),
            )  # fmt: skip
            off.append(errors_of(f, case))
        cells.append(cell(epsilon, delta or 0.0, off))
        say(f"{case.name} auto {epsilon} {delta}")
    name = "auto" if delta is None else "auto, δ"
    return {**about(case, name, start), "cells": cells, "tried": [], "parameter": None}


def _part(
    case: HeldOut,
    name: str,
    grid: Grid,
    evaluate: Callable[[float], dict[float, float]],
    scores: dict[float, dict[float, list[float]]],
    start: float,
    delta: float,
    seeds: int,
) -> Part:
    found, tried = best_values(grid, evaluate)
    cells = [
        {**cell(epsilon, delta, scores[best.value][epsilon]), "value": best.value, "inside": best.inside}
        for epsilon, best in found.items()
    ]
    searched = {"parameter": grid.parameter, "tried": sorted(tried), "seeds": seeds}
    return {**about(case, name, start), **searched, "cells": cells}


def cell(epsilon: float, delta: float, errors: list[float]) -> dict[str, Any]:
    """The mean over releases and its standard error."""
    stderr = float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else None
    return {
        "epsilon": epsilon,
        "delta": delta,
        "error": float(np.mean(errors)),
        "stderr": stderr,
        "releases": len(errors),
    }


def about(case: HeldOut, name: str, start: float) -> Part:
    """What a part was measured on, by which version, and the processor time since ``start``."""
    return {
        "data": case.name,
        "words": case.words,
        "records": len(case.records),
        "queries": len(case.queries),
        "measure": case.measure,
        "hash_bandwidth": case.hashed.bandwidth,
        "gaussian_bandwidth": case.gaussian.bandwidth,
        "method": name,
        "version": made_by("papers.private_race.table2"),
        "seconds": round(time.process_time() - start, 1),
    }
