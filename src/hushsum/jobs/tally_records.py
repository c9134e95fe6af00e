"""Count the records of files into a confidential tally, in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushsum.bases.adjacency_rows import AdjacencyRows
from hushsum.bases.hash_rows import LARGE_TABLE
from hushsum.files.container import declared_fields
from hushsum.jobs.checkpointed_count import (
    CheckpointChoice,
    EngineChoice,
    Resumption,
    check_long_count,
    count_by_engine,
    files_as_they_are,
)
from hushsum.jobs.kernel_and_method import KernelChoice, TableSize, empty_tally
from hushsum.jobs.output_files import STANDARD, check_tally_output
from hushsum.jobs.progress import Progress
from hushsum.jobs.record_files import (
    RecordFiles,
    check_columns,
    column_names,
    dimension,
    first_batch,
    open_file,
    with_all_paths,
    with_first,
)
from hushsum.jobs.tally_graph import count_nodes, refuse_engine
from hushsum.kernels.base import Kernel
from hushsum.privacy.claim import unit_in_words
from hushsum.records.bounds import Bounds
from hushsum.records.record_batches import DEFAULT_BATCH_BYTES
from hushsum.records.remote_files import file_state, shown_path
from hushsum.tally.checkpoint import Checkpoint
from hushsum.tally.tally import Tally

_LARGE_BATCH_BYTES = 1 << 26
"""Every batch visits all rows of a table, so a large table takes more records at a time."""


EmptyTally = Callable[[Kernel, "Sequence[str] | None"], Tally]
"""An empty tally for a kernel and the names of its columns."""


@dataclass(frozen=True, slots=True)
class TallyWritten:
    """What may be said of a tally in a file: everything public, and nothing that was counted."""

    output: str
    fingerprint: str
    basis: str
    kernel: Kernel
    rows: int
    width: int
    bounds: Bounds | None
    unit: str
    max_per_unit: int | None
    graph: str | None
    encrypted: bool
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, tally: Tally, output: Path, *, encrypted: bool) -> TallyWritten:
        """Describe a tally that was just written."""
        basis = tally.basis
        rows, width = basis.shape
        return cls(
            str(output),
            tally.fingerprint,
            basis.name,
            tally.reading.kernel,
            rows,
            width,
            basis.bounds,
            tally.unit,
            tally.max_per_unit,
            basis.graph_in_words(tally.edge_lists) if isinstance(basis, AdjacencyRows) else None,
            encrypted,
            basis.columns,
        )

    @property
    def unit_in_words(self) -> str:
        """Whom a release of it protects unless another unit is requested."""
        return unit_in_words(self.unit, self.max_per_unit or 1)

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        return {
            "output": self.output,
            "confidential": True,
            "encrypted": self.encrypted,
            "fingerprint": self.fingerprint,
            "basis": self.basis,
            "kernel": {"name": self.kernel.name, "parameters": self.kernel.parameters()},
            "rows": self.rows,
            "width": self.width,
            "bounds": None if self.bounds is None else self.bounds.as_json(),
            "columns": None if self.columns is None else list(self.columns),
            "unit": self.unit,
            "max_per_unit": self.max_per_unit,
            "graph": self.graph,
        }


def tally_records(
    records: RecordFiles,
    output: str,
    *,
    kernel: KernelChoice,
    size: TableSize | None = None,
    max_per_unit: int | None = None,
    threads: int | None = None,
    encryption_key: bytes | None = None,
    progress: Progress | None = None,
    engine: EngineChoice | None = None,
    checkpoint: CheckpointChoice | None = None,
) -> TallyWritten:
    """Count files into a ``.tally`` file, which is written at the end and only if everything was counted.

    Every file is opened once before the first is read, so that a wrong name at the end of the list is noticed
    at the start. A count with a checkpoint continues where it was interrupted; what ``progress`` raises
    cancels it, after a last checkpoint. The checkpoint is deleted when the tally is written.

    Raises
    ------
    UsageError
        wrong parameters, a file or column that is not there, or an output that cannot be written.
    DataRefused
        records that break a rule; no file is left behind.
    """
    records = with_all_paths(records)
    path = check_tally_output(output, inputs=records.paths)
    check_columns(records, kernel, max_per_unit)
    if records.edges is not None:
        refuse_engine(engine)
        if checkpoint is not None:
            check_long_count(records.paths, output, None, checkpoint)
        tally = count_nodes(
            records.paths,
            records.edges,
            kernel,
            size or TableSize(),
            threads,
            progress,
            checkpoint,
            encryption_key,
        )
        return _saved(tally, path, checkpoint, encryption_key)
    for name in records.paths:
        if name != STANDARD:
            open_file(records, name, records.columns).close()
    if engine is not None or checkpoint is not None:
        check_long_count(records.paths, output, engine, checkpoint)
    chosen = size or TableSize()

    def empty(built: Kernel, columns: Sequence[str] | None) -> Tally:
        return empty_tally(built, chosen, columns=columns, max_per_unit=max_per_unit, cells=records.cells)

    large = (chosen.rows or 1) * (chosen.width or 1) >= LARGE_TABLE
    batch_bytes = _LARGE_BATCH_BYTES if large else DEFAULT_BATCH_BYTES
    counting = _Counting(records, kernel, empty, threads, batch_bytes)
    if engine is not None:
        tally = counting.by_engine(engine, checkpoint, encryption_key, progress)
    elif checkpoint is None:
        tally = counting.here(None, progress)
    else:
        job = {
            "files": files_as_they_are(records.paths),
            "columns": [records.columns, records.unit_column, records.set_column],
            "cells": declared_fields(records.cells),
            "kernel": declared_fields(kernel),
            "size": declared_fields(chosen),
            "max_per_unit": max_per_unit,
        }
        kept = Checkpoint(checkpoint.path, job, seconds=checkpoint.every, encryption_key=encryption_key)
        tally = counting.here(Resumption(kept), progress)
    return _saved(tally, path, checkpoint, encryption_key)


def _saved(
    tally: Tally, path: Path, checkpoint: CheckpointChoice | None, encryption_key: bytes | None
) -> TallyWritten:
    """Write the tally, and delete the checkpoint that it makes superfluous."""
    tally.save(path, encryption_key=encryption_key)
    if checkpoint is not None:
        Path(checkpoint.path).unlink(missing_ok=True)
    return TallyWritten.of(tally, path, encrypted=encryption_key is not None)


def count_records(
    records: RecordFiles,
    kernel: KernelChoice,
    empty: EmptyTally,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Count files into the tally that ``empty`` makes, once the number of columns is known."""
    return _Counting(records, kernel, empty, threads).here(None, progress)


