"""The ledger: datasets, debits of releases, history, the rollback guard, and reports for readers outside.

A debit is drawn, staged and published; each step is durable, so that a retry after a crash continues. Every
event is bound to all before it by a chain of hashes, which `Ledger.verify` recomputes; a receipt fixes its
head. `Journal` is the only way to append.

A restored backup is a valid, older chain of events; only something outside the database can show that it is
older. So whoever appends to a ledger also writes the last event to its rollback guard. A ledger that lacks
that event was restored or changed, and nothing is debited in it until a person has accepted it.

A ledger has one guard, which all machines that use it share: beside the SQLite file, or where ``guard`` says,
or, for PostgreSQL without it, in the state folder of the one machine that uses it. The guard has a random id,
which the ledger's events name. So a machine that cannot reach the guard debits nothing, whatever it knows
itself: what it knows may be older than the backup that was restored. The state folder of each machine also
keeps the last event that this machine wrote. That file can only refuse.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import os
import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from hushsum.errors import (
    AlreadyPublished,
    ClaimError,
    FilePath,
    FileRefused,
    HushsumError,
    LedgerUnavailable,
    UsageError,
    Words,
    parts_of,
)
from hushsum.files import GuardPlace, PlacedGuard, SharedText, Stored, canonical_json, state_folder
from hushsum.privacy import PERSON, Claim, Promise, Relation, in_plain_words, unit_in_words

from ._account import FROZEN, RETIRED, Account, Accounting, Charge, DatasetTerms, charge_for
from ._database import (
    WAIT_SECONDS,
    check_revision,
    connect,
    events,
    file_damage,
    file_of,
    has_ledger,
    head,
    no_ledger,
    require_folder,
    staged,
    upgrade,
)

GENESIS = "0" * 64
"""Stands in the first event in place of its predecessor's hash."""


class Kind(StrEnum):
    """The kinds of events of a ledger."""

    LEDGER_CREATED = "ledger created"
    DATASET_CREATED = "dataset created"
    DEBITED = "debited"
    DRAWN = "drawn"
    STAGED = "staged"
    PUBLISHED = "published"
    VOIDED = "voided"
    BUDGET_CHANGED = "budget changed"
    RETIRED = "retired"
    RESTORE_ACCEPTED = "restore accepted"
    GUARD_MOVED = "rollback guard moved"
    FROZEN = "frozen"
    WRITTEN_OFF = "written off"


ACCOUNT_KINDS = (
    Kind.DATASET_CREATED,
    Kind.DEBITED,
    Kind.VOIDED,
    Kind.BUDGET_CHANGED,
    Kind.RETIRED,
    Kind.FROZEN,
    Kind.WRITTEN_OFF,
)
"""Events of these kinds change a dataset's account, and carry the account as it is afterwards."""

GUARD_KINDS = (Kind.LEDGER_CREATED, Kind.GUARD_MOVED, Kind.RESTORE_ACCEPTED)
"""Events of these kinds give the ledger's rollback guard an id, and carry the id."""

STEPS = (Kind.DEBITED, Kind.DRAWN, Kind.STAGED, Kind.PUBLISHED)
"""The durable steps of a release, in order."""


@dataclass(frozen=True, slots=True)
class Event(Stored):
    """One row of the ledger. ``dataset`` and ``key`` are empty where an event concerns neither."""

    sequence: int
    at: str
    kind: Kind
    dataset: str
    key: str
    body: dict[str, Any]
    previous: str
    hash: str

    def digest(self, ledger: str) -> str:
        """SHA-256 of the canonical JSON of all that the event says, with the id of its ledger."""
        said = {"ledger": ledger, **self.as_json()}
        del said["hash"]
        return hashlib.sha256(canonical_json(said)).hexdigest()


@dataclass(frozen=True, slots=True)
class Receipt(Stored):
    """The head of a ledger's chain at some moment: it fixes every event up to ``sequence``.

    Kept elsewhere, it proves later that the ledger still contains what it contained.
    """

    ledger: str
    sequence: int
    hash: str

    @classmethod
    def from_text(cls, text: str) -> Receipt:
        """Read a receipt.

        Raises
        ------
        FileRefused
            if the text is none.
        """
        try:
            return cls.from_json(json.loads(text))
        except (KeyError, TypeError, ValueError):
            remedy = "give a file written by: hushsum ledger receipt"
            raise FileRefused("this is not a receipt", remedy=remedy) from None


_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Entry(Stored):
    """One release: who, when, what, to whom, its claim, its charge and how far it came."""

    key: str
    dataset: str
    sequence: int
    at: str
    who: str
    to: str | None
    part: str | None
    subject: dict[str, Any]
    claim: Claim
    charge: Charge
    step: Kind
    sha256: str | None = None
    size: int | None = None

    @classmethod
    def after(cls, entry: Entry | None, event: Event) -> Entry:
        """The entry after a further event of its key, of which the first is a debit."""
        body = event.body
        if entry is not None:
            staged = {"sha256": body["sha256"], "size": body["size"]} if event.kind is Kind.STAGED else {}
            return replace(entry, step=event.kind, **staged)
        if event.kind is not Kind.DEBITED:
            raise FileRefused(
                f"event {event.sequence} of the ledger belongs to a debit that was changed or removed",
                remedy="see which with: hushsum ledger verify",
            )
        return cls(
            **{name: getattr(event, name) for name in ("key", "dataset", "sequence", "at")},
            **{name: body[name] for name in ("who", "to", "part", "subject")},
            claim=Claim.from_json(body["claim"]),
            charge=Charge.from_json(body["charge"]),
            step=event.kind,
        )

    def refuse_again(self) -> None:
        """Raise if the debit was voided, and AlreadyPublished if the release has reached its reader."""
        if self.step is Kind.VOIDED:
            raise UsageError(
                f"the debit {self.key!r} was voided", remedy="release with another idempotency key"
            )
        if self.step is Kind.PUBLISHED and self.sha256 is not None:
            raise AlreadyPublished(
                f"the release {self.key!r} was published already, and its bytes are not kept by the ledger",
                remedy=f"find the file with SHA-256 {self.sha256}, or give another key, which spends again",
                sha256=self.sha256,
            )

    def as_json(self) -> dict[str, Any]:
        """The entry for a machine."""
        found = Stored.as_json(self)
        return {"idempotency_key": found.pop("key"), **found, "claim": self.claim.in_numbers()}


