"""``hushsum tally``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.interrupts import interruptible_input, signals_at_progress
from hushsum.cli.option_values import cell_format
from hushsum.cli.output import (
    bytes_of,
    progress_bar,
    tell,
    warn,
    warnings_printed,
    write_facts,
    write_json,
)
from hushsum.errors import Parameter, UsageError

if TYPE_CHECKING:
    from hushsum.jobs.checkpointed_count import EngineChoice
    from hushsum.jobs.tally_records import TallyWritten


def tally(
    files: options.RecordFiles,
    output: options.TallyOutput,
    columns: options.Columns = None,
    method: options.MethodName = None,
    kernel: options.KernelName = None,
    bandwidth: options.Bandwidth = None,
    scale: options.Scale = None,
    power: options.Power = None,
    bits: options.Bits = None,
    projection: options.Projection = None,
    smoothness: options.Smoothness = None,
    radius: options.Radius = None,
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
    decimal: options.Decimal = ".",
    drop_missing: options.DropMissing = False,
    missing: options.Missing = None,
    dates: options.Dates = None,
    date_format: options.DatePattern = None,
    date_unit: options.DateUnit = "days",
    date_origin: options.DateOrigin = "1970-01-01",
    sheet: options.Sheet = None,
    encoding: options.Encoding = "utf-8",
    edges: options.Edges = None,
    directed: options.Directed = False,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", help="Nodes are 0 to NODES - 1, and all are records, also without edges."),
    ] = None,
    sorted_edges: Annotated[
        bool,
        typer.Option(
            "--sorted",
            help="Edges that are sorted by their first node already; undirected ones in both directions.",
        ),
    ] = False,
    allow_clipping: options.AllowClipping = False,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="PATH",
            help="Confidential file from which the same command continues if it is interrupted.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option("--checkpoint-every", metavar="SECONDS", help="Time between two checkpoints.")
    ] = 60.0,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            help="processes of this machine, or a dask or spark cluster. Default: threads of this process.",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", help="Number of processes of --engine processes.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address", help="Address of the scheduler of --engine dask, or master URL of --engine spark."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Count private records into a confidential tally, in one pass.

    The output does not depend on the records, except for a warning on standard error if a bound or the
    bandwidth seems to be computed from them. The file is created at the end, and only if all records were
    counted.

    hushsum tally skin.parquet --columns R,G,B --kernel euclidean --bandwidth 5 -o skin.tally

    hushsum tally graph.txt.gz --edges 1,2 --kernel jaccard -o graph.tally
    """
    from hushsum.jobs.checkpointed_count import CheckpointChoice
    from hushsum.jobs.kernel_and_method import KernelChoice, TableSize
    from hushsum.jobs.output_files import STANDARD, read_key
    from hushsum.jobs.record_files import RecordFiles
    from hushsum.jobs.tally_graph import EdgeColumns
    from hushsum.jobs.tally_records import tally_records
    from hushsum.kernels.bandwidth_scale import bandwidth_warnings
    from hushsum.methods.registry import default_kernel
    from hushsum.records.data_derived_parameters import clipping_allowed

    cells = cell_format(
        decimal=decimal,
        drop_missing=drop_missing,
        dates=dates,
        date_format=date_format,
        date_unit=date_unit,
        date_origin=date_origin,
        sheet=sheet,
        encoding=encoding,
        missing=missing,
    )
    box = option_values.box(bounds, "bounds", cells.dates)
    name = kernel or default_kernel(
        method, sets=set_column is not None or edges is not None, rows=rows, width=width
    )
    graph = None
    if edges is not None:
        graph = EdgeColumns(option_values.names(edges, "edges"), directed, nodes, sorted_edges)
    elif directed or nodes is not None or sorted_edges:
        raise UsageError(
            parameter="edges",
            rule=(
                "must be given with ",
                Parameter("directed"),
                ", ",
                Parameter("nodes"),
                " and ",
                Parameter("sorted"),
            ),
            got="none",
            remedy="name its two columns",
        )
    piped = interruptible_input() if STANDARD in files else nullcontext()
    kept = nullcontext() if checkpoint is None else _kept(checkpoint)
    counting = progress_bar("counting", size=bytes_of(files))
    with warnings_printed(), clipping_allowed(allow_clipping), piped, kept, counting as progress:
        written = tally_records(
            RecordFiles(
                tuple(files),
                option_values.names(columns, "columns"),
                unit_column,
                set_column,
                edges=graph,
                cells=cells,
            ),
            output,
            kernel=KernelChoice(name, bandwidth, power, bits, projection, smoothness, radius, scale, box),
            size=TableSize(
                method,
                rows,
                width,
                seed,
                box,
                spacing,
                features,
                degree,
                None if steps is None else option_values.numbers(steps, "steps"),
                groups,
                structured,
            ),
            max_per_unit=max_per_unit,
            threads=threads,
            encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
            progress=progress,
            engine=_engine(engine, workers, address),
            checkpoint=None if checkpoint is None else CheckpointChoice(checkpoint, checkpoint_every),
        )
    for sentence in bandwidth_warnings(written.kernel, written.bounds):
        warn(sentence)
    write_json(written.as_json()) if json else write_tally(written)


def _engine(name: str | None, workers: int | None, address: str | None) -> EngineChoice | None:
    from hushsum.errors import Argument, UsageError
    from hushsum.jobs.checkpointed_count import EngineChoice

    if name is not None:
        return EngineChoice(name, workers, address)
    for parameter, value in (("workers", workers), ("address", address)):
        if value is not None:
            raise UsageError(
                parameter=parameter, rule="is for an engine", got="none", remedy=("give ", Argument("engine"))
            )
    return None


@contextmanager
def _kept(checkpoint: str) -> Iterator[None]:
    """Let a signal end the count after a batch, when the checkpoint can be written."""
    try:
        with signals_at_progress():
            yield
    except (KeyboardInterrupt, SystemExit):
        if os.path.exists(checkpoint):
            tell(f"the count so far is in {checkpoint}; the same command continues it")
        raise


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
            *([] if written.graph is None else [("graph", written.graph)]),
            ("unit", written.unit_in_words),
            ("fingerprint", written.fingerprint),
        ]
    )
