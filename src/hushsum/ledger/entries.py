"""Releases as the ledger has them: one entry for every key, folded from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hushsum.errors import AlreadyPublished
from hushsum.ledger.chain import Event, Kind
from hushsum.ledger.charge import Charge
from hushsum.privacy.claim import Claim


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
