"""``hushsum sample``."""

from __future__ import annotations

import csv
import io
import json as json_format
from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import reader_may_leave, results_to
from hushsum.declaration import common
from hushsum.operations import STANDARD, check_answers_output


def sample(
    file: options.ReleasedFile,
    number: Annotated[int, typer.Option("--number", "-n", help="How many records to draw.")] = 1000,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="The file to write: .parquet, .arrow, or else CSV; - is standard output."
        ),
    ] = "-",
    seed: Annotated[int | None, common("Repeats the same sample.")] = None,
    json: Annotated[bool, common("Write JSON instead of CSV.")] = False,
) -> None:
    """Draw synthetic records from a released function, density, sampler or synthesizer. This spends nothing.

    The records lie inside the declared bounds, where the released function stands out of its noise. They are
    computed from the public file alone, so they may be published.

    hushsum sample town.hush -n 5000 -o synthetic.csv
    """
    from hushsum.operations import ARROW, PARQUET, sample_release, write_table

    if output != STANDARD:
        check_answers_output(output, inputs=[file])
    drawn = sample_release(file, number, seed=seed)
    if not json and output.lower().endswith((*PARQUET, *ARROW)):
        write_table(drawn.table, output)
        return
    with reader_may_leave(), results_to(output) as stream:
        if json:
            found = {"columns": list(drawn.columns), "records": drawn.records()}
            stream.write((json_format.dumps(found, allow_nan=False) + "\n").encode())
        else:
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(drawn.columns)
            writer.writerows([_cell(each) for each in row] for row in drawn.records())
            stream.write(text.getvalue().encode())
        stream.flush()


def _cell(value: object) -> object:
    """A number with the digits that float32 holds; a missing value as an empty cell."""
    return f"{value:.7g}" if isinstance(value, float) else value
