"""Files as parts of a job: row groups, whole files, or shares of the persons."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushsum.engines.protocol import NamedBatch
from hushsum.engines.worker_errors import naming
from hushsum.errors import DataRefused, FilePath, HushsumError, UsageError
from hushsum.kernels.parameters import check_cap
from hushsum.records.arrow import pyarrow
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.records.record_batches import open_batches, row_group_sizes
from hushsum.records.remote_files import FileState, expanded, file_state, is_url, shown_path
from hushsum.records.unit_ids import identify
from hushsum.tally.checkpoint import stored_job
from hushsum.tally.tally import Tally

PARTS_PER_WORKER: Final = 4
"""Small enough to keep every worker busy to the end, large enough that merging costs little."""

MOST_WORKERS: Final = 1 << 16
_LEAST_BYTES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Which columns of the files make the records; see `hushsum.records.record_batches.open_batches`."""

    columns: tuple[str, ...] | None = None
    unit_column: str | None = None
    set_column: str | None = None
    cells: CellFormat = PLAIN


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A file, or some row groups of it; ``state`` is that of the file before it was divided."""

    path: str = field(repr=False)
    row_groups: tuple[int, int] | None
    size: int
    state: FileState = field(repr=False)

    @property
    def name(self) -> str:
        """The file as messages show it, without what may be secret in an address."""
        return shown_path(self.path)

    def batches(self, read: RecordColumns) -> Iterator[NamedBatch]:
        """Its records; errors name the file."""
        try:
            with open_batches(
                self.path,
                columns=read.columns,
                unit_column=read.unit_column,
                set_column=read.set_column,
                row_groups=None if self.row_groups is None else range(*self.row_groups),
                cells=read.cells,
            ) as stream:
                for batch, units in stream:
                    yield NamedBatch(self.name, batch, units)
        except HushsumError as error:
            raise naming(error, self.name) from None


@dataclass(frozen=True, slots=True)
class FilePart:
    """Pieces of files that one task counts.

    With ``share = (i, k)`` only the records of those persons are counted whose digest is i modulo k. All the
    records of a person are then in one part, in the order of the files, so that a cap keeps the same ones as
    in one process.
    """

    pieces: tuple[FilePiece, ...]
    read: RecordColumns
    share: tuple[int, int] | None = None

    @property
    def id(self) -> str:
        """A digest of what the part consists of."""
        pieces = [(each.path, each.row_groups, each.size) for each in self.pieces]
        return hashlib.sha256(repr((pieces, self.share)).encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """The file whose records are counted first."""
        return self.pieces[0].name

    @property
    def size(self) -> int:
        """The bytes of its records."""
        return sum(each.size for each in self.pieces)

    def batches(self) -> Iterator[NamedBatch]:
        """Its records; errors name the file that they occurred in."""
        for piece in self.pieces:
            for batch in piece.batches(self.read):
                if self.share is None:
                    yield batch
                    continue
                kept = _in_share(batch.units, *self.share)
                if kept.any():
                    mask = pyarrow().array(kept)
                    yield NamedBatch(batch.name, batch.records.filter(mask), batch.units.filter(mask))


def plan_parts(
    files: Sequence[str | os.PathLike[str]], tally: Tally, read: RecordColumns, *, workers: int
) -> list[FilePart]:
    """Cut files into parts of about equal size; every file is opened once, so that a wrong name or a missing
    column is noticed before anything is counted.

    A Parquet file is cut between its row groups, any other file is read by one worker. Under a cap every
    worker reads all files, and counts its share of the persons.

    Raises
    ------
    UsageError
        no files, a file that is named twice, does not exist or lacks a column, or persons without a cap.
    DataRefused
        a file that cannot be read as its name says.
    """
    if read.cells.drop_missing:
        tally.restrict_to_add_remove()
    paths = _checked(files)
    check_cap(read.unit_column, tally.max_per_unit, parameter="unit_column")
    columns = read.columns or (None if read.set_column is not None else tally.basis.columns)
    pieces: list[FilePiece] = []
    states: dict[str, FileState] = {}
    for path in paths:
        try:
            # Before the file is opened: one that takes its place from here on is noticed after the count.
            states[path] = state = file_state(path)
            with open_batches(
                path,
                columns=columns,
                unit_column=read.unit_column,
                set_column=read.set_column,
                cells=read.cells,
            ) as stream:
                columns = None if read.set_column is not None else tuple(stream.column_names)
            pieces += _pieces(path, state)
        except HushsumError as error:
            raise naming(error, shown_path(path)) from None
    read = replace(read, columns=columns)
    if tally.max_per_unit is not None:
        whole = tuple(FilePiece(path, None, state.size, state) for path, state in states.items())
        return [FilePart(whole, read, (i, workers)) for i in range(workers)]
    target = max(_LEAST_BYTES, sum(each.size for each in pieces) // (PARTS_PER_WORKER * workers))
    return [FilePart(group, read) for group in _grouped(pieces, target)]


def file_states(parts: Sequence[FilePart]) -> dict[str, FileState]:
    """The state that every file of these parts had before it was divided into them."""
    return {piece.path: piece.state for part in parts for piece in part.pieces}


def planned_workers(
    workers: int, checkpoint: str | os.PathLike[str] | None, encryption_key: bytes | None
) -> int:
    """For how many workers files are cut: those that there are, or for which the count began that continues
    from a checkpoint, whose parts must be the same.
    """
    job = None if checkpoint is None else stored_job(checkpoint, encryption_key)
    planned = None if job is None else job.get("workers")
    return planned if type(planned) is int and 1 <= planned <= MOST_WORKERS else workers


@contextmanager
def refusing_changes(states: Mapping[str, FileState]) -> Iterator[None]:
    """Refuse a count, in the block, of files that are changed meanwhile, whatever else is wrong with them."""
    try:
        yield
    except HushsumError:
        refuse_changed(states)
        raise
    refuse_changed(states)


def refuse_changed(states: Mapping[str, FileState]) -> None:
    """Refuse a count of files that have been changed since they were in these states.

    Workers open a file for each part, and again if a part is repeated, so records that moved within it might
    have been counted twice.
    """
    for path, state in states.items():
        try:
            changed = file_state(path) != state
        except UsageError:
            changed = True
        if changed:
            raise DataRefused(
                rule=(FilePath(shown_path(path)), " was changed while it was counted"),
                remedy="count a copy that nothing writes to",
            )


def file_facts(parts: Sequence[FilePart], states: Mapping[str, FileState]) -> dict[str, Any]:
    """What must agree for a count of these parts to continue from a checkpoint: parts and unchanged files."""
    return {
        "parts": [part.id for part in parts],
        "files": [[shown_path(path), state.size, state.modified] for path, state in states.items()],
        "columns": [list(parts[0].read.columns or ()), parts[0].read.unit_column, parts[0].read.set_column],
        "cells": repr(parts[0].read.cells),
    }


def _checked(files: Sequence[str | os.PathLike[str]]) -> list[str]:
    if isinstance(files, str | os.PathLike):
        files = [files]
    paths = [each if is_url(each) else os.path.abspath(each) for each in expanded(files)]
    if not paths:
        raise UsageError(parameter="files", rule="must be at least one file of records", got="none")
    places = [each if is_url(each) else os.path.realpath(each) for each in paths]
    for i, place in enumerate(places):
        if place in places[:i]:
            raise UsageError(
                rule=(
                    FilePath(shown_path(paths[i]), quoted=True),
                    " is named twice, and its records would count twice",
                ),
                remedy="name it once",
            )
    return paths


def _pieces(path: str, state: FileState) -> list[FilePiece]:
    sizes = row_group_sizes(path)
    if not any(sizes):
        return [FilePiece(path, None, max(1, state.size), state)]
    return [FilePiece(path, (i, i + 1), size, state) for i, size in enumerate(sizes) if size]


def _grouped(pieces: Sequence[FilePiece], target: int) -> Iterator[tuple[FilePiece, ...]]:
    """Neighbouring pieces, until they are large enough; row groups that follow each other become one."""
    group: list[FilePiece] = []
    for piece in pieces:
        last = group[-1] if group else None
        if last is not None and sum(each.size for each in group) >= target:
            yield tuple(group)
            group, last = [], None
        if last is not None and (joined := _joined(last, piece)) is not None:
            group[-1] = joined
        else:
            group.append(piece)
    if group:
        yield tuple(group)


def _joined(first: FilePiece, second: FilePiece) -> FilePiece | None:
    """One piece for row groups that follow each other in a file; None for others."""
    if first.row_groups is None or second.row_groups is None or first.path != second.path:
        return None
    if first.row_groups[1] != second.row_groups[0]:
        return None
    rows = (first.row_groups[0], second.row_groups[1])
    return FilePiece(first.path, rows, first.size + second.size, first.state)


def _in_share(units: Any, share: int, shares: int) -> NDArray[np.bool_]:
    """Which records belong to a share of the persons; the digest of an id decides."""
    ids = identify(units)
    first = np.array([int.from_bytes(digest[:8], "little") % shares for digest in ids.digests], np.int64)
    return np.asarray(first[ids.person] == share)
