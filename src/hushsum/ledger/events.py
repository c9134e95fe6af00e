"""Events of a ledger: the chain of hashes that binds each to all before it, receipts of the chain's head, and
the entries that the events of one release make.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hushsum.errors import AlreadyPublished, FileRefused, UsageError
from hushsum.files.container import canonical_json
from hushsum.ledger.dataset_terms import Charge
from hushsum.privacy.claim import Claim

GENESIS = "0" * 64
"""What the first event has in the place of its predecessor's hash."""


class Kind(StrEnum):
    """What may happen in a ledger."""

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
"""These change a dataset's account, and carry it as it is after them."""

GUARD_KINDS = (Kind.LEDGER_CREATED, Kind.GUARD_MOVED, Kind.RESTORE_ACCEPTED)
"""These give the ledger's rollback guard an id, and carry it."""

STEPS = (Kind.DEBITED, Kind.DRAWN, Kind.STAGED, Kind.PUBLISHED)
"""The durable steps of a release, in order."""


@dataclass(frozen=True, slots=True)
class Event:
    """One row of the ledger. ``dataset`` and ``key`` are empty where an event concerns neither."""

    sequence: int
    at: str
    kind: Kind
    dataset: str
    key: str
    body: dict[str, Any]
    previous: str
    hash: str

    @classmethod
    def after(
        cls,
        previous: str,
        *,
        ledger: str,
        sequence: int,
        at: str,
        kind: Kind,
        dataset: str,
        key: str,
        body: dict[str, Any],
    ) -> Event:
        """The event that follows the one with hash ``previous``."""
        digest = event_hash(ledger, sequence, at, kind, dataset, key, body, previous)
        return cls(sequence, at, kind, dataset, key, body, previous, digest)

    def holds(self, ledger: str) -> bool:
        """Whether the event's hash is that of its content."""
        return self.hash == event_hash(
            ledger,
            self.sequence,
            self.at,
            self.kind,
            self.dataset,
            self.key,
            self.body,
            self.previous,
        )

    def as_json(self) -> dict[str, Any]:
        """The event for a machine; with the ledger's id all that its hash is made of."""
        return {
            "sequence": self.sequence,
            "at": self.at,
            "kind": str(self.kind),
            "dataset": self.dataset,
            "key": self.key,
            "body": self.body,
            "previous": self.previous,
            "hash": self.hash,
        }


