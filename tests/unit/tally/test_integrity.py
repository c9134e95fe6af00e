"""What would make a claim false without a word: interruptions, races, copies, one person under two names."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import hushsum as hs
from hushsum.errors import (
    ClaimError,
    DataRefused,
    FileRefused,
    IncompatibleTallies,
    SecretRefused,
    UsageError,
)
from hushsum.files import FileKind, read_container, write_container
from hushsum.kernels import Batch
from hushsum.releases import TableFunction
from hushsum.tables import HashRows
from tests.exact_tallies import exact_count, exact_table

Counters = NDArray[np.int64]

KERNEL = hs.EuclideanKernel(dim=2, bandwidth=1.0)
POINTS = np.random.default_rng(0).normal(size=(50, 2))


def empty(max_per_unit: int | None = None) -> hs.Tally:
    return hs.race(KERNEL, rows=6, width=10, seed=1, max_per_unit=max_per_unit)


def interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C arrives while the native loop counts, and is raised when it returns."""
    counted = HashRows.accumulate

    def accumulate(self: HashRows, table: Counters, batch: Batch, *, step: int, threads: int) -> None:
        counted(self, table, batch, step=step, threads=threads)
        raise KeyboardInterrupt

    monkeypatch.setattr(HashRows, "accumulate", accumulate)