def entries_of(events: Iterable[Event]) -> list[Entry]:
    """All releases among the events, in the order of their debits."""
    found: dict[str, Entry] = {}
    for event in events:
        if event.key:
            found[event.key] = Entry.after(found.get(event.key), event)
    return [*found.values()]


def check_name(what: str, name: str) -> None:
    """Raise unless a name can stand in a table and in a message."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST or not name.isprintable():
        rule = f"{what} must be a name of 1 to {_LONGEST} printable characters"
        raise UsageError(rule, remedy="give such a one")


def new_guard_id() -> str:
    """A random id of a rollback guard."""
    return secrets.token_hex(16)


def reason_of(text: str) -> str:
    """The reason, which must be given."""
    if not text.strip():
        raise UsageError("a reason must be given, for later readers of the ledger", remedy="got none")
    return text


def person(who: str | None) -> str:
    """Who acts: as given, or the user of this process."""
    if who is not None:
        return who
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


class Journal:
    """Events read and appended within one transaction.

    Whoever appends holds the head row's lock, so sequence numbers have no gaps and every event sees all
    before it. The hash of every event that is relied on is recomputed; the whole chain is checked by
    ``verify``. ``receipt`` is the head of the chain.
    """

    def __init__(self, connection: sa.Connection, receipt: Receipt) -> None:
        self.connection = connection
        self.receipt = receipt

    @classmethod
    def created(cls, connection: sa.Connection, ledger: str, who: str) -> Journal:
        """The journal of a new ledger, with its first event."""
        connection.execute(sa.insert(head).values(place=1, id=ledger, sequence=0, hash=GENESIS))
        journal = cls(connection, Receipt(ledger, 0, GENESIS))
        journal.append(Kind.LEDGER_CREATED, body={"who": who, "guard": new_guard_id()})
        return journal

    @classmethod
    def opened(
        cls, connection: sa.Connection, *, lock: bool = False, damaged: bool = False
    ) -> Journal | None:
        """The journal at its head, if there is a ledger; ``lock`` keeps others from appending until the
        transaction ends.

        Raises
        ------
        FileRefused
            if the head is not the last event.
        """
        query = sa.select(head.c.id, head.c.sequence, head.c.hash)
        row = connection.execute(query.with_for_update() if lock else query).one_or_none()
        if row is None:
            return None
        journal = cls(connection, Receipt(row.id, row.sequence, row.hash))
        if damaged:
            return journal
        last = connection.execute(sa.select(sa.func.max(events.c.sequence))).scalar()
        if last != row.sequence or journal.event(row.sequence).hash != row.hash:
            raise FileRefused(
                "the ledger's head is not its last event: rows were removed or changed",
                remedy="see which with: hushsum ledger verify",
            )
        return journal

    def append(
        self, kind: Kind, *, dataset: str = "", key: str = "", body: dict[str, Any] | None = None
    ) -> Event:
        """Add an event to the chain."""
        at = datetime.now(UTC).isoformat(timespec="microseconds")
        last = self.receipt
        event = Event(last.sequence + 1, at, kind, dataset, key, body or {}, last.hash, "")
        event = replace(event, hash=event.digest(last.ledger))
        row = {**event.as_json(), "body": canonical_json(event.body).decode()}
        self.connection.execute(sa.insert(events).values(row))
        self.connection.execute(sa.update(head).values(sequence=event.sequence, hash=event.hash))
        self.receipt = Receipt(last.ledger, event.sequence, event.hash)
        return event

    def event(self, sequence: int) -> Event:
        """One event, its hash recomputed."""
        row = self.connection.execute(sa.select(events).where(events.c.sequence == sequence)).one_or_none()
        if row is None:
            raise _changed(sequence)
        return self._checked(row)

    def account(self, dataset: str) -> Account:
        """A dataset's account, from the last event that changed it.

        Raises
        ------
        UsageError
            if there is no such dataset.
        """
        event = self._last(*ACCOUNT_KINDS, dataset=dataset)
        if event is None:
            known = ", ".join(map(repr, self.datasets())) or "none yet"
            raise UsageError(
                "dataset",
                f"must be one of the ledger's ({known})",
                got=f"{dataset!r}",
                remedy="check the name, or add it with: hushsum ledger init",
            )
        self._check_complete_after(event.sequence)
        return Account.from_json(event.body["account"])

    def datasets(self) -> list[str]:
        """The names of all datasets, oldest first."""
        query = (
            sa.select(events.c.dataset)
            .where(events.c.kind == str(Kind.DATASET_CREATED))
            .order_by(events.c.sequence)
        )
        return list(self.connection.execute(query).scalars())

    def entry(self, key: str) -> Entry | None:
        """The release with this key."""
        # The index on keys leaves the empty ones out, so it is used only where they cannot be meant.
        named = events.c.key != sa.literal_column("''")
        query = sa.select(events).where(events.c.key == key, named).order_by(events.c.sequence)
        found = [self._checked(row) for row in self.connection.execute(query)]
        if found:
            self._check_complete_after(found[-1].sequence)
        return next(iter(entries_of(found)), None)

    def last_restore(self) -> Event | None:
        """The last event that accepted a restored backup."""
        return self._last(Kind.RESTORE_ACCEPTED)

    def restored_since(self, sequence: int) -> bool:
        """Whether a restored backup was accepted after an event."""
        last = self.last_restore()
        return last is not None and last.sequence > sequence

    def guard(self) -> str | None:
        """The id of the rollback guard under which events are recorded."""
        found = [event for kind in GUARD_KINDS if (event := self._last(kind)) is not None]
        last = max(found, key=lambda event: event.sequence, default=None)
        return None if last is None else last.body["guard"]

    def check_complete(self) -> None:
        """Refuse a ledger from which events were removed; their contents are for ``verify``.

        Raises
        ------
        FileRefused
            if an event is missing.
        """
        self._check_complete_after(0)

    def _check_complete_after(self, sequence: int) -> None:
        """The last event of a dataset or release is known only if no later event is missing."""
        query = sa.select(sa.func.count()).select_from(events).where(events.c.sequence > sequence)
        if self.connection.execute(query).scalar_one() != self.receipt.sequence - sequence:
            raise FileRefused(
                "events were removed from the ledger, and may have spent budget",
                remedy="see which with: hushsum ledger verify, and restore a backup",
            )

    def _last(self, *kinds: Kind, dataset: str | None = None) -> Event | None:
        query = sa.select(events).where(events.c.kind.in_([str(kind) for kind in kinds]))
        if dataset is not None:
            query = query.where(events.c.dataset == dataset)
        row = self.connection.execute(query.order_by(events.c.sequence.desc()).limit(1)).one_or_none()
        return None if row is None else self._checked(row)

    def events(self, dataset: str | None = None) -> Iterator[Event]:
        """All events, or those of a dataset, in order; their hashes are not recomputed."""
        query = sa.select(events).order_by(events.c.sequence)
        if dataset is not None:
            query = query.where(events.c.dataset == dataset)
        for row in self.connection.execute(query):
            yield parsed(row)

    def _checked(self, row: sa.Row[Any]) -> Event:
        event = parsed(row)
        if event.hash != event.digest(self.receipt.ledger):
            raise _changed(event.sequence)
        return event


def parsed(row: sa.Row[Any]) -> Event:
    """A row as an event.

    Raises
    ------
    FileRefused
        if it is none.
    """
    try:
        body = json.loads(row.body)
        kind = Kind(row.kind)
        if not isinstance(body, dict):
            raise ValueError
    except (ValueError, TypeError):
        raise _changed(row.sequence) from None
    return Event(row.sequence, row.at, kind, row.dataset, row.key, body, row.previous, row.hash)


def _changed(sequence: int) -> FileRefused:
    return FileRefused(
        f"event {sequence} of the ledger was changed or removed after it was written",
        remedy="compare with a receipt (hushsum ledger verify --receipt FILE) and restore a backup",
    )


@dataclass(frozen=True, slots=True)
class Verification(Stored):
    """The result of a verification: the number of valid events, and the first problem with its row, if there
    is any.
    """

    ledger: str
    events: int
    problem: str | None
    sequence: int | None

    @property
    def holds(self) -> bool:
        """Whether everything follows."""
        return self.problem is None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {"ledger": self.ledger, "holds": self.holds, **Stored.as_json(self)}


class _BrokenError(Exception):
    """A row that does not follow."""


def verify_chain(connection: sa.Connection, *, receipts: Sequence[Receipt] = ()) -> Verification:
    """Check hashes, order, balances, steps, staged bytes, the head, a SQLite file, and what receipts say."""
    row = connection.execute(sa.select(head)).one_or_none()
    ledger = "" if row is None else row.id
    found = _Recomputed(ledger)
    sequence: int | None = None
    try:
        if row is None:
            raise _BrokenError("the head row is missing")
        for each in connection.execute(sa.select(events).order_by(events.c.sequence)):
            sequence = each.sequence
            found.take(each)
        sequence = None
        damage = file_damage(connection)
        if damage is not None:
            raise _BrokenError(damage)
        if (row.sequence, row.hash) != (found.count, found.last):
            sequence = found.count + 1
            raise _BrokenError("the head row names another event than the last one: the tail is missing")
        found.compare(receipts)
        for entry in found.entries.values():
            if entry.step is Kind.STAGED:
                staged_bytes(connection, entry)
    except _BrokenError as broken:
        return Verification(ledger, found.count, str(broken), sequence or found.count + 1)
    except FileRefused as refused:
        return Verification(ledger, found.count, str(refused), sequence)
    return Verification(ledger, found.count, None, None)


@dataclass(slots=True)
class _Recomputed:
    """The state that the events so far make."""

    ledger: str
    count: int = 0
    last: str = GENESIS
    restored: int = 0
    hashes: list[str] = field(default_factory=list)
    accounts: dict[str, Account] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)

    def take(self, row: sa.Row[Any]) -> None:
        """Check that the row follows, and move on."""
        if row.sequence != self.count + 1:
            raise _BrokenError(f"event {self.count + 1} is missing")
        event = parsed(row)
        if canonical_json(event.body).decode() != row.body or event.hash != event.digest(self.ledger):
            raise _BrokenError(f"event {event.sequence} was changed: its hash is not that of its content")
        if event.previous != self.last:
            raise _BrokenError(f"event {event.sequence} does not follow event {self.count}")
        if (event.kind is Kind.LEDGER_CREATED) != (event.sequence == 1):
            raise _BrokenError("a ledger begins with its creation, once")
        try:
            self._apply(event)
        except (HushsumError, KeyError, TypeError, ValueError, AttributeError):
            raise _BrokenError(f"event {event.sequence} does not follow from those before it") from None
        self.count, self.last = event.sequence, event.hash
        self.hashes.append(event.hash)

    def compare(self, receipts: Sequence[Receipt]) -> None:
        """Find each receipt's event."""
        for receipt in receipts:
            if receipt.ledger != self.ledger:
                raise _BrokenError("the receipt is of another ledger")
            if receipt.sequence > self.count:
                raise _BrokenError(
                    f"the ledger ends at event {self.count}, and a receipt names event {receipt.sequence}: "
                    "its tail is missing"
                )
            if receipt.sequence < 1 or self.hashes[receipt.sequence - 1] != receipt.hash:
                raise _BrokenError(
                    f"event {receipt.sequence} is another one than the receipt's: the ledger was rewritten"
                )

    def _apply(self, event: Event) -> None:
        if event.key:
            self._step(event)
        if event.kind is Kind.RESTORE_ACCEPTED:
            self.restored = event.sequence
        if event.kind in ACCOUNT_KINDS:
            found = Account.from_json(event.body["account"])
            if found != self._expected(event):
                raise _BrokenError(f"event {event.sequence} has a wrong balance")
            self.accounts[event.dataset] = found

    def _step(self, event: Event) -> None:
        entry = self.entries.get(event.key)
        before = None if entry is None else entry.step
        allowed: Kind | None = Kind.DEBITED
        if event.kind in STEPS:
            place = STEPS.index(event.kind)
            allowed = None if place == 0 else STEPS[place - 1]
        if before is not allowed or (entry is not None and entry.dataset != event.dataset):
            raise _BrokenError(f"event {event.sequence} takes a step out of order")
        if entry is not None and entry.sequence < self.restored and event.kind is not Kind.PUBLISHED:
            raise _BrokenError(f"event {event.sequence} goes on with a debit that a restore has closed")
        self.entries[event.key] = Entry.after(entry, event)

    def _expected(self, event: Event) -> Account:
        body = event.body
        if event.kind is Kind.DATASET_CREATED:
            if event.dataset in self.accounts:
                raise _BrokenError(f"event {event.sequence} creates a dataset again")
            return Account.opened(DatasetTerms.from_json(body["account"]["terms"]))
        account = self.accounts[event.dataset]
        if event.kind is Kind.DEBITED:
            charge = Charge.from_json(body["charge"])
            fair = charge_for(Claim.from_json(body["claim"]), account.terms, part=body["part"])
            # A converted δ goes through logarithms, whose last digit is the machine's.
            if (charge.epsilon, charge.rho) != (fair.epsilon, fair.rho) or not math.isclose(
                charge.delta, fair.delta, rel_tol=1e-9
            ):
                raise _BrokenError(f"event {event.sequence} was charged another amount than its claim costs")
            return account.debited(charge, part=body["part"], dataset=event.dataset)
        if event.kind is Kind.VOIDED:
            entry = self.entries[event.key]
            return account.voided(entry.charge, part=entry.part)
        if event.kind is Kind.WRITTEN_OFF:
            return account.written_off(Charge.from_json(body["charge"]).at_least(Charge()))
        if event.kind is Kind.BUDGET_CHANGED:
            budget = Charge.from_json(body["account"]["terms"]["budget"])
            return account.with_budget(budget)
        return account.in_state(FROZEN if event.kind is Kind.FROZEN else RETIRED)


