"""Table 1: how the error of the kernel *sum* and the time to build grow with the number of records, at ε = 1.

Made-up salaries with a fixed bandwidth, so that N alone changes: once with fixed parameters, and once with
the best parameter for every N by oracle, as the bounds need it (rows in proportion to N, degrees and terms
that grow, rounds as a power of N).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from benchmarks.data import Contest, Floats, synthetic_salaries
from papers.private_race.kde import released
from papers.private_race.oracle import Grid, best_values

Say = Callable[[str], None]

FIXED: Final[dict[str, dict[str, Any]]] = {
    "race": {"rows": 5000},
    "grid": {},
    "bernstein": {"degree": 99, "iterations": 10},
    "trigonometric": {"terms": 64},
    "mwem": {"rounds": 10},
    "pfda": {"penalty": 1e-5},
}
TUNED: Final[dict[str, Grid]] = {
    "race": Grid("rows", (250, 1000, 4000), 16, 32_000, factor=2.0),
    "bernstein": Grid("degree", (79, 158), 5, 1300),
    "trigonometric": Grid("terms", (16, 32), 2, 512),
    "mwem": Grid("rounds", (5, 10, 20), 1, 640),
    "pfda": Grid("penalty", (1e-4, 1e-5), 1e-10, 1.0, factor=10.0, whole=False),
}
"""The grid has no parameter here: with the number of records declared it chooses its own spacing."""

SIZES: Final = (2000, 8000, 32_000, 128_000)


def growth(say: Say, *, sizes: Sequence[int] = SIZES, repeats: int = 4) -> dict[str, dict[str, Any]]:
    """Exponents of N with fixed parameters."""
    results: dict[str, dict[str, Any]] = {}
    for name, own in FIXED.items():
        measured = [_measured(name, salaries(number), own, repeats) for number in sizes]
        results[name] = _exponents(sizes, measured)
        say(f"growth {name}")
    return results


def tuned_growth(
    say: Say, *, sizes: Sequence[int] = SIZES, repeats: int = 3, names: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Exponents of N with the best parameter for every N, and those parameters; of all methods or some."""
    results: dict[str, dict[str, Any]] = {}
    for name in FIXED if names is None else names:
        measured, chosen, inside = [], [], []
        for number in sizes:
            contest = salaries(number)
            if name not in TUNED:
                measured.append(_measured("auto", contest, {}, repeats))
                continue
            found, best, within = _tuned(name, contest, repeats)
            measured.append(found)
            chosen.append(best)
            inside.append(within)
            say(f"tuned growth {name} {number}: {best:g}")
        results[name] = _exponents(sizes, measured)
        if chosen:
            about = {"parameter": TUNED[name].parameter, "chosen": chosen, "inside": inside}
            results[name] |= {**about, "chosen_exponent": _slope(sizes, chosen)}
    return results


def salaries(number: int) -> Contest:
    """This many made-up salaries, log-normal."""
    drawn = np.random.default_rng(7).lognormal(11.0, 0.5, number).astype(np.float32)
    return replace(synthetic_salaries(), records=drawn.reshape(-1, 1))


def _tuned(name: str, contest: Contest, repeats: int) -> tuple[tuple[float, float], float, bool]:
    grid = TUNED[name]
    tried: dict[float, tuple[float, float]] = {}

    def evaluate(value: float) -> dict[float, float]:
        own = {grid.parameter: value, **({"iterations": 10} if name == "bernstein" else {})}
        tried[value] = _measured(name, contest, own, repeats)
        return {1.0: tried[value][0]}

    best = best_values(grid, evaluate)[0][1.0]
    return tried[best.value], best.value, best.inside


def _measured(name: str, contest: Contest, own: dict[str, Any], repeats: int) -> tuple[float, float]:
    """The mean absolute error of the sum, and the least processor time to count and release."""
    number = len(contest.records)
    truth = contest.truth if name != "race" else _hashed_truth(contest)
    off, taken = [], []
    # Errors of one sketch at all queries share its hash functions, so it needs more seeds.
    for seed in range(3 * repeats if name == "race" else repeats):
        start = time.process_time()
        f = released(contest, name, 1.0, own, seed)
        taken.append(time.process_time() - start)
        off.append(float(np.abs(f(contest.queries) - truth).mean()) * number)
    return float(np.mean(off)), min(taken)


def _exponents(sizes: Sequence[int], measured: Sequence[tuple[float, float]]) -> dict[str, Any]:
    errors, seconds = zip(*measured, strict=True)
    return {
        "sizes": list(sizes),
        "errors": list(errors),
        "seconds": list(seconds),
        "error_exponent": _slope(sizes, errors),
        "time_exponent": _slope(sizes, seconds),
    }


def _hashed_truth(contest: Contest) -> Floats:
    return contest.matched.exact_sum(contest.records, contest.queries) / len(contest.records)


def _slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
