"""Linear methods on real salaries and skin tones: what a release errs by, against what was predicted.

Needs ``HUSHSUM_DATA``. Noise seeds are fixed, so each test always gives the same numbers; over seeds the mean
error of five releases strays by less than a tenth.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.baselines import hermite, lsq_fgt
from hushsum.baselines._linear_tables import BoxPolynomials, predicted_error

DATA = os.environ.get("HUSHSUM_DATA", "")
pytestmark = pytest.mark.skipif(not DATA, reason="HUSHSUM_DATA is not set: no real data")

Sample = tuple[NDArray[np.float64], hs.GaussianKernel, tuple[float, float]]


def salaries() -> Sample:
    import pyarrow.parquet as pq

    table = pq.read_table(Path(DATA) / "nyc_payroll_sample.parquet", columns=["pay_basis", "base_salary"])
    annual = np.array([str(basis).strip() == "per Annum" for basis in table["pay_basis"].to_pylist()])
    pay = table["base_salary"].to_numpy().astype(np.float64)[annual]
    return np.clip(pay, 0.0, 3e5)[:, np.newaxis], hs.GaussianKernel(1, 5000.0), (0.0, 3e5)


def pixels() -> Sample:
    import pyarrow.parquet as pq

    table = pq.read_table(Path(DATA) / "skin_segmentation.parquet", columns=["R", "G", "B"])
    rows = np.column_stack([table[name].to_numpy() for name in ("R", "G", "B")]).astype(np.float64)
    return rows, hs.GaussianKernel(3, 5.0 / np.sqrt(2.0)), (0.0, 255.0)


def error(tally: hs.Tally, sample: Sample, queries: NDArray[np.float64], epsilon: float) -> float:
    records, kernel, _ = sample
    tally.add(records)
    truth = kernel.exact_sum(records, queries) / len(records)
    answers = [tally.release(epsilon=epsilon, insecure_noise_seed=seed)(queries) for seed in range(5)]
    return float(np.mean(np.abs(np.array(answers) - truth)))


# Bounds and bandwidth are round numbers that some records happen to reach.
@pytest.mark.filterwarnings("ignore::hushsum.errors.SuspiciousParameter")
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("load", [salaries, pytest.param(pixels, marks=pytest.mark.slow)])
def test_the_chosen_expansion_beats_the_published_one_and_errs_as_predicted(
    load: object, epsilon: float
) -> None:
    sample: Sample = load()  # type: ignore[operator]
    records, kernel, bounds = sample
    queries = np.random.default_rng(5).choice(records, 300, replace=False)
    tally = hermite(kernel, bounds=bounds, records=len(records), epsilon=epsilon)
    basis = tally.basis
    assert isinstance(basis, BoxPolynomials)
    found = error(tally, sample, queries, epsilon)
    published = min(
        error(lsq_fgt(kernel, bounds=bounds, order=order), sample, queries, epsilon)
        for order in ((5, 6, 7) if kernel.dim == 1 else (2, 3, 4))
    )
    assert found < 0.85 * published
    noise, truncation = predicted_error(
        kernel, order=basis.order, side=basis.side / kernel.bandwidth, records=len(records), epsilon=epsilon
    )
    assert 0.5 < found / np.hypot(0.8 * noise, truncation) < 1.5
