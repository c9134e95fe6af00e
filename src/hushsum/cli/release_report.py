"""What ``hushsum release`` and ``hushsum fit`` share: where the file goes, the question, and the report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeVar

import typer

from hushsum.cli.output import ask, bytes_in_words, tell, warn, write, write_facts, write_json
from hushsum.errors import UsageError

if TYPE_CHECKING:
    from hushsum.ledger import Account
    from hushsum.operations import FunctionReleased, ModelReleased
    from hushsum.privacy import Claim

R = TypeVar("R", "FunctionReleased", "ModelReleased")

DECLINED = 1


def released_file(output: str, *, json: bool) -> str | IO[bytes]:
    """Where a released file is written: the path, or standard output.

    Raises
    ------
    UsageError
        if standard output is a terminal, or is needed for JSON.
    """
    from hushsum.operations import STANDARD

    if output != STANDARD:
        return output
    if json:
        raise UsageError(
            "the file and the JSON cannot both go to standard output",
            remedy="give a path, or leave --json out",
        )
    if sys.stdout.isatty():
        raise UsageError(
            "the file is binary and standard output is a terminal", remedy="give a path, or redirect it"
        )
    return sys.stdout.buffer


def model_approval(output: str, *, interactive: bool) -> Callable[[Claim, Account | None], bool]:
    """Say before a model is released that persons are not its unit, unless a dataset of a ledger says whom
    it protects; then ask, if somebody is there.
    """
    ask = asking(output) if interactive else None

    def approve(claim: Claim, account: Account | None) -> bool:
        if account is None and claim.unit == "record":
            tell(
                "Note: the claim protects each record. If a person may have several, give --unit-column and "
                "--max-per-unit."
            )
        return ask is None or ask(claim, account)

    return approve


def asking(output: str) -> Callable[[Claim, Account | None], bool]:
    """Show the claim, and what happens to a file that is there, and ask."""
    exists = Path(output).exists()

    def approve(claim: Claim, account: Account | None) -> bool:
        tell(claim.sentence())
        _warn_of(claim)
        if exists and account is None:
            tell(f"{output!r} exists and will be replaced. Releasing again spends again.")
        elif exists:
            tell(f"{output!r} exists and will be replaced, unless it is this very release.")
        if account is not None:
            tell(f"After it the dataset has {account_in_words(account)}.")
        return ask("Release it?")

    return approve


def confirmed(released: R | None, *, interactive: bool) -> R:
    """The release, with a warning if it protects little; exits if it was declined."""
    if released is None:
        tell("Nothing was released, and nothing was spent.")
        raise typer.Exit(DECLINED)
    if not released.claim.secure:
        warn("this release protects nobody: its noise can be computed from its seed.")
    if not interactive:
        _warn_of(released.claim)
    return released


def report(
    released: FunctionReleased | ModelReleased,
    facts: Sequence[tuple[str, str]],
    *,
    json: bool,
    interactive: bool,
) -> None:
    """Print the release, with ``facts`` about what was released.

    The claim's sentence is left out where it stands above the question already.
    """
    from hushsum.operations import STANDARD

    record = released.record
    if json:
        write_json(released.as_json())
        return
    if released.output == STANDARD:
        tell(released.claim.sentence())
        if record is not None:
            tell(account_in_words(record.account))
        return
    if not interactive or (record is not None and record.again):
        write(released.claim.sentence() + "\n")
    shown = [("released", f"{released.output} ({bytes_in_words(released.size)})"), *facts]
    if record is not None:
        shown.append(("dataset", f"{record.dataset}: {account_in_words(record.account)}"))
        shown.append(("idempotency key", record.idempotency_key))
        if record.again:
            shown.append(("note", "this release was made before; its file is unchanged, nothing was spent"))
    write_facts(shown)


def account_in_words(account: Account) -> str:
    """What an account has left."""
    return f"{account.remaining.in_words()} left of {account.terms.budget.in_words()}"


def _warn_of(claim: Claim) -> None:
    """Say so if a claim promises little."""
    from hushsum.privacy import LARGE_EPSILON

    if claim.epsilon is not None and claim.epsilon > LARGE_EPSILON:
        warn(f"ε = {claim.epsilon:g} promises little: above {LARGE_EPSILON:g}, hardly anything is hidden.")