def staged_bytes(connection: sa.Connection, entry: Entry) -> bytes:
    """The bytes of a staged entry, compared with the hash in the chain.

    Raises
    ------
    FileRefused
        if they are not those.
    """
    query = sa.select(staged.c.bytes).where(staged.c.key == entry.key).order_by(staged.c.position)
    payload = b"".join(bytes(piece) for piece in connection.execute(query).scalars())
    if hashlib.sha256(payload).hexdigest() != entry.sha256:
        raise FileRefused(
            f"the staged bytes of {entry.key!r} are not those that were staged",
            remedy="they must not be published, restore the ledger from a backup",
        )
    return payload


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


class DatasetBudget:
    """The budget of a dataset in a ledger, or of one of its parts; made by :meth:`Ledger.dataset`.

    A :class:`hushsum.privacy.Budget`: give it to a releasing call as ``budget=``.

    Attributes
    ----------
    ledger_id : str
        The ledger's own name, the same wherever it is moved.
    dataset : str
        The dataset's name in the ledger.
    part : str or None
        The declared part of the data that the releases read.
    """

    def __init__(
        self,
        ledger: Ledger,
        dataset: str,
        *,
        part: str | None = None,
        to: str | None = None,
        who: str | None = None,
        fence: Fence | None = None,
    ) -> None:
        self._ledger, self.ledger_id, self.dataset, self.part = ledger, ledger.id, dataset, part
        self._to, self._who, self._fence = to, who, fence

    def __repr__(self) -> str:
        part = "" if self.part is None else f", part={self.part!r}"
        return f"<DatasetBudget {self.dataset!r}{part}>"

    @property
    def account(self) -> Account:
        """The dataset's terms, and what was spent and is left."""
        return self._ledger.account(self.dataset)

    @property
    def remaining(self) -> Charge:
        """The budget that is left, of the dataset or of its part."""
        return self.account.remaining_in(self.part)

    def find(self, idempotency_key: str) -> Entry | None:
        """The release with this key."""
        return self._ledger.find(idempotency_key)

    def price(self, claim: Claim, *, called: str | None = None) -> tuple[Charge, Account]:
        """The price of a claim, and the account after it; nothing is debited.

        Parameters
        ----------
        called : str, optional
            The dataset's name in error messages, where users know it by another one.

        Raises
        ------
        BudgetExhausted, ClaimError
            as ``debit`` would.
        """
        return self._charged(self.account, claim, called or self.dataset)

    def cost(self, claim: Claim) -> Charge:
        """The price of a claim, whether or not as much is left.

        Raises
        ------
        ClaimError
            if the claim cannot be debited.
        """
        return charge_for(claim, self.account.terms, part=self.part)

    def debit(self, claim: Claim, *, subject: Mapping[str, object], idempotency_key: str) -> LedgerDebit:
        """Debit a claim, or find the debit of this key; `hushsum.privacy` calls it.

        Parameters
        ----------
        subject : mapping
            What is released, publicly: nothing that depends on the records.
        idempotency_key : str
            Names the attempt. The same key never spends twice, and is refused for anything else.

        Raises
        ------
        BudgetExhausted
            if less is left than the claim costs; nothing is debited.
        ClaimError
            if the claim cannot be debited.
        AlreadyPublished
            if the release with this key has reached its reader.
        UsageError
            if the key belongs to another release.
        """
        check_name("idempotency_key", idempotency_key)
        public = dict(subject)
        with self._ledger._writing() as journal:
            entry = journal.entry(idempotency_key)
            if entry is not None:
                known = [entry.dataset, entry.claim.as_json(), entry.subject, entry.part]
                if canonical_json([self.dataset, claim.as_json(), public, self.part]) != canonical_json(
                    known
                ):
                    raise UsageError(
                        f"the idempotency key {entry.key!r} belongs to another release of dataset "
                        f"{entry.dataset!r}",
                        remedy="give another key, which spends again",
                    )
                entry.refuse_again()
            else:
                if self._fence is not None:
                    self._fence(journal.connection)
                charge, after = self._charged(journal.account(self.dataset), claim, self.dataset)
                body = {
                    "who": person(self._who),
                    "to": self._to,
                    "part": self.part,
                    "subject": public,
                    "claim": claim.as_json(),
                    "charge": charge.as_json(),
                    "account": after.as_json(),
                }
                journal.append(Kind.DEBITED, dataset=self.dataset, key=idempotency_key, body=body)
        return LedgerDebit(self._ledger, idempotency_key)

    def _charged(self, account: Account, claim: Claim, called: str) -> tuple[Charge, Account]:
        charge = charge_for(claim, account.terms, part=self.part)
        return charge, account.debited(charge, part=self.part, dataset=called)


