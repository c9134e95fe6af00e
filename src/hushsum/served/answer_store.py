"""Where the answers of a served function are kept, so that a point always has the same answer."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn, Protocol, TypeVar

from hushsum.errors import FileRefused, SecretRefused, UsageError
from hushsum.files.durable_files import GrowingNumber, state_folder

_APPLICATION = 0x48555348
_FORMAT = 1
_WAIT_SECONDS = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One answer: the point's bytes, the returned value, and the path's value behind it, which is secret."""

    point: bytes
    answer: float
    path: float


class RollbackGuard(Protocol):
    """A number that only grows, kept where the store is not.

    An older copy of a store looks like a store in good order. Continued, it would answer points a second
    time, by another path; anyone who sees both learns the difference. The guard detects that answers are
    missing.
    """

    def known(self) -> int | None:
        """How many answers were given at least; None if nothing was ever noted here.

        Raises
        ------
        LedgerUnavailable
            while that cannot be known.
        """

    def note(self, number: int) -> None:
        """Record durably that so many are about to be given; a smaller number changes nothing."""


class StoreSession(Protocol):
    """One writer's turn; everything in it happens, or nothing does."""

    def find(self, point: bytes) -> float | None:
        """The answer that was returned for this point."""

    def count(self) -> int:
        """How many answers are kept."""

    def since(self, number: int) -> list[StoredAnswer]:
        """The answers from the given position on, in the order in which they were drawn."""

    def append(self, answers: list[StoredAnswer]) -> None:
        """Keep new answers."""


class AnswerStore(Protocol):
    """A place for answers with one writer at a time, which survives restarts."""

    def salt(self, proposed: str) -> str:
        """A random word that the store keeps from its first use on: ``proposed``, or an earlier one."""

    def belongs_to(self, facts: dict[str, Any]) -> bool:
        """Whether the store was opened for this function; refuses one that was for another."""

    def open(self, facts: dict[str, Any]) -> None:
        """Bind an empty store to a function; refuses the store of another function."""

    def answers(self, points: list[bytes]) -> list[float | None]:
        """The answers that were returned for points, without waiting for a writer."""

    def count(self) -> int:
        """How many answers are kept, without waiting for a writer."""

    def session(self) -> Any:
        """A context that gives a `StoreSession`, exclusive among threads and processes."""

    def rollback_guard(self) -> RollbackGuard | None:
        """The guard of this store where no other is given; None if there can be no older copy of it."""


class SqliteStore:
    """Answers in one SQLite file, for any number of threads and processes on one machine.

    The file is as secret as the data: it holds the path, without which an answer protects nobody. It is made
    readable by its owner alone. Losing it means that the path is lost: a function served anew spends anew.

    How many answers were given is also noted in the folder ``served`` of the user's state folder. An older
    copy of the file, which would draw a second path, is refused there; so is one with answers and without a
    note, as after a move to another machine without it.

    Parameters
    ----------
    path : str or path
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._lock = RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def _connected(self) -> sqlite3.Connection:
        # A connection must not cross a fork.
        if self._connection is None or self._process != os.getpid():
            try:
                # Never opened beside SQLite: closing it would end the locks that this process has on it.
                with suppress(FileExistsError):
                    os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                connection = sqlite3.connect(
                    self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
                )
                connection.execute("PRAGMA synchronous=FULL")
                self._prepare(connection)
            except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:
                raise FileRefused(
                    rule=f"the store of answers cannot be opened ({type(error).__name__})",
                    remedy="give another path",
                ) from None
            self._connection, self._process = connection, os.getpid()
        return self._connection

    @staticmethod
    def _prepare(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables == 0:
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={_FORMAT}")
            connection.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            connection.execute(
                "CREATE TABLE answers (number INTEGER PRIMARY KEY, point BLOB UNIQUE NOT NULL, "
                "answer REAL NOT NULL, path REAL NOT NULL)"
            )
            connection.execute("COMMIT")
            return
        # Not committed: even without a change that would wait for those who read.
        connection.execute("ROLLBACK")
        if application != _APPLICATION:
            raise sqlite3.DatabaseError("another application's file")

    def salt(self, proposed: str) -> str:
        """A random word that the store keeps from its first use on."""
        with self._exclusive() as connection:
            connection.execute("INSERT OR IGNORE INTO facts VALUES ('salt', ?)", (proposed,))
            found = connection.execute("SELECT value FROM facts WHERE name = 'salt'").fetchone()
            return str(found[0])

    def belongs_to(self, facts: dict[str, Any]) -> bool:
        """Whether the store was opened for this function."""
        with self._exclusive() as connection:
            return _bound(connection, facts)

    def open(self, facts: dict[str, Any]) -> None:
        """Bind an empty store to a function."""
        with self._exclusive() as connection:
            if not _bound(connection, facts):
                text = json.dumps(facts, sort_keys=True)
                connection.execute("INSERT INTO facts VALUES ('function', ?)", (text,))

    def answers(self, points: list[bytes]) -> list[float | None]:
        """The answers that were returned for points; None where there is none."""
        with self._reading() as session:
            return [session.find(point) for point in points]

    def count(self) -> int:
        """How many answers are kept."""
        with self._reading() as session:
            return session.count()

    @contextmanager
    def session(self) -> Iterator[StoreSession]:
        """One writer's turn."""
        with self._exclusive() as connection:
            yield _SqliteSession(connection)

    def rollback_guard(self) -> RollbackGuard | None:
        """The number of answers, in the user's state folder: all copies of this file have the same one."""
        salt = self.salt(secrets.token_hex(32))
        name = hashlib.sha256(f"rollback guard {salt}".encode()).hexdigest()[:32]
        return GrowingNumber(state_folder() / "served" / name, _no_guard)

    @contextmanager
    def _reading(self) -> Iterator[StoreSession]:
        with self._lock, self._errors_translated():
            yield _SqliteSession(self._connected())

    @contextmanager
    def _exclusive(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors_translated():
            connection = self._connected()
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # Also after a COMMIT that failed: a reader on this connection would see its answers.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        """Say what SQLite said in one sentence, and trust the connection no more."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            # SQLite quotes a damaged schema in its messages, which Python then cannot decode.
            self.close()
            raise FileRefused(
                rule=f"the store of answers cannot be read or written now ({type(error).__name__})",
                remedy="nothing new was returned, query again",
            ) from None

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def __repr__(self) -> str:
        return "<SqliteStore CONFIDENTIAL>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretRefused(
            rule="a store of answers must not be pickled", remedy="open its file where it is needed"
        )


