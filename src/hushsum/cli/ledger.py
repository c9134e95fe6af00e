"""``hushsum ledger``: budgets and the record of releases."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hushsum.declaration import required, setting
from hushsum.errors import FileRefused, UsageError
from hushsum.files import atomic_file
from hushsum.operations import DatasetStatus, amount, check_output, status_of
from hushsum.privacy import PROMISE, RECORD, RULE_ON_DELTA, ReleaseRequest

from . import options
from .declared_options import Reworded, Taking, command_group
from .output import as_text, show, tell, warn, write, write_facts, write_json, write_result, write_table
from .release_report import account_in_words

if TYPE_CHECKING:
    from hushsum.ledger import Account, Entry, Ledger

_BAR = 40


def _open(place: str) -> Ledger:
    # Here, so that help and completion load no database.
    from hushsum.ledger import Ledger

    return Ledger(place)


Reason = Annotated[str, typer.Option("--reason", help="Reason, recorded in the ledger.")]


def init(
    ledger: options.Ledger,
    dataset: options.Dataset,
    request: Annotated[
        ReleaseRequest,
        Taking(ReleaseRequest, *PROMISE, *RULE_ON_DELTA, "unit"),
        Reworded(
            {
                "unit": "record, person, or of a graph: 'adjacency row', edge or 'directed edge'. "
                "[default: record]"
            },
            listed=True,
        ),
    ],
    accounting: str | None = setting(None, "pure, basic or zcdp; default: determined by the options given."),
    max_per_unit: int | None = setting(
        None, "Maximum number of records per person, to convert claims for records."
    ),
    partition: tuple[str, ...] | None = setting(
        None, "Disjoint parts of the data, separated by commas.", metavar="NAMES"
    ),
    json: options.Json = False,
) -> None:
    """Set the total budget of a dataset. The ledger is created if it does not exist.

    With --epsilon the ε of claims add up; with --epsilon and --delta both add up; with --rho the ρ of claims
    add up, and pure ε counts as ε²/2. The unit and the relation cannot be changed later.

    hushsum ledger init --ledger ledger.db --dataset skin --epsilon 2
    """
    from hushsum.ledger import DatasetTerms, Ledger

    terms = DatasetTerms.of(
        **{name: getattr(request, name) for name in (*PROMISE, *RULE_ON_DELTA)},
        unit=request.unit or RECORD,
        accounting=accounting,
        max_per_unit=max_per_unit,
        partition=partition or (),
    )
    made = Ledger.create(ledger)
    made.create_dataset(dataset, terms)
    (found,) = status_of(made, dataset)
    write_json(found.as_json()) if json else write_status([found])


def status(ledger: options.Ledger, dataset: options.DatasetName = None, json: options.Json = False) -> None:
    """Show what is spent and what remains, for one dataset or all.

    hushsum ledger status --ledger ledger.db --dataset skin
    """
    found = status_of(_open(ledger), dataset)
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
    entries = _open(ledger).history(dataset)
    write_json([each.as_json() for each in entries]) if json else write_entries(entries)


def verify(
    ledger: options.Ledger,
    receipt: list[str] | None = typer.Option(
        None, metavar="FILE", help="Receipt kept elsewhere; repeatable."
    ),
    json: options.Json = False,
) -> None:
    """Recompute the whole ledger: every hash, every balance, every step. Exit code 5 at the first wrong row.

    Removed events at the end are detected with a receipt or with the rollback guard.

    hushsum ledger verify --ledger ledger.db --receipt receipt.json
    """
    from hushsum.ledger import Ledger, Receipt

    # Also a ledger whose head is damaged is looked at.
    opened = Ledger(ledger, damaged=True)
    result = opened.verify()
    for path in receipt or []:
        if result.holds:
            result = opened.verify(Receipt.from_text(Path(path).read_text("utf-8", errors="replace")))
    if json:
        write_json(result.as_json())
    if result.problem is not None:
        raise FileRefused(f"the ledger does not hold: {result.problem}")
    if not json:
        write(f"All {result.events} events of ledger {result.ledger} hold.")


def export(
    ledger: options.Ledger,
    dataset: options.Dataset,
    output: str | None = setting(None, "File to write, .md or .json; default: Markdown on stdout."),
    json: options.Json = False,
) -> None:
    """Write a disclosure report: the claims in words, the releases and their recipients.

    hushsum ledger export --ledger ledger.db --dataset skin -o skin-report.md
    """
    from hushsum.ledger import DisclosureReport

    opened = _open(ledger)
    report = DisclosureReport.of(dataset, opened.account(dataset), opened.events(), opened.receipt())
    if output is None:
        write_result(report, report.as_markdown().rstrip(), as_json=json)
        return
    if not output.endswith((".md", ".json")):
        rule = "must end in .md or .json"
        raise UsageError("output", rule, got=f"{output!r}", remedy="choose one of these endings")
    text = as_text(report.as_json()) + "\n" if output.endswith(".json") else report.as_markdown()
    _write_file(output, text, {"output": output}, as_json=json)


def receipt(
    ledger: options.Ledger,
    output: str | None = setting(None, "File to write; default: standard output."),
    json: options.Json = False,
) -> None:
    """Write the number and hash of the last event. Store it where the keeper of the ledger cannot change it.

    hushsum ledger receipt --ledger ledger.db -o receipt.json
    """
    made = _open(ledger).receipt()
    if output is None:
        write_json(made.as_json())
        return
    _write_file(output, as_text(made.as_json()) + "\n", {"output": output, **made.as_json()}, as_json=json)


def void(
    *,
    key: str = typer.Argument(help="Idempotency key of the release; see hushsum ledger history."),
    ledger: options.Ledger,
    json: options.Json = False,
) -> None:
    """Void a debit for which no noise was drawn, and make its budget available again.

    hushsum ledger void KEY --ledger ledger.db
    """
    entry = _open(ledger).void(key)
    write_result(entry, f"Gave back {entry.charge.in_words()}.", as_json=json)


def set_budget(
    ledger: options.Ledger,
    dataset: options.Dataset,
    reason: Reason,
    epsilon: float | None = setting(None, "ε; pure unless --delta is given."),
    delta: float | None = setting(None, "δ, below 1/(10 × number of units)."),
    rho: float | None = setting(None, "ρ of zero-concentrated differential privacy, instead of ε and δ."),
    json: options.Json = False,
) -> None:
    """Change the total budget of a dataset. The ledger records both totals and the reason.

    hushsum ledger set-budget --ledger ledger.db --dataset skin --epsilon 3 --reason "board decision 12"
    """
    account = _open(ledger).change_budget(
        dataset, amount(epsilon=epsilon, delta=delta, rho=rho), reason=reason
    )
    write_result(account, f"{account_in_words(account)}.", as_json=json)


def retire(
    ledger: options.Ledger, dataset: options.Dataset, reason: Reason, json: options.Json = False
) -> None:
    """Close a dataset permanently: no further releases are possible.

    hushsum ledger retire --ledger ledger.db --dataset skin --reason "data deleted"
    """
    account = _open(ledger).retire(dataset, reason=reason)
    write_result(account, f"{dataset} is retired.", as_json=json)


def accept_restore(ledger: options.Ledger, reason: Reason, json: options.Json = False) -> None:
    """Continue with a ledger that may be a restored backup. Every dataset is frozen until it is written off.

    hushsum ledger accept-restore --ledger ledger.db --reason "disk failure on 3 May"
    """
    frozen = _open(ledger).accept_restore(reason=reason)
    write_result(
        {"frozen": frozen},
        f"Accepted. Frozen until written off: {', '.join(frozen) or 'none'}.",
        as_json=json,
    )


def move_guard(
    ledger: options.Ledger,
    *,
    to: str = required("File, or URL of another PostgreSQL database.", metavar="PLACE"),
    reason: Reason,
    json: options.Json = False,
) -> None:
    """Move the rollback guard to a place that all machines that use the ledger share.

    From then on name that place in HUSHSUM_GUARD on every machine.

    hushsum ledger move-guard --ledger postgresql://db/sums --to postgresql://db/guard --reason "two sites"
    """
    opened = _open(ledger)
    opened.move_guard(to, reason=reason)
    write_result({"ledger": opened.id}, "Moved. Name the new place in HUSHSUM_GUARD.", as_json=json)


def write_off(
    ledger: options.Ledger,
    dataset: options.Dataset,
    reason: Reason,
    epsilon: float | None = setting(None, "ε to charge; may be 0."),
    delta: float | None = setting(None, "δ to charge."),
    rho: float | None = setting(None, "ρ to charge."),
    json: options.Json = False,
) -> None:
    """Charge what was spent outside the ledger, or lost from it, and unfreeze the dataset.

    hushsum ledger write-off --ledger ledger.db --dataset skin --epsilon 0.5 --reason "releases of 2 May"
    """
    account = _open(ledger).write_off(dataset, amount(epsilon=epsilon, delta=delta, rho=rho), reason=reason)
    write_result(account, f"{account_in_words(account)}.", as_json=json)


def upgrade(ledger: options.Ledger, json: options.Json = False) -> None:
    """Upgrade the schema of a ledger from an earlier version.

    hushsum ledger upgrade --ledger ledger.db
    """
    from hushsum.ledger import Ledger

    identity = Ledger.upgrade(ledger).id
    write_result({"ledger": identity}, f"Ledger {identity} is up to date.", as_json=json)


def _write_file(output: str, text: str, result: dict[str, Any], *, as_json: bool) -> None:
    with atomic_file(check_output(output)) as stream:
        stream.write(text.encode())
    write_result(result, f"Wrote {output}.", as_json=as_json)


def write_status(found: Sequence[DatasetStatus]) -> None:
    """A bar and the numbers behind it, for each dataset."""
    for i, each in enumerate(found):
        if i:
            write("")
        if each.warning is not None and not i:
            warn(each.warning)
        _write_bar(each)
        write_facts(_facts(each))


def write_entries(entries: Sequence[Entry]) -> None:
    """A table of releases."""
    if not entries:
        write("No releases yet.")
        return
    head = ("when", "dataset", "by", "to", "what", "charged", "step", "key")
    rows = [
        (
            each.at[:19].replace("T", " "),
            each.dataset if each.part is None else f"{each.dataset} ({each.part})",
            each.who,
            each.to or "–",
            str(each.subject.get("output", "–")),
            each.charge.in_words(),
            str(each.step),
            each.key,
        )
        for each in entries
    ]
    write_table(head, rows, left=len(head))


def _write_bar(status: DatasetStatus) -> None:
    from rich.console import Console
    from rich.text import Text

    share = min(status.share, 1.0)
    full = round(share * _BAR)
    colour = "green" if share < 0.75 else "yellow" if share < 1 else "red"
    bar = Text(f"{status.dataset}  ", style="bold")
    bar.append("█" * full, style=colour).append("░" * (_BAR - full), style="dim")
    bar.append(f"  {100 * share:.3g} % spent", style="not bold")
    if status.account.state != "open":
        bar.append(f"  {status.account.state}", style="bold red")
    show(bar, Console(file=sys.stdout, highlight=False, soft_wrap=True))


def _facts(status: DatasetStatus) -> list[tuple[str, str]]:
    account, terms = status.account, status.account.terms
    unit = terms.unit
    if terms.max_per_unit is not None:
        unit += f" with up to {terms.max_per_unit} records"
    facts = [
        ("spent", f"{account.spent.in_words()} of {terms.budget.in_words()}{_as_epsilon(account)}"),
        ("left", account.remaining.in_words()),
        ("next release", _next(account)),
    ]
    facts += [
        (f"part {name}", f"{spent.in_words()} spent, {account.remaining_in(name).in_words()} left")
        for name, spent in zip(terms.partition, account.parts, strict=True)
    ]
    facts += [
        ("accounting", str(terms.accounting)),
        ("unit, relation", f"{unit}, {terms.relation}"),
        (
            "releases",
            f"{status.releases}" + (f", {status.unfinished} unfinished" if status.unfinished else ""),
        ),
        ("ledger", status.ledger),
    ]
    return facts


def _as_epsilon(account: Account) -> str:
    if account.terms.report_delta is None:
        return ""
    return f", which is ε {account.epsilon_at(account.spent):.4g} at δ {float(account.terms.report_delta):g}"


def _next(account: Account) -> str:
    """The largest claim that fits the remaining budget, and the least noise of such a release for a table
    that one unit moves by 1.
    """
    if account.state != "open":
        return f"none: the dataset is {account.state}"
    epsilon, rho = account.largest_pure_epsilon, float(account.remaining.rho)
    if not epsilon:
        return "none: the budget is exhausted"
    words = f"up to ε {epsilon:.6g} (Laplace noise of scale Δ₁ × {1 / epsilon:.4g} or more)"
    if rho:
        deviation = (2 * rho) ** -0.5
        words += f", or ρ {rho:.6g} (Gaussian noise of deviation Δ₂ × {deviation:.4g} or more)"
    return words


ledger = command_group(
    "ledger",
    "Keep the budgets of datasets and the record of their releases.",
    *(init, status, history, verify, export, receipt),
    *(void, set_budget, retire, accept_restore, move_guard, write_off, upgrade),
)
