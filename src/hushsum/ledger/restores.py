"""Whether a ledger is the newest copy, as far as its rollback guard shows, and how a person accepts it."""

from __future__ import annotations

from collections.abc import Sequence

from hushsum.errors import FileRefused
from hushsum.ledger.account import FROZEN, RETIRED
from hushsum.ledger.chain import Kind
from hushsum.ledger.journal import Journal
from hushsum.ledger.receipt import Receipt
from hushsum.ledger.rollback_guard import Watermark

_REMEDY = (
    "put the newest copy back, or accept this one with: hushsum ledger accept-restore, "
    "which freezes its datasets"
)


def watermark(journal: Journal) -> Watermark:
    """The watermark of a journal's head."""
    return Watermark(journal.receipt, journal.last_restore())


def refusal(journal: Journal, marks: Sequence[Watermark]) -> str | None:
    """Why nothing may be debited, and what to do; None if the ledger has all that the guard knows.

    A new ledger, with no event but its creation, needs no guard: there is nothing that it could have lost.
    """
    if not marks:
        if journal.receipt.sequence <= 1:
            return None
        return (
            "the ledger has a history, and no rollback guard shows that this is its newest copy: it may be a "
            f"restored backup, or the guard was lost; {_REMEDY}; or, with a receipt just taken where "
            "the ledger is in use: hushsum ledger add-guard"
        )
    return next((text for mark in marks if (text := _behind(journal, mark)) is not None), None)


def contains(journal: Journal, receipt: Receipt) -> bool:
    """Whether the ledger contains the event that a receipt names."""
    if receipt.ledger != journal.receipt.ledger or not 1 <= receipt.sequence <= journal.receipt.sequence:
        return False
    if receipt == journal.receipt:
        return True
    try:
        return journal.event(receipt.sequence).hash == receipt.hash
    except FileRefused:
        return False


def valid(journal: Journal, marks: Sequence[Watermark]) -> list[Receipt]:
    """The last events of those watermarks that no accepted restore has replaced."""
    return [mark.last for mark in marks if not _replaced(journal, mark)]


def accept(journal: Journal, marks: Sequence[Watermark], *, who: str, reason: str) -> list[str]:
    """Record that events may be lost, and freeze every dataset that is not retired."""
    known = [mark.last for mark in marks if mark.last.ledger == journal.receipt.ledger]
    lost = max(known, key=lambda each: each.sequence).as_json() if known else None
    journal.append(Kind.RESTORE_ACCEPTED, body={"who": who, "reason": reason, "lost": lost})
    frozen = []
    for name in journal.datasets():
        account = journal.account(name)
        if account.state != RETIRED:
            after = account.in_state(FROZEN)
            journal.append(Kind.FROZEN, dataset=name, body={"who": who, "account": after.as_json()})
            frozen.append(name)
    return frozen


def _behind(journal: Journal, mark: Watermark) -> str | None:
    if mark.last.ledger != journal.receipt.ledger:
        what = "is another one than its rollback guard names"
    elif contains(journal, mark.last) or _replaced(journal, mark):
        return None
    elif journal.receipt.sequence < mark.last.sequence:
        ends, named = journal.receipt.sequence, mark.last.sequence
        what = f"ends at event {ends}, and its rollback guard names event {named}"
    else:
        what = f"has another event {mark.last.sequence} than its rollback guard names"
    return (
        f"the ledger {what}: it was restored from a backup or changed, and may not have all that was spent; "
        f"{_REMEDY}"
    )


def _replaced(journal: Journal, mark: Watermark) -> bool:
    """Whether a restore was accepted after this watermark was written, here or on another machine.

    The watermark names the last accepted restore of its own history. If the ledger has that one, and a later
    one, then the history that the watermark belongs to was given up when the later restore was accepted,
    and every dataset was frozen then. A ledger put back to before the known restore does not have it.
    """
    if mark.last.ledger != journal.receipt.ledger:
        return False
    latest = journal.last_restore()
    if latest is None:
        return False
    if mark.restore is None:
        return True
    return contains(journal, mark.restore) and latest.sequence > mark.restore.sequence
