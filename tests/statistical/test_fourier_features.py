"""Answers of Fourier features over many seeds: unbiased, with the predicted variance and covering intervals.

Queries are fixed before the seeds, so they are independent of the frequencies, as the error bars assume.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import bdtr

import hushsum as hs
from hushsum.kernels import Kernel

SEEDS, NUMBER, ROWS = 400, 300, 48
Floats = NDArray[np.float64]
PROMISES: dict[str, dict[str, Any]] = {"gaussian": {"rho": 0.2}, "laplace": {"epsilon": 8.0}}
KERNELS: dict[str, tuple[Kernel, dict[str, Any]]] = {
    "orthogonal": (hs.GaussianKernel(3, 1.2), {"sobol": False}),
    "independent": (hs.GaussianKernel(3, 1.2), {"orthogonal": False}),
    "laplacian": (hs.LaplacianKernel(2, 2.0), {"orthogonal": False}),
    "even": (hs.GaussianKernel(3, 1.2), {"sobol": True}),
}


class Runs:
    """The answers of many releases of one dataset, each with other frequencies and other noise."""

    def __init__(self, kernel: Kernel, options: dict[str, Any], **promise: Any) -> None:
        rng = np.random.default_rng(1)
        dim = getattr(kernel, "dim")  # noqa: B009  (the protocol has none)
        records, self.queries = rng.normal(size=(NUMBER, dim)), rng.normal(size=(4, dim))
        self.exact, self.even = kernel.exact_sum(records, self.queries), options.get("sobol", False)
        self.functions: list[Any] = [
            hs.fourier_features(kernel, features=ROWS, seed=seed, **options)
            .add(records, threads=1)
            .release(rows=ROWS, insecure_noise_seed=seed, threads=1, **promise)
            for seed in range(SEEDS)
        ]
        self.answers = {
            of: [f.query(self.queries, of=of, level=0.9) for f in self.functions] for of in ("sum", "mean")
        }

    def stacked(self, name: str, of: str) -> Floats:
        return np.array([getattr(answers, name) for answers in self.answers[of]])

    def truth(self, of: str) -> Floats:
        return self.exact / (1 if of == "sum" else NUMBER)


@pytest.fixture(
    scope="module",
    params=[(name, promise) for name in KERNELS for promise in PROMISES],
    ids=lambda pair: f"{pair[0]}-{pair[1]}",
)
def runs(request: pytest.FixtureRequest) -> Runs:
    name, promise = request.param
    kernel, options = KERNELS[name]
    return Runs(kernel, options, **PROMISES[promise])


def test_sums_are_unbiased(runs: Runs) -> None:
    """Means of 400 at 6 standard errors: false alarms below 1e-7 over the four queries."""
    values = runs.stacked("value", "sum")
    stderr = values.std(axis=0, ddof=1) / math.sqrt(SEEDS)
    assert (np.abs(values.mean(axis=0) - runs.exact) <= 6 * stderr).all()


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_intervals_cover_at_their_level(runs: Runs, of: str) -> None:
    """Of 400 independent intervals at each query; a true coverage of 0.88 or more falls below with 1e-8."""
    truth = runs.truth(of)
    hits = np.sum((runs.stacked("lower", of) <= truth) & (truth <= runs.stacked("upper", of)), axis=0)
    for covered in hits.tolist():
        assert bdtr(covered, SEEDS, 0.88) > 1e-8, f"only {covered / SEEDS:.1%} cover"


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_standard_errors_are_the_true_spread_and_bounds_above(runs: Runs, of: str) -> None:
    """A variance over 400 seeds has a relative deviation near 7 %: 40 % is beyond 5.5 of them. The errors of
    evenly spread frequencies partly cancel, which their spread does not show: 4 times as large in three
    columns.
    """
    square = np.square(runs.stacked("value", of) - runs.truth(of)).mean(axis=0)
    reported = np.square(runs.stacked("stderr", of)).mean(axis=0)
    if runs.even:
        assert ((reported > square / 1.4) & (reported < 20.0 * square)).all()
    else:
        np.testing.assert_allclose(reported, square, rtol=0.4)
    assert (np.square(runs.stacked("bound", of)).mean(axis=0) >= square / 1.4).all()


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("promise", list(PROMISES))
def test_sharpened_answers_are_unbiased_and_cover(promise: str, orthogonal: bool) -> None:
    """Over 300 seeds: means at 6 standard errors (1e-7 over four queries), coverage of 0.85 or more at a
    level of 0.9 (below the bound with 1e-8 each; weights fitted to the other folds tie the folds together a
    little), and variances to 50 %, six of their deviations.
    """
    rng = np.random.default_rng(1)
    records = np.concatenate([rng.normal(size=(300, 4)) * 0.7, rng.normal(size=(300, 4)) * 0.5 + 1.5])
    points = np.concatenate([rng.normal(size=(40, 4)), rng.normal(size=(40, 4)) * 0.5 + 1.5])
    queries, kernel, seeds = rng.normal(size=(4, 4)), hs.GaussianKernel(4, 1.2), 300
    exact = kernel.exact_sum(records, queries)
    answers = []
    for seed in range(seeds):
        tally = hs.fourier_features(kernel, features=100, seed=seed, orthogonal=orthogonal, sobol=False)
        f: Any = tally.add(records, threads=1).release(
            rows=100, insecure_noise_seed=seed, threads=1, **PROMISES[promise]
        )
        answers.append(f.with_public_points(points).query(queries, of="sum", level=0.9))
    values = np.array([each.value for each in answers])
    spread = values.std(axis=0, ddof=1)
    assert (np.abs(values.mean(axis=0) - exact) <= 6 * spread / math.sqrt(seeds)).all()
    reported = np.square([each.stderr for each in answers]).mean(axis=0)
    np.testing.assert_allclose(reported, spread**2, rtol=0.5)
    hits = np.sum([(each.lower <= exact) & (exact <= each.upper) for each in answers], axis=0)
    for covered in hits.tolist():
        assert bdtr(covered, seeds, 0.85) > 1e-8, f"only {covered / seeds:.1%} cover"


def test_orthogonal_frequencies_vary_less_near_a_record() -> None:
    """One record at a query half a bandwidth away; 3,000 blocks of each kind, the variances to 3 %."""
    kernel = hs.GaussianKernel(8, 1.0)
    spread = []
    for orthogonal in (True, False):
        basis: Any = hs.fourier_features(
            kernel, features=24_000, seed=2, orthogonal=orthogonal, sobol=False
        ).basis
        phases = 2 * np.pi * basis.frequencies.astype(np.float64) @ np.full(8, 0.5 / math.sqrt(8))
        spread.append(np.cos(phases).reshape(3000, 8).mean(axis=1).var())
    assert spread[0] < 0.5 * spread[1]
