from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.ledger_fixtures import state

import hushsum as hs
from hushsum.errors import DataRefused, FileRefused, RepeatedRecords, RepeatedSpending, UsageError
from hushsum.ledger import DatasetTerms, Ledger
from hushsum.operations import LedgerOptions, RecordFiles, StepClock, Watch, Watcher, start_or_continue
from hushsum.planning import KernelSpec, TableSpec
from hushsum.privacy import ReleaseRequest
from hushsum.records import CellFormat
from hushsum.releases import NoisyTable
from hushsum.streams import StreamRequest

__all__ = ["state"]

DAY = 86400.0
NOW = 20_000 * DAY + 3600.0


BOUNDS = (0.0, 1.0)


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    return Watch(
        source=str(tmp_path / "in"),
        state=tmp_path / "a.stream",
        output=tmp_path / "out",
        every="day",
        records=RecordFiles((), ("x",), bounds=BOUNDS),
        kernel=KernelSpec(kernel="gaussian", bandwidth=0.1),
        size=TableSpec(method="grid"),
        stream=StreamRequest(release=ReleaseRequest(epsilon=100.0, delta=1e-6), horizon=12),
    )


def put(watch: Watch, name: str, values: list[float], **columns: list[Any]) -> None:
    rows = ["x" + "".join(f",{each}" for each in columns)]
    for i, value in enumerate(values):
        rows.append(f"{value}" + "".join(f",{each[i]}" for each in columns.values()))
    Path(watch.source, name).write_text("\n".join(rows) + "\n")


def run(watch: Watch, now: float) -> list[int]:
    """One run of the command, as cron would start it; the steps that it released."""
    watcher = start_or_continue(watch, now)
    assert watcher is not None
    try:
        return [each.step for each in watcher.run(now)]
    finally:
        watcher.close()


def shown(watch: Watch, name: str = "latest.hush") -> float:
    function = hs.load(watch.output / name)
    assert isinstance(function, NoisyTable)
    return function.count


def test_each_file_is_counted_once_and_every_period_is_one_step(watch: Watch) -> None:
    assert run(watch, NOW) == [], "the first step is due when its period has ended"
    put(watch, "a.csv", [0.5] * 400)
    assert run(watch, NOW + DAY) == [1]
    assert run(watch, NOW + DAY + 60) == []
    put(watch, "b.csv", [0.25] * 300)
    put(watch, ".hidden.csv", [0.25] * 300)
    assert run(watch, NOW + 2 * DAY) == [2]
    assert run(watch, NOW + 3 * DAY) == [3], "also without a file"
    counts = [shown(watch, f"step-{step:02}.hush") for step in (1, 2, 3)]
    np.testing.assert_allclose(counts, [400, 700, 700], atol=8)
    assert (watch.output / "latest.hush").read_bytes() == (watch.output / "step-03.hush").read_bytes()


def test_missed_periods_are_made_up_for(watch: Watch) -> None:
    run(watch, NOW)
    put(watch, "a.csv", [0.5] * 400)
    assert run(watch, NOW + 3 * DAY) == [1, 2, 3]
    np.testing.assert_allclose([shown(watch, f"step-0{i}.hush") for i in (1, 2, 3)], 400, atol=8)
    assert run(watch, NOW + 99 * DAY) == list(range(4, 13)), "the horizon ends"
    assert run(watch, NOW + 100 * DAY) == []


@pytest.mark.parametrize("name", ["a.csv", "b.csv"])
def test_a_changed_file_and_a_renamed_one_are_refused_and_nothing_is_released(
    watch: Watch, name: str
) -> None:
    put(watch, "a.csv", [0.5] * 400)
    run(watch, NOW)
    run(watch, NOW + DAY)
    if name == "b.csv":
        Path(watch.source, "a.csv").rename(Path(watch.source, name))
    else:
        put(watch, name, [0.5] * 401)
    with pytest.raises(DataRefused, match=r"changed|under another name"):
        run(watch, NOW + 2 * DAY)
    assert not (watch.output / "step-02.hush").exists()
    if name == "b.csv":
        Path(watch.source, name).unlink()
    else:
        put(watch, name, [0.5] * 400)
    assert run(watch, NOW + 2 * DAY) == [2]
    assert abs(shown(watch) - 400) < 8