def _no_guard() -> UsageError:
    return UsageError(
        rule="the number of answers that were given cannot be read and written in the state folder",
        remedy="set HUSHSUM_STATE to a folder that lasts",
    )


def _bound(connection: sqlite3.Connection, facts: dict[str, Any]) -> bool:
    found = connection.execute("SELECT value FROM facts WHERE name = 'function'").fetchone()
    if found is not None and found[0] != json.dumps(facts, sort_keys=True):
        raise UsageError(
            rule=(
                "the store of answers belongs to another function, or to other data, kernel, budget or limits"
            ),
            remedy="give each served function a store of its own",
        )
    return found is not None


class _SqliteSession:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, point: bytes) -> float | None:
        found = self._connection.execute("SELECT answer FROM answers WHERE point = ?", (point,)).fetchone()
        return None if found is None else _number(found[0])

    def count(self) -> int:
        # Numbers are given one after the other, and none is ever deleted.
        (newest,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM answers").fetchone()
        return _kept(newest, int)

    def since(self, number: int) -> list[StoredAnswer]:
        rows = self._connection.execute(
            "SELECT point, answer, path FROM answers WHERE number > ? ORDER BY number", (number,)
        )
        return [
            StoredAnswer(_kept(point, bytes), _number(answer), _number(path)) for point, answer, path in rows
        ]

    def append(self, answers: list[StoredAnswer]) -> None:
        self._connection.executemany(
            "INSERT INTO answers (point, answer, path) VALUES (?, ?, ?)",
            [(each.point, each.answer, each.path) for each in answers],
        )


def _number(value: object) -> float:
    number = _kept(value, float)
    if not math.isfinite(number):
        raise sqlite3.DatabaseError("not a number")
    return number


def _kept(value: object, kind: type[T]) -> T:
    """A value of the type that was stored; SQLite keeps whatever the bytes of a damaged file say."""
    if not isinstance(value, kind):
        raise sqlite3.DatabaseError("a value of another type")
    return value


class MemoryStore(SqliteStore):
    """Answers in memory, for experiments: they are forgotten with the process, and the path with them."""

    def __init__(self) -> None:
        super().__init__(":memory:")

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._prepare(self._connection)
            self._process = os.getpid()
        if self._process != os.getpid():
            raise SecretRefused(
                rule="answers in memory must not cross a fork: the path would be continued twice"
            )
        return self._connection

    def rollback_guard(self) -> RollbackGuard | None:
        """None: memory has no older copy."""
        return None

    def close(self) -> None:
        """Nothing: closing would forget the path."""
