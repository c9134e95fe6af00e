"""Rows divided among the components of a linear combination, and several increments of one record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import UsageError
from hushsum.privacy import Relation
from hushsum.releases import CoefficientFunction, NoisyTable
from hushsum.tables import DividedRows, IncrementRows, SampledReading
from tests.exact_tallies import exact_table

RNG = np.random.default_rng(2)
X = RNG.normal(size=(60, 2))
Q = X[:5]
NARROW, WIDE = hs.EuclideanKernel(dim=2, bandwidth=1.0), hs.EuclideanKernel(dim=2, bandwidth=4.0, power=2)
KERNEL = 1.5 * NARROW - 0.5 * WIDE
MIXED = 0.75 * hs.kernels.on_columns(NARROW, [0, 1], of=3) * hs.kernels.on_columns(
    hs.HammingKernel(1), 2, of=3
) + 0.25 * (hs.kernels.on_columns(hs.HammingKernel(1), 2, of=3))
COUNTED = np.column_stack((X, RNG.integers(0, 2, 60)))


def counted(basis: Any, records: Any) -> Any:
    table = basis.new_table()
    basis.accumulate(table, basis.prepare(records), step=1, threads=1)
    return table


def test_rows_are_dealt_out_by_weight_and_the_first_do_not_depend_on_how_many_there_are() -> None:
    basis = DividedRows(KERNEL, 128, 50, seed=3)
    assert basis.row_shares().tolist() == [0.75, 0.25]
    many = basis.cells(basis.prepare(X))
    for rows in (4, 17, 100):
        few = basis.prefix(rows)
        np.testing.assert_array_equal(few.cells(few.prepare(X)), many[:, :rows])
    with pytest.raises(UsageError, match="at least 4"):
        basis.prefix(3)
    assert basis.rows_for(1, 0.01, 1) == 4


@pytest.mark.parametrize("number", [1, 3, 60])
def test_counts_are_the_histogram_of_the_cells(number: int) -> None:
    """Few records are counted cell by cell, many by the native loop."""
    for kernel, records in ((KERNEL, X), (MIXED, COUNTED)):
        basis = DividedRows(kernel, 30, 40, seed=1)
        cells = basis.cells(basis.prepare(records[:number]))
        expected = [np.bincount(row, minlength=40) for row in cells.T]
        np.testing.assert_array_equal(counted(basis, records[:number]), expected)


def test_components_of_one_kind_have_hash_functions_of_their_own() -> None:
    same = DividedRows(NARROW + 2.0 * hs.EuclideanKernel(dim=2, bandwidth=1.00001), 60, 1000, seed=1)
    first, second = (part.hasher.cells(X.astype(np.float32), 20) for part in same.parts)
    assert (first == second).mean() < 0.1


def test_noise_gain_is_that_of_the_coefficients() -> None:
    """Answers are linear in the table: their coefficients are the answers of tables with a single 1."""
    basis = DividedRows(MIXED - 0.5 * hs.AngularKernel(3, bits=2), 8, 7, seed=1)
    reading = basis.reading()
    assert isinstance(reading, SampledReading)
    batch = basis.prepare_queries(COUNTED[:4])
    units = np.eye(56, dtype=np.int64).reshape(56, 8, 7)
    weights = np.array([reading.evaluate(unit, batch, threads=1) for unit in units])
    np.testing.assert_allclose(reading.noise_gain(batch), (weights**2).sum(axis=0))
    np.testing.assert_allclose(reading.total_covariance(batch), weights.sum(axis=0) / 8)
    table = RNG.integers(0, 50, (8, 7))
    answers = reading.evaluate(table, batch, threads=1)
    np.testing.assert_allclose(answers, table.reshape(-1) @ weights)
    rows, block = reading.rows(table, batch)
    np.testing.assert_allclose(rows.mean(axis=1), answers)
    assert block == 1
    spread = (rows - rows.mean(axis=1, keepdims=True)) / rows.shape[1]
    variance = reading.spread(table, batch, threads=1).variance
    # n/(n − 1) of each component: 2 for two rows, and 4/3 for four.
    assert np.all((spread**2).sum(axis=1) <= variance)
    assert np.all(variance <= 2.0 * (spread**2).sum(axis=1) + 1e-9)


@pytest.mark.parametrize(
    ("kernel", "records"), [(KERNEL, X), (MIXED, COUNTED)], ids=["difference", "mixture"]
)
def test_sums_are_unbiased_and_their_errors_are_as_reported(kernel: Any, records: Any) -> None:
    """Over 300 seeds of hash functions and noise, at 5 queries.

    Bias: 6.5 standard errors of a t-test with 299 degrees of freedom, false alarms 2e-9. Spread: both the
    mean square error and the mean of the squared standard errors have a relative deviation of about √(2/300)
    = 0.08; a factor of 1.6 either way is beyond 5.7 of them.
    """
    exact = kernel.exact_sum(records, records[:5])
    errors, reported = np.empty((300, 5)), np.empty((300, 5))
    for seed in range(300):
        tally = hs.race(kernel, rows=40, width=16, seed=seed).add(records)
        f = tally.release(rho=0.5, insecure_noise_seed=seed)
        assert isinstance(f, CoefficientFunction)
        answers = f.query(records[:5], of="sum")
        errors[seed], reported[seed] = answers.value - exact, answers.stderr**2
    bias, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1)
    assert np.all(np.abs(bias) <= 6.5 * spread / math.sqrt(300))
    square = (errors**2).mean(axis=0)
    assert np.all(square <= 1.6 * reported.mean(axis=0))
    assert np.all(reported.mean(axis=0) <= 1.6 * square)
    assert np.all(answers.bound >= answers.stderr)


def test_a_release_is_merged_saved_and_read_again(tmp_path: Any) -> None:
    whole = hs.race(MIXED, rows=60, columns=["x", "y", "town"]).add(COUNTED)
    parts = [hs.race(MIXED, rows=60, columns=["x", "y", "town"]).add(part) for part in np.split(COUNTED, 2)]
    merged = parts[0].merge(parts[1])
    np.testing.assert_array_equal(exact_table(merged), exact_table(whole))
    merged.save(tmp_path / "t.tally")
    assert hs.load_tally(tmp_path / "t.tally").fingerprint == whole.fingerprint
    f = merged.release(epsilon=100.0, rows=60)
    f.save(tmp_path / "f.hush")
    again: Any = hs.load(tmp_path / "f.hush")
    assert again.kernel == MIXED
    np.testing.assert_array_equal(again(COUNTED), f(COUNTED))
    assert hs.audit(f, seed=1).holds
    wide = f.query(COUNTED[:9], simultaneous=True)
    assert np.all(wide.upper >= f.query(COUNTED[:9]).upper)


def test_negative_answers_are_no_sign_of_noise() -> None:
    f: Any = hs.race(NARROW - 2.0 * WIDE, rows=60).add(X).release(epsilon=1.0)
    with pytest.raises(UsageError, match="nonnegative"):
        f(Q, nonnegative=True)


def test_plans_know_the_weights() -> None:
    """The noise of a combination is that of a kernel times Σ|weights|, where rows follow the weights."""
    plain, double = (
        hs.plan(
            records=10_000, kernel=kernel, rows=1000, width=1000, epsilon=1.0, delta=1e-6, count_share=0.05
        ).best
        for kernel in (NARROW, KERNEL)
    )
    assert double.noise == pytest.approx(2.0 * plain.noise, rel=0.05)
    estimated = hs.plan(records=10_000, kernel=KERNEL, epsilon=1.0, public=X)
    assert estimated.basis == "public data"


@pytest.mark.parametrize("weights", [(1, 1), (1, -1), (3, -1), (0, 2)])
def test_several_increments_estimate_the_weighted_sum(weights: tuple[int, int]) -> None:
    kernel = hs.kernels.AsymmetricAngularKernel(dim=2, bits=3, radius=4.0)
    basis = IncrementRows(kernel, 3000, 8, 5, weights)
    table = counted(basis, X)
    found = basis.reading().evaluate(table, basis.prepare_queries(Q), threads=1)  # type: ignore[attr-defined]
    expected = weights[0] * kernel.exact_sum(X, Q) + weights[1] * kernel.exact_sum(-X, Q)
    # Standard errors are below 60·4/√3000 = 4.4.
    np.testing.assert_allclose(found, expected, atol=9.0)
    positive, negative = sum(w for w in weights if w > 0), -sum(w for w in weights if w < 0)
    added = basis.sensitivity(Relation.ADD_REMOVE)
    assert (added.l1, added.l2_squared) == (3000 * (positive + negative), 3000 * (positive**2 + negative**2))
    f = hs.Tally(basis).add(X).release(rho=0.5, insecure_noise_seed=1)
    answers = f.query(Q, of="sum")
    assert np.all(np.abs(answers.value - expected) < 6.0 * answers.stderr)


@pytest.mark.parametrize("weights", [(0, 0), (1,), (1.5, 1), (5000, 1)])
def test_weights_must_be_two_integers(weights: Any) -> None:
    with pytest.raises(UsageError, match="two integers"):
        IncrementRows(hs.kernels.AsymmetricAngularKernel(dim=2), 10, 8, 5, weights)


def test_two_queries_have_less_noise_than_two_increments() -> None:
    """f(q) + f(−q) from one increment, against f(q) from two: the sum of two answers with noise of Δ2 = √R
    each, against one with 2·√R.
    """
    kernel = hs.kernels.AsymmetricAngularKernel(dim=2, bits=3)
    plain = hs.race(kernel, rows=100, width=8).add(X).release(rho=0.5)
    both = hs.Tally(IncrementRows(kernel, 100, 8, 0)).add(X).release(rho=0.5)
    assert isinstance(plain, NoisyTable)
    assert isinstance(both, NoisyTable)
    ratio = both.noise.variance / (2.0 * plain.noise.variance)
    assert ratio == pytest.approx(2.0, rel=0.05)
