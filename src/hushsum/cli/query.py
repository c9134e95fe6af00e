"""``hushsum query``."""

from __future__ import annotations

import csv as text_format
import json as json_format
import math
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushsum.cli import option_values, options
from hushsum.cli.declared_options import Without
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.output import progress_bar, reader_may_leave, short, write_json, write_table
from hushsum.errors import Parameter, UsageError
from hushsum.operations import EdgeColumns, RecordFiles

if TYPE_CHECKING:
    from hushsum.operations import AnsweredQueries


def query(
    function: options.ReleasedFile,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="VALUES",
            help="A point such as 120,80,60, or the members of a set; may be repeated.",
        ),
    ] = None,
    points: Annotated[
        str | None,
        typer.Option("--points", metavar="FILE", help="Points in CSV, Parquet or Arrow; - reads CSV."),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option("--node", metavar="ID", help="A node of the graph given by --graph; may be repeated."),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option("--graph", metavar="FILE", help="Public edge list, in which --node is looked up."),
    ] = None,
    edges: Annotated[EdgeColumns, Without("nodes", "sorted")] = EdgeColumns(),  # noqa: B008  # frozen
    records: Annotated[
        RecordFiles, Without("bounds", "unit_column", "max_per_unit", "drop_missing")
    ] = RecordFiles(),  # noqa: B008
    sum: options.Sum = False,
    level: options.Level = 0.95,
    estimator: Annotated[
        str,
        typer.Option(
            "--estimator",
            help="mean, or median-of-means with the bound of its theorem.",
            autocompletion=options.completing("mean", "median-of-means"),
        ),
    ] = "mean",
    simultaneous: options.Simultaneous = False,
    threads: Annotated[int, typer.Option("--threads", help="Number of threads.")] = 1,
    json: options.Json = False,
) -> None:
    """Query a released function. This spends nothing.

    Points given by --at are answered in a table. Points of a file are answered as CSV, with the columns of
    the file first, while the file is read.

    hushsum query skin.hush --at 120,80,60

    hushsum query hired.hush --dates hired --at 2024-05-31
    """
    from hushsum.operations import QueryTerms, query_file, query_nodes, query_points

    if _given(at, points, node) != 1:
        raise UsageError(
            "at",
            ("or ", Parameter("points"), " or ", Parameter("node"), " must be given, one of them"),
            got="several or none",
        )
    if (node is None) != (graph is None):
        raise UsageError("node", ("and ", Parameter("graph"), " go together"), got="one of them")
    terms = QueryTerms(sum=sum, level=level, estimator=estimator, simultaneous=simultaneous, threads=threads)
    if at is not None or node is not None:
        if node is not None and graph is not None:
            answered = query_nodes(
                function, node, graph, terms, columns=edges.columns, directed=edges.directed
            )
        else:
            typed = [option_values.point_with_dates(each, "at") for each in at or []]
            answered = query_points(function, typed, terms, records.cells.dates)
        if json:
            write_json({"of": "sum" if sum else "mean", "level": level, "answers": answered.as_json()})
        else:
            _write_table(at or node or [], answered)
        return
    assert points is not None
    piped = interruptible_input() if points == "-" else nullcontext()
    with piped, progress_bar("asking") as progress:
        batches = query_file(
            function,
            points,
            terms,
            columns=records.columns,
            set_column=records.set_column,
            cells=records.cells,
            progress=progress,
        )
        with reader_may_leave():
            if json:
                _stream_json(batches, {"of": "sum" if sum else "mean", "level": level})
            else:
                _stream_csv(batches)


def _given(*choices: object) -> int:
    """How many of some options were given."""
    return len([each for each in choices if each is not None])


def _write_table(points: list[str], answered: AnsweredQueries) -> None:
    write_table(
        ("at", "value", "stderr", "lower", "upper"),
        [
            (text, *(short(number) if not math.isnan(number) else "–" for number in row))
            for text, *row in zip(
                points, answered.value, answered.stderr, answered.lower, answered.upper, strict=True
            )
        ],
        left=1,
    )


def _stream_csv(batches: Iterator[AnsweredQueries]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    writer: Any = None
    sys.stdout.flush()
    for batch in batches:
        table = pa.Table.from_batches([_as_text_columns(batch.queries)])
        for name in ("value", "stderr", "lower", "upper"):
            numbers = pa.array(getattr(batch, name), from_pandas=True)
            table = table.append_column(name, numbers)
        if writer is None:
            text_format.writer(sys.stdout, lineterminator="\n").writerow(table.column_names)
            sys.stdout.flush()
            plain = csv.WriteOptions(include_header=False, quoting_style="needed")
            writer = csv.CSVWriter(sys.stdout.buffer, table.schema, write_options=plain)
        writer.write_table(table)
        sys.stdout.buffer.flush()


def _as_text_columns(batch: Any) -> Any:
    """Lists, which CSV does not have, as numbers separated by spaces."""
    import pyarrow as pa

    for i, column in enumerate(batch.columns):
        if hasattr(column.type, "value_type"):
            text = [" ".join(str(member) for member in members) for members in column.to_pylist()]
            batch = batch.set_column(i, batch.schema.names[i], pa.array(text))
    return batch


def _stream_json(batches: Iterator[AnsweredQueries], head: dict[str, object]) -> None:
    """One JSON document, written as it grows."""
    start = json_format.dumps(head)
    sys.stdout.write(start[:-1] + ', "answers": [')
    separator = "\n"
    for batch in batches:
        for answer in batch.as_json():
            sys.stdout.write(separator + json_format.dumps(answer, allow_nan=False))
            separator = ",\n"
    sys.stdout.write("\n]}\n")
    sys.stdout.flush()
