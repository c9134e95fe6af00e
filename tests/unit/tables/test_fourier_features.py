"""Fourier features as a basis: what it declares, reads, stores and refuses."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import IncompatibleTallies, UsageError
from hushsum.kernels import Kernel
from hushsum.privacy import Relation, Sensitivity
from hushsum.releases import CoefficientFunction
from hushsum.tables import (
    FeatureReading,
    FourierFeatures,
    LinearReading,
    RowReading,
    SampledReading,
    basis_as_json,
    basis_from_json,
)
from hushsum.tables._fourier_features import MAX_NUMBERS, MOST_BLOCKS
from tests.exact_tallies import exact_table
from tests.oracles.features import integers

KERNELS: list[Kernel] = [
    hs.GaussianKernel(3, 0.8),
    hs.LaplacianKernel(2, 1.5),
    hs.GaussianKernel(1, 2.0, power=3),
    hs.MaternKernel(2, 0.9, smoothness=2.5),
]
RNG = np.random.default_rng(3)


def basis_of(kernel: Kernel, features: int = 300, **options: Any) -> FourierFeatures:
    basis = hs.fourier_features(kernel, features=features, seed=5, **options).basis
    assert isinstance(basis, FourierFeatures)
    return basis


def records_of(kernel: Kernel, number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return RNG.normal(size=(number, getattr(kernel, "dim")))  # noqa: B009  (the protocol has none)


def released(tally: hs.Tally, **promise: Any) -> CoefficientFunction:
    function = tally.release(insecure_noise_seed=1, **promise)
    assert isinstance(function, CoefficientFunction)
    return function


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
class TestBasis:
    def test_a_record_adds_what_the_oracle_says(self, kernel: Kernel) -> None:
        basis = basis_of(kernel, features=45)
        batch = basis.prepare(records_of(kernel, 20))
        table = np.zeros(basis.shape, np.int64)
        basis.accumulate(table, batch, step=1, threads=2)
        np.testing.assert_array_equal(table, integers(basis.frequencies, batch.arrays[0]).sum(axis=0))

    def test_the_first_frequencies_do_not_depend_on_their_number(self, kernel: Kernel) -> None:
        many = basis_of(kernel, features=130)
        for rows in (1, 2, 31, 64, 65, 130):
            np.testing.assert_array_equal(many.prefix(rows).frequencies, many.frequencies[:rows])
        assert many.prefix(130) is many

    def test_answers_are_the_kernel_sums(self, kernel: Kernel) -> None:
        """Seeded: the error of a mean of 20,000 rows, each of deviation below √(K/2) ≤ 0.71."""
        records, queries = records_of(kernel, 200), records_of(kernel, 9)
        f = released(hs.fourier_features(kernel, features=20_000, seed=5).add(records), epsilon=1e9)
        assert f.rows == 20_000
        np.testing.assert_allclose(
            f(queries) * f.count / 200, kernel.exact_sum(records, queries) / 200, atol=0.02
        )

    def test_gain_is_the_sum_of_squares_of_the_readers(self, kernel: Kernel) -> None:
        basis = basis_of(kernel, features=12)
        batch = basis.prepare_queries(records_of(kernel, 4))
        gain = np.zeros(4)
        for cell in range(24):
            unit = np.zeros(24, np.int64)
            unit[cell] = 10**6
            gain += (basis._reading(kernel).evaluate(unit.reshape(12, 2), batch, threads=1) / 10**6) ** 2
        np.testing.assert_allclose(basis._reading(kernel).noise_gain(batch), gain, rtol=1e-4)

    def test_spread_reads_the_same_sums(self, kernel: Kernel) -> None:
        basis = basis_of(kernel)
        table = RNG.integers(-(10**6), 10**6, basis.shape)
        batch = basis.prepare_queries(records_of(kernel, 7))
        readings = basis._reading(kernel).spread(table, batch, threads=1)
        np.testing.assert_allclose(
            readings.mean, basis._reading(kernel).evaluate(table, batch, threads=1), atol=0.05
        )
        assert (readings.variance > 0).all()
        assert (basis._reading(kernel).method_variance(table, batch, 1.0, 0.0) > readings.variance / 2).all()

    def test_errors_come_from_the_first_blocks_where_there_are_many(self, kernel: Kernel) -> None:
        """Seeded; the variances of 512 blocks and of all of them differ by 8 % at one standard deviation."""
        rows = 2 * MOST_BLOCKS * (kernel.dim or 1)
        reading = basis_of(kernel, features=rows, sobol=False)._reading(kernel)
        assert isinstance(reading, FeatureReading)
        table = np.random.default_rng(4).integers(-(10**6), 10**6, reading.basis.shape)
        batch = reading.basis.prepare_queries(records_of(kernel, 7))
        found = reading.spread(table, batch, threads=1)
        said, block = reading.rows(table, batch)
        means = said.reshape(len(said), -1, block).mean(axis=2)
        assert found.blocks == MOST_BLOCKS
        np.testing.assert_allclose(
            found.variance, means[:, :MOST_BLOCKS].var(axis=1, ddof=1) / means.shape[1], rtol=1e-4
        )
        np.testing.assert_allclose(found.variance, means.var(axis=1, ddof=1) / means.shape[1], rtol=0.4)

    def test_it_is_read_back_from_json(self, kernel: Kernel) -> None:
        basis = basis_of(kernel, bounds=(-4, 4))
        again = basis_from_json(basis_as_json(basis))
        assert again == basis
        assert again.fingerprint == basis.fingerprint

    def test_its_rows_are_samples(self, kernel: Kernel) -> None:
        basis = basis_of(kernel)
        reading = basis.reading(kernel)
        assert isinstance(reading, LinearReading)
        assert isinstance(reading, SampledReading)
        assert not isinstance(reading, RowReading)
        assert reading.total(np.zeros(basis.shape, np.int64)) is None
        assert basis.reading() == reading


def test_sensitivity_is_that_of_the_proof() -> None:
    basis = basis_of(KERNELS[0], features=100)
    assert basis.sensitivity(Relation.ADD_REMOVE) == Sensitivity(144_800, 100 * 2**20, 1024)
    assert basis.sensitivity(Relation.REPLACE) == Sensitivity(289_600, 400 * 2**20, 2048)


def test_orthogonal_frequencies_are_so_in_blocks() -> None:
    kernel = hs.GaussianKernel(6, 1.0)
    turned, plain = basis_of(kernel, 20, sobol=False), basis_of(kernel, 20, orthogonal=False)
    products = turned.frequencies[:6].astype(np.float64) @ turned.frequencies[:6].T.astype(np.float64)
    np.testing.assert_allclose(products - np.diag(np.diag(products)), 0.0, atol=1e-7)
    np.testing.assert_allclose(
        np.linalg.norm(turned.frequencies, axis=1), np.linalg.norm(plain.frequencies, axis=1), rtol=1e-5
    )
    np.testing.assert_array_equal(turned.frequencies[::6], plain.frequencies[::6])
    assert turned.fingerprint != plain.fingerprint


@pytest.mark.parametrize("kernel", [hs.GaussianKernel(1, 1.0), hs.LaplacianKernel(4, 1.0)], ids=repr)
def test_where_nothing_is_orthogonal_the_basis_says_so(kernel: Kernel) -> None:
    assert not basis_of(kernel, orthogonal=True, sobol=False).orthogonal
    assert basis_of(kernel, orthogonal=True, sobol=False) == basis_of(kernel, orthogonal=False)


def test_frequencies_are_evenly_spread_where_there_are_enough() -> None:
    assert [basis_of(hs.GaussianKernel(4, 1.0), features).sobol for features in (1, 4000)] == [True, True]
    assert [basis_of(hs.GaussianKernel(8, 1.0), features).sobol for features in (255, 256)] == [False, True]
    assert [basis_of(hs.MaternKernel(8, 1.0, 0.5), features).sobol for features in (256, 1024)] == [
        False,
        True,
    ]
    assert [basis_of(hs.GaussianKernel(32, 1.0), features).sobol for features in (4095, 4096)] == [
        False,
        True,
    ]
    assert not basis_of(hs.GaussianKernel(33, 1.0), 1 << 14).sobol
    assert not basis_of(hs.GaussianKernel(4, 1.0), orthogonal=False).sobol
    many = basis_of(hs.GaussianKernel(9, 1.0), 4096)
    assert many.prefix(100).sobol
    assert not many.orthogonal
    with pytest.raises(UsageError, match="sobol is for kernels of at most 32 coordinates"):
        basis_of(hs.GaussianKernel(33, 1.0), sobol=True)


@pytest.mark.parametrize(
    "kernel",
    [
        *KERNELS,
        hs.kernels.scaled_by(hs.GaussianKernel(2, 1.0), [1.0, 0.5]),
        0.4 * hs.GaussianKernel(2, 1.0) + 0.6 * hs.LaplacianKernel(2, 1.0),
        hs.kernels.on_columns(hs.LaplacianKernel(1, 1.0), 1, of=2)
        * hs.kernels.on_columns(hs.MaternKernel(2, 1.0, 0.5), [0, 1], of=2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("groups", [1, 4])
def test_even_frequencies_err_less_and_say_no_less(kernel: Kernel, groups: int) -> None:
    """Seeded. Random frequencies have the typical variance, more or less."""
    basis = basis_of(kernel, features=4096, groups=groups)
    assert basis.sobol
    records, queries = records_of(kernel, 2000), basis.prepare_queries(records_of(kernel, 50))
    table = np.zeros(basis.shape, np.int64)
    basis.accumulate(table, basis.prepare(records), step=1, threads=2)
    exact = kernel.exact_sum(records, queries.arrays[0])
    found = basis._reading(kernel).spread(table, queries, threads=1)
    assert found.blocks == 16
    error = np.sqrt(np.square(found.mean - exact).mean()) / len(records)
    assert error < 0.5 * math.sqrt(0.037 / 4096)
    # Blocks are said to be independent, though their errors partly cancel.
    assert error < np.sqrt(found.variance.mean()) / len(records)


def test_a_file_without_the_field_has_random_frequencies() -> None:
    basis = basis_of(KERNELS[0], sobol=False)
    data = basis_as_json(basis)
    assert "sobol" not in data["parameters"]
    assert basis_from_json(data) == basis
    data["parameters"]["sobol"] = False
    with pytest.raises(ValueError, match="one description"):
        basis_from_json(data)


@pytest.mark.filterwarnings("ignore:most records:hushsum.errors.SuspiciousParameter")
def test_bounds_clip_and_centre() -> None:
    kernel = hs.GaussianKernel(1, 0.5)
    tally = hs.fourier_features(kernel, features=4000, bounds=(1e9 - 4, 1e9 + 4))
    f = released(tally.add(np.full((1000, 1), 1e9 + 99), allow_clipping=True), epsilon=1e6)
    near, far = f([[1e9 + 4.0], [1e9 + 99.0]])
    assert near == pytest.approx(1.0, abs=0.01)
    assert abs(far) < 0.1


def test_a_release_is_saved_and_read() -> None:
    kernel = hs.GaussianKernel(2, 1.0)
    tally = hs.fourier_features(kernel, features=50, columns=["a", "b"]).add(RNG.normal(size=(99, 2)))
    f = released(tally, epsilon=1.0, delta=1e-6)
    stream = io.BytesIO()
    f.save(stream)
    stream.seek(0)
    again = hs.load(stream)
    queries = RNG.normal(size=(5, 2))
    np.testing.assert_array_equal(again(queries), f(queries))
    np.testing.assert_array_equal(again.query(queries).stderr, f.query(queries).stderr)
    assert f.columns == ("a", "b")


def test_a_tally_is_saved_merged_and_reduced(tmp_path: Path) -> None:
    kernel = hs.GaussianKernel(2, 1.0)
    records = RNG.normal(size=(60, 2))
    hs.fourier_features(kernel, features=40).add(records[:30]).save(tmp_path / "half.tally")
    both = hs.load_tally(tmp_path / "half.tally").merge(hs.fourier_features(kernel, features=40).add(records))
    both.remove(records[:30])
    whole = hs.fourier_features(kernel, features=40).add(records)
    np.testing.assert_array_equal(exact_table(both), exact_table(whole))
    with pytest.raises(IncompatibleTallies):
        whole.merge(hs.fourier_features(kernel, features=40, seed=1))


def test_rows_are_a_capacity_under_pure_epsilon_only() -> None:
    tally = hs.fourier_features(hs.GaussianKernel(2, 1.0), features=400).add(RNG.normal(size=(1000, 2)))
    few = released(tally, epsilon=1.0)
    assert few.rows < 200
    assert released(tally, epsilon=1.0, delta=1e-6).rows == 400
    assert released(tally, epsilon=1.0, rows=7).rows == 7
    assert released(tally, epsilon=0.5, relation="replace").rows < few.rows


def test_few_rows_have_the_bound_as_their_error() -> None:
    tally = hs.fourier_features(hs.GaussianKernel(2, 1.0), features=400).add(RNG.normal(size=(1000, 2)))
    few = released(tally, epsilon=1.0, rows=4).query([[0.0, 0.0]])
    assert few.stderr[0] == few.bound[0]
    more = released(tally, epsilon=1.0, rows=40).query([[0.0, 0.0]])
    assert 0 < more.stderr[0] < more.bound[0]


Make = Callable[[], object]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hs.fourier_features(hs.EuclideanKernel(2, 1.0)), "known spectral measure"),
        (lambda: hs.fourier_features(hs.JaccardKernel()), "known spectral measure"),
        (lambda: hs.fourier_features(KERNELS[0], features=0), "features must be"),
        (lambda: hs.fourier_features(KERNELS[0], seed=True), "seed must be"),
        (lambda: hs.fourier_features(KERNELS[0], columns=["a", "a", "b"]), "name each column once"),
        (lambda: basis_of(KERNELS[0]).reading(hs.GaussianKernel(3, 0.9)), "table was counted for"),
        (lambda: FourierFeatures(hs.GaussianKernel(1 << 10, 1.0), MAX_NUMBERS // 1000, 0), "fewer features"),
    ],
)
def test_misuse_is_refused_in_one_sentence(make: Make, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make()


@pytest.mark.parametrize(
    "change", [{"length": 512}, {"orthogonal": 1}, {"orthogonal": True}, {"sobol": None}, {"features": 0}]
)
def test_a_file_with_another_basis_is_refused(change: dict[str, Any]) -> None:
    data = basis_as_json(basis_of(KERNELS[0]))
    data["parameters"].update(change)
    with pytest.raises((ValueError, UsageError)):
        basis_from_json(data)
