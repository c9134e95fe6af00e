"""Figures 3 and 7: what the race in ``benchmarks.accuracy.comparison`` does not measure already.

Curves of salaries at ε = 1, and baselines on forest data that were sampled and reduced.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
from benchmarks.accuracy.comparison_contestants import DELTA
from benchmarks.data import Contest, Floats, on_salary_grid, sample_of

import hushsum as hs
from hushsum.errors import SuspiciousParameter
from hushsum.methods import method_named
from hushsum.releases import ReleasedFunction

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
