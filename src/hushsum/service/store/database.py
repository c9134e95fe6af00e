"""The service's database: one transaction per action, with its entry in the audit log.

Several services may use one database. What they agree on (who starts first, which folder is theirs, which
versions may run side by side) is in a table that is made before any migration and is never migrated, so that
every version can read it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from hushsum.errors import FileRefused
from hushsum.ledger.database import WAIT_SECONDS, Database, connect, file_of
from hushsum.service.store import schema

FOLDER_FILE: Final = "folder.id"
_START_LOCK: Final = 7235925402417296386
_FOLDER: Final = "folder"
_OLDEST_CODE: Final = "oldest code"

agreements = sa.Table(
    "hushsum_agreements",
    sa.MetaData(),
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.String(80), nullable=False),
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


@contextmanager
def starting(place: str, folder: Path, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Let one service at a time make tables, ledger and first account; the others wait for it.

    Two that share a folder wait at a file in it, two that share a PostgreSQL server at a lock there. Makes
    no database: whether one was lost is for the ledger to find out.
    """
    with (folder / "starting.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if file_of(place) is not None:
            yield
            return
        with connect(place, wait_seconds=wait_seconds).writing() as connection:
            # Its transaction holds nothing but the lock, for as long as the others are made.
            connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_START_LOCK})")
            yield


def agree_on_folder(database: Database, folder: Path) -> None:
    """Write an id into a folder that has none, and into the database if it knows none."""
    path = folder / FOLDER_FILE
    known = _value(database, _FOLDER)
    if not path.exists():
        if known is not None:
            # The tables belong to another folder; this one stays without an id, and is not ready.
            return
        path.write_text(secrets.token_hex(16) + "\n", encoding="ascii")
        os.chmod(path, 0o600)
    if known is None:
        _agree(database, _FOLDER, path.read_text(encoding="ascii").strip())


def folder_trouble(database: Database, folder: Path) -> str | None:
    """Why this folder is not the one that the database belongs to, if that is so."""
    known = _value(database, _FOLDER)
    try:
        found = (folder / FOLDER_FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        found = None
    if known is not None and found == known:
        return None
    return "the folder is not the one that this database belongs to; check HUSHSUM_FOLDER and its volume"


def agree_on_versions(database: Database) -> None:
    """Say which code may go on using the tables, after they were brought to this version's schema."""
    _agree(database, _OLDEST_CODE, schema.OLDEST_CODE)


def check_schema(database: Database) -> None:
    """Raise unless this code may use the tables.

    Tables of a later version are used if that version allows it: then services of both run side
    by side while one after the other is upgraded.

    Raises
    ------
    FileRefused
        if the tables are an earlier version's, or a later one's that this code does not know how to use.
    """
    with database.reading() as connection:
        found = connection.execute(sa.select(schema.version.c.version_num)).scalar()
    if found == schema.REVISION:
        return
    if is_later(found):
        oldest = _value(database, _OLDEST_CODE)
        if oldest is not None and oldest <= schema.REVISION:
            return
        raise FileRefused(
            rule=(
                f"the service's tables have schema {found}, which this version with schema "
                f"{schema.REVISION} cannot use"
            ),
            remedy="install the later version",
        )
    raise FileRefused(
        rule=(f"the service's tables have schema {found}, and this version needs {schema.REVISION}"),
        remedy="start the service, which upgrades them",
    )


def is_later(revision: str | None) -> bool:
    """Whether a schema is one of a later version."""
    return revision is not None and revision > schema.REVISION


def make_agreements(connection: sa.Connection) -> None:
    """Make the table, unless it is there."""
    agreements.create(connection, checkfirst=True)


def _value(database: Database, name: str) -> str | None:
    query = sa.select(agreements.c.value).where(agreements.c.name == name)
    with database.reading() as connection:
        found: str | None = connection.execute(query).scalar()
    return found


def _agree(database: Database, name: str, value: str) -> None:
    if _value(database, name) == value:
        # A start on a full disk writes nothing.
        return
    with database.writing() as connection:
        connection.execute(sa.delete(agreements).where(agreements.c.name == name))
        connection.execute(sa.insert(agreements).values(name=name, value=value))
