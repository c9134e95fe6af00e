"""Files of operations: which columns of which files make the records, public samples, files to write,
and counting records or edges into a tally, in this process or by an engine, with checkpoints.
"""

from __future__ import annotations

import filecmp
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

from hushsum.declaration import check_fields, setting
from hushsum.errors import Argument, DataRefused, FilePath, UsageError
from hushsum.errors import Parameter as NameOf
from hushsum.files import KEY_BYTES, FileKind, atomic_file, declared_fields
from hushsum.kernels import Kernel, check_cap, kernel_as_json
from hushsum.methods import all_methods, count_rows
from hushsum.planning import BOUNDS, EmptyTally, KernelSpec, TableSpec, built, empty_tally, takes_sets
from hushsum.privacy import PERSON
from hushsum.records import (
    DEFAULT_BATCH_BYTES,
    DEFAULT_MEMORY,
    PLAIN,
    CategoryColumn,
    CellFormat,
    DateColumn,
    DeclaredBounds,
    DeclaredColumn,
    EdgeList,
    FlagColumn,
    RecordStream,
    choose_columns,
    expanded,
    file_state,
    is_url,
    open_batches,
    open_source,
    pyarrow,
    read_edges,
    read_pairs,
    refuse_repeated,
    shown_path,
    without_missing,
)
from hushsum.releases import Released, ReleasedFunction, load_function, load_released
from hushsum.tables import LARGE_TABLE, AdjacencyRows, HashRows, Reading, reading_from_json
from hushsum.tally import DEFAULT_SECONDS, Checkpoint, Tally, load_tally, public_header

__all__ = [
    "ARROW", "PARQUET", "STANDARD", "CheckpointChoice", "EdgeColumns", "EngineChoice", "Progress",
    "PublicFile", "RecordFiles", "TallyDescription", "TrainingFiles", "check_answers_output",
    "check_function_output", "check_output", "dimension", "first_batch", "is_tally", "kind_of",
    "merge_tallies", "methods_needing_bounds", "mixed_batches", "open_file", "open_function", "read_key",
    "read_public", "refuse_private_file", "tally_records", "write_table",
]  # fmt: skip

# Called with the fraction done, or None if the length of the work is unknown.
Progress = Callable[[float | None], None]


