"""A ledger that is older than what was seen of it: a restored backup, or a lost tail."""

from __future__ import annotations

from hushsum.errors import FileRefused
from hushsum.ledger.account import FROZEN, RETIRED
from hushsum.ledger.chain import Kind
from hushsum.ledger.journal import Journal
from hushsum.ledger.receipt import Receipt


def seen(journal: Journal, mark: Receipt) -> bool:
    """Whether the ledger contains the event that the mark names."""
    if mark.sequence > journal.receipt.sequence:
        return False
    if mark == journal.receipt:
        return True
    try:
        return journal.event(mark.sequence).hash == mark.hash
    except FileRefused:
        return False


def explain(journal: Journal, mark: Receipt) -> str:
    """Why nothing may be booked, and what to do."""
    have = journal.receipt.sequence
    what = (
        f"ends at event {have}, and this machine has seen event {mark.sequence}"
        if have < mark.sequence
        else f"has another event {mark.sequence} than this machine has seen"
    )
    return (
        f"the ledger {what}: it was restored from a backup or changed, and does not know all that was spent; "
        "put the newest copy back, or go on with: hushsum ledger accept-restore, which freezes its datasets"
    )


def accept(journal: Journal, mark: Receipt, *, who: str, reason: str) -> list[str]:
    """Record that events were lost, and freeze every dataset that is not retired."""
    journal.append(Kind.RESTORE_ACCEPTED, body={"who": who, "reason": reason, "lost": mark.as_json()})
    frozen = []
    for name in journal.datasets():
        account = journal.account(name)
        if account.state != RETIRED:
            after = account.in_state(FROZEN)
            journal.append(Kind.FROZEN, dataset=name, body={"who": who, "account": after.as_json()})
            frozen.append(name)
    return frozen