PIECE = 1 << 24
"""Staged bytes are kept in rows of this size, so that no row meets a database's limit."""

Fence = Callable[[sa.Connection], None]
"""Called in the transaction of a new debit, with its connection; raises if this process may not spend any
more, such as a worker whose job was given to another one.
"""


class LedgerDebit:
    """A debit of a :class:`Ledger`. Each step is one short transaction; no lock is held between them.

    Two processes may hold the debit of one key. Both may draw, but only the first to stage counts: the
    other gets those bytes back from ``stage``, and what it drew itself leaves it nowhere.
    """

    def __init__(self, ledger: Ledger, key: str) -> None:
        self._ledger, self.key = ledger, key

    @property
    def entry(self) -> Entry:
        """The release as the ledger has it now."""
        with self._ledger._reading() as journal:
            return self._entry(journal)

    @property
    def staged(self) -> bytes | None:
        """The bytes that wait to be published; None before *staged* and after *published*.

        The rollback guard has them when this returns: whoever staged them may have been killed before.
        """
        with self._ledger._writing() as journal:
            entry = self._entry(journal)
            return staged_bytes(journal.connection, entry) if entry.step is Kind.STAGED else None

    def draw(self) -> None:
        """Record that noise is about to be drawn; from here on nothing is refunded.

        Raises
        ------
        AlreadyPublished
            if a release with this key has been published.
        UsageError
            if the debit was voided, or a restored backup was accepted since: then it may have been drawn in
            the events that were lost, and a second result for one debit must not exist.
        """
        with self._ledger._writing() as journal:
            entry = self._entry(journal)
            entry.refuse_again()
            if entry.step in (Kind.DEBITED, Kind.DRAWN):
                self._refuse_lost(journal, entry)
            if entry.step is Kind.DEBITED:
                journal.append(Kind.DRAWN, dataset=entry.dataset, key=self.key)

    def stage(self, payload: bytes) -> bytes:
        """Keep the bytes durably; returns those of the first to stage."""
        with self._ledger._writing() as journal:
            entry = self._entry(journal)
            if entry.step is Kind.STAGED:
                return staged_bytes(journal.connection, entry)
            entry.refuse_again()
            if entry.step is not Kind.DRAWN:
                raise UsageError(
                    "bytes are staged after they were drawn", got=f"the step {str(entry.step)!r}"
                )
            self._refuse_lost(journal, entry)
            for position, start in enumerate(range(0, len(payload), PIECE)):
                piece = payload[start : start + PIECE]
                journal.connection.execute(
                    sa.insert(staged).values(key=self.key, position=position, bytes=piece)
                )
            body = {"sha256": hashlib.sha256(payload).hexdigest(), "size": len(payload)}
            journal.append(Kind.STAGED, dataset=entry.dataset, key=self.key, body=body)
        return payload

    def publish(self) -> None:
        """Record that the bytes have reached their reader; the ledger then keeps only their SHA-256."""
        with self._ledger._writing() as journal:
            entry = self._entry(journal)
            if entry.step is Kind.PUBLISHED:
                return
            if entry.step is not Kind.STAGED:
                raise UsageError("only staged bytes are published", got=f"the step {str(entry.step)!r}")
            journal.append(Kind.PUBLISHED, dataset=entry.dataset, key=self.key)
            journal.connection.execute(sa.delete(staged).where(staged.c.key == self.key))

    def _entry(self, journal: Journal) -> Entry:
        entry = journal.entry(self.key)
        if entry is None:
            raise FileRefused(
                f"the entry {self.key!r} is no longer in the ledger",
                remedy="was a backup restored? compare with a receipt: hushsum ledger verify --receipt FILE",
            )
        return entry

    def _refuse_lost(self, journal: Journal, entry: Entry) -> None:
        if journal.restored_since(entry.sequence):
            raise UsageError(
                f"the debit {self.key!r} is older than a restored backup that was accepted, and may have "
                "been released in what was lost",
                remedy="release with another idempotency key, which spends again",
            )


