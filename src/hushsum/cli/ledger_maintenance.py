"""The less common commands of ``hushsum ledger``."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import write, write_json
from hushsum.cli.release_report import account_in_words

Reason = Annotated[str, typer.Option("--reason", help="Reason, recorded in the ledger.")]


def void(
    key: Annotated[str, typer.Argument(help="Idempotency key of the release; see hushsum ledger history.")],
    ledger: options.Ledger,
    json: options.Json = False,
) -> None:
    """Void a debit for which no noise was drawn, and make its budget available again.

    hushsum ledger void KEY --ledger ledger.db
    """
    from hushsum.operations import open_ledger

    entry = open_ledger(ledger).void(key)
    write_json(entry.as_json()) if json else write(f"Gave back {entry.charge.in_words()}.")


def set_budget(
    ledger: options.Ledger,
    dataset: options.Dataset,
    reason: Reason,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    json: options.Json = False,
) -> None:
    """Change the total budget of a dataset. The ledger records both totals and the reason.

    hushsum ledger set-budget --ledger ledger.db --dataset skin --epsilon 3 --reason "board decision 12"
    """
    from hushsum.operations import amount, open_ledger

    account = open_ledger(ledger).change_budget(
        dataset, amount(epsilon=epsilon, delta=delta, rho=rho), reason=reason
    )
    if json:
        write_json(account.as_json())
    else:
        write(f"{account_in_words(account)}.")


def retire(
    ledger: options.Ledger, dataset: options.Dataset, reason: Reason, json: options.Json = False
) -> None:
    """Close a dataset permanently: no further releases are possible.

    hushsum ledger retire --ledger ledger.db --dataset skin --reason "data deleted"
    """
    from hushsum.operations import open_ledger

    account = open_ledger(ledger).retire(dataset, reason=reason)
    write_json(account.as_json()) if json else write(f"{dataset} is retired.")


def accept_restore(ledger: options.Ledger, reason: Reason, json: options.Json = False) -> None:
    """Continue with a ledger that may be a restored backup. Every dataset is frozen until it is written off.

    hushsum ledger accept-restore --ledger ledger.db --reason "disk failure on 3 May"
    """
    from hushsum.operations import open_ledger

    frozen = open_ledger(ledger).accept_restore(reason=reason)
    if json:
        write_json({"frozen": frozen})
    else:
        write(f"Accepted. Frozen until written off: {', '.join(frozen) or 'none'}.")


def move_guard(
    ledger: options.Ledger,
    to: Annotated[
        str,
        typer.Option("--to", metavar="PLACE", help="File, or URL of another PostgreSQL database."),
    ],
    reason: Reason,
    json: options.Json = False,
) -> None:
    """Move the rollback guard to a place that all machines that use the ledger share.

    From then on name that place in HUSHSUM_GUARD on every machine.

    hushsum ledger move-guard --ledger postgresql://db/sums --to postgresql://db/guard --reason "two sites"
    """
    from hushsum.operations import open_ledger

    opened = open_ledger(ledger)
    opened.move_guard(to, reason=reason)
    write_json({"ledger": opened.id}) if json else write("Moved. Name the new place in HUSHSUM_GUARD.")


def write_off(
    ledger: options.Ledger,
    dataset: options.Dataset,
    reason: Reason,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="ε to charge; may be 0.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="δ to charge.")] = None,
    rho: Annotated[float | None, typer.Option("--rho", help="ρ to charge.")] = None,
    json: options.Json = False,
) -> None:
    """Charge what was spent outside the ledger, or lost from it, and unfreeze the dataset.

    hushsum ledger write-off --ledger ledger.db --dataset skin --epsilon 0.5 --reason "releases of 2 May"
    """
    from hushsum.operations import amount, open_ledger

    account = open_ledger(ledger).write_off(
        dataset, amount(epsilon=epsilon, delta=delta, rho=rho), reason=reason
    )
    if json:
        write_json(account.as_json())
    else:
        write(f"{account_in_words(account)}.")


def upgrade(ledger: options.Ledger, json: options.Json = False) -> None:
    """Upgrade the schema of a ledger from an earlier version.

    hushsum ledger upgrade --ledger ledger.db
    """
    from hushsum.operations import upgrade_ledger

    identity = upgrade_ledger(ledger)
    write_json({"ledger": identity}) if json else write(f"Ledger {identity} is up to date.")
