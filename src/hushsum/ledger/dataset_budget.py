"""The budget of one dataset in a ledger, and the debit of one release from it.

A debit is drawn, staged and published; each step is durable, so that a retry after a crash continues.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

import sqlalchemy as sa

from hushsum.errors import FileRefused, UsageError
from hushsum.ledger.account import Account, charge_for
from hushsum.ledger.dataset_terms import Charge
from hushsum.ledger.events import Entry, Kind, check_name, check_same, person
from hushsum.ledger.schema import staged
from hushsum.ledger.transaction import Journal
from hushsum.privacy.claim import Claim


class DatasetBudget:
    """The budget of a dataset in a ledger, or of one of its parts; made by :meth:`Ledger.dataset`.

    A :class:`hushsum.privacy.budget.Budget`: give it to a releasing call as ``budget=``.

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
        ledger_id: str,
        dataset: str,
        reading: Transaction,
        writing: Transaction,
        *,
        part: str | None = None,
        to: str | None = None,
        who: str | None = None,
        fence: Fence | None = None,
    ) -> None:
        self.ledger_id = ledger_id
        self.dataset = dataset
        self.part = part
        self._to = to
        self._who = who
        self._fence = fence
        self._reading = reading
        self._writing = writing

    def __repr__(self) -> str:
        part = "" if self.part is None else f", part={self.part!r}"
        return f"<DatasetBudget {self.dataset!r}{part}>"

    @property
    def account(self) -> Account:
        """What was spent on the dataset, what is left, and on which terms."""
        with self._reading() as journal:
            return journal.account(self.dataset)

    @property
    def remaining(self) -> Charge:
        """What releases may still spend: of the dataset, or of its part."""
        return self.account.remaining_in(self.part)

    def find(self, idempotency_key: str) -> Entry | None:
        """The release with this key."""
        with self._reading() as journal:
            return journal.entry(idempotency_key)

    def price(self, claim: Claim, *, called: str | None = None) -> tuple[Charge, Account]:
        """What a claim would cost, and the account after it; nothing is debited.

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
        """What a claim costs, whether or not as much is left.

        Raises
        ------
        ClaimError
            if the claim cannot be debited.
        """
        return charge_for(claim, self.account.terms, part=self.part)

    def debit(self, claim: Claim, *, subject: Mapping[str, object], idempotency_key: str) -> LedgerDebit:
        """Debit a claim, or find the debit of this key; `hushsum.privacy.spending` calls it.

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
        with self._writing() as journal:
            entry = journal.entry(idempotency_key)
            if entry is not None:
                check_same(entry, self.dataset, claim, public, self.part)
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
        return LedgerDebit(idempotency_key, self._reading, self._writing)

    def _charged(self, account: Account, claim: Claim, called: str) -> tuple[Charge, Account]:
        charge = charge_for(claim, account.terms, part=self.part)
        return charge, account.debited(charge, part=self.part, dataset=called)


PIECE = 1 << 24
"""Staged bytes are kept in rows of this size, so that no row meets a database's limit."""

Transaction = Callable[[], AbstractContextManager[Journal]]

Fence = Callable[[sa.Connection], None]
"""Called in the transaction of a new debit, with its connection; raises if this process may not spend any
more, such as a worker whose job was given to another one.
"""


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
        """The bytes that wait to be published; None before *staged* and after *published*.

        The rollback guard has them when this returns: whoever staged them may have been killed before.
        """
        with self._writing() as journal:
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