class Ledger:
    """The budgets of one or more datasets and their releases, in a file (SQLite) or a PostgreSQL database.

    Several processes and machines may use one ledger at once: each part of a budget is granted once. It is
    append-only and chained by hash.

    It protects against mistakes, crashes and races, and shows tampering. It does not stop an owner who
    releases without it, or who rewrites the database *and* every receipt and rollback guard.

    ``Ledger(place)`` opens one, :meth:`create` makes one.

    Attributes
    ----------
    id : str
        The ledger's own name, the same wherever it is moved.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(folder + "/ledger.db", state=folder)
    ...     account = ledger.create_dataset("payroll", DatasetTerms.of(epsilon=1.0))
    ...     ledger.account("payroll").remaining.in_words()
    'ε 1'
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        *,
        state: str | os.PathLike[str] | None = None,
        guard: str | os.PathLike[str] | None = None,
        wait_seconds: float = WAIT_SECONDS,
        damaged: bool = False,
    ) -> None:
        """Open a ledger by its path or URL.

        Parameters
        ----------
        place : path or URL
            A file, or ``postgresql://user@host/name``.
        state : path, optional
            The state folder; default: the user's.
        guard : path or URL, optional
            Where the rollback guard is; see :meth:`create`.
        wait_seconds : float
            How long a transaction waits for another process's.
        damaged : bool
            Also open one whose last events are missing, to verify it.

        Raises
        ------
        UsageError
            if there is none.
        FileRefused
            if it is damaged or of another version.
        """
        self._database = connect(place, wait_seconds=wait_seconds)
        with self._database.reading() as connection:
            check_revision(connection)
            journal = Journal.opened(connection, damaged=damaged)
            if journal is not None and not damaged:
                journal.check_complete()
        if journal is None:
            raise no_ledger()
        self.id = journal.receipt.ledger
        self._place, self._state = place, state
        self._guard = LedgerGuard(self.id, place, state, guard)

    def __repr__(self) -> str:
        return f"<Ledger {self.id} on {self._database.dialect}>"

    def account(self, dataset: str) -> Account:
        """The account of a dataset: what was spent, and what is left."""
        with self._reading() as journal:
            return journal.account(dataset)

    def standing(self, datasets: Sequence[str]) -> list[tuple[Account, list[Entry]]]:
        """The account and the releases of each dataset, all of the same moment."""
        with self._reading() as journal:
            return [(journal.account(name), entries_of(journal.events(name))) for name in datasets]

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        with self._reading() as journal:
            return journal.datasets()

    def find(self, key: str) -> Entry | None:
        """The release with this key."""
        with self._reading() as journal:
            return journal.entry(key)

    def history(self, dataset: str | None = None) -> list[Entry]:
        """The releases, oldest first."""
        with self._reading() as journal:
            if dataset is not None:
                journal.account(dataset)
            return entries_of(journal.events(dataset))

    def events(self, dataset: str | None = None) -> list[Event]:
        """Everything that happened, oldest first."""
        with self._reading() as journal:
            return list(journal.events(dataset))

    def receipt(self) -> Receipt:
        """The head of the chain, to be kept where whoever keeps the ledger cannot change it."""
        with self._reading() as journal:
            return journal.receipt

    def rollback_problem(self) -> str | None:
        """Why nothing can be recorded: the ledger may not be the newest copy. None if all is well.

        Raises
        ------
        FileRefused
            if events are missing from its middle, which no acceptance can mend.
        """
        try:
            known = self._guard.read()
        except FileRefused as damaged:
            return str(damaged)
        with self._reading() as journal:
            journal.check_complete()
            problem = rollback_refusal(journal, known)
        return None if problem is None else str(problem)

    def restored_at(self) -> str | None:
        """When a restored backup was last accepted; None if never."""
        with self._reading() as journal:
            event = journal.last_restore()
        return None if event is None else event.at

    def verify(self, receipt: Receipt | None = None) -> Verification:
        """Recompute every hash, every balance and every step; compare with the rollback guard and a
        receipt.
        """
        marks = self._guard.read().marks
        with self._database.reading() as connection:
            journal = Journal.opened(connection, damaged=True)
            # Watermarks that an accepted restore has replaced name events that are given up.
            valid = [mark.last for mark in marks if journal is None or not _replaced(journal, mark)]
            return verify_chain(connection, receipts=[*valid, *([] if receipt is None else [receipt])])

    @contextmanager
    def _reading(self) -> Iterator[Journal]:
        with self._database.reading() as connection:
            yield self._opened(connection)

    def _opened(self, connection: Connection, *, lock: bool = False) -> Journal:
        journal = Journal.opened(connection, lock=lock)
        if journal is None or journal.receipt.ledger != self.id:
            raise FileRefused(
                "another ledger stands where this one was", remedy="check the path, and open it again"
            )
        return journal

    @classmethod
    def create(
        cls,
        place: str | os.PathLike[str],
        *,
        who: str | None = None,
        state: str | os.PathLike[str] | None = None,
        guard: str | os.PathLike[str] | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> Ledger:
        """Create a ledger, or upgrade an existing one to this version's schema.

        Parameters
        ----------
        place : path or URL
            A file, or ``postgresql://user@host/name``.
        who : str, optional
            Who makes it; default: the user of this process.
        state : path, optional
            The state folder, where this machine keeps the last event that it wrote; default: the user's.
        guard : path or URL, optional
            The rollback guard, which all machines that use the ledger share: a file, or the URL of another
            PostgreSQL database than the ledger's. Default: what ``HUSHSUM_GUARD`` names; else the SQLite
            file's name with ``.rollback_guard``; else, for PostgreSQL, a file in the state folder, and then
            one machine can use the ledger.
        wait_seconds : float
            How long a transaction waits for another process's.

        Raises
        ------
        LedgerUnavailable
            if the database cannot be reached.
        FileRefused
            if there is no ledger, but a rollback guard of one: its database was lost.
        """
        named = guard_place(place, guard)
        beside = named if isinstance(named, Path) else None
        file = file_of(place)
        if file is not None and not file.exists():
            # Before the guard, which makes the folders that it needs.
            require_folder(file)
            _refuse_lost(beside)
        LedgerGuard("", place, state, guard).prepare()
        database = connect(place, create=True, wait_seconds=wait_seconds)
        with database.writing() as connection:
            upgrade(connection)
            journal = Journal.opened(connection, lock=True)
            if journal is None:
                _refuse_lost(beside)
                journal = Journal.created(connection, uuid.uuid4().hex, person(who))
                # Before the commit: no other machine may find a ledger without a guard, and begin its own.
                LedgerGuard(journal.receipt.ledger, place, state, guard).reset(watermark_of(journal))
        return cls(place, state=state, guard=guard, wait_seconds=wait_seconds)

    @classmethod
    def upgrade(cls, place: str | os.PathLike[str]) -> Ledger:
        """Bring an existing ledger to this version's schema, and open it."""
        database = connect(place)
        with database.writing() as connection:
            if not has_ledger(connection):
                raise no_ledger()
            upgrade(connection)
        return cls(place)

    def create_dataset(self, name: str, terms: DatasetTerms, *, who: str | None = None) -> Account:
        """Open an account for a dataset; its terms, but for the budget, never change.

        Raises
        ------
        UsageError
            if the name is taken.
        """
        check_name("dataset", name)
        account = Account.opened(terms)
        with self._writing() as journal:
            # A dataset whose events were removed must not begin with its whole budget again.
            journal.check_complete()
            if name in journal.datasets():
                raise UsageError(f"dataset {name!r} is in the ledger already", remedy="choose another name")
            self._book(journal, Kind.DATASET_CREATED, name, account, who)
        return account

    def dataset(
        self,
        name: str,
        *,
        part: str | None = None,
        to: str | None = None,
        who: str | None = None,
        fence: Fence | None = None,
    ) -> DatasetBudget:
        """The budget of a dataset, which every releasing call takes as ``budget=``.

        Parameters
        ----------
        name : str
            The dataset's name in this ledger.
        part : str, optional
            The declared part of the data that the releases read; default: all of it.
        to, who : str, optional
            Who receives the releases, and who makes them (default: the user of this process).
        fence : callable, optional
            Called with the connection of the transaction of each new debit; raises to refuse it.

        Raises
        ------
        UsageError
            if there is no such dataset or part.

        Examples
        --------
        >>> import tempfile
        >>> import hushsum as hs
        >>> tally = hs.race(hs.EuclideanKernel(dim=1, bandwidth=1.0), rows=10).add([[1.0]] * 100)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = Ledger.create(folder + "/ledger.db", state=folder)
        ...     _ = ledger.create_dataset("town", DatasetTerms.of(epsilon=1.0))
        ...     budget = ledger.dataset("town")
        ...     f = tally.release(epsilon=0.25, budget=budget, idempotency_key="spring")
        ...     budget.remaining.in_words()
        'ε 0.75'
        """
        budget = DatasetBudget(self, name, part=part, to=to, who=who, fence=fence)
        # Refuses an unknown dataset or part here rather than at the first release.
        _ = budget.remaining
        return budget

    def void(self, key: str, *, who: str | None = None) -> Entry:
        """Give back the budget of a debit that was never drawn.

        Raises
        ------
        UsageError
            if there is no such debit, or noise may exist for it.
        """
        with self._writing() as journal:
            entry = journal.entry(key)
            if entry is None:
                raise UsageError(f"no release has the key {key!r}", remedy="see hushsum ledger history")
            if entry.step is not Kind.DEBITED:
                raise UsageError(
                    "only a debit that was never drawn can be voided",
                    got=f"the step {str(entry.step)!r}",
                    remedy="what may have been seen is spent",
                )
            if journal.restored_since(entry.sequence):
                raise UsageError(
                    "a debit older than a restored backup may have been drawn in what was lost",
                    remedy="it stays spent",
                )
            after = journal.account(entry.dataset).voided(entry.charge, part=entry.part)
            self._book(journal, Kind.VOIDED, entry.dataset, after, who, key=key)
        return entry

    def change_budget(self, dataset: str, budget: Charge, *, reason: str, who: str | None = None) -> Account:
        """Set another total, recorded with its reason. A total below what was spent stops all releases."""
        with self._writing() as journal:
            after = journal.account(dataset).with_budget(budget)
            self._book(journal, Kind.BUDGET_CHANGED, dataset, after, who, reason=reason_of(reason))
        return after

    def retire(self, dataset: str, *, reason: str, who: str | None = None) -> Account:
        """Close a dataset permanently; its history stays."""
        with self._writing() as journal:
            after = journal.account(dataset).in_state(RETIRED)
            self._book(journal, Kind.RETIRED, dataset, after, who, reason=reason_of(reason))
        return after

    def write_off(self, dataset: str, charge: Charge, *, reason: str, who: str | None = None) -> Account:
        """Charge what was spent outside this ledger, or lost from it, and open a frozen dataset again."""
        if charge != charge.at_least(Charge()):
            remedy = "what was spent is not given back"
            raise ClaimError("a write-off must be at least 0", got="less", remedy=remedy)
        with self._writing() as journal:
            after = journal.account(dataset).written_off(charge)
            why = reason_of(reason)
            self._book(journal, Kind.WRITTEN_OFF, dataset, after, who, reason=why, charge=charge.as_json())
        return after

    def accept_restore(self, *, reason: str, who: str | None = None) -> list[str]:
        """Continue with a ledger that may not be the newest copy, as :meth:`rollback_problem` reports.

        Every dataset is frozen: what was spent in the lost events is unknown. ``write_off`` charges it and
        opens the dataset. Debits that were not staged stay spent, and can be neither drawn nor voided. It is
        needed once, on any machine that uses the ledger. The guard gets a new id: if it was replaced by
        another one, the old one is of no use from then on, and should be deleted.

        Returns the names of the frozen datasets.
        """
        self._guard.prepare()
        with self._database.writing() as connection:
            journal = self._opened(connection, lock=True)
            journal.check_complete()
            with suppress(FileRefused):  # a damaged guard is accepted too
                if rollback_refusal(journal, self._guard.read()) is None:
                    raise UsageError(
                        "the ledger has all that its rollback guard names",
                        remedy="there is nothing to accept",
                    )
            known = [mark.last for mark in self._guard.readable() if mark.last.ledger == self.id]
            lost = max(known, key=lambda each: each.sequence).as_json() if known else None
            body = {"who": person(who), "reason": reason_of(reason), "lost": lost, "guard": new_guard_id()}
            journal.append(Kind.RESTORE_ACCEPTED, body=body)
            accounts = {name: journal.account(name) for name in journal.datasets()}
            frozen = [name for name, account in accounts.items() if account.state != RETIRED]
            for name in frozen:
                self._book(journal, Kind.FROZEN, name, accounts[name].in_state(FROZEN), who)
            mark = watermark_of(journal)
        self._guard.reset(mark)
        return frozen

    def move_guard(self, to: str | os.PathLike[str], *, reason: str, who: str | None = None) -> None:
        """Move the rollback guard to a file, or to a PostgreSQL database, that several machines can share.

        Whoever uses the ledger from then on gives the new place as ``guard``, or names it in
        ``HUSHSUM_GUARD``; the old place is of no use any more.

        Raises
        ------
        FileRefused
            if the ledger may not be the newest copy.
        """
        moved = LedgerGuard(self.id, self._place, self._state, to)
        moved.prepare()
        with self._writing() as journal:
            body = {"who": person(who), "reason": reason_of(reason), "guard": new_guard_id()}
            journal.append(Kind.GUARD_MOVED, body=body)
            mark = watermark_of(journal)
            # Before the commit, and the old one first: after a crash there may be no guard, but never two.
            self._guard.shared.reset(replace(mark, guard=None))
            moved.reset(mark)
            self._guard = moved

    def _book(
        self,
        journal: Journal,
        kind: Kind,
        dataset: str,
        account: Account,
        who: str | None,
        key: str = "",
        **extra: object,
    ) -> None:
        body = {"who": person(who), "account": account.as_json(), **extra}
        journal.append(kind, dataset=dataset, key=key, body=body)

    @contextmanager
    def _writing(self) -> Iterator[Journal]:
        """Append in one transaction, then advance the rollback guard; both or, after a crash, only the first.

        The guard is advanced also where nothing was appended: whoever is given what an earlier attempt has
        staged must not rely on a guard that this attempt did not live to write.
        """
        self._guard.prepare()
        with self._database.writing() as connection:
            journal = self._opened(connection, lock=True)
            problem = rollback_refusal(journal, self._guard.read())
            if problem is not None:
                raise problem
            yield journal
            mark = watermark_of(journal)
        if self._guard.advance(mark):
            known = self._guard.read()
            with self._reading() as journal:
                # Others were recorded after this event: were they, or was the ledger put back to before it?
                if not contains_event(journal, mark.last) or rollback_refusal(journal, known) is not None:
                    raise _put_back()


