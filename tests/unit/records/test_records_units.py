from __future__ import annotations

import copy
import hashlib
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from hushsum.errors import DataRefused, FileRefused, SecretRefused, UsageError
from hushsum.records import UnitCap

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def add(cap: UnitCap, units: object) -> list[bool]:
    mask, pending = cap.plan(units)
    cap.commit(pending)
    return [bool(kept) for kept in mask]


def slow(limit: int, batches: Sequence[Sequence[object]]) -> list[list[bool]]:
    """The oracle: one record after the other."""
    seen: dict[object, int] = {}
    out = []
    for batch in batches:
        kept = []
        for unit in batch:
            seen[unit] = seen.get(unit, 0) + 1
            kept.append(seen[unit] <= limit)
        out.append(kept)
    return out


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_agrees_with_the_oracle(limit: int) -> None:
    rng = np.random.default_rng(limit)
    batches = [rng.integers(-20, 20, size=size) for size in (1, 50, 3, 200, 0)]
    cap = UnitCap(limit)
    assert [add(cap, batch) for batch in batches] == slow(limit, [batch.tolist() for batch in batches])


INTEGERS: dict[str, Callable[[list[int]], object]] = {
    "list": lambda ids: ids,
    "int8": lambda ids: np.array(ids, dtype=np.int8),
    "uint64": lambda ids: np.array(ids, dtype=np.uint64),
    "scalars": lambda ids: [np.int32(i) for i in ids],
    "objects": lambda ids: np.array(ids, dtype=object),
    "mixed with a huge one": lambda ids: [*ids, 10**30],
    "pandas": lambda ids: pd.Series(ids),
    "pandas nullable": lambda ids: pd.Series(ids, dtype="Int64"),
    "polars": lambda ids: pl.Series(ids),
    "arrow": lambda ids: pa.array(ids, pa.int16()),
    "arrow chunks": lambda ids: pa.chunked_array([ids[:1], ids[1:]]),
    "one column": lambda ids: pa.table({"id": ids}),
    "one column of pandas": lambda ids: pd.DataFrame({"id": ids}),
    "categories": lambda ids: pd.Series(ids, dtype="category"),
}
STRINGS: dict[str, Callable[[list[str]], object]] = {
    "list": lambda ids: ids,
    "numpy": lambda ids: np.array(ids),
    "objects": lambda ids: np.array(ids, dtype=object),
    "pandas": lambda ids: pd.Series(ids),
    "pandas objects": lambda ids: pd.Series(ids, dtype=object),
    "polars": lambda ids: pl.Series(ids),
    "arrow": lambda ids: pa.array(ids),
    "large": lambda ids: pa.array(ids, pa.large_string()),
    "view": lambda ids: pa.array(ids, pa.string_view()),
    "dictionary": lambda ids: pa.array(ids).dictionary_encode(),
    "categories": lambda ids: pd.Series(ids, dtype="category"),
    "polars categories": lambda ids: pl.Series(ids, dtype=pl.Categorical),
    "chunks": lambda ids: pa.chunked_array([ids[:1], ids[1:]]),
}


@pytest.mark.parametrize("container", INTEGERS)
def test_an_integer_is_one_person_in_every_container(container: str) -> None:
    cap = UnitCap(2)
    assert add(cap, [5, 6, 5]) == [True, True, True]
    assert add(cap, INTEGERS[container]([5, 6, 6]))[:3] == [False, True, False]


@pytest.mark.parametrize("container", STRINGS)
def test_a_string_is_one_person_in_every_container(container: str) -> None:
    cap = UnitCap(2)
    assert add(cap, ["é", "6", "é"]) == [True, True, True]
    assert add(cap, STRINGS[container](["é", "6", "6"])) == [False, True, False]


def test_a_number_and_its_spelling_are_two_persons() -> None:
    cap = UnitCap(1)
    assert add(cap, [1, "01", "1", "01"]) == [True, True, False, False]
    assert add(cap, np.array([1])) == [False]
    assert add(cap, np.array(["1"])) == [False]
    assert add(cap, ["i1", "s1"]) == [True, True]


