"""``hushsum fit``."""

from __future__ import annotations

import json as json_format
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushsum.cli import options, values
from hushsum.cli.interrupts import interruptible_input
from hushsum.cli.output import progress_bar, reader_may_leave, tell, warn, write, write_facts, write_json
from hushsum.cli.release import DECLINED, asking, left, warn_of
from hushsum.cli.suspicions import suspicions_told
from hushsum.errors import UsageError

if TYPE_CHECKING:
    from hushsum.jobs.fit_model import ModelReleased

_MODELS = (
    "density",
    "classifier",
    "outliers",
    "modes",
    "regressor",
    "linear-svc",
    "neighbors",
    "sampler",
    "histogram",
    "gaussian-process",
    "kernel-svc",
)


def fit(
    model: Annotated[
        str,
        typer.Argument(help=f"{', '.join(_MODELS)}.", autocompletion=options.completing(*_MODELS)),
    ],
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="CSV, Parquet or Arrow; - reads CSV from standard input."),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The .hush file to write; - is standard output.")
    ],
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of the one release.")],
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="δ; default: the model's own, which the claim shows."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="NAME", help="Column to learn from the others.")
    ] = None,
    columns: options.Columns = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes", metavar="LABELS", help="Every label there is, separated by commas; declared."
        ),
    ] = None,
    bounds: Annotated[
        str | None,
        typer.Option(
            "--bounds",
            metavar="LOW:HIGH[,...]",
            help="Declared range of all columns, or of each; default: -1:1. Records are clipped to it.",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            help="density: gaussian, laplacian or matern; gaussian-process, kernel-svc: rbf, laplacian or "
            "matern; modes, neighbors, sampler: euclidean, manhattan, gaussian, ...; default: the first.",
            autocompletion=options.completing(
                "euclidean", "manhattan", "gaussian", "rbf", "laplacian", "matern"
            ),
        ),
    ] = None,
    bandwidth: options.Bandwidth = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Public seed of the hash functions; default: a fresh one.")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Another parameter of the model, as JSON; may be repeated."
        ),
    ] = None,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    idempotency_key: options.IdempotencyKey = None,
    to: options.Recipient = None,
    part: options.PartName = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: options.Json = False,
) -> None:
    """Fit a model on private records and make it public. This spends privacy, and cannot be taken back.

    The records are counted in one pass; then the claim is shown, and on a terminal you are asked. A
    classifier without --classes takes the labels it finds as public knowledge, which the claim says. With
    --ledger the dataset's budget is debited first, and the very same command resumes after a crash instead of
    spending again.

    hushsum fit classifier visits.parquet --target ill --classes no,yes --epsilon 1 -o ill.hush
    """
    from hushsum.cli.ledger_options import ledger_options
    from hushsum.jobs.file_places import STANDARD
    from hushsum.jobs.fit_model import TrainingFiles, count_model, release_model
    from hushsum.jobs.model_choice import ModelChoice

    recorded = ledger_options(ledger, dataset, idempotency_key, to, part)
    piped = output == STANDARD
    if piped and json:
        raise UsageError(
            "the file and the JSON cannot both go to standard output; give a path, or leave --json out"
        )
    if piped and sys.stdout.isatty():
        raise UsageError("the file is binary and standard output is a terminal; give a path, or redirect it")
    choice = ModelChoice(model, _parameters(epsilon, delta, bounds, kernel, bandwidth, seed, given))
    records = TrainingFiles(
        tuple(files), values.names(columns, "--columns"), target, values.names(classes, "--classes")
    )
    asks = sys.stdin.isatty() and not yes
    waiting = interruptible_input() if STANDARD in files else nullcontext()
    with suspicions_told(), waiting, progress_bar("counting") as progress:
        counted = count_model(
            choice,
            records,
            sys.stdout.buffer if piped else output,
            asked=asks,
            ledger=recorded,
            progress=progress,
        )
    with reader_may_leave():
        released = release_model(counted, approve=asking(output) if asks else None)
    if released is None:
        tell("Nothing was released, and nothing was spent.")
        raise typer.Exit(DECLINED)
    if not released.claim.secure:
        warn("this release protects nobody: its noise can be computed from its seed.")
    if not asks:
        warn_of(released.claim)
    if json:
        write_json(released.as_json())
    elif piped:
        tell(released.claim.sentence())
        if released.record is not None:
            tell(left(released.record.account))
    else:
        _write(released, told=asks and not (released.record is not None and released.record.again))


def _parameters(
    epsilon: float,
    delta: float | None,
    bounds: str | None,
    kernel: str | None,
    bandwidth: float | None,
    seed: int | None,
    given: list[str] | None,
) -> dict[str, Any]:
    """The parameters that were given; those of --set as JSON, or as text where they are none."""
    box = values.ranges(bounds, "--bounds")
    named = {
        "epsilon": epsilon,
        "delta": delta,
        "bounds": box[0] if box is not None and len(box) == 1 else box,
        "bandwidth": bandwidth,
        "random_state": seed,
    }
    parameters: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if kernel is not None:
        # Not among the named: --set kernel='["gaussian", "matern"]' gives a density several.
        parameters["kernel"] = kernel
    for each in given or []:
        name, equals, text = each.partition("=")
        if not equals or not name:
            raise UsageError("--set must be NAME=VALUE, got something else; such as --set power=4")
        if name in named:
            raise UsageError(f"{name} has an option of its own, got it by --set; use that option")
        if name in parameters:
            raise UsageError(f"{name} is given twice; give it once")
        try:
            parameters[name] = json_format.loads(text)
        except ValueError:
            parameters[name] = text
    return parameters


def _write(released: ModelReleased, *, told: bool) -> None:
    """Print the release; the claim's sentence unless it stands above the question already."""
    from hushsum.cli.sizes import bytes_in_words
    from hushsum.cli.tally_facts import names_in_words

    if not told:
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
