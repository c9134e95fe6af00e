"""How many answers were given by models in exact mode: numbers that only grow, in the ledger's database, so
that an older copy of a model's answers is noticed.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from hushsum.errors import LedgerUnavailable
from hushsum.ledger import Database, Ledger
from hushsum.service.store.schema import functions, served

_GROW = sa.text(
    "INSERT INTO hushsum_served (function, number, answers) VALUES (:function, :number, :answers) "
    "ON CONFLICT (function, number) DO UPDATE SET answers = excluded.answers "
    "WHERE hushsum_served.answers < excluded.answers"
)


@dataclass(frozen=True, slots=True)
class AnswerGuard:
    """The rollback guard of one path of a model."""

    database: Database
    ledger: Ledger
    function: str
    number: int

    def known(self) -> int:
        """How many answers were given at least.

        Raises
        ------
        LedgerUnavailable
            if the database may be an older copy, or was restored since the model was fitted: then its counts
            may be too low.
        """
        if self.ledger.rollback_problem() is not None:
            raise LedgerUnavailable(
                "the database may be a restored backup, so models in exact mode answer no new points",
                remedy="contact the service's administrator",
            )
        restored = self.ledger.restored_at()
        created = sa.select(functions.c.created).where(functions.c.id == self.function)
        given = sa.select(served.c.answers).where(
            served.c.function == self.function, served.c.number == self.number
        )
        with self.database.reading() as connection:
            # A model that is unknown was made before everything.
            if restored is not None and str(connection.execute(created).scalar() or "") <= restored:
                raise LedgerUnavailable(
                    "the database was restored from a backup since this model was fitted, and "
                    "answers may be lost, so it answers no new points",
                    remedy="delete it, and fit another",
                )
            return int(connection.execute(given).scalar() or 0)

    def note(self, mark: int) -> None:
        """Store durably that this many answers are about to be given; never fewer than before."""
        values = {"function": self.function, "number": self.number, "answers": mark}
        with self.database.writing() as connection:
            connection.execute(_GROW, values)
