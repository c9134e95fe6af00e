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
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from hushsum.errors import FileRefused
from hushsum.ledger import WAIT_SECONDS, Database, connect, file_of

from . import schema
from .accounts import Accounts, Identities
from .datasets import Datasets
from .functions import Functions, Shares
from .job_queue import JobQueue
from .rows import Actor, write_log
from .schema import LogLine, accounts, datasets, functions, jobs, log, shares, tallies, tokens, uploads

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


# Entries of the log that are read at once.
MOST_LINES: Final = 1000
LAST_SEQUENCE: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class LogEntry(LogLine):
    """An entry of the audit log with the names of its account and its object; null where nothing is known by
    the id any more.
    """

    account_name: str | None
    object_name: str | None


class Store:
    """The service's own tables, in the database that holds the ledger too."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.accounts = Accounts(database)
        self.identities = Identities(database)
        self.datasets = Datasets(database)
        self.functions = Functions(database)
        self.shares = Shares(database)
        self.jobs = JobQueue(database)

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
                # Which code may go on using the tables, now that they have this version's schema.
                _agree(database, _OLDEST_CODE, schema.OLDEST_CODE)
        store = cls(database)
        store.check()
        return store

    def check(self) -> None:
        """Raise unless the database can be reached and this code may use its tables.

        Tables of a later version are used if that version allows it: then services of both run side
        by side while one after the other is upgraded.

        Raises
        ------
        FileRefused
            if the tables are an earlier version's, or a later one's that this code does not know how to use.
        """
        with self.database.reading() as connection:
            found = connection.execute(sa.select(schema.version.c.version_num)).scalar()
        if found == schema.REVISION:
            return
        if not _is_later(found):
            rule = f"the service's tables have schema {found}, and this version needs {schema.REVISION}"
            raise FileRefused(rule, remedy="start the service, which upgrades them")
        oldest = _value(self.database, _OLDEST_CODE)
        if oldest is None or oldest > schema.REVISION:
            raise FileRefused(
                f"the service's tables have schema {found}, which this version with schema "
                f"{schema.REVISION} cannot use",
                remedy="install the later version",
            )

    def log(self, actor: Actor, action: str, object: str) -> None:
        """Add a line for something that changes no table."""
        with self.database.writing() as connection:
            write_log(connection, actor, action, object)

    def log_lines(
        self,
        after: int = 0,
        before: int = LAST_SEQUENCE,
        account: str | None = None,
        action: str = "",
        days: tuple[str, str] = ("", "9999"),
        *,
        newest: bool = False,
        limit: int = MOST_LINES,
    ) -> list[LogEntry]:
        """Entries of the log. ``action`` is a part of what was done, ``account`` an id, ``days`` the first
        and the last one, such as ``2026-05-03``.
        """
        query = sa.select(log).where(
            log.c.sequence > after,
            log.c.sequence < before,
            log.c.action.contains(action, autoescape=True),
            log.c.at >= days[0],
            # Times begin with their day, and every sign that follows it sorts below a tilde.
            log.c.at <= f"{days[1]}~",
        )
        if account is not None:
            query = query.where(log.c.account == account)
        query = query.order_by(log.c.sequence.desc() if newest else log.c.sequence).limit(limit)
        with self.database.reading() as connection:
            found = [row._asdict() for row in connection.execute(query)]
            ids = {part for line in found for part in (line["account"], *line["object"].split())}
            names = _names(connection, ids)
        return [
            LogEntry(
                **line,
                account_name=names.get(line["account"]),
                object_name=_object_name(line["object"], names),
            )
            for line in found
        ]


def _upgrade(connection: sa.Connection) -> bool:
    """Bring the tables to this code's schema; False if a later version has done more already."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7235925402417296385)")
    agreements.create(connection, checkfirst=True)
    if sa.inspect(connection).has_table(schema.VERSION_TABLE) and _is_later(
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
    """Why this folder does not belong to the database; None if it does."""
    known = _value(database, _FOLDER)
    try:
        found = (folder / FOLDER_FILE).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        found = None
    if known is not None and found == known:
        return None
    return "the folder is not the one that this database belongs to; check HUSHSUM_FOLDER and its volume"


def _is_later(revision: str | None) -> bool:
    """Whether a schema is one of a later version."""
    return revision is not None and revision > schema.REVISION


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


def _object_name(text: str, names: dict[str, str]) -> str | None:
    known = list(dict.fromkeys(names[part] for part in text.split() if part in names))
    # A link is named with its function, which then need not stand before it.
    kept = [name for at, name in enumerate(known) if not any(f"({name})" in each for each in known[at + 1 :])]
    return ", ".join(kept) or None


def _names(connection: sa.Connection, ids: set[str]) -> dict[str, str]:
    """The names that ids stand for: uploads, tallies and jobs are named by their dataset, tokens by their
    label and account, links by their label and function.
    """
    nothing = sa.literal("")
    of_dataset = sa.select(datasets.c.id, datasets.c.name, nothing).where(datasets.c.deleted.is_(None))
    queries: dict[str, sa.Select[Any]] = {
        "acc_": sa.select(accounts.c.id, accounts.c.name, nothing),
        "ds_": of_dataset,
        "fn_": sa.select(functions.c.id, functions.c.name, nothing),
        "tok_": sa.select(tokens.c.id, tokens.c.label, accounts.c.name).join(
            accounts, accounts.c.id == tokens.c.account
        ),
        "sh_": sa.select(shares.c.id, shares.c.label, functions.c.name).join(
            functions, functions.c.id == shares.c.function
        ),
    }
    for prefix, table in (("up_", uploads), ("ta_", tallies), ("job_", jobs)):
        named = of_dataset.with_only_columns(table.c.id, datasets.c.name, nothing)
        queries[prefix] = named.where(datasets.c.id == table.c.dataset)
    found: dict[str, str] = {}
    for prefix, query in queries.items():
        some = [each for each in ids if each.startswith(prefix)]
        if some:
            for id, name, more in connection.execute(query.where(query.selected_columns[0].in_(some))):
                found[id] = f"{name} ({more})" if name and more else name or more
    return found
