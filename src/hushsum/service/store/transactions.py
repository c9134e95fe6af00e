"""The service's database: one transaction per action, with its entry in the audit log."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from hushsum.ledger.database import WAIT_SECONDS, Database, connect
from hushsum.service.store import schema
from hushsum.service.store.service_coordination import (
    agree_on_versions,
    check_schema,
    is_later,
    make_agreements,
)


@dataclass(frozen=True, slots=True)
class Actor:
    """The account and the request that cause an action."""

    account: str
    request: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """Who did what to which object, and when."""

    sequence: int
    at: str
    request: str
    account: str
    action: str
    object: str


def new_id(prefix: str) -> str:
    """An id that nobody can guess."""
    return f"{prefix}_{secrets.token_hex(8)}"


def now() -> str:
    """The time, in a form that sorts."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def write_log(connection: sa.Connection, actor: Actor, action: str, object: str) -> None:
    """Add an entry to the audit log, in the transaction of the action."""
    connection.execute(
        sa.insert(schema.log).values(
            at=now(), request=actor.request, account=actor.account, action=action, object=object
        )
    )


class Store:
    """The service's own tables, in the database that holds the ledger too."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def open(cls, place: str, *, create: bool = False, wait_seconds: float = WAIT_SECONDS) -> Store:
        """The store at a path or URL; with ``create``, made or brought to this version's schema.

        Raises
        ------
        FileRefused
            if its schema is another version's.
        """
        database = connect(place, create=create, wait_seconds=wait_seconds)
        if create:
            with database.writing() as connection:
                upgraded = _upgrade(connection)
            if upgraded:
                agree_on_versions(database)
        store = cls(database)
        store.check()
        return store

    def check(self) -> None:
        """Raise unless the database can be reached and this code may use its tables."""
        check_schema(self.database)

    def log(self, actor: Actor, action: str, object: str) -> None:
        """Add a line for something that changes no table."""
        with self.database.writing() as connection:
            write_log(connection, actor, action, object)

    def log_lines(self, *, after: int = 0, limit: int = 100) -> list[LogLine]:
        """The log, oldest first."""
        query = (
            sa.select(schema.log)
            .where(schema.log.c.sequence > after)
            .order_by(schema.log.c.sequence)
            .limit(limit)
        )
        with self.database.reading() as connection:
            return [LogLine(**as_dict(row)) for row in connection.execute(query)]


def as_dict(row: sa.Row[Any]) -> dict[str, Any]:
    """A row by the names of its columns."""
    return dict(row._mapping)


def _upgrade(connection: sa.Connection) -> bool:
    """Bring the tables to this code's schema; False if a later version has done more already."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7235925402417296385)")
    make_agreements(connection)
    if sa.inspect(connection).has_table(schema.VERSION_TABLE) and is_later(
        connection.execute(sa.select(schema.version.c.version_num)).scalar()
    ):
        return False
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return True
