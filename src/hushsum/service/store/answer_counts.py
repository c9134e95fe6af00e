"""How many answers were given by models in exact mode: numbers that only grow."""

from __future__ import annotations

import sqlalchemy as sa

from hushsum.ledger.database import Database
from hushsum.service.store.schema import functions, served

_GROW = sa.text(
    "INSERT INTO hushsum_served (function, number, answers) VALUES (:function, :number, :answers) "
    "ON CONFLICT (function, number) DO UPDATE SET answers = excluded.answers "
    "WHERE hushsum_served.answers < excluded.answers"
)


class ServedAnswers:
    """The numbers, by function and path."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def created(self, function: str) -> str:
        """When a model was made; the empty string, before everything, for one that is unknown."""
        query = sa.select(functions.c.created).where(functions.c.id == function)
        with self._database.reading() as connection:
            return str(connection.execute(query).scalar() or "")

    def given(self, function: str, number: int) -> int:
        """How many answers were given at least."""
        query = sa.select(served.c.answers).where(served.c.function == function, served.c.number == number)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def note(self, function: str, number: int, answers: int) -> None:
        """Remember that so many are about to be given; never fewer than before."""
        values = {"function": function, "number": number, "answers": answers}
        with self._database.writing() as connection:
            connection.execute(_GROW, values)
