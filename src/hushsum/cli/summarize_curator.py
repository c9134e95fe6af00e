"""``hushsum summarize curator``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.output import progress_bar, tell, warn, write, write_facts, write_json

if TYPE_CHECKING:
    from hushsum.jobs.summarize_curator import Summarized

_RULES = ("threshold", "fresh", "auction")


def curator(
    owners: Annotated[
        str,
        typer.Option(
            "--owners", metavar="HOST:PORT@FINGERPRINT,...", help="Where the owners listen, and their keys."
        ),
    ],
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="The curator's key file.")],
    validation: Annotated[
        str,
        typer.Option("--validation", metavar="FILE", help="Records that the summary should resemble."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The Parquet file of points to write.")],
    size: Annotated[int, typer.Option("--size", help="Number of points of the summary.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of all messages together.")],
    delta: options.RunDelta,
    bandwidth: options.RunBandwidth,
    rule: Annotated[
        str,
        typer.Option(
            "--rule", help="threshold, fresh or auction.", autocompletion=options.completing(*_RULES)
        ),
    ] = "threshold",
    validation_share: Annotated[
        float,
        typer.Option(
            "--validation-share", help="Fraction of the budget for the release of the validation set."
        ),
    ] = 0.6,
    rounds: Annotated[
        int | None, typer.Option("--rounds", help="Number of rounds. [default: depends on the rule]")
    ] = None,
    reach: Annotated[
        int | None, typer.Option("--reach", help="Total number of points to be sent. [default: 3 × the size]")
    ] = None,
    features: options.RunFeatures = 500,
    seed: Annotated[int, typer.Option("--seed", help="Public seed of the features.")] = 0,
    cap: Annotated[int | None, typer.Option("--cap", help="Maximum number of points from one owner.")] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Decrease of the log-odds per rank, for the auction.")
    ] = None,
    columns: options.ComparedColumns = None,
    decimal: options.Decimal = ".",
    drop_missing: options.DropMissing = False,
    missing: options.Missing = None,
    dates: options.Dates = None,
    date_format: options.DatePattern = None,
    date_unit: options.DateUnit = "days",
    date_origin: options.DateOrigin = "1970-01-01",
    sheet: options.Sheet = None,
    encoding: options.Encoding = "utf-8",
    carry: Annotated[
        str | None,
        typer.Option(
            "--carry", metavar="NAMES", help="Columns that are sent and not compared, such as a label."
        ),
    ] = None,
    hashes: Annotated[
        bool,
        typer.Option(
            "--hashes",
            help="Owners send hashes; --validation is a file from hushsum summarize validation.",
        ),
    ] = False,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="DIR", help="Folder for the state of the run. [default: OUTPUT.summarize]"
        ),
    ] = None,
    pace: Annotated[
        float, typer.Option("--pace", metavar="SECONDS", help="Time between the starts of rounds.")
    ] = 1.0,
    patience: Annotated[
        float,
        typer.Option(
            "--patience", metavar="SECONDS", help="Exclude an owner that cannot be reached for this time."
        ),
    ] = 120.0,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    debit_rho: Annotated[
        bool, typer.Option("--debit-rho", help="Debit the validation set's release in ρ, not in ε and δ.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Collect a summary of the owners' records that resembles a validation set.

    Every owner runs hushsum summarize owner and has pinned this key. The summary contains original records of
    the owners and is for the consumer only; the claim bounds what owners learn about each other. Each round
    is drawn once and stored before it is sent, and repeating the same command after a crash resumes the run.
    With --ledger the release of the validation set is debited. With --hashes the curator sees neither points
    nor validation set, and the summary contains hashes.

    hushsum summarize curator --owners a.example:7000@3f5a… --key curator.key --validation v.parquet
    --size 2000 --epsilon 2 --delta 1e-5 --bandwidth 3 -o summary.parquet
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.summarize_curator import CuratorChoice, collect_summary
    from hushsum.jobs.summarize_terms import RunChoice
    from hushsum.transport.addresses import Patience

    choice = CuratorChoice(
        key=key,
        owners=owners,
        validation=validation,
        output=output,
        state=state if state is not None else f"{output}.summarize",
        run=RunChoice(
            size=size,
            epsilon=epsilon,
            delta=delta,
            bandwidth=bandwidth,
            rule=rule,
            validation_share=validation_share,
            rounds=rounds,
            reach=reach,
            features=features,
            seed=seed,
            cap=cap,
            rate=rate,
            hashed=hashes,
        ),
        columns=option_values.names(columns, "columns"),
        carried=option_values.names(carry, "carry") or (),
        ledger=ledger_options(ledger, dataset),
        debit_rho=debit_rho,
        cells=option_values.cell_format(
            decimal=decimal,
            drop_missing=drop_missing,
            dates=dates,
            date_format=date_format,
            date_unit=date_unit,
            date_origin=date_origin,
            sheet=sheet,
            encoding=encoding,
            missing=missing,
        ),
    )
    if pace <= 0:
        warn("without --pace the duration of a round reveals to every owner how long the others took.")
    with progress_bar("collecting") as progress:
        made = collect_summary(
            choice,
            pace=pace,
            patience=Patience(wait=patience, transfer=patience, lost=patience),
            log=tell,
            progress=progress,
        )
    for name, last in made.summary.lost.items():
        warn(
            f"owner {name[:12]}… was lost in round {last}; the summary does not contain its remaining points."
        )
    if len(made.summary.points) < size:
        warn(
            f"{len(made.summary.points)} of {size} points requested; give more --rounds, a larger ε, or more "
            "records of the owners and for --validation, or request fewer. Another run spends again."
        )
    write_json(made.as_json()) if json else _write(made, size)


def _write(made: Summarized, size: int) -> None:
    summary = made.summary
    write(made.together.sentence() + "\n")
    write_facts(
        [
            ("summary", f"{made.output}: {len(summary.points)} of {size} points"),
            ("rule", f"{made.rule}, {made.rounds} rounds"),
            ("all messages", repr(made.together)),
            ("owners' records", f"rho={summary.claims.owners.rho:.6g} of it"),
            ("validation records", f"rho={summary.claims.validation.rho:.6g} of it"),
            ("points seen", f"{summary.seen}, {summary.parsimony:.2f} times what is needed"),
            ("by owner", ", ".join(f"{name[:12]}… {count}" for name, count in made.by_owner.items())),
            ("lost owners", ", ".join(f"{name[:12]}…" for name in summary.lost) or "none"),
            *([] if made.idempotency_key is None else [("idempotency key", made.idempotency_key)]),
        ]
    )
