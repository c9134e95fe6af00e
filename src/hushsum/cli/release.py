"""``hushsum release``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from hushsum.cli import options
from hushsum.cli.declared_options import given_names
from hushsum.cli.output import counting, reader_may_leave, tell, warn, warnings_printed
from hushsum.cli.release_report import Confirmation, released_file
from hushsum.declaration import common, parameters_of
from hushsum.errors import UsageError
from hushsum.kernels import error_in_words, kernel_in_words
from hushsum.operations import (
    LedgerOptions,
    RecordFiles,
    is_tally,
    methods_needing_bounds,
    read_key,
    release_records,
    release_tally,
)
from hushsum.planning import UNDECLARED, KernelSpec, MethodSpec
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
        common(
            "Public records like the private ones: they decide bandwidth and bounds where these are not "
            "given, and are combined with the release.",
            metavar="FILE",
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
    target = released_file(output, json=json)
    confirmation = Confirmation(output, yes=yes)
    shared: Any = {"threads": threads, "approve": confirmation.approve, "ledger": ledger.given()}
    if len(sources) == 1 and is_tally(sources[0]):
        _refuse_options_of_records(context)
        key = None if encryption_key_file is None else read_key(encryption_key_file)
        with reader_may_leave(), warnings_printed(strict=strict):
            delivered = release_tally(sources[0], target, request, encryption_key=key, **shared)
    else:
        records = replace(records, paths=tuple(sources))
        sample = records.public_file(public)
        if records.bounds is None and public is None and method.method == AUTO:
            _suggest_bounds(kernel, records)
        reading = counting(sources, allow_clipping=allow_clipping, strict=strict)
        with reader_may_leave(), reading as progress:
            delivered = release_records(
                records,
                target,
                request,
                kernel=kernel,
                method=method,
                public=sample,
                progress=progress,
                **shared,
            )
    released = confirmation.confirmed(delivered)
    if released.starved and released.table is not None and request.rows == AUTO:
        warn(
            f"only {released.table[0]} of {released.capacity} rows are published, because ε times the number "
            "of records is small; answers will be poor."
        )
    facts = [("claim", repr(released.claim)), ("kernel", kernel_in_words(released.function.kernel))]
    if released.option is not None:
        facts.append(("method", released.option.method))
        number = method.records or UNDECLARED
        assumed = f"{number:,} records" + ("; declare --records" if method.records is None else "")
        error = error_in_words(released.function.kernel, released.option.error, number)
        facts.append(("predicted error", f"{error}, for {assumed}"))
    if released.table is not None:
        facts.append(("rows × width", f"{released.table[0]} × {released.table[1]}"))
    confirmation.report(released, facts, json=json)


def _suggest_bounds(kernel: KernelSpec, records: RecordFiles) -> None:
    """Before anything is spent, say which methods are not compared for want of bounds."""
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
