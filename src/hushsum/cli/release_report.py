"""What the commands that release share: where the file goes, the question, and the report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import typer

from hushsum.errors import UsageError
from hushsum.operations import STANDARD, Delivered, Destination, LedgerOptions
from hushsum.planning import bytes_in_words
from hushsum.privacy import LARGE_EPSILON, RECORD, Claim

from .output import ask, tell, warn, write, write_facts, write_json

if TYPE_CHECKING:
    from hushsum.ledger import Account

D = TypeVar("D", bound=Delivered[Any])

_DECLINED = 1


def released_file(output: str, *, json: bool) -> str | IO[bytes]:
    """Where a released file is written: the path, or standard output.

    Raises
    ------
    UsageError
        if standard output is a terminal, or is needed for JSON.
    """
    if output != STANDARD:
        return output
    if json:
        rule = "the file and the JSON cannot both go to standard output"
        raise UsageError(rule, remedy="give a path, or leave --json out")
    if sys.stdout.isatty():
        rule = "the file is binary and standard output is a terminal"
        raise UsageError(rule, remedy="give a path, or redirect it")
    return sys.stdout.buffer


class Confirmation:
    """The question before a release, if somebody is there to answer it, and the report afterwards.

    Before a model is released it says that persons are not its unit, unless a dataset of a ledger says whom
    the model protects; also where nobody is asked.
    """

    def __init__(self, output: str, *, yes: bool, of_model: bool = False) -> None:
        self.interactive = sys.stdin.isatty() and not yes
        self._output, self._exists, self._of_model = output, Path(output).exists(), of_model

    def destination(self, output: str | IO[bytes], ledger: LedgerOptions) -> Destination:
        """Where the release goes; approved by the person, or shown where there is something to say."""
        return Destination(output, ledger.given(), self._approve, self.interactive)

    def _approve(self, claim: Claim, account: Account | None) -> None:
        if self._of_model and account is None and claim.unit == RECORD:
            tell(
                "Note: the claim protects each record. If a person may have several, give --unit-column and "
                "--max-per-unit."
            )
        if not self.interactive:
            return
        tell(claim.sentence())
        _warn_of(claim)
        if self._exists and account is None:
            tell(f"{self._output!r} exists and will be replaced. Releasing again spends again.")
        elif self._exists:
            tell(f"{self._output!r} exists and will be replaced, unless it is this very release.")
        if account is not None:
            tell(f"After it the dataset has {account_in_words(account)}.")
        confirm("Release it?", "Nothing was released, and nothing was spent.")

    def report(
        self, released: Delivered[Any], facts: Sequence[tuple[str, str]], *, json: bool, result: Any = None
    ) -> None:
        """Print the release, with ``facts`` about what was released; as JSON the ``result`` of which it is a
        part.

        The claim's sentence is left out where it stands above the question already.
        """
        warn_if_insecure(released.claim)
        if not self.interactive:
            _warn_of(released.claim)
        record = released.record
        if json:
            write_json((result or released).as_json())
            return
        if released.output == STANDARD:
            tell(released.claim.sentence())
            if record is not None:
                tell(account_in_words(record.account))
            return
        if not self.interactive or (record is not None and record.again):
            write(released.claim.sentence() + "\n")
        shown = [("released", f"{released.output} ({bytes_in_words(released.size)})"), *facts]
        if record is not None:
            shown.append(("dataset", f"{record.dataset}: {account_in_words(record.account)}"))
            shown.append(("idempotency key", record.idempotency_key))
            if record.again:
                shown.append(
                    ("note", "this release was made before; its file is unchanged, nothing was spent")
                )
        write_facts(shown)


def confirm(question: str, declined: str) -> None:
    """End the command if a person answers no."""
    if not ask(question):
        tell(declined)
        raise typer.Exit(_DECLINED)


def warn_if_insecure(claim: Claim, what: str = "release") -> None:
    """Say so if the noise of a release is that of a seed."""
    if not claim.secure:
        warn(f"this {what} protects nobody: its noise can be computed from its seed.")


def account_in_words(account: Account) -> str:
    """What an account has left."""
    return f"{account.remaining.in_words()} left of {account.terms.budget.in_words()}"


def _warn_of(claim: Claim) -> None:
    """Say so if a claim promises little."""
    if claim.epsilon is not None and claim.epsilon > LARGE_EPSILON:
        warn(f"ε = {claim.epsilon:g} promises little: above {LARGE_EPSILON:g}, hardly anything is hidden.")
