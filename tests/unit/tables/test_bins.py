"""Bins of a histogram, against loops over records and cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.baselines import histogram_tally
from hushsum.errors import UsageError
from hushsum.kernels import Kernel
from hushsum.privacy import Relation, Sensitivity
from hushsum.records import Bounds
from hushsum.releases import CoefficientFunction
from hushsum.tables import Bins, LinearReading
from tests.exact_tallies import exact_table

RNG = np.random.default_rng(7)
X = RNG.uniform(-0.1, 1.1, (500, 2))
Q = RNG.uniform(-0.5, 1.5, (11, 2))
KERNELS = [
    hs.GaussianKernel(dim=2, bandwidth=0.2),
    hs.EuclideanKernel(dim=2, bandwidth=0.2),
    hs.ManhattanKernel(dim=2, bandwidth=0.3),
    hs.LaplacianKernel(dim=2, bandwidth=0.6),
    hs.LaplacianKernel(dim=2, bandwidth=2.4, power=4),
    hs.MaternKernel(dim=2, bandwidth=0.3, smoothness=0.5),
]


def basis_of(bins: tuple[int, ...] = (6, 5)) -> Bins:
    return Bins(bins, Bounds((0.0, 0.0), (1.0, 1.0)))


def table_of(basis: Bins) -> Any:
    table = np.zeros(basis.shape, np.int64)
    basis.accumulate(table, basis.prepare(X), step=1, threads=1)
    return table


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_answers_and_their_noise_are_sums_over_middles(kernel: Kernel) -> None:
    basis = basis_of()
    reading = basis.reading(kernel)
    assert isinstance(reading, LinearReading)
    table = table_of(basis)
    centres = basis.grid.centres()
    values = kernel.similarity(centres - 0.5, Q - 0.5)
    batch = basis.prepare_queries(Q)
    np.testing.assert_allclose(reading.evaluate(table, batch, threads=1), table[0] @ values, rtol=1e-5)
    np.testing.assert_allclose(reading.noise_gain(batch), (values**2).sum(axis=0), rtol=1e-5)
    assert table.sum() == 500
    assert reading.total(table) == (500.0, 30.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_stated_error_of_the_method_is_of_the_size_of_its_error(kernel: Kernel) -> None:
    """Over 40 sets of records that sit together in 20 clumps: the mean square is at most what is stated, and
    not below a twentieth of it. That much more is stated for values on a lattice of whole cells, whose errors
    add up.
    """
    basis = basis_of((12, 12))
    reading = basis.reading(kernel)
    assert isinstance(reading, LinearReading)
    batch = basis.prepare_queries(Q[:5])
    squares, stated = np.zeros(5), np.zeros(5)
    for seed in range(40):
        clumps = np.random.default_rng(seed).uniform(0, 1, (20, 2))
        records = np.repeat(clumps, 50, axis=0)
        table = np.zeros(basis.shape, np.int64)
        basis.accumulate(table, basis.prepare(records), step=1, threads=1)
        sums = reading.evaluate(table, batch, threads=1)
        squares += (sums - kernel.exact_sum(records - 0.5, Q[:5] - 0.5)) ** 2
        stated += reading.method_variance(table, batch, 1000.0, 0.0)
    assert (squares < stated * 1.5).all()
    assert squares.sum() > stated.sum() / 20.0


def test_sensitivity_is_one_cell_or_two() -> None:
    basis = basis_of()
    assert basis.sensitivity(Relation.ADD_REMOVE) == Sensitivity(1, 1, 1)
    assert basis.sensitivity(Relation.REPLACE) == Sensitivity(2, 2, 1)


def test_tallies_stream_merge_and_remove() -> None:
    options: dict[str, Any] = {"bounds": (0, 1), "bins": (6, 5)}
    whole = histogram_tally(KERNELS[0], **options).add(X)
    parts = histogram_tally(KERNELS[1], **options).add(X[:100]).add(X[100:300])
    parts.merge(histogram_tally(KERNELS[0], **options).add(X[300:]).add(X[:7]).remove(X[:7]))
    np.testing.assert_array_equal(exact_table(whole), exact_table(parts))
    assert whole.fingerprint == parts.fingerprint, "the kernel only reads"
    assert whole.fingerprint != histogram_tally(KERNELS[0], bounds=(0, 1), bins=(5, 6)).fingerprint


def test_a_release_is_read_for_any_kernel() -> None:
    f = histogram_tally(KERNELS[0], bounds=(0, 1), bins=(6, 5)).add(X).release(rho=1.0, insecure_noise_seed=1)
    assert isinstance(f, CoefficientFunction)
    other = f.with_kernel(KERNELS[2])
    assert other.kernel == KERNELS[2]
    np.testing.assert_array_equal(other.table, f.table)
    assert not np.allclose(other(Q), f(Q))


def test_it_is_released_whole() -> None:
    assert basis_of().prefix(1) == basis_of()
    assert basis_of().rows_for(1000, 1.0, 1) == 1
    with pytest.raises(UsageError, match="released whole"):
        basis_of().prefix(2)


@pytest.mark.parametrize(
    ("kernel", "bins"),
    [
        (hs.GaussianKernel(dim=3, bandwidth=1.0), (6, 5)),
        (hs.AngularKernel(dim=2, bits=2), (6, 5)),
        (KERNELS[0], (6,)),
        (KERNELS[0], (0, 5)),
        (KERNELS[0], (1 << 13, 1 << 13)),
        (KERNELS[0], [6, 5]),
        (KERNELS[0], (6, True)),
    ],
)
def test_refuses_kernels_and_bins_that_do_not_fit(kernel: Kernel, bins: Any) -> None:
    with pytest.raises(UsageError):
        basis_of(bins).reading(kernel)


def test_intervals_hold_for_values_on_a_lattice_of_whole_cells() -> None:
    """Both columns have multiples of a step of two cells, so that every record is at the lower corner of its
    cell and all errors add up. Noise is next to nothing, so the error is nearly the same in every release.
    """
    rng = np.random.default_rng(3)
    records = np.clip(np.rint(rng.normal(5.0, 1.2, (4000, 2))), 0, 9)
    kernel, box = hs.GaussianKernel(dim=2, bandwidth=2.0), [(0.0, 10.0), (0.0, 10.0)]
    tally = histogram_tally(kernel, bounds=box, bins=[20, 20]).add(records)
    f = tally.release(epsilon=1e4, insecure_noise_seed=1)
    queries = records[:200]
    answers = f.query(queries)
    exact = kernel.exact_sum(records, queries) / len(records)
    assert np.mean((answers.lower <= exact) & (exact <= answers.upper)) > 0.93
