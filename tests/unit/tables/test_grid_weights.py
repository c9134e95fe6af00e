"""Weights on a grid, against the sums they stand for."""

from __future__ import annotations

import io

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import Kernel
from hushsum.privacy import Relation
from hushsum.records import Bounds
from hushsum.releases import CoefficientFunction
from hushsum.tables import WHOLE, GridReading, GridWeights
from hushsum.tables._grid import _norm_bounds, part_table
from hushsum.tally import Tally
from tests.exact_tallies import exact_table
from tests.oracles.grid_weights import grid_weights

RNG = np.random.default_rng(5)


def grid_of(dim: int, *, spacing: float = 0.75, bandwidth: float = 0.4, degree: int | None = None) -> Tally:
    return hs.grid(hs.GaussianKernel(dim, bandwidth), bounds=(-1, 1), spacing=spacing, degree=degree)


def unnoisy(tally: Tally, epsilon: float = 1e6) -> CoefficientFunction:
    """So little noise that what is left is the grid's own error."""
    function = tally.release(epsilon=epsilon, insecure_noise_seed=1)
    assert isinstance(function, CoefficientFunction)
    return function


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
@pytest.mark.parametrize("dim", [1, 2, 3, 4])
class TestWeights:
    def test_every_record_adds_exactly_one_whole(self, dim: int, degree: int) -> None:
        basis = grid_of(dim, degree=degree).basis
        assert isinstance(basis, GridWeights)
        records = np.concatenate(
            [RNG.normal(size=(50, dim)), np.full((1, dim), 1.0), np.full((1, dim), -9.0)]
        )
        nodes, weights = grid_weights(basis, basis.prepare(records).arrays[0])
        assert (weights.sum(axis=1) == WHOLE).all()
        assert weights.min() >= 0
        assert nodes.min() >= 0
        assert nodes.max() < np.prod(basis.shape)
        assert all(len(set(row)) == (degree + 1) ** dim for row in nodes.tolist())

    def test_no_record_is_longer_than_declared(self, dim: int, degree: int) -> None:
        """Records anywhere, and at middles and ends of cells, where weights are longest: within 2 % of the
        bound.
        """
        basis = grid_of(dim, degree=degree).basis
        assert isinstance(basis, GridWeights)
        ends = -1.0 + np.arange(2 * basis.cells[0] + 1)[:, None] * 0.5 * basis.spacing[0]
        records = np.concatenate([RNG.uniform(-1, 1, (500, dim)), np.tile(ends, (1, dim))])
        _, weights = grid_weights(basis, basis.prepare(records).arrays[0])
        declared = basis.sensitivity(Relation.ADD_REMOVE)
        longest = int((weights.astype(object) ** 2).sum(axis=1).max())
        assert 0.98 * declared.l2_squared < longest <= declared.l2_squared
        assert declared.l1 == WHOLE
        assert weights.max() <= declared.largest
        assert basis.sensitivity(Relation.REPLACE).l2_squared == 2 * declared.l2_squared


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
class TestRecords:
    def test_the_sums_come_back(self, dim: int) -> None:
        tally = grid_of(dim, spacing=0.5)
        records = RNG.uniform(-0.9, 0.9, (4000, dim))
        queries = RNG.uniform(-1.0, 1.0, (40, dim))
        exact = tally.reading.kernel.exact_sum(records, queries)
        answers = unnoisy(tally.add(records)).sum(queries)
        assert np.abs(answers - exact).max() < 0.003 * exact.max()

    @pytest.mark.filterwarnings("ignore:most records:hushsum.errors.SuspiciousParameter")
    def test_pieces_in_any_order_are_the_same_tally(self, dim: int) -> None:
        records = RNG.normal(size=(300, dim))
        whole, pieces = grid_of(dim).add(records, allow_clipping=True), grid_of(dim)
        for part in np.split(records[::-1], [7, 100, 101]):
            pieces.add(part, allow_clipping=True)
        assert (exact_table(whole) == exact_table(pieces)).all()


