"""A release through the book: debited, drawn, staged, delivered, published."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from hushsum.errors import AlreadyPublished
from hushsum.files.atomic import atomic_file
from hushsum.jobs.ledger_keys import release_key
from hushsum.privacy.budget import Budget
from hushsum.privacy.claim import Claim
from hushsum.releases.base import Released
from hushsum.releases.load import load
from hushsum.tally.spend import stage_release

if TYPE_CHECKING:
    from hushsum.ledger import Account, Ledger

R = TypeVar("R", bound=Released)


@dataclass(frozen=True, slots=True)
class Booking:
    """Where a release is booked: a ledger's path or URL, a dataset in it, and what else the entry says.

    ``key`` is None for one that follows from the command: the tally's bytes, the claim, the options and the
    output's place. ``who`` is None for the user of the process. ``guard`` is the file of the rollback guard
    beside the data, where the ledger has none of its own; see ``Ledger.open``.
    """

    ledger: str
    dataset: str
    key: str | None = None
    to: str | None = None
    part: str | None = None
    who: str | None = None
    guard: str | None = None


@dataclass(frozen=True, slots=True)
class Booked:
    """How a release stands in the book. ``again`` if it had been published before and was only found."""

    ledger: str
    dataset: str
    key: str
    account: Account
    again: bool

    def as_json(self) -> dict[str, Any]:
        """The booking for a machine."""
        return {
            "ledger": self.ledger,
            "dataset": self.dataset,
            "key": self.key,
            "spent": self.account.spent.as_json(),
            "remaining": self.account.remaining.as_json(),
            "again": self.again,
        }


def open_budget(booking: Booking) -> Budget:
    """The ledger of a booking, for calls that take a budget."""
    from hushsum.ledger import Ledger

    return Ledger.open(booking.ledger, guard=booking.guard).spending(
        who=booking.who, to=booking.to, part=booking.part
    )


Approve = Callable[[Claim, "Account | None"], bool]


@dataclass(frozen=True, slots=True)
class Delivered(Generic[R]):
    """A release whose bytes have reached their reader, and how it is booked."""

    function: R
    size: int
    booked: Booked


def release_booked(
    booking: Booking,
    claim: Claim,
    *,
    sources: Sequence[str],
    output: str | IO[bytes],
    subject: dict[str, object],
    options: list[object],
    make: Callable[[], R],
    approve: Approve | None,
) -> Delivered[R] | None:
    """Release under a debit; None if ``approve`` says no, and then nothing was spent.

    ``sources`` are the secret files it is made of, whose bytes enter the key.

    Killed anywhere, it resumes when it is called again with the same arguments: a debit is found again,
    staged bytes are delivered again, and a file that was published and is still there is left alone.

    Raises
    ------
    BudgetExhausted
        if the ledger has not enough left; no file is written.
    AlreadyPublished
        if the release was published, and its file is gone or was changed.
    """
    from hushsum.ledger import Ledger

    ledger = Ledger.open(booking.ledger, guard=booking.guard)
    place = str(Path(output).absolute()) if isinstance(output, str) else None
    key = booking.key or release_key(
        sources, ledger.id, booking.dataset, booking.part, claim.as_json(), subject, options, place
    )
    try:
        if approve is not None and not approve(claim, _account_after(ledger, booking, claim, key)):
            return None
        staged = stage_release(
            ledger.spending(who=booking.who, to=booking.to, part=booking.part),
            booking.dataset,
            claim,
            subject=subject,
            key=key,
            make=make,
        )
    except AlreadyPublished as published:
        if place is None or not _unchanged(Path(place), published.sha256):
            raise
        found: Any = load(place)
        return Delivered(found, Path(place).stat().st_size, _booked(ledger, booking, key, again=True))
    _deliver(staged.payload, output)
    staged.debit.publish()
    return Delivered(staged.function, len(staged.payload), _booked(ledger, booking, key, again=False))


def _account_after(ledger: Ledger, booking: Booking, claim: Claim, key: str) -> Account:
    """What a person who is asked should see: the account after this release, which may be debited already."""
    entry = ledger.find(key)
    if entry is not None:
        entry.refuse_again()
        return ledger.account(booking.dataset)
    return ledger.price(booking.dataset, claim, part=booking.part)[1]


def _booked(ledger: Ledger, booking: Booking, key: str, *, again: bool) -> Booked:
    return Booked(ledger.id, booking.dataset, key, ledger.account(booking.dataset), again)


def _unchanged(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _deliver(payload: bytes, output: str | IO[bytes]) -> None:
    if isinstance(output, str):
        with atomic_file(Path(output)) as stream:
            stream.write(payload)
        return
    output.write(payload)
    output.flush()