def _refuse_lost(guard: Path | None) -> None:
    """Refuse to make a ledger where the guard of another one is, which had more than its creation."""
    mark = None if guard is None else WatermarkGuard.in_file(guard).known()
    if mark is None or mark.last.sequence <= 1:
        return
    raise FileRefused(
        (
            "there is no ledger here, but the rollback guard of one, ",
            FilePath(str(guard), quoted=True),
            ": its database was lost, and a new one would have the whole budget again",
        ),
        remedy="put the newest copy back, or remove the guard if everything that was released is given up",
    )


_SHOWN = (Kind.BUDGET_CHANGED, Kind.RETIRED, Kind.RESTORE_ACCEPTED, Kind.FROZEN, Kind.WRITTEN_OFF)


@dataclass(frozen=True, slots=True)
class DisclosureReport:
    """Everything a reader outside may know about one dataset's releases; nothing in it depends on records."""

    dataset: str
    account: Account
    entries: tuple[Entry, ...]
    incidents: tuple[Event, ...]
    receipt: Receipt

    @classmethod
    def of(cls, dataset: str, account: Account, events: list[Event], receipt: Receipt) -> DisclosureReport:
        """The report that the events make; those of other datasets are left out."""
        own = [each for each in events if each.dataset in ("", dataset)]
        shown = tuple(each for each in own if each.kind in _SHOWN)
        return cls(dataset, account, tuple(entries_of(own)), shown, receipt)

    def as_json(self) -> dict[str, Any]:
        """The report for a machine."""
        return {
            "dataset": self.dataset,
            "promise": self.promise(),
            "terms": self.account.terms.as_json(),
            "state": self.account.state,
            "spent": self.account.spent.as_json(),
            "remaining": self.account.remaining.as_json(),
            "releases": [each.as_json() for each in self.entries],
            "incidents": [
                {"at": each.at, "kind": str(each.kind), "reason": each.body.get("reason")}
                for each in self.incidents
            ],
            "receipt": self.receipt.as_json(),
        }

    def promise(self) -> str:
        """The promise of all releases together, in one sentence."""
        account, terms = self.account, self.account.terms
        who = f"one {unit_in_words(terms.unit, 1)}"
        if terms.unit == PERSON:
            who = "one person, with all records of theirs,"
        what = (
            "is in the data or is not" if terms.relation is Relation.ADD_REMOVE else "is this one or another"
        )
        spent = account.spent
        epsilon = account.epsilon_at(spent)
        if epsilon is None:
            return (
                f"All releases together are {float(spent.rho):g}-zero-concentrated differentially private: "
                f"they hide whether {who} {what}{_plainly(rho=spent.rho)}"
            )
        delta = terms.report_delta if terms.accounting is Accounting.ZCDP else spent.delta
        slack = f", except with probability {float(delta):g}" if delta else ""
        return (
            f"Whatever anyone knows or computes, no outcome of all releases together is more than "
            f"e^{epsilon:g} times as likely or unlikely because {who} {what}{slack}"
            f"{_plainly(epsilon=epsilon, delta=delta)}"
        )

    def as_markdown(self) -> str:
        """The report for people."""
        account, terms = self.account, self.account.terms
        lines = [
            f"# What was released from {_plain(self.dataset)}",
            "",
            self.promise(),
            "",
            "| | |",
            "|---|---|",
            f"| total budget | {terms.budget.in_words()} |",
            f"| spent | {account.spent.in_words()} |",
            f"| left | {account.remaining.in_words()} |",
            f"| accounting | {terms.accounting} |",
            f"| unit | {terms.unit} |",
            f"| relation | {terms.relation} |",
            f"| state | {account.state} |",
            "",
            "## Releases",
            "",
        ]
        lines += [line for each in self.entries for line in _release(each)] or ["None.", ""]
        if self.incidents:
            lines += ["## Changes of the ledger", ""]
            for each in self.incidents:
                reason = each.body.get("reason")
                lines.append(f"- {each.at}: {each.kind}" + (f" ({_plain(reason)})" if reason else ""))
            lines.append("")
        receipt = self.receipt
        lines += [
            "## Proof",
            "",
            f"Ledger {receipt.ledger}, event {receipt.sequence}, SHA-256 {receipt.hash}. With this line "
            "`hushsum ledger verify` shows whether the ledger was changed later.",
            "",
        ]
        return "\n".join(lines)


