"""``hushsum fit``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from hushsum.cli import option_values, options
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.model_options import given_parameters
from hushsum.cli.option_values import cell_format, of_public_file
from hushsum.cli.output import (
    progress_bar,
    reader_may_leave,
    refused_strictly,
    tell,
    warn,
    warnings_printed,
)
from hushsum.cli.release_report import (
    confirmed,
    model_approval,
    released_file,
    report,
)


def _completed(incomplete: str) -> list[str]:
    """The models whose names start so, for the shell."""
    from hushsum.jobs.model_catalogue import model_names

    return [each for each in model_names() if each.startswith(incomplete)]


def fit(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            help="Such as classifier, density or outliers; hushsum fit MODEL --help lists its options.",
            autocompletion=_completed,
        ),
    ],
    files: options.RecordFiles,
    output: options.ReleaseOutput,
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of the release.")],
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="δ; default: that of the model, shown in the claim."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="NAME", help="Column to predict from the others.")
    ] = None,
    columns: options.Columns = None,
    decimal: options.Decimal = ".",
    drop_missing: options.DropMissing = False,
    missing: options.Missing = None,
    dates: options.Dates = None,
    date_format: options.DatePattern = None,
    date_unit: options.DateUnit = "days",
    date_origin: options.DateOrigin = "1970-01-01",
    sheet: options.Sheet = None,
    encoding: options.Encoding = "utf-8",
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="LABELS", help="All labels, declared, separated by commas."),
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            "--bounds",
            metavar="LOW:HIGH[,...]",
            help="Declared range of all columns, or of each; default: -1:1. Records are clipped to it.",
        ),
    ] = None,
    public: Annotated[
        str | None,
        typer.Option(
            "--public",
            metavar="FILE",
            help="Public rows with these columns: they decide bounds, and what else a model leaves to them, "
            "where that is not given. The claim states that they were assumed to be public.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Public seed of the hash functions; default: random.")
    ] = None,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: options.Yes = False,
    strict: options.Strict = False,
    allow_clipping: options.AllowClipping = False,
    json: options.Json = False,
) -> None:
    """Fit a model to private records and write a public file. This spends budget and cannot be undone.

    The records are counted in one pass; then the claim is shown, and on a terminal the command requests
    confirmation. A classifier without --classes assumes that the labels in the data are public; the claim
    lists this assumption. With --ledger the dataset's budget is debited first, and repeating the same command
    after a crash resumes the release instead of spending again.

    classifier and linear-svc predict a group, regressor and gaussian-process a number; density and histogram
    say how records are spread, kmeans and mixture which groups they form, modes where they crowd, neighbors
    how many are near a point, outliers which points are unlike the records; sampler and synthesizer draw
    synthetic records; kernel-svc separates groups by curves.

    Each model has its own options; hushsum fit classifier --help lists them.

    hushsum fit classifier visits.parquet --target ill --classes no,yes --epsilon 1 -o ill.hush
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.fit_model import TrainingFiles, count_model, release_model
    from hushsum.jobs.model_catalogue import ModelChoice
    from hushsum.jobs.output_files import STANDARD
    from hushsum.jobs.plan_release import PublicFile
    from hushsum.records.bounds import names_in_words
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
    path_or_file = released_file(output, json=json)
    choice = ModelChoice(
        model,
        {
            **_parameters(epsilon, delta, option_values.box(bounds, "bounds", cells.dates), seed),
            **given_parameters(context),
        },
    )
    records = TrainingFiles(
        tuple(files),
        option_values.names(columns, "columns"),
        target,
        option_values.names(classes, "classes"),
        cells=cells,
        public=None
        if public is None
        else PublicFile(public, option_values.names(columns, "columns"), cells=of_public_file(cells)),
    )
    interactive = sys.stdin.isatty() and not yes
    waiting = interruptible_input() if STANDARD in files else nullcontext()
    clipped = clipping_allowed(allow_clipping)
    with warnings_printed(strict=strict), clipped, waiting, progress_bar("counting") as progress:
        counted = count_model(
            choice,
            records,
            path_or_file,
            interactive=interactive,
            ledger=recorded,
            progress=progress,
        )
    for assumed in counted.choice.assumed():
        if strict:
            raise refused_strictly(_ASSUMED[assumed])
        warn(_ASSUMED[assumed])
    for sentence in counted.model.advice():
        tell(f"Note: {sentence}.")
    with reader_may_leave(), warnings_printed(strict=strict):
        delivered = release_model(counted, approve=model_approval(output, interactive=interactive))
    released = confirmed(delivered, interactive=interactive)
    about = released.bundle.about
    facts = [
        ("model", str(about["model"])),
        ("columns", names_in_words(about["feature_names"])),
        ("claim", repr(released.claim)),
    ]
    report(released, facts, json=json, interactive=interactive)


_ASSUMED = {
    "bounds": "--bounds are not given: every column is taken to lie within -1:1, and clipped to that.",
    "target_bounds": "--target-bounds are not given: the target is taken to lie within -1:1, and clipped to "
    "that.",
    "delta": "--delta is not given: the claim has this model's default δ and is not pure ε.",
    "inputs": "--inputs is not given: the inputs are taken to be public, and only the target is protected.",
}


def _parameters(epsilon: float, delta: float | None, box: object, seed: int | None) -> dict[str, Any]:
    """The parameters of every model that were given."""
    named = {
        "epsilon": epsilon,
        "delta": delta,
        "bounds": box,
        "random_state": seed,
    }
    return {name: value for name, value in named.items() if value is not None}
