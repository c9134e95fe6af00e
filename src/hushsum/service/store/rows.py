"""Rows of the service's tables as values, and the ids, times and log entries that all of them share."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import sqlalchemy as sa

from hushsum.ledger import Database
from hushsum.service.store import schema

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Actor:
    """The account and the request that cause an action."""

    account: str
    request: str = ""


class Rows:
    """The base of the classes that read and change tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _all(self, kind: type[T], query: sa.Select[Any]) -> list[T]:
        """The rows that a query finds, as values."""
        with self._database.reading() as connection:
            return [value_of(kind, row) for row in connection.execute(query)]

    def _one(self, kind: type[T], query: sa.Select[Any]) -> T | None:
        """The one value that a query finds, or None."""
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else value_of(kind, row)

    def _column(self, query: sa.Select[Any]) -> list[Any]:
        """The first column of the rows that a query finds."""
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())


def value_of(kind: type[T], row: sa.Row[Any]) -> T:
    """A row as a dataclass, whose fields are named like its columns; further columns are left out."""
    made: Any = kind
    found: T = made(**{each.name: row._mapping[each.name] for each in fields(made)})
    return found


def new_id(prefix: str) -> str:
    """An id that nobody can guess."""
    return f"{prefix}_{secrets.token_hex(8)}"


def now() -> str:
    """The time, in a form that sorts."""
    return later(days=0.0)


def later(*, days: float) -> str:
    """A future time, in a form that sorts."""
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="microseconds")


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