@dataclass(frozen=True, slots=True)
class _Counting:
    """What is counted, and into which kind of tally."""

    records: RecordFiles
    kernel: KernelChoice
    empty: EmptyTally
    threads: int | None
    batch_bytes: int = DEFAULT_BATCH_BYTES

    def here(self, done: Resumption | None, progress: Progress | None) -> Tally:
        """Count in this process, from where an earlier attempt was interrupted."""
        tally = None if done is None else done.tally
        columns: Sequence[str] | None = self.records.columns
        meter = _Meter(self.records.paths, progress)
        for number, name in enumerate(self.records.paths):
            with open_file(self.records, name, columns, self.batch_bytes) as stream:
                columns = column_names(self.records, stream)
                batches = with_first(stream, self.records.name or shown_path(name))
                for batch, units in batches if done is None else done.rest(number, batches):
                    if tally is None:
                        tally = self._empty(batch, columns)
                    tally.add(batch, units=units, threads=self.threads)
                    if done is not None:
                        done.counted(number, batch.num_rows)
                        done.keep(tally)
                    try:
                        meter.at(stream.progress)
                    except BaseException:
                        if done is not None:
                            done.keep(tally, now=True)
                        raise
            meter.finish(name)
        meter.at(1.0)
        assert tally is not None
        return tally

    def by_engine(
        self,
        engine: EngineChoice,
        checkpoint: CheckpointChoice | None,
        encryption_key: bytes | None,
        progress: Progress | None,
    ) -> Tally:
        """Count with an engine; the first batch says how many columns the kernel has."""
        batch, columns = first_batch(self.records)
        return count_by_engine(
            engine,
            self.records.paths,
            self._empty(batch, columns),
            columns=columns,
            unit_column=self.records.unit_column,
            set_column=self.records.set_column,
            cells=self.records.cells,
            threads=self.threads,
            checkpoint=checkpoint,
            encryption_key=encryption_key,
            progress=progress,
        )

    def _empty(self, batch: Any, columns: Sequence[str] | None) -> Tally:
        wide, names = (None, None) if self.kernel.takes_sets else (dimension(batch), columns)
        return self.empty(self.kernel.build(wide, names), names)


class _Meter:
    """The fraction of all files' bytes; unknown as soon as one of them has no length."""

    def __init__(self, paths: Sequence[str], progress: Progress | None) -> None:
        known = STANDARD not in paths
        self._sizes = {name: max(1, file_state(name).size) for name in paths} if known else {}
        self._total = sum(self._sizes[name] for name in paths) if known else 0
        self._paths = iter(paths)
        self._current = next(self._paths)
        self._before = 0
        self._progress = progress

    def at(self, fraction: float | None) -> None:
        """Tell how far the current file has come."""
        if self._progress is None:
            return
        if not self._total or fraction is None:
            self._progress(None)
        else:
            self._progress((self._before + fraction * self._sizes[self._current]) / self._total)

    def finish(self, name: str) -> None:
        """Go on to the next file."""
        following = next(self._paths, None)
        if self._total and following is not None:
            self._before += self._sizes[name]
        self._current = name if following is None else following
