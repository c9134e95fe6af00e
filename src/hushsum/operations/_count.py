"""Count files of records or edges into a tally: in this process or by an engine, with checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from hushsum.declaration import check_fields, setting
from hushsum.errors import Argument, UsageError
from hushsum.errors import Parameter as NameOf
from hushsum.files import declared_fields
from hushsum.kernels import Kernel, kernel_as_json
from hushsum.methods import count_rows
from hushsum.planning import EmptyTally, KernelSpec, TableSpec, built, empty_tally, takes_sets
from hushsum.privacy import PERSON
from hushsum.records import (
    DEFAULT_BATCH_BYTES,
    DEFAULT_MEMORY,
    file_state,
    is_url,
    read_pairs,
    refuse_repeated,
    shown_path,
)
from hushsum.tables import LARGE_TABLE, AdjacencyRows, HashRows, Reading, reading_from_json
from hushsum.tally import DEFAULT_SECONDS, Checkpoint, Tally, load_tally, public_header

from ._files import (
    STANDARD,
    Progress,
    RecordFiles,
    check_columns,
    check_output,
    check_tally_output,
    column_names,
    dimension,
    first_batch,
    open_file,
    with_all_paths,
    with_first,
)

of_long_counts = partial(setting, group="Long counts")
ENGINES: Final = ("processes", "dask", "spark")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Which engine counts, if one does. ``workers`` is for processes; ``address`` is that of a scheduler, or
    the master URL of Spark.
    """

    engine: str | None = of_long_counts(
        None,
        "processes of this machine, or a dask or spark cluster. Default: threads of this process.",
        choices=ENGINES,
        metavar="NAME",
    )
    workers: int | None = of_long_counts(
        None, "Number of processes of --engine processes.", at_least=1, at_most=1024
    )
    address: str | None = of_long_counts(
        None, "Address of the scheduler of --engine dask, or master URL of --engine spark."
    )

    def __post_init__(self) -> None:
        check_fields(self)
        wrong = {None: ("workers", "address"), "processes": ("address",)}.get(self.engine, ("workers",))
        for name in wrong:
            if getattr(self, name) is not None:
                if self.engine is None:
                    raise UsageError(name, ("goes with ", Argument("engine")), got="none")
                raise UsageError(name, f"is not for the engine {self.engine}")

    def given(self) -> EngineChoice | None:
        """The engine, or None where this process counts."""
        return None if self.engine is None else self


@dataclass(frozen=True, slots=True)
class CheckpointChoice:
    """Where an unfinished count is kept, if anywhere, and how often it is written."""

    path: str = of_long_counts(
        "",
        "Confidential file from which the same command continues if it is interrupted.",
        name="checkpoint",
        metavar="PATH",
    )
    every: float = of_long_counts(
        DEFAULT_SECONDS,
        "Time between two checkpoints.",
        name="checkpoint_every",
        at_least=0,
        metavar="SECONDS",
    )

    def given(self) -> CheckpointChoice | None:
        """The checkpoint; None if there is no file."""
        return self if self.path else None


def _check_long_count(
    paths: Sequence[str], output: str, engine: EngineChoice | None, checkpoint: CheckpointChoice | None
) -> None:
    """Refuse what cannot be read twice or by others, and a checkpoint that cannot be written."""
    if STANDARD in paths and (engine is not None or checkpoint is not None):
        rule = "needs files, which can be read again"
        got = "standard input"
        remedy = "write it to a file first"
        raise UsageError("engine" if checkpoint is None else "checkpoint", rule, got=got, remedy=remedy)
    if checkpoint is not None:
        check_output(checkpoint.path, inputs=paths)
        if os.path.realpath(checkpoint.path) == os.path.realpath(output):
            raise UsageError("checkpoint", ("and ", NameOf("output"), " must be two files"), got="one")


class _Resumption:
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


def _files_as_they_are(paths: Sequence[str]) -> list[list[Any]]:
    """The files of a job, to notice that one has changed since a checkpoint."""
    places = [shown_path(path) if is_url(path) else os.path.abspath(path) for path in paths]
    return [
        [place, state.size, state.modified]
        for place, state in zip(places, map(file_state, paths), strict=True)
    ]


