"""Long counts of ``hushsum tally``: checkpoints to continue from, and engines that share the work."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hushsum.errors import Argument, Parameter, UsageError
from hushsum.jobs.output_files import STANDARD, check_output
from hushsum.jobs.progress import Progress
from hushsum.kernels.parameters import one_of
from hushsum.records.cell_format import CellFormat
from hushsum.records.remote_files import file_state, is_url, shown_path
from hushsum.tally.checkpoint import DEFAULT_SECONDS, Checkpoint
from hushsum.tally.tally import Tally

ENGINES = ("processes", "dask", "spark")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine counts. ``workers`` is for processes; ``address`` is that of a scheduler, or the master
    URL of Spark.
    """

    name: str
    workers: int | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        one_of("engine", self.name, ENGINES)
        wrong = "address" if self.name == "processes" else "workers"
        if getattr(self, wrong) is not None:
            raise UsageError(
                parameter=wrong, rule=f"is not for the engine {self.name}", remedy="leave it out"
            )


@dataclass(frozen=True, slots=True)
class CheckpointChoice:
    """Where a count that is not finished is kept, and how often it is written."""

    path: str
    every: float = DEFAULT_SECONDS


def check_long_count(
    paths: Sequence[str], output: str, engine: EngineChoice | None, checkpoint: CheckpointChoice | None
) -> None:
    """Refuse what cannot be read twice or by others, and a checkpoint that cannot be written."""
    if STANDARD in paths and (engine is not None or checkpoint is not None):
        raise UsageError(
            parameter="engine" if checkpoint is None else "checkpoint",
            rule="needs files, which can be read again",
            got="standard input",
            remedy="write it to a file first",
        )
    if checkpoint is not None:
        check_output(checkpoint.path, inputs=paths)
        if os.path.realpath(checkpoint.path) == os.path.realpath(output):
            raise UsageError(
                parameter="checkpoint", rule=("and ", Parameter("output"), " must be two files"), got="one"
            )


class Resumption:
    """How far a count in one process has come, in files and records, in step with its tally."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._file, self._rows = 0, 0
        self.tally: Tally | None = None
        found = checkpoint.load(file=int, rows=int)
        if found is not None:
            self.tally, done = found
            self._file, self._rows = done["file"], done["rows"]

    def rest(self, number: int, batches: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """The records of a file that are not counted yet, in batches."""
        if number < self._file:
            return
        skipped = self._rows if number == self._file else 0
        for batch, units in batches:
            already = min(skipped, batch.num_rows)
            skipped -= already
            if already < batch.num_rows:
                yield batch.slice(already), None if units is None else units.slice(already)

    def counted(self, number: int, rows: int) -> None:
        """Note records of a file, which are in the tally."""
        before = self._rows if number == self._file else 0
        self._file, self._rows = number, before + rows

    def keep(self, tally: Tally, *, now: bool = False) -> None:
        """Write the checkpoint if it is due, or now."""
        done = {"file": self._file, "rows": self._rows}
        if now:
            self._checkpoint.save(tally, done)
        else:
            self._checkpoint.save_if_due(tally, done)


def files_as_they_are(paths: Sequence[str]) -> list[list[Any]]:
    """The files of a job, to notice that one has changed since a checkpoint."""
    states = [
        (shown_path(path) if is_url(path) else os.path.abspath(path), file_state(path)) for path in paths
    ]
    return [[path, state.size, state.modified] for path, state in states]


def count_by_engine(
    engine: EngineChoice,
    paths: Sequence[str],
    tally: Tally,
    *,
    columns: Sequence[str] | None,
    unit_column: str | None,
    set_column: str | None,
    cells: CellFormat,
    threads: int | None,
    checkpoint: CheckpointChoice | None,
    encryption_key: bytes | None,
    progress: Progress | None,
) -> Tally:
    """The files counted by an engine into a tally like the given empty one."""
    more: dict[str, Any] = {
        "columns": columns,
        "unit_column": unit_column,
        "set_column": set_column,
        "cells": cells,
        "threads": threads,
        "checkpoint": None if checkpoint is None else checkpoint.path,
        "checkpoint_every": DEFAULT_SECONDS if checkpoint is None else checkpoint.every,
        "encryption_key": encryption_key,
        "progress": progress,
    }
    if engine.name == "processes":
        from hushsum.engines import processes

        return processes.tally(paths, tally, workers=engine.workers, **more)
    if engine.address is None:
        raise UsageError(
            parameter="address",
            rule=f"must be given for the engine {engine.name}",
            got="none",
            remedy=("give that of the scheduler, or use ", Argument("engine", "processes")),
        )
    if engine.name == "spark":
        if checkpoint is not None:
            raise UsageError(
                parameter="checkpoint", rule="is not for the engine spark", remedy="use processes or dask"
            )
        from hushsum.engines import spark

        chosen = {
            name: more[name]
            for name in ("columns", "unit_column", "set_column", "cells", "threads", "progress")
        }
        with spark.connected(engine.address) as session:
            return spark.tally(list(paths), tally, session, **chosen)
    from hushsum.engines import dask, dask_clusters

    with dask_clusters.connected(engine.address) as client:
        return dask.tally(paths, tally, client=client, **more)
