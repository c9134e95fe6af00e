"""Every way in which one unit can change, against every declared sensitivity.

A unit appears, disappears, is replaced, is replaced by one with another number of records, moves to another
class or cell, or has the same record twice. A proof that forgets one of these declares too little; here all
of them are tried, with records that an adversary would choose.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.auditing import audited_bases, basis_cases, basis_in_words, counted, pool_for
from hushsum.baselines._real_functions import SCALE, Family, answers_of, dependence_score
from hushsum.kernels import Batch
from hushsum.methods import SCORE_SENSITIVITY, VOTE_SENSITIVITY, Ranks, count_votes, rank_sensitivity
from hushsum.privacy import PERSON, Relation, ReleaseRequest, Sensitivity
from hushsum.records import Bounds
from hushsum.tables import Basis, FourierFeatures, HashRows
from hushsum.tally import TableRelease

EXAMPLES = [
    *(basis for name in audited_bases() for basis in basis_cases(name).examples),
    # In a box that is narrow beside the bandwidth a record replaced moves much less than one that comes.
    FourierFeatures(hs.GaussianKernel(dim=1, bandwidth=1.0), 5, 8, bounds=Bounds((-0.1,), (0.1,))),
]
MOST = 3


def basis_id(basis: Basis) -> str:
    return basis_in_words(basis)


def options(relation: Relation, per_unit: int | None) -> TableRelease:
    request = ReleaseRequest(epsilon=1.0, relation=relation, rows=1)
    basis = HashRows(hs.EuclideanKernel(dim=1, bandwidth=1.0), 4, 4, 1)
    unit = "record" if per_unit is None else "person"
    return TableRelease.of(request, basis, unit=unit, per_unit=per_unit or 1, threads=1)


def within(change: NDArray[np.int64], declared: Sensitivity) -> bool:
    moved = np.abs(change.astype(object))
    return bool(
        moved.sum() <= declared.l1
        and (moved * moved).sum() <= declared.l2_squared
        and moved.max() <= declared.largest
    )


def of_person(basis: Basis, most: int, relation: Relation) -> Sensitivity:
    """How far a person with up to so many records moves the table; of graphs, so many rows."""
    if PERSON in basis.units:
        return basis.unit_change(PERSON, most, relation).table
    return basis.sensitivity(relation).times(most)


@pytest.mark.parametrize("basis", EXAMPLES, ids=basis_id)
class TestTallies:
    def test_a_unit_of_any_number_of_records_for_one_of_any_other(self, basis: Basis) -> None:
        """a records go and b others come, a and b from 0 to 3, also the same record several times.

        Under add/remove a or b is 0. Under replace neither has to be: a person with one record may be
        replaced by one with three, or with none.
        """
        rng = np.random.default_rng(5)
        pool = pool_for(basis, rng)
        vectors = [counted(basis, [record]).ravel() for record in pool[:24]]
        for left, right in product(range(MOST + 1), repeat=2):
            for _ in range(6):
                gone, come = (rng.integers(0, len(vectors), size) for size in (left, right))
                if rng.random() < 0.5:
                    gone, come = (np.full(len(each), rng.integers(len(vectors))) for each in (gone, come))
                change = sum((vectors[i] for i in come), start=0 * vectors[0])
                change = change - sum((vectors[i] for i in gone), start=0 * vectors[0])
                for relation in Relation:
                    if relation is Relation.ADD_REMOVE and left and right:
                        continue
                    assert within(change, of_person(basis, MOST, relation))
                    assert abs(left - right) <= options(relation, MOST).change.count

    def test_a_person_replaced_covers_records_that_only_come_or_go(self, basis: Basis) -> None:
        """A person under replace may have had fewer records."""
        alone, exchanged = (of_person(basis, 1, each) for each in (Relation.ADD_REMOVE, Relation.REPLACE))
        assert alone.l1 <= exchanged.l1
        assert alone.l2_squared <= exchanged.l2_squared
        assert alone.largest <= exchanged.largest


def test_the_number_of_records_is_public_for_replaced_records_alone() -> None:
    assert options(Relation.REPLACE, None).change.count == 0
    assert options(Relation.REPLACE, 1).change.count == 1, "a person may have no record at all"
    assert options(Relation.ADD_REMOVE, None).change.count == 1


@pytest.mark.parametrize("q", [Fraction(1, 2), Fraction(1, 100), Fraction(9, 10), Fraction(2, 7)])
def test_rank_scores(q: Fraction) -> None:
    rng = np.random.default_rng(2)
    grid = np.linspace(0.0, 1.0, 9)
    values = np.concatenate([grid, [0.03, 0.51, 0.98]])
    for _ in range(60):
        crowd = rng.choice(values, int(rng.integers(1, 20)))
        for left, right in product(range(MOST + 1), repeat=2):
            scores = [
                np.array(Ranks.of(np.concatenate([crowd, rng.choice(values, size)]), grid).scores(q))
                for size in (left, right)
            ]
            moved = int(np.abs(scores[0] - scores[1]).max())
            assert moved <= rank_sensitivity(q, Relation.REPLACE, MOST)
            if not left or not right:
                assert moved <= rank_sensitivity(q, Relation.ADD_REMOVE, MOST)
            if left == right == 1:
                assert moved <= rank_sensitivity(q, Relation.REPLACE, 1)


def test_dependence_scores() -> None:
    """Of PrivBayes: one record more, one less, one replaced; also the first, the last and a second copy."""
    rng = np.random.default_rng(3)
    family, bins = Family(0, (1,)), [3, 3]
    furthest = 0
    for size in (0, 1, 2, 3, 8, 40):
        for _ in range(80):
            crowd = rng.integers(0, 3, (size, 2)) * rng.integers(0, 2, (size, 1))
            one, another = rng.integers(0, 3, (2, 1, 2))
            if size and rng.random() < 0.3:
                one = crowd[:1]
            with_one, with_another, without = (
                dependence_score(np.concatenate([crowd, each]), family, bins)
                for each in (one, another, one[:0])
            )
            assert abs(with_one - without) <= SCORE_SENSITIVITY
            assert abs(with_one - with_another) <= 2 * SCORE_SENSITIVITY
            furthest = max(furthest, abs(with_one - without))
    assert furthest > 0.4 * SCORE_SENSITIVITY


def test_answers_of_mwem() -> None:
    rng = np.random.default_rng(4)
    table = rng.integers(0, SCALE + 1, (20, 9)).astype(np.float64)
    table[:, 0], table[:, 1] = 0, SCALE
    counts = rng.integers(0, 5, 9)
    for one, another in product(range(9), repeat=2):
        worlds = [counts + np.eye(9, dtype=np.int64)[each] for each in (one, another)]
        answers = [answers_of(each, table) for each in (counts, *worlds)]
        assert np.abs(answers[1] - answers[0]).max() <= SCALE
        assert np.abs(answers[1] - answers[2]).max() <= SCALE


def test_votes() -> None:
    """One unit has one block, so at most two candidates change by one vote each, whatever it holds."""
    rng = np.random.default_rng(6)

    def judge(block: Batch) -> int:
        return int(block.arrays[0].sum()) % 4

    for _ in range(100):
        rows = rng.integers(0, 50, (30, 1)).astype(np.float64)
        places = rng.integers(0, 5, 30)
        block = int(rng.integers(5))
        results = []
        for size in rng.integers(0, 4, 2):
            extra = rng.integers(0, 50, (int(size), 1)).astype(np.float64)
            at = int(rng.integers(0, 31))
            all_rows = np.insert(rows, [at] * len(extra), extra, axis=0)
            all_places = np.insert(places, [at] * len(extra), block)
            votes = count_votes(Batch((all_rows,), len(all_rows)), all_places, 5, judge, 4)
            results.append(np.array(votes))
        assert np.abs(results[0] - results[1]).max() <= VOTE_SENSITIVITY
