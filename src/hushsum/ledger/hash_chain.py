"""Events, the chain of hashes that binds each to all before it, and receipts of the chain's head."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hushsum.errors import FileRefused
from hushsum.files.container import canonical_json

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
    GUARD_ADDED = "rollback guard added"
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
