"""Released tables: frozen, and reading them is plain arithmetic that a slow formula repeats."""

from __future__ import annotations

import dataclasses
import io
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import DataRefused, FileRefused, UsageError
from hushsum.files import FileKind, write_container
from hushsum.privacy.noise import gaussian_variance
from hushsum.releases import TableFunction
from hushsum.tables import HashRows, groups_for

QUERIES = np.array([[0.0, 0.0], [1.5, -0.5], [40.0, 40.0]])
Floats = NDArray[np.float64]


def released(rows: int = 60, width: int = 30, **options: Any) -> TableFunction:
    points = np.random.default_rng(0).normal(size=(2000, 2))
    tally = hs.race(hs.EuclideanKernel(2, 1.0), rows=rows, width=width, seed=2).add(points)
    f = tally.release(**{"rho": 0.1, "insecure_noise_seed": 3, **options})
    assert isinstance(f, TableFunction)
    return f


@pytest.fixture(scope="module")
def f() -> TableFunction:
    return released()


def read_cells(f: TableFunction) -> Floats:
    """The cell of each query in each row, one at a time."""
    cells = f.reading.basis.cells(f.basis.prepare_queries(QUERIES))
    return np.array([[float(f.table[r, cells[q, r]]) for r in range(f.rows)] for q in range(len(QUERIES))])


def test_it_is_frozen(f: TableFunction) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        f.noisy_count = 5  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        f.claim.secure = True  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        f.table[0, 0] = 0
    with pytest.raises(ValueError, match="read-only"):
        f.table += 1  # type: ignore[misc]
    stream = io.BytesIO()
    f.save(stream)
    stream.seek(0)
    back = hs.load(stream)
    assert isinstance(back, TableFunction)
    with pytest.raises(ValueError, match="read-only"):
        back.table[0, 0] = 0


def test_it_fulfils_the_public_protocol(f: TableFunction) -> None:
    assert isinstance(f, hs.ReleasedFunction)
    assert not isinstance(hs.race(hs.JaccardKernel(), rows=1), hs.ReleasedFunction)


def test_repr_shows_kernel_size_and_claim(f: TableFunction) -> None:
    assert repr(f).startswith("ReleasedFunction(EuclideanKernel(")
    assert "rows=60, width=30" in repr(f)
    assert repr(f.claim) in repr(f)


def test_the_count_combines_both_estimates_by_inverse_variance(f: TableFunction) -> None:
    paid = gaussian_variance(f.count_noise.parameter)
    table = 30 * gaussian_variance(f.noise.parameter) / 60
    assert 0.01 < paid / table < 100, "one of the two estimates has no weight: the test could not fail"
    total = float(f.table.sum(dtype=np.int64)) / 60
    expected = (f.noisy_count / paid + total / table) / (1 / paid + 1 / table)
    assert f.count == pytest.approx(expected)
    assert f.count_stderr == pytest.approx(1 / math.sqrt(1 / paid + 1 / table))


def test_the_table_count_is_algorithm_2(f: TableFunction) -> None:
    assert f.table_count == pytest.approx(f.table.astype(np.float64).sum() / f.rows)
    sums = read_cells(f).mean(axis=1)
    number = f.table_count
    unfolded = (sums - number / 30) / (1 - 1 / 30)
    np.testing.assert_allclose(f.sum(QUERIES, count="table"), unfolded)
    np.testing.assert_allclose(f(QUERIES, count="table"), unfolded / number)


def test_the_mean_over_rows_unfolded(f: TableFunction) -> None:
    expected = (read_cells(f).mean(axis=1) - f.count / 30) / (1 - 1 / 30)
    np.testing.assert_allclose(f.sum(QUERIES), expected)
    np.testing.assert_allclose(f(QUERIES), expected / f.count)
    np.testing.assert_allclose(f.query(QUERIES).value, f(QUERIES))
    np.testing.assert_allclose(f.query(QUERIES, of="sum").value, f.sum(QUERIES))


