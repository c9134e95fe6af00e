"""The service's database as the witness of what models in exact mode have told."""

from __future__ import annotations

from hushsum.errors import LedgerUnavailable
from hushsum.ledger import Ledger
from hushsum.service.store import ServedAnswers


class Witnesses:
    """Makes the witness of each path of a model."""

    def __init__(self, answers: ServedAnswers, ledger: Ledger) -> None:
        self._answers = answers
        self._ledger = ledger

    def of(self, function: str, number: int) -> DatabaseWitness:
        """The witness of one path."""
        return DatabaseWitness(self._answers, self._ledger, function, number)


class DatabaseWitness:
    """One path's number, in the database that holds the ledger; see `hushsum.served.Witness`."""

    def __init__(self, answers: ServedAnswers, ledger: Ledger, function: str, number: int) -> None:
        self._answers = answers
        self._ledger = ledger
        self._function = function
        self._number = number
        self._noted = 0

    def known(self) -> int:
        """How many answers were told at least.

        Raises
        ------
        LedgerUnavailable
            while the database is an older one than this machine has seen: then so are its numbers.
        """
        if self._ledger.behind() is not None:
            raise LedgerUnavailable(
                "the database was restored from a backup, so models in exact mode answer nothing new; "
                "tell the service's keeper"
            )
        return self._answers.told(self._function, self._number)

    def note(self, number: int) -> None:
        """Remember durably that so many are about to be told."""
        if number > self._noted:
            self._answers.note(self._function, self._number, number)
            self._noted = max(number, self._noted)
