"""``hushsum release``, ``hushsum heatmap`` and ``hushsum choose``: what spends budget on functions."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hushsum.declaration import parameters_of, setting
from hushsum.errors import UsageError
from hushsum.files import FileKind
from hushsum.kernels import error_in_words, kernel_in_words
from hushsum.operations import (
    STANDARD,
    ChoiceTerms,
    LedgerOptions,
    MapChoice,
    RecordFiles,
    draw_heat_map,
    is_tally,
    kind_of,
    make_heat_map,
    methods_needing_bounds,
    read_key,
    release_records,
    release_tally,
)
from hushsum.operations import choose as run_choice
from hushsum.planning import UNDECLARED, KernelSpec, MethodSpec
from hushsum.privacy import AUTO, PROMISE, RULE_ON_DELTA, STATED, Claim, ReleaseRequest

from . import options
from .declared_options import Reworded, Taking, Without, given_names
from .interrupts import interruptible_input
from .output import counting, reader_may_leave, tell, warn, warnings_printed, write_result
from .release_report import Confirmation, confirm, released_file, warn_if_insecure


def release(
    context: typer.Context,
    *,
    sources: list[str] = typer.Argument(
        metavar="FILE...",
        help="Records (CSV, Parquet or Arrow; - reads CSV from standard input), or one .tally file.",
    ),
    output: options.ReleaseOutput,
    request: ReleaseRequest,
    records: RecordFiles,
    kernel: KernelSpec,
    method: MethodSpec,
    ledger: LedgerOptions,
    public: str | None = setting(
        None,
        "Public records like the private ones: they decide bandwidth and bounds where these are not "
        "given, and are combined with the release.",
        metavar="FILE",
    ),
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
    confirmation = Confirmation(output, yes=yes)
    to = confirmation.destination(released_file(output, json=json), ledger)
    if len(sources) == 1 and is_tally(sources[0]):
        _refuse_options_of_records(context)
        key = read_key(encryption_key_file)
        with reader_may_leave(), warnings_printed(strict=strict):
            released = release_tally(sources[0], to, request, encryption_key=key, threads=threads)
    else:
        records = replace(records, paths=tuple(sources))
        sample = records.public_file(public)
        if records.bounds is None and public is None and method.method == AUTO:
            _suggest_bounds(kernel, records)
        reading = counting(sources, allow_clipping=allow_clipping, strict=strict)
        with reader_may_leave(), reading as progress:
            released = release_records(
                records,
                to,
                request,
                kernel=kernel,
                method=method,
                public=sample,
                threads=threads,
                progress=progress,
            )
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
    """Refuse options that are decided when a tally is counted."""
    declared = (each.name for spec in (RecordFiles, KernelSpec, MethodSpec) for each in parameters_of(spec))
    given = given_names(context)
    for name in (*declared, "public", "allow_clipping"):
        if name in given:
            rule = "is for a release of files of records"
            remedy = "leave it out: a tally has its kernel, columns and sizes"
            raise UsageError(name, rule, got="it for a tally", remedy=remedy)


def heatmap(
    *,
    sources: list[str] = typer.Argument(
        metavar="FILE...",
        help="Points (CSV, Parquet or Arrow; - reads CSV from standard input), or a .hush file to draw.",
    ),
    output: list[str] = typer.Option(
        ...,
        "--output",
        "-o",
        help="The map to write, by its suffix: .html, .png, .svg, .pdf, .geojson, .tif, .hush; "
        "may be repeated.",
    ),
    request: Annotated[
        ReleaseRequest, Taking(ReleaseRequest, *PROMISE, *RULE_ON_DELTA, *STATED, "insecure_noise_seed")
    ],
    records: Annotated[
        RecordFiles, Without("set_column", "dates", "date_format", "date_unit", "date_origin")
    ],
    method: Annotated[MethodSpec, Without("method", "width", "steps", "seed")],
    ledger: LedgerOptions,
    choice: MapChoice,
    yes: options.Yes = False,
    allow_clipping: options.AllowClipping = False,
    threads: options.Threads = None,
    json: options.Json = False,
) -> None:
    """Make a private heat map of points. This spends privacy budget and cannot be undone.

    Distances are in metres for longitude and latitude, in that order. Where noise could explain what is seen,
    the map is hatched. The released function is kept as a .hush file beside the map; maps of a .hush file
    spend nothing.

    hushsum heatmap trips.csv --columns lon,lat --bounds -74.3:-73.7,40.5:40.9 --bandwidth 300 --epsilon 1 \
-o trips.html

    hushsum heatmap trips.hush -o trips.png -o trips.tif
    """
    if len(sources) == 1 and kind_of(Path(sources[0])) is FileKind.RELEASED:
        if ledger.given() is not None or (request.epsilon, request.delta, request.rho) != (None, None, None):
            rule = "must be left out for a .hush file, whose maps spend nothing"
            raise UsageError("epsilon", rule, remedy="leave it out, or give the file of points")
        claim = draw_heat_map(sources[0], output, choice).in_numbers()
        write_result({"outputs": output, "claim": claim}, [("map", each) for each in output], as_json=json)
        return
    confirmation = Confirmation(output[0], yes=yes)
    with counting(sources, allow_clipping=allow_clipping) as progress:
        made = make_heat_map(
            replace(records, paths=tuple(sources)),
            output,
            confirmation.destination(output[0], ledger),
            request,
            choice,
            declared_records=method.records,
            threads=threads,
            progress=progress,
        )
    facts = [("claim", repr(made.released.claim)), *(("map", each) for each in made.outputs)]
    confirmation.report(made.released, facts, json=json, result=made)


_WHAT = ("bounds", "bandwidth")


def choose(
    *,
    what: str = typer.Argument(help="bounds or bandwidth.", autocompletion=options.completing(lambda: _WHAT)),
    files: options.RecordFiles,
    request: Annotated[
        ReleaseRequest,
        Taking(ReleaseRequest, "epsilon", "relation", "insecure_noise_seed"),
        Reworded(
            {"epsilon": "ε of the selection; a later release adds its own."},
            required=("epsilon",),
            listed=True,
        ),
    ],
    records: Annotated[RecordFiles, Without("bounds", "set_column")],
    ledger: LedgerOptions,
    kernel: Annotated[
        KernelSpec, Without("bandwidth", "scale", "bits", "projection", "smoothness", "radius")
    ],
    terms: ChoiceTerms,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Choose bounds or a bandwidth from the private records. This spends privacy budget and cannot be undone.

    The files must fit into memory. The claim is shown first; on a terminal the command requests confirmation.

    hushsum choose bounds skin.parquet --columns R,G,B --within 0:1000 --epsilon 0.1

    hushsum choose bandwidth skin.parquet --columns R,G,B --candidates 1,5,25 --epsilon 0.1
    """
    if what not in _WHAT:
        raise UsageError("what", "must be bounds or bandwidth", got=f"{what!r}")
    records = replace(records, paths=tuple(files))
    if ledger.given() is not None:
        request = replace(request, budget=ledger.budget(), idempotency_key=ledger.idempotency_key)
    interactive = sys.stdin.isatty() and not yes

    def approve(claim: Claim) -> None:
        if interactive:
            tell(claim.sentence())
            confirm("Choose?", "Nothing was chosen, and nothing was spent.")

    with interruptible_input() if STANDARD in files else nullcontext():
        chosen = run_choice(what, records, request, terms, kernel=kernel, approve=approve)
    warn_if_insecure(chosen.claim, "choice")
    facts = [*chosen.facts, ("claim", repr(chosen.claim))]
    write_result(chosen, facts, as_json=json, claim=chosen.claim)
