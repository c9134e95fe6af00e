"""How accounts and entries look on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hushsum.cli.output import reader_may_leave, warn, write, write_facts, write_table

if TYPE_CHECKING:
    from hushsum.ledger import Account, Entry
    from hushsum.operations import DatasetStatus

_BAR = 40


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
    with reader_may_leave():
        Console(file=sys.stdout, highlight=False, soft_wrap=True).print(bar)
        sys.stdout.flush()


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
    """The largest claim that fits, and the least noise it needs for a table that one unit moves by 1."""
    if account.state != "open":
        return f"none: the dataset is {account.state}"
    scale, variance = account.least_laplace_scale(1), account.least_gaussian_variance(1)
    if scale is None:
        return "none: the budget is exhausted"
    words = f"up to ε {account.largest_pure_epsilon:.6g} (Laplace noise of scale Δ₁ × {scale:.4g} or more)"
    if variance is not None:
        words += (
            f", or ρ {float(account.remaining.rho):.6g} (Gaussian noise of deviation Δ₂ × "
            f"{variance**0.5:.4g} or more)"
        )
    return words
