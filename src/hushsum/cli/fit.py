"""``hushsum fit``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushsum.cli import options, values
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.model_options import given_parameters
from hushsum.cli.output import (
    progress_bar,
    reader_may_leave,
    tell,
    warn,
    warnings_printed,
    write,
    write_facts,
    write_json,
)
from hushsum.cli.release import DECLINED, asking, left, warn_of
from hushsum.errors import UsageError

if TYPE_CHECKING:
    from hushsum.jobs.fit_model import ModelReleased


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
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="CSV, Parquet or Arrow; - reads CSV from standard input."),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The .hush file to write; - is standard output.")
    ],
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of the release.")],
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="δ; default: that of the model, shown in the claim."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="NAME", help="Column to predict from the others.")
    ] = None,
    columns: options.Columns = None,
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
    seed: Annotated[
        int | None, typer.Option("--seed", help="Public seed of the hash functions; default: random.")
    ] = None,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not request confirmation.")] = False,
    json: options.Json = False,
) -> None:
    """Fit a model to private records and write a public file. This spends budget and cannot be undone.

    The records are counted in one pass; then the claim is shown, and on a terminal the command requests
    confirmation. A classifier without --classes assumes that the labels in the data are public; the claim
    lists this assumption. With --ledger the dataset's budget is debited first, and repeating the same command
    after a crash resumes the release instead of spending again.

    Each model has its own options; hushsum fit classifier --help lists them.

    hushsum fit classifier visits.parquet --target ill --classes no,yes --epsilon 1 -o ill.hush
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.files import STANDARD
    from hushsum.jobs.fit_model import TrainingFiles, count_model, release_model
    from hushsum.jobs.model_catalogue import ModelChoice

    recorded = ledger_options(ledger, dataset, idempotency_key, to, part)
    piped = output == STANDARD
    if piped and json:
        raise UsageError(
            rule="the file and the JSON cannot both go to standard output",
            remedy="give a path, or leave --json out",
        )
    if piped and sys.stdout.isatty():
        raise UsageError(
            rule="the file is binary and standard output is a terminal", remedy="give a path, or redirect it"
        )
    choice = ModelChoice(model, {**_parameters(epsilon, delta, bounds, seed), **given_parameters(context)})
    records = TrainingFiles(
        tuple(files), values.names(columns, "columns"), target, values.names(classes, "classes")
    )
    interactive = sys.stdin.isatty() and not yes
    waiting = interruptible_input() if STANDARD in files else nullcontext()
    with warnings_printed(), waiting, progress_bar("counting") as progress:
        counted = count_model(
            choice,
            records,
            sys.stdout.buffer if piped else output,
            interactive=interactive,
            ledger=recorded,
            progress=progress,
        )
    with reader_may_leave():
        released = release_model(counted, approve=asking(output) if interactive else None)
    if released is None:
        tell("Nothing was released, and nothing was spent.")
        raise typer.Exit(DECLINED)
    if not released.claim.secure:
        warn("this release protects nobody: its noise can be computed from its seed.")
    if not interactive:
        warn_of(released.claim)
    if json:
        write_json(released.as_json())
    elif piped:
        tell(released.claim.sentence())
        if released.record is not None:
            tell(left(released.record.account))
    else:
        _write(
            released, claim_shown=interactive and not (released.record is not None and released.record.again)
        )


def _parameters(epsilon: float, delta: float | None, bounds: str | None, seed: int | None) -> dict[str, Any]:
    """The parameters of every model that were given."""
    box = values.ranges(bounds, "bounds")
    named = {
        "epsilon": epsilon,
        "delta": delta,
        "bounds": box[0] if box is not None and len(box) == 1 else box,
        "random_state": seed,
    }
    return {name: value for name, value in named.items() if value is not None}


def _write(released: ModelReleased, *, claim_shown: bool) -> None:
    """Print the release; the claim's sentence unless it stands above the question already."""
    from hushsum.cli.output import bytes_in_words
    from hushsum.records.bounds import names_in_words

    if not claim_shown:
        write(released.claim.sentence() + "\n")
    about = released.bundle.about
    facts = [
        ("released", f"{released.output} ({bytes_in_words(released.size)})"),
        ("model", str(about["model"])),
        ("columns", names_in_words(about["feature_names"])),
        ("claim", repr(released.claim)),
    ]
    record = released.record
    if record is not None:
        facts.append(("dataset", f"{record.dataset}: {left(record.account)}"))
        facts.append(("idempotency key", record.idempotency_key))
        if record.again:
            facts.append(("note", "this release was made before; its file is unchanged, nothing was spent"))
    write_facts(facts)
