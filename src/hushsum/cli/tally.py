"""``hushsum tally``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import options, values
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.output import progress_bar, warnings_printed, write_facts, write_json

if TYPE_CHECKING:
    from hushsum.jobs.tally_records import TallyWritten


def tally(
    files: options.RecordFiles,
    output: options.TallyOutput,
    columns: options.Columns = None,
    method: options.MethodName = "race",
    kernel: options.KernelName = "euclidean",
    bandwidth: options.Bandwidth = None,
    power: options.Power = None,
    bits: options.Bits = None,
    projection: options.Projection = None,
    smoothness: options.Smoothness = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", help="Rows of a race table; a release may publish fewer. [default: 1000]"),
    ] = None,
    width: Annotated[
        int | None, typer.Option("--width", help="Cells per row of a race table. [default: 1000]")
    ] = None,
    spacing: options.Spacing = None,
    degree: options.Degree = None,
    steps: options.StepsText = None,
    features: options.Features = None,
    groups: options.Groups = None,
    structured: options.Structured = None,
    seed: Annotated[int, typer.Option("--seed", help="Public seed of the random functions.")] = 0,
    bounds: options.BoundsText = None,
    unit_column: options.UnitColumn = None,
    max_per_unit: options.MaxPerUnit = None,
    set_column: options.SetColumn = None,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    json: options.Json = False,
) -> None:
    """Count private records into a confidential tally, in one pass.

    The output does not depend on the records, except for a warning on standard error if a bound or the
    bandwidth seems to be computed from them. The file is created at the end, and only if all records were
    counted.

    hushsum tally skin.parquet --columns R,G,B --kernel euclidean --bandwidth 5 -o skin.tally
    """
    from hushsum.jobs.files import STANDARD, read_key
    from hushsum.jobs.kernel_and_method import KernelChoice, TableSize
    from hushsum.jobs.tally_records import RecordFiles, tally_records

    box = values.ranges(bounds, "bounds")
    piped = interruptible_input() if STANDARD in files else nullcontext()
    with warnings_printed(), piped, progress_bar("counting") as progress:
        written = tally_records(
            RecordFiles(tuple(files), values.names(columns, "columns"), unit_column, set_column),
            output,
            kernel=KernelChoice(kernel, bandwidth, power, bits, projection, smoothness),
            size=TableSize(
                method,
                rows,
                width,
                seed,
                box[0] if box is not None and len(box) == 1 else box,
                spacing,
                features,
                degree,
                None if steps is None else values.numbers(steps, "steps"),
                groups,
                structured,
            ),
            max_per_unit=max_per_unit,
            threads=threads,
            encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
            progress=progress,
        )
    write_json(written.as_json()) if json else write_tally(written)


def write_tally(written: TallyWritten) -> None:
    """Print what is public of a tally that was written."""
    from hushsum.kernels.parameters import kernel_in_words
    from hushsum.records.bounds import bounds_in_words, names_in_words

    columns = written.columns
    write_facts(
        [
            ("tally", f"{written.output} (CONFIDENTIAL{', encrypted' if written.encrypted else ''})"),
            *([] if columns is None else [("columns", names_in_words(columns))]),
            ("kernel", kernel_in_words(written.kernel)),
            ("bounds", bounds_in_words(written.bounds)),
            ("table", f"{written.basis}, {written.rows} × {written.width}"),
            ("unit", written.unit),
            ("fingerprint", written.fingerprint),
        ]
    )
