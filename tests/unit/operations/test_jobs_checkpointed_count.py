"""Counts that are cancelled and continued equal those that were not, and nothing is counted twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.engine_files import counts

import hushsum as hs
from hushsum.errors import FileRefused, UsageError
from hushsum.operations import CheckpointChoice, EngineChoice, RecordFiles, TallyDescription, tally_records
from hushsum.planning import KernelSpec, TableSpec

NAMES = ("a.csv", "b.csv", "c.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("records")
    random = np.random.default_rng(3)
    for name, rows in zip(NAMES, (90_000, 10, 1000), strict=True):
        table = np.column_stack([random.integers(0, 700, rows), random.normal(size=(rows, 2))])
        np.savetxt(made / name, table, ["%d", "%.5f", "%.5f"], ",", header="who,x,y", comments="")
    return made


def count(folder: Path, output: Path, max_per_unit: int | None = None, **more: Any) -> TallyDescription:
    unit_column = None if max_per_unit is None else "who"
    return tally_records(
        RecordFiles(
            tuple(str(folder / name) for name in NAMES),
            ("x", "y"),
            unit_column=unit_column,
            max_per_unit=max_per_unit,
        ),
        str(output),
        kernel=KernelSpec(kernel="euclidean", bandwidth=1.0),
        size=TableSpec(rows=8, width=30),
        **more,
    )


class Cancelled(Exception):
    pass


@pytest.mark.parametrize("key", [None, bytes(32)], ids=["plain", "encrypted"])
@pytest.mark.parametrize("max_per_unit", [None, 3])
def test_a_count_that_is_cancelled_after_every_batch(
    folder: Path, tmp_path: Path, max_per_unit: int | None, key: bytes | None
) -> None:
    checkpoint = CheckpointChoice(str(tmp_path / "x.checkpoint"))
    cancelled: list[float] = []

    def cancel(fraction: float | None) -> None:
        assert fraction is not None
        if fraction < 1.0:
            cancelled.append(fraction)
            raise Cancelled

    for _ in range(20):
        try:
            count(
                folder,
                tmp_path / "x.tally",
                max_per_unit,
                checkpoint=checkpoint,
                encryption_key=key,
                progress=cancel,
            )
            break
        except Cancelled:
            assert Path(checkpoint.path).stat().st_mode & 0o077 == 0
            assert not (tmp_path / "x.tally").exists()
    assert len(cancelled) >= 3
    assert not Path(checkpoint.path).exists()
    count(folder, tmp_path / "whole.tally", max_per_unit)
    found = hs.load_tally(tmp_path / "x.tally", encryption_key=key)
    assert counts(found) == counts(hs.load_tally(tmp_path / "whole.tally"))


def interrupted(folder: Path, tmp_path: Path, **more: Any) -> CheckpointChoice:
    checkpoint = CheckpointChoice(str(tmp_path / "x.checkpoint"))

    def cancel(_: float | None) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        count(folder, tmp_path / "x.tally", checkpoint=checkpoint, progress=cancel, **more)
    return checkpoint


def test_a_checkpoint_of_other_parameters_or_files_is_refused(folder: Path, tmp_path: Path) -> None:
    checkpoint = interrupted(folder, tmp_path)
    with pytest.raises(UsageError, match="checkpoint must belong to this count"):
        count(folder, tmp_path / "x.tally", 3, checkpoint=checkpoint)
    with pytest.raises(UsageError, match="checkpoint must belong to this count"):
        count(folder, tmp_path / "x.tally", checkpoint=checkpoint, engine=EngineChoice("processes", 1))
    state = (folder / "b.csv").stat()
    (folder / "b.csv").touch()
    with pytest.raises(UsageError, match="checkpoint must belong to this count"):
        count(folder, tmp_path / "x.tally", checkpoint=checkpoint)
    os.utime(folder / "b.csv", ns=(state.st_atime_ns, state.st_mtime_ns))
    count(folder, tmp_path / "x.tally", checkpoint=checkpoint)


def test_a_damaged_checkpoint_is_refused(folder: Path, tmp_path: Path) -> None:
    checkpoint = interrupted(folder, tmp_path)
    data = bytearray(Path(checkpoint.path).read_bytes())
    data[len(data) // 2] ^= 1
    Path(checkpoint.path).write_bytes(data)
    with pytest.raises(FileRefused):
        count(folder, tmp_path / "x.tally", checkpoint=checkpoint)


def test_what_cannot_be_read_again_has_no_checkpoint(tmp_path: Path) -> None:
    records = RecordFiles(("-",))
    choice = KernelSpec(kernel="euclidean", bandwidth=1.0)
    output = str(tmp_path / "x.tally")
    with pytest.raises(UsageError, match="checkpoint needs files"):
        tally_records(records, output, kernel=choice, checkpoint=CheckpointChoice(str(tmp_path / "c")))
    with pytest.raises(UsageError, match="engine needs files"):
        tally_records(records, output, kernel=choice, engine=EngineChoice("processes"))


def test_checkpoint_and_output_are_two_files(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="two files"):
        count(folder, tmp_path / "x.tally", checkpoint=CheckpointChoice(str(tmp_path / "x.tally")))


def test_engines_by_name() -> None:
    with pytest.raises(UsageError, match="engine must be one of processes, dask"):
        EngineChoice("ray")
    with pytest.raises(UsageError, match="address is not for the engine processes"):
        EngineChoice("processes", address="tcp://127.0.0.1:8786")
