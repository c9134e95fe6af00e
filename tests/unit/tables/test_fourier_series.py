"""Fourier series: answers summed column by column, and the bound of their error."""

from __future__ import annotations

import numpy as np
import pytest

import hushsum as hs
from hushsum.kernels import Batch
from hushsum.records import Bounds
from hushsum.tables import BoxReading, FourierSeries, SeriesReading, queries_of


def reading_of(dim: int, frequencies: int, padding: float) -> SeriesReading:
    kernel, bounds = hs.GaussianKernel(dim=dim, bandwidth=0.3), Bounds.of((0, 1), dim)
    assert bounds is not None
    basis = FourierSeries(
        kernel=kernel, bounds=bounds, frequencies=frequencies, padding=padding, taper=0.5, scale=1 << 20
    )
    return SeriesReading(basis, kernel)


def records_of(reading: SeriesReading, number: int, seed: int, reach: float = 0.5) -> Batch:
    rows = np.random.default_rng(seed).uniform(-reach, reach, (number, reading.basis.dim))
    return Batch((rows.astype(np.float32),), number)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_answers_are_the_sum_over_all_pairs(dim: int) -> None:
    reading = reading_of(dim, 4, 4.0)
    table = np.random.default_rng(1).integers(-(10**6), 10**6, reading.basis.shape)
    batch = records_of(reading, 20, 2)
    frequency, weight, kernel = reading.basis.series
    pairs = len(frequency)
    real, imaginary = reading.basis.waves(queries_of(batch))
    flat, gain = table.reshape(-1), 2.0 * kernel[1:] / weight[1:]
    expected = kernel[0] / weight[0] * flat[0] + real[:, 1:] @ (gain * flat[1:pairs])
    expected += imaginary[:, 1:] @ (gain * flat[pairs:])
    np.testing.assert_allclose(reading.evaluate(table, batch, threads=1), expected, atol=1e-9)


@pytest.mark.parametrize(("frequencies", "padding"), [(3, 1.0), (8, 4.0), (11, 8.0)])
@pytest.mark.parametrize("dim", [1, 2])
def test_no_record_is_read_further_from_its_kernel_than_the_bound(
    dim: int, frequencies: int, padding: float
) -> None:
    reading = reading_of(dim, frequencies, padding)
    # Queries beyond the box are nearer to the kernels of the next period.
    queries = queries_of(records_of(reading, 50, 3, reach=0.5 * float(reading.basis.period.max())))
    places = reading._lattice[0]
    exact = reading.kernel._pairwise(Batch((places,), len(places)), Batch((queries,), len(queries))).T
    inside = reading._inside(queries)
    errors = np.abs(reading._read_lattice(queries) - exact).max(axis=1)[inside]
    bound = reading._largest_error(queries)[inside]
    assert (errors <= bound + 1e-12).all()
    assert errors.max() > 1e-3 * bound.max()


def test_the_bound_is_used_where_it_is_far_below_the_noise_alone() -> None:
    few, many = reading_of(2, 3, 1.0), reading_of(2, 15, 8.0)
    for reading, same in ((few, True), (many, False)):
        table = np.zeros(reading.basis.shape, np.int64)
        batch = records_of(reading, 200, 4)
        reading.basis.accumulate(table, records_of(reading, 300, 5), step=1, threads=1)
        variance = float(reading.basis.scale) ** 2
        found = reading.method_variance(table, batch, 300.0, variance)
        whole = BoxReading.method_variance(reading, table, batch, 300.0, variance)
        if same:
            np.testing.assert_allclose(found, whole, rtol=1e-12)
        else:
            assert (found >= whole).all()
            assert (found <= 1e-4 * variance * reading.noise_gain(batch)).all()
