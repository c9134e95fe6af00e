"""One transaction's view of the ledger: reading it, and the only way to append to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from hushsum.errors import FileRefused, UsageError
from hushsum.files.container import canonical_json
from hushsum.ledger.account import Account
from hushsum.ledger.events import (
    ACCOUNT_KINDS,
    GENESIS,
    GUARD_KINDS,
    Entry,
    Event,
    Kind,
    Receipt,
    new_guard_id,
)
from hushsum.ledger.schema import events, head


class Journal:
    """Events read and appended within one transaction.

    Whoever appends holds the head row's lock, so sequence numbers have no gaps and every event sees all
    before it. The hash of every event that is relied on is recomputed; the whole chain is checked by
    ``verify``.
    """

    def __init__(self, connection: sa.Connection, receipt: Receipt) -> None:
        self.connection = connection
        self._ledger = receipt.ledger
        self._sequence = receipt.sequence
        self._hash = receipt.hash
        self.appended = False

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
                rule="the ledger's head is not its last event: rows were removed or changed",
                remedy="see which with: hushsum ledger verify",
            )
        return journal

    @property
    def receipt(self) -> Receipt:
        """The head of the chain."""
        return Receipt(self._ledger, self._sequence, self._hash)

    def append(
        self, kind: Kind, *, dataset: str = "", key: str = "", body: dict[str, Any] | None = None
    ) -> Event:
        """Add an event to the chain."""
        event = Event.after(
            self._hash,
            ledger=self._ledger,
            sequence=self._sequence + 1,
            at=datetime.now(UTC).isoformat(timespec="microseconds"),
            kind=kind,
            dataset=dataset,
            key=key,
            body=body or {},
        )
        row = {**event.as_json(), "body": canonical_json(event.body).decode()}
        self.connection.execute(sa.insert(events).values(row))
        self.connection.execute(sa.update(head).values(sequence=event.sequence, hash=event.hash))
        self._sequence, self._hash, self.appended = event.sequence, event.hash, True
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
        query = (
            sa.select(events)
            .where(events.c.dataset == dataset, events.c.kind.in_([str(kind) for kind in ACCOUNT_KINDS]))
            .order_by(events.c.sequence.desc())
            .limit(1)
        )
        row = self.connection.execute(query).one_or_none()
        if row is None:
            known = ", ".join(map(repr, self.datasets())) or "none yet"
            raise UsageError(
                parameter="dataset",
                rule=f"must be one of the ledger's ({known})",
                got=f"{dataset!r}",
                remedy="check the name, or add it with: hushsum ledger init",
            )
        self._check_complete_after(row.sequence)
        return Account.from_json(self._checked(row).body["account"])

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
        return Entry.of(found)

    def last_restore(self) -> Receipt | None:
        """The last event that accepted a restored backup."""
        event = self._last_restore()
        return None if event is None else Receipt(self._ledger, event.sequence, event.hash)

    def restored_since(self, sequence: int) -> bool:
        """Whether a restored backup was accepted after an event."""
        last = self.last_restore()
        return last is not None and last.sequence > sequence

    def restored_at(self) -> str | None:
        """When the last restored backup was accepted."""
        event = self._last_restore()
        return None if event is None else event.at

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
        if self.connection.execute(query).scalar_one() != self._sequence - sequence:
            raise FileRefused(
                rule="events were removed from the ledger, and may have spent budget",
                remedy="see which with: hushsum ledger verify, and restore a backup",
            )

    def _last_restore(self) -> Event | None:
        return self._last(Kind.RESTORE_ACCEPTED)

    def _last(self, kind: Kind) -> Event | None:
        query = (
            sa.select(events).where(events.c.kind == str(kind)).order_by(events.c.sequence.desc()).limit(1)
        )
        row = self.connection.execute(query).one_or_none()
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
        if not event.holds(self._ledger):
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
        rule=f"event {sequence} of the ledger was changed or removed after it was written",
        remedy=("compare with a receipt (hushsum ledger verify --receipt FILE) and restore a backup"),
    )
