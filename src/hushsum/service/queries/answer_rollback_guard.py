"""The service's database as the rollback guard of the answers of models in exact mode."""

from __future__ import annotations

from hushsum.errors import LedgerUnavailable
from hushsum.ledger import Ledger
from hushsum.service.store import ServedAnswers


class RollbackGuards:
    """Creates the guard of each path of a model."""

    def __init__(self, answers: ServedAnswers, ledger: Ledger) -> None:
        self._answers = answers
        self._ledger = ledger

    def of(self, function: str, number: int) -> DatabaseGuard:
        """The guard of one path."""
        return DatabaseGuard(self._answers, self._ledger, function, number)


class DatabaseGuard:
    """One path's number, in the database that holds the ledger; see `hushsum.served.RollbackGuard`."""

    def __init__(self, answers: ServedAnswers, ledger: Ledger, function: str, number: int) -> None:
        self._answers = answers
        self._ledger = ledger
        self._function = function
        self._number = number

    def known(self) -> int:
        """How many answers were given at least.

        Raises
        ------
        LedgerUnavailable
            if the database may be an older copy, or was restored since the model was fitted: then its counts
            may be too low.
        """
        if self._ledger.rollback_problem() is not None:
            raise LedgerUnavailable(
                rule=("the database may be a restored backup, so models in exact mode answer no new points"),
                remedy="contact the service's administrator",
            )
        restored = self._ledger.restored_at()
        if restored is not None and self._answers.created(self._function) <= restored:
            raise LedgerUnavailable(
                rule=(
                    "the database was restored from a backup since this model was fitted, and "
                    "answers may be lost, so it answers no new points"
                ),
                remedy="delete it, and fit another",
            )
        return self._answers.given(self._function, self._number)

    def note(self, number: int) -> None:
        """Store durably that this many answers are about to be given."""
        self._answers.note(self._function, self._number, number)
