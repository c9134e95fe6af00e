"""``hushsum release``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import given_names
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.option_values import of_public_file
from hushsum.cli.output import bytes_of, progress_bar, reader_may_leave, tell, warn, warnings_printed
from hushsum.cli.release_report import asking, confirmed, released_file, report
from hushsum.declaration import parameters_of
from hushsum.errors import UsageError
from hushsum.operations import LedgerOptions, RecordFiles
from hushsum.planning import KernelSpec, MethodSpec
from hushsum.privacy import AUTO, ReleaseRequest


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
    request: ReleaseRequest,
    records: RecordFiles,
    kernel: KernelSpec,
    method: MethodSpec,
    ledger: LedgerOptions,
    public: Annotated[
        str | None,
        typer.Option(
            "--public",
            metavar="FILE",
            help="Public records like the private ones: they decide bandwidth and bounds where these are not "
            "given, and are combined with the release.",
        ),
    ] = None,
    yes: options.Yes = False,
    strict: options.Strict = False,
    allow_clipping: options.AllowClipping = False,
    threads: options.Threads = None,
    encryption_key_file: options.EncryptionKeyFile = None,
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
    from hushsum.kernels import error_in_words, kernel_in_words
    from hushsum.operations import STANDARD, PublicFile, is_tally, read_key, release_records, release_tally
    from hushsum.planning import UNDECLARED
    from hushsum.records import clipping_allowed

    recorded = ledger.given()
    target = released_file(output, json=json)
    interactive = sys.stdin.isatty() and not yes
    approve = asking(output) if interactive else None
    if len(sources) == 1 and is_tally(sources[0]):
        _refuse_options_of_records(context)
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
        records = replace(records, paths=tuple(sources))
        sample = None
        if public is not None:
            cells = of_public_file(records.cells)
            sample = PublicFile(public, records.columns, records.set_column, cells=cells)
        if records.bounds is None and public is None and method.method == AUTO:
            _suggest_bounds(kernel, records)
        piped = interruptible_input() if STANDARD in sources else nullcontext()
        counting = progress_bar("counting", size=bytes_of(sources))
        clipped = clipping_allowed(allow_clipping)
        with reader_may_leave(), warnings_printed(strict=strict), clipped, piped, counting as progress:
            delivered = release_records(
                records,
                target,
                request,
                kernel=kernel,
                method=method,
                public=sample,
                threads=threads,
                progress=progress,
                approve=approve,
                ledger=recorded,
            )
    released = confirmed(delivered, interactive=interactive)
    if released.starved and released.table is not None and request.rows == AUTO:
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
        number = method.records or UNDECLARED
        assumed = f"{number:,} records" + ("; declare --records" if method.records is None else "")
        error = error_in_words(released.function.kernel, released.option.error, number)
        facts.append(("predicted error", f"{error}, for {assumed}"))
    if released.table is not None:
        facts.append(("rows × width", f"{released.table[0]} × {released.table[1]}"))
    report(released, facts, json=json, interactive=interactive)


def _suggest_bounds(kernel: KernelSpec, records: RecordFiles) -> None:
    """Before anything is spent, say which methods are not compared for want of bounds."""
    from hushsum.operations import methods_needing_bounds

    sets = records.set_column is not None
    if records.columns is None or sets or kernel.takes_sets or kernel.bandwidth is None:
        return
    others = methods_needing_bounds(kernel.example(len(records.columns)))
    if others:
        tell(f"Note: with --bounds, {' or '.join(others)} can be used too, often with a smaller error.")


def _refuse_options_of_records(context: typer.Context) -> None:
    """Refuse options that a tally has from the command that counted it."""
    declared = (each.name for spec in (RecordFiles, KernelSpec, MethodSpec) for each in parameters_of(spec))
    given = given_names(context)
    for name in (*declared, "public", "allow_clipping"):
        if name in given:
            raise UsageError(
                name,
                "is for a release of files of records",
                got="it for a tally",
                remedy="leave it out: a tally has its kernel, columns and sizes",
            )
