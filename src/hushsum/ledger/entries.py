"""Releases as the ledger has them, one entry for every key, and what a new one must state."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hushsum.errors import AlreadyPublished, UsageError
from hushsum.files.container import canonical_json
from hushsum.ledger.dataset_terms import Charge
from hushsum.ledger.hash_chain import Event, Kind
from hushsum.privacy.claim import Claim

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
