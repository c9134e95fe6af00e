"""Sums by class and second moments: against plain sums, and what is refused."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.privacy import Relation
from hushsum.records import clipped_to_ball
from hushsum.tables import ClassMoments
from hushsum.tally import Tally

RNG = np.random.default_rng(9)
VECTORS = RNG.normal(size=(400, 5))
CODES = RNG.integers(0, 3, 400)
ROWS = np.column_stack((CODES, VECTORS))
UNITS = clipped_to_ball(VECTORS, 2.0) / 2.0


def basis_of(moments: Fraction, *, by_class: bool = False, total: float = 1.0) -> ClassMoments:
    return ClassMoments.of_shares(
        3, 5, 2.0, moment_share=moments, count_share=Fraction(1, 20), by_class=by_class, total=total
    )


EVERY = (
    basis_of(Fraction(0)),
    basis_of(Fraction(1, 5)),
    basis_of(Fraction(1, 2), by_class=True),
    basis_of(Fraction(0), total=0.5),
    basis_of(Fraction(1, 5), total=0.7),
)


def counted(basis: ClassMoments, rows: Any) -> Any:
    table = basis.new_table()
    basis.accumulate(table, basis.prepare(rows), step=1, threads=1)
    return table


@pytest.mark.parametrize("basis", EVERY)
def test_the_table_holds_the_sums(basis: ClassMoments) -> None:
    table = counted(basis, ROWS)
    np.testing.assert_array_equal(basis.class_counts(table), np.bincount(CODES))
    sums = np.stack([UNITS[code == CODES].sum(axis=0) for code in range(3)])
    np.testing.assert_allclose(basis.class_sums(table), sums, atol=0.02)
    groups = {0: [], 1: [UNITS], 3: [UNITS[code == CODES] for code in range(3)]}[basis.moments]
    for found, members in zip(basis.second_moments(table) if groups else [], groups, strict=True):
        np.testing.assert_allclose(found, members.T @ members, atol=0.05)


@pytest.mark.parametrize("basis", EVERY)
def test_a_record_counts_alone(basis: ClassMoments) -> None:
    whole = counted(basis, ROWS)
    np.testing.assert_array_equal(sum(counted(basis, ROWS[i : i + 1]) for i in range(len(ROWS))), whole)


@pytest.mark.parametrize("basis", EVERY)
def test_shares_are_parts_of_what_a_record_moves(basis: ClassMoments) -> None:
    moved = basis.sensitivity(Relation.ADD_REMOVE).l2_squared
    assert basis.count_weight**2 / moved == pytest.approx(0.05, abs=0.001)
    share = {0: 0.0, 1: 0.2, 3: 0.5}[basis.moments]
    second = 25 * basis.length**4 if basis.moments else 0
    assert second / moved == pytest.approx(share, abs=0.001)
    replaced = basis.sensitivity(Relation.REPLACE).l2_squared
    assert 2 * moved <= replaced <= 4 * moved


def test_less_weight_of_the_total_leaves_less_noise_in_differences() -> None:
    """The noise of sums, as stated, is that of noise in all cells; 4000 columns: 6 standard errors."""
    wide = ClassMoments.of_shares(
        3, 4000, 1.0, moment_share=Fraction(0), count_share=Fraction(1, 20), total=0.5
    )
    table: Any = RNG.normal(size=wide.shape)
    sums = wide.class_sums(table)
    assert sums.var() == pytest.approx(wide.sum_gain, rel=0.15)
    apart = wide.sum_noise(np.array([2.0]), np.array([0.0]))[0]
    assert (sums[0] - sums[1]).var() == pytest.approx(apart, rel=0.15)
    plain = ClassMoments.of_shares(
        3, 5, 2.0, moment_share=Fraction(0), count_share=Fraction(1, 20), total=1.0
    )
    noises = [
        each.sum_noise(np.array([2.0]), np.array([0.0]))[0] * each.sensitivity(Relation.ADD_REMOVE).l2_squared
        for each in (EVERY[3], plain)
    ]
    assert noises[0] < 0.8 * noises[1]


@pytest.mark.parametrize("basis", EVERY)
def test_it_is_released_as_inner_products_within_a_class(basis: ClassMoments) -> None:
    f: Any = Tally(basis).add(ROWS).release(rho=100.0, insecure_noise_seed=2)
    queries = np.column_stack(([0, 1, 2, 7], VECTORS[:4]))
    truth = basis.counted_kernel().exact_sum(ROWS, queries)
    answers = f.query(queries, of="sum")
    assert (np.abs(answers.value - truth) <= 5.0 * answers.stderr + 0.05).all()
    assert answers.value[3] == 0.0
    assert f.count == pytest.approx(400, abs=5.0 * f.count_stderr + 1.0)
    stream = io.BytesIO()
    f.save(stream)
    stream.seek(0)
    again: Any = hs.load(stream)
    assert again.basis == basis
    np.testing.assert_array_equal(again.sum(queries), f.sum(queries))


@pytest.mark.parametrize("code", [-1, 3, 0.5])
def test_a_class_that_there_is_not_is_refused(code: float) -> None:
    tally = Tally(EVERY[0])
    with pytest.raises(DataRefused, match="class from 0 to 2"):
        tally.add([[code, *VECTORS[0]]])


@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": 0}, {"dim": 0}, {"radius": -1.0}, {"moments": 2}, {"moments": True}, {"mean_weight": 0},
        {"count_weight": 1.5}, {"bits": 30}, {"moments": 1, "dim": 5000}, {"shared_weight": 1},
        {"mean_weight": 9, "shared_weight": 3},
    ],
)  # fmt: skip
def test_parameters_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ClassMoments(**{"classes": 3, "dim": 5, **wrong})
