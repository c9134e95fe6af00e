"""The service's database: one transaction per action, with its entry in the audit log.

Several services may use one database. What they agree on (who starts first, which folder is theirs, which
versions may run side by side) is in a table that is made before any migration and is never migrated, so that
every version can read it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from hushsum.errors import FileRefused
from hushsum.ledger import WAIT_SECONDS, Database, connect, file_of
from hushsum.service.store import schema
from hushsum.service.store.schema import (
    accounts,
    datasets,
    functions,
    jobs,
    log,
    shares,
    tallies,
    tokens,
    uploads,
)

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
            (
                f"the service's tables have schema {found}, which this version with schema "
                f"{schema.REVISION} cannot use"
            ),
            remedy="install the later version",
        )
    raise FileRefused(
        (f"the service's tables have schema {found}, and this version needs {schema.REVISION}"),
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


MOST_LINES: Final = 1000


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines are read; what is None does not matter. ``action`` is a part of what was done, ``account``
    an id, ``since`` and ``until`` the first and the last day, such as ``2026-05-03``.
    """

    after: int = 0
    before: int | None = None
    account: str | None = None
    action: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A line of the log, and the names of its account and its object, if they are known."""

    line: LogLine
    account_name: str | None
    object_name: str | None


class LogReader:
    """The audit log for people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lines(self, which: LogFilter, *, newest_first: bool, limit: int) -> list[NamedLine]:
        """The lines that a filter lets through, at most ``limit`` of them."""
        query = sa.select(log).where(*_conditions(which)).limit(limit)
        query = query.order_by(log.c.sequence.desc() if newest_first else log.c.sequence)
        with self._database.reading() as connection:
            found = [LogLine(**as_dict(row)) for row in connection.execute(query)]
            names = _names(
                connection, {part for line in found for part in (line.account, *line.object.split())}
            )
        return [NamedLine(line, names.get(line.account), _object_name(line.object, names)) for line in found]


def _conditions(which: LogFilter) -> list[sa.ColumnElement[bool]]:
    conditions = [log.c.sequence > which.after]
    if which.before is not None:
        conditions.append(log.c.sequence < which.before)
    if which.account is not None:
        conditions.append(log.c.account == which.account)
    if which.action is not None:
        conditions.append(log.c.action.contains(which.action, autoescape=True))
    if which.since is not None:
        conditions.append(log.c.at >= which.since)
    if which.until is not None:
        # Times begin with their day, and every sign that follows it sorts below a tilde.
        conditions.append(log.c.at <= f"{which.until}~")
    return conditions


def _object_name(text: str, names: dict[str, str]) -> str | None:
    known = list(dict.fromkeys(names[part] for part in text.split() if part in names))
    # A link is named with its function, which then need not stand before it.
    kept = [name for at, name in enumerate(known) if not any(f"({name})" in each for each in known[at + 1 :])]
    return ", ".join(kept) or None


def _names(connection: sa.Connection, ids: Iterable[str]) -> dict[str, str]:
    """The names that ids stand for: uploads, tallies and jobs are named by their dataset, tokens by their
    label and account, links by their label and function.
    """
    wanted = set(ids)
    of_dataset = [
        sa.select(table.c.id, datasets.c.name.label("name"), sa.literal("").label("more"))
        .join(datasets, datasets.c.id == table.c.dataset)
        .where(datasets.c.deleted.is_(None))
        for table in (uploads, tallies, jobs)
    ]
    queries: dict[str, sa.Select[Any]] = {
        "acc_": sa.select(accounts.c.id, accounts.c.name, sa.literal("").label("more")),
        "ds_": sa.select(datasets.c.id, datasets.c.name, sa.literal("").label("more")).where(
            datasets.c.deleted.is_(None)
        ),
        "fn_": sa.select(functions.c.id, functions.c.name, sa.literal("").label("more")),
        "up_": of_dataset[0],
        "ta_": of_dataset[1],
        "job_": of_dataset[2],
        "tok_": sa.select(tokens.c.id, tokens.c.label.label("name"), accounts.c.name.label("more")).join(
            accounts, accounts.c.id == tokens.c.account
        ),
        "sh_": sa.select(shares.c.id, shares.c.label.label("name"), functions.c.name.label("more")).join(
            functions, functions.c.id == shares.c.function
        ),
    }
    found: dict[str, str] = {}
    for prefix, query in queries.items():
        some = [each for each in wanted if each.startswith(prefix)]
        if some:
            column = query.selected_columns[0]
            for id, name, more in connection.execute(query.where(column.in_(some))):
                found[id] = f"{name} ({more})" if name and more else name or more
    return found
