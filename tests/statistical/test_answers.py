"""Error bars over many hash seeds: intervals cover, standard errors are the true spread, bounds are above it.

Queries are fixed before the seeds, so they are independent of the hash functions, as the error bars assume.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import bdtr

import hushsum as hs
from hushsum.releases import Answers, TableFunction
from tests.kernel_cases import CASES, Case

SEEDS = 400
Floats = NDArray[np.float64]


class Runs:
    """The answers of many releases of one dataset, each with other hashes and other noise."""

    def __init__(self, case: Case, rows: int, level: float, **promise: Any) -> None:
        records, self.queries = case.records(200, seed=1), case.records(4, seed=2)
        self.exact = case.kernel.exact_sum(records, self.queries)
        self.number = 200
        self.level = level
        self.functions: list[TableFunction] = []
        for seed in range(SEEDS):
            f = (
                hs.race(case.kernel, rows=rows, width=64, seed=seed)
                .add(records, threads=1)
                .release(rows=rows, insecure_noise_seed=seed, threads=1, **promise)
            )
            assert isinstance(f, TableFunction)
            self.functions.append(f)
        self._answers: dict[str, list[Answers]] = {}

    def stacked(self, name: str, of: str) -> Floats:
        if of not in self._answers:
            self._answers[of] = [f.query(self.queries, of=of, level=self.level) for f in self.functions]
        return np.array([getattr(each, name) for each in self._answers[of]])


PROMISES = {"gaussian": {"rho": 0.2}, "laplace": {"epsilon": 4.0}}
SOME = [case for case in CASES if case.name in {"euclidean", "angular-unfolded", "jaccard", "hamming-power"}]


PARAMETERS = [(case, name) for case in SOME for name in PROMISES]


@pytest.fixture(scope="module", params=PARAMETERS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def runs(request: pytest.FixtureRequest) -> Runs:
    case, promise = request.param
    return Runs(case, rows=40, level=0.9, **PROMISES[promise])


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_intervals_cover_at_their_level(runs: Runs, of: str) -> None:
    """At each of 4 queries 400 independent intervals; the number that cover is binomial.

    A true coverage of 0.88 or more (0.02 are given to the skewness of counts) falls below the bound with
    probability 1e-8 at each query.
    """
    truth = runs.exact / (1 if of == "sum" else runs.number)
    hits = np.sum((runs.stacked("lower", of) <= truth) & (truth <= runs.stacked("upper", of)), axis=0)
    for covered in hits.tolist():
        assert bdtr(covered, SEEDS, runs.level - 0.02) > 1e-8, f"only {covered / SEEDS:.1%} cover"


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_standard_errors_are_the_true_spread(runs: Runs, of: str) -> None:
    """A variance over 400 seeds has a relative deviation near √(2/400) = 7 %: 40 % is beyond 5.5 of them."""
    truth = runs.exact / (1 if of == "sum" else runs.number)
    square = ((runs.stacked("value", of) - truth) ** 2).mean(axis=0)
    reported = (runs.stacked("stderr", of) ** 2).mean(axis=0)
    np.testing.assert_allclose(reported, square, rtol=0.4)


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_the_bound_is_above_the_true_spread(runs: Runs, of: str) -> None:
    """With the same 40 % for chance in the measured variance."""
    truth = runs.exact / (1 if of == "sum" else runs.number)
    square = ((runs.stacked("value", of) - truth) ** 2).mean(axis=0)
    assert np.all((runs.stacked("bound", of) ** 2).mean(axis=0) >= square / 1.4)
    assert np.all(runs.stacked("bound", of) >= runs.stacked("stderr", of))


def test_the_count_is_unbiased_with_its_standard_error(runs: Runs) -> None:
    """Mean of 400 at 6 standard errors (2e-9); variance within 50 %, seven of its deviations."""
    counts = np.array([f.count for f in runs.functions])
    stderr = runs.functions[0].count_stderr
    assert abs(counts.mean() - runs.number) <= 6 * stderr / math.sqrt(SEEDS)
    assert counts.var(ddof=1) == pytest.approx(stderr**2, rel=0.5)


def test_the_paid_count_improves_on_algorithm_2_as_much_as_the_variances_say(runs: Runs) -> None:
    """Two deviations over 400 seeds, each to 3.5 %: their ratio is off by 30 % with probability 1e-8."""
    f = runs.functions[0]
    rows, width = f.basis.shape
    table = math.sqrt(width * f.noise.variance / rows)
    ratio = np.std([f.table_count for f in runs.functions]) / np.std([f.count for f in runs.functions])
    assert table > f.count_stderr
    assert ratio == pytest.approx(table / f.count_stderr, rel=0.3)


def test_median_of_means_keeps_theorem_3_4(runs: Runs) -> None:
    """Failures at 5 % or less: more than 47 of 400 have probability below 1e-7. It is far from tight."""
    failures = np.zeros(len(runs.queries), np.int64)
    for f in runs.functions:
        error = np.abs(f.sum(runs.queries, estimator="median-of-means") - runs.exact)
        failures += error > f.error_bound(runs.queries, failure=0.05)
    assert failures.max() <= 47


def test_half_the_noise_would_be_noticed() -> None:
    """The test of standard errors can fail: with noise drawn at twice the declared deviation it does."""
    case = SOME[0]
    fair = Runs(case, rows=40, level=0.9, rho=0.001)
    wrong = Runs(case, rows=40, level=0.9, rho=0.00025)
    spread = ((wrong.stacked("value", "sum") - wrong.exact) ** 2).mean(axis=0)
    declared = (fair.stacked("stderr", "sum") ** 2).mean(axis=0)
    assert np.all(spread > 1.4 * declared)
