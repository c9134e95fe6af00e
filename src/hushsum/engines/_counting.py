"""Counting by workers: a job is cut into parts, and the driver merges each part exactly once.

A job consists of public facts: the pattern of the tally, the job's public key, and parts with ids that do not
change when a part is tried again. A worker counts a part from the first record to the last into an empty
tally and returns it sealed, or returns why it is refused. The driver opens the first result of each part and
drops every later one, so a task that an engine repeats or duplicates counts once. If one part is refused, the
whole job is, and there is no tally of the rest.

Sums of integers do not depend on their order, so the counts are those of one process bit for bit, however the
records are cut into parts. Noise is not drawn here: the driver's tally is released as any other.

Only the driver of a job can read the results. A job has an X25519 key pair, whose public half travels with
the tasks; the private half stays in the driver's memory. A worker encrypts its result with a key from the
exchange of a fresh key pair with the job's public key (as in ECIES, and RFC 9180's base mode). So nothing
that an engine keeps of a job, in a spill, a shuffle file, a cache or a log, opens a partial tally, not even
together with the tasks; and when the driver ends, nothing does.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypedDict

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from numpy.typing import NDArray

from hushsum._types import Secret
from hushsum.errors import (
    DataRefused,
    FilePath,
    FileRefused,
    HushsumError,
    SuspiciousParameter,
    UsageError,
    Words,
    error_from_json,
    parts_of,
    words_as_json,
)
from hushsum.files import KEY_BYTES, Buffer, Section, declared_fields, seal, unseal
from hushsum.kernels import check_cap, thread_count
from hushsum.records import (
    PLAIN,
    CellFormat,
    FileState,
    RecordStream,
    expanded,
    file_state,
    identify,
    is_url,
    open_batches,
    pyarrow,
    refuse_repeated,
    row_group_sizes,
    shown_path,
)
from hushsum.tally import (
    DEFAULT_SECONDS,
    Checkpoint,
    Tally,
    TallyPattern,
    is_empty,
    stored_job,
    tally_as_message,
    tally_from_bytes,
)

_LABEL = b"hushsum job 1"


class JobKey(Secret):
    """The private key of one job; it never leaves the process that made it."""

    REFUSAL = "the key of a job must stay in the process that made it", "send its public half"
    __slots__ = ("_private", "public")

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def open(self, part: str, sealed: Buffer) -> memoryview:
        """What `seal_part` encrypted for this job and this part.

        Raises
        ------
        FileRefused
            if it was sealed for another job or part, or changed on the way.
        """
        view = memoryview(sealed)
        if len(view) < KEY_BYTES:
            raise FileRefused("the message of a worker is too short", remedy="run the job again")
        sender = bytes(view[:KEY_BYTES])
        try:
            shared = self._private.exchange(X25519PublicKey.from_public_bytes(sender))
        except ValueError:
            raise FileRefused("the message of a worker is damaged", remedy="run the job again") from None
        return unseal(shared, view[KEY_BYTES:], _bound(sender, self.public, part))


def seal_part(public: bytes, part: str, pieces: Iterable[Buffer | Section]) -> bytes:
    """Encrypt pieces for the job with this public key, as the result of one part."""
    private = X25519PrivateKey.generate()
    sender = private.public_key().public_bytes_raw()
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    return sender + seal(shared, pieces, _bound(sender, public, part))


def _bound(sender: bytes, public: bytes, part: str) -> bytes:
    """What every chunk is authenticated with."""
    return b"\0".join([_LABEL, sender, public, part.encode()])


def naming(error: HushsumError, name: str) -> HushsumError:
    """The error, with the file or partition in its sentence."""
    if error.names_file(name):
        return error
    return type(error)((FilePath(name), ": ", *error.parts()))


def refusal_as_json(error: HushsumError) -> dict[str, Any]:
    """An error as data; unlike in a problem document of the service, paths keep their folders."""
    remedy = None if error.remedy is None else _as_json(error.remedy)
    return error.as_json() | {"kind": error.kind, "rule": _as_json(error.rule), "remedy": remedy}


def _as_json(words: Words) -> list[Any]:
    return [
        {"file": os.fspath(each.path), "service": each.service, "quoted": each.quoted}
        if isinstance(each, FilePath)
        else words_as_json(each)
        for each in parts_of(words)
    ]


# How often a part is given to a worker before the job is refused because workers die of it.
MOST_ATTEMPTS: Final = 3

# Called with the fraction of the work that is done. What it raises cancels the job.
Progress = Callable[[float | None], None]

_LENGTH: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class NamedBatch:
    """Records of one file or partition, which ``name`` names in messages."""

    name: str
    records: Any = field(repr=False)
    units: Any = field(default=None, repr=False)


class Part(Protocol):
    """A part of the records of a job, the same ones whenever and wherever it is read."""

    @property
    def id(self) -> str:
        """Unlike that of any other part of the job."""

    @property
    def name(self) -> str:
        """The file or partition that is read first, for messages."""

    @property
    def size(self) -> int:
        """About how much work it is, compared with the other parts."""


@dataclass(frozen=True, slots=True)
class CountingTask:
    """What every worker of a job gets: public facts alone."""

    pattern: TallyPattern
    public_key: bytes
    threads: int = 1

    def count(self, part: FilePart) -> bytes:
        """The sealed result of a part: its tally, or why it is refused.

        Errors are returned, not raised, because engines log what a task raises, with its arguments.
        """
        return self.count_batches(part.id, part.name, part.batches())

    def count_batches(self, id: str, name: str, batches: Iterable[NamedBatch]) -> bytes:
        """The sealed result of the records of a part, as `count` returns it."""
        head: dict[str, Any] = {"refusal": None, "warnings": []}
        body: list[Buffer | Section] = []
        tally = self.pattern.empty()
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", SuspiciousParameter)
                for batch in batches:
                    name = batch.name
                    tally.add(batch.records, units=batch.units, threads=self.threads, allow_clipping=True)
            found = {str(each.message) for each in caught if issubclass(each.category, SuspiciousParameter)}
            head["warnings"] = sorted(found)
            body = [tally_as_message(tally)]
        except HushsumError as error:
            head["refusal"] = refusal_as_json(naming(error, name))
        except Exception as error:
            # The message of an error that nobody expected may quote records.
            refused = DataRefused(
                (FilePath(name), f" could not be counted: {type(error).__name__}"),
                remedy="check the data, and the memory of the workers",
            )
            head["refusal"] = refusal_as_json(refused)
        encoded = json.dumps(head).encode()
        return seal_part(self.public_key, id, [_LENGTH.pack(len(encoded)), encoded, *body])


class Driver:
    """The side of a job that has the key: it merges each part once, or refuses the job.

    Parameters
    ----------
    tally : Tally
        Empty; the pattern of the result. It stays empty.
    parts : sequence of Part, optional
        All parts of the job, in a fixed order; None if an engine finds them while it runs.
    threads : int, optional
        Of each worker; by default one.
    checkpoint : Checkpoint, optional
        Where to continue from, and where to keep what has been merged.
    progress : callable, optional
        Called with the fraction of the work that is done; what it raises cancels the job.
    """

    def __init__(
        self,
        tally: Tally,
        parts: Sequence[Part] | None = None,
        *,
        threads: int | None = None,
        checkpoint: Checkpoint | None = None,
        progress: Progress | None = None,
    ) -> None:
        pattern = TallyPattern.of(tally)
        self._key = JobKey()
        self.task = CountingTask(pattern, self._key.public, 1 if threads is None else thread_count(threads))
        self._parts: Mapping[str, Part] | None = None if parts is None else {each.id: each for each in parts}
        if parts is not None and len(self._parts or ()) != len(parts):
            raise UsageError("the parts of a job must have different ids", remedy="name each part once")
        self._sizes = {id: each.size for id, each in (self._parts or {}).items()}
        self._merged: set[str] = set()
        self._total = pattern.empty()
        self._warned: set[str] = set()
        self._checkpoint = checkpoint
        self._progress = progress
        if checkpoint is not None and (found := checkpoint.load(parts=list)) is not None:
            self._total, done = found
            self._merged = set(done["parts"])

    @property
    def waiting(self) -> list[Part]:
        """The parts that are not merged yet, in their order."""
        return [each for id, each in (self._parts or {}).items() if id not in self._merged]

    def receive(self, id: str, sealed: Buffer) -> bool:
        """Merge the result of a part; False if it was merged before, and this one is dropped.

        Raises
        ------
        HushsumError
            the error of the worker, which names the file; the job is refused.
        """
        if self._parts is not None and id not in self._parts:
            raise UsageError("a worker returned a part that this job does not have", remedy="run it again")
        if id in self._merged:
            return False
        plain = self._key.open(id, sealed)
        start = _LENGTH.size + _LENGTH.unpack(plain[: _LENGTH.size])[0]
        head = json.loads(bytes(plain[_LENGTH.size : start]))
        if head["refusal"] is not None:
            raise error_from_json(head["refusal"]["kind"], head["refusal"])
        self._total.merge(
            tally_from_bytes(plain[start:]), disjoint_units=self._total.max_per_unit is not None
        )
        self._merged.add(id)
        for sentence in head["warnings"]:
            if sentence not in self._warned:
                self._warned.add(sentence)
                warnings.warn(SuspiciousParameter(sentence), stacklevel=4)
        if self._checkpoint is not None:
            self._checkpoint.save_if_due(self._total, self._done())
        return True

    def report(self) -> None:
        """Say how far the job is; if that cancels it, keep what has been merged."""
        if self._progress is None:
            return
        fraction = None
        if self._parts is not None:
            fraction = sum(self._sizes[id] for id in self._merged) / max(1, sum(self._sizes.values()))
        try:
            self._progress(fraction)
        except BaseException:
            if self._checkpoint is not None:
                self._checkpoint.save(self._total, self._done())
            raise

    def finish(self) -> Tally:
        """The tally of all parts.

        Raises
        ------
        DataRefused
            if a part is missing; there is no tally of the others.
        """
        if missing := self.waiting:
            raise lost(missing[0].name)
        if is_empty(self._total):
            raise DataRefused("the source must have at least one record", got="none")
        return self._total

    def _done(self) -> dict[str, Any]:
        return {"parts": sorted(self._merged)}


def columns_without_cap(tally: Tally, source: str, columns: Sequence[str] | None) -> tuple[str, ...] | None:
    """The columns to count of a source whose records come in no fixed order; refuses a cap on the records of
    a person for it.

    Which records of a person are kept must depend on that person's records alone; the order of a query's rows
    may depend on all of them.
    """
    if tally.max_per_unit is not None:
        raise UsageError(
            "max_per_unit",
            f"needs files: the records of {source} have no fixed order",
            remedy="write them to Parquet files, and count those",
        )
    return tally.basis.columns if columns is None else tuple(columns)


def check_columns(columns: Sequence[str], available: Iterable[str], source: str) -> None:
    """Refuse columns that a source does not have."""
    missing = [each for each in columns if each not in set(available)]
    if missing:
        raise UsageError("columns", f"must name columns of {source}", got=repr(missing[0]))


def lost(name: str) -> DataRefused:
    """The refusal of a job because the workers that counted a part died."""
    return DataRefused(
        (FilePath(name), " was not counted: the workers that read it died"),
        remedy="give them more memory, or check the file",
    )


# Small enough to keep every worker busy to the end, large enough that merging costs little.
PARTS_PER_WORKER: Final = 4

MOST_WORKERS: Final = 1 << 16
_LEAST_BYTES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Which columns of the files make the records; see `hushsum.records.open_batches`."""

    columns: Sequence[str] | None = None
    unit_column: str | None = None
    set_column: str | None = None
    cells: CellFormat = PLAIN

    def open(self, path: str, row_groups: range | None = None) -> RecordStream:
        """The records of a file."""
        return open_batches(
            path,
            columns=self.columns,
            unit_column=self.unit_column,
            set_column=self.set_column,
            row_groups=row_groups,
            cells=self.cells,
        )


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
            row_groups = None if self.row_groups is None else range(*self.row_groups)
            with read.open(self.path, row_groups) as stream:
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
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    tally: Tally,
    read: RecordColumns,
    *,
    workers: int,
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
    listed = expanded([files] if isinstance(files, str | os.PathLike) else files)
    paths = [each if is_url(each) else os.path.abspath(each) for each in listed]
    if not paths:
        raise UsageError("files", "must be at least one file of records", got="none")
    refuse_repeated(paths)
    check_cap(read.unit_column, tally.max_per_unit, parameter="unit_column")
    if read.set_column is None and not read.columns:
        read = replace(read, columns=tally.basis.columns)
    pieces: list[FilePiece] = []
    states: dict[str, FileState] = {}
    for path in paths:
        try:
            # Before the file is opened: one that takes its place from here on is noticed after the count.
            states[path] = state = file_state(path)
            with read.open(path) as stream:
                if read.set_column is None:
                    read = replace(read, columns=tuple(stream.column_names))
            pieces += _pieces(path, state)
        except HushsumError as error:
            raise naming(error, shown_path(path)) from None
    if tally.max_per_unit is not None:
        whole = tuple(FilePiece(path, None, state.size, state) for path, state in states.items())
        return [FilePart(whole, read, (i, workers)) for i in range(workers)]
    target = max(_LEAST_BYTES, sum(each.size for each in pieces) // (PARTS_PER_WORKER * workers))
    return [FilePart(group, read) for group in _grouped(pieces, target)]


class CountKeywords(TypedDict, total=False):
    """The keywords of every engine; they make `CountOptions`."""

    columns: Sequence[str] | None
    unit_column: str | None
    set_column: str | None
    cells: CellFormat
    threads: int | None
    progress: Progress | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: float
    encryption_key: bytes | None


@dataclass(frozen=True, slots=True)
class CountOptions(RecordColumns):
    """What is counted of the files, by how many threads, and where an interrupted count continues from: a
    confidential file, written every ``checkpoint_every`` seconds and deleted at the end.
    """

    threads: int | None = None
    progress: Progress | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: float = DEFAULT_SECONDS
    encryption_key: bytes | None = None


def count_files(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    tally: Tally,
    workers: int,
    run: Callable[[Driver, list[FilePart]], Tally],
    options: CountOptions,
) -> Tally:
    """The tally that ``run`` makes of the parts of files, by any engine; refused if a file is changed
    meanwhile, whatever else is wrong with it.
    """
    columns, checkpoint, key = options.columns, options.checkpoint, options.encryption_key
    columns = None if columns is None else tuple(columns)
    read = RecordColumns(columns, options.unit_column, options.set_column, options.cells)
    # Parts are cut for as many workers as those of a checkpoint were, since they must be the same.
    job = None if checkpoint is None else stored_job(checkpoint, key)
    planned = None if job is None else job.get("workers")
    if type(planned) is int and 1 <= planned <= MOST_WORKERS:
        workers = planned
    parts = plan_parts(files, tally, read, workers=workers)
    # The state that every file had before it was divided.
    states = {piece.path: piece.state for part in parts for piece in part.pieces}
    saved = None
    if checkpoint is not None:
        agreed = {
            "parts": [part.id for part in parts],
            "files": [[shown_path(path), state.size, state.modified] for path, state in states.items()],
            "columns": [list(parts[0].read.columns or ()), read.unit_column, read.set_column],
            "cells": declared_fields(read.cells),
            "fingerprint": tally.fingerprint,
            "max_per_unit": tally.max_per_unit,
            "workers": workers,
        }
        saved = Checkpoint(checkpoint, agreed, seconds=options.checkpoint_every, encryption_key=key)
    driver = Driver(tally, parts, threads=options.threads, checkpoint=saved, progress=options.progress)
    try:
        filled = run(driver, parts)
    except HushsumError:
        _refuse_changed(states)
        raise
    _refuse_changed(states)
    if saved is not None:
        saved.remove()
    return filled


def _refuse_changed(states: Mapping[str, FileState]) -> None:
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
                (FilePath(shown_path(path)), " was changed while it was counted"),
                remedy="count a copy that nothing writes to",
            )


def _pieces(path: str, state: FileState) -> list[FilePiece]:
    sizes = row_group_sizes(path)
    if not any(sizes):
        return [FilePiece(path, None, max(1, state.size), state)]
    return [FilePiece(path, (i, i + 1), size, state) for i, size in enumerate(sizes) if size]


def _grouped(pieces: Sequence[FilePiece], target: int) -> Iterator[tuple[FilePiece, ...]]:
    """Groups of neighbouring pieces, each group large enough for one task.

    Row groups that follow each other become one piece.
    """
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
