"""Events of a ledger: the chain of hashes that binds each to all before it, and its verification; receipts of
the chain's head; the entries that the events of one release make; and the only way to append.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from hushsum.errors import AlreadyPublished, FileRefused, HushsumError, UsageError
from hushsum.files import canonical_json
from hushsum.privacy import Claim

from ._account import FROZEN, RETIRED, Account, Charge, DatasetTerms, Stored, charge_for
from ._database import events, file_damage, head, staged

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


def check_same(
    entry: Entry, dataset: str, claim: Claim, subject: dict[str, object], part: str | None
) -> None:
    """Raise unless a key is used again for the very same release, which was neither voided nor published."""
    requested = canonical_json([dataset, claim.as_json(), subject, part])
    known = canonical_json([entry.dataset, entry.claim.as_json(), entry.subject, entry.part])
    if requested != known:
        raise UsageError(
            f"the idempotency key {entry.key!r} belongs to another release of dataset {entry.dataset!r}",
            remedy="give another key, which spends again",
        )
    entry.refuse_again()


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
