"""``hushsum fit``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from hushsum.cli import option_values, options
from hushsum.cli.declared_options import Reworded, Without
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.model_options import given_parameters
from hushsum.cli.option_values import of_public_file
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
from hushsum.operations import LedgerOptions, RecordFiles


def _completed(incomplete: str) -> list[str]:
    """The models whose names start so, for the shell."""
    from hushsum.operations import model_names

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
    records: Annotated[
        RecordFiles,
        Without("set_column"),
        Reworded(
            {"bounds": "Declared range of all columns, or of each; default: -1:1. Records are clipped to it."}
        ),
    ],
    ledger: LedgerOptions,
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of the release.")],
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="δ; default: that of the model, shown in the claim."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="NAME", help="Column to predict from the others.")
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="LABELS", help="All labels, declared, separated by commas."),
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
    from hushsum.operations import (
        STANDARD,
        ModelChoice,
        PublicFile,
        TrainingFiles,
        count_model,
        release_model,
    )
    from hushsum.records import clipping_allowed, names_in_words

    path_or_file = released_file(output, json=json)
    choice = ModelChoice(
        model,
        {
            **_parameters(epsilon, delta, records.bounds, records.max_per_unit, seed),
            **given_parameters(context),
        },
    )
    cells = of_public_file(records.cells)
    training = TrainingFiles(
        tuple(files),
        records.columns,
        target,
        option_values.names(classes, "classes"),
        cells=records.cells,
        public=None if public is None else PublicFile(public, records.columns, cells=cells),
        unit_column=records.unit_column,
    )
    interactive = sys.stdin.isatty() and not yes
    waiting = interruptible_input() if STANDARD in files else nullcontext()
    clipped = clipping_allowed(allow_clipping)
    with warnings_printed(strict=strict), clipped, waiting, progress_bar("counting") as progress:
        counted = count_model(
            choice,
            training,
            path_or_file,
            interactive=interactive,
            ledger=ledger.given(),
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


def _parameters(
    epsilon: float, delta: float | None, box: object, max_per_unit: int | None, seed: int | None
) -> dict[str, Any]:
    """The parameters of every model that were given."""
    named = {
        "epsilon": epsilon,
        "delta": delta,
        "bounds": box,
        "max_per_unit": max_per_unit,
        "random_state": seed,
    }
    return {name: value for name, value in named.items() if value is not None}
