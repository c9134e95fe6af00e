"""The database of a ledger, and its tables as the code sees them; ``migrations`` makes them.

Names begin with ``hushsum_``, so that a ledger can live in a database with other things.
"""

from __future__ import annotations

import atexit
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text, exc
from sqlalchemy.pool import NullPool

from hushsum.errors import FilePath, FileRefused, LedgerUnavailable, UsageError

REVISION = "0001"
"""The migration this code needs; a test compares it with Alembic's newest."""

VERSION_TABLE = "hushsum_ledger_version"

metadata = MetaData()

head = Table(
    "hushsum_ledger",
    metadata,
    Column("place", Integer, primary_key=True),
    Column("id", String(32), nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
    sa.CheckConstraint("place = 1", name="hushsum_ledger_one_row"),
)
"""One row: which ledger this is, and the last event. Whoever appends locks it first."""

events = Table(
    "hushsum_events",
    metadata,
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", String(40), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("dataset", String(200), nullable=False),
    Column("key", String(200), nullable=False),
    Column("body", Text, nullable=False),
    Column("previous", String(64), nullable=False, unique=True),
    Column("hash", String(64), nullable=False, unique=True),
    Index("hushsum_events_dataset", "dataset", "sequence"),
    Index("hushsum_events_kind", "kind", "sequence"),
    # One step of one key happens once, whatever the code above it believes.
    Index(
        "hushsum_events_key_step",
        "key",
        "kind",
        unique=True,
        sqlite_where=sa.text("key <> ''"),
        postgresql_where=sa.text("key <> ''"),
    ),
)
"""Append-only: triggers refuse every change."""

staged = Table(
    "hushsum_staged",
    metadata,
    Column("key", String(200), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("bytes", LargeBinary, nullable=False),
)
"""The bytes between *staged* and *published*, in pieces."""

version = Table(VERSION_TABLE, metadata, Column("version_num", String(32), primary_key=True))
"""Alembic's own, to be read without Alembic."""


WAIT_SECONDS = 60
"""How long to wait for another process's short transaction before giving up."""

_KEPT_CONNECTIONS = 5
# The limit for one process. A server takes a hundred by default, and other processes need some of them.
_MOST_CONNECTIONS = 20

_RECYCLE_SECONDS = 600

_AGAIN = "repeat the command: the same key never spends twice"


class Database:
    """Short transactions on one database.

    On SQLite each has a connection of its own. To PostgreSQL a process keeps a few connections open, which
    all ledgers and stores of that process at the same URL share; each is tried before it is used, so a
    restarted server is noticed at once, and a forked process opens its own.
    """

    def __init__(self, engine: sa.Engine, wait_seconds: float = WAIT_SECONDS) -> None:
        self._engine = engine
        self._wait_seconds = wait_seconds

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._engine.dialect.name

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the ledger and changes nothing."""
        with self._errors_translated(), self._engine.connect() as connection, connection.begin():
            if self.dialect == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that is durable when the block has ended; on SQLite it excludes other writers."""
        with self._errors_translated(), self._engine.connect() as connection:
            connection = connection.execution_options(hushsum_writing=True)
            with connection.begin():
                yield connection

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        """One sentence for what a database says; its own words may quote the URL."""
        try:
            yield
        except exc.TimeoutError as error:
            what = f"all connections to the ledger's database were in use for {self._wait_seconds:g} seconds"
            raise LedgerUnavailable(what, remedy=_AGAIN) from error
        except UnicodeDecodeError:
            # SQLite quotes a damaged schema in its messages, which Python then cannot decode.
            raise _damaged() from None
        except exc.DBAPIError as error:
            raise _in_words(error, self._wait_seconds) from error


def connect(
    place: str | os.PathLike[str], *, create: bool = False, wait_seconds: float = WAIT_SECONDS
) -> Database:
    """The database at a file path (SQLite) or a URL (``sqlite:///``, ``postgresql://``).

    ``wait_seconds`` is how long a transaction waits for another one's.

    Raises
    ------
    UsageError
        if there is no such file, or the URL or its driver cannot be used.
    """
    url = _url(place)
    if url.get_backend_name() == "sqlite":
        return Database(_sqlite(url, wait_seconds, create=create), wait_seconds)
    return Database(_postgresql(url, wait_seconds), wait_seconds)


def file_of(place: str | os.PathLike[str]) -> Path | None:
    """The file of a SQLite database; None for a server."""
    url = _url(place)
    return Path(url.database or "").absolute() if url.get_backend_name() == "sqlite" else None


def upgrade(connection: sa.Connection) -> None:
    """Bring the schema to this code's revision, within the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7235925402417296384)")
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def file_damage(connection: sa.Connection) -> str | None:
    """The damage to a SQLite file beside the events: to its pages and indexes, or to the tables and
    triggers of the ledger. None if nothing is, and for PostgreSQL, whose server has checksums of its pages.
    """
    if connection.dialect.name != "sqlite":
        return None
    if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one() != "ok":
        return "the pages or indexes of its file are damaged"
    found = _schema(connection)
    if any(found.get(name) != text for name, text in _declared_schema().items()):
        return "a table, an index or a trigger that refuses changes of events is missing or was changed"
    return None


@cache
def _declared_schema() -> dict[str, str | None]:
    with sa.create_engine("sqlite://").begin() as connection:
        upgrade(connection)
        return _schema(connection)


def _schema(connection: sa.Connection) -> dict[str, str | None]:
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master")
    return {row[0]: row[1] for row in rows}


def has_ledger(connection: sa.Connection) -> bool:
    """Whether the database holds a ledger, of whatever revision."""
    return sa.inspect(connection).has_table(VERSION_TABLE)


def no_ledger() -> UsageError:
    """The error for a database without a ledger."""
    return UsageError("there is no ledger in this database", remedy="make one with: hushsum ledger init")


def check_revision(connection: sa.Connection) -> None:
    """Raise unless the database holds a ledger of this code's revision."""
    if not has_ledger(connection):
        raise no_ledger()
    found = connection.execute(sa.select(version.c.version_num)).scalar()
    if found is None or found > REVISION:
        raise FileRefused(
            f"the ledger has schema {found}, made by a later Hushsum", remedy="install that one"
        )
    if found < REVISION:
        raise FileRefused(
            f"the ledger has the older schema {found}", remedy="upgrade it with: hushsum ledger upgrade"
        )


def _url(place: str | os.PathLike[str]) -> sa.URL:
    text = os.fspath(place)
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        url = sa.make_url(text)
    except exc.ArgumentError:
        raise UsageError(
            "the ledger's URL cannot be read", remedy="write postgresql://user@host/name"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError(
            "a ledger is a file or a PostgreSQL database",
            got=f"a URL of {url.get_backend_name()!r}",
            remedy="give a path, or postgresql://user@host/name",
        )
    return url


def require_folder(path: Path) -> None:
    """Refuse a ledger's file in a folder that does not exist."""
    if not path.parent.is_dir():
        raise UsageError(
            (
                "the folder ",
                FilePath(path.parent, service="of the ledger", quoted=True),
                " must exist to make a ledger in it",
            ),
            remedy="make it first",
        )


def _sqlite(url: sa.URL, wait_seconds: float, *, create: bool) -> sa.Engine:
    name = url.database
    if not name or name == ":memory:" or name.startswith("file:"):
        raise UsageError("a ledger must outlive its process", got="no file")
    path = Path(name)
    if path.is_dir():
        raise UsageError(
            (FilePath(name, quoted=True), " is a folder"), remedy="give the path of a file in it"
        )
    if not path.exists():
        if not create:
            raise UsageError(
                ("no ledger ", FilePath(name, quoted=True)),
                remedy="check the path, or make one with: hushsum ledger init",
            )
        require_folder(path)
    # A new file is its owner's alone: it contains who released what, and to whom.
    if create:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    # Opened by a URI, since SQLite would otherwise make an empty file in place of one that is gone.
    address = f"{path.absolute().as_uri()}?mode=rw"
    engine = sa.create_engine(
        url,
        poolclass=NullPool,
        creator=lambda: sqlite3.connect(address, uri=True, timeout=wait_seconds, isolation_level=None),
    )

    @sa.event.listens_for(engine, "connect")
    def _durable(connection: sa.PoolProxiedConnection, record: object) -> None:
        # A rollback journal keeps the ledger one file. EXTRA also syncs the folder after the journal is
        # removed: otherwise a power cut may bring the journal back, and with it the budget of the last
        # commit.
        connection.execute("PRAGMA synchronous=EXTRA")
        connection.execute("PRAGMA trusted_schema=OFF")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        writing = connection.get_execution_options().get("hushsum_writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


_ENGINES: dict[tuple[str, float], sa.Engine] = {}
_ENGINES_LOCK = threading.Lock()


def _postgresql(url: sa.URL, wait_seconds: float) -> sa.Engine:
    """The engine of this process for a URL: whoever connects to the same database shares its connections."""
    key = (url.render_as_string(hide_password=False), wait_seconds)
    with _ENGINES_LOCK:
        if key not in _ENGINES:
            _ENGINES[key] = _new_postgresql(url, wait_seconds)
        return _ENGINES[key]


def _close_connections() -> None:
    for engine in _ENGINES.values():
        engine.dispose()


def _forget_connections() -> None:
    """In a forked process: the connections are its parent's, and must be neither used nor closed here."""
    global _ENGINES_LOCK
    _ENGINES_LOCK = threading.Lock()
    for engine in _ENGINES.values():
        engine.dispose(close=False)


atexit.register(_close_connections)
os.register_at_fork(after_in_child=_forget_connections)


def _new_postgresql(url: sa.URL, wait_seconds: float) -> sa.Engine:
    try:
        engine = sa.create_engine(
            url,
            pool_size=_KEPT_CONNECTIONS,
            max_overflow=_MOST_CONNECTIONS - _KEPT_CONNECTIONS,
            pool_timeout=wait_seconds,
            pool_recycle=_RECYCLE_SECONDS,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": 10},
        )
    except ImportError:
        raise UsageError("a ledger in PostgreSQL needs a driver", remedy="install hushsum[ledger]") from None

    @sa.event.listens_for(engine, "begin")
    def _durable(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("hushsum_writing", False):
            connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{round(1000 * wait_seconds)}ms'")

    return engine


def _damaged() -> FileRefused:
    return FileRefused(
        "the ledger's file is damaged or no SQLite database", remedy="restore it from a backup"
    )


def _in_words(error: exc.DBAPIError, wait_seconds: float) -> Exception:
    text = str(error.orig).lower()

    def says(*words: str) -> bool:
        return any(word in text for word in words)

    if isinstance(error, exc.DataError):
        return UsageError("a name or id has a character that the database cannot keep")
    if says("not a database", "malformed", "could not decode"):
        return _damaged()
    if says("no such table") or "undefinedtable" in type(error.orig).__name__.lower():
        return FileRefused(
            "the ledger's database lacks a table", remedy="it is damaged, restore it from a backup"
        )
    if says("append-only"):
        return FileRefused("the events of a ledger are append-only, and the database refused to change one")
    what, remedy = "the ledger's database cannot be reached, or was lost on the way", _AGAIN
    if says("locked", "lock timeout"):
        what = f"another process has held the ledger for more than {wait_seconds:g} seconds"
    elif says("full", "disk", "no space"):
        what = "the ledger's disk is full or failing, and nothing was recorded"
    elif says("readonly", "read-only", "unable to open", "permission denied"):
        what = "the ledger cannot be opened for writing"
        remedy = "check its permissions and folder"
    return LedgerUnavailable(what, remedy=remedy)
