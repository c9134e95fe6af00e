"""``hushsum predict``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import Without
from hushsum.cli.output import write_answers
from hushsum.declaration import common
from hushsum.operations import STANDARD, RecordFiles, check_answers_output


def predict(
    model: options.ReleasedFile,
    points: Annotated[
        str, typer.Argument(metavar="FILE", help="Points in CSV, Parquet or Arrow; - reads CSV.")
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file to write; - is standard output.")
    ] = "-",
    *,
    records: Annotated[
        RecordFiles, Without("bounds", "unit_column", "max_per_unit", "set_column", "drop_missing")
    ],
    json: Annotated[bool, common("Write JSON instead of CSV.")] = False,
) -> None:
    """Predict with a released model at the points of a file. This spends nothing.

    The predictions are written as CSV while the file is read, one row per point, after the columns that the
    model uses. An output file is created at the end, and only if all points were predicted.

    hushsum predict ill.hush visits.csv -o answers.csv
    """
    from hushsum.operations import predict_file

    if output != STANDARD:
        check_answers_output(output, inputs=[model, points])
    answer = partial(predict_file, model, points, columns=records.columns, cells=records.cells)
    write_answers(answer, points, output, as_json=json)