@pytest.mark.parametrize("kernel", [hs.EuclideanKernel(2, 0.8), hs.ManhattanKernel(2, 1.0)], ids=repr)
def test_other_kernels_are_read_from_the_same_release(kernel: Kernel) -> None:
    records = RNG.uniform(-0.9, 0.9, (3000, 2))
    queries = RNG.uniform(-1.0, 1.0, (20, 2))
    f = unnoisy(hs.grid(hs.GaussianKernel(2, 0.2), bounds=(-1, 1)).add(records)).with_kernel(kernel)
    exact = kernel.exact_sum(records, queries)
    assert np.abs(f.sum(queries) - exact).max() < 0.01 * exact.max()


def test_wide_kernels_are_read_through_matrix_products() -> None:
    """A window of more nodes than the limit takes the other path; both give the same sums."""
    records = RNG.uniform(-1, 1, (2000, 3))
    queries = RNG.uniform(-1, 1, (10, 3))
    f = unnoisy(hs.grid(hs.GaussianKernel(3, 0.9), bounds=(-1, 1), cells=40).add(records))
    exact = f.kernel.exact_sum(records, queries)
    assert np.abs(f.sum(queries) - exact).max() < 1e-3 * exact.max()


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize(
    "promise", [{"epsilon": 0.5}, {"epsilon": 0.5, "delta": 1e-6}, {"rho": 0.02}], ids=str
)
def test_the_noise_is_as_stated(dim: int, promise: dict[str, float]) -> None:
    """The variance of 400 releases at 6 queries lies within its estimate: 5 sigma of a chi-square with 400
    degrees are 0.65 to 1.36.
    """
    tally = grid_of(dim).add(RNG.uniform(-1, 1, (500, dim)))
    queries = RNG.uniform(-1, 1, (6, dim))
    exact = unnoisy(tally).sum(queries)
    sums, stated = [], []
    for seed in range(400):
        f = tally.release(**promise, insecure_noise_seed=seed)  # type: ignore[arg-type]
        assert isinstance(f, CoefficientFunction)
        sums.append(f.sum(queries))
        stated.append(f.cell_variance * f.reading.noise_gain(f.basis.prepare_queries(queries)))
    ratio = np.mean((np.array(sums) - exact) ** 2, axis=0) / np.mean(stated, axis=0)
    assert ((ratio > 0.65) & (ratio < 1.36)).all(), ratio


@pytest.mark.parametrize("dim", [1, 2])
def test_gains_of_kernels_without_factors_agree_with_brute_force(dim: int) -> None:
    basis = GridWeights((7,) * dim, Bounds((-1.0,) * dim, (1.0,) * dim), (2,) * dim)
    reading = GridReading(basis, hs.EuclideanKernel(dim, 0.8))
    batch = basis.prepare_queries(RNG.uniform(-1, 1, (3, dim)))
    unit = [
        reading.evaluate(cell.reshape(basis.shape), batch, threads=1)
        for cell in np.eye(9**dim, dtype=np.int64)
    ]
    assert np.allclose((np.array(unit) ** 2).sum(axis=0), reading.noise_gain(batch))


def test_files_and_pickles_keep_the_answers() -> None:
    f = grid_of(2).add(RNG.uniform(-1, 1, (100, 2))).release(epsilon=1.0)
    buffer = io.BytesIO()
    f.save(buffer)
    buffer.seek(0)
    queries = RNG.uniform(-1, 1, (5, 2))
    again = hs.load(buffer)
    assert isinstance(again, CoefficientFunction)
    assert (again(queries) == f(queries)).all()
    assert again.claim == f.claim


