"""Release a validation set under a secret seed, for a curator that must see neither points nor seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hushsum.errors import UsageError
from hushsum.files.durable_files import atomic_file
from hushsum.jobs.deliver_release import LedgerOptions
from hushsum.jobs.idempotency_keys import release_key
from hushsum.jobs.output_files import check_output
from hushsum.jobs.summarize_records import read_columns
from hushsum.jobs.summarize_terms import RunChoice, at_delta
from hushsum.privacy.claim import Claim
from hushsum.privacy.spending import Booking, spend
from hushsum.records.cell_format import PLAIN, CellFormat
from hushsum.summarize.hash_secret import HashSecret
from hushsum.summarize.hashed_target import HashedTarget
from hushsum.summarize.result import target_claim
from hushsum.summarize.target import release_target


@dataclass(frozen=True, slots=True)
class TargetChoice:
    """The consumer's file, the secret it shares with the owners, and the run that the release is for. The
    ``cells`` of the file are read as declared.
    """

    file: str
    secret: str
    output: str
    run: RunChoice
    columns: tuple[str, ...] | None = None
    ledger: LedgerOptions | None = None
    debit_rho: bool = False
    cells: CellFormat = PLAIN


@dataclass(frozen=True, slots=True)
class TargetReleased:
    """A release that was written; ``check`` is that of the secret."""

    output: str
    columns: tuple[str, ...]
    check: str
    claim: Claim
    idempotency_key: str | None

    def as_json(self) -> dict[str, Any]:
        """The result for a machine."""
        return {
            "output": self.output,
            "columns": list(self.columns),
            "check": self.check,
            "claim": self.claim.in_numbers(),
            "idempotency_key": self.idempotency_key,
        }


def release_validation(choice: TargetChoice) -> TargetReleased:
    """Write the noisy feature sums of a validation set under the owners' secret, once.

    With a ledger it is debited first, and the same command delivers the same bytes again after a crash.

    Raises
    ------
    UsageError
        if the output exists: noise drawn a second time would be averaged with the first.
    """
    secret = HashSecret.load(choice.secret)
    output = check_output(choice.output, inputs=[choice.file, choice.secret])
    if output.exists():
        raise UsageError(
            rule=f"{choice.output!r} exists, and a validation set is released once for a run",
            remedy="give another output",
        )
    records = read_columns(choice.file, choice.columns, choice.cells)
    names = tuple(records.blocks)
    public = choice.run.compared(records.width(names))
    rho = choice.run.validation_rho

    def made() -> bytes:
        target = release_target(secret.features(public), records.choose(names), rho)
        return HashedTarget(public, names, secret.check, target).to_bytes()

    claim = at_delta(target_claim(rho), None if choice.debit_rho else choice.run.delta)
    subject = {"kind": "validation set of a summarization", "check": secret.check}
    booking = None
    if choice.ledger is not None:
        key = choice.ledger.idempotency_key or release_key(
            [choice.file, choice.secret],
            choice.ledger.dataset,
            claim.as_json(),
            subject,
            choice.cells,
            str(output.absolute()),
        )
        booking = Booking(choice.ledger.budget(), key)

    def deliver(payload: bytes) -> None:
        with atomic_file(output) as stream:
            stream.write(payload)

    spend(booking, claim, subject, made, deliver=deliver)
    key_of_release = None if booking is None else booking.idempotency_key
    return TargetReleased(choice.output, names, secret.check, claim, key_of_release)