# The facts of a release that a report contains, where the ledger knows them.
_DESCRIBED = ("model", "method", "kernel", "columns", "bounds")


_UNKNOWN_ERROR = "not recorded; `hushsum show` of the file states what is known of it"


def _plainly(
    *, epsilon: float | None = None, delta: Fraction | None = None, rho: Fraction | None = None
) -> str:
    """The end of the sentence; nothing is spent before the first release."""
    if not epsilon and not rho:
        return "."
    return in_plain_words(Promise.of(epsilon=epsilon, delta=delta or None, rho=rho))


def _release(entry: Entry) -> list[str]:
    name = entry.subject.get("output", entry.key)
    facts = [f"- when: {entry.at}", f"- by: {_plain(entry.who)}", f"- to: {_plain(entry.to or 'not stated')}"]
    if entry.part is not None:
        facts.append(f"- part of the data: {_plain(entry.part)}")
    state = {
        Kind.PUBLISHED: "published",
        Kind.VOIDED: "voided before anything was drawn; its budget was given back",
    }.get(entry.step, f"not published; it stopped at the step {str(entry.step)!r} and stays spent")
    facts += [
        f"- {fact}: {_plain(str(entry.subject[fact]))}" for fact in _DESCRIBED if entry.subject.get(fact)
    ]
    facts.append(f"- error: {_plain(str(entry.subject.get('error') or _UNKNOWN_ERROR))}")
    facts.append(f"- mechanism: {entry.claim.mechanism}, {entry.claim.arithmetic}")
    facts += [f"- state: {state}", f"- charged: {entry.charge.in_words()}"]
    if entry.sha256 is not None:
        facts.append(f"- SHA-256 of the file: `{entry.sha256}`")
    return [f"### {_plain(str(name))}", "", entry.claim.sentence(), "", *facts, ""]


def _plain(text: str) -> str:
    """Escape a text that a person typed, so that the text cannot become markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in text).replace("\n", " ")