def test_nothing_is_unfolded_where_nothing_was_folded() -> None:
    tally = hs.race(hs.AngularKernel(2, bits=2), rows=40, seed=1).add([[1.0, 0.0], [0.0, 1.0]] * 50)
    f = tally.release(rho=1.0, insecure_noise_seed=1)
    assert isinstance(f, TableFunction)
    assert f.table.shape == (40, 4)
    np.testing.assert_allclose(f.sum(QUERIES), read_cells(f).mean(axis=1))


@pytest.mark.parametrize("rows", [10, 24, 25, 60, 100])
def test_median_of_means_is_numpys(rows: int) -> None:
    f = released(rows=rows)
    groups = min(groups_for(0.025), rows)
    edges = [int(g * rows / groups) for g in range(groups + 1)]
    values = read_cells(f)
    means = np.stack([values[:, a:b].mean(axis=1) for a, b in pairwise(edges)])
    expected = (np.median(means, axis=0) - f.count / 30) / (1 - 1 / 30)
    np.testing.assert_allclose(f.sum(QUERIES, estimator="median-of-means"), expected)
    np.testing.assert_allclose(f(QUERIES, estimator="median-of-means"), expected / f.count)


def test_nonnegative_raises_negative_answers_to_zero() -> None:
    f = released(rho=1e-6, insecure_noise_seed=2)
    plain, raised = f.sum(QUERIES), f.sum(QUERIES, nonnegative=True)
    assert plain.min() < 0
    np.testing.assert_array_equal(raised, np.maximum(plain, 0.0))
    np.testing.assert_array_equal(f(QUERIES, nonnegative=True), np.maximum(f(QUERIES), 0.0))


def test_threads_do_not_change_answers(f: TableFunction) -> None:
    many = np.random.default_rng(1).normal(size=(200, 2))
    np.testing.assert_array_equal(f(many, threads=1), f(many, threads=4))
    np.testing.assert_array_equal(f.query(many, threads=3).stderr, f.query(many).stderr)


def test_a_batch_answers_as_single_queries_do(f: TableFunction) -> None:
    np.testing.assert_array_equal(f(QUERIES), np.concatenate([f([query]) for query in QUERIES.tolist()]))


def test_standard_errors_by_hand(f: TableFunction) -> None:
    values = read_cells(f)
    keep, rate = 1 / (1 - 1 / 30), 1 / 30
    noise = gaussian_variance(f.noise.parameter) / f.rows
    spread = np.maximum(values.var(axis=1, ddof=1) / f.rows, noise)
    count = f.count_stderr**2
    of_sum = np.sqrt(keep**2 * spread + (keep * rate) ** 2 * count)
    np.testing.assert_allclose(f.query(QUERIES, of="sum").stderr, of_sum)
    slope = keep * rate + f.sum(QUERIES) / f.count
    of_mean = np.sqrt(keep**2 * spread + slope**2 * count) / f.count
    np.testing.assert_allclose(f.query(QUERIES).stderr, of_mean)


def test_intervals_are_students(f: TableFunction) -> None:
    from scipy.stats import t

    answers, sums = f.query(QUERIES, level=0.9), f.query(QUERIES, level=0.9, of="sum")
    reach = t.ppf(0.95, f.rows - 1)
    np.testing.assert_allclose(sums.upper - sums.value, reach * sums.stderr)
    np.testing.assert_allclose(sums.value - sums.lower, reach * sums.stderr)
    # Those of a mean are longer towards larger values, since the number of records is uncertain.
    np.testing.assert_allclose(answers.upper - answers.lower, 2 * reach * answers.stderr, rtol=0.05)
    assert answers.level == 0.9
    assert len(answers) == 3
    first = next(iter(answers))
    assert first == {
        name: float(getattr(answers, name)[0]) for name in ("value", "stderr", "lower", "upper", "bound")
    }


