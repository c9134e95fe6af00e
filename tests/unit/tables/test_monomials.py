"""Sums of monomials: against exact sums, their noise, and that a record counts alone."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.kernels import Batch
from hushsum.privacy import Relation
from hushsum.records import whole_length, whole_vectors
from hushsum.tables import Monomials

RNG = np.random.default_rng(4)
X = RNG.normal(size=(300, 7)) * 0.5
KERNELS = (
    hs.kernels.DotProductKernel(7),
    hs.kernels.PolynomialKernel(7),
    hs.kernels.DotProductKernel(7, 2.0),
    hs.kernels.PolynomialKernel(7, 2.0),
)


def counted(basis: Monomials, rows: Any) -> Any:
    table = basis.new_table()
    basis.accumulate(table, basis.prepare(rows), step=1, threads=1)
    return table


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_noise_answers_are_exact_but_for_rounding(kernel: Any) -> None:
    basis = Monomials(kernel, bits=16 if kernel.inner_degree() == 1 else 12)
    reading: Any = basis.reading()
    answers = reading.evaluate(counted(basis, X), basis.prepare_queries(X[:9]), threads=1)
    np.testing.assert_allclose(answers, kernel.exact_sum(X, X[:9]), atol=0.05)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_record_counts_alone_and_removal_undoes_it(kernel: Any) -> None:
    basis = Monomials(kernel)
    whole = counted(basis, X)
    np.testing.assert_array_equal(sum(counted(basis, X[i : i + 1]) for i in range(len(X))), whole)
    np.testing.assert_array_equal(counted(basis, X[::-1]), whole)
    basis.accumulate(whole, basis.prepare(X), step=-1, threads=1)
    assert not whole.any()


@pytest.mark.parametrize("kernel", KERNELS)
def test_noise_gain_is_the_variance_of_an_answer(kernel: Any) -> None:
    """20,000 draws per cell: a variance is within 10 % but for one run in 10⁹."""
    basis = Monomials(kernel)
    reading: Any = basis.reading()
    queries = basis.prepare_queries(X[:3])
    tables = np.random.default_rng(1).normal(size=(20_000, 1, basis.shape[1]))
    answers = np.array([reading.evaluate(table, queries, threads=1) for table in tables[:4000]])
    np.testing.assert_allclose(answers.var(axis=0), reading.noise_gain(queries), rtol=0.15)


@pytest.mark.parametrize(("dim", "bits"), [(1, 8), (2, 12), (300, 8), (512, 12), (5000, 8), (3, 20)])
def test_no_whole_vector_is_longer_than_stated(dim: int, bits: int) -> None:
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(200, dim)) * 10.0 ** rng.integers(-3, 30, (200, 1))
    rows[0], rows[1] = 3e38, np.eye(dim)[0]
    whole = whole_vectors(rows.astype(np.float32).astype(float), 0.3, bits)
    assert (np.square(whole).sum(axis=1) <= 4**bits).all()
    assert whole_length(dim, bits) > 0


def test_a_released_function_may_be_negative_and_says_so() -> None:
    f: Any = (
        hs.methods.monomials(hs.kernels.DotProductKernel(7)).add(X).release(rho=50.0, insecure_noise_seed=1)
    )
    values = f.sum(np.vstack((X[:1], -X[:1])))
    assert values[0] == pytest.approx(-values[1])
    with pytest.raises(UsageError, match="may be negative"):
        f.sum(X[:1], nonnegative=True)
    answers = f.query(X[:5])
    assert ((answers.lower < answers.value) & (answers.value < answers.upper)).all()
    stream = io.BytesIO()
    f.save(stream)
    stream.seek(0)
    again: Any = hs.load(stream)
    np.testing.assert_array_equal(again.sum(X[:4]), f.sum(X[:4]))
    assert again.kernel == f.kernel


def test_intervals_hold_the_exact_mean() -> None:
    """95 % intervals of 400 answers from 20 releases: fewer than 340 or all would be one run in 10⁶."""
    kernel, queries = hs.kernels.DotProductKernel(7), X[:20]
    truth = kernel.exact_sum(X, queries) / len(X)
    inside = 0
    for seed in range(20):
        f: Any = (
            hs.methods.monomials(kernel).add(X).release(epsilon=2.0, delta=1e-6, insecure_noise_seed=seed)
        )
        answers = f.query(queries)
        inside += int(((answers.lower <= truth) & (truth <= answers.upper)).sum())
    assert 340 <= inside <= 400


def test_merging_needs_one_radius() -> None:
    one, other = (hs.methods.monomials(hs.kernels.DotProductKernel(7, radius)) for radius in (1.0, 2.0))
    with pytest.raises(hs.errors.IncompatibleTallies):
        one.add(X).merge(other.add(X))


def test_persons_and_replacement_have_their_sensitivity() -> None:
    basis = Monomials(hs.kernels.DotProductKernel(4), bits=12)
    single, replaced = (basis.sensitivity(each) for each in (Relation.ADD_REMOVE, Relation.REPLACE))
    assert (single.l2_squared, replaced.l2_squared) == (1 << 24, 4 << 24)
    tally = hs.methods.monomials(hs.kernels.DotProductKernel(7), max_per_unit=2)
    f = tally.add(X, units=[f"person {i // 3}" for i in range(len(X))]).release(rho=1.0)
    assert f.claim.unit == "person"


@pytest.mark.parametrize("bits", [7, 21, 12.0, True, None])
def test_bits_are_checked(bits: Any) -> None:
    with pytest.raises(UsageError, match="bits"):
        Monomials(hs.kernels.DotProductKernel(2), bits)


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(UsageError, match="at most 4096"):
        Monomials(hs.kernels.PolynomialKernel(4097))
    assert Batch((np.zeros((1, 1)),), 1)


def test_the_plan_predicts_the_error_that_is_measured() -> None:
    kernel = hs.kernels.DotProductKernel(7)
    planned = hs.plan(records=len(X), kernel=kernel, epsilon=1.0, delta=1e-6).best
    directions = np.eye(7)
    truth = kernel.exact_sum(X, directions) / len(X)
    off = [
        np.abs(
            hs.methods.monomials(kernel)
            .add(X)
            .release(epsilon=1.0, delta=1e-6, insecure_noise_seed=seed)(directions)
            - truth
        ).mean()
        for seed in range(20)
    ]
    assert planned.error / 1.3 < np.mean(off) < planned.error * 1.3
    assert planned.approximation == 0.0


@pytest.mark.parametrize("kernel", [hs.kernels.DotProductKernel(dim=3), hs.kernels.PolynomialKernel(dim=3)])
def test_standard_errors_contain_the_rounding_of_records(kernel: Any) -> None:
    """With hardly any noise: of different records in the standard error, of equal ones in its bound."""
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(40, 3))
    for records, equal in (
        (rng.normal(size=(50_000, 3)) * 0.4, False),
        ([[0.31, 0.22, -0.4]] * 50_000, True),
    ):
        tally = hs.Tally(Monomials(kernel, bits=8), kernel).add(records)
        answers = tally.release(epsilon=1e4, insecure_noise_seed=1).query(queries, of="sum")
        off = np.abs(answers.value - kernel.exact_sum(records, queries))
        assert off.max() > 0.1
        assert (off <= answers.bound).all()
        assert equal or (off < 4.0 * answers.stderr).all()
