"""``hushsum release``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.option_values import cell_format, of_public_file
from hushsum.cli.output import bytes_of, progress_bar, reader_may_leave, tell, warn, warnings_printed
from hushsum.cli.release_report import asking, confirmed, released_file, report

if TYPE_CHECKING:
    from hushsum.jobs.kernel_and_method import KernelChoice

_OF_RECORDS = (
    "columns",
    "bounds",
    "bandwidth",
    "scale",
    "kernel",
    "power",
    "bits",
    "projection",
    "smoothness",
    "radius",
    "method",
    "records",
    "steps",
    "width",
    "seed",
    "unit_column",
    "max_per_unit",
    "set_column",
    "decimal",
    "drop_missing",
    "missing",
    "dates",
    "date_format",
    "date_unit",
    "date_origin",
    "sheet",
    "encoding",
    "public",
    "allow_clipping",
)
"""Options that a tally has from the command that counted it."""


def release(
    context: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Records (CSV, Parquet or Arrow; - reads CSV from standard input), or one .tally file.",
        ),
    ],
    output: options.ReleaseOutput,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    columns: options.Columns = None,
    bounds: options.BoundsText = None,
    bandwidth: options.Bandwidth = None,
    scale: options.Scale = None,
    kernel: options.KernelName = None,
    power: options.Power = None,
    bits: options.Bits = None,
    projection: options.Projection = None,
    smoothness: options.Smoothness = None,
    radius: options.Radius = None,
    method: options.PlannedMethod = "auto",
    records: Annotated[
        int | None,
        typer.Option("--records", help="Declared number of records, for the plan; the true one is private."),
    ] = None,
    steps: options.StepsText = None,
    public: Annotated[
        str | None,
        typer.Option(
            "--public",
            metavar="FILE",
            help="Public records like the private ones: they decide bandwidth and bounds where these are not "
            "given, and are combined with the release.",
        ),
    ] = None,
    width: Annotated[int | None, typer.Option("--width", help="Cells per row of a race table.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Public seed of the random functions.")] = 0,
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
    relation: options.RelationName = "add/remove",
    unit: options.UnitName = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            help="'discrete laplace' or 'gamma radius', under pure ε; 'binomial': fair coins, under ε and δ, "
            "where one unit moves each cell by at most 1. [default: the one of least noise]",
            autocompletion=options.completing("discrete laplace", "gamma radius", "binomial"),
        ),
    ] = None,
    rows: Annotated[
        str,
        typer.Option(
            "--rows", metavar="auto|N", help="Rows to publish; auto chooses the best number for the budget."
        ),
    ] = "auto",
    count_share: Annotated[
        float | None,
        typer.Option(
            "--count-share",
            help="Fraction of the budget for the noisy count. [default: as planned; 0.02 for a tally]",
        ),
    ] = None,
    rounded: Annotated[
        bool | None,
        typer.Option("--rounded", help="Round cells: a smaller file, and 2 % more variance of the noise."),
    ] = None,
    population: options.Population = None,
    allow_large_delta: options.AllowLargeDelta = False,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: options.Yes = False,
    strict: options.Strict = False,
    allow_clipping: options.AllowClipping = False,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
    insecure_noise_seed: options.InsecureNoiseSeed = None,
    json: options.Json = False,
) -> None:
    """Release records, or a tally, as a public function. This spends privacy budget and cannot be undone.

    Files of records are counted by the method with the smallest predicted error, in one pass, and the exact
    counts are discarded. A tally, of one site or merged from several, is released as it was made.

    The claim is shown first; on a terminal the command requests confirmation. Releasing again spends
    again, also with the same output file. An existing .hush file is replaced, a tally never, and another file
    only after confirmation. With --ledger the dataset's budget is debited first, and repeating the same
    command after a crash resumes the release instead of spending again.

    hushsum release pay.csv --columns salary --bounds 0:300000 --bandwidth 5000 --epsilon 1 -o pay.hush

    hushsum release all.tally --epsilon 1 -o skin.hush
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.kernel_and_method import KernelChoice
    from hushsum.jobs.output_files import STANDARD, is_tally, read_key
    from hushsum.jobs.plan_release import PublicFile
    from hushsum.jobs.record_files import RecordFiles
    from hushsum.jobs.release_records import PlanChoice, refuse_record_options, release_records
    from hushsum.jobs.release_tally import release_tally
    from hushsum.kernels.parameters import error_in_words, kernel_in_words
    from hushsum.methods.registry import default_kernel
    from hushsum.planning.automatic_method import UNDECLARED
    from hushsum.privacy.release_request import DEFAULT_COUNT_SHARE, ReleaseRequest
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
    recorded = ledger_options(ledger, dataset, idempotency_key, to, part)
    target = released_file(output, json=json)
    request = ReleaseRequest(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        relation=relation,
        unit=unit,
        mechanism=mechanism,
        rows=_rows(rows),
        count_share=DEFAULT_COUNT_SHARE if count_share is None else count_share,
        rounded=rounded,
        population=population,
        allow_large_delta=allow_large_delta,
        insecure_noise_seed=insecure_noise_seed,
    )
    interactive = sys.stdin.isatty() and not yes
    approve = asking(output) if interactive else None
    if len(sources) == 1 and is_tally(sources[0]):
        refuse_record_options(_given(context), _OF_RECORDS)
        with reader_may_leave(), warnings_printed(strict=strict):
            delivered = release_tally(
                sources[0],
                target,
                request,
                encryption_key=None if encryption_key_file is None else read_key(encryption_key_file),
                threads=threads,
                approve=approve,
                ledger=recorded,
            )
    else:
        box = option_values.box(bounds, "bounds", cells.dates)
        choice = PlanChoice(
            method,
            records,
            box,
            None if steps is None else option_values.numbers(steps, "steps"),
            width,
            seed,
            count_share,
            None
            if public is None
            else PublicFile(
                public, option_values.names(columns, "columns"), set_column, cells=of_public_file(cells)
            ),
        )
        sizes = {"rows": request.rows if isinstance(request.rows, int) else None, "width": width}
        name = kernel or default_kernel(method, sets=set_column is not None, **sizes)
        similarity = KernelChoice(name, bandwidth, power, bits, projection, smoothness, radius, scale)
        if box is None and public is None and method == "auto":
            _suggest_bounds(similarity, option_values.names(columns, "columns"))
        piped = interruptible_input() if STANDARD in sources else nullcontext()
        counting = progress_bar("counting", size=bytes_of(sources))
        clipped = clipping_allowed(allow_clipping)
        with reader_may_leave(), warnings_printed(strict=strict), clipped, piped, counting as progress:
            delivered = release_records(
                RecordFiles(
                    tuple(sources),
                    option_values.names(columns, "columns"),
                    unit_column,
                    set_column,
                    cells=cells,
                ),
                target,
                request,
                kernel=similarity,
                choice=choice,
                max_per_unit=max_per_unit,
                threads=threads,
                progress=progress,
                approve=approve,
                ledger=recorded,
            )
    released = confirmed(delivered, interactive=interactive)
    if released.starved and released.table is not None and rows == "auto":
        warn(
            f"only {released.table[0]} of {released.capacity} rows are published, because ε times the number "
            "of records is small; answers will be poor."
        )
    facts = [
        ("claim", repr(released.claim)),
        ("kernel", kernel_in_words(released.function.kernel)),
    ]
    if released.option is not None:
        facts.append(("method", released.option.method))
        assumed = f"{UNDECLARED:,} records; declare --records" if records is None else f"{records:,} records"
        number = UNDECLARED if records is None else records
        error = error_in_words(released.function.kernel, released.option.error, number)
        facts.append(("predicted error", f"{error}, for {assumed}"))
    if released.table is not None:
        facts.append(("rows × width", f"{released.table[0]} × {released.table[1]}"))
    report(released, facts, json=json, interactive=interactive)


def _suggest_bounds(kernel: KernelChoice, columns: tuple[str, ...] | None) -> None:
    """Before anything is spent, say which methods are not compared for want of bounds."""
    from hushsum.jobs.plan_release import methods_needing_bounds

    if columns is None or kernel.takes_sets or kernel.bandwidth is None:
        return
    others = methods_needing_bounds(kernel.example(len(columns)))
    if others:
        tell(f"Note: with --bounds, {' or '.join(others)} can be used too, often with a smaller error.")


def _given(context: typer.Context) -> Callable[[str], bool]:
    """Whether a parameter was given on the command line."""

    def given(name: str) -> bool:
        source = context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"

    return given


def _rows(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text
