"""Moments against slow sums of whole numbers."""

from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import hushsum as hs
from hushsum.auditing import audit_sensitivity, pool_for
from hushsum.errors import DataRefused, UsageError
from hushsum.privacy import Relation
from hushsum.records import Bounds, UnitBall
from hushsum.releases import CoefficientFunction
from hushsum.tables import Moments
from hushsum.tally import Tally
from tests.exact_tallies import exact_table


def basis_of(number: int, **options: object) -> Moments:
    box = Bounds.of((-2.0, 2.0), number)
    assert box is not None
    return Moments(UnitBall(box), **options)  # type: ignore[arg-type]


def table_of(basis: Moments, records: NDArray[np.float64], cuts: tuple[int, ...] = ()) -> NDArray[np.int64]:
    table = np.zeros(basis.shape, np.int64)
    for part in np.split(records, cuts):
        if len(part):
            basis.accumulate(table, basis.prepare(part), step=1, threads=1)
    return table


def slow_table(basis: Moments, records: NDArray[np.float64]) -> list[int]:
    """Record by record in Python's own integers."""
    total = [0] * basis.shape[1]
    for row in basis.prepare(records).arrays[0].tolist():
        *features, target = row
        size = len(features)
        triangle = [features[i] * features[j] for i in range(size) for j in range(i, size)]
        cells = [*triangle, *(target * each for each in features), target * target // 4]
        total = [a + b for a, b in zip(total, cells, strict=True)]
    return total


RECORDS = np.random.default_rng(1).uniform(-2.5, 2.5, (300, 4))


def test_the_table_is_the_sum_of_products() -> None:
    basis = basis_of(4)
    assert table_of(basis, RECORDS)[0].tolist() == slow_table(basis, RECORDS)


def test_the_table_depends_on_neither_order_nor_batches() -> None:
    basis = basis_of(4)
    whole = table_of(basis, RECORDS)
    np.testing.assert_array_equal(table_of(basis, RECORDS[::-1].copy(), (1, 7, 200)), whole)


def test_sums_stay_exact_with_the_widest_numbers() -> None:
    basis = basis_of(2, bits=20)
    records = np.full((70_000, 2), 2.0)
    assert table_of(basis, records)[0].tolist() == [70_000 * cell for cell in slow_table(basis, records[:1])]


@given(
    st.lists(st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=5), min_size=1, max_size=8),
    st.sampled_from([None, 1.2, 2.0]),
    st.integers(4, 14),
)
@settings(max_examples=60, deadline=None)
def test_no_record_leaves_the_ball(rows: list[list[float]], radius: float | None, bits: int) -> None:
    box = Bounds.of((-1.0, 3.0), 5)
    assert box is not None
    basis = Moments(UnitBall(box, radius), bits)
    numbers = basis.prepare(rows).arrays[0]
    features, target = numbers[:, :-1], numbers[:, -1]
    assert (features**2).sum(axis=1).max() <= basis.unit**2
    assert np.abs(features).max() <= basis._largest_feature
    assert np.abs(target).max() <= basis.unit


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_a_declaration_of_a_fifth_less_is_caught(relation: Relation) -> None:
    basis = basis_of(6)
    rng = np.random.default_rng(2)
    pool = pool_for(basis, rng)
    if relation is Relation.ADD_REMOVE:
        pairs: list[tuple[object, object]] = [(None, [record]) for record in pool]
    else:
        pairs = [([pool[i]], [pool[j]]) for i in range(len(pool)) for j in range(0, len(pool), 3)]
    audit = audit_sensitivity(basis, pairs, relation)
    assert audit.holds
    less = replace(audit.declared, l2_squared=int(audit.declared.l2_squared * Fraction(16, 25)))
    assert not replace(audit, declared=less).holds
    assert not replace(audit, declared=replace(audit.declared, l1=int(audit.declared.l1 * 0.8))).holds


def test_answers_are_squared_errors() -> None:
    basis = basis_of(4)
    tally = Tally(basis).add(RECORDS)
    function = tally.release(epsilon=1e6, delta=1e-6)
    assert isinstance(function, CoefficientFunction)
    features, target = basis.ball.of_records(RECORDS)
    theta = np.array([0.3, -0.2, 0.5, 1.0])
    exact = float(((target - features @ theta) ** 2).sum())
    query = [*theta, -1.0]
    assert function.sum([query])[0] == pytest.approx(exact, abs=0.2)
    assert function([query])[0] == pytest.approx(exact / 300, abs=1e-3)
    assert function.count == pytest.approx(300, abs=0.5)


def test_the_stated_error_is_that_of_the_noise() -> None:
    """2,000 seeded releases: the standard error is off by more than a tenth once in 10⁹."""
    basis = basis_of(3)
    tally = Tally(basis).add(RECORDS[:50, :3])
    query = [[0.5, -1.0, 2.0, -1.0]]
    answers, stated = [], 0.0
    for seed in range(2000):
        function = tally.release(rho=0.1, insecure_noise_seed=seed)
        assert isinstance(function, CoefficientFunction)
        answers.append(function.sum(query)[0])
        stated = float(function.query(query, of="sum").stderr[0])
    assert np.std(answers) == pytest.approx(stated, rel=0.1)


def test_files_and_merges() -> None:
    basis = basis_of(4)
    one, other = Tally(basis).add(RECORDS[:100]), Tally(basis).add(RECORDS[100:])
    np.testing.assert_array_equal(exact_table(one.merge(other)), exact_table(Tally(basis).add(RECORDS)))
    function = one.release(epsilon=1.0)
    buffer = io.BytesIO()
    function.save(buffer)
    buffer.seek(0)
    again = hs.load(buffer)
    assert again.claim == function.claim
    np.testing.assert_array_equal(again.sum([[1, 0, 0, 0, -1]]), function.sum([[1, 0, 0, 0, -1]]))


def test_refusals() -> None:
    with pytest.raises(UsageError, match="bits"):
        basis_of(3, bits=40)
    with pytest.raises(UsageError, match="names"):
        basis_of(3, columns=("a", "b"))
    with pytest.raises(DataRefused):
        basis_of(3).prepare([[1.0, np.nan, 0.0]])
    with pytest.raises(UsageError, match="rows"):
        basis_of(3).prefix(2)
    with pytest.raises(UsageError, match="table was counted for"):
        basis_of(3).reading(hs.GaussianKernel(dim=3, bandwidth=1.0))
