"""Errors, plans and intervals of grids on real and heaped data: ``python -m benchmarks grid_errors``.

Each line is one data set at one ε, with the number of records declared or not: the mean absolute error of
f(q)/N over releases and queries from the data, that error over the planned one, and how many of the 95 %
intervals hold, on average and in the worst release. Heaped variants: salaries rounded to two significant
digits, a tenth of them set to one value, and one value throughout. The largest errors of
records follow from theory. Two choices were made with these data in view, so the table is no
independent test of them: the share of repeated values that plans assume, and how intervals count the bound.

    python -m benchmarks grid_errors [--releases 10] [--queries 500]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import hushsum as hs

EPSILONS = (0.1, 1.0)
HEAD = ("data", "N", "d", "ε", "declared", "grid", "error", "error/plan", "coverage", "worst", "µs")


@dataclass(frozen=True)
class Case:
    """Records, and what is declared of them."""

    name: str
    records: np.ndarray[Any, np.dtype[np.float64]]
    bandwidth: float
    bounds: Any
    steps: Any = None


def cases(folder: Path) -> Iterator[Case]:
    """The data sets, then heaped variants of the first."""

    def read(name: str, *columns: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        frame = pd.read_parquet(folder / f"{name}.parquet")
        if "pay_basis" in frame:
            frame = frame[frame["pay_basis"].astype(str).str.strip() == "per Annum"]
        if "year" in frame:
            frame = frame[frame["year"] == 2014]
        return frame[list(columns)].dropna().to_numpy(np.float64)

    pay = read("nyc_payroll_sample", "base_salary")
    wide = (0.0, 300_000.0)
    yield Case("payroll, h = 1,000", pay, 1000.0, wide)
    yield Case("payroll, h = 5,000", pay, 5000.0, wide)
    yield Case("payroll 2016, h = 1,000", read("nyc_payroll_fy2016_subset", "base_salary"), 1000.0, wide)
    yield Case("San Francisco, h = 2,000", read("sf_salaries_2011_2014", "base_pay"), 2000.0, wide)
    yield Case("hourly earnings, h = 1", read("cps_earnings_2004", "target"), 1.0, (0.0, 100.0))
    both = read("cps_earnings_2004", "age", "target")
    yield Case("age and earnings, h = 2", both, 2.0, [(15.0, 85.0), (0.0, 100.0)])
    yield Case("incomes (PUMS), h = 5,000", read("pums_california_1000", "income"), 5000.0, wide)
    yield Case("heights (Howell), h = 5", read("howell1", "height"), 5.0, (0.0, 200.0))
    ages = read("adult", "age")
    yield Case("ages (Adult), h = 2", ages, 2.0, (15.0, 95.0))
    yield Case("ages (Adult), h = 2, steps", ages, 2.0, (15.0, 95.0), 1.0)
    yield Case("skin tones, h = 3.5", read("skin_segmentation", "B", "G", "R"), 5.0 / 2**0.5, (0.0, 255.0))
    digits = 10.0 ** (np.floor(np.log10(np.maximum(pay, 1.0))) - 1.0)
    yield Case("payroll, 2 digits, h = 1,000", np.rint(pay / digits) * digits, 1000.0, wide)
    heap = pay.copy()
    heap[::10] = 46_713.0
    yield Case("payroll, 10 % one value, h = 1,000", heap, 1000.0, wide)
    yield Case("one value, h = 1,000", np.full_like(pay, 46_713.0), 1000.0, wide)


def measured(case: Case, epsilon: float, *, declared: bool, releases: int, queries: int) -> list[str]:
    """One line of the table."""
    records, dim = case.records, case.records.shape[1]
    kernel = hs.GaussianKernel(dim, case.bandwidth)
    low, high = np.array(case.bounds).reshape(-1, 2).T
    inside = np.clip(records, low, high)
    rng = np.random.default_rng(0)
    Q = inside[rng.choice(len(inside), queries)]
    values, inverse = np.unique(Q, axis=0, return_inverse=True)
    truth = _exact(case, kernel, inside, values)[inverse.reshape(-1)]
    extra = {} if case.steps is None else {"steps": case.steps}
    number = len(records)
    planned = hs.plan(
        records=number if declared else 100_000, kernel=kernel, bounds=case.bounds, epsilon=epsilon, **extra
    ).best
    errors, holds, spent = [], [], 0.0
    for seed in range(releases):
        f = hs.release(
            records,
            kernel=kernel,
            bounds=case.bounds,
            epsilon=epsilon,
            records=number if declared else None,
            insecure_noise_seed=seed,
            **extra,
        )
        start = time.perf_counter()
        f(Q)
        spent += time.perf_counter() - start
        answers = f.query(Q)
        errors.append(np.abs(answers.value - truth).mean())
        holds.append(((answers.lower <= truth) & (truth <= answers.upper)).mean())
    error = float(np.mean(errors))
    settings = {name: value for name, value in planned.settings.items() if name != "rounded"}
    grid = ", ".join(str(value) for value in settings.values())
    ratio = f"{error / planned.error:.2f}" if declared else ""
    return [
        case.name, f"{number:,}", str(dim), f"{epsilon:g}", "yes" if declared else "no", grid, f"{error:.2e}",
        ratio, f"{np.mean(holds):.3f}", f"{np.min(holds):.3f}", f"{1e6 * spent / releases / queries:.1f}",
    ]  # fmt: skip


_EXACT: dict[str, Any] = {}


def _exact(case: Case, kernel: hs.GaussianKernel, inside: Any, values: Any) -> Any:
    """Mean kernel values at the queries, computed once for each data set."""
    if case.name not in _EXACT:
        centre = np.array(case.bounds).reshape(-1, 2).mean(axis=1)
        _EXACT[case.name] = kernel.exact_sum(inside - centre, values - centre) / len(inside)
    return _EXACT[case.name]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    for case in cases(Path(os.environ["HUSHSUM_DATA"])):
        if given.only not in case.name:
            continue
        for epsilon in EPSILONS:
            for declared in (True, False):
                row = measured(
                    case, epsilon, declared=declared, releases=given.releases, queries=given.queries
                )
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