# Every batch visits all rows of a table, so a large table takes more records at a time.
_LARGE_BATCH_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class TallyDescription:
    """The public header of a confidential tally in a file: no counts, and not how many persons it holds."""

    path: str
    header: Mapping[str, Any]
    reading: Reading

    @classmethod
    def of(cls, path: str) -> TallyDescription:
        """Describe a ``.tally`` file, encrypted or not."""
        header = public_header(path)
        return cls(path, header, reading_from_json(header))

    @property
    def graph(self) -> str | None:
        """The kind of graph that is counted; None if the records are not a graph."""
        basis = self.reading.basis
        lists = self.header.get("edge_lists", 1)
        return basis.graph_in_words(lists) if isinstance(basis, AdjacencyRows) else None

    @property
    def max_per_unit(self) -> int | None:
        """The most records per person that are counted; None if the unit is not a person."""
        units = self.header["units"]
        return None if units is None else int(units["limit"])

    @property
    def unit(self) -> str:
        """Whom a release of it protects unless another unit is requested."""
        return self.reading.basis.units[0] if self.max_per_unit is None else PERSON

    def as_json(self) -> dict[str, Any]:
        """The description for a machine."""
        basis, header = self.reading.basis, self.header
        rows, width = basis.shape
        return {
            "kind": "confidential tally",
            "source": self.path,
            "warning": str(header["warning"]),
            "encrypted": header["encryption"] is not None,
            "fingerprint": basis.fingerprint,
            "basis": basis.name,
            "kernel": kernel_as_json(self.reading.kernel),
            "rows": rows,
            "width": width,
            "bounds": None if basis.bounds is None else basis.bounds.as_json(),
            "columns": None if basis.columns is None else list(basis.columns),
            "unit": self.unit,
            "max_per_unit": self.max_per_unit,
            "graph": self.graph,
            "seed": basis.parameters().get("seed"),
            "edge_lists": header.get("edge_lists", 1),
            "add_remove_only": bool(header.get("add_remove_only", False)),
            "producer": str(header["producer"]),
        }


def tally_records(
    records: RecordFiles,
    output: str,
    *,
    kernel: KernelSpec | Kernel,
    size: TableSpec | None = None,
    threads: int | None = None,
    encryption_key: bytes | None = None,
    progress: Progress | None = None,
    engine: EngineChoice | None = None,
    checkpoint: CheckpointChoice | None = None,
) -> TallyDescription:
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
    check_columns(records, kernel)
    if records.edges is not None and engine is not None:
        # Edges are grouped by a sort of all of them.
        raise UsageError("engine", ("and ", NameOf("edges"), " exclude each other"), remedy="leave it out")
    if records.edges is None:
        for name in records.paths:
            if name != STANDARD:
                open_file(records, name, records.columns).close()
    if engine is not None or checkpoint is not None:
        _check_long_count(records.paths, output, engine, checkpoint)
    chosen = size or TableSpec()

    def kept(**job: Any) -> Checkpoint | None:
        if checkpoint is None:
            return None
        public = {
            "files": _files_as_they_are(records.paths),
            "kernel": kernel_as_json(kernel) if isinstance(kernel, Kernel) else declared_fields(kernel),
            "size": declared_fields(chosen),
        }
        return Checkpoint(
            checkpoint.path, {**public, **job}, seconds=checkpoint.every, encryption_key=encryption_key
        )

    if records.edges is not None:
        assert not isinstance(kernel, Kernel)
        for name in records.paths:
            # The start of every file is read before the first is counted.
            with closing(read_pairs(name, records.edges.columns)) as pairs:
                next(pairs, None)
        rows = empty_tally(kernel.build(None), chosen, bounds=None, columns=None, max_per_unit=None).basis
        assert isinstance(rows, HashRows)  # the only basis of sets
        # The memory decides the order of the nodes.
        unfinished = kept(edges=declared_fields(records.edges), memory=DEFAULT_MEMORY)
        edges = records.edges.read(records.paths)
        tally = count_rows(edges, rows, threads=threads, progress=progress, checkpoint=unfinished)
    else:

        def empty(kernel: Kernel, columns: Sequence[str] | None) -> Tally:
            return empty_tally(
                kernel,
                chosen,
                bounds=records.bounds,
                columns=columns,
                max_per_unit=records.max_per_unit,
                cells=records.cells,
            )

        counting = _Counting(records, kernel, empty, threads, progress)
        if engine is not None:
            tally = counting.by_engine(engine, checkpoint, encryption_key)
        else:
            unfinished = kept(
                columns=[records.columns, records.unit_column, records.set_column],
                cells=declared_fields(records.cells),
                bounds=declared_fields(records.bounds),
                max_per_unit=records.max_per_unit,
            )
            large = (chosen.rows or 1) * (chosen.width or 1) >= LARGE_TABLE
            tally = counting.here(
                None if unfinished is None else _Resumption(unfinished),
                _LARGE_BATCH_BYTES if large else DEFAULT_BATCH_BYTES,
            )
    tally.save(path, encryption_key=encryption_key)
    if checkpoint is not None:
        Path(checkpoint.path).unlink(missing_ok=True)
    return TallyDescription.of(str(path))


