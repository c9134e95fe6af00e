"""What a budget book must do for a release; ``hushsum.ledger`` is the one that ships.

A release passes four durable steps: *debited* (the claim is booked), *drawn* (noise may exist), *staged*
(the bytes are kept by the book) and *published* (the bytes have reached their reader). The book survives a
crash between any two of them: a retry with the same key publishes the staged bytes, and never draws new
noise once a byte may have been seen. Nothing is refunded after *drawn*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hushsum.privacy.claim import Claim


class Debit(Protocol):
    """One booked release on its way through the four steps."""

    @property
    def staged(self) -> bytes | None:
        """The bytes of an earlier attempt with the same key, if it came that far."""

    def draw(self) -> None:
        """Book that noise is about to be drawn; from here on nothing is refunded."""

    def stage(self, payload: bytes) -> bytes:
        """Keep the bytes durably, before anyone may see one of them.

        Returns the bytes that count: those of the first to stage, if another process with the same key was
        faster. What the slower one drew must not leave it.
        """

    def publish(self) -> None:
        """Book that the staged bytes have reached their reader."""


class Budget(Protocol):
    """A budget book: it says yes once for every part of a budget, whoever asks at the same time."""

    def debit(self, dataset: str, claim: Claim, *, subject: Mapping[str, object], key: str) -> Debit:
        """Book a claim against a dataset's budget, or find the entry of this key.

        ``subject`` says publicly what is released (basis fingerprint, rows, …). ``key`` names the attempt:
        the same key never spends twice.

        Raises
        ------
        BudgetExhausted
            if less is left than the claim spends; nothing is booked.
        ClaimError
            if the claim cannot be booked: insecure noise, another unit or relation that does not convert.
        """
