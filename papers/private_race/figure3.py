"""Figure 3 on one kernel, with the paper's own settings: L2 error of released salary densities against ε.

Every method that can release the hash kernel is scored on it; Bernstein polynomials and the spectral series,
which need a smooth kernel, on the Gaussian kernel of the same mean density. Each method has two lines: the
settings that the paper tried, and the best by oracle from a grid that is extended until it lies inside.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from papers.private_race.oracle import Grid, best_values
from papers.private_race.table2 import DELTA, EPSILONS, WIDTH, Part, cell
from papers.private_race.table2_data import DATA, HeldOut
from papers.provenance import made_by
from papers.result_files import update_file

import hushsum as hs
from hushsum.baselines import bernstein, fourier_series, trigonometric
from hushsum.errors import SuspiciousParameter
from hushsum.methods import method_named
from hushsum.releases import ReleasedFunction

SALARIES: Final = ("nyc", "sf")
RELEASES: Final = 10
PAPER, TUNED, PLANNED = "paper's settings", "tuned by oracle", "no settings"

Release = Callable[[HeldOut, dict[str, Any], float, int], ReleasedFunction]


@dataclass(frozen=True, slots=True)
class Contestant:
    """A method, the paper's grid of its parameter, the extended one, and δ of each."""

    release: Release
    paper: Grid | None
    tuned: Grid | None
    smooth: bool = False
    deltas: tuple[float | None, float | None] = (None, None)
    fixed: tuple[tuple[str, Any], ...] = ()


def _only(parameter: str, *values: float, whole: bool = True) -> Grid:
    """A grid that is not extended."""
    return Grid(parameter, values, min(values), max(values), whole=whole)


def _one_call(name: str) -> Release:
    method = method_named(name)

    def release(case: HeldOut, own: dict[str, Any], epsilon: float, number: int) -> ReleasedFunction:
        given = {"bounds": case.bounds, "epsilon": epsilon, "allow_large_delta": "delta" in own, **own}
        return method.release(case.records, case.hashed, **given)

    return release


def _tally(make: Callable[..., hs.Tally], *, smooth: bool) -> Release:
    def release(case: HeldOut, own: dict[str, Any], epsilon: float, number: int) -> ReleasedFunction:
        own = {key: value for key, value in own.items() if key != "delta"}
        kernel: Any = case.gaussian if smooth else case.hashed
        key = (case.name, make.__name__, tuple(own.items()))
        if key not in _COUNTED:
            _COUNTED.clear()
            _COUNTED[key] = make(kernel, bounds=case.bounds, **own).add(case.records)
        return _COUNTED[key].release(epsilon=epsilon)

    return release


_COUNTED: dict[Any, hs.Tally] = {}


def _race(case: HeldOut, own: dict[str, Any], epsilon: float, number: int) -> ReleasedFunction:
    rows = int(own["rows"])
    tally = hs.race(case.hashed, rows=rows, width=WIDTH, seed=number).add(case.records)
    return tally.release(epsilon=epsilon, rows=rows)


def _auto(case: HeldOut, own: dict[str, Any], epsilon: float, number: int) -> ReleasedFunction:
    return hs.release(
        case.records, kernel=case.hashed, bounds=case.bounds, epsilon=epsilon, records=len(case.records)
    )


CONTESTANTS: Final[dict[str, Contestant]] = {
    "RACE": Contestant(
        _race, _only("rows", 100, 200, 500, 1000, 2000), Grid("rows", (100, 200, 500, 1000, 2000), 10, 8000)
    ),
    "Bernstein": Contestant(
        _tally(bernstein, smooth=True),
        _only("degree", 2, 4, 8, 10, 20, 40, 100),
        Grid("degree", (79, 158), 2, 1280),
        smooth=True,
    ),
    "spectral": Contestant(
        _tally(fourier_series, smooth=True),
        _only("frequencies", 2, 4, 8, 10, 20),
        Grid("frequencies", (10, 20), 1, 320),
        smooth=True,
    ),
    "PFDA": Contestant(
        _one_call("pfda"),
        _only("penalty", 0.01, whole=False),
        _only("penalty", 1e-5, 1e-6, 1e-7, whole=False),
        deltas=(0.01, DELTA),
    ),
    "KME": Contestant(
        _one_call("kme"), _only("points", 1000), Grid("points", (125, 250), 31, 1000), deltas=(DELTA, DELTA)
    ),
    "PrivBayes": Contestant(
        _one_call("privbayes"),
        _only("size", 5000, 20_000, 100_000),
        Grid("bins", (64, 128), 2, 1024),
        fixed=(("size", 100_000),),
    ),
    "histogram": Contestant(_one_call("histogram"), None, Grid("bins", (64, 128, 256), 2, 2048)),
    "trigonometric": Contestant(_tally(trigonometric, smooth=False), None, Grid("terms", (20, 40), 2, 320)),
    "auto": Contestant(_auto, None, None),
}
"""KME's paper grid is 5k to 100k points, for which a fit takes minutes for each release. PrivBayes has one
column here, so that its degree does not matter. PFDA takes a second for each release: its tuned grid is not
extended.
"""


