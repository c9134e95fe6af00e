"""Files of mixed columns: read batch by batch by declared columns, and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from hushsum.errors import DataRefused, FilePath, UsageError
from hushsum.files import atomic_file
from hushsum.records import (
    PLAIN,
    CategoryColumn,
    CellFormat,
    DateColumn,
    DeclaredColumn,
    FlagColumn,
    choose_columns,
    open_source,
    pyarrow,
    shown_path,
    without_missing,
)

from ._files import STANDARD

PARQUET: Final = (".parquet", ".pq")
ARROW: Final = (".arrow", ".feather", ".ipc")
CSV: Final = (".csv",)
SUFFIXES: Final = (*PARQUET, *ARROW, *CSV)
"""The suffixes of files that are written."""

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
    pa = pyarrow()
    names = list(columns)
    try:
        for batch in _batches(path, name, columns, unit_column, cells):
            table = pa.Table.from_batches([batch])
            kept = _complete(table, names) if cells.drop_missing else table
            yield kept.select(names), None if unit_column is None else kept.column(unit_column)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        # Messages of Arrow quote cells.
        rule = (FilePath(name), " must be a table that can be read by the declared types")
        raise DataRefused(rule, got="something else", remedy="check the file and the declarations") from None


def _complete(table: Any, columns: Sequence[str]) -> Any:
    """The records without a null or a NaN in these columns."""
    compute = pyarrow("compute")
    for name in columns:
        table = table.filter(compute.invert(compute.is_null(table[name], nan_is_null=True)))
    return table


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
    return isinstance(column, DateColumn | FlagColumn) or (
        isinstance(column, CategoryColumn) and isinstance(column.values[0], str)
    )


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
            pyarrow("csv").write_csv(decoded(table), stream)


def decoded(table: Any) -> Any:
    """A table whose dictionaries are plain text, as CSV needs them."""
    pa = pyarrow()
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table
