"""The rollback guard: how far a ledger had come, kept outside its database.

A restored backup is a valid, older chain of events; only something outside the database can show that it is
older. So whoever appends to a ledger also writes the last event to its guard. A ledger that lacks that event
was restored or changed, and nothing is debited in it until a person has accepted it.

A ledger has one guard, which all machines that use it share: beside the SQLite file, or where ``guard`` says,
or, for PostgreSQL without it, in the state folder of the one machine that uses it. The guard has a random id,
which the ledger's events name. So a machine that cannot reach the guard debits nothing, whatever it knows
itself: what it knows may be older than the backup that was restored. The state folder of each machine also
keeps the last event that this machine wrote. That file can only refuse.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from hushsum.errors import FilePath, FileRefused, LedgerUnavailable, UsageError, Words, parts_of
from hushsum.files import GuardPlace, PlacedGuard, SharedText, state_folder

from ._account import FROZEN, RETIRED, Stored
from ._database import connect, file_of, has_ledger
from ._events import Journal, Kind, Receipt, new_guard_id

SUFFIX = ".rollback_guard"
"""A SQLite ledger's own guard has the name of its file and this suffix."""

VARIABLE = "HUSHSUM_GUARD"
"""Names the guard of ledgers that are opened without ``guard``: a file or a PostgreSQL URL."""

_REMEDY = (
    "put the newest copy back, or accept this one with: hushsum ledger accept-restore, "
    "which freezes its datasets"
)


@dataclass(frozen=True, slots=True)
class Watermark(Stored):
    """The last event that was written, the last accepted restore up to it (None without one), and the id of
    the guard (None in the file of a machine, which can only refuse).
    """

    last: Receipt
    restore: Receipt | None = None
    guard: str | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Later watermarks of one ledger compare as larger, also across an accepted restore."""
        return (0 if self.restore is None else self.restore.sequence, self.last.sequence)


class WatermarkGuard(PlacedGuard[Watermark]):
    """A watermark in one place, a file or a row of a database, safe for several processes.

    ``where`` describes the place, for messages.
    """

    __slots__ = ("_name", "where")

    def __init__(self, place: GuardPlace, name: str, where: Words) -> None:
        super().__init__(place, self._mark, lambda mark: json.dumps(mark.as_json()), _later)
        self._name, self.where = name, where

    @classmethod
    def in_file(cls, path: Path, *, like: Path | None = None) -> WatermarkGuard:
        """A guard in a file; whoever can use the database ``like`` can use it."""

        def unusable() -> LedgerUnavailable:
            return LedgerUnavailable(
                (
                    "the folder ",
                    FilePath(path.parent, service="of the state"),
                    ", which keeps the ledger's rollback guard, cannot be read or written",
                ),
                remedy="make it writable, or name another in HUSHSUM_STATE",
            )

        where: Words = ("in ", FilePath(path, service="the state folder", quoted=True))
        return cls(SharedText(path, unusable, like=like), path.name, where)

    @classmethod
    def in_database(cls, url: str, ledger: str) -> WatermarkGuard:
        """A guard in another database than the ledger's; every machine that reaches its server reaches it."""
        return cls(_Rows(url, ledger), _guards.name, "in the database that is named for it")

    def _mark(self, text: str) -> Watermark:
        try:
            return Watermark.from_json(json.loads(text))
        except (KeyError, TypeError, ValueError):
            raise FileRefused(
                f"the rollback guard {self._name!r} is damaged, so it is unknown whether the ledger is the "
                "newest copy",
                remedy="compare it with a receipt (hushsum ledger verify --receipt FILE), then accept it: "
                "hushsum ledger accept-restore",
            ) from None


def _later(mark: Watermark, known: Watermark) -> bool:
    """Whether a watermark is later than the known watermark.

    It is never later than the watermark of another ledger.

    Raises
    ------
    FileRefused
        if another event with the same number is there: the database was put back while it was in use.
    """
    if known.last.ledger != mark.last.ledger:
        return False
    if known.order == mark.order and known.last != mark.last:
        raise _put_back()
    return known.order < mark.order


