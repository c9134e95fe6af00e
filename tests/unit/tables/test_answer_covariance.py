"""How answers depend on each other: formulas of readings against tables that are made up cell by cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.baselines import bernstein, fourier_series, histogram_tally, lsq_rff, trigonometric
from hushsum.releases import NoisyTable
from hushsum.tables import LinearReading, RowReading, counted_alone, probed_covariance

ONE, TWO = (hs.GaussianKernel(dim=dim, bandwidth=0.2) for dim in (1, 2))


def reading_of(name: str) -> tuple[Any, int]:
    if name == "grid":
        return hs.grid(ONE, bounds=(0, 1)).reading, 1
    if name == "grid of two columns":
        return hs.grid(TWO, bounds=(0, 1)).reading, 2
    if name == "grid with several terms":
        return hs.grid(hs.LaplacianKernel(dim=2, bandwidth=0.4), bounds=(0, 1)).reading, 2
    if name == "features":
        return hs.fourier_features(TWO, features=30, bounds=(0, 1)).reading, 2
    if name == "features in groups":
        return hs.fourier_features(TWO, features=32, groups=4, bounds=(0, 1)).reading, 2
    if name == "bins":
        return histogram_tally(TWO, bounds=(0, 1), bins=6).reading, 2
    ways: dict[str, Any] = {
        "lsq_rff": (lsq_rff, {"features": 40}),
        "bernstein": (bernstein, {"degree": 8, "iterations": 3}),
        "trigonometric": (trigonometric, {"terms": 9}),
        "fourier_series": (fourier_series, {"frequencies": 5}),
    }
    way, sizes = ways[name]
    return way(ONE, bounds=(0, 1), **sizes).reading, 1


@pytest.mark.parametrize(
    "name",
    [
        *("grid", "grid of two columns", "grid with several terms", "features", "features in groups", "bins"),
        *("lsq_rff", "bernstein", "trigonometric", "fourier_series"),
    ],
)
def test_formulas_are_those_of_single_cells(name: str) -> None:
    rng = np.random.default_rng(0)
    reading, dim = reading_of(name)
    assert isinstance(reading, LinearReading)
    batch = reading.basis.prepare_queries(rng.uniform(0.0, 1.0, (6, dim)))
    found = reading.noise_covariance(batch)
    scale = np.abs(found).max()
    np.testing.assert_allclose(found, probed_covariance(reading, batch), rtol=1e-3, atol=1e-4 * scale)
    np.testing.assert_allclose(np.diag(found), reading.noise_gain(batch), rtol=1e-3)
    records = reading.basis.prepare(rng.uniform(0.1, 0.9, (5, dim)))
    # A grid reads the kernel up to its error, which is larger at the tip of the Laplacian.
    np.testing.assert_allclose(
        reading.record_answers(records, batch),
        counted_alone(reading, records, batch),
        atol=0.15 if "terms" in name else 0.02,
    )


def test_a_large_table_is_probed_at_random() -> None:
    rng = np.random.default_rng(0)
    reading = hs.fourier_features(ONE, features=3000, bounds=(0, 1)).reading
    assert isinstance(reading, LinearReading)
    batch = reading.basis.prepare_queries(rng.uniform(0.0, 1.0, (4, 1)))
    exact = reading.noise_covariance(batch)
    np.testing.assert_allclose(probed_covariance(reading, batch), exact, atol=0.25 * exact.max())


def test_rows_share_the_noise_of_shared_cells() -> None:
    reading = hs.race(hs.EuclideanKernel(dim=1, bandwidth=0.5), rows=300, width=20, bounds=(0, 1)).reading
    assert isinstance(reading, RowReading)
    queries = reading.basis.prepare_queries(np.array([[0.2], [0.3], [0.9]]))
    cells = reading.basis.cells(queries)
    coefficients = np.zeros((3, 300, 20))
    for query in range(3):
        coefficients[query, np.arange(300), cells[query]] = 1.0 / (300 * (1.0 - reading.basis.fold_rate))
    flat = coefficients.reshape(3, -1)
    np.testing.assert_allclose(reading.noise_covariance(queries), flat @ flat.T, rtol=1e-9)
    table = np.zeros((300, 20), np.int64)
    record = reading.basis.prepare(np.array([[0.25]]))
    table[np.arange(300), reading.basis.cells(record)[0]] = 1
    alone = reading.sums(table, queries, count=1.0, scale=1.0, threads=1)
    np.testing.assert_allclose(reading.record_answers(record, queries)[0], alone, atol=1e-6)


def test_the_noise_of_means_agrees_with_that_of_many_releases() -> None:
    rng = np.random.default_rng(0)
    tally = hs.grid(ONE, bounds=(0, 1)).add(rng.normal(0.5, 0.1, (300, 1)))
    at = np.array([[0.4], [0.5], [0.9]])
    made = [tally.release(epsilon=1.0, insecure_noise_seed=seed) for seed in range(1500)]
    answers = np.array([each(at) for each in made])
    tables = [each for each in made[:20] if isinstance(each, NoisyTable)]
    expected = np.mean([each.noise_covariance(at) for each in tables], axis=0)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    # 1500 draws of Laplace noise: a correlation is known to 0.03, a variance to 0.06.
    assert (np.abs(np.cov(answers.T) - expected) < 0.25 * scale).all()