def test_strings_that_utf8_cannot_write() -> None:
    assert add(UnitCap(1), ["\ud800", "\ud801", "\ud800"]) == [True, True, False]


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "none": (lambda: ["98765", None], "must not be missing"),
    "none among objects": (lambda: np.array(["98765", None], dtype=object), "must not be missing"),
    "null": (lambda: pa.array([98765, None]), "must not be missing"),
    "null category": (lambda: pd.Series(["98765", None], dtype="category"), "must not be missing"),
    "null in the dictionary": (
        lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["98765", None])),
        "must not be missing",
    ),
    "NA": (lambda: pd.Series([98765, None], dtype="Int64"), "must not be missing"),
    "NA among objects": (lambda: [98765, pd.NA], "must not be missing"),
    "null in polars": (lambda: pl.Series(["98765", None]), "must not be missing"),
    "masked": (lambda: np.ma.MaskedArray([98765, 2], [False, True]), "must not be missing"),
    "floats": (lambda: np.array([98765.4321]), "integers or strings, got float64"),
    "pandas floats": (lambda: pd.Series([98765, None]), "integers or strings, got float64"),
    "float": (lambda: [98765.4321], "integers or strings, got float"),
    "flags": (lambda: [True], "integers or strings, got bool"),
    "flag array": (lambda: np.array([True]), "integers or strings, got bool"),
    "bytes": (lambda: [b"98765"], "integers or strings, got bytes"),
    "dates": (lambda: pa.array([1]).cast(pa.timestamp("s")), "integers or strings, got timestamp"),
    "one string": (lambda: "98765", "integers or strings, got str"),
    "matrix": (lambda: np.array([[98765]]), "one dimension, got 2"),
    "frame": (lambda: pd.DataFrame({"a": [98765], "b": [1]}), "one column"),
    "two columns": (lambda: pa.table({"a": [98765], "b": [1]}), "one column of integers or strings, got 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_rule_and_no_value_and_change_nothing(case: str) -> None:
    make, message = REFUSED[case]
    cap = UnitCap(1)
    add(cap, [1])
    before = cap.state()
    with pytest.raises(DataRefused, match=message) as caught:
        cap.plan(make())
    assert "98765" not in str(caught.value)
    assert_same_state(cap.state(), before)


def assert_same_state(a: tuple[Any, Any], b: tuple[Any, Any]) -> None:
    np.testing.assert_array_equal(a[0], b[0])
    np.testing.assert_array_equal(a[1], b[1])


def test_a_plan_changes_nothing_until_it_is_committed() -> None:
    cap = UnitCap(1)
    first, _ = cap.plan([1, 1])
    again, pending = cap.plan([1, 1])
    np.testing.assert_array_equal(first, again)
    assert len(cap.state()[1]) == 0
    cap.commit(pending)
    assert not cap.plan([1])[0].any()


def test_a_stale_plan_is_refused() -> None:
    cap = UnitCap(2)
    _, early = cap.plan([1])
    add(cap, [1])
    with pytest.raises(UsageError, match="plan again"):
        cap.commit(early)
    _, pending = cap.plan([2])
    cap.commit(pending)
    with pytest.raises(UsageError, match="plan again"):
        cap.commit(pending)


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2", None])
def test_limits_that_are_none(limit: Any) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        UnitCap(limit)


def test_merging_adds_limits_and_counts() -> None:
    a, b = UnitCap(2), UnitCap(3)
    add(a, ["x", "x", "y"])
    add(b, ["x", "x", "x", "z"])
    a.merge(b)
    assert a.limit == 5
    assert add(a, ["x"]) == [False]
    assert add(a, ["y"] * 5) == [True] * 4 + [False]
    assert b.limit == 3


def test_merging_disjoint_persons_keeps_the_larger_limit() -> None:
    a, b = UnitCap(2), UnitCap(3)
    add(a, ["x", "x"])
    add(b, ["y"])
    a.merge(b, disjoint=True)
    assert a.limit == 3
    assert add(a, ["x", "x", "y", "y", "y"]) == [True, False, True, True, False]


def test_persons_declared_disjoint_that_are_not() -> None:
    a, b = UnitCap(2), UnitCap(3)
    add(a, ["x"])
    add(b, ["x"])
    before = a.state()
    with pytest.raises(DataRefused, match="declared disjoint"):
        a.merge(b, disjoint=True)
    assert a.limit == 2
    assert_same_state(a.state(), before)


def test_the_state_does_not_tell_the_order() -> None:
    a, b = UnitCap(9), UnitCap(9)
    add(a, ["x", "y", 3, "x"])
    add(b, [3, "x"])
    add(b, ["x", "y"])
    assert_same_state(a.state(), b.state())
    digests = [bytes(row) for row in a.state()[0]]
    assert digests == sorted(digests)


def test_the_state_holds_digests_and_restores() -> None:
    cap = UnitCap(2)
    add(cap, ["098765", "98765", 98765])
    digests, counts = cap.state()
    expected = {
        hashlib.blake2b(name, digest_size=16, person=b"hushsum-unit").digest(): count
        for name, count in ((b"098765", 1), (b"98765", 2))
    }
    assert dict(zip((bytes(row) for row in digests), counts.tolist(), strict=True)) == expected
    restored = UnitCap.from_state(2, digests, counts)
    assert_same_state(restored.state(), cap.state())
    assert add(restored, ["098765", 98765]) == [True, False]


def test_an_empty_state_restores() -> None:
    digests, counts = UnitCap(2).state()
    assert digests.shape == (0, 16)
    assert add(UnitCap.from_state(2, digests, counts), [1]) == [True]


def test_damaged_states_are_refused() -> None:
    cap = UnitCap(2)
    add(cap, [1, 2, 3])
    digests, counts = cap.state()
    damaged: list[tuple[Any, Any]] = [
        (digests[::-1], counts),
        (digests[[0, 0, 1]], counts),
        (digests[:, :15], counts),
        (digests, counts[:2]),
        (digests, counts * 0),
        (digests, counts + 2),
        (digests.astype(np.int64), counts),
        (digests, counts.astype(np.float64)),
    ]
    for bad_digests, bad_counts in damaged:
        with pytest.raises(FileRefused):
            UnitCap.from_state(2, bad_digests, bad_counts)


def test_nothing_secret_leaves_by_accident() -> None:
    cap = UnitCap(2)
    add(cap, [1, 2, 3])
    assert repr(cap) == "UnitCap(limit=2)"
    with pytest.raises(SecretRefused):
        pickle.dumps(cap)
    with pytest.raises(SecretRefused):
        copy.deepcopy(cap)
