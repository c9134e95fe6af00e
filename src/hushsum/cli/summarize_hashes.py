"""``hushsum summarize secret`` and ``validation``: for runs whose curator is sent hashes alone."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import option_values, options
from hushsum.cli.output import tell, warn, write, write_facts, write_json


def secret(
    file: Annotated[str, typer.Argument(help="The secret file; created if it does not exist.")],
    json: options.Json = False,
) -> None:
    """Create the secret under which owners send hashes instead of points, and show its check value.

    One owner creates it and sends the file to the other owners and the consumer over a channel that the
    curator cannot read. The check value is the same for all of them. Use a new secret for every run. Hashes
    are not differentially private: they reveal all pairwise distances, and anyone who has the secret can
    recover the points.

    hushsum summarize secret owners.secret
    """
    from hushsum.jobs.summarize_keys import show_secret

    shown = show_secret(file)
    if json:
        write_json(shown.as_json())
        return
    tell(f"Made {file}; keep it from the curator." if shown.made else f"{file} exists and is unchanged.")
    write(shown.check)


def validation(
    file: Annotated[str, typer.Argument(help="The validation set: CSV, Parquet or Arrow.")],
    hashes: Annotated[
        str, typer.Option("--hashes", metavar="FILE", help="The secret shared by owners and consumer.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="The release to write, for the curator.")],
    epsilon: Annotated[float, typer.Option("--epsilon", help="ε of all messages of the run together.")],
    delta: options.RunDelta,
    bandwidth: options.RunBandwidth,
    validation_share: Annotated[
        float, typer.Option("--validation-share", help="Fraction of the budget for this release.")
    ] = 0.6,
    features: options.RunFeatures = 500,
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
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    debit_rho: Annotated[
        bool, typer.Option("--debit-rho", help="Debit the release in ρ, not in ε and δ.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Release a validation set under the owners' secret, for a curator that must not see it.

    The curator's command takes the file in place of a validation set, and the same --epsilon, --delta,
    --validation-share, --bandwidth and --features.

    hushsum summarize validation v.parquet --hashes owners.secret --epsilon 2 --delta 1e-5 --bandwidth 3
    -o v.target
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.summarize_target import TargetChoice, release_validation
    from hushsum.jobs.summarize_terms import RunChoice

    run = RunChoice(
        size=1,
        epsilon=epsilon,
        delta=delta,
        bandwidth=bandwidth,
        validation_share=validation_share,
        features=features,
        hashed=True,
    )
    choice = TargetChoice(
        file=file,
        secret=hashes,
        output=output,
        run=run,
        columns=option_values.names(columns, "columns"),
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
    if choice.ledger is None:
        warn("no ledger is given, so the privacy loss of this release is not recorded.")
    made = release_validation(choice)
    if json:
        write_json(made.as_json())
        return
    write(made.claim.sentence() + "\n")
    write_facts(
        [
            ("release", made.output),
            ("columns", ", ".join(made.columns)),
            ("secret's check", made.check),
            ("claim", repr(made.claim)),
            *([] if made.idempotency_key is None else [("idempotency key", made.idempotency_key)]),
        ]
    )