def event_hash(
    ledger: str,
    sequence: int,
    at: str,
    kind: str,
    dataset: str,
    key: str,
    body: dict[str, Any],
    previous: str,
) -> str:
    """SHA-256 of the canonical JSON of everything an event says, its ledger and its predecessor's hash."""
    return hashlib.sha256(
        canonical_json(
            {
                "ledger": ledger,
                "sequence": sequence,
                "at": at,
                "kind": str(kind),
                "dataset": dataset,
                "key": key,
                "body": body,
                "previous": previous,
            }
        )
    ).hexdigest()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The head of a ledger's chain at some moment: it fixes every event up to ``sequence``.

    Kept elsewhere, it proves later that the ledger still contains what it contained.
    """

    ledger: str
    sequence: int
    hash: str

    def as_json(self) -> dict[str, Any]:
        """The receipt for a file."""
        return {"ledger": self.ledger, "sequence": self.sequence, "hash": self.hash}

    @classmethod
    def from_text(cls, text: str) -> Receipt:
        """Read a receipt.

        Raises
        ------
        FileRefused
            if the text is none.
        """
        try:
            data = json.loads(text)
            receipt = cls(data["ledger"], data["sequence"], data["hash"])
            if type(receipt.sequence) is not int or not all(
                isinstance(each, str) for each in (receipt.ledger, receipt.hash)
            ):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise FileRefused(
                rule="this is not a receipt", remedy="give a file written by: hushsum ledger receipt"
            ) from None
        return receipt


_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Entry:
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
    sha256: str | None
    size: int | None

    @classmethod
    def of(cls, events: Iterable[Event]) -> Entry | None:
        """The entry that the events of one key make; None if it was never debited."""
        entry: Entry | None = None
        for event in events:
            entry = cls._begun(event) if entry is None else entry.moved(event)
        return entry

    @classmethod
    def _begun(cls, event: Event) -> Entry:
        if event.kind is not Kind.DEBITED:
            raise FileRefused(
                rule=f"event {event.sequence} of the ledger belongs to a debit that was changed or removed",
                remedy="see which with: hushsum ledger verify",
            )
        body = event.body
        return cls(
            key=event.key,
            dataset=event.dataset,
            sequence=event.sequence,
            at=event.at,
            who=body["who"],
            to=body["to"],
            part=body["part"],
            subject=body["subject"],
            claim=Claim.from_json(body["claim"]),
            charge=Charge.from_json(body["charge"]),
            step=Kind.DEBITED,
            sha256=None,
            size=None,
        )

    def moved(self, event: Event) -> Entry:
        """The entry after a further event of its key."""
        staged = event.kind is Kind.STAGED
        return Entry(
            self.key,
            self.dataset,
            self.sequence,
            self.at,
            self.who,
            self.to,
            self.part,
            self.subject,
            self.claim,
            self.charge,
            event.kind,
            event.body["sha256"] if staged else self.sha256,
            event.body["size"] if staged else self.size,
        )

    def refuse_again(self) -> None:
        """Raise AlreadyPublished if the release has reached its reader."""
        if self.step is Kind.PUBLISHED and self.sha256 is not None:
            raise AlreadyPublished(
                rule=(
                    f"the release {self.key!r} was published already, and its bytes are not kept by "
                    "the ledger"
                ),
                remedy=(f"find the file with SHA-256 {self.sha256}, or give another key, which spends again"),
                sha256=self.sha256,
            )

    def as_json(self) -> dict[str, Any]:
        """The entry for a machine."""
        return {
            "idempotency_key": self.key,
            "dataset": self.dataset,
            "sequence": self.sequence,
            "at": self.at,
            "who": self.who,
            "to": self.to,
            "part": self.part,
            "subject": self.subject,
            "claim": self.claim.in_numbers(),
            "charge": self.charge.as_json(),
            "step": str(self.step),
            "sha256": self.sha256,
            "size": self.size,
        }


def entries_of(events: Iterable[Event]) -> list[Entry]:
    """All releases among the events, in the order of their debits."""
    by_key: dict[str, list[Event]] = {}
    for event in events:
        if event.key:
            by_key.setdefault(event.key, []).append(event)
    return [entry for each in by_key.values() if (entry := Entry.of(each)) is not None]


def check_same(
    entry: Entry, dataset: str, claim: Claim, subject: dict[str, object], part: str | None
) -> None:
    """Raise unless a key is used again for the very same release, which was neither voided nor published."""
    requested = canonical_json([dataset, claim.as_json(), subject, part])
    known = canonical_json([entry.dataset, entry.claim.as_json(), entry.subject, entry.part])
    if requested != known:
        raise UsageError(
            rule=(
                f"the idempotency key {entry.key!r} belongs to another release of dataset {entry.dataset!r}"
            ),
            remedy="give another key, which spends again",
        )
    if entry.step is Kind.VOIDED:
        raise UsageError(
            rule=f"the debit {entry.key!r} was voided", remedy="release with another idempotency key"
        )
    entry.refuse_again()


def check_name(what: str, name: str) -> None:
    """Raise unless a name can stand in a table and in a message."""
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise UsageError(
            rule=f"{what} must be a name of 1 to {_LONGEST} printable characters", remedy="give such a one"
        )


def new_guard_id() -> str:
    """A random id of a rollback guard."""
    return secrets.token_hex(16)


def reason_of(text: str) -> str:
    """The reason, which must be given."""
    if not text.strip():
        raise UsageError(rule="a reason must be given, for later readers of the ledger", remedy="got none")
    return text


def person(who: str | None) -> str:
    """Who acts: as given, or the user of this process."""
    if who is not None:
        return who
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"
