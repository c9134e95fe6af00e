"""Persons as the unit: the cap keeps the first records of each, and nobody else notices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import DataRefused, UsageError
from hushsum.privacy import Relation
from hushsum.releases import TableFunction
from hushsum.tally import Tally
from tests.exact_tallies import exact_count, exact_state, exact_table

KERNEL = hs.EuclideanKernel(dim=1, bandwidth=1.0)


def capped(limit: int = 2) -> Tally:
    return hs.race(KERNEL, rows=10, width=20, seed=3, max_per_unit=limit)


def table(tally: Tally) -> NDArray[np.int64]:
    found: NDArray[np.int64] = exact_table(tally)
    return found.copy()


def plain(points: object) -> NDArray[np.int64]:
    return table(hs.race(KERNEL, rows=10, width=20, seed=3).add(points))


def test_the_first_records_of_each_person_count_over_all_batches() -> None:
    tally = capped(2)
    tally.add([[1.0], [2.0], [3.0]], units=["a", "b", "a"])
    tally.add([[4.0], [5.0]], units=["a", "b"])
    np.testing.assert_array_equal(table(tally), plain([[1.0], [2.0], [3.0], [5.0]]))
    assert exact_count(tally) == 4


def test_a_person_beyond_the_cap_changes_nothing() -> None:
    tally = capped(1).add([[1.0]], units=["a"])
    before, moves = table(tally), exact_state(tally)["moves"]
    tally.add([[7.0], [8.0]], units=["a", "a"])
    np.testing.assert_array_equal(table(tally), before)
    assert (exact_count(tally), exact_state(tally)["moves"]) == (1, moves)


def test_one_person_never_displaces_another() -> None:
    others = np.arange(30.0).reshape(30, 1)
    names = [f"p{i % 7}" for i in range(30)]
    without = capped(3).add(others, units=names)
    with_one = capped(3).add(np.vstack([others, np.full((9, 1), 99.0)]), units=[*names, *["x"] * 9])
    np.testing.assert_array_equal(table(with_one) - table(without), plain([[99.0]] * 3))


def test_refused_batches_do_not_use_up_a_cap() -> None:
    tally = capped(1)
    with pytest.raises(DataRefused):
        tally.add([[np.nan]], units=["a"])
    with pytest.raises(DataRefused, match="one id for each record"):
        tally.add([[1.0], [2.0]], units=["a"])
    with pytest.raises(DataRefused):
        tally.add([[1.0], [2.0]], units=["a", None])
    tally.add([[1.0]], units=["a"])
    np.testing.assert_array_equal(table(tally), plain([[1.0]]))


def test_units_and_caps_need_each_other() -> None:
    with pytest.raises(UsageError, match="units must be left out, or the tally made with max_per_unit"):
        hs.race(KERNEL, rows=2).add([[1.0]], units=["a"])
    with pytest.raises(UsageError, match="units must be given"):
        capped().add([[1.0]])


def test_remove_is_refused() -> None:
    tally = capped().add([[1.0]], units=["a"])
    with pytest.raises(UsageError, match="remove needs a tally without max_per_unit"):
        tally.remove([[1.0]])


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, (1 << 20) + 1])
def test_senseless_caps_are_refused(limit: int) -> None:
    with pytest.raises(UsageError, match="max_per_unit must be"):
        capped(limit)


def test_merging_adds_the_caps() -> None:
    left = capped(2).add([[1.0], [2.0]], units=["a", "a"])
    right = capped(1).add([[3.0]], units=["a"])
    left.merge(right)
    assert left.max_per_unit == 3
    np.testing.assert_array_equal(table(left), plain([[1.0], [2.0], [3.0]]))
    left.add([[4.0]], units=["a"])
    np.testing.assert_array_equal(table(left), plain([[1.0], [2.0], [3.0]]))


def test_disjoint_persons_keep_the_larger_cap() -> None:
    left = capped(2).add([[1.0]], units=["a"])
    left.merge(capped(2).add([[3.0]], units=["b"]), disjoint_units=True)
    assert left.max_per_unit == 2


def test_a_false_declaration_of_disjoint_persons_changes_nothing() -> None:
    left = capped(2).add([[1.0]], units=["a"])
    before = table(left)
    with pytest.raises(DataRefused, match="disjoint"):
        left.merge(capped(2).add([[3.0]], units=["a"]), disjoint_units=True)
    np.testing.assert_array_equal(table(left), before)
    assert left.max_per_unit == 2


@pytest.mark.parametrize("key", [None, bytes(range(32))], ids=["plain", "encrypted"])
def test_caps_survive_a_file(tmp_path: Path, key: bytes | None) -> None:
    tally = capped(2).add([[1.0], [2.0], [3.0]], units=["a", "a", "b"])
    tally.save(tmp_path / "persons.tally", encryption_key=key)
    back = hs.load_tally(tmp_path / "persons.tally", encryption_key=key)
    assert back.max_per_unit == 2
    back.add([[9.0], [4.0], [5.0]], units=["a", "b", "b"])
    np.testing.assert_array_equal(table(back), plain([[1.0], [2.0], [3.0], [4.0]]))


def test_an_empty_cap_survives_a_file(tmp_path: Path) -> None:
    capped(4).save(tmp_path / "none.tally")
    assert hs.load_tally(tmp_path / "none.tally").max_per_unit == 4


def test_the_claim_names_the_person_and_the_noise_grows_with_the_cap() -> None:
    tally = capped(3).add([[1.0]], units=["a"])
    f = tally.release(epsilon=1.0, rows=10, insecure_noise_seed=1)
    assert isinstance(f, TableFunction)
    assert (f.claim.unit, f.claim.records_per_unit) == ("person", 3)
    assert f.noise.parameter == 30 / (1 - f.claim.promise.epsilon / 50) * f.claim.promise.epsilon  # type: ignore[operator]
    assert f.count_noise.parameter == 3 * 50


def test_under_replace_the_number_of_records_of_persons_stays_private() -> None:
    tally = capped(3).add([[1.0]], units=["a"])
    f = tally.release(epsilon=1.0, relation="replace", rows=10, insecure_noise_seed=1)
    assert isinstance(f, TableFunction)
    assert f.count_noise.parameter == 3 * 50
    assert f.basis.sensitivity(Relation.REPLACE).times(3).l1 == 60