_guards = sa.Table(
    "hushsum_rollback_guards",
    sa.MetaData(),
    sa.Column("ledger", sa.String(32), primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
)


class _Rows:
    """The table of guards in a database, and the row of one ledger."""

    def __init__(self, url: str, ledger: str) -> None:
        self._ledger = ledger
        self._database = connect(url, create=True)
        self._prepared = False

    def prepare(self) -> None:
        """Make the table.

        Raises
        ------
        UsageError
            if a ledger is in this database: a restore would put its guard back with it.
        """
        if self._prepared:
            return
        with self._database.writing() as connection:
            if has_ledger(connection):
                raise UsageError(
                    "guard",
                    "must be in another database than the ledger's, which a restore leaves alone",
                    remedy="make a database for it, such as postgresql://user@host/hushsum_guard",
                )
            _guards.create(connection, checkfirst=True)
        self._prepared = True

    def read(self) -> str | None:
        with self._database.reading() as connection:
            there = sa.inspect(connection).has_table(_guards.name)
            return _Row(self._ledger, connection).read() if there else None

    @contextmanager
    def locked(self) -> Iterator[_Row]:
        with self._database.writing() as connection:
            if self._database.dialect == "postgresql":
                # Also where there is no row yet. On SQLite a writer is alone already.
                connection.exec_driver_sql(f"LOCK TABLE {_guards.name} IN EXCLUSIVE MODE")
            yield _Row(self._ledger, connection)


class _Row:
    def __init__(self, ledger: str, connection: sa.Connection) -> None:
        self._ledger = ledger
        self._connection = connection

    def read(self) -> str | None:
        query = sa.select(_guards.c.text).where(_guards.c.ledger == self._ledger)
        found: str | None = self._connection.execute(query).scalar()
        return found

    def write(self, text: str) -> None:
        mine = sa.update(_guards).where(_guards.c.ledger == self._ledger).values(text=text)
        if not self._connection.execute(mine).rowcount:
            self._connection.execute(sa.insert(_guards).values(ledger=self._ledger, text=text))


@dataclass(frozen=True, slots=True)
class Known:
    """The knowledge outside of a ledger: where its guard is, the guard's watermark, and all watermarks."""

    place: Words
    shared: Watermark | None
    marks: list[Watermark]


class LedgerGuard:
    """The guard of one ledger, and the file of this machine.

    Parameters
    ----------
    ledger : str
        The ledger's id.
    place : path or URL
        Where the ledger is.
    state : path, optional
        The state folder; default: the user's.
    guard : path or URL, optional
        Where the guard is; default: what ``HUSHSUM_GUARD`` names, else beside a SQLite file, else in the
        state folder.
    """

    def __init__(
        self,
        ledger: str,
        place: str | os.PathLike[str],
        state: str | os.PathLike[str] | None,
        guard: str | os.PathLike[str] | None,
    ) -> None:
        folder = (state_folder() if state is None else Path(state)) / "ledgers"
        own = WatermarkGuard.in_file(folder / f"{ledger}.json")
        shared = guard_place(place, guard)
        self.shared, self._own = own, list[WatermarkGuard]()
        if shared is not None:
            self._own = [own]
            self.shared = (
                WatermarkGuard.in_file(shared, like=file_of(place))
                if isinstance(shared, Path)
                else WatermarkGuard.in_database(shared, ledger)
            )

    def read(self) -> Known:
        """The contents of guard and file. Read them before, or while nobody can append: later they may be
        ahead.

        Raises
        ------
        FileRefused
            if one is damaged.
        """
        shared, *own = (each.known() for each in (self.shared, *self._own))
        return Known(self.shared.where, shared, [each for each in (shared, *own) if each is not None])

    def readable(self) -> list[Watermark]:
        """The watermarks that are there and are not damaged."""
        found = []
        for each in (self.shared, *self._own):
            with suppress(FileRefused):
                if (mark := each.known()) is not None:
                    found.append(mark)
        return found

    def prepare(self) -> None:
        """Make sure that guard and file can be written."""
        for each in (self.shared, *self._own):
            each.prepare()

    def advance(self, mark: Watermark) -> bool:
        """Write a watermark to both places, unless a later watermark is there.

        Returns whether a later one was found.
        """
        later = [self.shared.note(mark), *(own.note(replace(mark, guard=None)) for own in self._own)]
        return any(later)

    def reset(self, mark: Watermark) -> None:
        """Write a watermark to both places, whatever was there."""
        self.shared.reset(mark)
        for own in self._own:
            own.reset(replace(mark, guard=None))


def guard_place(place: str | os.PathLike[str], guard: str | os.PathLike[str] | None) -> Path | str | None:
    """Where a ledger's guard is: a file, the URL of a database, or None for the state folder."""
    named = os.environ.get(VARIABLE) or None if guard is None else os.fspath(guard)
    if named is not None:
        return named if "://" in named else Path(named)
    file = file_of(place)
    return None if file is None else file.with_name(file.name + SUFFIX)


def watermark_of(journal: Journal) -> Watermark:
    """The watermark of a journal's head."""
    last, restore = journal.receipt, journal.last_restore()
    accepted = None if restore is None else Receipt(last.ledger, restore.sequence, restore.hash)
    return Watermark(last, accepted, journal.guard())


def rollback_refusal(journal: Journal, known: Known) -> FileRefused | None:
    """Why nothing may be debited, and what to do; None if the ledger has all that its guard knows.

    Privacy
    -------
    Every event is written to the guard before a byte of its release leaves, and every debit needs the guard
    that the ledger names. So no copy of the database without an event whose release was seen passes here, on
    whichever machine, as long as the guard itself is not put back or copied.
    """
    behind = next((text for mark in known.marks if (text := _behind(journal, mark)) is not None), None)
    if behind is not None:
        return FileRefused(behind, remedy=_REMEDY)
    if known.shared is None or known.shared.guard is None:
        what: Words = (
            "no rollback guard shows that this ledger is its newest copy: it must be ",
            *parts_of(known.place),
        )
    elif known.shared.guard != journal.guard():
        what = ("this ledger has another rollback guard than the one ", *parts_of(known.place))
    else:
        return None
    return FileRefused(
        what,
        remedy=(
            "use the guard of the machine that uses the ledger: name its file or database in "
            f"{VARIABLE} on every machine (hushsum ledger move-guard puts it where all reach it); if it was "
            "lost, or this is a restored backup: hushsum ledger accept-restore, which freezes the datasets"
        ),
    )


def contains_event(journal: Journal, receipt: Receipt) -> bool:
    """Whether the ledger contains the event that a receipt names."""
    if receipt.ledger != journal.receipt.ledger or not 1 <= receipt.sequence <= journal.receipt.sequence:
        return False
    if receipt == journal.receipt:
        return True
    try:
        return journal.event(receipt.sequence).hash == receipt.hash
    except FileRefused:
        return False


def valid_receipts(journal: Journal, marks: Sequence[Watermark]) -> list[Receipt]:
    """The last events of those watermarks that no accepted restore has replaced."""
    return [mark.last for mark in marks if not _replaced(journal, mark)]


def record_accepted_restore(
    journal: Journal, marks: Sequence[Watermark], *, who: str, reason: str
) -> list[str]:
    """Record that events may be lost, give the guard a new id, and freeze every dataset but retired ones."""
    known = [mark.last for mark in marks if mark.last.ledger == journal.receipt.ledger]
    lost = max(known, key=lambda each: each.sequence).as_json() if known else None
    body = {"who": who, "reason": reason, "lost": lost, "guard": new_guard_id()}
    journal.append(Kind.RESTORE_ACCEPTED, body=body)
    frozen = []
    for name in journal.datasets():
        account = journal.account(name)
        if account.state != RETIRED:
            after = account.in_state(FROZEN)
            journal.append(Kind.FROZEN, dataset=name, body={"who": who, "account": after.as_json()})
            frozen.append(name)
    return frozen


def _behind(journal: Journal, mark: Watermark) -> str | None:
    if mark.last.ledger != journal.receipt.ledger:
        what = "is another one than its rollback guard names"
    elif contains_event(journal, mark.last) or _replaced(journal, mark):
        return None
    elif journal.receipt.sequence < mark.last.sequence:
        ends, named = journal.receipt.sequence, mark.last.sequence
        what = f"ends at event {ends}, and its rollback guard names event {named}"
    else:
        what = f"has another event {mark.last.sequence} than its rollback guard names"
    return f"the ledger {what}: it was restored from a backup or changed, and may not have all that was spent"


def _put_back() -> FileRefused:
    return FileRefused(
        "the ledger's database was put back while a release was recorded, which is not delivered",
        remedy=f"stop everything that uses the ledger; then {_REMEDY}",
    )


def check_kept(journal: Journal, mark: Watermark, known: Known) -> None:
    """Refuse unless the ledger still has an event after which others were recorded.

    Raises
    ------
    FileRefused
        if it was put back to before that event, and continued without it.
    """
    if not contains_event(journal, mark.last) or rollback_refusal(journal, known) is not None:
        raise _put_back()


def _replaced(journal: Journal, mark: Watermark) -> bool:
    """Whether a restore was accepted after this watermark was written, here or on another machine.

    The watermark names the last accepted restore of its own history. If the ledger has that one, and a later
    one, then the history that the watermark belongs to was given up when the later restore was accepted,
    and every dataset was frozen then. A ledger put back to before the known restore does not have it.
    """
    if mark.last.ledger != journal.receipt.ledger:
        return False
    latest = journal.last_restore()
    if latest is None:
        return False
    if mark.restore is None:
        return True
    return contains_event(journal, mark.restore) and latest.sequence > mark.restore.sequence
