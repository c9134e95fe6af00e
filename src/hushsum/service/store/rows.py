"""Rows of the service's tables as values, and the ids, times and log entries that all of them share."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

import sqlalchemy as sa

from hushsum.ledger import Database

from . import schema
from .schema import now

T = TypeVar("T")
Check = Callable[[sa.Connection], None]


@dataclass(frozen=True, slots=True)
class Actor:
    """The account and the request that cause an action."""

    account: str
    request: str = ""


class Rows:
    """The base of the classes that read and change tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _all(self, kind: type[T], query: sa.Select[Any] | None = None, /, **equal: object) -> list[T]:
        """The rows that a query finds, as values; by default those of the table of this kind whose columns
        are equal to what is given, oldest first.
        """
        if query is None:
            query = sa.select(schema.TABLES[kind]).filter_by(**equal).order_by("created")
        with self._database.reading() as connection:
            return [value_of(kind, row) for row in connection.execute(query)]

    def _one(self, kind: type[T], query: sa.Select[Any] | None = None, /, **equal: object) -> T | None:
        """The first value of these, or None."""
        return next(iter(self._all(kind, query, **equal)), None)

    def _column(self, query: sa.Select[Any]) -> list[Any]:
        """The first column of the rows that a query finds."""
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    def _add(
        self, table: sa.Table, value: Any, actor: Actor, action: str, check: Check = lambda connection: None
    ) -> None:
        """Add a row, unless there is one with this id; ``check`` may refuse it in the same transaction."""
        with self._database.writing() as connection:
            if not exists(connection, table.c.id == value.id):
                check(connection)
                connection.execute(sa.insert(table).values(asdict(value)))
                write_log(connection, actor, action, value.id)

    def _change(self, statement: sa.Update | sa.Delete, actor: Actor, action: str, object: str) -> bool:
        """Change or delete rows; False, and nothing in the log, if there is none."""
        with self._database.writing() as connection:
            done = bool(connection.execute(statement).rowcount)
            if done:
                write_log(connection, actor, action, object)
        return done


def value_of(kind: type[T], row: sa.Row[Any]) -> T:
    """A row as a dataclass, whose fields are named like its columns; further columns are left out."""
    made: Any = kind
    found: T = made(**{each.name: row._mapping[each.name] for each in fields(made)})
    return found


def exists(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> bool:
    """Whether there is a row that meets the conditions."""
    return connection.execute(sa.select(sa.literal(1)).where(*conditions).limit(1)).first() is not None


def new_id(prefix: str) -> str:
    """An id that nobody can guess."""
    return f"{prefix}_{secrets.token_hex(8)}"


def hash_of(secret: str) -> str:
    """The digest that is stored instead of a token or a key. It has 256 random bits: there is nothing to
    guess, so no slow hash is needed.
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def write_log(connection: sa.Connection, actor: Actor, action: str, object: str) -> None:
    """Add an entry to the audit log, in the transaction of the action."""
    connection.execute(
        sa.insert(schema.log).values(
            at=now(), request=actor.request, account=actor.account, action=action, object=object
        )
    )
