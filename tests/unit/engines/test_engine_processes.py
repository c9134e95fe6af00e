"""Faults of real worker processes: each record is counted once, or the job is refused."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest
from tests.engine_files import COLUMNS, counts, empty, one_process, write_files

from hushsum.engines import _counting as file_parts
from hushsum.engines import processes
from hushsum.engines._counting import Driver, RecordColumns, plan_parts
from hushsum.errors import DataRefused, FileRefused, SecretRefused, UsageError
from hushsum.records import row_group_sizes
from hushsum.tally import Checkpoint


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_parts, "_LEAST_BYTES", 1)
    monkeypatch.setattr(file_parts, "PARTS_PER_WORKER", 8)


def workers() -> list[int]:
    found = psutil.Process().children()
    return [each.pid for each in found if any("process_worker" in word for word in each.cmdline())]


def killing(
    when: Callable[[float], bool], times: int = 1
) -> tuple[list[int], Callable[[float | None], None]]:
    """A progress function that kills workers with signal 9."""
    killed: list[int] = []

    def progress(fraction: float | None) -> None:
        if fraction is not None and when(fraction) and len(killed) < times and (found := workers()):
            os.kill(found[0], signal.SIGKILL)
            killed.append(found[0])

    return killed, progress


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("max_per_unit", [None, 2])
def test_a_killed_worker_is_replaced(files: list[str], max_per_unit: int | None) -> None:
    killed, progress = killing(lambda fraction: fraction < 1.0)
    filled = processes.tally(
        files,
        empty(max_per_unit),
        workers=2,
        unit_column=None if max_per_unit is None else "who",
        progress=progress,
    )
    assert killed
    assert counts(filled) == counts(one_process(files, empty(max_per_unit)))
    assert not workers()


def test_a_file_that_kills_every_worker_refuses_the_job(files: list[str]) -> None:
    killed, progress = killing(lambda _: True, times=10)
    with pytest.raises(DataRefused, match=r"one\.parquet was not counted: the workers that read it died"):
        processes.tally(files[:1], empty(), workers=1, progress=progress)
    assert len(killed) == 3
    assert not workers()


@pytest.mark.usefixtures("small_parts")
def test_files_are_cut_into_parts_with_stable_ids(files: list[str]) -> None:
    read = RecordColumns(tuple(COLUMNS))
    parts = plan_parts(files, empty(), read, workers=2)
    assert len(parts) >= 5
    assert [each.id for each in parts] == [each.id for each in plan_parts(files, empty(), read, workers=2)]
    groups = [piece.row_groups for part in parts for piece in part.pieces if piece.row_groups]
    assert groups[0] == (0, groups[0][1])
    assert groups[-1][1] == 9


@pytest.mark.usefixtures("small_parts")
def test_repeated_and_duplicated_parts_count_once(files: list[str]) -> None:
    parts = plan_parts(files, empty(), RecordColumns(tuple(COLUMNS)), workers=2)
    driver = Driver(empty(), parts)
    for part in [*parts, *parts[::2]]:
        sealed = driver.task.count(part)
        first = part in driver.waiting
        assert driver.receive(part.id, sealed) is first
        assert driver.receive(part.id, sealed) is False
    assert counts(driver.finish()) == counts(one_process(files, empty()))


@pytest.mark.usefixtures("small_parts")
def test_a_missing_part_leaves_no_tally(files: list[str]) -> None:
    parts = plan_parts(files, empty(), RecordColumns(tuple(COLUMNS)), workers=2)
    driver = Driver(empty(), parts)
    for part in parts[:-1]:
        driver.receive(part.id, driver.task.count(part))
    with pytest.raises(DataRefused, match=r"three\.arrow was not counted"):
        driver.finish()


def test_a_result_is_for_one_job_and_one_part(files: list[str]) -> None:
    import pickle

    parts = plan_parts(files, empty(), RecordColumns(tuple(COLUMNS)), workers=1)
    driver, other = Driver(empty(), parts), Driver(empty(), parts)
    sealed = driver.task.count(parts[0])
    with pytest.raises(FileRefused):
        other.receive(parts[0].id, sealed)
    changed = bytearray(sealed)
    changed[-1] ^= 1
    with pytest.raises(FileRefused):
        driver.receive(parts[0].id, bytes(changed))
    with pytest.raises(UsageError):
        driver.receive("another", sealed)
    with pytest.raises(SecretRefused):
        pickle.dumps(driver._key)
    # The task is all that workers get, and does not open what they return.
    assert driver.task.public_key in pickle.dumps(driver.task)
    assert counts(driver.finish() if driver.receive(parts[0].id, sealed) else empty())


def test_a_partial_tally_is_not_readable(files: list[str]) -> None:
    """Neither counts nor the marks of a tally appear in what a worker returns."""
    parts = plan_parts(files[:1], empty(), RecordColumns(tuple(COLUMNS)), workers=1)
    driver = Driver(empty(), parts)
    sealed = driver.task.count(parts[0])
    assert b"TALY" not in sealed
    assert b"CONFIDENTIAL" not in sealed
    assert len({len(driver.task.count(part)) for part in parts}) == 1


def test_a_file_that_changes_while_it_is_counted_is_refused(tmp_path: Path) -> None:
    """Workers open a file several times, and records that moved within it could count twice."""
    path = write_files(tmp_path)[1]
    lines = Path(path).read_bytes().splitlines(keepends=True)

    def append(_: float | None) -> None:
        Path(path).write_bytes(b"".join([*lines, lines[-1]]))

    with pytest.raises(DataRefused, match=r"two\.csv was changed while it was counted"):
        processes.tally([path], empty(), workers=1, progress=append)


def test_a_changed_page_with_a_checksum_refuses_the_job(tmp_path: Path) -> None:
    """Without one, other numbers are as good as those that were written."""
    path = Path(write_files(tmp_path)[0])
    table = pq.read_table(path, columns=COLUMNS)
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataRefused, match=f"{path.name} cannot be read as Parquet"):
        processes.tally([str(path)], empty(), workers=1)


@pytest.mark.usefixtures("small_parts")
def test_a_shorter_file_in_the_place_of_a_counted_one_is_called_changed(tmp_path: Path) -> None:
    """Workers miss row groups of it, and the file is not damaged."""
    path = Path(write_files(tmp_path)[0])
    table = pq.read_table(path)

    def replace(_: float | None) -> None:
        pq.write_table(table.slice(0, 1), path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)

    with pytest.raises(DataRefused, match=f"{path.name} was changed while it was counted"):
        processes.tally([str(path)], empty(), workers=1, progress=replace)


@pytest.mark.parametrize("number", [0, 1], ids=["parquet", "csv"])
def test_a_file_that_is_replaced_while_the_count_is_planned_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The parts are those of the old file: row groups that only the new one has would not be counted."""
    path = Path(write_files(tmp_path)[number])

    def replaced(name: str) -> list[int]:
        found = row_group_sizes(name)
        kept, times = path.read_bytes(), path.stat()
        # Another file, with the same contents, size and time.
        path.with_suffix(".new").write_bytes(kept)
        os.utime(path.with_suffix(".new"), ns=(times.st_atime_ns, times.st_mtime_ns))
        path.with_suffix(".new").replace(path)
        return found

    monkeypatch.setattr(file_parts, "row_group_sizes", replaced)
    with pytest.raises(DataRefused, match=f"{path.name} was changed while it was counted"):
        processes.tally([str(path)], empty(), workers=1)


