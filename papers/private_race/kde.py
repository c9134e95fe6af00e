"""Figures 3 and 7: what the race in ``benchmarks.accuracy.comparison`` does not measure already.

Curves of salaries at ε = 1, and baselines on forest data that were sampled and reduced.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from benchmarks.accuracy.comparison_contestants import DELTA
from benchmarks.data import Contest, Floats, on_salary_grid, sample_of, synthetic_salaries
from papers.private_race.oracle import Grid, best_values

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.methods import method_named
from hushsum.releases import ReleasedFunction

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


Say = Callable[[str], None]

CURVES: Final[dict[str, dict[str, Any]]] = {
    "auto": {},
    "race": {"rows": 500},
    "bernstein": {"degree": 99, "iterations": 10},
    "fourier_series": {"frequencies": 20},
    "histogram": {"bins": 128},
    "privbayes": {"bins": 128},
    "kme": {"lattice": 128},
    "pfda": {"penalty": 1e-5},
}
"""Methods of the figure, with good settings for it."""

EPSILONS: Final = (0.1, 0.5, 1.0)
REDUCED_RECORDS: Final = 100_000
REDUCED_COLUMNS: Final = {"bernstein": 3, "kme": 8}


def released(
    contest: Contest, name: str, epsilon: float, own: dict[str, Any], seed: int = 0
) -> ReleasedFunction:
    """A release of a contest by a method's name; hash rows with the kernel of the same mean density."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousParameter)
        if name == "auto":
            return hs.release(
                contest.records,
                epsilon=epsilon,
                kernel=contest.kernel,
                bounds=contest.bounds,
                records=len(contest.records),
            )
        method = method_named(name)
        return method.release(
            contest.records,
            contest.matched if name == "race" else contest.kernel,
            bounds=contest.bounds,
            epsilon=epsilon,
            delta=None if method.pure else DELTA,
            relation=method.relations[0],
            **own,
            **({"seed": seed} if name == "race" else {}),
        )


def curves_of(contest: Contest, say: Say) -> dict[str, list[float]]:
    """The exact function of salaries on the grid of the paper, and one release of each method at ε = 1."""
    grid = on_salary_grid(contest)
    curves = {"exact": grid.truth.tolist()}
    for name, own in CURVES.items():
        curves[name] = np.round(released(contest, name, 1.0, own)(grid.queries), 6).tolist()
        say(f"curve {contest.name} {name}")
    return curves


def reduced_errors(contest: Contest, say: Say, *, repeats: int = 2) -> list[dict[str, Any]]:
    """Relative errors of Bernstein and KME on a sample of forest data, projected on few columns.

    The projection is public and random, and keeps squared distances on average. Errors are against the exact
    sums of all records with all columns, so they hold what sampling and reducing cost.
    """
    fewer = sample_of(contest, min(REDUCED_RECORDS, len(contest.records)))
    results = []
    for name, columns in REDUCED_COLUMNS.items():
        matrix = np.random.default_rng(6).normal(0.0, columns**-0.5, (contest.dim, columns))
        low_high = (-4.0, 4.0)
        small = replace(
            contest,
            records=((fewer.records - 0.5) @ matrix).astype(np.float32),
            kernel=hs.GaussianKernel(dim=columns, bandwidth=contest.kernel.bandwidth),
            bounds=low_high,
        )
        queries = (contest.queries - 0.5) @ matrix
        own = {"degree": 19} if name == "bernstein" else {"points": 1000}
        for epsilon in EPSILONS:
            off = [
                _relative(released(small, name, epsilon, own)(queries), contest.truth) for _ in range(repeats)
            ]
            results.append({"method": name, "epsilon": epsilon, "relative": float(np.mean(off))})
        say(f"reduced {name}")
    return results


def _relative(values: Floats, truth: Floats) -> float:
    return float((np.abs(values - truth) / truth).mean())
