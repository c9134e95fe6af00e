"""What every hashable kernel owes the sketch. One contract; each registered kernel runs all of it.

Random checks use fixed public seeds, so they give the same result in every run. The stated false-alarm
rates are what the bounds would have under fresh seeds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

import hushsum as hs
from hushsum.kernels import HASHABLE
from hushsum.privacy import Relation
from hushsum.releases import TableFunction
from hushsum.tables import HashRows, RowReading
from hushsum.tally import Tally
from tests.exact_tallies import exact_table
from tests.kernel_cases import CASES, COMPOSED, Case, Records, joined, take

Table = NDArray[np.int64]

STRUCTURED_BIAS = 0.01
"""Structured projections are close to normal, not normal: their collision rates may be off by this much."""


def counted(basis: HashRows, records: Records, threads: int = 1) -> Table:
    table = np.zeros(basis.shape, np.int64)
    basis.accumulate(table, basis.prepare(records), step=1, threads=threads)
    return table


def cells_of(basis: HashRows, records: Records) -> NDArray[np.int32]:
    return basis.cells(basis.prepare(records))


def table_of(tally: Tally) -> Table:
    table: Table = exact_table(tally)
    return table


def folded(basis: HashRows, similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """The chance of sharing a cell: the same hash value, or by folding."""
    return similarity + (1.0 - similarity) * basis.fold_rate


def structured(case: Case) -> bool:
    return getattr(case.kernel, "projection", "dense") == "structured"


def test_every_hashable_kernel_and_both_projections_are_held_to_the_contract() -> None:
    assert {case.kernel.name for case in CASES} == set(HASHABLE.kernels())
    projected = {(case.kernel.name, structured(case)) for case in CASES}
    assert {("euclidean", False), ("euclidean", True), ("angular", False), ("angular", True)} <= projected


@pytest.mark.parametrize("case", [*CASES, *COMPOSED], ids=str)
class TestHashableKernel:
    """The contract."""

    def test_cells_are_in_range_and_use_it(self, case: Case) -> None:
        basis = HashRows(case.kernel, 200, 13, seed=1)
        cells = cells_of(basis, case.records(60))
        assert cells.shape == (60, 200)
        assert cells.min() == 0
        assert cells.max() == basis.width - 1

    def test_equal_records_have_equal_cells(self, case: Case) -> None:
        basis = HashRows(case.kernel, 100, 1000, seed=1)
        records = case.records(5)
        if isinstance(records, list):
            again = [record[::-1] + record[:2] for record in records]
        else:
            again = records.astype(np.float64).tolist()
        np.testing.assert_array_equal(cells_of(basis, records), cells_of(basis, again))

    def test_counts_are_the_histogram_of_the_cells(self, case: Case) -> None:
        basis = HashRows(case.kernel, 40, 11, seed=2)
        records = case.records(150)
        cells = cells_of(basis, records)
        expected = [np.bincount(row, minlength=basis.width) for row in cells.T]
        np.testing.assert_array_equal(counted(basis, records), expected)

    def test_counting_down_undoes_counting_up(self, case: Case) -> None:
        basis = HashRows(case.kernel, 40, 11, seed=2)
        batch = basis.prepare(case.records(50))
        table = np.full(basis.shape, 7, np.int64)
        basis.accumulate(table, batch, step=1, threads=2)
        basis.accumulate(table, batch, step=-1, threads=1)
        assert np.all(table == 7)

    def test_a_record_has_its_cells_in_any_batch_and_position(self, case: Case) -> None:
        basis = HashRows(case.kernel, 70, 500, seed=3)
        records = case.records(41)
        together = cells_of(basis, records)
        alone = np.concatenate([cells_of(basis, take(records, [i])) for i in range(41)])
        np.testing.assert_array_equal(alone, together)
        order = np.random.default_rng(0).permutation(41).tolist()
        np.testing.assert_array_equal(cells_of(basis, take(records, order)), together[order])

    @pytest.mark.parametrize("threads", [2, 3, 7])
    def test_counts_do_not_depend_on_threads(self, case: Case, threads: int) -> None:
        basis = HashRows(case.kernel, 90, 100, seed=3)
        records = case.records(300)
        np.testing.assert_array_equal(counted(basis, records, threads), counted(basis, records))

    @pytest.mark.parametrize("size", [1, 5, 16, 37, 100])
    def test_counts_do_not_depend_on_how_records_are_split(self, case: Case, size: int) -> None:
        basis = HashRows(case.kernel, 50, 100, seed=3)
        records = case.records(120)
        parts = [counted(basis, records[i : i + size]) for i in range(0, 120, size)]
        np.testing.assert_array_equal(np.sum(parts, axis=0), counted(basis, records))

    def test_the_first_rows_do_not_depend_on_how_many_there_are(self, case: Case) -> None:
        records = case.records(20)
        many = cells_of(HashRows(case.kernel, 300, 100, seed=4), records)
        for rows in (1, 17, 128, 299):
            few = HashRows(case.kernel, 300, 100, seed=4).prefix(rows)
            assert few.rows == rows
            np.testing.assert_array_equal(cells_of(few, records), many[:, :rows])

    def test_tallies_merge_to_the_tally_of_all_records_in_any_order(self, case: Case) -> None:
        def tally(*parts: Records) -> Tally:
            empty = hs.race(case.kernel, rows=30, width=50, seed=5)
            for part in parts:
                empty.add(part)
            return empty

        a, b, c = (case.records(n, seed=n) for n in (20, 7, 13))
        whole = table_of(tally(joined(a, b, c)))
        np.testing.assert_array_equal(table_of(tally(a, b, c)), whole)
        np.testing.assert_array_equal(table_of(tally(a).merge(tally(b)).merge(tally(c))), whole)
        np.testing.assert_array_equal(table_of(tally(a).merge(tally(b).merge(tally(c)))), whole)
        np.testing.assert_array_equal(table_of(tally(c).merge(tally()).merge(tally(b, a))), whole)

    def test_one_record_moves_one_cell_of_each_row(self, case: Case) -> None:
        basis = HashRows(case.kernel, 60, 20, seed=6)
        records = case.records(10)
        move = counted(basis, records) - counted(basis, records[:-1])
        assert np.all(move.sum(axis=1) == 1)
        assert np.all(np.abs(move).sum(axis=1) == 1)
        assert np.abs(move).sum() == basis.sensitivity(Relation.ADD_REMOVE).l1

    def test_records_collide_as_often_as_they_are_similar(self, case: Case) -> None:
        """Collisions over independent rows are binomial. 45 pairs, each tail below 1e-9: false alarms 9e-8.

        Rows of one structured block are dependent: there the means of the blocks are compared, at 7 of
        their standard errors (45 pairs, 400 blocks: 3e-10), beside the bias allowed for.
        """
        block = HashRows(case.kernel, 1, 2, 0).independent_rows
        rows = 400 * block if structured(case) else 16_000
        basis = HashRows(case.kernel, rows, 29, seed=7)
        records = case.records(10, seed=3)
        cells, asked = cells_of(basis, records), basis.cells(basis.prepare_queries(records))
        expected = folded(basis, case.kernel.similarity(records, records))
        for i in range(10):
            for j in range(i):
                same = cells[i] == asked[j]
                hits, chance = int(np.count_nonzero(same)), min(float(expected[i, j]), 1.0)
                if structured(case):
                    means = same.reshape(-1, block).mean(axis=1)
                    reach = 7 * means.std(ddof=1) / math.sqrt(len(means)) + STRUCTURED_BIAS
                    assert abs(means.mean() - chance) <= reach
                else:
                    assert bdtr(hits, rows, chance) > 1e-9, (hits / rows, chance)
                    assert hits == 0 or bdtrc(hits - 1, rows, chance) > 1e-9, (hits / rows, chance)

    def test_unfolding_is_exact_in_expectation(self, case: Case) -> None:
        records, queries = case.records(30, seed=1), case.records(6, seed=2)
        for width in (2, 5, 64):
            basis = HashRows(case.kernel, 10, width, seed=8)
            similarity = case.kernel.similarity(records, queries)
            mean_cell = folded(basis, similarity).sum(axis=0)
            np.testing.assert_allclose(
                RowReading(basis, case.kernel).unfold(mean_cell, 30.0), similarity.sum(axis=0), atol=1e-9
            )

    def test_sums_are_unbiased_and_their_errors_are_as_reported(self, case: Case) -> None:
        """Over 300 hash seeds and noise seeds, at 5 queries.

        Bias: a t-test with 299 degrees of freedom at 6.5 standard errors, false alarms 2e-9 (and the bias
        allowed for structured projections). Spread: the mean square error against the mean of the squared
        standard errors that were reported, both with a relative deviation of about √(2/300) = 0.08; a
        factor of 1.6 either way is beyond 5.7 of them (false alarms below 1e-7), and against the bound of
        Theorem 2.5 with the noise that was drawn.
        """
        seeds, width = 300, 16
        rows = 8 * HashRows(case.kernel, 1, 2, 0).independent_rows if structured(case) else 40
        records, queries = case.records(60, seed=1), case.records(5, seed=2)
        similarity = case.kernel.similarity(records, queries)
        exact = similarity.sum(axis=0)
        errors, reported = np.empty((seeds, 5)), np.empty((seeds, 5))
        for seed in range(seeds):
            f = (
                hs.race(case.kernel, rows=rows, width=width, seed=seed)
                .add(records)
                .release(rho=0.5, insecure_noise_seed=seed)
            )
            assert isinstance(f, TableFunction)
            answers = f.query(queries, of="sum")
            np.testing.assert_allclose(answers.value, f.sum(queries), rtol=1e-12, atol=1e-12)
            errors[seed] = answers.value - exact
            reported[seed] = answers.stderr**2
        bias, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1)
        allowed = STRUCTURED_BIAS * len(records) if structured(case) else 0.0
        assert np.all(np.abs(bias) <= 6.5 * spread / math.sqrt(seeds) + allowed)
        square = (errors**2).mean(axis=0)
        assert np.all(square <= 1.6 * reported.mean(axis=0))
        assert np.all(reported.mean(axis=0) <= 1.6 * square)
        blocks = rows / HashRows(case.kernel, 1, 2, 0).independent_rows
        assert isinstance(f, TableFunction)
        rate = f.reading.basis.fold_rate
        roots = np.sqrt(folded(HashRows(case.kernel, 1, width, 0), similarity)).sum(axis=0)
        largest = roots**2 / blocks + f.noise.variance / rows + (rate * f.count_stderr) ** 2
        assert np.all(square <= 1.6 * largest / (1.0 - rate) ** 2)