class Cancelled(Exception):
    pass


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("key", [None, bytes(range(32))], ids=["plain", "encrypted"])
def test_a_cancelled_count_continues(files: list[str], tmp_path: Path, key: bytes | None) -> None:
    path = tmp_path / "x.checkpoint"
    started: list[float] = []

    def cancel(fraction: float | None) -> None:
        if fraction:
            raise Cancelled

    def note(fraction: float | None) -> None:
        started.append(fraction or 0.0)

    with pytest.raises(Cancelled):
        processes.tally(files, empty(), workers=2, checkpoint=path, encryption_key=key, progress=cancel)
    assert path.stat().st_mode & 0o077 == 0
    filled = processes.tally(files, empty(), workers=2, checkpoint=path, encryption_key=key, progress=note)
    assert started[0] > 0.0
    assert counts(filled) == counts(one_process(files, empty()))
    assert not path.exists()


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("max_per_unit", [None, 2])
def test_a_count_continues_with_another_number_of_workers(
    files: list[str], tmp_path: Path, max_per_unit: int | None
) -> None:
    """The parts are those that the count began with; workers of a cluster come and go."""
    path = tmp_path / "x.checkpoint"
    pattern = empty(max_per_unit=max_per_unit)
    unit_column = None if max_per_unit is None else "who"
    started: list[float] = []

    def cancel(fraction: float | None) -> None:
        if fraction:
            raise Cancelled

    def note(fraction: float | None) -> None:
        started.append(fraction or 0.0)

    with pytest.raises(Cancelled):
        processes.tally(files, pattern, workers=2, checkpoint=path, unit_column=unit_column, progress=cancel)
    filled = processes.tally(
        files, pattern, workers=1, checkpoint=path, unit_column=unit_column, progress=note
    )
    assert started[0] > 0.0
    assert counts(filled) == counts(one_process(files, pattern))


@pytest.mark.usefixtures("small_parts")
def test_a_checkpoint_of_another_job_is_refused(files: list[str], tmp_path: Path) -> None:
    path = tmp_path / "x.checkpoint"
    Checkpoint(path, {"files": []}).save(empty(), {"parts": []})
    with pytest.raises(UsageError, match="checkpoint must belong to this count"):
        processes.tally(files, empty(), workers=2, checkpoint=path)


def test_a_checkpoint_is_not_a_tally(tmp_path: Path) -> None:
    import hushsum as hs

    Checkpoint(tmp_path / "x.checkpoint", {}).save(empty(), {"parts": []})
    with pytest.raises(FileRefused, match="a count that is not finished"):
        hs.load_tally(tmp_path / "x.checkpoint")
