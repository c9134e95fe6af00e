"""``hushsum predict``."""

from __future__ import annotations

import csv as text_format
import io
import json as json_format
import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Without
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.output import progress_bar, reader_may_leave, results_to
from hushsum.operations import RecordFiles

if TYPE_CHECKING:
    from hushsum.operations import PredictedRecords


def predict(
    model: options.ReleasedFile,
    points: Annotated[
        str, typer.Argument(metavar="FILE", help="Points in CSV, Parquet or Arrow; - reads CSV.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file to write; - is standard output.")
    ] = "-",
    records: Annotated[
        RecordFiles, Without("bounds", "unit_column", "max_per_unit", "set_column", "drop_missing")
    ] = RecordFiles(),  # noqa: B008  # frozen
    json: Annotated[bool, typer.Option("--json", help="Write JSON instead of CSV.")] = False,
) -> None:
    """Predict with a released model at the points of a file. This spends nothing.

    The predictions are written as CSV while the file is read, one row per point, after the columns that the
    model uses. An output file is created at the end, and only if all points were predicted.

    hushsum predict ill.hush visits.csv -o answers.csv
    """
    from hushsum.operations import STANDARD, check_answers_output, predict_file

    if output != STANDARD:
        check_answers_output(output, inputs=[model, points])
    waiting = interruptible_input() if points == STANDARD else nullcontext()
    with waiting, progress_bar("asking") as progress:
        batches = predict_file(
            model,
            points,
            columns=records.columns,
            cells=records.cells,
            progress=progress,
        )
        with reader_may_leave(), results_to(output) as stream:
            _stream_json(batches, stream) if json else _stream_csv(batches, stream)


def _stream_csv(batches: Iterator[PredictedRecords], stream: Any) -> None:
    import pyarrow as pa
    from pyarrow import csv

    writer: Any = None
    for batch in batches:
        table = pa.Table.from_batches([batch.points])
        for name, answers in batch.answers.items():
            table = table.append_column(name, pa.array(answers.tolist()))
        if writer is None:
            header = io.StringIO()
            text_format.writer(header, lineterminator="\n").writerow(table.column_names)
            stream.write(header.getvalue().encode())
            plain = csv.WriteOptions(include_header=False, quoting_style="needed")
            writer = csv.CSVWriter(stream, table.schema, write_options=plain)
        writer.write_table(table)
        stream.flush()


def _stream_json(batches: Iterator[PredictedRecords], stream: Any) -> None:
    """One JSON document, written as it grows."""
    stream.write(b'{"answers": [')
    separator = "\n"
    for batch in batches:
        for answer in batch.as_json():
            stream.write((separator + json_format.dumps(_finite(answer), allow_nan=False)).encode())
            separator = ",\n"
    stream.write(b"\n]}\n")
    stream.flush()


def _finite(answer: dict[str, Any]) -> dict[str, Any]:
    """What JSON can say: no number for an infinite score."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in answer.items()
    }