def test_too_few_blocks_of_rows_report_the_bound() -> None:
    few = released(rows=7).query(QUERIES)
    np.testing.assert_array_equal(few.stderr, few.bound)
    assert np.all(released(rows=8).query(QUERIES).stderr < released(rows=8).query(QUERIES).bound)
    kernel = hs.EuclideanKernel(2, 1.0, projection="structured")
    assert kernel.independent_rows() == 128
    f = hs.race(kernel, rows=7 * 128, width=30).add(QUERIES).release(rho=1.0, insecure_noise_seed=1)
    np.testing.assert_array_equal(f.query(QUERIES).stderr, f.query(QUERIES).bound)


def test_the_bound_by_hand(f: TableFunction) -> None:
    rate, keep = 1 / 30, 1 / (1 - 1 / 30)

    def largest_variance(failure: float) -> NDArray[np.float64]:
        noise = gaussian_variance(f.noise.parameter) / f.rows
        number = f.count + f.count_stderr / math.sqrt(failure / 3)
        average = np.clip(read_cells(f).mean(axis=1) + math.sqrt(3 * noise / failure), 0, number)
        half = number * math.log(3 / failure) / (2 * f.rows)
        most = np.minimum((math.sqrt(half) + np.sqrt(half + average)) ** 2, number)
        variance: NDArray[np.float64] = number * most / f.rows + noise
        return variance

    largest = largest_variance(0.001)
    slope = keep * rate
    expected = np.sqrt(keep**2 * largest + slope**2 * f.count_stderr**2)
    answers = f.query(QUERIES, of="sum")
    np.testing.assert_allclose(answers.bound, np.maximum(expected, answers.stderr))
    theorem = keep * np.sqrt(32 * math.log(1 / 0.005) * largest_variance(0.005))
    np.testing.assert_allclose(f.error_bound(QUERIES, failure=0.01), theorem)


def test_error_bound_needs_enough_rows() -> None:
    with pytest.raises(UsageError, match="rows must be at least"):
        released(rows=20).error_bound(QUERIES)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f(QUERIES, estimator="mode"), "estimator must be one of mean, median-of-means"),
        (lambda f: f.sum(QUERIES, count="exact"), "count must be 'combined' or 'table'"),
        (lambda f: f.query(QUERIES, of="density"), "of must be 'mean' or 'sum'"),
        (lambda f: f.query(QUERIES, level=1.0), "level must be between 0 and 1"),
        (lambda f: f.query(QUERIES, level=0.0), "level must be between 0 and 1"),
        (lambda f: f.error_bound(QUERIES, failure=2.0), "failure must be between 0 and 1"),
    ],
)
def test_options_are_checked(f: TableFunction, call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(f)


@pytest.mark.parametrize("bad", [[[np.nan, 0.0]], [[1.0, 2.0, 3.0]], [["a", "b"]]], ids=str)
def test_queries_are_checked(f: TableFunction, bad: object) -> None:
    with pytest.raises(DataRefused):
        f(bad)


def test_an_empty_tally_under_replace_answers_zero_over_one() -> None:
    tally = hs.race(hs.EuclideanKernel(2, 1.0), rows=10, width=5)
    f = tally.release(epsilon=1.0, relation="replace", insecure_noise_seed=1)
    assert f.count == 0.0
    np.testing.assert_array_equal(f(QUERIES), f.sum(QUERIES))
    assert np.all(np.isfinite(f.query(QUERIES).stderr))


def test_a_count_below_one_is_taken_as_one() -> None:
    tally = hs.race(hs.EuclideanKernel(2, 1.0), rows=10, width=5)
    counts = [tally.release(epsilon=0.1, insecure_noise_seed=seed).count for seed in range(30)]
    assert min(counts) == 1.0


def test_unknown_kinds_of_functions_are_refused() -> None:
    for header in ({"type": "oracle"}, {}, {"type": ["table"]}):
        stream = io.BytesIO()
        write_container(stream, FileKind.RELEASED, header, [])
        stream.seek(0)
        with pytest.raises(FileRefused):
            hs.load(stream)


def test_basis_prefix_is_the_identity_for_all_rows() -> None:
    basis = HashRows(hs.JaccardKernel(), 5, 8, 0)
    assert basis.prefix(5) is basis