def test_the_fingerprint_knows_no_kernel_but_the_grid() -> None:
    fine = hs.grid(hs.GaussianKernel(1, 0.4), bounds=(-1, 1), cells=50)
    wide = hs.grid(hs.GaussianKernel(1, 0.8), bounds=(-1, 1), cells=50)
    other = hs.grid(hs.GaussianKernel(1, 0.8), bounds=(-1, 1), cells=51)
    assert fine.fingerprint == wide.fingerprint != other.fingerprint
    rougher = hs.grid(hs.GaussianKernel(1, 0.4), bounds=(-1, 1), cells=50, degree=3)
    assert rougher.fingerprint != fine.fingerprint


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: hs.grid(hs.GaussianKernel(5, 1.0), bounds=(-1, 1)), "1 to 4 columns"),
        (lambda: hs.grid(hs.HammingKernel(2), bounds=(-1, 1)), "sum of products over columns"),
        (lambda: hs.grid(hs.GaussianKernel(1, 1.0), bounds=(-1, 1), spacing=0.0), "spacing must be above 0"),
        (lambda: hs.grid(hs.GaussianKernel(4, 1e-3), bounds=(-1, 1)), "nodes, got more"),
        (lambda: hs.grid(hs.GaussianKernel(1, 0.1), bounds=(-1, 1), cells=4), "at least 0.8"),
        (lambda: hs.grid(hs.GaussianKernel(2, 0.5), bounds=(-1, 1), cells=[9]), "one for each column"),
        (lambda: grid_of(1, degree=1), "degree must be 2 to 5"),
        (lambda: hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 1), steps=0.3), "steps must divide"),
        (lambda: hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 1), steps=0.0), "numbers above 0"),
        (lambda: hs.grid(hs.GaussianKernel(2, 1.0), bounds=(0, 1), steps=[1.0]), "one for each column"),
        (lambda: hs.grid(hs.GaussianKernel(1, 1.0), bounds=(0, 1), steps={"age": 1.0}), "must name columns"),
        (lambda: grid_of(1).add([[0.0]]).release(epsilon=1.0, rows=2), "rows must be left out"),
    ],
)
def test_refusals(make: object, rule: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=rule):
        make()


class TestSteps:
    """Columns whose values are multiples of a step."""

    def test_values_on_steps_are_read_exactly(self) -> None:
        ages = RNG.integers(17, 91, 3000).astype(np.float64)
        kernel = hs.GaussianKernel(1, 2.0)
        f = unnoisy(hs.grid(kernel, bounds=(17, 90), steps=1.0).add(ages))
        queries = np.linspace(10.0, 95.0, 40)[:, None]
        np.testing.assert_allclose(f.sum(queries), kernel.exact_sum(ages, queries), rtol=1e-5, atol=1e-3)
        batch = f.basis.prepare_queries(queries)
        assert not f.reading.bias_bound(f.table, batch, f.count, f.cell_variance).any()

    def test_other_columns_keep_their_splines(self) -> None:
        records = np.stack([RNG.integers(0, 20, 3000), RNG.uniform(0, 1, 3000)], axis=1)
        kernel = hs.LaplacianKernel(2, 1.0)
        tally = hs.grid(
            kernel, bounds=[(0, 20), (0, 1)], columns=["age", "x"], steps={"age": 1.0}, spacing=0.05
        )
        assert isinstance(tally.basis, GridWeights)
        assert tally.basis.degrees == (0, 2)
        queries = records[:30]
        exact = kernel.exact_sum(records, queries)
        np.testing.assert_allclose(unnoisy(tally.add(records)).sum(queries), exact, rtol=0.01)

    def test_values_between_steps_go_to_the_nearest(self) -> None:
        kernel = hs.GaussianKernel(1, 1.0)
        tally = hs.grid(kernel, bounds=(0, 10), steps=1.0)
        table = exact_table(tally.add([[2.4], [2.6], [-7.0], [10.0]])).reshape(-1)
        assert table.tolist() == [WHOLE if node in (0, 2, 3, 10) else 0 for node in range(11)]

    def test_a_record_moves_one_node(self) -> None:
        assert _norm_bounds((0,)) == (WHOLE**2, WHOLE)


@pytest.mark.parametrize("degree", [2, 3, 5])
def test_the_rows_of_the_table_of_parts_are_public_and_whole(degree: int) -> None:
    table = part_table(degree, WHOLE, 1 << 16)
    assert (table.sum(axis=1) == WHOLE).all()
    assert (table >= 0).all()
    place = (np.arange(1 << 16) + 0.5) / (1 << 16)
    mean = table @ (np.arange(degree + 1) - (degree - 1) / 2) / WHOLE
    assert np.abs(mean - place).max() < 8 / WHOLE
