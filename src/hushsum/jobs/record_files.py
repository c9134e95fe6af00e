"""Which columns of which files make the records, and how the files are opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from hushsum.errors import DataRefused, FilePath, Parameter, UsageError
from hushsum.jobs.kernel_and_method import KernelChoice
from hushsum.jobs.output_files import STANDARD, refuse_repeated
from hushsum.jobs.tally_graph import EdgeColumns
from hushsum.kernels.parameters import check_cap
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.records.record_batches import DEFAULT_BATCH_BYTES, RecordStream, open_batches
from hushsum.records.remote_files import expanded, shown_path


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """Which columns of which files make the records.

    ``columns`` default to all but ``unit_column``, of the first file; the other files must have them too.
    ``set_column`` is for kernels on sets, and so is ``edges``, whose records are the nodes of a graph.
    ``name`` is what error messages call the file; by default its path. ``cells`` are read as declared.
    """

    paths: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    unit_column: str | None = None
    set_column: str | None = None
    name: str | None = None
    edges: EdgeColumns | None = None
    cells: CellFormat = PLAIN


def with_all_paths(records: RecordFiles) -> RecordFiles:
    """The files with wildcards in their paths replaced by what these match.

    Raises
    ------
    UsageError
        if wildcards match no file.
    """
    return replace(records, paths=all_paths(records.paths))


def all_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """All files that paths name, with wildcards or without; standard input stays."""
    return tuple(each for path in paths for each in ([path] if path == STANDARD else expanded([path])))


def first_batch(records: RecordFiles) -> tuple[Any, Sequence[str] | None]:
    """The first records of the first file, and the names of their columns; every file is opened once."""
    for name in records.paths[1:]:
        open_file(records, name, records.columns).close()
    with open_file(records, records.paths[0], records.columns) as stream:
        batch, _ = next(iter(with_first(stream, records.name or records.paths[0])))
        return batch, column_names(records, stream)


def check_columns(records: RecordFiles, kernel: KernelChoice, max_per_unit: int | None) -> None:
    """Refuse columns that do not suit the kernel, before any file is read."""
    if not records.paths:
        raise UsageError(
            parameter="files",
            rule="must be at least one file of records",
            got="none",
            remedy="'-' reads CSV from standard input",
        )
    refuse_repeated(records.paths)
    if records.edges is not None:
        _check_edges(records, kernel, max_per_unit)
        return
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


def _check_edges(records: RecordFiles, kernel: KernelChoice, max_per_unit: int | None) -> None:
    if not kernel.takes_sets:
        raise UsageError(
            parameter="edges",
            rule="is for kernels of sets",
            got=f"it for the {kernel.name} kernel",
            remedy="leave it out, or use jaccard",
        )
    for name in ("columns", "unit_column", "set_column"):
        if getattr(records, name) is not None:
            raise UsageError(parameter=name, rule=("and ", Parameter("edges"), " exclude each other"))
    if max_per_unit is not None:
        raise UsageError(parameter="max_per_unit", rule="must be left out: a node is one record")
    if records.cells.drop_missing:
        raise UsageError(parameter="drop_missing", rule=("and ", Parameter("edges"), " exclude each other"))
    if STANDARD in records.paths:
        raise UsageError(
            parameter="edges", rule="must come from files", got="standard input", remedy="give a path"
        )


def open_file(
    records: RecordFiles,
    name: str,
    columns: Sequence[str] | None,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    *,
    may_be_empty: bool = False,
) -> RecordStream:
    """One of the files as a stream; errors name it where there are several."""
    try:
        return open_batches(
            name,
            columns=columns,
            unit_column=records.unit_column,
            set_column=records.set_column,
            batch_bytes=batch_bytes,
            name=records.name,
            cells=records.cells,
            may_be_empty=may_be_empty,
        )
    except UsageError as error:
        shown = shown_path(name)
        if len(records.paths) == 1 or error.names_file(shown):
            raise
        raise UsageError(rule=(FilePath(shown), ": ", *error.parts())) from None


def column_names(records: RecordFiles, stream: RecordStream) -> Sequence[str] | None:
    """The columns of a record; None where records are sets and none were named."""
    return records.columns if records.set_column is not None else stream.column_names


def with_first(stream: RecordStream, name: str) -> Iterator[tuple[Any, Any]]:
    """The batches; a stream has at least one, or says so itself."""
    batches = iter(stream)
    try:
        first = next(batches)
    except StopIteration:
        raise DataRefused(
            rule=(FilePath(name), " must have at least one record"), got="none", remedy="check what wrote it"
        ) from None
    return chain([first], batches)


def dimension(batch: Any) -> int:
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