def count_records(
    records: RecordFiles,
    kernel: KernelSpec | Kernel,
    empty: EmptyTally,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Tally:
    """Count files into the tally that ``empty`` makes, once the number of columns is known."""
    return _Counting(records, kernel, empty, threads, progress).here()


@dataclass(frozen=True, slots=True)
class _Counting:
    """The records to count, and the kind of tally."""

    records: RecordFiles
    kernel: KernelSpec | Kernel
    empty: EmptyTally
    threads: int | None
    progress: Progress | None

    def here(self, done: _Resumption | None = None, batch_bytes: int = DEFAULT_BATCH_BYTES) -> Tally:
        """Count in this process, from where an earlier attempt was interrupted."""
        tally = None if done is None else done.tally
        columns: Sequence[str] | None = self.records.columns
        meter = Meter(self.records.paths, self.progress)
        for number, name in enumerate(self.records.paths):
            with open_file(self.records, name, columns, batch_bytes) as stream:
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
        self, engine: EngineChoice, checkpoint: CheckpointChoice | None, encryption_key: bytes | None
    ) -> Tally:
        """Count with an engine; the first batch says how many columns the kernel has."""
        batch, columns = first_batch(self.records)
        paths, tally = self.records.paths, self._empty(batch, columns)
        shared: dict[str, Any] = {
            "columns": columns,
            "unit_column": self.records.unit_column,
            "set_column": self.records.set_column,
            "cells": self.records.cells,
            "threads": self.threads,
            "progress": self.progress,
        }
        lasting: dict[str, Any] = {
            "checkpoint": None if checkpoint is None else checkpoint.path,
            "checkpoint_every": DEFAULT_SECONDS if checkpoint is None else checkpoint.every,
            "encryption_key": encryption_key,
        }
        if engine.engine == "processes":
            from hushsum.engines import processes

            return processes.tally(paths, tally, workers=engine.workers, **shared, **lasting)
        if engine.address is None:
            rule = f"must be given for the engine {engine.engine}"
            remedy = ("give that of the scheduler, or use ", Argument("engine", "processes"))
            raise UsageError("address", rule, got="none", remedy=remedy)
        if engine.engine == "spark":
            if checkpoint is not None:
                raise UsageError("checkpoint", "is not for the engine spark", remedy="use processes or dask")
            from hushsum.engines import spark

            with spark.connected(engine.address) as session:
                return spark.tally(list(paths), tally, session, **shared)
        from hushsum.engines import dask

        with dask.connected(engine.address) as client:
            return dask.tally(paths, tally, client=client, **shared, **lasting)

    def _empty(self, batch: Any, columns: Sequence[str] | None) -> Tally:
        wide, names = (None, None) if takes_sets(self.kernel) else (dimension(batch), columns)
        return self.empty(built(self.kernel, wide, names, self.records.bounds), names)


class Meter:
    """Measures progress as a fraction of the bytes of all files.

    The fraction is unknown if one of the files has no length.
    """

    def __init__(self, paths: Sequence[str], progress: Progress | None) -> None:
        known = STANDARD not in paths
        self._sizes = {name: max(1, file_state(name).size) for name in paths} if known else {}
        self._total = sum(self._sizes[name] for name in paths) if known else 0
        self._paths = iter(paths)
        self._current = next(self._paths)
        self._before = 0
        self._progress = progress

    def at(self, fraction: float | None) -> None:
        """Report how far the current file has come."""
        if self._progress is None:
            return
        if not self._total or fraction is None:
            self._progress(None)
        else:
            self._progress((self._before + fraction * self._sizes[self._current]) / self._total)

    def finish(self, name: str) -> None:
        """Continue with the next file."""
        following = next(self._paths, None)
        if self._total and following is not None:
            self._before += self._sizes[name]
        self._current = name if following is None else following


def merge_tallies(
    paths: Sequence[str],
    output: str,
    *,
    disjoint_units: bool = False,
    encryption_key: bytes | None = None,
    progress: Progress | None = None,
) -> TallyDescription:
    """Write the exact sum of tallies; one is held in memory besides the sum.

    Parameters
    ----------
    disjoint_units : bool
        Declares that no person is in two of them, so that the caps on a person's records do not add up.
    encryption_key : bytes, optional
        Opens the encrypted ones, and encrypts the output.

    Raises
    ------
    UsageError
        if a file is named twice: its records would count twice, which no claim covers.
    IncompatibleTallies
        if two fingerprints differ; nothing is written.
    """
    if len(paths) < 2:
        raise UsageError("tallies", "must be at least two", got=len(paths))
    refuse_repeated(paths)
    path = check_tally_output(output)
    total = load_tally(paths[0], encryption_key=encryption_key)
    for done, each in enumerate(paths[1:], start=1):
        if progress is not None:
            progress(done / len(paths))
        total.merge(load_tally(each, encryption_key=encryption_key), disjoint_units=disjoint_units)
    total.save(path, encryption_key=encryption_key)
    return TallyDescription.of(str(path))
