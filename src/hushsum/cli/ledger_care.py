"""The commands of ``hushsum ledger`` that are needed seldom."""

from __future__ import annotations

from typing import Annotated

import typer

from hushsum.cli import options
from hushsum.cli.output import write, write_json

Reason = Annotated[str, typer.Option("--reason", help="For later readers of the ledger.")]


def void(
    key: Annotated[str, typer.Argument(help="Key of the release; see hushsum ledger history.")],
    ledger: options.Ledger,
    json: options.Json = False,
) -> None:
    """Give back the budget of a debit for which no noise was ever drawn.

    hushsum ledger void KEY --ledger ledger.db
    """
    from hushsum.jobs.ledger_commands import open_ledger

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
    """Set another total for a dataset. The ledger keeps both, and the reason.

    hushsum ledger set-budget --ledger ledger.db --dataset skin --epsilon 3 --reason "board decision 12"
    """
    from hushsum.jobs.ledger_commands import amount, open_ledger

    account = open_ledger(ledger).change_budget(
        dataset, amount(epsilon=epsilon, delta=delta, rho=rho), reason=reason
    )
    if json:
        write_json(account.as_json())
    else:
        write(f"{account.remaining.in_words()} left of {account.terms.budget.in_words()}.")


def retire(
    ledger: options.Ledger, dataset: options.Dataset, reason: Reason, json: options.Json = False
) -> None:
    """Close a dataset for ever: nothing more is released from it.

    hushsum ledger retire --ledger ledger.db --dataset skin --reason "data deleted"
    """
    from hushsum.jobs.ledger_commands import open_ledger

    account = open_ledger(ledger).retire(dataset, reason=reason)
    write_json(account.as_json()) if json else write(f"{dataset} is retired.")


def accept_restore(ledger: options.Ledger, reason: Reason, json: options.Json = False) -> None:
    """Go on with a ledger that was restored from a backup. Every dataset is frozen until it is written off.

    hushsum ledger accept-restore --ledger ledger.db --reason "disk failure on 3 May"
    """
    from hushsum.jobs.ledger_commands import open_ledger

    frozen = open_ledger(ledger).accept_restore(reason=reason)
    if json:
        write_json({"frozen": frozen})
    else:
        write(f"Accepted. Frozen until written off: {', '.join(frozen) or 'none'}.")


def write_off(
    ledger: options.Ledger,
    dataset: options.Dataset,
    reason: Reason,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="ε to charge; 0 is a statement too.")
    ] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="δ to charge.")] = None,
    rho: Annotated[float | None, typer.Option("--rho", help="ρ to charge.")] = None,
    json: options.Json = False,
) -> None:
    """Charge what was spent outside the ledger, or lost from it, and open a frozen dataset again.

    hushsum ledger write-off --ledger ledger.db --dataset skin --epsilon 0.5 --reason "releases of 2 May"
    """
    from hushsum.jobs.ledger_commands import amount, open_ledger

    account = open_ledger(ledger).write_off(
        dataset, amount(epsilon=epsilon, delta=delta, rho=rho), reason=reason
    )
    if json:
        write_json(account.as_json())
    else:
        write(f"{account.remaining.in_words()} left of {account.terms.budget.in_words()}.")


def upgrade(ledger: options.Ledger, json: options.Json = False) -> None:
    """Bring a ledger of an earlier version to this one's schema.

    hushsum ledger upgrade --ledger ledger.db
    """
    from hushsum.jobs.ledger_commands import upgrade_ledger

    identity = upgrade_ledger(ledger)
    write_json({"ledger": identity}) if json else write(f"Ledger {identity} is up to date.")
