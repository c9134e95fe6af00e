"""Files of mixed columns (Parquet, Arrow or CSV): read batch by batch by declared columns, and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from hushsum.errors import DataRefused, FilePath, UsageError
from hushsum.files.atomic import atomic_file
from hushsum.records.arrow import pyarrow
from hushsum.records.columnar_files import ColumnarSource
from hushsum.records.columns_by_name import choose_columns
from hushsum.records.csv_lines import CountedLines
from hushsum.records.declared_columns import CategoryColumn, DeclaredColumn, FlagColumn

PARQUET: Final = (".parquet", ".pq")
ARROW: Final = (".arrow", ".feather", ".ipc")
CSV: Final = (".csv",)
SUFFIXES: Final = (*PARQUET, *ARROW, *CSV)
_BATCH_BYTES: Final = 1 << 24


def mixed_batches(
    path: str, columns: Mapping[str, DeclaredColumn], *, drop_missing: bool = False
) -> Iterator[Any]:
    """Tables of the declared columns of a file, in their order.

    With ``drop_missing`` a record is left out if a declared column of it is missing: what happens to a record
    depends on that record alone.

    Raises
    ------
    UsageError
        There is no such file, its name has another suffix, or a declared column is not in it.
    DataRefused
        The file is damaged; no message shows a value.
    """
    source = Path(path)
    suffix = source.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            rule=("a file of mixed columns must end in ", ", ".join(SUFFIXES), ", got ", FilePath(path)),
            remedy="convert it",
        )
    if not source.is_file():
        raise UsageError(rule=("there is no file ", FilePath(path, quoted=True)), remedy="check the path")
    pa = pyarrow()
    names = list(columns)
    try:
        for batch in _batches(source, suffix, columns):
            table = batch.select(names)
            yield _complete(table) if drop_missing else table
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        # Messages of Arrow quote cells.
        raise DataRefused(
            rule=(FilePath(path), " must be a table that can be read by the declared types"),
            got="something else",
            remedy="check the file and the declarations",
        ) from None


def _complete(table: Any) -> Any:
    """The records without a null or a NaN."""
    pa, compute = pyarrow(), pyarrow("compute")
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if pa.types.is_floating(kind):
            # A NaN is neither less than nor equal to itself; a null stays for the next step.
            table = table.filter(compute.invert(compute.is_nan(table[name])), null_selection_behavior="drop")
    return table.drop_null()


def _batches(source: Path, suffix: str, columns: Mapping[str, DeclaredColumn]) -> Iterator[Any]:
    pa = pyarrow()
    if suffix not in CSV:
        # Decoded in a process of its own, with limits: a file may be built to harm its reader.
        kind = "Parquet" if suffix in PARQUET else "Arrow"
        with closing(ColumnarSource(source, str(source), kind, _BATCH_BYTES)) as file:
            choose_columns(file.column_names, list(columns))
            file.choose_mixed(list(columns))
            for batch in file.batches():
                yield pa.Table.from_batches([batch])
    else:
        csv = pyarrow("csv")
        with csv.open_csv(source) as reader:
            choose_columns(reader.schema.names, list(columns))
        # Declared types, never inferred ones, which one record could change.
        types = {name: _csv_type(each) for name, each in columns.items()}
        usual = csv.ConvertOptions(strings_can_be_null=True)
        declared = {label for each in columns.values() for label in each.labels}
        options = csv.ConvertOptions(
            column_types=types,
            include_columns=list(columns),
            strings_can_be_null=True,
            # "NA" may be a category that somebody declared.
            null_values=[text for text in usual.null_values if text not in declared],
        )
        with source.open("rb") as file:
            lines = CountedLines(b"", file, empty=False)
            table = csv.read_csv(pa.PythonFile(lines, mode="r"), convert_options=options)
        # The header is a line, too.
        lines.check(1 + table.num_rows, str(source))
        yield table


def _csv_type(column: DeclaredColumn) -> Any:
    pa = pyarrow()
    if isinstance(column, FlagColumn):
        return pa.bool_()
    text = isinstance(column, CategoryColumn) and isinstance(column.values[0], str)
    return pa.string() if text else pa.float64()


def check_table_output(output: str) -> None:
    """Refuse an output whose suffix is not known, before any work is done."""
    if Path(output).suffix.lower() not in SUFFIXES:
        raise UsageError(
            parameter="output",
            rule=f"must end in {', '.join(SUFFIXES)}",
            got=Path(output).suffix or "no suffix",
            remedy="name the file so",
        )


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
