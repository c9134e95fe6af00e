"""A release of files of records through a ledger, delivered to a file or stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from hushsum.errors import AlreadyPublished
from hushsum.files.durable_files import atomic_file
from hushsum.jobs.idempotency_keys import release_key
from hushsum.privacy.claim import Claim
from hushsum.privacy.spending import Booking
from hushsum.releases.base import Released
from hushsum.releases.load import load_released
from hushsum.releases.prepared_release import deliver_function

if TYPE_CHECKING:
    from hushsum.ledger import Account, DatasetBudget
    from hushsum.ledger.dataset_budget import Fence

R = TypeVar("R", bound=Released)


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """Where a command records its release: a ledger's path or URL, a dataset in it, and details of the entry.

    ``idempotency_key`` is None for one that follows from the command: the bytes of the tally, the claim, the
    options and the place of the output. ``who`` is None for the user of the process. ``guard`` is where
    the rollback guard is, and ``fence`` may refuse the debit; see ``Ledger``.
    """

    ledger: str
    dataset: str
    idempotency_key: str | None = None
    to: str | None = None
    part: str | None = None
    who: str | None = None
    guard: str | None = None
    fence: Fence | None = None

    def budget(self) -> DatasetBudget:
        """The budget of the dataset.

        Raises
        ------
        UsageError
            if there is no such ledger, dataset or part.
        """
        from hushsum.ledger import Ledger

        ledger = Ledger(self.ledger, guard=self.guard)
        return ledger.dataset(self.dataset, part=self.part, to=self.to, who=self.who, fence=self.fence)


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """A release as the ledger has it. ``again`` if it had been published before and was only found."""

    ledger: str
    dataset: str
    idempotency_key: str
    account: Account
    again: bool

    def as_json(self) -> dict[str, Any]:
        """The record as JSON."""
        return {
            "ledger": self.ledger,
            "dataset": self.dataset,
            "idempotency_key": self.idempotency_key,
            "spent": self.account.spent.as_json(),
            "remaining": self.account.remaining.as_json(),
            "again": self.again,
        }


Approve = Callable[[Claim, "Account | None"], bool]


@dataclass(frozen=True, slots=True)
class Delivered(Generic[R]):
    """A release whose bytes have reached their reader, and its record in the ledger."""

    function: R
    size: int
    record: LedgerRecord


def release_with_ledger(
    options: LedgerOptions,
    claim: Claim,
    *,
    sources: Sequence[str],
    output: str | IO[bytes],
    subject: dict[str, object],
    settings: list[object],
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
        if the remaining budget is too small; no file is written.
    AlreadyPublished
        if the release was published, and its file is gone or was changed.
    """
    budget = options.budget()
    place = str(Path(output).absolute()) if isinstance(output, str) else None
    key = options.idempotency_key or release_key(
        sources, budget.ledger_id, options.dataset, options.part, claim.as_json(), subject, settings, place
    )

    def record(*, again: bool) -> LedgerRecord:
        return LedgerRecord(budget.ledger_id, options.dataset, key, budget.account, again)

    try:
        if approve is not None and not approve(claim, _account_after(budget, claim, key)):
            return None
        released = deliver_function(
            Booking(budget, key), claim, subject, make, deliver=lambda payload: _deliver(payload, output)
        )
    except AlreadyPublished as published:
        if place is None or not _unchanged(Path(place), published.sha256):
            raise
        found: Any = load_released(place)
        return Delivered(found, Path(place).stat().st_size, record(again=True))
    return Delivered(released.function, len(released.payload), record(again=False))


def _account_after(budget: DatasetBudget, claim: Claim, key: str) -> Account:
    """The account after this release, which may be debited already: what is shown before a confirmation."""
    entry = budget.find(key)
    if entry is not None:
        entry.refuse_again()
        return budget.account
    return budget.price(claim)[1]


def _unchanged(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _deliver(payload: bytes, output: str | IO[bytes]) -> None:
    if isinstance(output, str):
        with atomic_file(Path(output)) as stream:
            stream.write(payload)
        return
    output.write(payload)
    output.flush()
