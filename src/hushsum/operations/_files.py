"""Files of operations: which columns of which files make the records, public samples, and files to write."""

from __future__ import annotations

import filecmp
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from hushsum.declaration import setting
from hushsum.errors import DataRefused, FilePath, UsageError
from hushsum.errors import Parameter as NameOf
from hushsum.files import KEY_BYTES, FileKind
from hushsum.kernels import Kernel, check_cap
from hushsum.methods import all_methods
from hushsum.planning import BOUNDS, KernelSpec, takes_sets
from hushsum.records import (
    DEFAULT_BATCH_BYTES,
    PLAIN,
    CellFormat,
    DeclaredBounds,
    EdgeList,
    RecordStream,
    expanded,
    open_batches,
    pyarrow,
    read_edges,
    refuse_repeated,
    shown_path,
)
from hushsum.releases import Released, ReleasedFunction, load_function, load_released

Progress = Callable[[float | None], None]
"""Called with the fraction done, or None if the length of the work is unknown."""


STANDARD = "-"
"""The name of standard input or output where a path is expected."""


def check_output(output: str, *, inputs: Sequence[str] = ()) -> Path:
    """The path of a file that can be written, so that no work is lost for a typing error.

    Raises
    ------
    UsageError
        if its folder does not exist or cannot be written, it is a folder itself, or it is one of the inputs.
    """
    if output == STANDARD:
        raise UsageError("output", "must be a file", got="'-'")
    path = Path(output)
    folder = path.parent
    shown = FilePath(folder, service="the folder", quoted=True)
    if not folder.is_dir():
        rule = ("the folder ", shown, " must exist to write ", FilePath(path.name, quoted=True), " in it")
        raise UsageError(rule, remedy="make it first")
    if path.is_dir():
        raise UsageError((FilePath(output, quoted=True), " is a folder"))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(("the folder ", shown, " must be writable"), remedy="check its permissions")
    for each in inputs:
        if path.exists() and each != STANDARD and Path(each).exists() and path.samefile(each):
            raise UsageError((FilePath(output, quoted=True), " is an input too, and would be overwritten"))
    return path


def check_tally_output(output: str, *, inputs: Sequence[str] = ()) -> Path:
    """The path of a tally to be written; it may replace a tally, and nothing else.

    Raises
    ------
    UsageError
        as `check_output` does, for a name that belongs to public files, and for a file that is not a tally.
    """
    path = check_output(output, inputs=inputs)
    if path.suffix.lower() == ".hush":
        raise UsageError(
            ("a tally is secret, and .hush is for public files, got ", FilePath(output, quoted=True)),
            remedy="let its name end in .tally",
        )
    if path.exists() and kind_of(path) is not FileKind.TALLY and path.stat().st_size:
        raise UsageError((FilePath(output, quoted=True), " exists and is not a tally, so it is not replaced"))
    return path


def check_function_output(output: str, *, inputs: Sequence[str] = (), interactive: bool = False) -> Path:
    """The path of a released function to be written; it never replaces a tally.

    A released function is replaced, and any other file only if a person confirms it (``interactive``).

    Raises
    ------
    UsageError
        as `check_output` does, for a name that belongs to tallies, and for a file that is not replaced.
    """
    path = check_output(output, inputs=inputs)
    if path.suffix.lower() != ".hush":
        remedy = "let its name end in .hush; .tally is for confidential tallies"
        raise UsageError("output", "must end in .hush", got=repr(path.name), remedy=remedy)
    if not path.exists():
        return path
    kind = kind_of(path)
    if kind not in (None, FileKind.RELEASED):
        raise UsageError((FilePath(output, quoted=True), " is confidential, which a release never replaces"))
    if kind is None and not interactive and path.stat().st_size:
        raise UsageError(
            (FilePath(output, quoted=True), " exists and is not a released function, so it is not replaced")
        )
    return path


def check_answers_output(output: str, *, inputs: Sequence[str] = ()) -> Path:
    """The path of a file of answers to be written; it never replaces a tally or a released file.

    Raises
    ------
    UsageError
        as `check_output` does, and for a file that is not replaced.
    """
    path = check_output(output, inputs=inputs)
    if kind_of(path) is not None:
        raise UsageError(
            (FilePath(output, quoted=True), " is a tally or a released file, which answers never replace")
        )
    return path


def kind_of(path: Path) -> FileKind | None:
    """The kind of a file by its first bytes; None for any other file, or one that cannot be read."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        magic = stream.read(len(FileKind.TALLY.value))
    return next((kind for kind in FileKind if kind.value == magic), None)


def is_tally(path: str) -> bool:
    """Whether a file is one of Hushsum's, or is named like a tally; files of records are neither."""
    return Path(path).suffix.lower() == ".tally" or kind_of(Path(path)) is not None


