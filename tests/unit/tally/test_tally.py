"""The tally: what it refuses, and that a refusal changes nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import (
    ClaimError,
    CounterOverflow,
    DataRefused,
    IncompatibleTallies,
    SecretRefused,
    UsageError,
)
from hushsum.tables import HashRows
from hushsum.tally import Tally
from tests.exact_tallies import exact_count, exact_state, exact_table

KERNEL = hs.EuclideanKernel(dim=2, bandwidth=1.0)
LARGEST = 2**63 - 1
POINTS = np.array([[0.0, 0.0], [1.0, 1.0], [5.0, -3.0]])


def empty(**options: Any) -> Tally:
    return hs.race(KERNEL, **{"rows": 20, "width": 16, "seed": 1, **options})


def state(tally: Tally) -> tuple[bytes, int, int, object]:
    """Everything a tally holds, to compare."""
    held = exact_state(tally)
    cap = held["cap"]
    units = None if cap is None else (cap.limit, [part.tobytes() for part in cap.state()])
    return held["table"].tobytes(), held["count"], held["moves"], units


def with_moves(moves: int, count: int = 0) -> Tally:
    fresh = empty()
    return Tally._restore(
        fresh.basis, None, table=np.zeros(fresh.basis.shape, np.int64), count=count, moves=moves
    )


def test_add_returns_the_tally_and_counts() -> None:
    tally = empty()
    assert tally.add(POINTS) is tally
    assert exact_count(tally) == 3
    assert exact_table(tally).sum() == 3 * 20


def test_removing_what_was_added_leaves_nothing() -> None:
    tally = empty().add(POINTS).remove(POINTS[::-1])
    assert not exact_table(tally).any()
    assert exact_count(tally) == 0


@pytest.mark.parametrize(
    "bad",
    [
        [[0.0, np.nan]],
        [[0.0, 1.0], [np.inf, 0.0]],
        [[0.0, -np.inf]],
        [[1.0, 2.0, 3.0]],
        [[1.0]],
        np.empty((0, 2)),
        [],
        [["a", "b"]],
        np.array([["1", "2"]]),
        [[1.0, None]],
        [[1.0 + 2j, 0.0]],
        np.array([["2020-01-01", "2020-01-02"]], dtype="datetime64[D]"),
        [[1e39, 0.0]],
        "records.csv",
        None,
        {"a": [1.0]},
    ],
    ids=lambda value: repr(value)[:30],
)
@pytest.mark.parametrize("verb", ["add", "remove"])
def test_a_refused_batch_changes_nothing(verb: str, bad: object) -> None:
    tally = empty().add(POINTS)
    before = state(tally)
    with pytest.raises(DataRefused):
        getattr(tally, verb)(bad)
    assert state(tally) == before


def test_one_bad_record_refuses_its_whole_batch_and_is_not_shown() -> None:
    tally = empty()
    rows = np.random.default_rng(0).normal(size=(10_000, 2))
    rows[7777, 1] = np.nan
    rows[:, 0] = 12345.678
    with pytest.raises(DataRefused) as refusal:
        tally.add(rows, threads=2)
    assert not exact_table(tally).any()
    assert "12345" not in str(refusal.value)


def test_a_batch_that_could_overflow_is_refused_before_it_counts() -> None:
    tally = with_moves(LARGEST - 2)
    before = state(tally)
    with pytest.raises(CounterOverflow, match="64 bits"):
        tally.add(POINTS)
    assert state(tally) == before
    tally.add(POINTS[:2])
    with pytest.raises(CounterOverflow):
        tally.add(POINTS[:1])


def test_removals_use_up_room_too() -> None:
    tally = with_moves(LARGEST, count=10)
    with pytest.raises(CounterOverflow):
        tally.remove(POINTS[:1])


def test_room_is_used_by_every_move_and_never_given_back() -> None:
    assert exact_state(empty().add(POINTS).remove(POINTS[:2]))["moves"] == 5


def test_a_merge_that_could_overflow_is_refused() -> None:
    left, right = with_moves(LARGEST - 5), with_moves(6)
    before = state(left)
    with pytest.raises(CounterOverflow):
        left.merge(right)
    assert state(left) == before
    left.merge(with_moves(5))
    assert exact_state(left)["moves"] == LARGEST


def test_removing_more_than_was_added_is_refused() -> None:
    tally = empty().add(POINTS)
    with pytest.raises(DataRefused, match="only records that were added"):
        tally.remove(np.zeros((4, 2)))


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (hs.race(KERNEL, rows=21, width=16, seed=1), "rows"),
        (hs.race(KERNEL, rows=20, width=17, seed=1), "width"),
        (hs.race(KERNEL, rows=20, width=16, seed=2), "seed"),
        (hs.race(KERNEL, rows=20, width=16, seed=1, bounds=(0.0, 1.0)), "bounds"),
        (
            hs.race(hs.EuclideanKernel(dim=2, bandwidth=1.0 + 1e-12), rows=20, width=16, seed=1),
            "kernel bandwidth",
        ),
        (
            hs.race(
                hs.EuclideanKernel(dim=2, bandwidth=1.0, projection="structured"), rows=20, width=16, seed=1
            ),
            "kernel projection",
        ),
        (hs.race(hs.ManhattanKernel(dim=2, bandwidth=1.0), rows=20, width=16, seed=1), "kernel"),
    ],
    ids=["rows", "width", "seed", "bounds", "bandwidth", "projection", "kernel"],
)
def test_another_fingerprint_does_not_merge(other: Tally, named: str) -> None:
    tally = empty().add(POINTS)
    before = state(tally)
    with pytest.raises(
        IncompatibleTallies, match=f"one fingerprint to merge, got some that differ in {named};"
    ):
        tally.merge(other)
    assert state(tally) == before


def test_persons_do_not_merge_with_records() -> None:
    with pytest.raises(IncompatibleTallies, match="persons"):
        empty().merge(empty(max_per_unit=1))
    with pytest.raises(IncompatibleTallies, match="persons"):
        empty(max_per_unit=1).merge(empty())


def test_a_tally_does_not_merge_with_itself_or_with_a_release() -> None:
    tally = empty().add(POINTS)
    with pytest.raises(UsageError, match="itself"):
        tally.merge(tally)
    released = tally.release(epsilon=1.0)
    with pytest.raises(UsageError, match="other must be a tally"):
        tally.merge(released)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "copying",
    [copy.copy, copy.deepcopy, *(lambda t, p=p: pickle.dumps(t, p) for p in range(6))],
    ids=["copy", "deepcopy", *(f"pickle{p}" for p in range(6))],
)
def test_pickle_and_copies_are_refused(copying: Callable[[Tally], object]) -> None:
    with pytest.raises(SecretRefused, match="must not be pickled or copied"):
        copying(empty().add(POINTS))


def test_repr_shows_the_public_parameters_and_no_count() -> None:
    few, many = empty().add(POINTS), empty().add(np.zeros((4321, 2)))
    assert repr(few) == repr(many) == str(many) == repr(empty())
    assert "CONFIDENTIAL" in repr(few)
    assert "4321" not in repr(many)


def test_a_tally_has_no_attribute_dictionary_and_no_public_numbers() -> None:
    tally = empty().add(POINTS)
    assert not hasattr(tally, "__dict__")
    public = {name for name in dir(tally) if not name.startswith("_")}
    fields = {"basis", "edge_lists", "fingerprint", "kernel", "max_per_unit", "reading", "unit"}
    fields |= {"add_remove_only"}
    verbs = {"add", "merge", "prepare", "release", "remove", "restrict_to_add_remove", "save"}
    assert public == fields | verbs


@pytest.mark.parametrize("threads", [0, -1, 1.5, 1025, "all"])
def test_threads_must_be_a_number(threads: int) -> None:
    with pytest.raises(UsageError, match="threads must be"):
        empty().add(POINTS, threads=threads)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 1.0, "rho": 0.5},
        {"delta": 1e-6},
        {"rho": 0.5, "delta": 1e-6},
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": "much"},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": -0.1},
        {"rho": 0.0},
        {"epsilon": 1.0, "relation": "neighbours"},
        {"epsilon": 1.0, "count_share": 0.0},
        {"epsilon": 1.0, "count_share": 1.0},
        {"rho": 1.0, "count_share": -0.5},
    ],
    ids=str,
)
def test_promises_that_cannot_be_claimed_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ClaimError):
        empty().add(POINTS).release(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [0, -1, 21, 2.5, "all", True])
def test_rows_to_publish_must_be_among_those_counted(rows: int) -> None:
    with pytest.raises(UsageError, match="rows must be"):
        empty().add(POINTS).release(epsilon=1.0, rows=rows)


def test_bounds_clip_records_and_not_queries() -> None:
    def table(points: object) -> NDArray[np.int64]:
        tally = hs.race(KERNEL, rows=50, width=1000, seed=1, bounds=[(0.0, 10.0), (-1.0, 1.0)])
        counted: NDArray[np.int64] = exact_table(tally.add(points))
        return counted

    np.testing.assert_array_equal(table([[12.0, -7.0]]), table([[10.0, -1.0]]))
    basis = hs.race(KERNEL, rows=50, width=1000, seed=1, bounds=[(0.0, 10.0), (-1.0, 1.0)]).basis
    assert isinstance(basis, HashRows)
    outside, edge = (basis.cells(basis.prepare_queries([[x, 0.0]])) for x in (100.0, 10.0))
    assert np.count_nonzero(outside == edge) < 25
