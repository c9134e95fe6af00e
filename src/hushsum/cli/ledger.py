"""``hushsum ledger``: budgets and the record of releases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import typer

from hushsum.cli import options
from hushsum.cli.error_wording import Command, Group, help_of
from hushsum.cli.ledger_maintenance import (
    accept_restore,
    move_guard,
    retire,
    set_budget,
    upgrade,
    void,
    write_off,
)
from hushsum.cli.ledger_views import write_entries, write_status
from hushsum.cli.output import tell, write, write_json
from hushsum.errors import FileRefused, UsageError

ledger = typer.Typer(
    name="ledger",
    cls=Group,
    help="Keep the budgets of datasets and the record of their releases.",
    no_args_is_help=True,
)


def init(
    ledger: options.Ledger,
    dataset: options.Dataset,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    accounting: Annotated[
        str | None,
        typer.Option("--accounting", help="pure, basic or zcdp; default: determined by the options given."),
    ] = None,
    unit: Annotated[
        str,
        typer.Option(
            "--unit", help="record, person, or of a graph: 'adjacency row', edge or 'directed edge'."
        ),
    ] = "record",
    max_per_unit: Annotated[
        int | None,
        typer.Option(
            "--max-per-unit", help="Maximum number of records per person, to convert claims for records."
        ),
    ] = None,
    relation: options.RelationName = "add/remove",
    population: options.Population = None,
    partition: Annotated[
        str | None,
        typer.Option("--partition", metavar="NAMES", help="Disjoint parts of the data, separated by commas."),
    ] = None,
    allow_large_delta: options.AllowLargeDelta = False,
    json: options.Json = False,
) -> None:
    """Set the total budget of a dataset. The ledger is created if it does not exist.

    With --epsilon the ε of claims add up; with --epsilon and --delta both add up; with --rho the ρ of claims
    add up, and pure ε counts as ε²/2. The unit and the relation cannot be changed later.

    hushsum ledger init --ledger ledger.db --dataset skin --epsilon 2
    """
    from hushsum.cli import option_values
    from hushsum.ledger import DatasetTerms
    from hushsum.operations import init_ledger

    terms = DatasetTerms.of(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        accounting=accounting,
        unit=unit,
        max_per_unit=max_per_unit,
        relation=relation,
        population=population,
        partition=tuple(option_values.names(partition, "partition") or ()),
        allow_large_delta=allow_large_delta,
    )
    made = init_ledger(ledger, dataset, terms)
    write_json(made.as_json()) if json else write_status([made])


def status(ledger: options.Ledger, dataset: options.DatasetName = None, json: options.Json = False) -> None:
    """Show what is spent and what remains, for one dataset or all.

    hushsum ledger status --ledger ledger.db --dataset skin
    """
    from hushsum.operations import ledger_status

    found = ledger_status(ledger, dataset)
    if json:
        write_json([each.as_json() for each in found] if dataset is None else found[0].as_json())
        return
    if not found:
        tell("The ledger has no datasets yet; add one with: hushsum ledger init")
        return
    write_status(found)


def history(ledger: options.Ledger, dataset: options.DatasetName = None, json: options.Json = False) -> None:
    """List the releases: time, user, recipient, output, cost and state.

    hushsum ledger history --ledger ledger.db --dataset skin
    """
    from hushsum.operations import open_ledger

    entries = open_ledger(ledger).history(dataset)
    write_json([each.as_json() for each in entries]) if json else write_entries(entries)


def verify(
    ledger: options.Ledger,
    receipt: Annotated[
        list[str] | None,
        typer.Option("--receipt", metavar="FILE", help="Receipt kept elsewhere; repeatable."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Recompute the whole ledger: every hash, every balance, every step. Exit code 5 at the first wrong row.

    Removed events at the end are detected with a receipt or with the rollback guard.

    hushsum ledger verify --ledger ledger.db --receipt receipt.json
    """
    from hushsum.operations import verify_ledger

    result = verify_ledger(ledger, receipt or [])
    if json:
        write_json(result.as_json())
    if result.problem is not None:
        raise FileRefused(f"the ledger does not hold: {result.problem}")
    if not json:
        write(f"All {result.events} events of ledger {result.ledger} hold.")


def export(
    ledger: options.Ledger,
    dataset: options.Dataset,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="File to write, .md or .json; default: Markdown on stdout."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write a disclosure report: the claims in words, the releases and their recipients.

    hushsum ledger export --ledger ledger.db --dataset skin -o skin-report.md
    """
    from hushsum.operations import as_text, check_output, disclosure, write_text

    report = disclosure(ledger, dataset)
    if output is None:
        write_json(report.as_json()) if json else write(report.as_markdown().rstrip())
        return
    if not output.endswith((".md", ".json")):
        raise UsageError(
            "output", "must end in .md or .json", got=f"{output!r}", remedy="choose one of these endings"
        )
    check_output(output)
    write_text(output, as_text(report.as_json()) if output.endswith(".json") else report.as_markdown())
    write_json({"output": output}) if json else write(f"Wrote {output}.")


def receipt(
    ledger: options.Ledger,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File to write; default: standard output.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Write the number and hash of the last event. Store it where the keeper of the ledger cannot change it.

    hushsum ledger receipt --ledger ledger.db -o receipt.json
    """
    from hushsum.operations import as_text, check_output, open_ledger, write_text

    made = open_ledger(ledger).receipt()
    if output is None:
        write_json(made.as_json())
        return
    check_output(output)
    write_text(output, as_text(made.as_json()))
    write_json({"output": output, **made.as_json()}) if json else write(f"Wrote {output}.")


COMMANDS: Final[tuple[Callable[..., None], ...]] = (
    init,
    status,
    history,
    verify,
    export,
    receipt,
    void,
    set_budget,
    retire,
    accept_restore,
    move_guard,
    write_off,
    upgrade,
)
for command in COMMANDS:
    ledger.command(cls=Command, help=help_of(command))(command)
