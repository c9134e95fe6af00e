"""What a booking must state before it is written down."""

from __future__ import annotations

import getpass
import os

from hushsum.errors import UsageError
from hushsum.files.container import canonical_json
from hushsum.ledger.chain import Kind
from hushsum.ledger.entries import Entry
from hushsum.privacy.claim import Claim

_LONGEST = 200


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