def parts(name: str, *, quick: bool) -> Iterator[tuple[str, str, Callable[[], Part]]]:
    """(method, settings, how it is measured) of one data set."""
    case = DATA[name](200)
    for method, each in CONTESTANTS.items():
        if quick and method in ("KME", "PFDA"):
            continue
        if each.paper is None and each.tuned is None:
            yield method, PLANNED, partial(_measured, case, method, None, PLANNED, quick=quick)
        for settings, grid in ((PAPER, each.paper), (TUNED, each.tuned)):
            if grid is not None and not (quick and settings == TUNED):
                yield method, settings, partial(_measured, case, method, grid, settings, quick=quick)


def _measured(case: HeldOut, method: str, grid: Grid | None, settings: str, *, quick: bool) -> Part:
    started = time.process_time()
    each = CONTESTANTS[method]
    delta = each.deltas[0 if settings == PAPER else 1]
    truth = case.gaussian_truth if each.smooth else case.hashed_truth
    epsilons = (0.1, 1.0) if quick else EPSILONS
    scores: dict[float, dict[float, list[float]]] = {}

    def evaluate(value: float) -> dict[float, float]:
        own = {} if grid is None else {grid.parameter: value}
        own |= {key: found for key, found in each.fixed if key not in own and settings == TUNED}
        own |= {} if delta is None else {"delta": delta}
        errors: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousParameter)
            for epsilon in epsilons:
                for number in range(2 if quick else RELEASES):
                    f = each.release(case, own, epsilon, number)
                    errors[epsilon].append(float(np.sqrt(np.mean((f(case.queries) - truth) ** 2))))
        scores[value] = errors
        return {epsilon: float(np.mean(found)) for epsilon, found in errors.items()}

    if grid is None:
        evaluate(0.0)
        cells = [cell(epsilon, delta or 0.0, scores[0.0][epsilon]) for epsilon in epsilons]
    else:
        found, _ = best_values(grid, evaluate)
        cells = [
            {**cell(epsilon, delta or 0.0, scores[best.value][epsilon]), "value": best.value}
            for epsilon, best in found.items()
        ]
    return {
        "data": case.name,
        "method": method,
        "settings": settings,
        "parameter": None if grid is None else grid.parameter,
        "cells": cells,
        "errors": {str(value): {str(e): row for e, row in each.items()} for value, each in scores.items()},
        "seconds": round(time.process_time() - started, 1),
        "version": made_by("papers.private_race.figure3"),
    }


def measure_missing(
    names: Sequence[str], file: Path, *, quick: bool = False, until: float = float("inf")
) -> bool:
    """Measure parts that the file does not have; whether all are there."""
    for name in names:
        for method, settings, measured in parts(name, quick=quick):
            known: list[Part] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
            done = {(part["data"], part["method"], part["settings"]) for part in known}
            if (name, method, settings) in done:
                continue
            if time.monotonic() > until:
                return False
            part = measured()
            print(f"{name} {method}, {settings}: {part['seconds']:.0f} s", file=sys.stderr, flush=True)
            update_file(file, partial(_with, part))
    return True


def _with(part: Part, found: list[Part] | None) -> str:
    lines = ",\n ".join(json.dumps(each, ensure_ascii=False) for each in [*(found or []), part])
    return f"[{lines}]\n"
