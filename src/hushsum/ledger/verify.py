"""Recompute the whole ledger, and name the first row that does not follow from those before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from hushsum.errors import FileRefused, HushsumError
from hushsum.files.container import canonical_json
from hushsum.ledger.account import FROZEN, OPEN, RETIRED, Account, charge_for
from hushsum.ledger.database import file_damage
from hushsum.ledger.dataset_budget import staged_bytes
from hushsum.ledger.dataset_terms import Charge, DatasetTerms
from hushsum.ledger.events import ACCOUNT_KINDS, GENESIS, STEPS, Entry, Event, Kind, Receipt
from hushsum.ledger.schema import events, head
from hushsum.ledger.transaction import Journal, parsed
from hushsum.privacy.claim import Claim


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found: how many events hold, and the first problem, with its row, if there is one."""

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
        return {
            "ledger": self.ledger,
            "holds": self.holds,
            "events": self.events,
            "problem": self.problem,
            "sequence": self.sequence,
        }


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
        sequence = found.compare(receipts)
        _check_staged(Journal(connection, Receipt(ledger, row.sequence, row.hash)), found)
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
        if canonical_json(event.body).decode() != row.body or not event.holds(self.ledger):
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

    def compare(self, receipts: Sequence[Receipt]) -> int | None:
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
        return None

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
        moved = Entry.of([event]) if entry is None else entry.moved(event)
        assert moved is not None
        self.entries[event.key] = moved

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
            state = RETIRED if account.state == RETIRED else OPEN
            return account.charged(Charge.from_json(body["charge"]).at_least_zero()).in_state(state)
        if event.kind is Kind.BUDGET_CHANGED:
            budget = Charge.from_json(body["account"]["terms"]["budget"])
            return Account(account.terms.with_budget(budget), account.whole, account.parts, account.state)
        return account.in_state(FROZEN if event.kind is Kind.FROZEN else RETIRED)


def _check_staged(journal: Journal, found: _Recomputed) -> None:
    for entry in found.entries.values():
        if entry.step is Kind.STAGED:
            staged_bytes(journal, entry)
