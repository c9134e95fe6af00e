"""Count the records of files into a confidential tally, in one pass and bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from hushsum.errors import DataRefused, FilePath, UsageError
from hushsum.jobs.files import STANDARD, check_tally_output, refuse_repeated
from hushsum.jobs.kernel_and_method import KernelChoice, TableSize, empty_tally
from hushsum.jobs.progress import Progress
from hushsum.kernels.base import Kernel
from hushsum.kernels.parameters import check_cap
from hushsum.records.bounds import Bounds
from hushsum.records.streams import RecordStream, open_batches
from hushsum.tally.tally import Tally


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """Which columns of which files make the records.

    ``columns`` default to all but ``unit_column``, of the first file; the other files must have them too.
    ``set_column`` is for kernels on sets. ``name`` is what error messages call the file; by default its path.
    """

    paths: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    unit_column: str | None = None
    set_column: str | None = None
    name: str | None = None


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
    max_per_unit: int | None
    encrypted: bool
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, tally: Tally, output: Path, *, encrypted: bool) -> TallyWritten:
        """Describe a tally that was just written."""
        rows, width = tally.basis.shape
        return cls(
            str(output),
            tally.fingerprint,
            tally.basis.name,
            tally.reading.kernel,
            rows,
            width,
            tally.basis.bounds,
            tally.max_per_unit,
            encrypted,
            tally.basis.columns,
        )

    @property
    def unit(self) -> str:
        """Whom a release of it will protect, in words."""
        return "record" if self.max_per_unit is None else f"person with up to {self.max_per_unit} records"

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
            "unit": "record" if self.max_per_unit is None else "person",
            "max_per_unit": self.max_per_unit,
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
) -> TallyWritten:
    """Count files into a ``.tally`` file, which is written at the end and only if everything was counted.

    Every file is opened once before the first is read, so that a wrong name at the end of the list is noticed
    at the start.

    Raises
    ------
    UsageError
        wrong parameters, a file or column that is not there, or an output that cannot be written.
    DataRefused
        records that break a rule; no file is left behind.
    """
    path = check_tally_output(output, inputs=records.paths)
    _check_columns(records, kernel, max_per_unit)
    for name in records.paths:
        if name != STANDARD:
            _open(records, name, records.columns).close()
    tally = _count(records, kernel, size or TableSize(), max_per_unit, threads, progress)
    tally.save(path, encryption_key=encryption_key)
    return TallyWritten.of(tally, path, encrypted=encryption_key is not None)


def _check_columns(records: RecordFiles, kernel: KernelChoice, max_per_unit: int | None) -> None:
    if not records.paths:
        raise UsageError(
            parameter="files",
            rule="must be at least one file of records",
            got="none",
            remedy="'-' reads CSV from standard input",
        )
    refuse_repeated(records.paths)
    if kernel.takes_sets and records.set_column is None:
        raise UsageError(
            parameter="set_column",
            rule=f"must name the column of sets for the {kernel.name} kernel",
            got="none",
            remedy="give it",
        )
    if not kernel.takes_sets and records.set_column is not None:
        raise UsageError(
            parameter="set_column",
            rule="is for kernels of sets",
            got=f"it for the {kernel.name} kernel",
            remedy="leave it out, or use jaccard",
        )
    check_cap(records.unit_column, max_per_unit, parameter="unit_column")


def _open(records: RecordFiles, name: str, columns: Sequence[str] | None) -> RecordStream:
    try:
        return open_batches(
            name,
            columns=columns,
            unit_column=records.unit_column,
            set_column=records.set_column,
            name=records.name,
        )
    except UsageError as error:
        if len(records.paths) == 1 or error.names_file(name):
            raise
        raise UsageError(rule=(FilePath(name), ": ", *error.parts())) from None


def _count(
    records: RecordFiles,
    kernel: KernelChoice,
    size: TableSize,
    max_per_unit: int | None,
    threads: int | None,
    progress: Progress | None,
) -> Tally:
    tally: Tally | None = None
    columns: Sequence[str] | None = records.columns
    meter = _Meter(records.paths, progress)
    for name in records.paths:
        with _open(records, name, columns) as stream:
            if records.set_column is None:
                columns = stream.column_names
            for batch, units in _with_first(stream, records.name or name):
                if tally is None:
                    tally = empty_tally(
                        kernel.build(None if kernel.takes_sets else _dimension(batch)),
                        size,
                        columns=None if kernel.takes_sets else columns,
                        max_per_unit=max_per_unit,
                    )
                tally.add(batch, units=units, threads=threads)
                meter.at(stream.progress)
        meter.finish(name)
    meter.at(1.0)
    assert tally is not None
    return tally


def _with_first(stream: RecordStream, name: str) -> Iterator[tuple[Any, Any]]:
    """The batches; a stream has at least one, or says so itself."""
    batches = iter(stream)
    try:
        first = next(batches)
    except StopIteration:
        raise DataRefused(
            rule=(FilePath(name), " must have at least one record"), got="none", remedy="check what wrote it"
        ) from None
    return chain([first], batches)


def _dimension(batch: Any) -> int:
    """How many numbers a record has: the columns, or the length of the lists in a column of embeddings."""
    if batch.num_columns > 1:
        return int(batch.num_columns)
    column = batch.column(0)
    while hasattr(column, "storage"):
        column = column.storage
    lengths = getattr(column.type, "list_size", None)
    if lengths is not None:
        return int(lengths)
    first = column[0].as_py() if hasattr(column.type, "value_type") else None
    return len(first) if isinstance(first, list) and first else 1


class _Meter:
    """The fraction of all files' bytes; unknown as soon as one of them has no length."""

    def __init__(self, paths: Sequence[str], progress: Progress | None) -> None:
        known = STANDARD not in paths
        self._sizes = {name: max(1, os.path.getsize(name)) for name in paths} if known else {}
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