@pytest.mark.parametrize("units", [None, list(range(50))])
def test_an_interrupted_tally_refuses_everything(
    units: list[int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = empty(None if units is None else 1)
    with monkeypatch.context() as patch:
        interrupt(patch)
        with pytest.raises(KeyboardInterrupt):
            tally.add(POINTS, units=units)
    for use in (
        lambda: tally.add(POINTS, units=units),
        lambda: tally.release(epsilon=1.0),
        lambda: tally.save(tmp_path / "a.tally"),
        lambda: empty(None if units is None else 1).merge(tally),
        lambda: tally.merge(empty(None if units is None else 1)),
    ):
        with pytest.raises(UsageError, match="interrupted while counting"):
            use()


def test_a_refused_batch_does_not_break_a_tally() -> None:
    tally = empty()
    with pytest.raises(DataRefused):
        tally.add([[np.nan, 0.0]])
    assert exact_count(tally.add(POINTS)) == 50


def test_two_threads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tally, inside, go_on = empty(), threading.Event(), threading.Event()
    counted = HashRows.accumulate

    def slow(self: HashRows, table: Counters, batch: Batch, *, step: int, threads: int) -> None:
        inside.set()
        go_on.wait(10)
        counted(self, table, batch, step=step, threads=threads)

    monkeypatch.setattr(HashRows, "accumulate", slow)
    first = threading.Thread(target=tally.add, args=(POINTS,))
    first.start()
    inside.wait(10)
    with pytest.raises(UsageError, match="another thread"):
        tally.release(epsilon=1.0)
    with pytest.raises(UsageError, match="another thread"):
        tally.add(POINTS)
    go_on.set()
    first.join()
    assert exact_count(tally) == 50


def test_a_copy_or_a_continuation_does_not_merge(tmp_path: Path) -> None:
    monday = empty().add(POINTS)
    monday.save(tmp_path / "monday.tally")
    tuesday = hs.load_tally(tmp_path / "monday.tally").add(POINTS)
    with pytest.raises(IncompatibleTallies, match="same records"):
        tuesday.merge(monday)
    other = empty().add(POINTS)
    both = tuesday.merge(other)
    with pytest.raises(IncompatibleTallies, match="same records"):
        both.merge(other)


def test_copies_of_an_empty_tally_may_be_filled_apart(tmp_path: Path) -> None:
    empty().save(tmp_path / "template.tally")
    north, south = (hs.load_tally(tmp_path / "template.tally").add(POINTS) for _ in range(2))
    assert exact_count(north.merge(south)) == 100


def test_a_number_and_its_text_are_one_person() -> None:
    tally = empty(max_per_unit=3)
    tally.add(POINTS[:3], units=[5, 5, 5]).add(POINTS[:3], units=["5", "5", "5"])
    assert exact_count(tally) == 3
    overlapping = empty(max_per_unit=3).add(POINTS[:1], units=["5"])
    with pytest.raises(DataRefused, match="declared disjoint"):
        tally.merge(overlapping, disjoint_units=True)
    assert exact_count(tally.merge(overlapping)) == 4
    assert tally.max_per_unit == 6


def test_state_does_not_leave_by_the_back_door() -> None:
    with pytest.raises(SecretRefused):
        empty().add(POINTS).__getstate__()


@pytest.mark.parametrize("delta", [2e-5, 0.5])
def test_a_large_delta_needs_a_reason(delta: float) -> None:
    tally = empty().add(POINTS)
    with pytest.raises(ClaimError, match="no population is declared"):
        tally.release(epsilon=1.0, delta=delta)
    assert tally.release(epsilon=1.0, delta=delta, allow_large_delta=True).claim.delta == delta


def test_delta_is_compared_with_the_declared_population() -> None:
    tally = empty().add(POINTS)
    with pytest.raises(ClaimError, match="below 1/"):
        tally.release(epsilon=1.0, delta=1e-6, population=500_000)
    released = tally.release(epsilon=1.0, delta=1e-6, mechanism="discrete gaussian", population=50_000)
    assert released.claim.delta == 1e-6


@pytest.mark.parametrize("promise", [{"epsilon": 1.0}, {"rho": 0.1}])
def test_a_file_whose_noise_does_not_keep_its_claim_is_refused(promise: dict[str, float]) -> None:
    f = empty().add(POINTS).release(rows=6, **promise)  # type: ignore[arg-type]
    assert isinstance(f, TableFunction)
    first, second = io.BytesIO(), io.BytesIO()
    f.save(first)
    first.seek(0)
    header, payload = read_container(first, FileKind.RELEASED, lambda h: f.table.itemsize and _size(h))
    (name,) = promise
    header["claim"][name] = "1/1000000"
    write_container(second, FileKind.RELEASED, header, [payload])
    second.seek(0)
    with pytest.raises(FileRefused):
        hs.load(second)


def _size(header: dict[str, dict[str, str]]) -> int:
    return 60 * np.dtype(header["table"]["type"]).itemsize


@pytest.mark.parametrize(
    "call",
    [
        lambda: empty().add(np.arange(48_843.0)),
        lambda: empty().add(np.zeros((2, 48_843))),
        lambda: hs.release(np.zeros((2, 48_843)), epsilon=1.0, bandwidth=1.0),
        lambda: hs.release([[0.0]] * 48_842 + [[0.0, 1.0]], epsilon=1.0, bandwidth=1.0),
    ],
)
def test_no_message_tells_the_number_of_records(call: object) -> None:
    assert callable(call)
    with pytest.raises(DataRefused) as refusal:
        call()
    assert "4884" not in str(refusal.value)
    assert refusal.value.__context__ is None


def test_columns_are_found_by_name_and_never_swapped() -> None:
    frame = pd.DataFrame({"sbp": [130.0, 90.0], "age": [55.0, 30.0]})
    named = hs.race(KERNEL, rows=6, width=10, seed=1, columns=["age", "sbp"])
    by_name = exact_table(named.add(frame))
    by_position = exact_table(empty().add([[55.0, 130.0], [30.0, 90.0]]))
    np.testing.assert_array_equal(by_name, by_position)
    swapped = hs.race(KERNEL, rows=6, width=10, seed=1, columns=["sbp", "age"])
    with pytest.raises(IncompatibleTallies, match="one fingerprint"):
        named.merge(swapped)
    f = named.release(epsilon=1.0, insecure_noise_seed=1)
    np.testing.assert_array_equal(f(frame), f([[55.0, 130.0], [30.0, 90.0]]))
    with pytest.raises(UsageError, match="must name columns of the data, got 'age'"):
        f(frame.rename(columns={"age": "years"}))


@pytest.mark.parametrize("columns", [["a"] * 2, ["a", "b", "c"], ["a", ""]])
def test_senseless_columns_are_refused(columns: list[str]) -> None:
    with pytest.raises(UsageError, match="columns must"):
        hs.race(KERNEL, columns=columns)