# The name of standard input or output where a path is expected.
STANDARD = "-"


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
        raise _kept(output, "is a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(("the folder ", shown, " must be writable"), remedy="check its permissions")
    for each in inputs:
        if path.exists() and each != STANDARD and Path(each).exists() and path.samefile(each):
            raise _kept(output, "is an input too, and would be overwritten")
    return path


def _kept(output: str, reason: str) -> UsageError:
    """The refusal to replace a file."""
    return UsageError((FilePath(output, quoted=True), f" {reason}"))


def check_tally_output(output: str, *, inputs: Sequence[str] = ()) -> Path:
    """The path of a tally to be written; it may replace a tally, and nothing else.

    Raises
    ------
    UsageError
        as `check_output` does, for a name that belongs to public files, and for a file that is not a tally.
    """
    path = check_output(output, inputs=inputs)
    if path.suffix.lower() == ".hush":
        rule = ("a tally is secret, and .hush is for public files, got ", FilePath(output, quoted=True))
        raise UsageError(rule, remedy="let its name end in .tally")
    if path.exists() and kind_of(path) is not FileKind.TALLY and path.stat().st_size:
        raise _kept(output, "exists and is not a tally, so it is not replaced")
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
    kind = kind_of(path)
    if kind not in (None, FileKind.RELEASED):
        raise _kept(output, "is confidential, which a release never replaces")
    if path.exists() and kind is None and not interactive and path.stat().st_size:
        raise _kept(output, "exists and is not a released function, so it is not replaced")
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
        raise _kept(output, "is a tally or a released file, which answers never replace")
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


def all_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """All files that paths name, with wildcards or without; standard input stays.

    Raises
    ------
    UsageError
        if wildcards match no file.
    """
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
        rule = f"must name the column of sets for the {kernel.name} kernel"
        raise UsageError("set_column", rule, got="none")
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
        rule = (FilePath(name), " must have at least one record")
        raise DataRefused(rule, got="none", remedy="check what wrote it") from None
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


# As many records of a public file are read; more would not change the estimate.
MOST_PUBLIC_RECORDS = 1_000_000


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
        rule, got = "needs files, which can be read again", "standard input"
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
    states = map(file_state, paths)
    return [[place, each.size, each.modified] for place, each in zip(places, states, strict=True)]


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
    records = replace(records, paths=all_paths(records.paths))
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
            cap, cells = records.max_per_unit, records.cells
            bounds = records.bounds
            return empty_tally(kernel, chosen, bounds=bounds, columns=columns, max_per_unit=cap, cells=cells)

        counting = Counting(records, kernel, empty, threads, progress)
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


@dataclass(frozen=True, slots=True)
class Counting:
    """The files to count, and the tally that they are counted into: ``empty`` makes it once the number of
    columns is known.
    """

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
        names = ("unit_column", "set_column", "cells")
        shared: dict[str, Any] = {name: getattr(self.records, name) for name in names}
        shared |= {"columns": columns, "threads": self.threads, "progress": self.progress}
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


PARQUET: Final = (".parquet", ".pq")
ARROW: Final = (".arrow", ".feather", ".ipc")
# The suffixes of files that are written.
SUFFIXES: Final = (*PARQUET, *ARROW, ".csv")

_BATCH_BYTES: Final = 1 << 24
_TRUE: Final = ("1", "true", "TRUE", "True")
_FALSE: Final = ("0", "false", "FALSE", "False")


def mixed_batches(
    path: str,
    columns: Mapping[str, DeclaredColumn],
    *,
    unit_column: str | None = None,
    cells: CellFormat = PLAIN,
) -> Iterator[tuple[Any, Any]]:
    """Tables of the declared columns of a file, in their order, and whose records they are.

    Where ``cells`` drops records, one is left out if a declared column of it is missing: what happens to a
    record depends on that record alone.

    Raises
    ------
    UsageError
        There is no such file, its name has a suffix without a reader, or a declared column is not in it.
    DataRefused
        The file is damaged, or a cell is not of the declared kind; no message shows a value.
    """
    name = "standard input" if path == STANDARD else shown_path(path)
    pa, compute = pyarrow(), pyarrow("compute")
    names = list(columns)
    try:
        for batch in _batches(path, name, columns, unit_column, cells):
            table = pa.Table.from_batches([batch])
            for each in names if cells.drop_missing else ():
                table = table.filter(compute.invert(compute.is_null(table[each], nan_is_null=True)))
            yield table.select(names), None if unit_column is None else table.column(unit_column)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        # Messages of Arrow quote cells.
        rule = (FilePath(name), " must be a table that can be read by the declared types")
        raise DataRefused(rule, got="something else", remedy="check the file and the declarations") from None


def _batches(
    path: str, file: str, columns: Mapping[str, DeclaredColumn], unit_column: str | None, cells: CellFormat
) -> Iterator[Any]:
    if unit_column in columns:
        raise UsageError("unit_column", "must not be a column of records too", got=f"{unit_column!r}")
    names = [*columns, *([] if unit_column is None else [unit_column])]
    numbers = [name for name, column in columns.items() if not _is_text(column)]
    with closing(open_source(path, file, _BATCH_BYTES, cells=cells)) as source:
        choose_columns(source.column_names, names)
        days = {name: each.pattern for name, each in columns.items() if isinstance(each, DateColumn)}
        source.choose(names, numbers, mixed=True, days=days)
        written = [] if source.typed else [name for name in columns if name not in numbers]
        for batch in source.batches():
            # Kinds are declared, never inferred, because one record could change an inferred one.
            for name in written:
                position = batch.schema.get_field_index(name)
                found = _words_of(batch.column(position), columns[name], name, file, cells)
                batch = batch.set_column(position, name, found)
            if not source.faults:
                yield cells.without_numbers(batch, numbers)
        source.faults.check()


def _is_text(column: DeclaredColumn) -> bool:
    """Whether the cells of a column are words: text, dates or truth values."""
    words = isinstance(column, CategoryColumn) and isinstance(column.values[0], str)
    return words or isinstance(column, DateColumn | FlagColumn)


def _words_of(text: Any, column: DeclaredColumn, name: str, file: str, cells: CellFormat) -> Any:
    """The categories, dates or truth values that the text of a column writes, missing cells as nulls."""
    pa, compute = pyarrow(), pyarrow("compute")
    if isinstance(column, CategoryColumn):
        # "NA" may be a category that somebody declared.
        usual = pyarrow("csv").ConvertOptions().null_values
        marked = [*usual, *cells.missing]
        absent = pa.array([each for each in marked if each not in column.labels], pa.string())
        return compute.if_else(compute.is_in(text, value_set=absent), pa.scalar(None, pa.string()), text)
    trimmed = compute.utf8_trim_whitespace(without_missing(text, cells.markers))
    if isinstance(column, DateColumn):
        return trimmed
    true = compute.is_in(trimmed, value_set=pa.array(_TRUE))
    known = compute.or_(true, compute.is_in(trimmed, value_set=pa.array((*_FALSE, None))))
    if not compute.all(known, min_count=0).as_py():
        rule = (f"column {name!r} of ", FilePath(file), " is declared as a flag: true, false, 1 or 0")
        raise DataRefused(rule, got="another text", remedy="declare its categories instead")
    return compute.if_else(compute.is_valid(trimmed), true, pa.scalar(None, pa.bool_()))


def check_table_output(output: str) -> None:
    """Refuse an output whose suffix is not known, before any work is done."""
    if Path(output).suffix.lower() not in SUFFIXES:
        rule = f"must end in {', '.join(SUFFIXES)}"
        raise UsageError("output", rule, got=Path(output).suffix or "no suffix", remedy="name the file so")


def write_table(table: Any, output: str) -> None:
    """Write a table by its suffix, atomically."""
    suffix = Path(output).suffix.lower()
    with atomic_file(Path(output)) as stream:
        if suffix in PARQUET:
            pyarrow("parquet").write_table(table, stream)
        elif suffix in ARROW:
            pyarrow("feather").write_feather(table, stream)
        else:
            # CSV has no dictionaries: they are written as plain text.
            for i, field in enumerate(table.schema):
                if pyarrow().types.is_dictionary(field.type):
                    table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
            pyarrow("csv").write_csv(table, stream)
