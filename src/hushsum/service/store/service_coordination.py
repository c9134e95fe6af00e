"""What several services at one database agree on: who starts first, which folder is theirs, which versions
may run side by side.

The table of these agreements is made before any migration and is never migrated, so that every version can
read it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

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
