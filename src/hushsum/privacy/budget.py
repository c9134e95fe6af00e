"""What a dataset's budget must do for a release; ``hushsum.ledger`` implements it.

A release passes four durable steps: *debited* (the claim is recorded), *drawn* (noise may exist), *staged*
(the bytes are stored by the ledger) and *published* (the bytes have reached their reader). The ledger
survives a crash between any two of them: a retry with the same idempotency key publishes the staged bytes,
and never draws new noise once a byte may have been seen. Nothing is refunded after *drawn*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from hushsum.privacy.claim import Claim


class Debit(Protocol):
    """One debited release on its way through the four steps."""

    @property
    def staged(self) -> bytes | None:
        """The bytes of an earlier attempt with the same key, if it came that far."""

    def draw(self) -> None:
        """Record that noise is about to be drawn; from here on nothing is refunded."""

    def stage(self, payload: bytes) -> bytes:
        """Store the bytes durably, before anyone may see one of them.

        Returns the bytes that count: those of the first to stage, if another process with the same key was
        faster. What the slower one drew must not leave it.
        """

    def publish(self) -> None:
        """Record that the staged bytes have reached their reader."""


@runtime_checkable
class Budget(Protocol):
    """The budget of one dataset, or of one of its parts: ``hs.Ledger("ledger.db").dataset("town")``.

    Each part of it is granted once, however many processes request it at the same time. Only
    `hushsum.privacy.spending` calls ``debit``.
    """

    def cost(self, claim: Claim) -> object:
        """What a claim costs, whether or not as much is left; a model asks before it counts a record.

        Raises
        ------
        ClaimError
            as ``debit`` would.
        """

    def debit(self, claim: Claim, *, subject: Mapping[str, object], idempotency_key: str) -> Debit:
        """Debit a claim, or find the debit of this key.

        ``subject`` describes publicly what is released (basis fingerprint, rows, …). ``idempotency_key``
        names the attempt: the same key never spends twice.

        Raises
        ------
        BudgetExhausted
            if less is left than the claim spends; nothing is debited.
        ClaimError
            if the claim cannot be debited: insecure noise, another unit or relation that does not convert.
        """