def test_a_file_is_the_same_one_however_the_pattern_is_written(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored copy has another date and inode: only its place says that it was counted."""
    folder = Path(watch.source)
    monkeypatch.chdir(folder.parent)
    run(replace(watch, source="in/*.csv"), NOW)
    put(watch, "a.csv", [0.5] * 400)
    assert run(replace(watch, source="in/*.csv"), NOW + DAY) == [1]
    (folder / "a.csv").unlink()
    put(watch, "a.csv", [0.5] * 400)
    os.utime(folder / "a.csv", (NOW, NOW))
    assert run(replace(watch, source=str(folder / "*.csv")), NOW + 2 * DAY) == [2]
    assert abs(shown(watch) - 400) < 8


def test_equal_contents_are_counted_with_a_warning_for_the_owner(watch: Watch) -> None:
    """Another person may have the same records: refusing the file would show that."""
    run(watch, NOW)
    put(watch, "a.csv", [0.5] * 100)
    run(watch, NOW + DAY)
    put(watch, "b.csv", [0.5] * 100)
    with pytest.warns(RepeatedRecords, match=r"b\.csv"):
        assert run(watch, NOW + 2 * DAY) == [2]
    assert abs(shown(watch) - 200) < 8


@pytest.mark.parametrize("text", ["x,y\n", "x,y", "x,y\n\n", "x,y\n,1\n"])
@pytest.mark.parametrize("cap", [None, 2])
def test_a_file_without_records_is_one_of_zero_records(watch: Watch, text: str, cap: int | None) -> None:
    units: dict[str, Any] = {} if cap is None else {"unit_column": "y", "max_per_unit": cap}
    records = RecordFiles((), ("x",), bounds=BOUNDS, cells=CellFormat(drop_missing=True), **units)
    watch = replace(watch, records=records)
    run(watch, NOW)
    Path(watch.source, "a.csv").write_text(text)
    assert run(watch, NOW + DAY) == [1]
    assert run(watch, NOW + 2 * DAY) == [2]
    assert abs(shown(watch)) < 8


def test_a_refused_run_closes_the_stream_and_counts_nothing_twice(watch: Watch) -> None:
    watcher = start_or_continue(watch, NOW)
    assert watcher is not None
    put(watch, "a.csv", [0.5] * 100)
    Path(watch.source, "b.csv").write_text("x\nwrong\n")
    with pytest.raises(DataRefused):
        watcher.run(NOW + DAY)
    put(watch, "b.csv", [0.25] * 100)
    with pytest.raises(UsageError, match="closed"):
        watcher.run(NOW + DAY)
    assert run(watch, NOW + DAY) == [1]
    assert abs(shown(watch) - 200) < 8


def test_the_claim_assumes_that_no_file_is_refused_or_late(watch: Watch) -> None:
    watcher = start_or_continue(watch, NOW)
    assert watcher is not None
    assert "no file is refused or comes late" in watcher.stream.claim.sentence()
    watcher.close()


def test_a_file_that_breaks_a_rule_stops_everything_until_it_is_corrected(watch: Watch) -> None:
    run(watch, NOW)
    put(watch, "a.csv", [0.5] * 100)
    Path(watch.source, "b.csv").write_text("x\n0.5\nwrong\n")
    with pytest.raises(DataRefused):
        run(watch, NOW + 3 * DAY)
    assert list(watch.output.iterdir()) == []
    put(watch, "b.csv", [0.25] * 100)
    assert run(watch, NOW + 3 * DAY) == [1, 2, 3]
    assert abs(shown(watch) - 200) < 8


def test_a_removed_file_stays_counted(watch: Watch) -> None:
    run(watch, NOW)
    put(watch, "a.csv", [0.5] * 100)
    run(watch, NOW + DAY)
    Path(watch.source, "a.csv").unlink()
    assert run(watch, NOW + 2 * DAY) == [2]
    assert abs(shown(watch) - 100) < 8


def test_persons_are_capped_over_all_files(watch: Watch) -> None:
    records = RecordFiles((), ("x",), bounds=BOUNDS, unit_column="who", max_per_unit=2)
    watch = replace(watch, records=records)
    run(watch, NOW)
    for day, name in enumerate(("a.csv", "b.csv")):
        put(watch, name, [0.5] * 60, who=["ann"] * 30 + ["bob"] * 30)
        if name == "b.csv":
            put(watch, name, [0.5] * 61, who=["ann"] * 30 + ["bob"] * 30 + ["eve"])
        run(watch, NOW + (day + 1) * DAY)
    assert abs(shown(watch) - 5) < 8


def test_the_files_of_a_killed_run_are_written_by_the_next(watch: Watch) -> None:
    run(watch, NOW)
    run(watch, NOW + DAY)
    before = (watch.output / "step-01.hush").read_bytes()
    for path in watch.output.iterdir():
        path.unlink()
    assert run(watch, NOW + DAY) == []
    assert (watch.output / "step-01.hush").read_bytes() == before
    assert (watch.output / "latest.hush").read_bytes() == before


def test_an_older_state_is_refused_by_its_outputs_too(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(watch, NOW)
    run(watch, NOW + DAY)
    old = watch.state.read_bytes()
    run(watch, NOW + 2 * DAY)
    watch.state.write_bytes(old)
    monkeypatch.setenv("HUSHSUM_STATE", str(tmp_path / "another machine"))
    with pytest.warns(RepeatedSpending, match="noted"), pytest.raises(FileRefused, match="older"):
        run(watch, NOW + 3 * DAY)


def test_other_settings_and_other_outputs_are_refused(watch: Watch, tmp_path: Path) -> None:
    run(watch, NOW)
    with pytest.raises(UsageError, match="same settings"):
        run(replace(watch, every="hour"), NOW)
    with pytest.raises(UsageError, match="must be a folder"):
        run(replace(watch, output=tmp_path / "none"), NOW)
    with pytest.raises(UsageError, match="columns"):
        run(replace(watch, records=RecordFiles(()), state=tmp_path / "b.stream"), NOW)
    (watch.output / "latest.hush").write_bytes(b"mine")
    with pytest.raises(UsageError, match="not of this stream"):
        run(watch, NOW + DAY)


def test_nothing_is_started_without_approval(watch: Watch) -> None:
    def decline(plan: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        start_or_continue(watch, NOW, approve=decline)
    assert not watch.state.exists()


def test_a_ledger_is_debited_once(watch: Watch, tmp_path: Path) -> None:
    book = str(tmp_path / "book.db")
    Ledger.create(book).create_dataset("d", DatasetTerms.of(epsilon=150.0, delta=1e-5))
    watch = replace(watch, ledger=LedgerOptions(book, "d"))
    for day in range(3):
        run(watch, NOW + day * DAY)
    entries = Ledger(book).history("d")
    assert [entry.claim.epsilon for entry in entries] == [100.0]
    watch.state.unlink()
    with pytest.raises(UsageError, match="which is gone"):
        run(watch, NOW)


@pytest.mark.parametrize(
    ("period", "seconds"),
    [("day", 86400), ("2 days", 172800), ("6h", 21600), ("15 minutes", 900), ("week", 604800), ("1s", 1)],
)
def test_periods(period: str, seconds: int) -> None:
    clock = StepClock.starting(period, NOW)
    assert clock.ends(1) - clock.start == seconds
    assert clock.start <= NOW < clock.ends(1)
    assert clock.due(NOW) == 0
    assert clock.due(clock.ends(1)) == 1


@pytest.mark.parametrize(
    ("period", "ends"),
    [
        ("month", ["2024-11-01", "2024-12-01", "2025-01-01"]),
        ("2 months", ["2024-11-01", "2025-01-01", "2025-03-01"]),
        ("quarter", ["2025-01-01", "2025-04-01", "2025-07-01"]),
        ("year", ["2025-01-01", "2026-01-01", "2027-01-01"]),
    ],
)
def test_calendar_months(period: str, ends: list[str]) -> None:
    clock = StepClock.starting(period, NOW)
    assert clock.start <= NOW < clock.ends(1)
    for step, end in enumerate(ends, 1):
        assert clock.in_words(step) == f"{end} 00:00:00 UTC"
        assert clock.due(clock.ends(step) - 1) == step - 1
        assert clock.due(clock.ends(step)) == step


@pytest.mark.parametrize("period", ["", "0 days", "moon", "m 2", "-1h", "1.5h", "day day", "101 years"])
def test_periods_that_are_none(period: str) -> None:
    with pytest.raises(UsageError, match="every"):
        StepClock.starting(period, NOW)


def test_days_end_at_midnight_and_weeks_on_monday() -> None:
    assert StepClock.starting("day", NOW).in_words(1).endswith("00:00:00 UTC")
    assert StepClock.starting("week", NOW).in_words(1) == "2024-10-07 00:00:00 UTC"


def test_a_watch_by_months_continues_on_its_clock(watch: Watch) -> None:
    monthly = replace(watch, every="month")
    assert run(monthly, NOW) == []
    assert run(monthly, NOW + 27 * DAY) == [], "it is the 31st of October"
    assert run(monthly, NOW + 28 * DAY) == [1]


def test_watchers_say_when_they_are_finished(watch: Watch) -> None:
    watcher = start_or_continue(watch, NOW)
    assert isinstance(watcher, Watcher)
    assert watcher.next_due > NOW
    watcher.run(NOW + 50 * DAY)
    assert watcher.stream.finished
    watcher.close()
