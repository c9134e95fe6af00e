"""``hushsum summarize``: a summary of several owners' records, between processes that trust pinned keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import typer

from hushsum.cli import option_values, options
from hushsum.cli.error_wording import Command, Group, help_of
from hushsum.cli.key_files import show_key_file
from hushsum.cli.output import tell, warn, write, write_facts, write_json
from hushsum.cli.summarize_curator import curator
from hushsum.cli.summarize_hashes import secret, validation

summarize = typer.Typer(
    name="summarize",
    cls=Group,
    help="Collect a summary of several owners' private records that matches a validation set.",
    no_args_is_help=True,
)


def keys(
    file: Annotated[str, typer.Argument(help="The key file; created if it does not exist.")],
    json: options.Json = False,
) -> None:
    """Make a key pair for TLS, and show its fingerprint, which the other parties pin.

    The file is the private key, with mode 0600. The fingerprint is the public key: send it to the others over
    an authenticated channel.

    hushsum summarize keys owner.key
    """
    show_key_file(file, json=json)


def owner(
    file: Annotated[str, typer.Argument(help="The records: CSV, Parquet or Arrow.")],
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Address and port to listen on; port 0: any free port."
        ),
    ],
    key: Annotated[str, typer.Option("--key", metavar="FILE", help="This owner's key file.")],
    peer: Annotated[
        list[str],
        typer.Option(
            "--peer", metavar="FINGERPRINT", help="Fingerprint of an allowed curator; may be repeated."
        ),
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", metavar="NAMES", help="Columns that may be sent, separated by commas; default: all."
        ),
    ] = None,
    decimal: options.Decimal = ".",
    drop_missing: options.DropMissing = False,
    missing: options.Missing = None,
    dates: options.Dates = None,
    date_format: options.DatePattern = None,
    date_unit: options.DateUnit = "days",
    date_origin: options.DateOrigin = "1970-01-01",
    sheet: options.Sheet = None,
    encoding: options.Encoding = "utf-8",
    cap: Annotated[
        int | None, typer.Option("--cap", help="Maximum number of points that are sent in total.")
    ] = None,
    hashes: Annotated[
        str | None,
        typer.Option(
            "--hashes", metavar="FILE", help="Send hashes under this secret instead of points, or nothing."
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="DIR", help="Folder for the state of the run. [default: FILE.summarize]"
        ),
    ] = None,
    ledger: options.LedgerPlace = None,
    dataset: options.DatasetName = None,
    delta: Annotated[
        float | None,
        typer.Option("--delta", help="Debit ε at this δ from the ledger; default: debit ρ."),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", help="How long to wait for a message or a curator.")
    ] = 3600.0,
    json: options.Json = False,
) -> None:
    """Take part in one run with a file of private records.

    Only the holder of a pinned key can connect. The curator is trusted and sees the points that are sent, or
    with --hashes their pairwise distances. The claim bounds what the other owners learn. The ledger is
    debited before anything is sent, and repeating the same command after a crash resumes the run instead of
    spending again.

    hushsum summarize owner data.parquet --listen 0.0.0.0:7000 --key owner.key --peer 3f5a…
    """
    from hushsum.cli.options import ledger_options
    from hushsum.jobs.summarize_owner import OwnerChoice, read_peers, take_part
    from hushsum.transport.addresses import Patience, parse_address

    choice = OwnerChoice(
        file=file,
        key=key,
        peers=read_peers(peer),
        state=state if state is not None else f"{file}.summarize",
        columns=option_values.names(columns, "columns"),
        cap=cap,
        delta=delta,
        secret=hashes,
        ledger=ledger_options(ledger, dataset),
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
    address = parse_address(listen, "listen")
    if choice.ledger is None:
        warn("no ledger is given, so the privacy loss of this run is not recorded.")
    ended = take_part(
        choice,
        address,
        patience=Patience(wait=wait),
        log=tell,
        listening=lambda port: tell(f"listening on {address[0]}:{port}"),
    )
    if json:
        write_json(ended.as_json())
        return
    if ended.claim is not None:
        write(ended.claim.sentence() + "\n")
    facts = [
        ("run", ended.run),
        ("rule", ended.rule),
        ("points sent", str(ended.points)),
        ("claim", "nothing is promised" if ended.claim is None else repr(ended.claim)),
    ]
    if ended.idempotency_key is not None:
        facts.append(("idempotency key", ended.idempotency_key))
    write_facts(facts)


COMMANDS: Final[tuple[Callable[..., None], ...]] = (keys, owner, curator, secret, validation)
for command in COMMANDS:
    summarize.command(cls=Command, help=help_of(command))(command)
