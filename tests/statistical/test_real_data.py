"""Skin tones, 245,057 × 3, bandwidth 5: what a release really errs by, against what was planned.

Needs ``HUSHSUM_DATA``. Hash and noise seeds are fixed, so each test always gives the same numbers; over
seeds, the mean noise of 12 releases strays by 4 % from its expectation, and their mean hashing error by 15 %.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.tables import RowReading
from tests.exact_tallies import exact_table

BANDWIDTH, ROWS, SEEDS, QUERIES = 5.0, 500, 12, 500

DATA = os.environ.get("HUSHSUM_DATA", "")
pytestmark = pytest.mark.skipif(not DATA, reason="HUSHSUM_DATA is not set: no real data")


@pytest.fixture(scope="module")
def pixels() -> NDArray[np.float32]:
    import pyarrow.parquet as pq

    table = pq.read_table(Path(DATA) / "skin_segmentation.parquet", columns=["R", "G", "B"])
    columns = np.column_stack([table[name].to_numpy() for name in ("R", "G", "B")])
    return np.ascontiguousarray(np.random.default_rng(0).permutation(columns), np.float32)


@pytest.fixture(scope="module")
def kernel() -> hs.EuclideanKernel:
    return hs.EuclideanKernel(dim=3, bandwidth=BANDWIDTH)


@pytest.fixture(scope="module")
def truth(pixels: NDArray[np.float32], kernel: hs.EuclideanKernel) -> NDArray[np.float64]:
    return kernel.exact_sum(pixels, pixels[:QUERIES]) / len(pixels)


@pytest.fixture(scope="module")
def tallies(pixels: NDArray[np.float32], kernel: hs.EuclideanKernel) -> list[hs.Tally]:
    return [hs.race(kernel, rows=ROWS, seed=seed).add(pixels) for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def without_noise(tallies: list[hs.Tally], pixels: NDArray[np.float32]) -> list[NDArray[np.float64]]:
    """Answers of the exact tables, which only a test on public data may look at."""
    answers = []
    for tally in tallies:
        reading = tally.reading
        assert isinstance(reading, RowReading)
        table = exact_table(tally)
        mean = reading.read(table, reading.basis.prepare_queries(pixels[:QUERIES]), threads=1).mean
        answers.append(reading.unfold(mean, len(pixels)) / len(pixels))
    return answers


def test_hashing_errs_less_than_its_bound(
    without_noise: list[NDArray[np.float64]], truth: NDArray[np.float64], kernel: hs.EuclideanKernel
) -> None:
    plan = hs.plan(records=245_057, kernel=kernel, epsilon=1.0, rows=ROWS, density=float(truth.mean()))
    assert np.mean([np.abs(answer - truth).mean() for answer in without_noise]) < plan.best.approximation


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_noise_and_total_are_as_planned(
    epsilon: float,
    delta: float | None,
    tallies: list[hs.Tally],
    without_noise: list[NDArray[np.float64]],
    truth: NDArray[np.float64],
    pixels: NDArray[np.float32],
    kernel: hs.EuclideanKernel,
) -> None:
    released = [
        tally.release(epsilon=epsilon, delta=delta, rows=ROWS, insecure_noise_seed=seed)(pixels[:QUERIES])
        for seed, tally in enumerate(tallies)
    ]
    public = pixels[-len(pixels) // 100 :]
    planned = hs.plan(
        records=len(pixels), kernel=kernel, epsilon=epsilon, delta=delta, rows=ROWS, public=public
    ).best
    noise = np.mean([np.abs(r - e).mean() for r, e in zip(released, without_noise, strict=True)])
    total = np.mean([np.abs(r - truth).mean() for r in released])
    assert 0.8 < noise / planned.noise < 1.2
    assert 0.8 < total / planned.error < 1.2
