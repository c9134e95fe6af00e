"""Marginals against counting one record after the other, and their reading against the Hamming kernel."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hushsum as hs
from hushsum.errors import DataRefused, IncompatibleTallies, UsageError
from hushsum.kernels import Batch
from hushsum.methods import all_pairs, chosen_tree, only_chosen, positions_of
from hushsum.models import CategoryColumn, FlagColumn, NumberColumn
from hushsum.privacy import Relation, Sensitivity, release_noise
from hushsum.tables import Marginals, basis_as_json, basis_from_json
from tests.exact_tallies import exact_count, exact_table

COLUMNS: dict[str, Any] = {
    "age": NumberColumn(0, 100, fill=0, bins=4),
    "job": CategoryColumn(["care", "law"], unknown="other"),
    "ill": FlagColumn(),
    "pay": NumberColumn(0, 1000, bins=[0, 1, 100, 1000]),
}
NAMES = list(COLUMNS)
RECORD = st.tuples(
    st.one_of(st.none(), st.floats(-1e6, 1e6)),
    st.sampled_from(["care", "law", "trade", None]),
    st.sampled_from([True, False, None]),
    st.floats(-10, 2000),
)


def label(name: str, value: Any) -> int:
    """The slow and obvious encoding of one value."""
    if name == "age":
        return 4 if value is None else min(int(min(max(value, 0.0), 100.0) / 100.0 * 4), 3)
    if name == "job":
        return {"care": 0, "law": 1, None: 3}.get(value, 2)
    if name == "ill":
        return {False: 0, True: 1, None: 2}[value]
    return 0 if value < 1 else 1 if value < 100 else 2


def counted(records: list[Any]) -> Any:
    tally = hs.methods.marginals(COLUMNS)
    return exact_table(tally.add([list(each) for each in records]))


@settings(max_examples=40, deadline=None)
@given(st.lists(RECORD, min_size=1, max_size=12))
def test_cells_are_the_counts_of_labels(records: list[Any]) -> None:
    basis = hs.methods.marginals(COLUMNS).basis
    assert isinstance(basis, Marginals)
    table = counted(records)
    for i, each in enumerate(basis.sets):
        expected = Counter(
            tuple(label(NAMES[c], record[c]) for c in each) for record in records
        )  # fmt: skip
        cells = basis.marginal(table, i)
        assert cells.sum() == len(records)
        assert {place: cells[place] for place in expected} == dict(expected)


@settings(max_examples=25, deadline=None)
@given(st.lists(RECORD, min_size=2, max_size=12), st.integers(1, 11))
def test_parts_add_up_bit_for_bit(records: list[Any], cut: int) -> None:
    cut = min(cut, len(records) - 1)
    np.testing.assert_array_equal(counted(records), counted(records[:cut]) + counted(records[cut:]))


def test_sensitivity_is_exact() -> None:
    basis = hs.methods.marginals(COLUMNS).basis
    assert basis.sensitivity(Relation.ADD_REMOVE) == Sensitivity(10, 10, 1)
    assert basis.sensitivity(Relation.REPLACE) == Sensitivity(20, 20, 1)
    one, other = counted([(10.0, "care", True, 0.0)]), counted([(90.0, "law", False, 500.0)])
    assert np.abs(one - other).sum() == 20, "two records that share no label meet the bound"


@pytest.mark.parametrize("power", [1, 2])
def test_the_reading_is_the_hamming_kernel(power: int) -> None:
    rng = np.random.default_rng(0)
    codes = [CategoryColumn([0, 1, 2], missing="refuse") for _ in range(4)]
    X, Q = rng.integers(0, 3, (200, 4)), rng.integers(0, 3, (7, 4))
    tally = hs.methods.marginals(codes).add(X)
    kernel = hs.HammingKernel(dim=4, power=power)
    reading = tally.basis.reading(kernel)
    batch = tally.basis.prepare_queries(Q)
    table = exact_table(tally)
    expected = kernel.similarity(X, Q).sum(axis=0)
    np.testing.assert_allclose(reading.evaluate(table, batch, threads=1), expected)  # type: ignore[attr-defined]
    assert reading.total(table)[0] == pytest.approx(200)  # type: ignore[attr-defined]
    noise = rng.normal(size=(4000, table.size))
    spread = np.var([reading.evaluate(each, batch, threads=1)[0] for each in noise])  # type: ignore[attr-defined]
    assert spread == pytest.approx(reading.noise_gain(batch)[0], rel=0.15)  # type: ignore[attr-defined]


def test_a_description_gives_the_basis_back_and_another_encoding_does_not_merge() -> None:
    basis = hs.methods.marginals(COLUMNS).basis
    assert basis_from_json(basis_as_json(basis)) == basis
    other = hs.methods.marginals({**COLUMNS, "job": CategoryColumn(["law", "care"], unknown="other")})
    with pytest.raises(IncompatibleTallies):
        hs.methods.marginals(COLUMNS).merge(other)


def test_rules_of_the_sets() -> None:
    number = NumberColumn(0, 1)
    assert all_pairs([2, 3, 1000], 100) == [(0,), (1,), (2,), (0, 1)]
    assert positions_of([["b", "a"], [0]], 2, ["a", "b"]) == [(0, 1), (0,)]
    for sets in ([], [()], [(1, 0)], [(0, 0)], [(0,), (0,)], [(0, 2)], [(-1,)]):
        with pytest.raises(UsageError, match="marginals"):
            Marginals.of([number, number], sets)
    with pytest.raises(UsageError, match="sets"):
        hs.methods.marginals([number], sets=[["secret"]])
    with pytest.raises(UsageError, match="cells"):
        Marginals.of([NumberColumn(0, 1, bins=1 << 19)] * 2, [(0, 1)])
    with pytest.raises(UsageError, match="Hamming"):
        hs.methods.marginals([number, number], sets=[(0,), (1,)]).basis.reading(hs.HammingKernel(dim=3))
    with pytest.raises(UsageError, match="without some"):
        hs.methods.marginals([number, number], sets=[(0,), (1,)]).basis.reading(
            hs.HammingKernel(dim=2, power=2)
        )


def test_codes_that_no_record_has_are_refused() -> None:
    tally = hs.methods.marginals([FlagColumn(), FlagColumn()])
    for codes in ([[0, 3]], [[-1, 0]], [[0, 0, 0]]):
        with pytest.raises(DataRefused, match="codes"):
            tally.add(Batch((np.array(codes, np.int32),), 1))
    assert exact_count(tally) == 0


def test_a_bad_record_leaves_the_tally_as_it_was_and_is_not_shown() -> None:
    tally = hs.methods.marginals({"job": CategoryColumn(["care"], missing="refuse")})
    for bad in (["s3cret"], [None]):
        with pytest.raises(DataRefused) as refused:
            tally.add([["care"], bad])
        assert "s3cret" not in str(refused.value)
    assert exact_table(tally).sum() == 0


def test_the_tree_joins_the_columns_that_depend_on_each_other() -> None:
    """Scores are 2,000 and about 20 records apart; each choice has ε = 1/3 and the scale 12 records."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, (2, 4000))
    X = np.column_stack([a, b, a, b])
    tally = hs.methods.marginals([FlagColumn(missing="refuse")] * 4).add(X)
    from fractions import Fraction

    with release_noise(5) as noise:
        chosen = chosen_tree(tally, Fraction(1), noise)
    basis = tally.basis
    assert isinstance(basis, Marginals)
    members = [basis.sets[i] for i in chosen]
    assert len(members) == 7
    assert {(0, 2), (1, 3)} <= set(members)
    fewer = only_chosen(tally, chosen)
    assert fewer.basis.sensitivity(Relation.ADD_REMOVE).l1 == 7
    assert isinstance(fewer.basis, Marginals)
    for i, j in zip(chosen, range(7), strict=True):
        np.testing.assert_array_equal(
            basis.marginal(exact_table(tally), i), fewer.basis.marginal(exact_table(fewer), j)
        )


def test_a_choice_needs_records_not_persons() -> None:
    tally = hs.methods.marginals([FlagColumn()] * 2, max_per_unit=2).add([[True, False]] * 3, units=[1, 1, 2])
    from fractions import Fraction

    with release_noise(1) as noise, pytest.raises(UsageError, match="persons"):
        chosen_tree(tally, Fraction(1), noise)


def test_persons_are_capped() -> None:
    tally = hs.methods.marginals(COLUMNS, max_per_unit=2)
    tally.add([[10.0, "care", True, 5.0]] * 5, units=[1, 1, 1, 2, 2])
    assert exact_count(tally) == 4
    assert tally.basis.unit_change("person", 2, Relation.ADD_REMOVE).table == Sensitivity(20, 40, 2)


def test_every_pair_is_counted_by_default() -> None:
    basis = hs.methods.marginals(COLUMNS).basis
    assert isinstance(basis, Marginals)
    pairs = set(itertools.combinations(range(4), 2))
    assert set(basis.sets) == pairs | {(i,) for i in range(4)}