def read_key(path: str | None) -> bytes | None:
    """The key in a file: 32 bytes as they are, or 64 hexadecimal digits; None where no file is named.

    Raises
    ------
    UsageError
        if there is no such file, or it holds neither. The message does not show what it holds.
    """
    if path is None:
        return None
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise UsageError(("no key file ", FilePath(path, quoted=True))) from None
    except OSError:
        raise UsageError(
            ("the key file ", FilePath(path, quoted=True), " cannot be read"),
            remedy="check the path and its permissions",
        ) from None
    if len(data) == KEY_BYTES:
        return data
    try:
        key = bytes.fromhex(data.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        rule = f"a key file must hold {KEY_BYTES} bytes or {2 * KEY_BYTES} hexadecimal digits"
        raise UsageError(rule, got="something else", remedy=f"make one with: openssl rand -hex {KEY_BYTES}")
    return key


def open_released(source: str) -> Released:
    """The contents of a ``.hush`` file; ``"-"`` reads it from standard input."""
    return load_released(sys.stdin.buffer if source == STANDARD else source)


def open_function(source: str) -> ReleasedFunction:
    """The function in a ``.hush`` file; ``"-"`` reads it from standard input."""
    return load_function(sys.stdin.buffer if source == STANDARD else source)


of_records = partial(setting, group="Records")
of_graph = partial(setting, group="Graph")


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """How files list the edges of a graph; see :func:`hushsum.records.read_edges`."""

    columns: tuple[str, ...] | None = of_graph(
        None,
        "The two columns of an edge list, such as src,dst, or 1,2 in a text file: records are the "
        "nodes (jaccard).",
        name="edges",
        metavar="NAMES",
    )
    directed: bool = of_graph(False, "A node's neighbours are the nodes to which its edges lead.")
    nodes: int | None = of_graph(
        None,
        "Nodes are 0 to NODES - 1, and all are records, also without edges.",
        at_least=1,
        at_most=1 << 40,
    )
    sorted: bool = of_graph(
        False, "Edges that are sorted by their first node already; undirected ones in both directions."
    )

    def given(self) -> EdgeColumns | None:
        """These options, or None where records are not the nodes of a graph."""
        if self.columns is None and self != EdgeColumns():
            rule = ("goes with ", NameOf("directed"), ", ", NameOf("nodes"), " and ", NameOf("sorted"))
            raise UsageError("edges", rule, got="none", remedy="name its two columns")
        return None if self.columns is None else self

    def read(self, paths: Sequence[str]) -> EdgeList:
        """The edges of the files."""
        return read_edges(
            list(paths), columns=self.columns, directed=self.directed, nodes=self.nodes, sorted=self.sorted
        )


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """Which columns of which files make the records.

    ``columns`` default to all but ``unit_column``, of the first file; the other files must have them too.
    ``set_column`` is for kernels on sets, and so is ``edges``, whose records are the nodes of a graph.
    ``name`` is what error messages call the file; by default its path. ``cells`` are read as declared.
    """

    paths: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = setting(
        None, "Columns of a record, separated by commas; default: all.", metavar="NAMES"
    )
    bounds: DeclaredBounds | None = setting(None, BOUNDS)
    unit_column: str | None = of_records(
        None, "Column with the id of the person; the unit is then the person.", metavar="NAME"
    )
    max_per_unit: int | None = of_records(
        None, "Count at most this many records per person.", at_least=1, at_most=1 << 20
    )
    set_column: str | None = of_records(None, "Column of sets (jaccard): lists of integers.", metavar="NAME")
    cells: CellFormat = PLAIN
    name: str | None = None
    edges: EdgeColumns | None = None

    def public_file(self, path: str | None) -> PublicFile | None:
        """A file of public records with the same columns; of a workbook the first sheet, since ``sheet`` is
        that of another one.
        """
        cells = replace(self.cells, sheet=None)
        return None if path is None else PublicFile(path, self.columns, self.set_column, cells=cells)


@dataclass(frozen=True, slots=True)
class TrainingFiles(RecordFiles):
    """Which columns of which files are learned from, and which one is learned.

    ``columns`` default to all but ``target`` and ``unit_column``. ``classes`` are the declared labels, as
    text. ``public`` is a file of public rows with the same columns; one of the target is left out.
    """

    target: str | None = setting(None, "Column to predict from the others.", metavar="NAME")
    classes: tuple[str, ...] | None = setting(
        None, "All labels, declared, separated by commas.", metavar="LABELS"
    )
    public: PublicFile | None = None


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


def check_columns(records: RecordFiles, kernel: KernelSpec | Kernel) -> None:
    """Refuse columns that do not suit the kernel, before any file is read."""
    if not records.paths:
        rule = "must be at least one file of records"
        raise UsageError("files", rule, got="none", remedy="'-' reads CSV from standard input")
    refuse_repeated(records.paths)
    if records.edges is not None:
        _check_edges(records, kernel)
        return
    if takes_sets(kernel) and records.set_column is None:
        raise UsageError(
            "set_column", f"must name the column of sets for the {kernel.name} kernel", got="none"
        )
    if not takes_sets(kernel) and records.set_column is not None:
        got = f"it for the {kernel.name} kernel"
        remedy = "leave it out, or use jaccard"
        raise UsageError("set_column", "is for kernels of sets", got=got, remedy=remedy)
    check_cap(records.unit_column, records.max_per_unit, parameter="unit_column")


def _check_edges(records: RecordFiles, kernel: KernelSpec | Kernel) -> None:
    if not takes_sets(kernel):
        got = f"it for the {kernel.name} kernel"
        raise UsageError("edges", "is for kernels of sets", got=got, remedy="leave it out, or use jaccard")
    for name in ("columns", "unit_column", "set_column"):
        if getattr(records, name) is not None:
            raise UsageError(name, ("and ", NameOf("edges"), " exclude each other"))
    if records.max_per_unit is not None:
        raise UsageError("max_per_unit", "must be left out: a node is one record")
    if records.cells.drop_missing:
        raise UsageError("drop_missing", ("and ", NameOf("edges"), " exclude each other"))
    if STANDARD in records.paths:
        raise UsageError("edges", "must come from files", got="standard input")


def open_file(
    records: RecordFiles,
    name: str,
    columns: Sequence[str] | None,
    batch_bytes: int = DEFAULT_BATCH_BYTES,
    *,
    may_be_empty: bool = False,
) -> RecordStream:
    """Open one of the files as a stream. If there are several files, errors name the file."""
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
        raise UsageError((FilePath(shown), ": ", *error.parts())) from None


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
            (FilePath(name), " must have at least one record"), got="none", remedy="check what wrote it"
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


MOST_PUBLIC_RECORDS = 1_000_000
"""As many records of a public file are read; more would not change the estimate."""


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file of public records that resemble the private ones.

    ``left_out`` is a column that is not read, such as the target of a model. ``name`` is what error messages
    call the file; by default its path. ``cells`` are read as declared.
    """

    path: str
    columns: tuple[str, ...] | None = None
    set_column: str | None = None
    left_out: str | None = None
    name: str | None = None
    cells: CellFormat = PLAIN


def methods_needing_bounds(kernel: Kernel) -> tuple[str, ...]:
    """The methods that could count this kernel if bounds were declared.

    >>> from hushsum.kernels import GaussianKernel
    >>> "grid" in methods_needing_bounds(GaussianKernel(dim=2, bandwidth=1.0))
    True
    """
    counting = (each for each in all_methods() if each.predict is not None and each.tally is not None)
    return tuple(each.name for each in counting if each.needs_bounds and each.suits(kernel))


def refuse_private_file(public: PublicFile, paths: Sequence[str]) -> None:
    """Refuse a file of private records in place of public ones, by its path or by its bytes.

    Raises
    ------
    UsageError
        for such a file. A part of the private records in another file is not noticed: whoever declares a
        file public answers for it.
    """
    for path in paths:
        files = Path(path).is_file() and Path(public.path).is_file()
        if path == public.path or (files and filecmp.cmp(path, public.path, shallow=False)):
            rule = "must be a file of public records"
            remedy = "give rows that anybody may see, or leave it out"
            raise UsageError("public", rule, got="the private records", remedy=remedy)


def read_public(public: PublicFile) -> Any:
    """The first records of a public file, as an Arrow table."""
    batches: list[Any] = []
    total = 0
    with open_batches(
        public.path,
        columns=public.columns,
        set_column=public.set_column,
        unit_column=public.left_out,
        name=public.name,
        cells=public.cells,
    ) as stream:
        for batch, _ in stream:
            has = public.left_out is not None and public.left_out in batch.schema.names
            batches.append(batch.drop_columns([public.left_out]) if has else batch)
            total += batch.num_rows
            if total >= MOST_PUBLIC_RECORDS:
                break
    return pyarrow().Table.from_batches(batches).slice(0, MOST_PUBLIC_RECORDS)
