"""The debit of one release: draw, stage, publish, each durable, so that a retry after a crash continues."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import sqlalchemy as sa

from hushsum.errors import FileRefused, UsageError
from hushsum.ledger.entries import Entry
from hushsum.ledger.hash_chain import Kind
from hushsum.ledger.schema import staged
from hushsum.ledger.transaction import Journal

PIECE = 1 << 24
"""Staged bytes are kept in rows of this size, so that no row meets a database's limit."""

Transaction = Callable[[], AbstractContextManager[Journal]]


class LedgerDebit:
    """A debit of a :class:`Ledger`. Each step is one short transaction; no lock is held between them.

    Two processes may hold the debit of one key. Both may draw, but only the first to stage counts: the
    other gets those bytes back from ``stage``, and what it drew itself leaves it nowhere.
    """

    def __init__(self, key: str, reading: Transaction, writing: Transaction) -> None:
        self.key = key
        self._reading = reading
        self._writing = writing

    @property
    def entry(self) -> Entry:
        """The release as the ledger has it now."""
        with self._reading() as journal:
            return self._entry(journal)

    @property
    def staged(self) -> bytes | None:
        """The bytes that wait to be published; None before *staged* and after *published*."""
        with self._reading() as journal:
            entry = self._entry(journal)
            return staged_bytes(journal, entry) if entry.step is Kind.STAGED else None

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
        with self._writing() as journal:
            entry = self._entry(journal)
            if entry.step is Kind.DEBITED or entry.step is Kind.DRAWN:
                self._refuse_lost(journal, entry)
            if entry.step is Kind.DEBITED:
                journal.append(Kind.DRAWN, dataset=entry.dataset, key=self.key)
            elif entry.step is Kind.VOIDED:
                raise _voided(self.key)
            entry.refuse_again()

    def stage(self, payload: bytes) -> bytes:
        """Keep the bytes durably; returns those of the first to stage."""
        with self._writing() as journal:
            entry = self._entry(journal)
            if entry.step is Kind.STAGED:
                return staged_bytes(journal, entry)
            entry.refuse_again()
            if entry.step is not Kind.DRAWN:
                raise UsageError(
                    rule="bytes are staged after they were drawn", got=f"the step {str(entry.step)!r}"
                )
            self._refuse_lost(journal, entry)
            for position, piece in enumerate(_pieces(payload)):
                journal.connection.execute(
                    sa.insert(staged).values(key=self.key, position=position, bytes=piece)
                )
            digest = hashlib.sha256(payload).hexdigest()
            body = {"sha256": digest, "size": len(payload)}
            journal.append(Kind.STAGED, dataset=entry.dataset, key=self.key, body=body)
        return payload

    def publish(self) -> None:
        """Record that the bytes have reached their reader; the ledger then keeps only their SHA-256."""
        with self._writing() as journal:
            entry = self._entry(journal)
            if entry.step is Kind.PUBLISHED:
                return
            if entry.step is not Kind.STAGED:
                raise UsageError(rule="only staged bytes are published", got=f"the step {str(entry.step)!r}")
            journal.append(Kind.PUBLISHED, dataset=entry.dataset, key=self.key)
            journal.connection.execute(sa.delete(staged).where(staged.c.key == self.key))

    def _entry(self, journal: Journal) -> Entry:
        entry = journal.entry(self.key)
        if entry is None:
            raise FileRefused(
                rule=f"the entry {self.key!r} is no longer in the ledger",
                remedy=(
                    "was a backup restored? compare with a receipt: hushsum ledger verify --receipt FILE"
                ),
            )
        return entry

    def _refuse_lost(self, journal: Journal, entry: Entry) -> None:
        if journal.restored_since(entry.sequence):
            raise UsageError(
                rule=(
                    f"the debit {self.key!r} is older than a restored backup that was accepted, and "
                    "may have been released in what was lost"
                ),
                remedy="release with another idempotency key, which spends again",
            )


def staged_bytes(journal: Journal, entry: Entry) -> bytes:
    """The bytes of a staged entry, compared with the hash in the chain.

    Raises
    ------
    FileRefused
        if they are not those.
    """
    query = sa.select(staged.c.bytes).where(staged.c.key == entry.key).order_by(staged.c.position)
    payload = b"".join(bytes(piece) for piece in journal.connection.execute(query).scalars())
    if hashlib.sha256(payload).hexdigest() != entry.sha256:
        raise FileRefused(
            rule=f"the staged bytes of {entry.key!r} are not those that were staged",
            remedy="they must not be published, restore the ledger from a backup",
        )
    return payload


def _voided(key: str) -> UsageError:
    return UsageError(rule=f"the debit {key!r} was voided", remedy="release with another idempotency key")


def _pieces(payload: bytes) -> Iterator[bytes]:
    for start in range(0, len(payload), PIECE):
        yield payload[start : start + PIECE]
